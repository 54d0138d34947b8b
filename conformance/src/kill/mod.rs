//! The kill list: a model in which nothing can break proves nothing, so every single fault must break something, or stand there with the reason why it cannot.

mod list;

use std::path::{Path, PathBuf};

use cleanslate_model::property::PROPERTIES;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Caps, Ending, actions_of, search};
use thiserror::Error;

use crate::from_model::{PathError, Rerun, rerun, trace_of};
use crate::trace::TraceError;
use crate::trace::read::read_trace;
use crate::trace::write::write_trace;

pub use list::{Fate, KillListError, Variant, load, parse};

/// What came of a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As listed: this property broke with so many steps, and its trace ran again from this file.
    Killed {
        /// The property.
        property: &'static str,
        /// The steps of its shortest trace.
        steps: u32,
        /// The trace.
        trace: PathBuf,
    },
    /// As listed: nothing broke in the whole space.
    Explained,
    /// Not as listed.
    Unexpected(String),
}

/// What came of a variant, and how large its space was.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What came of it.
    pub outcome: Outcome,
    /// Different states.
    pub states: u64,
}

/// Why a variant cannot be judged. Each means that model and trace file do not agree.
#[derive(Debug, Error)]
pub enum KillError {
    /// The discovery is no path of the model.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file cannot be written or read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file does not lead the model to the violation again.
    #[error("{}: the file does not reproduce in the model: {why}", path.display())]
    NotReproduced {
        /// The trace's file.
        path: PathBuf,
        /// What the model says.
        why: String,
    },
}

/// Judges one variant and writes the shortest trace of the property that kills it into `dir`.
///
/// # Errors
/// [`KillError`] if model and trace file do not agree.
pub fn judge(variant: &Variant, dir: &Path) -> Result<Judged, KillError> {
    let mut scenario = Scenario::new(variant.rules, variant.topology, variant.bounds);
    if let Fate::Killed { property, .. } = &variant.fate {
        scenario.properties = vec![*property];
    }
    let report = search(&scenario, Caps::default(), |_| None);
    let states = report.states;
    let judged = |outcome| Ok(Judged { outcome, states });
    let unexpected = |text: String| judged(Outcome::Unexpected(text));
    match &variant.fate {
        Fate::Survives(_) => {
            let broken = PROPERTIES.iter().find_map(|p| report.discovery(p.id));
            match (broken, &report.ending) {
                (Some(d), _) => unexpected(format!("it should survive, but {} breaks in {} steps", d.property, d.actions.len())),
                (None, Ending::Cut(why)) => unexpected(format!("the search was cut: {why}")),
                (None, Ending::Complete) => judged(Outcome::Explained),
            }
        }
        Fate::Killed { property, steps } => {
            let Some(discovery) = report.discovery(property.id) else {
                return unexpected(format!("{} should break, but it holds", property.id));
            };
            let found = u32::try_from(discovery.actions.len()).unwrap_or(u32::MAX);
            let actions = actions_of(&scenario, discovery).ok_or(PathError::NotAPath)?;
            let mut trace = trace_of(&scenario, &variant.design, Some(property), &actions)?;
            trace.violation = Some(property.about.to_owned()).map(|about| format!("broken: {about}"));
            let path = dir.join(file_name(&variant.design));
            write_trace(&path, &trace)?;
            match rerun(&read_trace(&path)?) {
                Rerun::Agrees(_) => {}
                Rerun::Disagrees(why) | Rerun::NotMeant(why) | Rerun::NotRun(why) => {
                    return Err(KillError::NotReproduced { path, why });
                }
            }
            if found == *steps {
                judged(Outcome::Killed { property: property.id, steps: found, trace: path })
            } else {
                unexpected(format!("{} breaks in {found} steps, expected {steps}", property.id))
            }
        }
    }
}

/// The file name of a variant's trace: its design, with nothing that a shell or a file system would take for itself.
#[must_use]
pub fn file_name(design: &str) -> String {
    let plain = design.chars().map(|c| if c.is_ascii_alphanumeric() || "-+=.".contains(c) { c } else { '_' });
    format!("{}.json", plain.collect::<String>())
}
