//! Conformance: the model held against the log of this project, transition by transition, and traces held against any target.

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
use crate::trace::read::read_trace;
use crate::witness::Judgement;

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The target did what the case says.
    Passed,
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
        self.count(|o| matches!(o, Outcome::Passed))
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
                    Outcome::Passed
                }
                Err(parting) => Outcome::Failed(parting.to_string()),
            };
            self.cases.push(Case { name: format!("{} in {}, every transition", named.name, topology.name), outcome });
        }
        Ok(())
    }

    /// Runs every trace file of a directory, in order of name, on a target.
    ///
    /// # Errors
    /// [`TraceError`] if the directory or a file cannot be read.
    pub fn traces(&mut self, dir: &Path, target: &mut dyn Target) -> Result<(), TraceError> {
        for path in trace_files(dir)? {
            let trace = read_trace(&path)?;
            let outcome = match replay(&trace, Some(&path), target) {
                Ok(report) => match (&report.divergence, &report.judgement) {
                    (Some(divergence), _) => Outcome::Failed(divergence.to_string()),
                    (None, Some(Judgement::NotSeen)) => {
                        Outcome::Failed("every step agrees, but the corruption is not there".to_owned())
                    }
                    (None, _) => Outcome::Passed,
                },
                Err(error) => unable(&error),
            };
            self.cases.push(Case { name: path.display().to_string(), outcome });
        }
        Ok(())
    }
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
