//! A trace is run in the model again, from its file alone: each step must be one that the model can take.

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::Design;
use cleanslate_model::property;
use cleanslate_model::scenario::{Scenario, State};
use cleanslate_model::topology::{LINK, TOPOLOGIES, Topology};
use stateright::Model as _;

use super::{header, step_of};
use crate::trace::format::{BY_HAND, ScenarioRef, Step, Trace};

/// How a rerun ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// Every step is one of the model's, and the property, if one is named, is violated after the last.
    Agrees(String),
    /// Not so; the text says where.
    Disagrees(String),
    /// The trace says that it was made by hand, for a log alone.
    NotMeant(String),
    /// The model has no such scenario.
    NotRun(String),
}

/// Runs a trace in the model.
#[must_use]
pub fn rerun(trace: &Trace) -> Rerun {
    if trace.scenario.topology == BY_HAND {
        return Rerun::NotMeant(format!("the topology '{BY_HAND}' is not the model's, which is not asked"));
    }
    let scenario = match scenario_of(&trace.scenario) {
        Ok(scenario) => scenario,
        Err(why) => return Rerun::NotRun(why),
    };
    if let Some(why) = another_scenario(trace, &scenario) {
        return Rerun::Disagrees(why);
    }
    // Equal steps of one file can mean different model states (which of two equal messages was taken), so all of them are followed.
    let mut states = scenario.init_states();
    for step in &trace.steps {
        states = states.iter().flat_map(|state| successors(&scenario, state, step)).collect();
        dedup(&mut states);
        if states.is_empty() {
            return Rerun::Disagrees(format!("step {} is not a step of the model here: {}", step.n, step.say));
        }
    }
    let Some(id) = &trace.property else {
        return Rerun::Agrees(format!("all {} steps are steps of the model", trace.steps.len()));
    };
    let Some(spec) = property::by_id(id) else { return Rerun::NotRun(format!("the model has no property '{id}'")) };
    if states.iter().any(|state| !(spec.condition)(&scenario, state)) {
        Rerun::Agrees(format!("all {} steps are steps of the model, and {id} is violated after the last", trace.steps.len()))
    } else {
        Rerun::Disagrees(format!("all {} steps are steps of the model, but {id} holds after the last", trace.steps.len()))
    }
}

/// What the file says of its scenario that is not so.
fn another_scenario(trace: &Trace, scenario: &Scenario) -> Option<String> {
    let design = Design::parse(&trace.scenario.design).ok()?;
    let parts = design.axes().into_iter().zip(scenario.design.axes()).find(|(named, written)| named != written);
    if let Some(((axis, named), (_, written))) = parts {
        return Some(format!("the design '{}' has {axis}={named}, its axes say {axis}={written}", trace.scenario.design));
    }
    let of_model = header(scenario, &trace.scenario.design, None);
    if trace.replicas != of_model.replicas {
        let names: Vec<_> = of_model.replicas.iter().map(|r| r.name.as_str()).collect();
        return Some(format!("the scenario has the replicas {}, the file has others", names.join(", ")));
    }
    if trace.producers != of_model.producers {
        let names: Vec<_> = of_model.producers.iter().map(|p| p.name.as_str()).collect();
        return Some(format!("the scenario has the producers {}, the file has others", names.join(", ")));
    }
    None
}

fn dedup(states: &mut Vec<State>) {
    let mut kept: Vec<State> = Vec::new();
    for state in states.drain(..) {
        if !kept.contains(&state) {
            kept.push(state);
        }
    }
    *states = kept;
}

fn successors(scenario: &Scenario, state: &State, step: &Step) -> Vec<State> {
    let mut actions = Vec::new();
    scenario.actions(state, &mut actions);
    let fits = |action: &cleanslate_model::scenario::Action| {
        step_of(scenario, step.n, state, action).is_some_and(|s| s.ops == step.ops && s.state == step.state && s.say == step.say)
    };
    actions.into_iter().filter(fits).filter_map(|action| scenario.next_state(state, action)).collect()
}

fn scenario_of(scenario: &ScenarioRef) -> Result<Scenario, String> {
    let topology = Topology::by_name(&scenario.topology).ok_or_else(|| {
        let names: Vec<_> = TOPOLOGIES.iter().chain([LINK]).map(|t| t.name).collect();
        format!("the model has no topology '{}'; it has {}", scenario.topology, names.join(", "))
    })?;
    let mut design = Design::parse(&scenario.design).map_err(|e| e.to_string())?;
    for (key, choice) in &scenario.axes {
        design.set(key, choice).map_err(|e| e.to_string())?;
    }
    let list: Vec<_> = scenario.bounds.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let bounds = Bounds::parse(&list.join(","), topology).map_err(|e| e.to_string())?;
    Ok(Scenario::new(design, topology, bounds))
}
