//! Appends that were accepted, taken for duplicates or refused, and should not have been.

use std::collections::BTreeMap;

use crate::ledger::Ledger;
use crate::target::Observed;
use crate::trace::format::{Batch, LogEntry, Op, ProducerEntry};

use super::Frame;
use super::contributors::is_barrier;

/// The errors by which producer state refuses an append. Others, e.g. of a read-only partition, say nothing about producer ids.
const PRODUCER_STATE_ERRORS: [&str; 4] = [
    "InvalidProducerEpochException",
    "InvalidTxnStateException",
    "OutOfOrderSequenceException",
    "TransactionCoordinatorFencedException",
];

/// What an entry says at some point within one append of several batches.
#[derive(Clone, Copy)]
struct Seen {
    epoch: i16,
    last_sequence: Option<i32>,
    txn_first_offset: Option<i64>,
}

impl Seen {
    fn of(entry: &ProducerEntry) -> Self {
        Self {
            epoch: entry.producer_epoch,
            last_sequence: entry.batches.last().map(|b| b.last_sequence),
            txn_first_offset: entry.txn_first_offset,
        }
    }
}

/// Walks over the batches that a frame wrote; `judge` sees each with what the entry of its id said just before.
fn walk(frame: &Frame, mut judge: impl FnMut(&LogEntry, Seen) -> Option<String>) -> Option<String> {
    let mut entries: BTreeMap<i64, Seen> = frame.before.producers.iter().map(|e| (e.producer_id, Seen::of(e))).collect();
    for written in frame.written() {
        let batch = &written.batch;
        if is_barrier(written) {
            // Whether a barrier clears is the design's choice; what it leaves is what the state after the append still shows.
            entries.retain(|id, _| frame.after.producers.iter().any(|e| e.producer_id == *id && shows_before(e, written.offset)));
            continue;
        }
        if batch.producer_id == -1 {
            continue;
        }
        let seen = entries.get(&batch.producer_id).copied();
        if let Some(found) = seen.and_then(|seen| judge(written, seen)) {
            return Some(found);
        }
        // Ids that the target's PSM does not see (below 0, in the design that leaves the PSM as it is) never get an entry.
        if seen.is_some() || frame.after.producers.iter().any(|e| e.producer_id == batch.producer_id) {
            entries.insert(batch.producer_id, next(seen, written));
        }
    }
    None
}

fn shows_before(entry: &ProducerEntry, offset: i64) -> bool {
    entry.batches.iter().map(|b| b.base_offset).chain(entry.txn_first_offset).any(|o| o < offset)
}

fn next(seen: Option<Seen>, written: &LogEntry) -> Seen {
    let batch = &written.batch;
    let open = seen.and_then(|s| s.txn_first_offset);
    if batch.control.is_some() {
        let kept = seen.filter(|s| s.epoch == batch.producer_epoch).and_then(|s| s.last_sequence);
        return Seen { epoch: batch.producer_epoch, last_sequence: kept, txn_first_offset: None };
    }
    let txn_first_offset = open.or(batch.transactional.then_some(written.offset));
    Seen { epoch: batch.producer_epoch, last_sequence: last_sequence(batch), txn_first_offset }
}

fn last_sequence(batch: &Batch) -> Option<i32> {
    let records = i64::from(batch.records.max(1));
    (batch.base_sequence >= 0).then(|| wrap(i64::from(batch.base_sequence) + records - 1))
}

/// Sequences go from 2^31-1 to 0.
fn wrap(sequence: i64) -> i32 {
    i32::try_from(sequence % (1 << 31)).unwrap_or_default()
}

fn name_of(by: Option<&String>) -> &str {
    by.map_or("nobody", String::as_str)
}

/// Replication took a data batch whose sequence does not follow.
pub(super) fn sequence_break(frame: &Frame) -> Option<String> {
    let Op::Mirror { replica, .. } = &frame.op else { return None };
    walk(frame, |written, seen| {
        let batch = &written.batch;
        let last = seen
            .last_sequence
            .filter(|_| batch.control.is_none() && batch.producer_epoch == seen.epoch && batch.base_sequence >= 0)?;
        let expected = wrap(i64::from(last) + 1);
        (batch.base_sequence != expected).then(|| {
            format!(
                "{replica} accepted sequence {} of {} under id {} at offset {} where {expected} would follow",
                batch.base_sequence,
                name_of(written.by.as_ref()),
                batch.producer_id,
                written.offset
            )
        })
    })
}

/// Replication took a batch or marker whose epoch is below the entry's.
pub(super) fn lower_epoch(frame: &Frame) -> Option<String> {
    let Op::Mirror { replica, .. } = &frame.op else { return None };
    walk(frame, |written, seen| {
        (written.batch.producer_epoch < seen.epoch).then(|| {
            format!(
                "{replica} accepted epoch {} of {} under id {} at offset {} although the entry was in epoch {}",
                written.batch.producer_epoch,
                name_of(written.by.as_ref()),
                written.batch.producer_id,
                written.offset,
                seen.epoch
            )
        })
    })
}

/// A marker ended a transaction that another real producer began.
pub(super) fn foreign_marker(frame: &Frame) -> Option<String> {
    let replica = frame.op.replica();
    walk(frame, |written, seen| {
        let (Some(_), Some(first), Some(by)) = (&written.batch.control, seen.txn_first_offset, &written.by) else { return None };
        let owner = frame.after.log.iter().find(|e| e.offset == first)?.by.as_ref()?;
        (owner != by).then(|| {
            format!(
                "on {replica} the marker of {by} at offset {} ended the transaction that {owner} began at offset {first}",
                written.offset
            )
        })
    })
}

/// An append was taken for a resend of a batch that is not the same.
pub(super) fn false_duplicate(frame: &Frame) -> Option<String> {
    let Op::Append { replica, by, batch, .. } = &frame.op else { return None };
    let Observed::Duplicate { base_offset, .. } = frame.outcome else { return None };
    let sender = name_of(by.as_ref());
    let Some(found) = frame.before.log.iter().find(|e| e.offset == base_offset) else {
        return Some(format!(
            "{replica} took a batch of {sender} for a duplicate of offset {base_offset}, where it has none; it was dropped"
        ));
    };
    if found.by != *by {
        let author = name_of(found.by.as_ref());
        return Some(format!(
            "{replica} took a batch of {sender} for a duplicate of the batch of {author} at offset {base_offset}; it was dropped"
        ));
    }
    let same = (found.batch.producer_epoch, found.batch.base_sequence, found.batch.records)
        == (batch.producer_epoch, batch.base_sequence, batch.records);
    (!same).then(|| {
        format!("{replica} took a batch of {sender} for a duplicate of its other batch at offset {base_offset}; it was dropped")
    })
}

/// What the real producers know to be acknowledged: the epoch and last sequence of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Acknowledged(BTreeMap<String, (i16, Option<i32>)>);

impl Acknowledged {
    pub(super) fn update(&mut self, frame: &Frame) {
        let Op::Append { by: Some(by), batch, .. } = &frame.op else { return };
        if !matches!(frame.outcome, Observed::Appended { .. } | Observed::Duplicate { .. }) {
            return;
        }
        let sequence = if batch.control.is_none() {
            last_sequence(batch)
        } else {
            self.0.get(by).filter(|(e, _)| *e == batch.producer_epoch).and_then(|(_, s)| *s)
        };
        self.0.insert(by.clone(), (batch.producer_epoch, sequence));
    }

    /// Whether a producer that heeds its own acknowledgements may send this batch: it goes on where it was, resends, or begins a
    /// new epoch at 0.
    fn allows(&self, by: &str, batch: &Batch) -> bool {
        let Some((epoch, last)) = self.0.get(by).copied() else { return true };
        match (batch.producer_epoch.cmp(&epoch), last) {
            (std::cmp::Ordering::Less, _) => false,
            (_, _) if batch.control.is_some() => true,
            (std::cmp::Ordering::Greater, _) | (_, None) => batch.base_sequence == 0,
            (std::cmp::Ordering::Equal, Some(last)) => {
                batch.base_sequence == wrap(i64::from(last) + 1) || last_sequence(batch) == Some(last)
            }
        }
    }
}

/// An append that its sender had every right to send was refused for the sake of producer state.
pub(super) fn false_rejection(frame: &Frame, acknowledged: &Acknowledged, ledger: &Ledger) -> Option<String> {
    let Observed::Error(class) = &frame.outcome else { return None };
    if !PRODUCER_STATE_ERRORS.contains(&class.as_str()) {
        return None;
    }
    let (replica, by, batch) = match &frame.op {
        // What a source accepted, its mirror must be able to store.
        Op::Mirror { replica, from, offset, .. } => {
            return Some(format!("{replica} refused what {from} holds at offset {offset} with {class}"));
        }
        Op::Append { replica, by, batch, .. } => (replica, by.as_deref().unwrap_or("a stopping mirror"), batch),
        _ => return None,
    };
    if !acknowledged.allows(by, batch) {
        return None;
    }
    let entry = frame.before.producers.iter().find(|e| e.producer_id == batch.producer_id);
    let newest = entry.and_then(|e| e.batches.last()).and_then(|b| ledger.labels(replica)?.get(&b.base_offset)?.by.clone());
    let because = match (entry, newest) {
        (None, _) => "there is no entry for its id".to_owned(),
        (Some(e), Some(author)) => format!("the entry for id {} was last written by {author}", e.producer_id),
        (Some(e), None) => format!(
            "the entry for id {} is in epoch {}, coordinator epoch {}",
            e.producer_id, e.producer_epoch, e.coordinator_epoch
        ),
    };
    Some(format!("{replica} refused an honest append of {by} with {class}: {because}"))
}
