//! Lockstep: every transition that the model can take within small bounds is taken on the concrete log too, and after each the log, the
//! producer state, the open transactions and the offsets are the model's. Not a sample: edges covered / edges reachable is 100 %.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use cleanslate_conformance::from_model::trace_of;
use cleanslate_conformance::replay::replay;
use cleanslate_conformance::target::in_process::InProcess;
use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::Design;
use cleanslate_model::design::NAMED;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::topology::{TOPOLOGIES, Topology};
use stateright::Model as _;

/// Runs every edge; returns how many there are.
fn lockstep(name: &str, topology: &'static Topology, bounds: &str) -> usize {
    let bounds = Bounds::parse(bounds, topology).unwrap();
    let scenario = Scenario::new(Design::parse(name).unwrap(), topology, bounds);
    let mut seen = HashSet::new();
    let mut open: Vec<_> = scenario.init_states().into_iter().map(|s| (s, Vec::new())).collect();
    let mut edges = 0;
    while let Some((state, path)) = open.pop() {
        for (action, next) in scenario.next_steps(&state) {
            edges += 1;
            let mut path = path.clone();
            path.push(action);
            let trace = trace_of(&scenario, name, None, &path).unwrap();
            let report = replay(&trace, None, &mut InProcess::default()).unwrap();
            if let Some(divergence) = report.divergence {
                panic!("{name} in {}: {divergence}", topology.name);
            }
            let mut hasher = DefaultHasher::new();
            next.hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                open.push((next, path));
            }
        }
    }
    edges
}

#[test]
fn every_design_on_every_topology() {
    let mut edges = 0;
    for topology in TOPOLOGIES {
        for named in NAMED {
            edges += lockstep(named.name, topology, "small");
        }
    }
    assert!(edges > 5_000, "{edges}");
}

#[test]
fn with_crashes() {
    for named in NAMED {
        lockstep(named.name, Topology::by_name("active-passive").unwrap(), "small,batches=2,crashes=2");
        lockstep(named.name, Topology::by_name("chain").unwrap(), "small,crashes=1");
    }
    lockstep("raw-barrier", Topology::by_name("failback").unwrap(), "small,crashes=1");
}

#[test]
fn with_transactions() {
    let bounds = "small,idempotent=0,transactional=1,transactions=2,aborts=1,crashes=1";
    for named in NAMED {
        lockstep(named.name, Topology::by_name("active-passive").unwrap(), bounds);
    }
}

#[test]
fn with_one_choice_changed() {
    let chain = Topology::by_name("chain").unwrap();
    let failback = Topology::by_name("failback").unwrap();
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
        "raw-barrier+stop-order=record-lmo/write-barrier/truncate/writable",
    ] {
        lockstep(variant, chain, "small,idempotent=0,transactional=1");
        lockstep(variant, failback, "small,crashes=1");
    }
}
