//! Facts about the model itself that its reductions and shortcuts rest on.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::NAMED;
use cleanslate_model::node::NodeState;
use cleanslate_model::scenario::{Reduction, Scenario, State};
use cleanslate_model::topology::TOPOLOGIES;
use stateright::Model as _;

fn every_state(scenario: &Scenario, mut visit: impl FnMut(&State)) {
    let mut seen = HashSet::new();
    let mut open = scenario.init_states();
    while let Some(state) = open.pop() {
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&state, &mut hasher);
        if seen.insert(std::hash::Hasher::finish(&hasher)) {
            visit(&state);
            open.extend(scenario.next_states(&state));
        }
    }
}

#[test]
fn storage_and_state_hold_the_same_log_and_journals_are_empty() {
    for topology in TOPOLOGIES {
        for reduction in [Reduction::Urgent, Reduction::None] {
            // Every interleaving is needed once, not on every topology.
            if reduction == Reduction::None && topology.name != "active-passive" {
                continue;
            }
            // A follower as well, where that stays small.
            let small = topology.name == "active-passive" && reduction == Reduction::Urgent;
            let text = if small { "small,crashes=1,followers=1,rolls=1,restarts=1" } else { "small,crashes=1" };
            let bounds = Bounds::parse(text, topology).unwrap();
            for named in NAMED {
                let scenario = Scenario::with_reduction(named.design, topology, bounds, reduction);
                every_state(&scenario, |state| {
                    for (actor, storage) in state.actor_states.iter().zip(&state.actor_storages) {
                        if let NodeState::Replica(replica) = &**actor {
                            assert_eq!(Some(&replica.durable), storage.as_ref().map(|s| &s.0));
                            assert!(replica.journal.is_empty());
                        }
                    }
                });
            }
        }
    }
}

#[test]
fn crashes_are_counted_in_total_and_only_replicas_crash() {
    let topology = &TOPOLOGIES[0];
    let bounds = Bounds::parse("small,crashes=2,followers=1", topology).unwrap();
    let scenario = Scenario::with_reduction(NAMED[5].design, topology, bounds, Reduction::None);
    let mut most = 0;
    every_state(&scenario, |state| {
        assert!(state.history.crashes <= 2);
        assert!(!state.crashed[scenario.directory.brokers.len()..].contains(&true));
        most = most.max(state.history.crashes);
    });
    assert_eq!(most, 2);
}

/// Rules of the protocol must not read the ground truth: only the judges, the stories and the witnesses may open a ghost.
#[test]
fn no_rule_opens_a_ghost() {
    let mut readers = BTreeSet::new();
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if std::fs::read_to_string(&path).unwrap().contains(".for_display()") {
                readers.insert(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    assert_eq!(readers, BTreeSet::from(["story.rs".to_owned(), "witness.rs".to_owned()]));
}
