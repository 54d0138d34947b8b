//! The search of this crate and stateright's own checker agree: on the number of states, on what is found, and on shortest lengths.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::collections::BTreeMap;

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::NAMED;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Caps, search};
use cleanslate_model::topology::TOPOLOGIES;
use stateright::{Checker as _, Model as _};

#[test]
fn agree_on_every_design_and_topology() {
    for topology in TOPOLOGIES {
        let bounds = Bounds::parse("small,batches=2", topology).unwrap();
        for named in NAMED {
            let ours = search(&Scenario::new(named.design, topology, bounds), Caps::default(), |_| None);
            let mut scenario = Scenario::new(named.design, topology, bounds);
            scenario.keep_going = true;
            let theirs = scenario.checker().spawn_bfs().join();
            let what = format!("{} in {}", named.name, topology.name);
            assert_eq!(ours.states, theirs.unique_state_count() as u64, "{what}: states");
            let found: BTreeMap<_, _> = theirs.discoveries().into_iter().map(|(k, p)| (k, p.into_actions().len())).collect();
            assert_eq!(found.len(), ours.discoveries.len(), "{what}: discoveries");
            for discovery in &ours.discoveries {
                let length = found[discovery.property];
                // stateright overwrites a discovery as it meets further states, so its path may be longer, never shorter.
                assert!(discovery.actions.len() <= length, "{what}: {} in {length}", discovery.property);
            }
        }
    }
}
