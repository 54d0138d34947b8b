//! How producer state is built again from a log: after a truncation in bulk, after a crash batch by batch.

use super::entry::Entry;
use super::{Ongoing, Origin, Pending, Psm};
use crate::barrier::{Barriers, Place};
use crate::batch::Log;
use crate::design::Applier;
use crate::ids::Offset;
use crate::truth::Ghost;

/// A producer snapshot: the entries, each with at most its newest batch (PSM-9; Kafka: `NNN.snapshot`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The end of the log when it was taken.
    pub offset: Offset,
    entries: Vec<Entry>,
}

/// The snapshots on disk in order of offset.
pub type Snapshots = Vec<Snapshot>;

fn take(psm: &Psm, offset: Offset) -> Snapshot {
    let entries = psm.entries.iter().map(|e| Entry { window: e.window.newest_only(), ..*e }).collect();
    Snapshot { offset, entries }
}

fn load(snapshot: &Snapshot, log: &Log) -> Psm {
    let mut psm = Psm { entries: snapshot.entries.clone(), ongoing: Vec::new() };
    let below = log.get(..snapshot.offset.index()).unwrap_or_default();
    for entry in &mut psm.entries {
        let cached = entry.window.as_slice().iter().map(|c| c.offset);
        let oldest_shown = cached.chain(entry.txn_first_offset).min();
        if let Some(contributors) = Ghost::shown(below, entry.id, oldest_shown) {
            entry.contributors = contributors;
        }
    }
    for entry in &snapshot.entries {
        if let Some(first_offset) = entry.txn_first_offset {
            psm.start(Ongoing { first_offset, id: entry.id });
        }
    }
    psm
}

/// The state after segment recovery of the whole log: batch by batch, then through a snapshot at the log end, so that each id keeps at
/// most one batch (PSM-11; Kafka: `LogSegment.recover`, `LogLoader`).
#[must_use]
pub fn recover(log: &Log, barriers: &Barriers) -> (Psm, Snapshots) {
    let mut psm = Psm::default();
    for (i, batch) in log.iter().enumerate() {
        let mut pending = Pending::default();
        let place = Place::Replay(Applier::SegmentRecovery);
        // What was appended cannot be refused on replay: the checks of replication are a subset of those it passed.
        let _ = barriers.meet(&mut psm, &mut pending, batch, Offset::end_of(i), Origin::Replication, place);
        pending.apply(&mut psm);
    }
    if log.is_empty() {
        return (psm, Vec::new());
    }
    let snapshot = take(&psm, Offset::end_of(log.len()));
    (load(&snapshot, log), vec![snapshot])
}

/// The state after the log was cut at `end`: the newest snapshot that is left, and the records above it in one call (PSM-10; Kafka:
/// `ProducerStateManager.truncateAndReload`, `UnifiedLog.rebuildProducerState`). `log` is already cut.
pub fn truncate(psm: &mut Psm, snapshots: &mut Snapshots, log: &Log, end: Offset, barriers: &Barriers) {
    let was_empty = psm.entries.is_empty();
    snapshots.retain(|s| s.offset <= end && s.offset > Offset(0));
    let (loaded, from) = snapshots.last().map_or((Psm::default(), Offset(0)), |s| (load(s, log), s.offset));
    *psm = loaded;
    if end > from && !was_empty {
        let mut pending = Pending::default();
        for (i, batch) in log.iter().enumerate().skip(from.index()) {
            let place = Place::Replay(Applier::Reload);
            let _ = barriers.meet(psm, &mut pending, batch, Offset::end_of(i), Origin::Replication, place);
        }
        pending.apply(psm);
    }
    if end > from {
        snapshots.push(take(psm, end));
    }
}
