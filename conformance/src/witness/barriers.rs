//! Where barriers must lie and where they must not.

use crate::ledger::{Came, Ledger};
use crate::trace::format::ReplicaState;

use super::contributors::is_barrier;
use super::identity::{Known, labelled};

/// A local batch whose stint began without a barrier of its own between what the log already held and the stint's first batch.
pub(super) fn missing(name: &str, state: &ReplicaState, ledger: &Ledger) -> Option<String> {
    let mut previous: Option<Known<'_>> = None;
    for (entry, label) in labelled(name, state, ledger) {
        // The log that was writable from the start has inherited nothing, and what a stop sequence writes before the
        // partition is writable is not local data.
        let local = label.came == Came::Local && label.phase > 0 && label.phase.is_multiple_of(2) && !is_barrier(entry);
        if let (true, Some((last, of))) = (local, previous) {
            let own_barrier = is_barrier(last) && of.came == Came::Local && Ledger::stint(of.phase) == Ledger::stint(label.phase);
            let inherited = of.came == Came::Mirrored || of.phase < label.phase;
            if inherited && !own_barrier {
                let by = entry.by.as_deref().unwrap_or("nobody");
                return Some(format!(
                    "{name} holds the local batch of {by} at offset {} right after the inherited one at offset {}, with no barrier between",
                    entry.offset, last.offset
                ));
            }
        }
        previous = Some((entry, label));
    }
    None
}

/// A local barrier that follows local data of its own stint.
pub(super) fn late(name: &str, state: &ReplicaState, ledger: &Ledger) -> Option<String> {
    let mut local: Option<(u32, i64)> = None;
    for (entry, label) in labelled(name, state, ledger) {
        if label.came == Came::Mirrored {
            continue;
        }
        let stint = Ledger::stint(label.phase);
        if !is_barrier(entry) {
            if label.phase.is_multiple_of(2) {
                local = Some((stint, entry.offset));
            }
        } else if let Some((_, data)) = local.filter(|(s, _)| *s == stint) {
            return Some(format!(
                "{name} holds a barrier at offset {} after the local batch at offset {data} of the same stint",
                entry.offset
            ));
        }
    }
    None
}
