#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LogValidatorTest: its rows of magic 2, and what becomes of magic 0 and 1.

mod formats;

use bytes::{Bytes, BytesMut};
use cleanslate_log::record::{
    AssignError, AssignRules, Assigned, BatchBuilder, Compression, RECORD_COUNT_POSITION, Record, RecordBatch, RecordError,
    RecordFault, TimestampType, assign_offsets,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::upstream::legacy::{mixed_set, same};

mod conversions;

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const INVALID: &str = "InvalidRecordException";
const BAD_TIME: &str = "InvalidTimestampException";
const HOUR_MS: i64 = 3_600_000;
const CODECS: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn rules() -> AssignRules {
    AssignRules { now: NOW, timestamp_before_max_ms: 1000, timestamp_after_max_ms: 1000, ..AssignRules::default() }
}

/// Records with times relative to [`NOW`].
fn timed(compression: Compression, times: &[i64]) -> BatchBuilder {
    let record = |(time, offset): (&i64, i64)| Record {
        offset: Offset(offset),
        timestamp: TimestampMs(NOW.get() + time),
        key: Some(Bytes::from_static(b"key")),
        value: Some(Bytes::from_static(b"value")),
        headers: Vec::new(),
    };
    BatchBuilder::new(Offset(0)).compression(compression).records(times.iter().zip(0..).map(record))
}

fn assign(batch: &RecordBatch, rules: &AssignRules) -> Result<Assigned, &'static str> {
    assign_offsets(batch.bytes(), rules).map_err(|error| error.kafka_class())
}

/// The batch with some bytes replaced, and the CRC that belongs to it.
fn patched(batch: &RecordBatch, patches: &[(usize, i32)]) -> RecordBatch {
    let mut bytes = BytesMut::from(&batch.bytes()[..]);
    for (at, number) in patches {
        bytes[*at..*at + 4].copy_from_slice(&number.to_be_bytes());
    }
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    RecordBatch::decode(&bytes.freeze(), 0).unwrap().0
}

fn commit() -> RecordBatch {
    let (id, epoch, coordinator) = (ProducerId(23_423), ProducerEpoch(5), CoordinatorEpoch(0));
    RecordBatch::end_txn_marker(Offset(0), LeaderEpoch(0), NOW, id, epoch, true, coordinator).unwrap()
}

#[test]
fn test_control_records_not_allowed_from_clients() {
    assert_eq!(assign(&commit(), &rules()).unwrap_err(), INVALID);
}

#[test]
fn test_control_records_not_compressed() {
    let rules = AssignRules { from_client: false, target: Some(Compression::Snappy), ..rules() };
    let batch = assign(&commit(), &rules).unwrap().batch.unwrap();
    assert_eq!(batch.attributes().compression(), Some(Compression::None));
    assert!(batch.is_control());
    assert_eq!(batch.records(), commit().records());
}

#[test]
fn test_batch_without_records_not_allowed() {
    for target in CODECS {
        let whole = timed(Compression::None, &[0]).producer(ProducerId(1324), ProducerEpoch(10), Sequence(984)).build().unwrap();
        let empty = RecordBatch::empty_header(whole.header());
        assert_eq!(empty.size_in_bytes(), 61);
        let rules = AssignRules { target: Some(target), ..rules() };
        assert_eq!(assign(&empty, &rules).unwrap_err(), INVALID);
    }
}

#[test]
fn check_only_one_batch() {
    for source in [Compression::None, Compression::Gzip] {
        for target in [Compression::None, Compression::Gzip] {
            let batch = timed(source, &[0]).build().unwrap();
            let twice: Bytes = [&batch.bytes()[..], batch.bytes()].concat().into();
            let rules = AssignRules { target: Some(target), ..rules() };
            assert_eq!(assign_offsets(&twice, &rules).unwrap_err().kafka_class(), INVALID);
        }
    }
}

#[test]
fn check_invalid_sequence() {
    for source in [Compression::None, Compression::Gzip] {
        for target in [Compression::None, Compression::Gzip] {
            let batch = timed(source, &[0]).producer(ProducerId(1234), ProducerEpoch(0), Sequence(0)).build().unwrap();
            let rules = AssignRules { target: Some(target), ..rules() };
            assert!(assign(&batch, &rules).is_ok());
            assert_eq!(assign(&patched(&batch, &[(53, -2)]), &rules).unwrap_err(), INVALID);
        }
    }
}

#[test]
fn check_invalid_checksum() {
    for compression in [Compression::None, Compression::Gzip] {
        let batch = timed(compression, &[0]).build().unwrap();
        let mut bytes = BytesMut::from(&batch.bytes()[..]);
        bytes[20] ^= 1;
        let error = assign_offsets(&bytes.freeze(), &rules()).unwrap_err();
        assert_eq!(error.kafka_class(), "CorruptRecordException");
    }
}

#[test]
fn check_no_key_compacted_topic() {
    for target in [Compression::None, Compression::Gzip] {
        let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(b"value")).build().unwrap();
        let rules = AssignRules { compacted: true, target: Some(target), ..rules() };
        let error = assign_offsets(batch.bytes(), &rules).unwrap_err();
        assert_eq!(error, AssignError::Records(vec![RecordError { index: 0, fault: RecordFault::NoKey }]));
    }
}

fn with_counts(last_offset_delta: i32, count: i32) -> [Result<Assigned, &'static str>; 2] {
    [Compression::None, Compression::Gzip].map(|compression| {
        let batch = timed(compression, &[0, 0, 0]).build().unwrap();
        let batch = patched(&batch, &[(23, last_offset_delta), (RECORD_COUNT_POSITION, count)]);
        assign(&batch, &rules())
    })
}

#[test]
fn test_record_batch_with_count_overrides() {
    assert!(with_counts(2, 3).iter().all(Result::is_ok));
}

#[test]
fn test_inconsistent_count_and_offset() {
    for (last_offset_delta, count) in [(0, 3), (15, 3), (-3, 3)] {
        assert_eq!(with_counts(last_offset_delta, count), [Err(INVALID), Err(INVALID)]);
    }
}

#[test]
fn test_unmatched_number_of_records() {
    for (last_offset_delta, count) in [(5, 6), (1, 2)] {
        assert_eq!(with_counts(last_offset_delta, count), [Err(INVALID), Err(INVALID)]);
    }
}

#[test]
fn test_validation_of_batches_with_non_sequential_inner_offsets() {
    for compression in [Compression::None, Compression::Gzip] {
        let record = |offset| Record { offset: Offset(offset), timestamp: NOW, ..Record::default() };
        let batch = BatchBuilder::new(Offset(0)).compression(compression).records([0, 2, 3].map(record)).build().unwrap();
        assert_eq!(assign(&batch, &rules()).unwrap_err(), INVALID);
    }
}

fn check_offsets(compression: Compression) {
    let batch = timed(compression, &[0, 0, 0]).build().unwrap();
    let assigned = assign(&batch, &AssignRules { next_offset: Offset(1_234_567), ..rules() }).unwrap();
    let batch = assigned.batch.unwrap();
    assert_eq!((batch.base_offset(), batch.last_offset()), (Offset(1_234_567), Offset(1_234_569)));
    assert_eq!(assigned.next_offset, Offset(1_234_570));
    let offsets: Vec<i64> = batch.records().unwrap().iter().map(|record| record.offset.get()).collect();
    assert_eq!(offsets, [1_234_567, 1_234_568, 1_234_569]);
}

#[test]
fn test_relative_offset_assignment_non_compressed_v2() {
    check_offsets(Compression::None);
}

#[test]
fn test_relative_offset_assignment_compressed_v2() {
    check_offsets(Compression::Gzip);
}

/// Times, producer and leader epoch of a batch that goes from one codec to another.
fn check_kept(source: Compression, target: Compression, rebuilt: bool) {
    let (id, epoch, sequence) = (ProducerId(1324), ProducerEpoch(10), Sequence(984));
    let batch = timed(source, &[-1, 1, 0]).producer(id, epoch, sequence).transactional(true).build().unwrap();
    let rules = AssignRules { target: Some(target), leader_epoch: LeaderEpoch(40), ..rules() };
    let assigned = assign(&batch, &rules).unwrap();
    assert_eq!((assigned.rebuilt, assigned.max_timestamp), (rebuilt, TimestampMs(NOW.get() + 1)));
    let stored = assigned.batch.unwrap();
    stored.ensure_valid().unwrap();
    assert_eq!((stored.producer_id(), stored.producer_epoch(), stored.base_sequence()), (id, epoch, sequence));
    assert_eq!((stored.leader_epoch(), stored.is_transactional()), (LeaderEpoch(40), true));
    assert_eq!((stored.timestamp_type(), stored.attributes().compression()), (TimestampType::CreateTime, Some(target)));
    assert_eq!(stored.max_timestamp(), TimestampMs(NOW.get() + 1));
    assert_eq!(stored.records(), batch.records());
}

#[test]
fn check_non_compressed() {
    check_kept(Compression::None, Compression::None, false);
}

#[test]
fn check_compressed() {
    check_kept(Compression::Gzip, Compression::Gzip, false);
}

#[test]
fn check_recompression() {
    check_kept(Compression::None, Compression::Gzip, true);
}

fn check_append_time(source: Compression, target: Compression) {
    let batch = timed(source, &[-HOUR_MS, -HOUR_MS, -HOUR_MS]).build().unwrap();
    let rules = AssignRules { timestamp_type: TimestampType::LogAppendTime, target: Some(target), ..rules() };
    let assigned = assign(&batch, &rules).unwrap();
    let stored = assigned.batch.unwrap();
    stored.ensure_valid().unwrap();
    assert_eq!(assigned.max_timestamp, NOW);
    assert_eq!((stored.timestamp_type(), stored.max_timestamp()), (TimestampType::LogAppendTime, NOW));
    assert!(stored.records().unwrap().iter().all(|record| record.timestamp == NOW));
    if source == target {
        assert_eq!(stored.size_in_bytes(), batch.size_in_bytes());
    }
    assert_eq!(assigned.rebuilt, source != target);
}

#[test]
fn check_log_append_time_non_compressed() {
    check_append_time(Compression::None, Compression::None);
}

#[test]
fn check_log_append_time_without_recompression() {
    check_append_time(Compression::Gzip, Compression::Gzip);
}

#[test]
fn check_log_append_time_with_recompression() {
    check_append_time(Compression::None, Compression::Gzip);
}

#[test]
fn test_invalid_create_time_non_compressed_v2() {
    let batch = timed(Compression::None, &[-1001]).build().unwrap();
    assert_eq!(assign(&batch, &rules()).unwrap_err(), BAD_TIME);
}

#[test]
fn test_invalid_create_time_compressed_v2() {
    let batch = timed(Compression::Gzip, &[-1001]).build().unwrap();
    assert_eq!(assign(&batch, &rules()).unwrap_err(), BAD_TIME);
}

#[test]
fn test_record_with_past_timestamp_is_rejected() {
    let day_ms = 24 * HOUR_MS;
    let rules = AssignRules { timestamp_before_max_ms: day_ms, timestamp_after_max_ms: HOUR_MS, ..rules() };
    for (age, refused) in [(day_ms + 1, true), (day_ms, false)] {
        let result = assign(&timed(Compression::Gzip, &[-age]).build().unwrap(), &rules);
        assert_eq!(result.err(), refused.then_some(BAD_TIME));
    }
}

#[test]
fn test_record_with_future_timestamp_is_rejected() {
    let rules = AssignRules { timestamp_before_max_ms: 24 * HOUR_MS, timestamp_after_max_ms: HOUR_MS, ..rules() };
    for (ahead, refused) in [(HOUR_MS + 1, true), (HOUR_MS, false)] {
        let result = assign(&timed(Compression::Gzip, &[ahead]).build().unwrap(), &rules);
        assert_eq!(result.err(), refused.then_some(BAD_TIME));
    }
}

#[test]
fn test_invalid_timestamp_exception_has_batch_index() {
    let batch = timed(Compression::Gzip, &[1001, 1001, 1001]).build().unwrap();
    let error = assign_offsets(batch.bytes(), &rules()).unwrap_err();
    assert_eq!(error.kafka_class(), BAD_TIME);
    let AssignError::Records(errors) = error else { panic!("{error}") };
    assert_eq!(errors.iter().map(|error| error.index).collect::<Vec<_>>(), [0, 1, 2]);
}

fn unkeyed(count: usize, timestamp: TimestampMs) -> RecordBatch {
    let builder = BatchBuilder::new(Offset(0)).timestamp(timestamp).compression(Compression::Gzip);
    (0..count).fold(builder, |builder, _| builder.record(None, Some(b"value"))).build().unwrap()
}

#[test]
fn test_invalid_record_exception_has_batch_index() {
    let rules = AssignRules { compacted: true, ..rules() };
    let error = assign_offsets(unkeyed(20, NOW).bytes(), &rules).unwrap_err();
    assert_eq!(error.kafka_class(), INVALID);
    let AssignError::Records(errors) = error else { panic!("{error}") };
    assert_eq!(errors.iter().map(|error| error.index).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
}

#[test]
fn test_batch_with_invalid_records_and_invalid_timestamp() {
    let record = |(key, time): (Option<&'static [u8]>, i64)| Record {
        timestamp: TimestampMs(NOW.get() + time),
        key: key.map(Bytes::from_static),
        ..Record::default()
    };
    let cases = [(None, 0), (None, 0), (Some(&b"key"[..]), 1001), (None, 0), (None, 0)];
    let numbered = cases.map(record).into_iter().zip(0..).map(|(record, offset)| Record { offset: Offset(offset), ..record });
    let batch = BatchBuilder::new(Offset(0)).compression(Compression::Gzip).records(numbered).build().unwrap();
    let error = assign_offsets(batch.bytes(), &AssignRules { compacted: true, ..rules() }).unwrap_err();
    assert_eq!(error.kafka_class(), BAD_TIME);
    let AssignError::Records(errors) = error else { panic!("{error}") };
    assert_eq!(errors.len(), 5);
}

#[test]
fn test_different_level_does_not_cause_recompression() {
    let batch = timed(Compression::Gzip, &[0, 0]).leader_epoch(LeaderEpoch(0)).build().unwrap();
    let assigned = assign(&batch, &AssignRules { target: Some(Compression::Gzip), ..rules() }).unwrap();
    assert_eq!((assigned.batch, assigned.rebuilt), (Some(batch), false));
}

#[test]
fn test_different_codec_causes_recompression() {
    let batch = timed(Compression::Gzip, &[0, 0]).build().unwrap();
    let assigned = assign(&batch, &AssignRules { target: Some(Compression::Lz4), ..rules() }).unwrap();
    let stored = assigned.batch.unwrap();
    assert!(assigned.rebuilt);
    assert_eq!(stored.attributes().compression(), Some(Compression::Lz4));
    assert_eq!(stored.records(), batch.records());
}

fn assign_bytes(bytes: &Bytes) -> Result<Assigned, &'static str> {
    assign_offsets(bytes, &AssignRules { timestamp_before_max_ms: i64::MAX, ..rules() }).map_err(|error| error.kafka_class())
}

/// Records of magic 0 and 1 without compression are batches of their own; they become one.
#[test]
fn check_allow_multi_batch() {
    for magic in [0, 1] {
        for target in CODECS {
            let bytes: Bytes = [same(magic, 0, Compression::None, 1), same(magic, 0, Compression::None, 2)].concat().into();
            let rules = AssignRules { target: Some(target), next_offset: Offset(1_234_567), ..rules() };
            let assigned = assign_offsets(&bytes, &rules).unwrap();
            let batch = assigned.batch.unwrap();
            assert_eq!((batch.base_offset(), batch.last_offset(), batch.record_count()), (Offset(1_234_567), Offset(1_234_569), 3));
            assert_eq!(batch.attributes().compression(), Some(target));
        }
    }
    let sets: Bytes = [same(1, 0, Compression::Gzip, 1), same(1, 0, Compression::Gzip, 1)].concat().into();
    assert_eq!(assign_bytes(&sets).unwrap_err(), INVALID);
}

/// A record of a set has to have the magic of its set.
#[test]
fn check_mismatch_magic() {
    for (outer, inner) in [(0, 1), (1, 0)] {
        let set = mixed_set(outer, inner);
        assert_eq!(assign_bytes(&set).unwrap_err(), INVALID, "{outer} around {inner}");
        assert!(assign_bytes(&mixed_set(outer, outer)).is_ok());
    }
}
