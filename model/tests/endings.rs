//! A search that a limit has cut says so, and which limit it was.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::Design;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Caps, Ending, Options, Progress, search, search_with};
use cleanslate_model::topology::Topology;

fn scenario() -> Scenario {
    let topology = Topology::by_name("chain").unwrap();
    Scenario::new(Design::parse("raw-barrier").unwrap(), topology, Bounds::SMALL)
}

fn cut(ending: &Ending) -> &str {
    match ending {
        Ending::Cut(why) => why,
        Ending::Complete => panic!("the search claims to be complete"),
    }
}

#[test]
fn complete_without_limits() {
    let report = search(&scenario(), Caps::default(), |_| None);
    assert_eq!(report.ending, Ending::Complete);
    assert_eq!(report.states, 216);
    assert_eq!(report.growth.iter().sum::<u64>(), report.states);
    // No level is larger than what waits while it is expanded, and no more can wait than there is.
    assert!(report.frontier_peak >= report.growth.iter().copied().max().unwrap() && report.frontier_peak <= report.states);
    assert_eq!(report.kinds.iter().map(|(_, count)| count).sum::<u64>(), report.transitions);
    assert!(report.kinds.is_sorted_by(|a, b| a.1 >= b.1) && report.kinds.iter().any(|(kind, _)| *kind == "Fetch"));
    // A fingerprint, a parent and an action index at the least.
    assert!(report.bytes_per_state() >= 14);
    assert_eq!(report.circles, None);
}

#[test]
fn cut_by_states() {
    let report = search(&scenario(), Caps { states: Some(100), depth: None }, |_| None);
    assert!(cut(&report.ending).starts_with("cap of 100 states hit"), "{:?}", report.ending);
    assert!(report.states >= 100 && report.states < 216);
}

#[test]
fn the_interrupt_hears_how_far_the_search_is_and_may_end_it_for_memory() {
    let topology = Topology::by_name("failback").unwrap();
    let scenario = Scenario::new(Design::parse("raw-barrier").unwrap(), topology, Bounds::ci(topology));
    // As a caller does that reads its resident set: here the frontier stands for it.
    let memory = |p: &Progress| (p.frontier >= 300).then(|| "memory cap of 1 MiB hit".to_owned());
    let report = search(&scenario, Caps::default(), memory);
    assert!(cut(&report.ending).starts_with("memory cap of 1 MiB hit at depth"), "{:?}", report.ending);
    assert!(report.frontier_peak >= 300);
}

/// All states of a level that was reached are judged, also those that the cut leaves unexpanded.
#[test]
fn a_cut_at_any_state_keeps_what_was_reached() {
    let scenario = scenario();
    let all = search(&scenario, Caps::default(), |_| None);
    assert!(all.discoveries.iter().any(|d| d.actions.len() > 4), "nothing is found late: {:?}", all.discoveries);
    for states in 1..all.states {
        let report = search(&scenario, Caps { states: Some(states), depth: None }, |_| None);
        let reached: Vec<_> = all.discoveries.iter().filter(|d| d.actions.len() as u32 <= report.depth()).cloned().collect();
        assert_eq!(report.discoveries, reached, "{states}");
        let to_depth = search(&scenario, Caps { states: None, depth: Some(report.depth()) }, |_| None);
        assert_eq!(to_depth.discoveries, reached, "{states}");
    }
}

#[test]
fn threads_change_nothing() {
    let topology = Topology::by_name("active-passive").unwrap();
    let scenario = Scenario::new(Design::parse("raw").unwrap(), topology, Bounds::ci(topology));
    let run = |threads, states| {
        let options = Options { caps: Caps { states, depth: None }, threads, goals: true };
        let report = search_with(&scenario, options, |_| None);
        (report.states, report.transitions, report.kinds, report.growth, report.frontier_peak, report.ending, report.discoveries)
    };
    for states in [Some(1), Some(3_000), Some(20_000)] {
        let one = run(1, states);
        assert_eq!(run(2, states), one, "{states:?}");
        assert_eq!(run(3, states), one, "{states:?}");
    }
}

#[test]
fn cut_by_depth() {
    let report = search(&scenario(), Caps { states: None, depth: Some(5) }, |_| None);
    assert!(cut(&report.ending).starts_with("depth cap of 5 hit"), "{:?}", report.ending);
    assert_eq!(report.depth(), 5);
}

#[test]
fn cut_from_outside() {
    let report = search(&scenario(), Caps::default(), |p| (p.depth > 3).then(|| "time cap of 1 s hit".to_owned()));
    assert!(cut(&report.ending).starts_with("time cap of 1 s hit at depth 4"), "{:?}", report.ending);
}

#[test]
fn a_violation_found_before_the_cut_counts() {
    let topology = Topology::by_name("active-passive").unwrap();
    let scenario = Scenario::new(Design::parse("raw").unwrap(), topology, Bounds::ci(topology));
    let report = search(&scenario, Caps { states: Some(20_000), depth: None }, |_| None);
    assert!(matches!(report.ending, Ending::Cut(_)));
    assert!(report.discovery("false-duplicate").is_some());
}
