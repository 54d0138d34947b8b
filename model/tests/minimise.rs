//! Counterexamples are minimal: nothing can be left out of what the search finds, and what is found in another way is shortened until
//! nothing can be.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::NAMED;
use cleanslate_model::property::{self, PROPERTIES};
use cleanslate_model::scenario::{Scenario, State};
use cleanslate_model::search::{Caps, Discovery, actions_of, minimise, search};
use cleanslate_model::topology::TOPOLOGIES;
use stateright::Model;

fn scenarios(bounds: &str) -> impl Iterator<Item = Scenario> {
    NAMED
        .iter()
        .flat_map(move |named| TOPOLOGIES.iter().map(move |t| Scenario::new(named.design, t, Bounds::parse(bounds, t).unwrap())))
}

fn breaks<'s>(scenario: &'s Scenario, property: &str) -> impl Fn(&State) -> bool + 's {
    let condition = property::by_id(property).unwrap().condition;
    move |state| !condition(scenario, state)
}

#[test]
fn nothing_can_be_left_out_of_a_counterexample_of_the_search() {
    let mut looked_at = 0;
    for scenario in scenarios("small") {
        let report = search(&scenario, Caps::default(), |_| None);
        for found in report.discoveries.iter().filter(|d| d.cycle.is_empty() && PROPERTIES.iter().any(|p| p.id == d.property)) {
            let least = minimise(&scenario, found, breaks(&scenario, found.property));
            assert_eq!(least.as_ref(), Some(found), "{}", scenario.topology.name);
            looked_at += 1;
        }
    }
    assert_eq!(looked_at, 92);
}

/// A walk that takes the actions in turn until the property breaks; the numbers are like random ones.
fn stray(scenario: &Scenario, property: &'static str, seed: u64) -> Option<Discovery> {
    let breaks = breaks(scenario, property);
    let mut state = scenario.init_states().remove(0);
    let mut number = seed;
    let mut walked = Discovery { property, ..Discovery::default() };
    while !breaks(&state) {
        let mut actions = Vec::new();
        scenario.actions(&state, &mut actions);
        let steps = actions.into_iter().enumerate().filter_map(|(i, a)| Some((i, scenario.next_state(&state, a)?)));
        let mut steps: Vec<_> = steps.filter(|(_, next)| *next != state).collect();
        if steps.is_empty() || walked.actions.len() == 60 {
            return None;
        }
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (index, next) = steps.swap_remove((number >> 33) as usize % steps.len());
        walked.actions.push(u16::try_from(index).unwrap());
        state = next;
    }
    Some(walked)
}

#[test]
fn a_walk_that_strays_is_shortened_to_what_it_needs() {
    let topology = TOPOLOGIES.iter().find(|t| t.name == "chain").unwrap();
    let bounds = Bounds::parse("small,batches=2,crashes=2,followers=1,elections=1", topology).unwrap();
    let scenario = Scenario::new(NAMED.iter().find(|n| n.name == "raw").unwrap().design, topology, bounds);
    let (mut walks, mut left_out) = (0, 0);
    for walked in (0..200).filter_map(|seed| stray(&scenario, "psm-entry-single-producer", seed)) {
        let breaks = breaks(&scenario, walked.property);
        let least = minimise(&scenario, &walked, &breaks).unwrap();
        assert!(least.actions.len() <= walked.actions.len());
        assert_eq!(minimise(&scenario, &least, &breaks), Some(least.clone()));
        let mut state = scenario.init_states().remove(0);
        for action in actions_of(&scenario, &least).unwrap() {
            assert!(!breaks(&state));
            state = scenario.next_state(&state, action).unwrap();
        }
        assert!(breaks(&state));
        walks += 1;
        left_out += walked.actions.len() - least.actions.len();
    }
    assert_eq!((walks, left_out), (31, 252));
}

#[test]
fn a_path_that_breaks_nothing_is_not_shortened() {
    let scenario = scenarios("small").next().unwrap();
    let nothing = Discovery { property: "psm-entry-single-producer", ..Discovery::default() };
    assert_eq!(minimise(&scenario, &nothing, breaks(&scenario, nothing.property)), None);
    let nowhere = Discovery { actions: vec![u16::MAX], ..nothing };
    assert_eq!(minimise(&scenario, &nowhere, |_| true), None);
}
