//! Where two logs part (Kafka: `Partition.readRecords`, `AbstractFetcherThread.getOffsetTruncationState`,
//! `fetchOffsetAndTruncate`), and to where a log is truncated before it mirrors (ALI-1, ALI-11).
//!
//! The last mirrored epoch alone does not align two logs: of the epoch in which the mirror stopped, the mirrored cluster may
//! hold batches that the mirror never saw. A fetch that carries the epoch of the last batch finds those (ALI-12).

use super::design::Alignment;
use super::metadata::MirrorMetadata;
use crate::log::LeaderEpochCache;
use crate::types::{LeaderEpoch, Offset};

/// A source's answer to a fetch that goes on where the source's log does not: the largest epoch at or below the one asked
/// for, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DivergingEpoch {
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
    Diverging(DivergingEpoch),
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
            FetchPoint::Diverging(DivergingEpoch { epoch, end_offset })
        }
        Some(_) => FetchPoint::Common,
    }
}

/// The fetching side: the offset to which to truncate. The next fetch tells whether that was enough.
#[must_use]
pub fn truncation_offset(own: &LeaderEpochCache, own_end: Offset, diverging: &DivergingEpoch) -> Offset {
    match own.end_offset_for(diverging.epoch, own_end) {
        // The common part ends where the own log leaves the epoch below; the source is asked about that one next.
        Some((epoch, end)) if epoch != diverging.epoch => end.min(own_end),
        Some((_, end)) => end.min(diverging.end_offset).min(own_end),
        None => diverging.end_offset.min(own_end),
    }
}

/// What a mirror does whose fetch offset the source does not have.
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

/// Where a log is cut before it mirrors a source that has recorded this; `None` for nowhere.
#[must_use]
pub fn alignment_offset(
    alignment: Alignment,
    recorded: &MirrorMetadata,
    own: &LeaderEpochCache,
    own_end: Offset,
    own_lso: Offset,
) -> Option<Offset> {
    let by_epoch = || {
        let found = recorded.last_mirrored_epoch.and_then(|epoch| own.end_offset_for(epoch, own_end));
        found.map_or(Offset(0), |(_, end)| end)
    };
    let by_offset = || recorded.last_mirrored_offset.unwrap_or_default();
    match alignment {
        Alignment::None => None,
        Alignment::OwnLso => Some(own_lso),
        Alignment::LastMirroredOffset => Some(by_offset()),
        Alignment::LastMirroredEpoch => Some(by_epoch()),
        Alignment::LastMirroredEpochAndOffset => Some(by_epoch().min(by_offset())),
    }
}
