//! Why a partition refuses a request, and what a follower hears of it.

use crate::log::{AppendError, LogError, ReadError};
use crate::log_dir::TopicPartition;
use crate::types::{LeaderEpoch, NodeId, Offset};

/// Why a partition refuses a request. Each variant is named after the exception that Kafka throws in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// The request comes from an earlier leader epoch.
    #[error("request under leader epoch {requested}, expected {current}")]
    FencedLeaderEpoch {
        /// The epoch of the request.
        requested: LeaderEpoch,
        /// That of the partition.
        current: LeaderEpoch,
    },
    /// The request comes from a leader epoch that the partition has not heard of yet.
    #[error("request under leader epoch {requested}, known is {current} only")]
    UnknownLeaderEpoch {
        /// The epoch of the request.
        requested: LeaderEpoch,
        /// That of the partition.
        current: LeaderEpoch,
    },
    /// The replica does not lead, and the request is one for a leader.
    #[error("this replica is not the leader")]
    NotLeaderOrFollower,
    /// A follower that has no replica of the partition, as far as is known.
    #[error("broker {replica} has no replica of the partition")]
    UnrecognizedReplica {
        /// The follower.
        replica: NodeId,
        /// Whether it knows the leader epoch, so that what it is not known for may still be on its way.
        knows_epoch: bool,
    },
    /// The epoch that was fetched last is not known here.
    #[error("nothing is known of leader epoch {0}, which was fetched last")]
    UnknownFetchedEpoch(LeaderEpoch),
    /// A new leader does not know yet what its clients may see.
    #[error("the high watermark {high_watermark} is below the beginning of the leader epoch, {epoch_start}")]
    OffsetNotAvailable {
        /// The high watermark.
        high_watermark: Offset,
        /// Where the leader epoch begins.
        epoch_start: Offset,
    },
    /// Records are to be deleted of a topic that is compacted only.
    #[error("no records are deleted of a log that is compacted only")]
    PolicyViolation,
    /// Records are to be deleted up to no offset of a log.
    #[error("records deleted up to offset {0}, expected -1, 0 or above")]
    NegativeOffset(Offset),
    /// The log refuses to be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log refuses an append.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log refuses another change.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl PartitionError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::FencedLeaderEpoch { .. } => "FencedLeaderEpochException",
            Self::UnknownLeaderEpoch { .. } | Self::UnrecognizedReplica { knows_epoch: true, .. } => "UnknownLeaderEpochException",
            Self::NotLeaderOrFollower | Self::UnrecognizedReplica { knows_epoch: false, .. } => "NotLeaderOrFollowerException",
            Self::UnknownFetchedEpoch(_) | Self::NegativeOffset(_) => "OffsetOutOfRangeException",
            Self::PolicyViolation => "PolicyViolationException",
            Self::OffsetNotAvailable { .. } => "OffsetNotAvailableException",
            Self::Read(error) => error.kafka_class(),
            Self::Append(error) => error.kafka_class(),
            Self::Log(error) => error.kafka_class(),
        }
    }
}

/// What a follower hears when its leader refuses a request: a code without details (Kafka: `Errors`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum LeaderError {
    /// `FENCED_LEADER_EPOCH`: the leader has a newer epoch.
    #[error("the leader has a newer epoch")]
    FencedLeaderEpoch,
    /// `UNKNOWN_LEADER_EPOCH`: the leader has an older epoch.
    #[error("the leader has an older epoch")]
    UnknownLeaderEpoch,
    /// `NOT_LEADER_OR_FOLLOWER`: the broker does not lead.
    #[error("the broker does not lead")]
    NotLeaderOrFollower,
    /// `OFFSET_OUT_OF_RANGE`: the leader does not have the offset.
    #[error("the leader does not have the offset")]
    OffsetOutOfRange,
    /// `UNKNOWN_TOPIC_OR_PARTITION`: the broker knows no such partition.
    #[error("the broker knows no such partition")]
    UnknownTopicOrPartition,
    /// `UNKNOWN_TOPIC_ID`: the broker knows no topic of that id.
    #[error("the broker knows no topic of that id")]
    UnknownTopicId,
    /// `INCONSISTENT_TOPIC_ID`: the topic has another id.
    #[error("the topic has another id")]
    InconsistentTopicId,
    /// Any other code.
    #[error("another error")]
    Other,
}

impl From<&PartitionError> for LeaderError {
    fn from(error: &PartitionError) -> Self {
        match error.kafka_class() {
            "FencedLeaderEpochException" => Self::FencedLeaderEpoch,
            "UnknownLeaderEpochException" => Self::UnknownLeaderEpoch,
            "NotLeaderOrFollowerException" => Self::NotLeaderOrFollower,
            "OffsetOutOfRangeException" => Self::OffsetOutOfRange,
            _ => Self::Other,
        }
    }
}

/// Why a follower does not take over what its leader has sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// There is no such replica here.
    #[error("there is no replica of {0} here")]
    NoReplica(TopicPartition),
    /// The log has grown or was cut since the fetch (Kafka: `IllegalStateException`).
    #[error("fetched from offset {fetched}, expected the log end offset {log_end_offset}")]
    OffsetMismatch {
        /// The offset of the fetch.
        fetched: Offset,
        /// The log end offset.
        log_end_offset: Offset,
    },
    /// The log refuses the append.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log cannot be cut, or its start offset not be raised.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl FollowError {
    /// Whether the same fetch may succeed another time: what was sent is not readable, and the leader's log may just have been changing
    /// (Kafka: `CorruptRecordException`, `InvalidRecordException`).
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Append(AppendError::CorruptRecord(_) | AppendError::InvalidRecord(_)))
    }
}

/// A leader answers for a partition that it was not asked about (Kafka: `IllegalStateException`). Nothing of the answer was used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the leader answers for {0}, which was not in the request")]
pub struct UnrequestedPartition(pub TopicPartition);
