//! What a batch must be before producer state sees it (Kafka: `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`).

use bytes::Bytes;

use super::config::LogConfig;
use super::error::AppendError;
use crate::psm::AppendOrigin;
use crate::record::{AnyBatch, AnyBatchReader, RecordBatch};
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// The batches of an append that are to be appended.
#[derive(Debug)]
pub(super) struct Analyzed {
    pub(super) batches: Vec<AnyBatch>,
    /// Size of these batches: the leading bytes of what was handed in.
    pub(super) valid_bytes: usize,
}

impl Analyzed {
    /// The largest timestamp of the batches, in milliseconds.
    pub(super) fn max_timestamp(&self) -> TimestampMs {
        self.batches.iter().map(AnyBatch::max_timestamp).fold(TimestampMs::NONE, TimestampMs::max)
    }
}

/// Reads the batches of an append and checks each. A batch that is not whole ends it, silently; so does, in a copy, one
/// of a leader epoch above the one that the copy was made under.
pub(super) fn analyze(
    bytes: &Bytes,
    origin: AppendOrigin,
    is_copy: bool,
    leader_epoch: LeaderEpoch,
    config: &LogConfig,
) -> Result<Analyzed, AppendError> {
    let mut analyzed = Analyzed { batches: Vec::new(), valid_bytes: 0 };
    let mut previous = Offset::UNKNOWN;
    for batch in AnyBatchReader::new(bytes.clone()) {
        let batch = batch.map_err(AppendError::CorruptRecord)?;
        if origin == AppendOrigin::RaftLeader && batch.leader_epoch() != leader_epoch {
            let why = "the leader epoch of a batch from the raft leader is not that of the append";
            return Err(AppendError::InvalidRecord(why));
        }
        // Records of magic 0 and 1 are given offsets whatever they have.
        if origin == AppendOrigin::Client && batch.base_offset().is_some_and(|base_offset| base_offset != Offset(0)) {
            let why = "the base offset of a batch that a client sends is not 0";
            return Err(AppendError::InvalidRecord(why));
        }
        if origin == AppendOrigin::Replication && batch.leader_epoch() > leader_epoch {
            break;
        }
        let size = batch.size_in_bytes();
        if !is_copy && size > config.max_message_bytes {
            let max = config.max_message_bytes;
            return Err(AppendError::RecordTooLarge { size, max });
        }
        batch.ensure_valid().map_err(AppendError::CorruptRecord)?;
        if is_copy || origin == AppendOrigin::RaftLeader {
            match &batch {
                AnyBatch::V2(batch) => check_order(batch, previous)?,
                AnyBatch::Legacy(_) => check_ascends(batch.last_offset(), batch.last_offset(), previous)?,
            }
        }
        previous = batch.last_offset();
        analyzed.valid_bytes = analyzed.valid_bytes.saturating_add(size);
        analyzed.batches.push(batch);
    }
    Ok(analyzed)
}

/// Last offsets ascend from batch to batch. That a batch does not end before it begins, nor at the last offset there
/// is, is checked too, where Kafka trusts the leader.
pub(super) fn check_order(batch: &RecordBatch, previous: Offset) -> Result<(), AppendError> {
    check_ascends(batch.base_offset(), batch.last_offset(), previous)
}

fn check_ascends(base_offset: Offset, last_offset: Offset, previous: Offset) -> Result<(), AppendError> {
    let ascends = base_offset > previous && last_offset >= base_offset && last_offset < Offset(i64::MAX);
    if ascends {
        return Ok(());
    }
    Err(AppendError::OffsetsOutOfOrder { base_offset, last_offset, previous })
}
