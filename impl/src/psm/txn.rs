//! Transactions as the log sees them (Kafka: `TxnMetadata`, `CompletedTxn`).

use crate::types::{Offset, ProducerId};

/// A transaction that began in this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TxnMetadata {
    /// The producer.
    pub producer_id: ProducerId,
    /// The offset of the first batch of the transaction.
    pub first_offset: Offset,
    /// The offset of the marker that ended it; `None` while it is open.
    pub last_offset: Option<Offset>,
}

impl TxnMetadata {
    /// An open transaction.
    #[must_use]
    pub fn open(producer_id: ProducerId, first_offset: Offset) -> Self {
        Self { producer_id, first_offset, last_offset: None }
    }
}

/// A transaction that a marker has just ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompletedTxn {
    /// The producer.
    pub producer_id: ProducerId,
    /// The offset of the first batch of the transaction.
    pub first_offset: Offset,
    /// The offset of the marker.
    pub last_offset: Offset,
    /// Ended by ABORT; else by COMMIT.
    pub aborted: bool,
}
