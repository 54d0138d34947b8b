//! RED-1, RED-2: the reduced search and the search of every interleaving see the same violations and the same witnesses.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::collections::BTreeSet;

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::NAMED;
use cleanslate_model::scenario::{Reduction, Scenario};
use cleanslate_model::search::{Caps, Ending, Report, search};
use cleanslate_model::topology::{TOPOLOGIES, Topology};

fn explore(design: cleanslate_model::design::Design, topology: &'static Topology, bounds: Bounds, reduction: Reduction) -> Report {
    let scenario = Scenario::with_reduction(design, topology, bounds, reduction);
    let report = search(&scenario, Caps { states: Some(2_000_000), depth: None }, |_| None);
    assert_eq!(report.ending, Ending::Complete, "{} at {bounds:?} is too large for this test", topology.name);
    report
}

fn found(report: &Report) -> BTreeSet<&'static str> {
    report.discoveries.iter().map(|d| d.property).collect()
}

fn check(topology: &str, bounds: &str) {
    let topology = Topology::by_name(topology).unwrap();
    let bounds = Bounds::parse(bounds, topology).unwrap();
    for named in NAMED {
        let reduced = explore(named.design, topology, bounds, Reduction::Urgent);
        let full = explore(named.design, topology, bounds, Reduction::None);
        assert_eq!(found(&reduced), found(&full), "{} in {}", named.name, topology.name);
        assert!(reduced.states < full.states, "{} in {}: the reduction does nothing", named.name, topology.name);
    }
}

#[test]
fn at_small_bounds_on_every_topology() {
    for topology in TOPOLOGIES {
        check(topology.name, "small");
    }
}

#[test]
fn with_a_crash() {
    check("active-passive", "small,crashes=1");
    check("chain", "small,crashes=1");
}

#[test]
fn with_a_transaction() {
    check("active-passive", "small,idempotent=0,transactional=1,aborts=1");
}

#[test]
fn with_two_producers_in_a_cluster() {
    check("active-passive", "small,transactional=1");
}

#[test]
fn with_a_follower() {
    check("active-passive", "small,followers=1");
    check("active-passive", "small,followers=1,elections=1");
}

#[test]
fn with_a_resend_and_with_a_batch_given_up() {
    check("active-passive", "small,retries=1");
    check("active-passive", "small,batches=2,bumps=1");
}

#[test]
fn with_segments_and_restarts() {
    check("active-passive", "small,rolls=1,restarts=1");
    check("active-passive", "small,batches=2,bulk=1");
}
