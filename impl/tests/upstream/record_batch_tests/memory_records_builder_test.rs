#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's MemoryRecordsBuilderTest.

use cleanslate_log::record::{BatchBuilder, ControlRecord, EndTxnMarker, LeaderChange, Record, TimestampType};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const REFUSED: &str = "IllegalArgumentException";

fn one() -> BatchBuilder {
    BatchBuilder::new(Offset(0)).record(Some(b"foo"), Some(b"bar"))
}

#[track_caller]
fn check_refused(builder: BatchBuilder) {
    assert_eq!(builder.build().unwrap_err().kafka_class(), REFUSED);
}

fn producer(builder: BatchBuilder, id: i64, epoch: i16, sequence: i32) -> BatchBuilder {
    builder.producer(ProducerId(id), ProducerEpoch(epoch), Sequence(sequence))
}

#[test]
fn test_write_transactional_record_set() {
    let batch = producer(one(), 9809, 15, 2342).transactional(true).build().unwrap();
    assert!(batch.is_transactional());
    assert_eq!((batch.producer_id(), batch.producer_epoch()), (ProducerId(9809), ProducerEpoch(15)));
    assert_eq!(batch.base_sequence(), Sequence(2342));
}

#[test]
fn test_write_transactional_with_invalid_pid() {
    check_refused(producer(one(), -1, 15, 2342).transactional(true));
}

#[test]
fn test_write_idempotent_with_invalid_epoch() {
    check_refused(producer(one(), 9809, -1, 2342));
}

#[test]
fn test_write_idempotent_with_invalid_base_sequence() {
    check_refused(producer(one(), 9809, 15, -1));
}

fn marker() -> ControlRecord {
    ControlRecord::EndTxnMarker(EndTxnMarker { commit: false, coordinator_epoch: CoordinatorEpoch(0) })
}

#[test]
fn test_write_end_txn_marker_non_transactional_batch() {
    check_refused(producer(BatchBuilder::new(Offset(0)), 9809, 15, -1).control(true).control_record(marker()));
}

#[test]
fn test_write_end_txn_marker_non_control_batch() {
    check_refused(producer(BatchBuilder::new(Offset(0)), 9809, 15, 2342).transactional(true).control_record(marker()));
}

#[test]
fn test_write_leader_change_control_batch_without_leader_epoch() {
    let record = ControlRecord::LeaderChange(LeaderChange { leader_id: 1, ..LeaderChange::default() });
    let without = BatchBuilder::new(Offset(0)).control(true).control_record(record.clone());
    check_refused(without.clone());
    assert_eq!(without.leader_epoch(LeaderEpoch(5)).build().unwrap().control_record(), Ok(Some(record)));
}

fn timed(timestamps: [i64; 3]) -> BatchBuilder {
    let records = timestamps.into_iter().zip(0..);
    BatchBuilder::new(Offset(0)).records(records.map(|(timestamp, offset)| Record {
        offset: Offset(offset),
        timestamp: TimestampMs(timestamp),
        ..Record::default()
    }))
}

fn times(builder: BatchBuilder) -> (TimestampType, i64, Vec<i64>) {
    let batch = builder.build().unwrap();
    let records = batch.records().unwrap().iter().map(|record| record.timestamp.get()).collect();
    (batch.timestamp_type(), batch.max_timestamp().get(), records)
}

#[test]
fn build_using_log_append_time() {
    let builder = timed([0, 2, 1]).log_append_time(TimestampMs(1000));
    assert_eq!(times(builder), (TimestampType::LogAppendTime, 1000, vec![1000, 1000, 1000]));
}

#[test]
fn build_using_create_time() {
    assert_eq!(times(timed([0, 2, 1])), (TimestampType::CreateTime, 2, vec![0, 2, 1]));
}

#[test]
fn test_append_at_invalid_offset() {
    let record = |offset| Record { offset: Offset(offset), timestamp: TimestampMs(10), ..Record::default() };
    let builder = BatchBuilder::new(Offset(0)).append(record(0));
    check_refused(builder.clone().append(record(0)));
    check_refused(builder.append(record(-1)));
}

#[test]
fn test_record_timestamps_with_delete_horizon() {
    let batch = timed([50, 100, 150]).delete_horizon(TimestampMs(100)).build().unwrap();
    assert_eq!(batch.delete_horizon(), Some(TimestampMs(100)));
    let found: Vec<i64> = batch.records().unwrap().iter().map(|record| record.timestamp.get()).collect();
    assert_eq!(found, [50, 100, 150]);
}
