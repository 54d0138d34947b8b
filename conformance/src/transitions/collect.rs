//! Explores the designs, under stock rules, in lockstep with the log of this project, and collects the graph.

use cleanslate_model::bounds::{Bounds, BoundsError};
use cleanslate_model::design::NAMED;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::topology::TOPOLOGIES;

use super::graph::{Collected, Graph, Met, Transition};
use super::op::LogOp;
use super::picture::Picture;
use crate::lockstep::{Watch, watched};
use crate::parallel;
use crate::target::gate::{ILLEGAL_STATE, READ_ONLY};
use crate::target::in_process::InProcess;
use crate::target::{Observed, TargetError};
use crate::trace::format::Op;

/// The log-level transitions of all named designs on all topologies.
#[derive(Debug)]
pub struct Collection {
    /// The graph.
    pub graph: Graph,
    /// Design and topology of each scenario, as [`Met::scenario`] counts them.
    pub scenarios: Vec<String>,
    /// The transitions of the model from which they come.
    pub edges: u64,
}

/// Why there is no collection.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The bounds are none.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// Model and log of this project part, or one picture and operation lead to two results.
    #[error("{scenario}: {why}")]
    Parting {
        /// Design and topology.
        scenario: String,
        /// Where.
        why: String,
    },
}

/// What one scenario gives.
struct Collector {
    scenario: usize,
    collected: Collected,
    /// The picture before the operation that is being carried out, and the operation on the log.
    pending: Option<(usize, LogOp, Met)>,
}

fn two_ways(error: &super::graph::TwoWays) -> TargetError {
    TargetError::Failed(error.to_string())
}

impl Watch for Collector {
    fn before(&mut self, logs: &InProcess, op: &Op, depth: u32) -> Result<(), TargetError> {
        self.pending = match LogOp::of(logs, op)? {
            Some(on_log) => {
                let from = self.collected.number(Picture::of(logs.log(op.replica())?)?);
                Some((from, on_log, Met { scenario: self.scenario, depth }))
            }
            None => None,
        };
        Ok(())
    }

    fn after(&mut self, logs: &InProcess, op: &Op, observed: &Observed) -> Result<(), TargetError> {
        let Some((from, on_log, met)) = self.pending.take() else { return Ok(()) };
        // What the mirror's gate refuses never reaches the log.
        if matches!(observed, Observed::Error(class) if class == READ_ONLY || class == ILLEGAL_STATE) {
            return Ok(());
        }
        let to = self.collected.number(Picture::of(logs.log(op.replica())?)?);
        let transition = Transition { from, op: on_log, result: observed.clone(), to, met };
        self.collected.add(transition).map_err(|e| two_ways(&e))
    }
}

/// The picture of a log that nothing has happened to.
fn empty(scenario: &Scenario, design: &str) -> Result<Picture, String> {
    let mut logs = InProcess::default();
    let header = crate::from_model::header(scenario, design, None);
    crate::target::Target::reset(&mut logs, &header).map_err(|e| e.to_string())?;
    let first = header.replicas.first().map(|declared| declared.name.clone()).unwrap_or_default();
    logs.log(&first).and_then(Picture::of).map_err(|e| e.to_string())
}

/// Explores every named design on every topology, on stock logs, and collects what happens to single logs. It holds every distinct picture.
///
/// # Errors
/// [`CollectError`].
pub fn collect(bounds: &str) -> Result<Collection, CollectError> {
    let mut scenarios = Vec::new();
    for topology in TOPOLOGIES {
        let bounds = Bounds::parse(bounds, topology)?;
        let scenario = |named: &cleanslate_model::design::NamedDesign| {
            (format!("{} in {}", named.name, topology.name), Scenario::new(named.design.on_stock_logs(), topology, bounds))
        };
        scenarios.extend(NAMED.iter().map(scenario));
    }
    let numbered: Vec<(usize, &(String, Scenario))> = scenarios.iter().enumerate().collect();
    let results = parallel::map(&numbered, |(number, (name, scenario))| explore(*number, name, scenario), |_, _| ());
    let (mut all, mut edges): (Option<Collected>, u64) = (None, 0);
    for ((name, _), result) in scenarios.iter().zip(results) {
        let parting = |why| CollectError::Parting { scenario: name.clone(), why };
        let (collected, covered) = result.map_err(parting)?;
        edges += covered;
        match &mut all {
            None => all = Some(collected),
            Some(all) => all.absorb(collected).map_err(|e| parting(e.to_string()))?,
        }
    }
    let graph = all.map(Collected::into_graph).unwrap_or_default();
    Ok(Collection { graph, scenarios: scenarios.into_iter().map(|(name, _)| name).collect(), edges })
}

fn explore(number: usize, name: &str, scenario: &Scenario) -> Result<(Collected, u64), String> {
    let collected = Collected::new(empty(scenario, name)?);
    let mut collector = Collector { scenario: number, collected, pending: None };
    let coverage = watched(scenario, name, &mut collector).map_err(|parting| parting.to_string())?;
    Ok((collector.collected, coverage.edges_covered))
}
