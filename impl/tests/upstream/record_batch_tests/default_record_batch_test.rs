#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's DefaultRecordBatchTest.

use bytes::{Bytes, BytesMut};
use cleanslate_log::record::{
    AssignRules, Attributes, BatchBuilder, BatchHeader, BatchReader, Compression, ControlRecord, DEFAULT_MAX_DECOMPRESSED_BYTES,
    DecodeError, EndTxnMarker, Header, RECORD_COUNT_POSITION, Record, RecordBatch, RecordOutline, TimestampType, assign_offsets,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const MAX: i32 = i32::MAX;

/// Records with timestamps 1, 2, ….
fn records(base: i64, count: i64) -> BatchBuilder {
    let record = |index| Record {
        offset: Offset(base + index),
        timestamp: TimestampMs(index + 1),
        key: Some(Bytes::from_static(b"a")),
        value: Some(Bytes::from_static(b"1")),
        headers: Vec::new(),
    };
    BatchBuilder::new(Offset(base)).records((0..count).map(record))
}

/// The batch with some bytes replaced.
pub(crate) fn patched(batch: &RecordBatch, at: usize, bytes: &[u8]) -> Bytes {
    let mut out = BytesMut::from(&batch.bytes()[..]);
    out[at..at + bytes.len()].copy_from_slice(bytes);
    out.freeze()
}

fn decoded(bytes: &Bytes) -> Result<RecordBatch, DecodeError> {
    RecordBatch::decode(bytes, 0).map(|(batch, _)| batch)
}

#[test]
fn test_write_empty_header() {
    for (transactional, control, timestamp_type) in [
        (true, true, TimestampType::CreateTime),
        (true, false, TimestampType::LogAppendTime),
        (false, true, TimestampType::LogAppendTime),
        (false, false, TimestampType::CreateTime),
    ] {
        let attributes =
            Attributes::default().with_timestamp_type(timestamp_type).with_transactional(transactional).with_control(control);
        let header = BatchHeader {
            base_offset: Offset(15),
            partition_leader_epoch: LeaderEpoch(15),
            attributes,
            last_offset_delta: 37 - 15,
            max_timestamp: TimestampMs(1_700_000_000_000),
            producer_id: ProducerId(23_423),
            producer_epoch: ProducerEpoch(145),
            base_sequence: Sequence(983),
            ..*records(0, 1).build().unwrap().header()
        };
        let batch = RecordBatch::empty_header(&header);
        batch.ensure_valid().unwrap();
        assert_eq!(decoded(batch.bytes()), Ok(batch.clone()));
        assert_eq!((batch.producer_id(), batch.producer_epoch()), (ProducerId(23_423), ProducerEpoch(145)));
        assert_eq!((batch.base_sequence(), batch.last_sequence()), (Sequence(983), Sequence(983 + 22)));
        assert_eq!((batch.base_offset(), batch.last_offset()), (Offset(15), Offset(37)));
        assert_eq!((batch.leader_epoch(), batch.timestamp_type()), (LeaderEpoch(15), timestamp_type));
        assert_eq!((batch.is_transactional(), batch.is_control()), (transactional, control));
        assert_eq!(batch.max_timestamp(), TimestampMs(1_700_000_000_000));
        assert_eq!(batch.attributes().compression(), Some(Compression::None));
        assert_eq!((batch.size_in_bytes(), batch.record_count()), (61, 0));
        assert_eq!(batch.records(), Ok(Vec::new()));
    }
}

fn check_built(batch: &RecordBatch, sequences: [i32; 2]) {
    batch.ensure_valid().unwrap();
    assert_eq!((batch.base_offset(), batch.last_offset()), (Offset(1_234_567), Offset(1_234_568)));
    assert_eq!(batch.max_timestamp(), TimestampMs(2));
    let found: Vec<Sequence> = batch.records().unwrap().iter().map(|record| batch.sequence_of(record.offset)).collect();
    assert_eq!(found, sequences.map(Sequence));
}

#[test]
fn build_default_record_batch() {
    let batch = records(1_234_567, 2).build().unwrap();
    assert_eq!((batch.producer_id(), batch.producer_epoch()), (ProducerId::NONE, ProducerEpoch::NONE));
    assert_eq!((batch.base_sequence(), batch.last_sequence()), (Sequence::NONE, Sequence::NONE));
    check_built(&batch, [-1, -1]);
}

#[test]
fn build_default_record_batch_with_producer_id() {
    let batch = records(1_234_567, 2).producer(ProducerId(23_423), ProducerEpoch(145), Sequence(983)).build().unwrap();
    assert_eq!((batch.producer_id(), batch.producer_epoch()), (ProducerId(23_423), ProducerEpoch(145)));
    assert_eq!((batch.base_sequence(), batch.last_sequence()), (Sequence(983), Sequence(984)));
    check_built(&batch, [983, 984]);
}

#[test]
fn build_default_record_batch_with_sequence_wrap_around() {
    let builder = records(1_234_567, 3).producer(ProducerId(23_423), ProducerEpoch(145), Sequence(MAX - 1));
    let batch = builder.build().unwrap();
    assert_eq!((batch.base_sequence(), batch.last_sequence()), (Sequence(MAX - 1), Sequence(0)));
    let found = batch.records().unwrap();
    assert_eq!([0, 1, 2].map(|index: usize| batch.sequence_of(found[index].offset).get()), [MAX - 1, MAX, 0]);
}

#[test]
fn test_invalid_record_size() {
    let bytes = patched(&records(0, 3).build().unwrap(), 8, &10i32.to_be_bytes());
    assert_eq!(decoded(&bytes).unwrap_err().kafka_class(), "CorruptRecordException");
}

#[test]
fn test_invalid_crc() {
    let batch = decoded(&patched(&records(0, 3).build().unwrap(), 23, &23i32.to_be_bytes())).unwrap();
    assert_eq!(batch.ensure_valid().unwrap_err().kafka_class(), "CorruptRecordException");
}

#[track_caller]
fn check_count(compression: Compression, count: i32) {
    let batch = records(0, 3).compression(compression).build().unwrap();
    let batch = decoded(&patched(&batch, RECORD_COUNT_POSITION, &count.to_be_bytes())).unwrap();
    assert_eq!(batch.records().unwrap_err().kafka_class(), "InvalidRecordException");
}

#[test]
fn test_invalid_record_count_too_many_non_compressed_v2() {
    check_count(Compression::None, 5);
}

#[test]
fn test_invalid_record_count_too_little_non_compressed_v2() {
    check_count(Compression::None, 2);
}

#[test]
fn test_invalid_record_count_too_many_compressed_v2() {
    check_count(Compression::Gzip, 5);
}

#[test]
fn test_invalid_record_count_too_little_compressed_v2() {
    check_count(Compression::Gzip, 2);
}

#[test]
fn test_set_last_offset() {
    let batch = records(0, 3).build().unwrap().with_base_offset(Offset(500 - 2));
    assert_eq!((batch.base_offset(), batch.last_offset()), (Offset(498), Offset(500)));
    batch.ensure_valid().unwrap();
    let offsets: Vec<i64> = batch.records().unwrap().iter().map(|record| record.offset.get()).collect();
    assert_eq!(offsets, [498, 499, 500]);
}

#[test]
fn test_set_partition_leader_epoch() {
    let batch = records(0, 3).build().unwrap().with_leader_epoch(LeaderEpoch(500));
    assert_eq!(batch.leader_epoch(), LeaderEpoch(500));
    batch.ensure_valid().unwrap();
}

#[test]
fn test_set_log_append_time() {
    let now = TimestampMs(15);
    let rules = AssignRules { timestamp_type: TimestampType::LogAppendTime, now, ..AssignRules::default() };
    let batch = assign_offsets(records(0, 3).build().unwrap().bytes(), &rules).unwrap().batch.unwrap();
    assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (TimestampType::LogAppendTime, now));
    batch.ensure_valid().unwrap();
    assert!(batch.records().unwrap().iter().all(|record| record.timestamp == now));
}

/// A max timestamp comes with what it means, of which there are two kinds. Where the crate has a third, none of magic 0, it does not
/// compile (the documentation of `with_max_timestamp`).
#[test]
fn test_set_no_timestamp_type_not_allowed() {
    let batch = records(0, 3).build().unwrap();
    for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
        let set = batch.with_max_timestamp(timestamp_type, TimestampMs(-1));
        assert_eq!((set.timestamp_type(), set.max_timestamp()), (timestamp_type, TimestampMs(-1)));
        set.ensure_valid().unwrap();
    }
}

/// What the size of the batch is going to be.
#[test]
fn test_size_in_bytes() {
    let now = 1_700_000_000_000;
    let text = |text: &'static str| Some(Bytes::from(text));
    let record = |index: i64, after: i64, key: Option<Bytes>, value: Option<Bytes>| {
        let (offset, timestamp) = (Offset(index), TimestampMs(now + after));
        Record { offset, timestamp, key, value, headers: Vec::new() }
    };
    let headers = vec![Header { key: "foo".into(), value: text("value") }, Header { key: "bar".into(), value: None }];
    let builder = BatchBuilder::new(Offset(0)).records([
        record(0, 0, text("key"), text("value")),
        record(1, 30_000, None, text("value")),
        record(2, 60_000, text("key"), None),
        Record { headers, ..record(3, 60_000, text("key"), text("value")) },
    ]);
    assert_eq!(builder.uncompressed_size_in_bytes().unwrap(), builder.build().unwrap().size_in_bytes());
}

#[test]
fn test_read_and_write_control_batch() {
    let marker = ControlRecord::EndTxnMarker(EndTxnMarker { commit: true, coordinator_epoch: CoordinatorEpoch(15) });
    let batch = BatchBuilder::new(Offset(0))
        .producer(ProducerId(1), ProducerEpoch(0), Sequence::NONE)
        .transactional(true)
        .control(true)
        .control_record(marker.clone())
        .build()
        .unwrap();
    let read: Vec<RecordBatch> = BatchReader::new(batch.bytes().clone()).map(Result::unwrap).collect();
    assert_eq!(read.len(), 1);
    assert!(read[0].is_control() && read[0].is_transactional());
    assert_eq!(read[0].records().unwrap().len(), 1);
    assert_eq!(read[0].control_record(), Ok(Some(marker)));
}

#[test]
fn test_increment_sequence() {
    assert_eq!(Sequence(5).plus(5), Sequence(10));
    assert_eq!(Sequence(MAX).plus(1), Sequence(0));
    assert_eq!(Sequence(MAX - 5).plus(10), Sequence(4));
}

#[test]
fn test_decrement_sequence() {
    assert_eq!(Sequence(5).minus(5), Sequence(0));
    assert_eq!(Sequence(0).minus(1), Sequence(MAX));
}

const CODECS: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// Records one by one are those that are read at once.
#[test]
fn test_streaming_iterator_consistency() {
    for codec in CODECS {
        let batch = records(0, 3).compression(codec).build().unwrap();
        let streamed: Result<Vec<Record>, DecodeError> = batch.record_reader(DEFAULT_MAX_DECOMPRESSED_BYTES).collect();
        assert_eq!((streamed.clone().unwrap().len(), streamed), (3, batch.records()), "{codec:?}");
    }
}

/// A large value, no key, no value, neither, and headers.
#[test]
fn test_skip_key_value_iterator_correctness() {
    let header = |key: &'static str, value: Option<&'static str>| Header { key: key.into(), value: value.map(Bytes::from) };
    let record = |index: i64, key: Option<&'static str>, value: Option<Bytes>, headers| Record {
        offset: Offset(index),
        timestamp: TimestampMs(index + 1),
        key: key.map(Bytes::from),
        value,
        headers,
    };
    let all = [
        record(0, Some("a"), Some(Bytes::from_static(b"1")), Vec::new()),
        record(1, Some("b"), Some(vec![7; 200 * 1024].into()), Vec::new()),
        record(2, None, Some(Bytes::from_static(b"3")), Vec::new()),
        record(3, Some("d"), None, Vec::new()),
        record(4, None, None, Vec::new()),
        record(5, Some("e"), Some(Bytes::from_static(b"5")), vec![header("k", Some("v")), header("n", None)]),
    ];
    for codec in CODECS {
        let batch = BatchBuilder::new(Offset(0)).compression(codec).records(all.clone()).build().unwrap();
        let outlines: Vec<_> = batch.outlines(DEFAULT_MAX_DECOMPRESSED_BYTES).map(Result::unwrap).collect();
        let expected: Vec<_> = batch.records().unwrap().iter().map(outline_of).collect();
        assert_eq!((outlines.len(), &outlines), (6, &expected), "{codec:?}");
        assert_eq!(outlines[1].value_size, Some(200 * 1024));
    }
}

/// What is left of a record without its key, value and headers.
fn outline_of(record: &Record) -> RecordOutline {
    RecordOutline {
        offset: record.offset,
        timestamp: record.timestamp,
        key_size: record.key.as_ref().map(Bytes::len),
        value_size: record.value.as_ref().map(Bytes::len),
        header_count: record.headers.len(),
    }
}
