//! Counterexamples: a violation becomes a trace file, and the file is run again before anyone reads about it.

use std::path::{Path, PathBuf};

use cleanslate_model::property::{GUARANTEE, Group, PropertySpec};
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Discovery, actions_of};
use thiserror::Error;

use crate::from_model::{PathError, Rerun, rerun, trace_of};
use crate::replay::{ReplayError, ReplayReport, replay};
use crate::target::in_process::InProcess;
use crate::trace::TraceError;
use crate::trace::format::Trace;
use crate::trace::read::read_trace;
use crate::trace::write::write_trace;
use crate::witness::Judgement;

/// A violation whose trace was written, read back, and run again on the log and in the model.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The trace as read from the file.
    pub trace: Trace,
    /// The file.
    pub path: PathBuf,
    /// The number of steps.
    pub length: u32,
}

/// Why a violation did not become a counterexample. Each means that model, log and trace do not agree: a fault to be reported.
#[derive(Debug, Error)]
pub enum CounterexampleError {
    /// The discovery is no path of the model.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file cannot be written or read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The log cannot run the trace.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The log does something else than the model.
    #[error("{}: model and log disagree at {divergence}", path.display())]
    Diverges {
        /// The trace's file.
        path: PathBuf,
        /// Where.
        divergence: String,
    },
    /// The log does the same, but the corruption is not there.
    #[error("{}: the model violates {property}, but the concrete log and producer state do not", path.display())]
    NotSeen {
        /// The trace's file.
        path: PathBuf,
        /// The property.
        property: String,
    },
    /// The file does not lead the model to the violation again.
    #[error("{}: the file does not reproduce in the model: {why}", path.display())]
    NotReproduced {
        /// The trace's file.
        path: PathBuf,
        /// What the model says.
        why: String,
    },
}

/// The file name of a counterexample: design, topology and property, with nothing that a shell would take for itself.
#[must_use]
pub(super) fn file_name(design: &str, topology: &str, property: &str) -> String {
    let plain: String = design.chars().map(|c| if c.is_ascii_alphanumeric() || "-+=.".contains(c) { c } else { '_' }).collect();
    format!("{plain}.{topology}.{property}.json")
}

/// Writes the counterexample of a discovery into `dir` and runs the file again.
///
/// # Errors
/// [`CounterexampleError`] if file, log and model do not agree on it.
pub(super) fn write(
    scenario: &Scenario,
    design: &str,
    spec: &'static PropertySpec,
    discovery: &Discovery,
    dir: &Path,
) -> Result<Counterexample, CounterexampleError> {
    let actions = actions_of(scenario, discovery).ok_or(PathError::NotAPath)?;
    let mut trace = trace_of(scenario, design, Some(spec), &actions)?;
    let focus = scenario.focus.map_or_else(String::new, |c| format!("@{c}"));
    let path = dir.join(file_name(design, scenario.topology.name, &format!("{}{focus}", spec.id)));
    // The sentence that says what is wrong comes from the concrete run, so it is there only after a first one.
    let first = replay(&trace, None, &mut InProcess::default())?;
    trace.violation = evidence(&first);
    write_trace(&path, &trace)?;
    let trace = read_trace(&path)?;
    let report = replay(&trace, Some(&path), &mut InProcess::default())?;
    if let Some(divergence) = &report.divergence {
        return Err(CounterexampleError::Diverges { path, divergence: divergence.to_string() });
    }
    // Leader epochs are no part of a trace, and what stands in two logs under different ones looks the same there.
    let epochs_alone = scenario.topology.environment.is_some() && spec.group == Group::Alignment;
    let model_alone = epochs_alone || GUARANTEE.iter().any(|p| p.id == spec.id);
    if evidence(&report).is_none() && !model_alone {
        return Err(CounterexampleError::NotSeen { path, property: spec.id.to_owned() });
    }
    match rerun(&trace) {
        Rerun::Agrees(_) => {}
        Rerun::Disagrees(why) | Rerun::NotMeant(why) | Rerun::NotRun(why) => {
            return Err(CounterexampleError::NotReproduced { path, why });
        }
    }
    let length = u32::try_from(trace.steps.len()).unwrap_or(u32::MAX);
    Ok(Counterexample { trace, path, length })
}

fn evidence(report: &ReplayReport) -> Option<String> {
    match &report.judgement {
        Some(Judgement::Seen(sentence)) => Some(sentence.clone()),
        _ => None,
    }
}
