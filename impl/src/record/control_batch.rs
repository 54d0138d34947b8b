//! Control batches of one record, as brokers write them.

use super::batch::RecordBatch;
use super::builder::BatchBuilder;
use super::control::{ControlRecord, EndTxnMarker};
use super::encode_error::EncodeError;
use super::mirror_pid_reset::MirrorPidResetRecord;
use crate::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

impl RecordBatch {
    /// A control batch of one record without a producer, as KRaft and a stopping mirror write it.
    ///
    /// # Errors
    /// For an end-transaction marker, which needs a producer, and when the record cannot be written.
    pub fn control(
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        timestamp: TimestampMs,
        record: &ControlRecord,
    ) -> Result<Self, EncodeError> {
        BatchBuilder::new(base_offset)
            .leader_epoch(leader_epoch)
            .timestamp(timestamp)
            .control(true)
            .control_record(record.clone())
            .build()
    }

    /// A COMMIT or ABORT marker (Kafka: `MemoryRecords.withEndTransactionMarker`); the timestamp is in milliseconds.
    ///
    /// # Errors
    /// When the producer id or epoch is -1, or the timestamp negative and not -1.
    pub fn end_txn_marker(
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        timestamp: TimestampMs,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        commit: bool,
        coordinator_epoch: CoordinatorEpoch,
    ) -> Result<Self, EncodeError> {
        BatchBuilder::new(base_offset)
            .leader_epoch(leader_epoch)
            .timestamp(timestamp)
            .producer(producer_id, producer_epoch, Sequence::NONE)
            .transactional(true)
            .control(true)
            .control_record(ControlRecord::EndTxnMarker(EndTxnMarker { commit, coordinator_epoch }))
            .build()
    }

    /// A barrier: a control batch without a producer, which Kafka's producer state therefore does not look at.
    ///
    /// # Errors
    /// When the value cannot be written, or the timestamp is negative and not -1.
    pub fn mirror_pid_reset(
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        timestamp: TimestampMs,
        record: &MirrorPidResetRecord,
    ) -> Result<Self, EncodeError> {
        Self::control(base_offset, leader_epoch, timestamp, &ControlRecord::MirrorPidReset(record.clone()))
    }
}
