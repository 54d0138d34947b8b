//! Newtypes of the log: offsets, epochs, ids, sequences.
//!
//! Every number that Kafka gives a name has a type of its own, so that an epoch is never passed where an offset is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The plain number.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

newtype! {
    /// A position in a partition log, in records from the log's beginning; the first record has offset 0.
    Offset(i64)
}
newtype! {
    /// The id that a cluster's coordinator hands to an idempotent or transactional producer.
    /// -1 means none; valid ids are 0 and above; the `negate` designs store mapped ids of -2 and below.
    ProducerId(i64)
}
newtype! {
    /// The fencing counter of one producer id; -1 means none.
    ProducerEpoch(i16)
}
newtype! {
    /// The number of a record within one producer id, epoch and partition; wraps from 2^31-1 to 0; -1 means none.
    Sequence(i32)
}
newtype! {
    /// The leadership counter stamped into a batch by the leader that appended it; -1 means unknown.
    LeaderEpoch(i32)
}
newtype! {
    /// The version of a partition's state in the controller's metadata: it grows with each change of leader, replicas or in-sync
    /// replicas; -1 means unknown.
    PartitionEpoch(i32)
}
newtype! {
    /// The leadership counter of the transaction coordinator that wrote an end-transaction marker; -1 means none.
    CoordinatorEpoch(i32)
}
newtype! {
    /// The number of a partition of its topic, from 0.
    PartitionId(i32)
}
newtype! {
    /// The number of a broker or controller in its cluster.
    NodeId(i32)
}
newtype! {
    /// The registration of a broker that KIP-966 tells apart; -1 means none.
    BrokerEpoch(i64)
}
newtype! {
    /// Milliseconds since 1970-01-01 UTC; -1 means none.
    TimestampMs(i64)
}

impl ProducerId {
    /// The batch has no producer id (Kafka: `RecordBatch.NO_PRODUCER_ID`).
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    /// No epoch (Kafka: `RecordBatch.NO_PRODUCER_EPOCH`).
    pub const NONE: Self = Self(-1);
}

impl Sequence {
    /// No sequence (Kafka: `RecordBatch.NO_SEQUENCE`).
    pub const NONE: Self = Self(-1);
    /// The last sequence before the wrap to 0.
    pub const MAX: Self = Self(i32::MAX);

    /// The sequence `n` records later, wrapping from [`Sequence::MAX`] to 0 (Kafka: `DefaultRecordBatch.incrementSequence`).
    #[must_use]
    pub const fn plus(self, n: i32) -> Self {
        if self.0 > i32::MAX - n { Self(n - (i32::MAX - self.0) - 1) } else { Self(self.0 + n) }
    }

    /// The sequence `n` records earlier, wrapping from 0 to [`Sequence::MAX`] (Kafka: `DefaultRecordBatch.decrementSequence`).
    #[must_use]
    pub const fn minus(self, n: i32) -> Self {
        if self.0 < n { Self(i32::MAX - (n - self.0) + 1) } else { Self(self.0 - n) }
    }
}

impl CoordinatorEpoch {
    /// No coordinator has written a marker for this producer id yet.
    pub const NONE: Self = Self(-1);
}

impl TimestampMs {
    /// No timestamp (Kafka: `RecordBatch.NO_TIMESTAMP`).
    pub const NONE: Self = Self(-1);
}

impl Offset {
    /// The offset `n` records later; saturates at the largest offset.
    #[must_use]
    pub const fn plus(self, n: i64) -> Self {
        Self(self.0.saturating_add(n))
    }
}

impl Offset {
    /// No offset: nothing was appended (Kafka: `UnifiedLog.UNKNOWN_OFFSET`).
    pub const UNKNOWN: Self = Self(-1);
}

impl LeaderEpoch {
    /// No leader epoch (Kafka: `RecordBatch.NO_PARTITION_LEADER_EPOCH`).
    pub const NONE: Self = Self(-1);
}

/// A place in the files of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentPosition {
    /// The base offset of the segment.
    pub segment_base: Offset,
    /// Bytes of the segment's log file in front of the place.
    pub position: u64,
}

/// An offset and, where that is known, the place of the batch that begins with it (Kafka: `LogOffsetMetadata`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetMetadata {
    /// The offset.
    pub offset: Offset,
    /// Its place; `None` when only the offset is known.
    pub position: Option<SegmentPosition>,
}

impl OffsetMetadata {
    /// An offset of which no place is known.
    #[must_use]
    pub fn offset_only(offset: Offset) -> Self {
        Self { offset, position: None }
    }

    /// An offset and its place, in bytes of the segment with this base offset.
    #[must_use]
    pub fn at(offset: Offset, segment_base: Offset, position: u64) -> Self {
        Self { offset, position: Some(SegmentPosition { segment_base, position }) }
    }
}

impl PartitionEpoch {
    /// Nothing was heard of the partition yet.
    pub const NONE: Self = Self(-1);
}
