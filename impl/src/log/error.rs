//! Why a log refuses an operation.

use crate::log_dir::PartitionMetadataError;
use crate::psm::ProducerStateError;
use crate::record::{AssignError, DecodeError};
use crate::storage::StorageError;
use crate::types::{LeaderEpoch, Offset};

use super::epoch_cache::{EpochCheckpointError, NegativeEpoch};
use super::txn_index::TxnIndexError;

/// Why an append was refused. Nothing was appended, unless [`AppendError::ProducerState`] tells of a transaction that
/// was completed but not open. Each variant is named after the exception that Kafka throws in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// A batch cannot be read, or its checksum is wrong.
    #[error("corrupt batch: {0}")]
    CorruptRecord(#[source] DecodeError),
    /// What a leader checks before it gives offsets.
    #[error(transparent)]
    Assign(#[from] AssignError),
    /// An aborted transaction is stored in a version that is not known.
    #[error("{file}: aborted transaction of version {version} at byte {position}, expected 0")]
    TxnIndexVersion {
        /// The transaction index.
        file: String,
        /// Where the entry begins.
        position: u64,
        /// The first byte of its version.
        version: i8,
    },
    /// A new segment would begin at or below the active one, which begins behind the log end offset: a refused append
    /// over a gap has left it there.
    #[error("a segment at offset {offset} cannot follow the active one at offset {active}")]
    RollBelowActive {
        /// Where the new segment would begin.
        offset: Offset,
        /// Where the active one begins.
        active: Offset,
    },
    /// A rule about what a batch may hold is broken.
    #[error("invalid record: {0}")]
    InvalidRecord(&'static str),
    /// A batch is larger than a leader may append.
    #[error("batch of {size} bytes, expected at most {max}")]
    RecordTooLarge {
        /// The size of the batch, in bytes.
        size: usize,
        /// `max.message.bytes`.
        max: usize,
    },
    /// The whole append is larger than a segment.
    #[error("append of {size} bytes, expected at most {max}")]
    RecordBatchTooLarge {
        /// The size of the append, in bytes.
        size: usize,
        /// `segment.bytes`.
        max: usize,
    },
    /// Offsets do not ascend within an append, or leave the range of offsets.
    #[error("batch from offset {base_offset} to {last_offset}, expected it to begin above {previous} and to ascend")]
    OffsetsOutOfOrder {
        /// The first offset of the batch.
        base_offset: Offset,
        /// The last offset of the batch.
        last_offset: Offset,
        /// The last offset of the batch before it; -1 if it is the first.
        previous: Offset,
    },
    /// The first offset of a copy lies below the log end offset.
    #[error("append from offset {first_offset} to {last_offset}, expected it to begin at {log_end_offset} or above")]
    UnexpectedAppendOffset {
        /// The first offset.
        first_offset: Offset,
        /// The last offset.
        last_offset: Offset,
        /// The log end offset.
        log_end_offset: Offset,
    },
    /// The leader epoch of a batch is negative.
    #[error("leader epoch {leader_epoch} of the batch at offset {offset}, expected 0 or above")]
    InvalidLeaderEpoch {
        /// The leader epoch.
        leader_epoch: LeaderEpoch,
        /// The first offset of the batch.
        offset: Offset,
    },
    /// The marker of an aborted transaction lies at or in front of the one before.
    #[error("the abort marker at offset {offset} does not follow the one at offset {previous}")]
    TxnIndexOrder {
        /// The offset of the marker.
        offset: Offset,
        /// The offset of the one before.
        previous: Offset,
    },
    /// A log that was to start within the batch could not be begun anew.
    #[error("starting anew: {0}")]
    StartOver(#[source] Box<LogError>),
    /// The ProducerStateManager refuses a batch.
    #[error(transparent)]
    ProducerState(#[from] ProducerStateError),
    /// The log is read-only for this append.
    #[error("the partition is read-only in mirror state {state}")]
    ReadOnlyTopic {
        /// The state of the mirror.
        state: crate::mirror::MirrorState,
    },
    /// The storage failed, now or before.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl AppendError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::CorruptRecord(_) => "CorruptRecordException",
            Self::Assign(error) => error.kafka_class(),
            Self::InvalidRecord(_) => "InvalidRecordException",
            Self::RollBelowActive { .. } | Self::TxnIndexVersion { .. } => "KafkaException",
            Self::RecordTooLarge { .. } => "RecordTooLargeException",
            Self::RecordBatchTooLarge { .. } => "RecordBatchTooLargeException",
            Self::OffsetsOutOfOrder { .. } => "OffsetsOutOfOrderException",
            Self::UnexpectedAppendOffset { .. } => "UnexpectedAppendOffsetException",
            Self::InvalidLeaderEpoch { .. } | Self::TxnIndexOrder { .. } => "IllegalArgumentException",
            Self::StartOver(error) => error.kafka_class(),
            Self::ProducerState(error) => error.kafka_class(),
            Self::ReadOnlyTopic { .. } => "ReadOnlyTopicException",
            Self::Storage(_) => "KafkaStorageException",
        }
    }
}

impl From<(NegativeEpoch, Offset)> for AppendError {
    fn from((error, offset): (NegativeEpoch, Offset)) -> Self {
        Self::InvalidLeaderEpoch { leader_epoch: error.0, offset }
    }
}

impl From<LogError> for AppendError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Storage(error) => Self::Storage(error),
            other => Self::StartOver(Box::new(other)),
        }
    }
}

/// Why a log cannot be created, opened, cut or closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// There is a log in the storage already.
    #[error("there is a log in this storage already")]
    AlreadyExists,
    /// A batch of the log, which is trusted, cannot be read.
    #[error("corrupt batch at byte {position} of the log: {source}")]
    CorruptRecord {
        /// Where the batch begins.
        position: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// A segment's file is longer than any that Kafka opens.
    #[error("the file of the segment at {base_offset} has {bytes} bytes, expected at most 2147483647")]
    SegmentTooLong {
        /// The segment's base offset.
        base_offset: Offset,
        /// The length of its file.
        bytes: u64,
    },
    /// The offsets of a batch of the log do not ascend.
    #[error("batch at byte {position} of the log from offset {base_offset} to {last_offset}, expected at least {expected}")]
    OffsetsOutOfOrder {
        /// Where the batch begins.
        position: u64,
        /// Its first offset.
        base_offset: Offset,
        /// Its last offset.
        last_offset: Offset,
        /// The offset behind the batch before it.
        expected: Offset,
    },
    /// A batch of a format that cannot be read yet; the log is left as it is.
    #[error("unsupported batch at byte {position} of the log: {source}")]
    Unsupported {
        /// Where the batch begins.
        position: u64,
        /// Which format it has.
        source: DecodeError,
    },
    /// The replay of a batch was refused, which no restart can mend.
    #[error("replay of the log: {0}")]
    ProducerState(#[from] ProducerStateError),
    /// A leader epoch is negative.
    #[error("leader epoch {0}, expected 0 or above")]
    InvalidLeaderEpoch(LeaderEpoch),
    /// The leader-epoch checkpoint cannot be read.
    #[error("leader-epoch checkpoint: {0}")]
    EpochCheckpoint(#[from] EpochCheckpointError),
    /// The file with the id of the topic cannot be read.
    #[error("partition metadata: {0}")]
    PartitionMetadata(#[source] PartitionMetadataError),
    /// The mirror metadata cannot be read or written.
    #[error("mirror metadata: {0}")]
    MirrorMetadata(#[from] crate::mirror::MetadataError),
    /// An aborted transaction is stored in a version that is not known.
    #[error("{file}: aborted transaction of version {version} at byte {position}, expected 0")]
    TxnIndexVersion {
        /// The transaction index.
        file: String,
        /// Where the entry begins.
        position: u64,
        /// The first byte of its version.
        version: i8,
    },
    /// A new segment would begin at or below the active one, which begins behind the log end offset: a refused append
    /// over a gap has left it there.
    #[error("a segment at offset {offset} cannot follow the active one at offset {active}")]
    RollBelowActive {
        /// Where the new segment would begin.
        offset: Offset,
        /// Where the active one begins.
        active: Offset,
    },
    /// The marker of an aborted transaction lies at or in front of the one before.
    #[error("the abort marker at offset {offset} does not follow the one at offset {previous}")]
    TxnIndexOrder {
        /// The offset of the marker.
        offset: Offset,
        /// The offset of the one before.
        previous: Offset,
    },
    /// The part of the log that is to be cleaned ends before it begins.
    #[error("nothing can be cleaned from offset {first_dirty} up to {bound}")]
    CleanRange {
        /// Where it begins.
        first_dirty: Offset,
        /// Where it ends.
        bound: Offset,
    },
    /// A segment that is to be split has no offset that is too far from its base, or its last one lies in front of it.
    #[error("segment at offset {base_offset}: no offset is too far from it to be told relative to it")]
    NoOverflow {
        /// The base offset of the segment.
        base_offset: Offset,
    },
    /// A segment that is to be split ends in bytes that are no whole batch.
    #[error("segment of {len} bytes, expected its last batch to end there and not at byte {position}")]
    SplitTrailingBytes {
        /// Where the last whole batch ends.
        position: u64,
        /// The length of the file.
        len: u64,
    },
    /// A segment with offsets too far from its base was met; it is split now, and cleaning has to begin anew.
    #[error("cleaning ended at the segment at offset {base_offset}, which had to be split")]
    CleaningAborted {
        /// The base offset of the segment.
        base_offset: Offset,
    },
    /// The caller has told cleaning to stop.
    #[error("cleaning was told to stop in the segment at offset {base_offset}")]
    CleaningStopped {
        /// The base offset of the segment that was being read.
        base_offset: Offset,
    },
    /// Nothing is left of a batch of magic 0 or 1 at the end of what is cleaned, of which at least a header would have to be kept.
    #[error("cleaning: nothing is left of the batch of an old format at byte {position}, which must not go")]
    EmptyLegacyBatch {
        /// Where the batch begins.
        position: u64,
    },
    /// What is left of a batch cannot be built.
    #[error("cleaning: {0}")]
    Clean(#[source] crate::record::EncodeError),
    /// An offset lies behind the log end offset.
    #[error("offset {offset}, expected at most the log end offset {log_end_offset}")]
    BeyondLogEnd {
        /// The offset.
        offset: Offset,
        /// The log end offset.
        log_end_offset: Offset,
    },
    /// An offset lies behind the high watermark.
    #[error("offset {offset}, expected at most the high watermark {high_watermark}")]
    BeyondHighWatermark {
        /// The offset.
        offset: Offset,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// An offset is negative.
    #[error("offset {0}, expected 0 or above")]
    NegativeOffset(Offset),
    /// The storage failed, now or before.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl LogError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::AlreadyExists | Self::EmptyLegacyBatch { .. } => "IllegalStateException",
            Self::RollBelowActive { .. } | Self::TxnIndexVersion { .. } | Self::SegmentTooLong { .. } => "KafkaException",
            Self::CorruptRecord { .. } => "CorruptRecordException",
            Self::OffsetsOutOfOrder { .. } => "InvalidOffsetException",
            Self::Unsupported { .. } => "UnsupportedForMessageFormatException",
            Self::ProducerState(error) => error.kafka_class(),
            Self::InvalidLeaderEpoch(_) | Self::NegativeOffset(_) | Self::BeyondLogEnd { .. } | Self::CleanRange { .. } => {
                "IllegalArgumentException"
            }
            Self::NoOverflow { .. } | Self::TxnIndexOrder { .. } => "IllegalArgumentException",
            Self::SplitTrailingBytes { .. } => "NoSuchElementException",
            Self::CleaningAborted { .. } | Self::CleaningStopped { .. } => "LogCleaningAbortedException",
            Self::Clean(error) => error.kafka_class(),
            Self::BeyondHighWatermark { .. } => "OffsetOutOfRangeException",
            Self::EpochCheckpoint(error) => error.kafka_class(),
            Self::PartitionMetadata(error) => error.kafka_class(),
            Self::MirrorMetadata(_) | Self::Storage(_) => "KafkaStorageException",
        }
    }
}

impl From<PartitionMetadataError> for LogError {
    fn from(error: PartitionMetadataError) -> Self {
        match error {
            PartitionMetadataError::Storage(error) => Self::Storage(error),
            other => Self::PartitionMetadata(other),
        }
    }
}

impl From<NegativeEpoch> for LogError {
    fn from(error: NegativeEpoch) -> Self {
        Self::InvalidLeaderEpoch(error.0)
    }
}

/// Why a read was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The offset is not in the log.
    #[error("offset {offset}, expected {log_start_offset} to {log_end_offset}")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: Offset,
        /// The log start offset.
        log_start_offset: Offset,
        /// The log end offset.
        log_end_offset: Offset,
    },
    /// A batch of the log cannot be read.
    #[error("corrupt batch at byte {position} of the log: {source}")]
    CorruptRecord {
        /// Where the batch begins.
        position: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ReadError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::OffsetOutOfRange { .. } => "OffsetOutOfRangeException",
            Self::CorruptRecord { .. } => "CorruptRecordException",
            Self::Storage(_) => "KafkaStorageException",
        }
    }
}

/// Why a new segment cannot begin.
#[derive(Debug)]
pub(super) enum RollError {
    BelowActive { offset: Offset, active: Offset },
    Storage(StorageError),
}

impl From<StorageError> for RollError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<RollError> for AppendError {
    fn from(error: RollError) -> Self {
        match error {
            RollError::BelowActive { offset, active } => Self::RollBelowActive { offset, active },
            RollError::Storage(error) => Self::Storage(error),
        }
    }
}

impl From<RollError> for LogError {
    fn from(error: RollError) -> Self {
        match error {
            RollError::BelowActive { offset, active } => Self::RollBelowActive { offset, active },
            RollError::Storage(error) => Self::Storage(error),
        }
    }
}

impl From<TxnIndexError> for AppendError {
    fn from(error: TxnIndexError) -> Self {
        match error {
            TxnIndexError::Order { offset, previous } => Self::TxnIndexOrder { offset, previous },
            TxnIndexError::Storage(error) => Self::Storage(error),
        }
    }
}

impl From<TxnIndexError> for LogError {
    fn from(error: TxnIndexError) -> Self {
        match error {
            TxnIndexError::Order { offset, previous } => Self::TxnIndexOrder { offset, previous },
            TxnIndexError::Storage(error) => Self::Storage(error),
        }
    }
}

/// An error that may be one of the storage.
pub(super) trait MayBeStorage {
    /// The storage's error, if it is one.
    fn storage_error(&self) -> Option<&StorageError>;
}

impl MayBeStorage for StorageError {
    fn storage_error(&self) -> Option<&StorageError> {
        Some(self)
    }
}

macro_rules! may_be_storage {
    ($($error:ident),+) => {
        $(impl MayBeStorage for $error {
            fn storage_error(&self) -> Option<&StorageError> {
                if let Self::Storage(error) = self { Some(error) } else { None }
            }
        })+
    };
}

may_be_storage!(AppendError, LogError, ReadError, RollError);
