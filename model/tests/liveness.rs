//! Liveness on graphs: the algorithm against a look at all sets of states, by hand, against stateright's, and on the scenarios (LIVE-3).

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::collections::BTreeSet;

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::{Design, NAMED};
use cleanslate_model::liveness::{Graph, UNFAIR, endless};
use cleanslate_model::property::{self, PropertySpec};
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Caps, Discovery, Ending, Explorable, Goal, Options, Plain, Report, actions_of, search_with};
use cleanslate_model::topology::{TOPOLOGIES, Topology};
use proptest::prelude::{ProptestConfig, Strategy, any, proptest};
use stateright::{Checker as _, Model, Property};

/// A graph by its steps: for each state the targets, each with a label; 0 may be neglected. A bit for each state that reaches the goal.
#[derive(Clone, Debug)]
struct Table {
    steps: Vec<Vec<(u8, u8)>>,
    good: u8,
}

impl Table {
    fn is_good(&self, state: u8) -> bool {
        self.good & (1 << state) != 0
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        for (state, steps) in self.steps.iter().enumerate() {
            graph.state(u8::from(!self.is_good(state as u8)));
            for (index, (target, label)) in steps.iter().enumerate() {
                graph.edge(u32::from(*target), index as u16, if *label == 0 { UNFAIR } else { u32::from(*label) });
            }
        }
        graph
    }

    /// Whether a fair run can go through exactly this set of states again and again, by definition.
    fn is_fair_for_ever(&self, set: &BTreeSet<u8>) -> bool {
        let inside = |s: u8| self.steps[usize::from(s)].iter().filter(|(t, _)| set.contains(t));
        let reached = |from: u8| {
            let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
            while let Some(state) = open.pop() {
                open.extend(inside(state).map(|(t, _)| *t).filter(|t| seen.insert(*t)).collect::<Vec<_>>());
            }
            seen
        };
        let fair = |label: u8| {
            let unavailable = |s: u8| self.steps[usize::from(s)].iter().all(|(_, l)| *l != label);
            set.iter().any(|s| unavailable(*s) || inside(*s).any(|(_, l)| *l == label))
        };
        set.iter().all(|s| reached(*s) == *set) && (1..=3).all(fair)
    }

    /// The least state that a fair run misses the goal in again and again, from a look at every set of states.
    fn missed_by_definition(&self) -> Option<u8> {
        let states = 0..self.steps.len() as u8;
        let sets =
            (1_u32..1 << self.steps.len()).map(|bits| states.clone().filter(|s| bits & (1 << s) != 0).collect::<BTreeSet<_>>());
        let bad = |set: BTreeSet<u8>| set.into_iter().filter(|s| !self.is_good(*s)).min();
        sets.filter(|set| self.is_fair_for_ever(set)).filter_map(bad).min()
    }

    /// The states on a way, the first one included, and the labels of its steps.
    fn follow(&self, start: u8, way: &[u16]) -> (Vec<u8>, Vec<u8>) {
        let (mut states, mut labels) = (vec![start], Vec::new());
        for index in way {
            let (target, label) = self.steps[usize::from(*states.last().unwrap())][usize::from(*index)];
            states.push(target);
            labels.push(label);
        }
        (states, labels)
    }

    fn check(&self) {
        let found = endless(&self.graph(), 1).missed.remove(0);
        assert_eq!(found.as_ref().map(|l| l.state as u8), self.missed_by_definition(), "{self:?}");
        let Some(lasso) = found else { return };
        let (states, labels) = self.follow(lasso.state as u8, &lasso.cycle);
        assert_eq!(states.first(), states.last(), "{self:?}: {lasso:?} does not come back");
        for label in 1..=3 {
            let unavailable = |s: &u8| self.steps[usize::from(*s)].iter().all(|(_, l)| *l != label);
            assert!(labels.contains(&label) || states.iter().any(unavailable), "{self:?}: {lasso:?} neglects {label}");
        }
    }
}

fn tables() -> impl Strategy<Value = Table> {
    // Targets beyond the last state are states that were not expanded.
    (1_usize..=7).prop_flat_map(|n| {
        let step = (0..=n as u8, 0_u8..=3);
        (proptest::collection::vec(proptest::collection::vec(step, 0..4), n), any::<u8>())
            .prop_map(|(steps, good)| Table { steps, good })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_look_at_every_set_of_states(table in tables()) {
        table.check();
    }
}

impl Model for Table {
    type State = u8;
    type Action = (u8, u8);

    fn init_states(&self) -> Vec<u8> {
        vec![0]
    }

    fn actions(&self, state: &u8, actions: &mut Vec<(u8, u8)>) {
        actions.extend(&self.steps[usize::from(*state)]);
    }

    fn next_state(&self, _: &u8, action: (u8, u8)) -> Option<u8> {
        Some(action.0)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::eventually("good", |table: &Self, state| table.is_good(*state))]
    }
}

impl Explorable for Table {
    type Store = Plain;

    fn store(&self) -> Plain {
        Plain
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        vec![Goal { name: "good", condition: |table, state| table.is_good(*state) }]
    }

    fn fair(&self, action: &(u8, u8)) -> Option<u64> {
        (action.1 != 0).then_some(u64::from(action.1))
    }
}

fn explore(table: &Table, states: Option<u64>) -> Report {
    search_with(table, Options { caps: Caps { states, depth: None }, threads: 1, goals: true }, |_| None)
}

fn found(table: &Table) -> Option<Discovery> {
    table.check();
    let report = explore(table, None);
    assert_eq!(report.ending, Ending::Complete);
    report.discoveries.into_iter().next()
}

fn lasso(actions: &[u16], cycle: &[u16]) -> Option<Discovery> {
    Some(Discovery { property: "good", actions: actions.to_vec(), cycle: cycle.to_vec() })
}

fn table(steps: &[&[(u8, u8)]], good: &[u8]) -> Table {
    Table { steps: steps.iter().map(|s| s.to_vec()).collect(), good: good.iter().fold(0, |bits, s| bits | (1 << s)) }
}

fn stateright_finds(table: &Table) -> bool {
    table.clone().checker().spawn_bfs().join().discovery("good").is_some()
}

#[test]
fn a_run_ends_where_no_fair_action_is_available() {
    assert_eq!(found(&table(&[&[(1, 1)], &[]], &[0])), lasso(&[0], &[]));
    // A step that may be neglected does not help.
    assert_eq!(found(&table(&[&[(1, 1)], &[(0, 0)]], &[0])), lasso(&[0], &[]));
    assert_eq!(found(&table(&[&[(1, 1)], &[(2, 1)], &[]], &[2])), None);
}

#[test]
fn a_step_that_changes_nothing_is_taken_for_ever() {
    assert_eq!(found(&table(&[&[(0, 1)]], &[])), lasso(&[], &[0]));
    // Another fair action, always available, leads out.
    assert_eq!(found(&table(&[&[(0, 1), (1, 2)], &[]], &[1])), None);
    // It leads out, but may as well change nothing.
    assert_eq!(found(&table(&[&[(0, 1), (1, 1)], &[]], &[1])), lasso(&[], &[0]));
}

#[test]
fn a_way_out_that_is_not_always_there_need_not_be_taken() {
    let sometimes = table(&[&[(1, 1), (2, 2)], &[(0, 1)], &[]], &[2]);
    assert_eq!(found(&sometimes), lasso(&[], &[0, 0]));
    let always = table(&[&[(1, 1), (2, 2)], &[(0, 1), (2, 2)], &[]], &[2]);
    assert_eq!(found(&always), None);
}

#[test]
fn a_goal_that_is_reached_and_missed_in_turns_is_missed() {
    assert_eq!(found(&table(&[&[(1, 1)], &[(0, 1)]], &[0])), lasso(&[0], &[0, 0]));
}

#[test]
fn stateright_misses_circles_and_joins() {
    let circle = table(&[&[(1, 1)], &[(0, 1)]], &[]);
    assert!(!stateright_finds(&circle));
    assert_eq!(found(&circle), lasso(&[], &[0, 0]));
    // State 1 is good on the way to 3, state 2 is not; 3 is met first behind 1.
    let join = table(&[&[(1, 1), (2, 1)], &[(3, 1)], &[(3, 1)], &[]], &[1]);
    assert!(!stateright_finds(&join));
    assert_eq!(found(&join), lasso(&[0, 0], &[]));
    // What it does see.
    assert!(stateright_finds(&table(&[&[(1, 1)], &[]], &[])));
}

#[test]
fn a_cut_search_tells_what_it_saw_and_no_more() {
    // 0 to 1 to 2 to 3, all bad; 1 changes nothing under a fair action.
    let violated = table(&[&[(1, 1)], &[(1, 1), (2, 1)], &[(3, 1)], &[]], &[]);
    let report = explore(&violated, Some(3));
    assert!(matches!(report.ending, Ending::Cut(_)));
    assert_eq!(report.discoveries, [lasso(&[0], &[0]).unwrap()]);
    // Cut before the end at 3 is expanded: nothing is known of it.
    let report = explore(&table(&[&[(1, 1)], &[(2, 1)], &[(3, 1)], &[]], &[]), Some(4));
    assert!(matches!(report.ending, Ending::Cut(_)));
    assert_eq!(report.discoveries, []);
}

#[test]
fn the_actions_of_a_lasso_come_back() {
    let model = table(&[&[(1, 1)], &[(2, 1)], &[(1, 1)]], &[0, 1]);
    let discovery = found(&model).unwrap();
    assert_eq!((discovery.actions.len(), discovery.cycle.len()), (2, 2));
    assert_eq!(actions_of(&model, &discovery).unwrap(), [(1, 1), (2, 1), (1, 1), (2, 1)]);
}

/// What a single state shows of liveness is all: no scenario goes round in a circle, so none in one that misses a goal.
fn check_scenarios(topologies: &[&str], bounds: &str) {
    for topology in topologies.iter().map(|name| Topology::by_name(name).unwrap()) {
        let bounds = Bounds::parse(bounds, topology).unwrap();
        for named in NAMED {
            let scenario = Scenario::new(named.design, topology, bounds);
            let explore = |goals, threads| search_with(&scenario, Options { goals, threads, ..Options::default() }, |_| None);
            let (exact, by_state) = (explore(true, 2), explore(false, 1));
            let what = format!("{} in {} at {bounds:?}", named.name, topology.name);
            assert_eq!(exact.ending, Ending::Complete, "{what}");
            assert_eq!(exact.discoveries, by_state.discoveries, "{what}");
            assert_eq!(exact.circles, Some(0), "{what}");
            assert_eq!((exact.states, &exact.growth, &exact.kinds), (by_state.states, &by_state.growth, &by_state.kinds), "{what}");
        }
    }
}

#[test]
fn a_single_state_shows_what_a_scenario_misses_for_ever() {
    check_scenarios(&TOPOLOGIES.iter().map(|t| t.name).collect::<Vec<_>>(), "small");
    check_scenarios(&["active-passive"], "small,crashes=1,followers=1,elections=1");
    check_scenarios(&["chain"], "small,idempotent=0,transactional=1,retries=1");
}

/// The graph alone finds what a state shows, by the same way, in scenarios that do miss a goal.
#[test]
fn the_graph_finds_what_a_single_state_shows() {
    let topology = Topology::by_name("active-passive").unwrap();
    for (design, bounds, id) in [
        ("raw", "small,crashes=1,transactional=1", "stable-when-quiet"),
        ("sound+fault=stop-forgotten", "small,crashes=1,followers=1,elections=1", "stop-completes"),
    ] {
        let bounds = Bounds::parse(bounds, topology).unwrap();
        let mut scenario = Scenario::new(Design::parse(design).unwrap(), topology, bounds);
        let property = property::by_id(id).unwrap();
        scenario.properties = vec![property];
        let explore = |scenario: &Scenario| search_with(scenario, Options { goals: true, ..Options::default() }, |_| None);
        let by_state = explore(&scenario).discovery(id).cloned();
        assert!(by_state.is_some(), "{design} keeps {id}");
        scenario.properties = vec![Box::leak(Box::new(PropertySpec { condition: |_, _| true, ..*property }))];
        assert_eq!(explore(&scenario).discovery(id).cloned(), by_state, "{design}: {id}");
    }
}
