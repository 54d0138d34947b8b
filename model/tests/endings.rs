//! A search that a limit has cut says so, and which limit it was.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::Design;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Caps, Ending, search};
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
}

#[test]
fn cut_by_states() {
    let report = search(&scenario(), Caps { states: Some(100), depth: None }, |_| None);
    assert!(cut(&report.ending).starts_with("cap of 100 states hit"), "{:?}", report.ending);
    assert!(report.states >= 100 && report.states < 216);
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
