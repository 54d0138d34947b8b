//! Leader epochs: where each begins in a log, and how a leader tells a reader where their logs part.
//!
//! The cache is derived from the batches of a log (EPOCH-1). Kafka keeps it beside the log and assigns an entry for every batch whose
//! epoch differs from the last entry's; an entry with a lower epoch than those before it drops them (EPOCH-2).

use crate::batch::{Log, log_end};
use crate::ids::{LeaderEpoch, Offset};

/// An epoch and the offset at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochEnd {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The offset behind its last batch.
    pub end: Offset,
}

/// The cache's entries: epochs in order with their first offsets (Kafka: `LeaderEpochFileCache.assign`).
fn entries(log: &Log, own: Option<LeaderEpoch>) -> Vec<EpochStart> {
    let mut entries: Vec<EpochStart> = Vec::new();
    let batches = log.iter().enumerate().map(|(i, b)| EpochStart { epoch: b.leader_epoch, start: Offset::end_of(i) });
    // A leader of writable data enters its epoch before it has written anything.
    let own = own.map(|epoch| EpochStart { epoch, start: log_end(log) });
    for entry in batches.chain(own) {
        if entries.last().is_some_and(|last| last.epoch == entry.epoch) {
            continue;
        }
        while entries.last().is_some_and(|last| last.epoch >= entry.epoch || last.start >= entry.start) {
            entries.pop();
        }
        entries.push(entry);
    }
    entries
}

#[derive(Clone, Copy)]
struct EpochStart {
    epoch: LeaderEpoch,
    start: Offset,
}

/// The newest epoch of a log; none if it is empty.
#[must_use]
pub fn latest_epoch(log: &Log) -> Option<LeaderEpoch> {
    // Whatever was dropped, the last batch's epoch is the last entry.
    log.last().map(|b| b.leader_epoch)
}

/// The largest epoch that is not above `asked`, and where it ends; none if the log knows no epoch as high as `asked` (EPOCH-3; Kafka:
/// `LeaderEpochFileCache.endOffsetFor`). `own` is the epoch of a leader that has entered it.
#[must_use]
pub fn end_offset_for(log: &Log, own: Option<LeaderEpoch>, asked: LeaderEpoch) -> Option<EpochEnd> {
    let entries = entries(log, own);
    if entries.last().is_some_and(|last| last.epoch == asked) {
        return Some(EpochEnd { epoch: asked, end: log_end(log) });
    }
    let higher = entries.iter().find(|e| e.epoch > asked)?;
    let floor = entries.iter().rev().find(|e| e.epoch <= asked);
    Some(EpochEnd { epoch: floor.map_or(asked, |e| e.epoch), end: higher.start })
}

/// Where a reader that was told of `leader` cuts its log (EPOCH-4; Kafka: `AbstractFetcherThread.getOffsetTruncationState`).
#[must_use]
pub fn truncation_offset(log: &Log, leader: EpochEnd) -> Offset {
    let end = log_end(log);
    match end_offset_for(log, None, leader.epoch) {
        Some(own) if own.epoch == leader.epoch => own.end.min(leader.end).min(end),
        Some(own) => own.end.min(end),
        None => leader.end.min(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Kind};
    use crate::ids::{Cluster, ProducerEpoch, ProducerId, Sequence};
    use crate::truth::{Author, Ghost, Writer};

    fn log(epochs: &[u8]) -> Log {
        let author = Ghost::new(Author { writer: Some(Writer(0)), cluster: Cluster::A, serial: 0 });
        let batch = |epoch: &u8| Batch {
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch(-1),
            sequence: Sequence(-1),
            kind: Kind::Data { transactional: false },
            leader_epoch: LeaderEpoch(*epoch),
            author,
        };
        epochs.iter().map(batch).collect()
    }

    fn end(epochs: &[u8], asked: u8) -> Option<(u8, u8)> {
        end_offset_for(&log(epochs), None, LeaderEpoch(asked)).map(|e| (e.epoch.0, e.end.0))
    }

    #[test]
    fn ends_of_epochs_as_kafka_tells_them() {
        let epochs = [0, 2, 4, 4];
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|e| end(&epochs, e)),
            [Some((0, 1)), Some((0, 1)), Some((2, 2)), Some((2, 2)), Some((4, 4)), None]
        );
        assert_eq!(end(&[3, 3], 1), Some((1, 0)), "below the first epoch");
        assert_eq!(end(&[], 0), None);
    }

    #[test]
    fn a_lower_epoch_drops_the_higher_ones() {
        assert_eq!(end(&[3, 1], 3), None);
        assert_eq!(end(&[3, 1], 1), Some((1, 2)));
    }

    #[test]
    fn an_epoch_without_a_batch_counts_for_its_leader() {
        let own = |asked| end_offset_for(&log(&[1, 1]), Some(LeaderEpoch(4)), LeaderEpoch(asked)).map(|e| (e.epoch.0, e.end.0));
        assert_eq!([own(1), own(3), own(4)], [Some((1, 2)), Some((1, 2)), Some((4, 2))]);
    }

    #[test]
    fn the_reader_cuts_at_the_smaller_end_or_searches_on() {
        let at =
            |epochs: &[u8], epoch, end| truncation_offset(&log(epochs), EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) }).0;
        assert_eq!(at(&[1, 1, 1, 2], 1, 2), 2, "the leader's end");
        assert_eq!(at(&[1, 2, 2], 1, 9), 1, "the reader's end");
        assert_eq!(at(&[1, 3, 3], 2, 2), 1, "an epoch that the reader lacks: the end of the one below");
    }
}
