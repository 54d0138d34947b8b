//! What was begun and has not ended. That it never will is the model's to say; the concrete state shows that it has not.

use std::collections::BTreeMap;

use crate::ledger::Ledger;
use crate::trace::format::{MirrorState, ReplicaState};

use super::loss::Answers;

/// A leader in the middle of a stop or an alignment (LIVE-1).
pub(super) fn under_way(states: &BTreeMap<String, ReplicaState>, ledger: &Ledger) -> Option<String> {
    ledger.leaders().find_map(|name| {
        let state = states.get(name)?.mirror_state;
        let under_way = matches!(state, MirrorState::Stopping | MirrorState::LogAlignment);
        under_way.then(|| format!("{name} is left in {}", state.name()))
    })
}

/// A writable leader whose last stable offset has not reached its end although no producer of its own is in a transaction (LIVE-2).
pub(super) fn unstable(states: &BTreeMap<String, ReplicaState>, answers: &Answers, ledger: &Ledger) -> Option<String> {
    ledger.leaders().find_map(|name| {
        let state = states.get(name).filter(|s| s.up && s.mirror_state == MirrorState::Stopped)?;
        let (stable, end) = (state.last_stable_offset, state.log_end_offset);
        let quiet = !answers.in_transaction(name, state, ledger);
        (quiet && stable < end)
            .then(|| format!("{name} is writable, and its last stable offset stays at {stable} below its end {end}"))
    })
}
