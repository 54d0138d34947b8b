//! Where two logs part, and what the one that follows does about it (Kafka: `Partition.readRecords`,
//! `AbstractFetcherThread.getOffsetTruncationState`, `fetchOffsetAndTruncate`). Mirrors use the same rules (ALI-12).

use crate::log::LeaderEpochCache;
use crate::types::{LeaderEpoch, Offset};

/// A leader epoch and where it ends: what a log knows of the largest epoch at or below the one that it is asked for. A source
/// answers with it to a fetch that goes on where its own log does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochEndOffset {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The offset behind its last batch.
    pub end_offset: Offset,
}

/// What a source says to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchPoint {
    /// Up to here both logs are the same.
    Common,
    /// They part before.
    Diverging(EpochEndOffset),
    /// The source knows nothing of the epoch (Kafka: `OffsetOutOfRangeException`).
    Unknown,
}

/// The source's side: whether a log that ends at `fetch_offset` with a batch of this epoch is a prefix of the source's.
#[must_use]
pub fn fetch_point(
    source: &LeaderEpochCache,
    source_end: Offset,
    last_fetched_epoch: LeaderEpoch,
    fetch_offset: Offset,
) -> FetchPoint {
    match source.end_offset_for(last_fetched_epoch, source_end) {
        None => FetchPoint::Unknown,
        Some((epoch, end_offset)) if epoch < last_fetched_epoch || end_offset < fetch_offset => {
            FetchPoint::Diverging(EpochEndOffset { epoch, end_offset })
        }
        Some(_) => FetchPoint::Common,
    }
}

/// Where a log is cut, and whether it is a prefix of the source's then (Kafka: `OffsetTruncationState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TruncationPoint {
    /// The offset to which to truncate.
    pub offset: Offset,
    /// Whether that is enough. If not, the source is asked about the epoch that is the last one then: by the next fetch, or by
    /// another request for the end of an epoch.
    pub completed: bool,
}

/// The fetching side: where to truncate after an answer that tells where logs part.
#[must_use]
pub fn truncation_point(own: &LeaderEpochCache, own_end: Offset, answer: &EpochEndOffset) -> TruncationPoint {
    match own.end_offset_for(answer.epoch, own_end) {
        // The common part ends where the own log leaves the epoch below; the source is asked about that one next.
        Some((epoch, end)) if epoch != answer.epoch => TruncationPoint { offset: end.min(own_end), completed: false },
        Some((_, end)) => TruncationPoint { offset: end.min(answer.end_offset).min(own_end), completed: true },
        None => TruncationPoint { offset: answer.end_offset.min(own_end), completed: true },
    }
}

/// What a follower or a mirror does whose fetch offset the source does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutOfRange {
    /// The source's log is shorter: truncate to its end (MIR-4).
    TruncateTo(Offset),
    /// The source's log begins later: empty the log and start there. Producer state goes with it, without a barrier.
    StartOverAt(Offset),
    /// It is within the source's log by now: fetch again.
    Retry,
}

/// Kafka: `fetchOffsetAndTruncate`.
#[must_use]
pub fn out_of_range(source_start: Offset, source_end: Offset, own_end: Offset) -> OutOfRange {
    if source_end < own_end {
        OutOfRange::TruncateTo(source_end)
    } else if source_start > own_end {
        OutOfRange::StartOverAt(source_start)
    } else {
        OutOfRange::Retry
    }
}
