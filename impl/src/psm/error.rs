//! Why the producer state refuses a batch.

use crate::record::DecodeError;
use crate::types::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence};

/// A refusal of the ProducerStateManager. Each variant is named after the exception that Kafka throws in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProducerStateError {
    /// The first sequence is not the one that follows.
    #[error(
        "producer {producer_id} at offset {offset}: sequence {found} of epoch {epoch} is out of order, \
         expected {expected}"
    )]
    OutOfOrderSequence {
        /// The producer.
        producer_id: ProducerId,
        /// Where the batch would have been appended.
        offset: Offset,
        /// The epoch of the batch.
        epoch: ProducerEpoch,
        /// The sequence that would have been right.
        expected: Sequence,
        /// The first sequence of the batch.
        found: Sequence,
    },
    /// The epoch is below the last seen one; for a marker of transaction version 2, or not above it.
    #[error("producer {producer_id} at offset {offset}: epoch {found} is smaller than the last seen epoch {current} allows")]
    InvalidProducerEpoch {
        /// The producer.
        producer_id: ProducerId,
        /// Where the batch would have been appended.
        offset: Offset,
        /// The last seen epoch.
        current: ProducerEpoch,
        /// The epoch of the batch.
        found: ProducerEpoch,
    },
    /// A marker of a coordinator that a later one has replaced.
    #[error("producer {producer_id} at offset {offset}: coordinator epoch {found} of the marker, expected at least {current}")]
    TransactionCoordinatorFenced {
        /// The producer.
        producer_id: ProducerId,
        /// Where the marker would have been appended.
        offset: Offset,
        /// Coordinator epoch of the last marker.
        current: CoordinatorEpoch,
        /// Coordinator epoch of this marker.
        found: CoordinatorEpoch,
    },
    /// A barrier while a transaction is open, where the design wants it aborted first. Kafka has no such case.
    #[error(
        "barrier at offset {offset}: the transaction of producer {producer_id} that began at offset {txn_first_offset} is \
         open, expected none"
    )]
    BarrierInTransaction {
        /// The producer.
        producer_id: ProducerId,
        /// Where the barrier would have been appended.
        offset: Offset,
        /// First offset of the open transaction.
        txn_first_offset: Offset,
    },
    /// A batch that is not transactional while the producer's transaction is open.
    #[error(
        "producer {producer_id} at offset {offset}: expected a transactional batch, as the transaction that began at \
         offset {txn_first_offset} is open"
    )]
    InvalidTxnState {
        /// The producer.
        producer_id: ProducerId,
        /// Where the batch would have been appended.
        offset: Offset,
        /// First offset of the open transaction.
        txn_first_offset: Offset,
    },
    /// A client's batch would open a transaction that was not verified.
    #[error("producer {producer_id} at offset {offset}: the batch is not part of a transaction that was verified")]
    NotVerified {
        /// The producer.
        producer_id: ProducerId,
        /// Offset of the batch.
        offset: Offset,
    },
    /// A control record of another type than COMMIT and ABORT under a producer id.
    #[error("producer {producer_id} at offset {offset}: control record type {type_id}, expected 0 (ABORT) or 1 (COMMIT)")]
    NotAnEndTxnMarker {
        /// The producer.
        producer_id: ProducerId,
        /// Offset of the batch.
        offset: Offset,
        /// The type in the record's key.
        type_id: i16,
    },
    /// A marker for a leader's log needs a transaction version.
    #[error("producer {producer_id} at offset {offset}: a marker needs a transaction version of 0, 1 or 2")]
    UnknownTransactionVersion {
        /// The producer.
        producer_id: ProducerId,
        /// Where the marker would have been appended.
        offset: Offset,
    },
    /// A marker ended a transaction of which the log does not know that it is open.
    #[error("producer {producer_id}: the transaction that began at offset {first_offset} is not among the open ones")]
    CompletedUnknownTxn {
        /// The producer.
        producer_id: ProducerId,
        /// First offset of the transaction.
        first_offset: Offset,
    },
    /// The first record of a control batch cannot be read.
    #[error("producer {producer_id} at offset {offset}: {source}")]
    InvalidControlRecord {
        /// The producer.
        producer_id: ProducerId,
        /// Offset of the batch.
        offset: Offset,
        /// What is wrong with it.
        source: DecodeError,
    },
}

impl ProducerStateError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::OutOfOrderSequence { .. } => "OutOfOrderSequenceException",
            Self::InvalidProducerEpoch { .. } => "InvalidProducerEpochException",
            Self::TransactionCoordinatorFenced { .. } => "TransactionCoordinatorFencedException",
            Self::InvalidTxnState { .. } | Self::BarrierInTransaction { .. } | Self::NotVerified { .. } => {
                "InvalidTxnStateException"
            }
            Self::NotAnEndTxnMarker { .. } | Self::UnknownTransactionVersion { .. } | Self::CompletedUnknownTxn { .. } => {
                "IllegalArgumentException"
            }
            // Not a fault of the batch: nothing may be cut because of it.
            Self::InvalidControlRecord { source: DecodeError::CompressionUnsupported { .. }, .. } => {
                "UnsupportedCompressionTypeException"
            }
            Self::InvalidControlRecord { source: DecodeError::Null { .. }, .. } => "NullPointerException",
            Self::InvalidControlRecord { .. } => "InvalidRecordException",
        }
    }
}
