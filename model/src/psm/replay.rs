//! How producer state is built again from a log: after a truncation and a clean stop in chunks, after a crash batch by batch.

use super::entry::Entry;
use super::{AbortedTxn, Ongoing, Origin, Pending, Psm};
use crate::barrier::{Barriers, Place};
use crate::batch::{Log, log_end};
use crate::design::{Applier, Fault};
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

/// Takes a snapshot at `offset`, if there is something to take and none lies there yet (Kafka: `ProducerStateManager.takeSnapshot`).
pub fn take(psm: &Psm, snapshots: &mut Snapshots, offset: Offset, fault: Fault) {
    if offset > snapshots.last().map_or(Offset(0), |s| s.offset) {
        let kept = |e: &Entry| match fault {
            Fault::SnapshotForgetsEntries => None,
            Fault::SnapshotForgetsTransactions => Some(Entry { window: e.window.newest_only(), txn_first_offset: None, ..*e }),
            _ => Some(Entry { window: e.window.newest_only(), ..*e }),
        };
        let entries = psm.entries.iter().filter_map(kept).collect();
        snapshots.push(Snapshot { offset, entries });
    }
}

fn load(snapshot: &Snapshot, log: &Log) -> Psm {
    let mut psm = Psm { entries: snapshot.entries.clone(), ..Psm::default() };
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

/// The state of the newest snapshot at or below `end`, with its offset; those above are deleted.
fn load_newest(snapshots: &mut Snapshots, log: &Log, end: Offset) -> (Psm, Offset) {
    snapshots.retain(|s| s.offset <= end);
    snapshots.last().map_or((Psm::default(), Offset(0)), |s| (load(s, log), s.offset))
}

/// The state of the newest snapshot when a log starts. Of the other snapshots only those at the bases of segments are left
/// (Kafka: `ProducerStateManager.removeStraySnapshots`).
pub fn load_at_start(snapshots: &mut Snapshots, log: &Log, segments: &[Offset]) -> Psm {
    let base = segments.last().copied().unwrap_or_default();
    let newest = snapshots.last().map(|s| s.offset).filter(|offset| *offset > base);
    snapshots.retain(|s| segments.contains(&s.offset) || Some(s.offset) == newest);
    load_newest(snapshots, log, log_end(log)).0
}

/// Replays the batches from `from` to `to`, each segment as one call, with a snapshot at the base of each (PSM-10).
fn replay(psm: &mut Psm, snapshots: &mut Snapshots, log: &Log, segments: &[Offset], from: Offset, to: Offset, barriers: &Barriers) {
    let mut starts: Vec<Offset> = segments.iter().copied().filter(|base| *base > from && *base < to).collect();
    starts.insert(0, from);
    for (i, start) in starts.iter().enumerate() {
        if i > 0 {
            take(psm, snapshots, *start, barriers.fault());
        }
        let end = starts.get(i + 1).copied().unwrap_or(to);
        let mut pending = Pending::default();
        for (at, batch) in log.iter().enumerate().take(end.index()).skip(start.index()) {
            let place = Place::Replay(Applier::Reload);
            // What was appended cannot be refused on replay: the checks of replication are a subset of those it passed.
            let _ = barriers.meet(psm, &mut pending, batch, Offset::end_of(at), Origin::Replication, place);
        }
        pending.apply(psm);
    }
}

/// What segment recovery leaves.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The producer state.
    pub psm: Psm,
    /// The snapshots on disk.
    pub snapshots: Snapshots,
    /// The transaction index.
    pub aborted: Vec<AbortedTxn>,
}

/// The state after a crash: the newest snapshot below the active segment, the rest up to it in chunks, the active segment batch by
/// batch, and then through a snapshot at the log end, so that each id keeps at most one batch (PSM-11; Kafka: `LogSegment.recover`,
/// `LogLoader`).
#[must_use]
pub fn recover(log: &Log, segments: &[Offset], snapshots: &Snapshots, aborted: &[AbortedTxn], barriers: &Barriers) -> Recovered {
    let end = log_end(log);
    let base = segments.last().copied().unwrap_or_default();
    let mut snapshots = snapshots.clone();
    let (mut psm, from) = load_newest(&mut snapshots, log, base);
    replay(&mut psm, &mut snapshots, log, segments, from, base, barriers);
    if barriers.fault() == Fault::RecoveryWithoutSnapshot {
        psm = Psm::default();
    }
    take(&psm, &mut snapshots, base, barriers.fault());
    let mut aborted: Vec<AbortedTxn> = aborted.iter().copied().filter(|t| t.last_offset < base).collect();
    for (i, batch) in log.iter().enumerate().skip(base.index()) {
        let mut pending = Pending::default();
        let place = Place::Replay(Applier::SegmentRecovery);
        let _ = barriers.meet(&mut psm, &mut pending, batch, Offset::end_of(i), Origin::Replication, place);
        aborted.extend(pending.apply(&mut psm));
    }
    take(&psm, &mut snapshots, end, barriers.fault());
    let psm = load_at_start(&mut snapshots, log, segments);
    Recovered { psm, snapshots, aborted }
}

/// The state after the log was cut at its present end: the newest snapshot that is left, and the records above it, a call for each segment
/// (PSM-10; Kafka: `ProducerStateManager.truncateAndReload`, `UnifiedLog.rebuildProducerState`).
pub fn truncate(psm: &mut Psm, snapshots: &mut Snapshots, log: &Log, segments: &[Offset], barriers: &Barriers) {
    let end = log_end(log);
    let skipped = psm.entries.is_empty() && psm.unreplicated.is_empty() && !barriers.rebuilds_empty_state();
    if barriers.fault() == Fault::TruncationKeepsState {
        return;
    }
    let (loaded, from) = if barriers.fault() == Fault::TruncationKeepsSnapshots {
        snapshots.last().map_or((Psm::default(), Offset(0)), |s| (load(s, log), s.offset.min(end)))
    } else {
        load_newest(snapshots, log, end)
    };
    *psm = loaded;
    if end > from && !skipped {
        replay(psm, snapshots, log, segments, from, end, barriers);
    }
    take(psm, snapshots, end, barriers.fault());
}

/// The state that a log means: every batch in a call of its own, by these rules (CONV-1).
#[must_use]
pub fn meaning(log: &Log, barriers: &Barriers) -> Psm {
    let mut psm = Psm::default();
    for (i, batch) in log.iter().enumerate() {
        let mut pending = Pending::default();
        let place = Place::Replay(Applier::SegmentRecovery);
        let _ = barriers.meet(&mut psm, &mut pending, batch, Offset::end_of(i), Origin::Replication, place);
        pending.apply(&mut psm);
    }
    psm
}
