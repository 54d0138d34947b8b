//! The errors of writing.

use super::header::Compression;

/// Why a batch cannot be written. Most rules are those of Kafka's `MemoryRecordsBuilder`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A batch without records is never built; compaction's header-only batch is `RecordBatch::empty_header`.
    #[error("a batch needs at least one record")]
    NoRecords,
    /// A transactional batch needs a producer id.
    #[error("a transactional batch needs a producer id")]
    TransactionalWithoutProducerId,
    /// A batch with a producer id needs a producer epoch.
    #[error("producer id {producer_id} needs a producer epoch")]
    ProducerIdWithoutEpoch {
        /// The producer id.
        producer_id: i64,
    },
    /// A data batch with a producer id needs a sequence of 0 or more.
    #[error("base sequence {base_sequence} of a data batch with a producer id, expected 0 or more")]
    NegativeSequence {
        /// The base sequence.
        base_sequence: i32,
    },
    /// Offsets must start at or above the base offset and increase.
    #[error("record offset {offset}, expected at least {minimum}")]
    OffsetOutOfOrder {
        /// The record's offset.
        offset: i64,
        /// The smallest offset allowed in its place.
        minimum: i64,
    },
    /// The distance from the base offset does not fit 31 bits.
    #[error("offset {offset} is more than 2147483647 above base offset {base_offset}")]
    OffsetDeltaTooLarge {
        /// The offset.
        offset: i64,
        /// The batch's base offset.
        base_offset: i64,
    },
    /// A timestamp is negative and not the -1 for "none", or a delete horizon is negative; in milliseconds.
    #[error("timestamp {timestamp} ms, expected 0 or more (or -1 where there may be none)")]
    InvalidTimestamp {
        /// The timestamp in milliseconds.
        timestamp: i64,
    },
    /// A control record was added to a batch that is not marked as control.
    #[error("a control record in a data batch")]
    ControlRecordInDataBatch,
    /// A record that is no control record was added to a control batch.
    #[error("a record that is no control record in a control batch")]
    DataRecordInControlBatch,
    /// An unknown control record type cannot be written.
    #[error("unknown control record type {type_id}")]
    UnknownControlType {
        /// The type id.
        type_id: i16,
    },
    /// An end-transaction marker needs a producer id.
    #[error("an end-transaction marker needs a producer id")]
    MarkerWithoutProducerId,
    /// An end-transaction marker needs a transactional batch.
    #[error("an end-transaction marker in a batch that is not transactional")]
    MarkerNotTransactional,
    /// A leader change message needs a leader epoch.
    #[error("a leader change message needs a leader epoch")]
    LeaderChangeWithoutLeaderEpoch,
    /// A marker of a type that ends no transaction.
    #[error("control record type {type_id} ends no transaction")]
    NoEndTxnType {
        /// The type id.
        type_id: i16,
    },
    /// The formats before magic 2 lack something.
    #[error("magic {magic} has no {what}")]
    NotInMagic {
        /// What there is not.
        what: &'static str,
        /// 0 or 1.
        magic: i8,
    },
    /// A builder that has built its batch takes no further records.
    #[error("a record for a builder that is closed")]
    BuilderClosed,
    /// A builder that was aborted takes no records and builds nothing.
    #[error("the builder was aborted")]
    BuilderAborted,
    /// A version that no reader accepts.
    #[error("{what} is {version}, expected 0 or more")]
    NegativeVersion {
        /// The field.
        what: &'static str,
        /// The version.
        version: i16,
    },
    /// A field or a batch is longer than its length field can say.
    #[error("{what} has {length} bytes, expected at most {maximum}")]
    TooLong {
        /// The field or structure.
        what: &'static str,
        /// Its length in bytes (or elements, for an array).
        length: usize,
        /// The most that fits.
        maximum: usize,
    },
    /// The codec's library failed, which it does for want of memory only.
    #[error("records could not be compressed with {codec:?}")]
    Compression {
        /// The codec.
        codec: Compression,
    },
}

impl EncodeError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::Compression { .. } => "KafkaException",
            Self::BuilderClosed | Self::BuilderAborted => "IllegalStateException",
            _ => "IllegalArgumentException",
        }
    }
}
