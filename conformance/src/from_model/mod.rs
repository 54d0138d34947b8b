//! From the model to trace files and back: a path of the model becomes a trace, and a trace is run in the model again.

mod project;
mod rerun;

use cleanslate_model::property::PropertySpec;
use cleanslate_model::scenario::{Action, Scenario};
use stateright::{Model as _, Path};

use crate::trace::format::{FORMAT, ProducerDecl, ProducerKind, ReplicaDecl, ScenarioRef, Step, Trace, VERSION};

pub use project::{ops_of, replica_state};
pub use rerun::{Rerun, rerun};

/// Why a path of the model did not become a trace. Each of these is a fault of this code, not of its user.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The actions are no path of the model.
    #[error("the discovered actions are not a path of the model")]
    NotAPath,
}

/// The trace of a path: each action as one step, with the state that must follow.
///
/// # Errors
/// [`PathError`] if the actions are no path of the model.
pub fn trace_of(
    scenario: &Scenario,
    design: &str,
    property: Option<&PropertySpec>,
    actions: &[Action],
) -> Result<Trace, PathError> {
    let mut trace = header(scenario, design, property);
    let init = scenario.init_states().into_iter().next().ok_or(PathError::NotAPath)?;
    let path = Path::from_actions(scenario, init, actions).ok_or(PathError::NotAPath)?;
    for (state, action) in path.into_vec() {
        let Some(action) = action else { break };
        let number = u32::try_from(trace.steps.len() + 1).unwrap_or(u32::MAX);
        trace.steps.push(step_of(scenario, number, &state, &action).ok_or(PathError::NotAPath)?);
    }
    Ok(trace)
}

/// A trace of the scenario without any step.
#[must_use]
pub fn header(scenario: &Scenario, design: &str, property: Option<&PropertySpec>) -> Trace {
    Trace {
        format: FORMAT.to_owned(),
        version: VERSION,
        title: title(scenario, design, property),
        scenario: scenario_ref(scenario, design),
        property: property.map(|p| p.id.to_owned()),
        violation: None,
        replicas: replicas(scenario),
        producers: producers(scenario),
        steps: Vec::new(),
    }
}

/// One action as a step of a trace; none if the action cannot be taken in this state.
#[must_use]
pub fn step_of(scenario: &Scenario, number: u32, state: &cleanslate_model::scenario::State, action: &Action) -> Option<Step> {
    let (parts, next) = scenario.explain(state, action)?;
    let say = cleanslate_model::story::step_line(scenario, state, &parts, &next);
    let ops = ops_of(scenario, state, &parts, &next);
    let touched = |name: &str| ops.iter().any(|op| op.replica() == name);
    let states = scenario
        .replicas(&next)
        .filter(|(broker, _)| touched(&broker.to_string()))
        .map(|(broker, replica)| (broker.to_string(), replica_state(scenario, replica)))
        .collect();
    Some(Step { n: number, say, ops, state: states })
}

fn title(scenario: &Scenario, design: &str, property: Option<&PropertySpec>) -> String {
    let topology = scenario.topology.name;
    match property {
        Some(p) => format!("{design} in {topology} breaks {} ({}): {}", p.id, p.requirement, p.about),
        None => format!("{design} in {topology}: a behaviour that the model allows"),
    }
}

fn scenario_ref(scenario: &Scenario, design: &str) -> ScenarioRef {
    ScenarioRef {
        design: design.to_owned(),
        axes: scenario.design.axes().into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        topology: scenario.topology.name.to_owned(),
        bounds: scenario.bounds.to_map().into_iter().map(|(k, v)| (k.to_owned(), u32::from(v))).collect(),
    }
}

fn replicas(scenario: &Scenario) -> Vec<ReplicaDecl> {
    let mirrors = |cluster| scenario.topology.clusters.iter().find(|(c, _)| *c == cluster).and_then(|(_, source)| *source);
    let decl = |broker: &cleanslate_model::ids::Broker| ReplicaDecl {
        name: broker.to_string(),
        cluster: broker.cluster.name().to_owned(),
        mirrors: mirrors(broker.cluster).map(|m| m.name().to_owned()),
    };
    scenario.directory.brokers.iter().map(decl).collect()
}

fn producers(scenario: &Scenario) -> Vec<ProducerDecl> {
    let decl = |p: &cleanslate_model::client::ProducerConfig| ProducerDecl {
        name: scenario.writer_name(p.writer),
        cluster: p.cluster.name().to_owned(),
        kind: match p.kind {
            cleanslate_model::client::ProducerKind::Plain => ProducerKind::Plain,
            cleanslate_model::client::ProducerKind::Idempotent => ProducerKind::Idempotent,
            cleanslate_model::client::ProducerKind::Transactional => ProducerKind::Transactional,
        },
    };
    let of_source = scenario.source_writers().map(|(writer, cluster)| ProducerDecl {
        name: scenario.writer_name(writer),
        cluster: cluster.name().to_owned(),
        // It writes with and without transactions.
        kind: ProducerKind::Transactional,
    });
    scenario.producers.iter().map(decl).chain(of_source).collect()
}
