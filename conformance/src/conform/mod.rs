//! Conformance: the model held against the log of this project, transition by transition, and traces held against any target.

pub mod stock;

use std::path::{Path, PathBuf};

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::{NAMED, NamedDesign};
use cleanslate_model::scenario::Scenario;
use cleanslate_model::topology::{TOPOLOGIES, Topology};
use serde_json::{Value, json};

use crate::lockstep::{Coverage, lockstep};
use crate::parallel;
use crate::replay::{ReplayError, replay};
use crate::target::{Target, TargetError};
use crate::trace::TraceError;
use crate::trace::format::Trace;
use crate::trace::read::read_trace;
use crate::witness::Judgement;

use stock::{StockReplay, replay_with_stock_rules};

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The target did what the case says; the text tells what was seen, in one line, if there is anything to tell.
    Passed(Option<String>),
    /// It did not; the text says where, over several lines.
    Failed(String),
    /// The target cannot run the case; the text says why, in one line.
    Skipped(String),
}

/// One case and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The trace's file, or design and topology.
    pub name: String,
    /// The result.
    pub outcome: Outcome,
}

/// What a run has found.
#[derive(Clone, Debug, Default)]
pub struct Conformance {
    /// The cases in order.
    pub cases: Vec<Case>,
    /// Transitions of the model that were taken on the target.
    pub edges_covered: u64,
    /// Transitions that the model can take.
    pub edges_reachable: u64,
}

impl Conformance {
    fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.cases.iter().filter(|c| wanted(&c.outcome)).count()
    }

    /// How many cases passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Passed(_)))
    }

    /// How many cases failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Failed(_)))
    }

    /// How many cases the target could not run.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Skipped(_)))
    }

    /// The closing line for machines.
    #[must_use]
    pub fn summary(&self, target: &str) -> Value {
        json!({
            "kind": "summary",
            "target": target,
            "passed": self.passed(),
            "failed": self.failed(),
            "skipped": self.skipped(),
            "edges_covered": self.edges_covered,
            "edges_reachable": self.edges_reachable,
        })
    }

    /// Takes every transition of every named design on every topology on the log of this project.
    ///
    /// # Errors
    /// The text of a bounds error.
    pub fn lockstep(&mut self, bounds: &str) -> Result<(), String> {
        let mut scenarios = Vec::new();
        for topology in TOPOLOGIES {
            let bounds = Bounds::parse(bounds, topology).map_err(|e| e.to_string())?;
            scenarios.extend(NAMED.iter().map(|named| (named, topology, bounds)));
        }
        let take = |(named, topology, bounds): &(&NamedDesign, &'static Topology, Bounds)| {
            lockstep(&Scenario::new(named.design, topology, *bounds), named.name)
        };
        let results = parallel::map(&scenarios, take, |_, _| ());
        for ((named, topology, _), result) in scenarios.iter().zip(results) {
            let outcome = match result {
                Ok(Coverage { edges_reachable, edges_covered, .. }) => {
                    self.edges_reachable += edges_reachable;
                    self.edges_covered += edges_covered;
                    Outcome::Passed(None)
                }
                Err(parting) => Outcome::Failed(parting.to_string()),
            };
            self.cases.push(Case { name: format!("{} in {}, every transition", named.name, topology.name), outcome });
        }
        Ok(())
    }

    /// Runs trace files on a target, each `repeat` times. With `may_be_stock`, steps that need a rule which stock Kafka does not have are skipped,
    /// and so is what follows them.
    pub fn traces(&mut self, traces: &[(PathBuf, Trace)], target: &mut dyn Target, may_be_stock: bool, repeat: u64) {
        for (path, trace) in traces {
            let mut outcome = run_trace(path, trace, target, may_be_stock);
            for _ in 1..repeat {
                if matches!(outcome, Outcome::Failed(_)) {
                    break;
                }
                outcome = run_trace(path, trace, target, may_be_stock);
            }
            self.cases.push(Case { name: path.display().to_string(), outcome });
        }
    }
}

fn run_trace(path: &Path, trace: &Trace, target: &mut dyn Target, may_be_stock: bool) -> Outcome {
    let result = if may_be_stock {
        replay_with_stock_rules(trace, Some(path), target)
    } else {
        replay(trace, Some(path), target).map(|report| StockReplay { report, needs: None })
    };
    match result {
        Ok(replay) => match (replay.skipped(), &replay.report.divergence, &replay.report.judgement) {
            (Some(why), _, _) => Outcome::Skipped(why),
            (None, Some(divergence), _) => Outcome::Failed(divergence.to_string()),
            (None, None, Some(Judgement::NotSeen)) => {
                Outcome::Failed("every step agrees, but the corruption is not there".to_owned())
            }
            (None, None, Some(Judgement::Seen(evidence))) => {
                let step = trace.steps.last().map_or(0, |step| step.n);
                Outcome::Passed(Some(format!("step {step}: {evidence}")))
            }
            (None, None, _) => Outcome::Passed(None),
        },
        Err(error) => unable(&error),
    }
}

/// The traces of all files (*.json) of a directory, in order of name; or that of a file.
///
/// # Errors
/// [`TraceError`] if the directory or a file cannot be read.
pub fn read_traces(dir: &Path) -> Result<Vec<(PathBuf, Trace)>, TraceError> {
    trace_files(dir)?.into_iter().map(|path| read_trace(&path).map(|trace| (path, trace))).collect()
}

/// A scenario that the target does not know is skipped; a target that breaks down fails.
fn unable(error: &ReplayError) -> Outcome {
    match error.cause() {
        TargetError::Failed(_) => Outcome::Failed(error.to_string()),
        _ => Outcome::Skipped(error.to_string()),
    }
}

fn trace_files(dir: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let fail = |source| TraceError::Read { path: dir.to_owned(), source };
    if dir.is_file() {
        return Ok(vec![dir.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|e| e == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
