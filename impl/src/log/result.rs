//! What came of an operation on a log.

use crate::psm::Completion;
use crate::types::{Offset, TimestampMs};

/// What came of an append (Kafka: `LogAppendInfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendResult {
    /// Offset of the first record; [`Offset::UNKNOWN`] when nothing was appended, and of a copy whose first batch is of magic 0 or 1,
    /// which does not tell. For a duplicate, that of the earlier batch.
    pub first_offset: Offset,
    /// Offset of the last record; [`Offset::UNKNOWN`] when nothing was appended. For a duplicate, that of the earlier
    /// batch.
    pub last_offset: Offset,
    /// The batch repeats an earlier one and was not appended.
    pub duplicate: bool,
    /// Milliseconds: the timestamp of the earlier batch for a duplicate; else [`TimestampMs::NONE`], as records keep
    /// their own time.
    pub log_append_time: TimestampMs,
    /// The transactions that markers in this append ended, in order.
    pub completed_txns: Vec<Completion>,
}

impl AppendResult {
    /// Nothing to append, and no error.
    pub(super) fn nothing() -> Self {
        Self::appended(Offset::UNKNOWN, Offset::UNKNOWN, Vec::new())
    }

    pub(super) fn appended(first_offset: Offset, last_offset: Offset, completed_txns: Vec<Completion>) -> Self {
        Self { first_offset, last_offset, duplicate: false, log_append_time: TimestampMs::NONE, completed_txns }
    }
}

/// What opening a log found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Batches in the log.
    pub batches: usize,
    /// The offset behind the last one.
    pub log_end_offset: Offset,
    /// Bytes behind the last whole batch that unclean recovery cut off.
    pub truncated_bytes: u64,
    /// Bytes behind the last whole batch that a clean open left in place; the next append cuts them off.
    pub trailing_bytes: u64,
    /// Why the log was cut, if it was for a batch that is whole but wrong.
    pub corruption: Option<String>,
    /// Batches that were replayed into producer state.
    pub replayed_batches: usize,
}
