#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's MemoryRecordsBuilderTest.

use bytes::{Bytes, BytesMut};
use cleanslate_log::record::{
    AnyBatch, AnyBatchReader, BatchBuilder, Compression, ControlRecord, EncodeError, EndTxnMarker, LeaderChange, Magic,
    MaxTimestamp, Record, RecordsBuilder, TimestampType,
};
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
    // The old formats know neither transactions nor producers, nor control records, nor a delete horizon.
    for magic in [Magic::V0, Magic::V1] {
        let refused = [
            producer(one(), 9809, 15, 2342).transactional(true),
            BatchBuilder::new(Offset(0)).control(true),
            one().delete_horizon(TimestampMs(0)),
        ];
        for settings in refused {
            assert_eq!(class(RecordsBuilder::new(magic, settings, 128)), Some(REFUSED));
        }
        let mut idempotent = RecordsBuilder::new(magic, producer(one(), 9809, 15, 2342), 128).unwrap();
        assert_eq!(class(idempotent.build()), Some(REFUSED));
    }
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
    assert_eq!(times(builder.clone()), (TimestampType::LogAppendTime, 1000, vec![1000, 1000, 1000]));
    for (magic, codec) in formats() {
        let records = RecordsBuilder::new(magic, builder.clone().compression(codec), 1024).unwrap();
        let own = magic < Magic::V2 && codec == Compression::None;
        assert_eq!(max_of(&records), (1000, Some(if own { 0 } else { 2 })), "{magic:?} {codec:?}");
    }
}

/// The largest timestamp and the offset with it.
fn max_of(records: &RecordsBuilder) -> (i64, Option<i64>) {
    let MaxTimestamp { timestamp, offset } = records.max_timestamp();
    (timestamp.get(), offset.map(Offset::get))
}

#[test]
fn build_using_create_time() {
    assert_eq!(times(timed([0, 2, 1])), (TimestampType::CreateTime, 2, vec![0, 2, 1]));
    for (magic, codec) in formats() {
        let records = RecordsBuilder::new(magic, timed([0, 2, 1]).compression(codec), 1024).unwrap();
        let expected = match (magic, codec) {
            (Magic::V0, _) => (-1, None),
            (Magic::V1, Compression::None) => (2, Some(1)),
            _ => (2, Some(2)),
        };
        assert_eq!(max_of(&records), expected, "{magic:?} {codec:?}");
    }
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

const STATE: &str = "IllegalStateException";

/// Every format with every codec that it has.
pub(crate) fn formats() -> Vec<(Magic, Compression)> {
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    let old = [Magic::V0, Magic::V1].into_iter().flat_map(|magic| [None, Gzip, Snappy, Lz4].map(|codec| (magic, codec)));
    old.chain([None, Gzip, Snappy, Lz4, Zstd].map(|codec| (Magic::V2, codec))).collect()
}

/// A builder at offset 0 with a limit in bytes.
pub(crate) fn limited(magic: Magic, codec: Compression, write_limit: usize) -> RecordsBuilder {
    RecordsBuilder::new(magic, BatchBuilder::new(Offset(0)).compression(codec), write_limit).unwrap()
}

pub(crate) fn simple(timestamp: i64, key: &'static str, value: &'static str) -> Record {
    let (key, value) = (Some(Bytes::from(key)), Some(Bytes::from(value)));
    Record { timestamp: TimestampMs(timestamp), key, value, ..Record::default() }
}

pub(crate) fn batches_of(bytes: Bytes) -> Vec<AnyBatch> {
    AnyBatchReader::new(bytes).map(Result::unwrap).collect()
}

pub(crate) fn records_of(bytes: Bytes) -> Vec<Record> {
    batches_of(bytes).iter().flat_map(|batch| batch.records().unwrap()).collect()
}

/// What is in front of a batch in Kafka's tests, which have a position of 0 and one of 15.
fn in_front() -> [BytesMut; 2] {
    [BytesMut::new(), BytesMut::from(&[7; 15][..])]
}

/// Nothing is built without records, and the buffer stays where it is.
#[test]
fn test_write_empty_record_set() {
    for (magic, codec) in formats() {
        for mut buffer in in_front() {
            let before = buffer.clone();
            limited(magic, codec, 128).build_into(&mut buffer).unwrap();
            assert_eq!(buffer, before, "{magic:?} {codec:?}");
        }
    }
}

/// The limit is for those who ask.
#[test]
fn write_past_limit() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 64);
        builder.set_estimated_compression_ratio(0.5);
        builder.append_next(simple(0, "a", "1")).unwrap();
        builder.append_next(simple(1, "b", "2")).unwrap();
        assert!(!builder.has_room_for(&simple(2, "c", "3")), "{magic:?} {codec:?}");
        builder.append_next(simple(2, "c", "3")).unwrap();
        let built = builder.build().unwrap();
        let found = builder.max_timestamp();
        let timed = magic > Magic::V0;
        assert_eq!(found.timestamp, TimestampMs(if timed { 2 } else { -1 }), "{magic:?} {codec:?}");
        assert_eq!(found.offset, timed.then_some(Offset(2)), "{magic:?} {codec:?}");
        let times: Vec<i64> = records_of(built.clone()).iter().map(|record| record.timestamp.get()).collect();
        assert_eq!(times, if timed { [0, 1, 2] } else { [-1; 3] }, "{magic:?} {codec:?}");
        for batch in batches_of(built) {
            let timestamp_type = match &batch {
                AnyBatch::V2(batch) => Some(batch.timestamp_type()),
                AnyBatch::Legacy(batch) => batch.timestamp_type(),
            };
            assert_eq!(timestamp_type, timed.then_some(TimestampType::CreateTime), "{magic:?} {codec:?}");
        }
    }
}

/// One record goes in whatever the limit is.
#[test]
fn test_small_write_limit() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 0);
        let record = simple(0, "foo", "bar");
        assert_eq!((builder.is_full(), builder.has_room_for(&record)), (false, true));
        builder.append_next(record.clone()).unwrap();
        assert_eq!((builder.is_full(), builder.has_room_for(&record)), (true, false));
        let read = records_of(builder.build().unwrap());
        assert_eq!(read.len(), 1);
        assert_eq!((&read[0].key, &read[0].value), (&record.key, &record.value));
    }
}

/// Grows with every record, and is the size in the end; without compression, all the time.
#[test]
fn test_estimated_size_in_bytes() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 1024);
        let mut before = 0;
        for (timestamp, value) in (0..).zip(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]) {
            let record = Record { key: None, ..simple(timestamp, "", value) };
            builder.append_next(record).unwrap();
            assert!(builder.estimated_size_in_bytes() > before, "{magic:?} {codec:?}");
            before = builder.estimated_size_in_bytes();
        }
        let built = builder.build().unwrap();
        assert_eq!(builder.estimated_size_in_bytes(), built.len());
        if codec == Compression::None {
            assert_eq!(before, built.len(), "{magic:?}");
        }
    }
}

/// The checksums that are written are those that are read.
#[test]
fn test_appended_checksum_consistency() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 512);
        builder.append_next(simple(1, "key", "value")).unwrap();
        let batches = batches_of(builder.build().unwrap());
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].ensure_valid(), Ok(()));
        let AnyBatch::Legacy(batch) = &batches[0] else { continue };
        let records = batch.records().unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].ensure_valid(), Ok(()), "{magic:?} {codec:?}");
    }
}

fn class<T>(result: Result<T, EncodeError>) -> Option<&'static str> {
    result.err().map(|error| error.kafka_class())
}

#[test]
fn should_throw_illegal_state_exception_on_build_when_aborted() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 128);
        builder.abort();
        assert_eq!(class(builder.build()), Some(STATE));
    }
}

#[test]
fn should_throw_illegal_state_exception_on_close_when_aborted() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 128);
        builder.abort();
        assert_eq!(class(builder.close()), Some(STATE));
    }
}

#[test]
fn should_throw_illegal_state_exception_on_append_when_aborted() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 128);
        builder.abort();
        assert_eq!(class(builder.append_next(simple(0, "a", "1"))), Some(STATE));
    }
}

#[test]
fn should_throw_illegal_state_exception_on_append_when_closed() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 128);
        builder.append_next(simple(0, "a", "1")).unwrap();
        let built = builder.build().unwrap();
        assert_eq!(class(builder.append_next(simple(0, "a", "1"))), Some(STATE));
        assert_eq!(builder.build(), Ok(built), "what was built stays");
    }
}

/// What is in front of an aborted batch stays, and nothing comes behind it.
#[test]
fn should_reset_buffer_to_initial_position_on_abort() {
    for (magic, codec) in formats() {
        for mut buffer in in_front() {
            let before = buffer.clone();
            let mut builder = limited(magic, codec, 128);
            builder.append_next(simple(0, "a", "1")).unwrap();
            builder.abort();
            assert_eq!(class(builder.build_into(&mut buffer)), Some(STATE));
            assert_eq!((buffer, builder.estimated_size_in_bytes(), builder.record_count()), (before, 0, 0));
        }
    }
}

/// Beyond Kafka's own tests: a last offset that is set is a compressed set's, and the largest timestamp's, also below the records.
#[test]
fn the_last_offset_that_is_set() {
    for (magic, codec) in formats() {
        for (last, append_time) in [(20, None), (5, None), (20, Some(TimestampMs(77))), (5, Some(TimestampMs(77)))] {
            let settings = BatchBuilder::new(Offset(3)).compression(codec).last_offset(Offset(last));
            let settings = append_time.iter().fold(settings, |settings, time| settings.log_append_time(*time));
            let mut builder = RecordsBuilder::new(magic, settings, 1000).unwrap();
            for (offset, timestamp) in [(10, 5), (11, 6)] {
                let record = Record { offset: Offset(offset), timestamp: TimestampMs(timestamp), ..Record::default() };
                builder.append(record).unwrap();
            }
            let built = builder.build().unwrap();
            let batches: Vec<_> = AnyBatchReader::new(built).map(|batch| batch.unwrap().last_offset().0).collect();
            let own_entries = magic < Magic::V2 && codec == Compression::None;
            assert_eq!(batches, if own_entries { vec![10, 11] } else { vec![last] }, "{magic:?} {codec:?}");
            let offset = match (own_entries, append_time, magic) {
                (_, None, Magic::V0) => None,
                (true, Some(_), _) => Some(Offset(3)),
                (true, None, _) => Some(Offset(11)),
                _ => Some(Offset(last)),
            };
            assert_eq!(builder.max_timestamp().offset, offset, "{magic:?} {codec:?} {append_time:?}");
        }
    }
}

/// Beyond Kafka's own tests: a record is none of a control batch because of its key.
#[test]
fn a_control_key_makes_no_control_record() {
    let settings = BatchBuilder::new(Offset(0)).control(true);
    let mut builder = RecordsBuilder::new(Magic::V2, settings, 1000).unwrap();
    let record = Record { key: Some(Bytes::from_static(&[0, 0, 0, 0])), ..Record::default() };
    assert_eq!(class(builder.append_next(record.clone())), Some(REFUSED));
    assert_eq!((builder.record_count(), builder.append(record)), (0, Ok(())));
}
