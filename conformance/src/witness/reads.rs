//! What a read-committed consumer gets of a log, and whether a log holds a batch twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::Ledger;
use crate::trace::format::{Control, LogEntry, ReplicaState};

use super::identity::{labelled, same};

/// The offsets of the data batches below the last stable offset that a consumer drops: from the first offset of an aborted transaction
/// to the next ABORT marker of the id (Kafka: `CompletedFetch.nextFetchedRecord`). None if the transaction index is not told.
fn dropped(state: &ReplicaState) -> Option<BTreeSet<i64>> {
    let mut left: Vec<_> = state.aborted_transactions.as_ref()?.iter().collect();
    left.sort_by_key(|t| t.first_offset);
    let mut left = left.into_iter().peekable();
    let (mut aborted, mut dropped) = (BTreeSet::new(), BTreeSet::new());
    for entry in stable(state) {
        while let Some(begun) = left.next_if(|t| t.first_offset <= entry.offset) {
            aborted.insert(begun.producer_id);
        }
        let id = entry.batch.producer_id;
        if matches!(entry.batch.control, Some(Control::Abort { .. })) {
            aborted.remove(&id);
        } else if entry.batch.transactional && entry.batch.control.is_none() && aborted.contains(&id) {
            dropped.insert(entry.offset);
        }
    }
    Some(dropped)
}

fn stable(state: &ReplicaState) -> impl Iterator<Item = &LogEntry> {
    state.log.iter().filter(|e| e.offset < state.last_stable_offset)
}

/// A leader whose consumers get a transaction that its producer did not commit, or do not get one that it did (SILENT-7).
pub(super) fn wrong(states: &BTreeMap<String, ReplicaState>, ledger: &Ledger) -> Option<String> {
    ledger.leaders().find_map(|name| {
        let state = states.get(name)?;
        let dropped = dropped(state)?;
        let mut data = stable(state).filter(|e| e.batch.transactional && e.batch.control.is_none());
        data.find_map(|entry| {
            let by = entry.by.as_ref()?;
            // Its own marker has a higher epoch (transaction version 2), unless a stop has written it.
            let end = labelled(name, state, ledger).find(|(e, label)| {
                let own = label.by_stop || e.batch.producer_epoch > entry.batch.producer_epoch;
                e.offset > entry.offset && is_marker(e) && e.by.as_ref() == Some(by) && own
            });
            let committed = end.is_some_and(|(e, _)| matches!(e.batch.control, Some(Control::Commit { .. })));
            let at = entry.offset;
            match (committed, dropped.contains(&at)) {
                (true, true) => Some(format!("consumers of {name} do not get the committed batch of {by} at offset {at}")),
                (false, false) => {
                    Some(format!("consumers of {name} get the batch of {by} at offset {at}, which {by} did not commit"))
                }
                _ => None,
            }
        })
    })
}

fn is_marker(entry: &LogEntry) -> bool {
    matches!(entry.batch.control, Some(Control::Commit { .. } | Control::Abort { .. }))
}

/// A COMMIT in a leader's log whose transaction is not in front of it, or was ended before (SILENT-8).
pub(super) fn hollow_commit(name: &str, state: &ReplicaState) -> Option<String> {
    state.log.iter().enumerate().find_map(|(i, commit)| {
        let by = commit.by.as_ref().filter(|_| matches!(commit.batch.control, Some(Control::Commit { .. })))?;
        // A coordinator may write its marker again.
        let again = |e: &LogEntry| e.batch == commit.batch;
        let mut before = state.log.iter().take(i).rev().filter(|e| e.by.as_ref() == Some(by) && !again(e));
        let own = before
            .next()
            .is_some_and(|e| e.batch.transactional && !is_marker(e) && e.batch.producer_epoch < commit.batch.producer_epoch);
        let at = commit.offset;
        (!own).then(|| format!("{name} holds {by}'s COMMIT at offset {at}, but not its transaction right before it"))
    })
}

/// A batch of an idempotent or transactional producer that lies twice in a log (SILENT-6).
pub(super) fn twice(name: &str, state: &ReplicaState, ledger: &Ledger) -> Option<String> {
    let data: Vec<_> =
        labelled(name, state, ledger).filter(|(e, _)| e.batch.control.is_none() && e.batch.producer_id != -1).collect();
    data.iter().enumerate().find_map(|(i, again)| {
        let first = data.iter().take(i).find(|earlier| same(**earlier, *again))?;
        let by = again.0.by.as_deref().unwrap_or("nobody");
        Some(format!("{name} holds one batch of {by} twice, at offsets {} and {}", first.0.offset, again.0.offset))
    })
}
