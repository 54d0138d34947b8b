//! Why a leader does not append what it was sent.

use super::encode_error::EncodeError;
use super::error::DecodeError;

/// What is wrong with one record (Kafka: `ProduceResponse.RecordError`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// A compacted topic takes no record without a key.
    NoKey,
    /// The timestamp, in milliseconds, is further from the leader's clock than the topic allows.
    Timestamp(i64),
    /// The batch says that its timestamps are those of an append, which is not for its sender to say.
    AppendTime,
    /// A record in a compressed set has another magic than its wrapper.
    Magic(i8),
}

/// A record that is at fault, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Index of the record in its batch, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub fault: RecordFault,
}

/// Why [`assign_offsets`](super::assign_offsets) refuses what it is given (Kafka: what `LogValidator` throws).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// The bytes hold no whole batch.
    #[error("there is no batch")]
    NoBatch,
    /// More than one batch, where only uncompressed records of magic 0 and 1 may be several.
    #[error("there is more than one batch")]
    SeveralBatches,
    /// A batch has another magic than the first.
    #[error("magic {magic} follows magic {first}")]
    MixedMagic {
        /// The magic of the first batch.
        first: i8,
        /// The magic that differs.
        magic: i8,
    },
    /// The last offset of a client's batch is below its base offset.
    #[error("last offset delta {last_offset_delta}, expected 0 or more")]
    OffsetRange {
        /// The last offset less the base offset.
        last_offset_delta: i32,
    },
    /// A client's batch has no records, or fewer or more than its offsets span.
    #[error("record count {count} with last offset delta {last_offset_delta}, expected one more than that")]
    RecordCount {
        /// The record count in the header.
        count: i32,
        /// The last offset less the base offset.
        last_offset_delta: i32,
    },
    /// A client sent a control batch.
    #[error("clients may not write control records")]
    ControlBatch,
    /// A client's batch has a producer id but no sequence.
    #[error("base sequence {base_sequence} with producer id {producer_id}, expected 0 or more")]
    BaseSequence {
        /// The base sequence.
        base_sequence: i32,
        /// The producer id.
        producer_id: i64,
    },
    /// The batch has something that the magic does not have in which it is to be stored.
    #[error("magic {magic} has no {what}")]
    NotInMagic {
        /// What it has.
        what: &'static str,
        /// The magic.
        magic: i8,
    },
    /// The records that are at fault, of a batch whose records can all be read; never empty
    /// (Kafka: `RecordValidationException`).
    #[error("{} records are at fault, the first: {:?}", .0.len(), .0.first())]
    Records(Vec<RecordError>),
    /// A compressed batch has the right codec, but its offsets do not count up from 0. Kafka means to build it anew and
    /// cannot, as it skipped over keys and values in the hope that it need not.
    #[error("a compressed batch that needs no other codec has offsets that do not count up from 0")]
    OffsetsOfCompressed,
    /// A batch without records would have to be built anew with append time, at which Kafka stumbles.
    #[error("a batch without records cannot be built anew with append time")]
    EmptyWithAppendTime,
    /// The bytes are no batch, or its records cannot be read.
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    /// The batch has to be built anew, which Kafka's `MemoryRecordsBuilder` refuses to do.
    #[error(transparent)]
    Rebuild(#[from] EncodeError),
}

impl AssignError {
    /// The simple name of the exception class that Kafka throws in this case; of a `RecordValidationException`, the one
    /// that it wraps.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            // One fault of a timestamp decides for all (Kafka: `LogValidator.processRecordErrors`).
            Self::Records(errors) if errors.iter().any(RecordError::is_of_timestamp) => "InvalidTimestampException",
            Self::NotInMagic { .. } => "UnsupportedForMessageFormatException",
            Self::OffsetsOfCompressed => "UnsupportedOperationException",
            Self::EmptyWithAppendTime => "NullPointerException",
            Self::Unreadable(error) => error.kafka_class(),
            Self::Rebuild(error) => error.kafka_class(),
            _ => "InvalidRecordException",
        }
    }
}

impl RecordError {
    fn is_of_timestamp(&self) -> bool {
        matches!(self.fault, RecordFault::Timestamp(_) | RecordFault::AppendTime)
    }
}
