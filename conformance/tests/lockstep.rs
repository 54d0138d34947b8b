//! Lockstep at small bounds: edges covered / edges reachable is 100 %, for every design, and for designs with one choice changed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use cleanslate_conformance::lockstep::{Coverage, lockstep};
use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::{Design, NAMED};
use cleanslate_model::scenario::Scenario;
use cleanslate_model::topology::{TOPOLOGIES, Topology};

fn check(design: &str, topology: &str, bounds: &str) -> Coverage {
    let topology = Topology::by_name(topology).unwrap();
    let bounds = Bounds::parse(bounds, topology).unwrap();
    let scenario = Scenario::new(Design::parse(design).unwrap(), topology, bounds);
    match lockstep(&scenario, design) {
        Ok(coverage) => {
            assert_eq!(coverage.edges_covered, coverage.edges_reachable);
            coverage
        }
        Err(parting) => panic!("{design} in {}: {parting}", topology.name),
    }
}

#[test]
fn every_design_on_every_topology() {
    let mut edges = 0;
    for topology in TOPOLOGIES {
        for named in NAMED {
            edges += check(named.name, topology.name, "small").edges_covered;
        }
    }
    assert_eq!(edges, 34_955, "the number of transitions has changed");
}

#[test]
fn with_crashes() {
    for named in NAMED {
        check(named.name, "active-passive", "small,batches=2,crashes=2");
        check(named.name, "chain", "small,crashes=1");
        check(named.name, "failback", "small,crashes=1");
    }
}

#[test]
fn with_transactions() {
    for named in NAMED {
        check(named.name, "active-passive", "small,idempotent=0,transactional=1,transactions=2,aborts=1,crashes=1");
        check(named.name, "chain", "small,idempotent=0,transactional=1");
    }
}

/// LINK-2: an arbitrary source is a log like any other, with more histories.
#[test]
fn behind_an_arbitrary_source() {
    for named in NAMED {
        check(named.name, "link", "small,commands=1");
        check(named.name, "link", "small,source=1,cuts=1,tail=1,commands=1");
    }
    check("sound", "link", "small,cuts=1,commands=1");
}

#[test]
fn with_one_choice_changed() {
    for variant in [
        "raw+fetch-bound=hw",
        "negate+psm-ids=stock",
        "raw-barrier+propagated=append",
        "raw-barrier+clears=negative",
        "raw-barrier+clears=all-and-derived",
        "raw-barrier+timing=analysis",
        "raw-barrier+applied-by=leader/follower/reload",
        "raw-barrier+applied-by=leader/follower/segment-recovery",
        "raw-barrier+applied-by=leader/reload/segment-recovery",
        "raw-barrier+open-transactions=leave+fetch-bound=hw",
        "raw-barrier+alignment=own-lso",
        "raw-barrier+reload-when-empty=done",
        "raw-barrier-abort+gate=stopping",
        "raw-barrier-abort+stop-order=truncate/record/bump/writable/abort/write-barrier",
        "raw-barrier+stop-order=record/bump/abort/write-barrier/truncate/writable",
    ] {
        check(variant, "chain", "small,idempotent=0,transactional=1");
        check(variant, "failback", "small,crashes=1");
    }
}

/// A mirror with a follower: copies, elections, resignations, restarts of either broker.
#[test]
fn with_a_follower() {
    for named in NAMED {
        check(named.name, "active-passive", "small,followers=1,elections=1");
        check(named.name, "active-passive", "small,followers=1,crashes=1");
        check(named.name, "active-passive", "small,followers=2,unclean=1");
        check(named.name, "active-passive", "small,idempotent=0,transactional=1,followers=1,elections=1");
    }
    check("raw-barrier-abort", "active-passive", "small,batches=2,followers=1,elections=1,rolls=1");
    check("raw-barrier", "chain", "small,followers=1,elections=1");
}

#[test]
fn with_segments_and_restarts() {
    for named in NAMED {
        check(named.name, "active-passive", "small,batches=2,rolls=1,restarts=1,crashes=1");
        check(named.name, "active-passive", "small,idempotent=0,transactional=1,aborts=1,rolls=1,restarts=1");
    }
}

#[test]
fn with_resends_and_several_batches_in_one_append() {
    for named in NAMED {
        check(named.name, "active-passive", "small,batches=2,retries=1,bumps=1");
        check(named.name, "active-passive", "small,batches=2,bulk=1,crashes=1");
        check(named.name, "fan-in", "small,bulk=1,idempotent=0,transactional=1");
        check(named.name, "retarget", "small,retries=1");
    }
}
