//! What the designs of a mirror differ in, apart from the barrier's rules.

use crate::log::FetchIsolation;
use crate::types::ProducerId;

/// What the leader of a mirror does to producer ids before it appends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PidMapping {
    /// Nothing: bytes are stored as they came.
    #[default]
    None,
    /// Every id p becomes -(p + 2); so -1 stays, and a second hop restores the first id.
    NegateEveryHop,
    /// Ids of 0 and above become -(p + 2); negative ids stay.
    NegateNonNegative,
}

impl PidMapping {
    /// The id under which a batch is stored. Wraps at the ends of the range, as Java's `long` does.
    #[must_use]
    pub fn map(self, id: ProducerId) -> ProducerId {
        let negated = ProducerId(id.get().wrapping_add(2).wrapping_neg());
        match self {
            Self::NegateEveryHop => negated,
            Self::NegateNonNegative if id >= ProducerId(0) => negated,
            Self::None | Self::NegateNonNegative => id,
        }
    }
}

/// Up to where a mirror may fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchBound {
    /// The source's last stable offset.
    #[default]
    Lso,
    /// The source's high watermark.
    Hw,
}

impl FetchBound {
    /// The isolation of the reads that this bound means.
    #[must_use]
    pub fn isolation(self) -> FetchIsolation {
        match self {
            Self::Lso => FetchIsolation::TxnCommitted,
            Self::Hw => FetchIsolation::HighWatermark,
        }
    }
}

/// A step of the stop sequence. Each is durable on its own, and a crash may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopStep {
    /// Stop fetching.
    RemoveFetcher,
    /// Truncate the log to its last stable offset.
    TruncateToLso,
    /// Store the log end offset as last mirrored offset.
    RecordLastMirroredOffset,
    /// Store the latest leader epoch in the log as last mirrored epoch.
    RecordLastMirroredEpoch,
    /// Append an ABORT marker for each open transaction.
    AbortOpenTransactions,
    /// Append a barrier.
    WriteBarrier,
    /// Become writable.
    BecomeWritable,
}

/// How a log is aligned before it starts to mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alignment {
    /// Not at all.
    None,
    /// By truncation to its own last stable offset.
    OwnLso,
    /// By truncation to the last mirrored offset that the source recorded, or to 0.
    #[default]
    LastMirroredOffset,
    /// By truncation to where the last mirrored epoch that the source recorded ends in this log, or to 0.
    LastMirroredEpoch,
}

/// The choices of one design. The default is the newer text of KIP-1279.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorDesign {
    /// What happens to producer ids.
    pub pid_mapping: PidMapping,
    /// Up to where the source is read.
    pub fetch_bound: FetchBound,
    /// The steps of the stop sequence in order.
    pub stop_order: Vec<StopStep>,
    /// How the log is aligned before it mirrors.
    pub alignment: Alignment,
}

impl Default for MirrorDesign {
    fn default() -> Self {
        Self {
            pid_mapping: PidMapping::None,
            fetch_bound: FetchBound::Lso,
            stop_order: vec![
                StopStep::RemoveFetcher,
                StopStep::TruncateToLso,
                StopStep::RecordLastMirroredOffset,
                StopStep::WriteBarrier,
                StopStep::BecomeWritable,
            ],
            alignment: Alignment::LastMirroredOffset,
        }
    }
}
