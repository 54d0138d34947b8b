//! What a batch must be before producer state sees it (Kafka: `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`).

use bytes::Bytes;

use super::config::LogConfig;
use super::error::AppendError;
use crate::psm::AppendOrigin;
use crate::record::{BatchReader, Compression, RecordBatch, TimestampType};
use crate::types::{LeaderEpoch, Offset, Sequence, TimestampMs};

/// The batches of an append that are to be appended.
#[derive(Debug)]
pub(super) struct Analyzed {
    pub(super) batches: Vec<RecordBatch>,
    /// Size of these batches: the leading bytes of what was handed in.
    pub(super) valid_bytes: usize,
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
    for batch in BatchReader::new(bytes.clone()) {
        let batch = batch.map_err(AppendError::CorruptRecord)?;
        if origin == AppendOrigin::Client && batch.base_offset() != Offset(0) {
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
        if is_copy {
            check_order(&batch, previous)?;
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
    let (base_offset, last_offset) = (batch.base_offset(), batch.last_offset());
    let ascends = base_offset > previous && last_offset >= base_offset && last_offset < Offset(i64::MAX);
    if ascends {
        return Ok(());
    }
    Err(AppendError::OffsetsOutOfOrder { base_offset, last_offset, previous })
}

/// The one batch that a leader may append at once, as far as its header and records can be checked. Records of a
/// compressed batch are not looked at yet.
pub(super) fn check_leader_batch(
    batch: &RecordBatch,
    origin: AppendOrigin,
    now: TimestampMs,
    config: &LogConfig,
) -> Result<(), AppendError> {
    let count = i64::from(batch.record_count());
    if count <= 0 || count != i64::from(batch.last_offset_delta()).saturating_add(1) {
        let why = "the record count is not that of the offset range, or is 0";
        return Err(AppendError::InvalidRecord(why));
    }
    if origin == AppendOrigin::Client {
        check_client_batch(batch)?;
    }
    if batch.attributes().compression().is_some_and(|codec| codec != Compression::None) {
        return Ok(());
    }
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        let (offset, timestamp) = (batch.base_offset(), batch.max_timestamp());
        return Err(AppendError::InvalidTimestamp { offset, timestamp, now });
    }
    let records = batch.records().map_err(AppendError::UnreadableRecord)?;
    for record in records {
        let ahead_ms = record.timestamp.get().saturating_sub(now.get());
        let in_range = ahead_ms <= config.timestamp_after_max_ms && ahead_ms.saturating_neg() <= config.timestamp_before_max_ms;
        if record.timestamp != TimestampMs::NONE && !in_range {
            return Err(AppendError::InvalidTimestamp { offset: record.offset, timestamp: record.timestamp, now });
        }
    }
    Ok(())
}

fn check_client_batch(batch: &RecordBatch) -> Result<(), AppendError> {
    if batch.is_control() {
        let why = "clients may not write control records";
        return Err(AppendError::InvalidRecord(why));
    }
    if batch.has_producer_id() && batch.base_sequence() < Sequence(0) {
        let why = "a batch with a producer id needs a sequence of 0 or above";
        return Err(AppendError::InvalidRecord(why));
    }
    Ok(())
}
