//! Transactions as the log sees them (Kafka: `TxnMetadata`, `CompletedTxn`).

use crate::types::{Offset, OffsetMetadata, ProducerId, SegmentPosition};

/// A transaction that began in this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TxnMetadata {
    /// The producer.
    pub producer_id: ProducerId,
    /// The offset of the first batch of the transaction.
    pub first_offset: Offset,
    /// The offset of the marker that ended it; `None` while it is open.
    pub last_offset: Option<Offset>,
    /// Where the first batch lies, as the append told; `None` for a transaction that a snapshot or a replay brought back.
    pub first_position: Option<SegmentPosition>,
}

impl TxnMetadata {
    /// An open transaction.
    #[must_use]
    pub fn open(producer_id: ProducerId, first: OffsetMetadata) -> Self {
        Self { producer_id, first_offset: first.offset, last_offset: None, first_position: first.position }
    }

    /// The offset of the first batch, with its place if that is known.
    #[must_use]
    pub fn first_offset_metadata(&self) -> OffsetMetadata {
        OffsetMetadata { offset: self.first_offset, position: self.first_position }
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
