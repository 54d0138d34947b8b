#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's MemoryRecordsTest, as far as it is not about compaction.

use bytes::Bytes;
use cleanslate_log::record::{
    AnyBatch, AnyBatchReader, BatchBuilder, BatchReader, Compression, ControlRecord, EndTxnMarker, Header, LeaderChange, Magic,
    Record, RecordBatch, RecordsBuilder,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::default_record_batch_test::patched;
use super::memory_records_builder_test::{batches_of, formats, limited, records_of, simple};
use crate::upstream::legacy::legacy;

fn three(base: i64) -> BatchBuilder {
    let record = |index: i64| Record {
        offset: Offset(base + index),
        timestamp: TimestampMs(11 + index),
        key: Some(Bytes::from_static(b"a")),
        value: Some(Bytes::from_static(b"1")),
        headers: Vec::new(),
    };
    BatchBuilder::new(Offset(base)).records((0..3).map(record))
}

#[test]
fn test_iterator() {
    for base in [0, 57] {
        let batches = [three(base).build().unwrap(), three(base + 3).build().unwrap()];
        let bytes: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes().to_vec()).collect();
        let read: Vec<RecordBatch> = BatchReader::new(bytes.into()).map(Result::unwrap).collect();
        assert_eq!(read, batches);
        let offsets: Vec<i64> = read.iter().flat_map(|batch| batch.records().unwrap()).map(|r| r.offset.get()).collect();
        assert_eq!(offsets, (base..base + 6).collect::<Vec<i64>>());
    }
}

#[test]
fn test_iterator_of_old_formats() {
    let pairs = [("a", "1"), ("b", "2"), ("c", "3"), ("e", "5")].map(|(key, value)| (Some(key.as_bytes()), Some(value.as_bytes())));
    for magic in [0, 1] {
        for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
            for base in [0, 57] {
                let bytes = legacy(magic, base, codec, &pairs);
                let batches: Vec<AnyBatch> = AnyBatchReader::new(bytes).map(Result::unwrap).collect();
                assert_eq!(batches.len(), if codec == Compression::None { 4 } else { 1 });
                assert!(batches.iter().all(|batch| batch.magic() == magic && batch.ensure_valid().is_ok()));
                let records: Vec<Record> = batches.iter().flat_map(|batch| batch.records().unwrap()).collect();
                let read: Vec<_> = records.iter().map(|r| (r.key.as_deref(), r.value.as_deref())).collect();
                assert_eq!(read, pairs);
                assert_eq!(records.iter().map(|r| r.offset.get()).collect::<Vec<_>>(), (base..base + 4).collect::<Vec<i64>>());
                assert_eq!(batches[0].first_offset(usize::MAX), Offset(base));
                assert_eq!(batches[batches.len() - 1].last_offset(), Offset(base + 3));
            }
        }
    }
}

#[test]
fn test_next_batch_size() {
    let batch = three(0).build().unwrap();
    let next = |bytes: Bytes| BatchReader::new(bytes).next().map(|batch| batch.map_err(|error| error.kafka_class()));
    assert_eq!(next(Bytes::new()), None);
    assert_eq!(next(batch.bytes().slice(..11)), None);
    assert_eq!(next(patched(&batch, 16, &[10])), Some(Err("CorruptRecordException")));
    assert_eq!(next(patched(&batch, 8, &13i32.to_be_bytes())), Some(Err("CorruptRecordException")));
    assert_eq!(next(batch.bytes().clone()), Some(Ok(batch)));
}

#[test]
fn test_filter_to_empty_batch_retention() {
    for transactional in [true, false] {
        let record = |index: i64| Record { offset: Offset(3 + index), timestamp: TimestampMs(11 + index), ..Record::default() };
        let batch = BatchBuilder::new(Offset(3))
            .leader_epoch(LeaderEpoch(293))
            .producer(ProducerId(23), ProducerEpoch(5), Sequence(10))
            .transactional(transactional)
            .records((0..2).map(record))
            .build()
            .unwrap();
        let left = RecordBatch::empty_header(batch.header());
        left.ensure_valid().unwrap();
        assert_eq!((left.size_in_bytes(), left.record_count()), (61, 0));
        assert_eq!((left.base_offset(), left.last_offset()), (Offset(3), Offset(4)));
        assert_eq!((left.base_sequence(), left.last_sequence()), (Sequence(10), Sequence(11)));
        assert_eq!((left.producer_id(), left.producer_epoch()), (ProducerId(23), ProducerEpoch(5)));
        assert_eq!((left.leader_epoch(), left.max_timestamp()), (LeaderEpoch(293), TimestampMs(12)));
        assert_eq!((left.is_transactional(), left.is_control()), (transactional, false));
    }
}

#[test]
fn test_build_end_txn_marker() {
    let coordinator_epoch = CoordinatorEpoch(347);
    let batch = RecordBatch::end_txn_marker(
        Offset(983),
        LeaderEpoch(29),
        TimestampMs(1_700_000_000_000),
        ProducerId(73),
        ProducerEpoch(13),
        true,
        coordinator_epoch,
    )
    .unwrap();
    assert!(batch.is_control() && batch.is_transactional());
    assert_eq!((batch.base_offset(), batch.leader_epoch()), (Offset(983), LeaderEpoch(29)));
    assert_eq!((batch.producer_id(), batch.producer_epoch()), (ProducerId(73), ProducerEpoch(13)));
    assert_eq!(batch.base_sequence(), Sequence::NONE);
    let marker = EndTxnMarker { commit: true, coordinator_epoch };
    assert_eq!(batch.control_record(), Ok(Some(ControlRecord::EndTxnMarker(marker))));
    assert_eq!(batch.records().unwrap().len(), 1);
}

#[test]
fn test_build_leader_change_message() {
    let message = LeaderChange { leader_id: 5, voters: vec![6], ..LeaderChange::default() };
    let record = ControlRecord::LeaderChange(message);
    let batch = RecordBatch::control(Offset(983), LeaderEpoch(20), TimestampMs(0), &record).unwrap();
    assert!(batch.is_control() && !batch.is_transactional());
    assert_eq!((batch.base_offset(), batch.leader_epoch()), (Offset(983), LeaderEpoch(20)));
    assert_eq!(batch.control_record(), Ok(Some(record)));
}

/// Of the codecs, only none and LZ4, as in Kafka: what others write is up to a library.
#[test]
fn test_checksum() {
    for (magic, codec, checksum) in [
        (Magic::V0, Compression::None, 1_978_725_405),
        (Magic::V0, Compression::Lz4, 66_944_826),
        (Magic::V1, Compression::None, 109_425_508),
        (Magic::V1, Compression::Lz4, 1_407_303_399),
        (Magic::V2, Compression::None, 3_851_219_455),
        (Magic::V2, Compression::Lz4, 2_745_969_314),
    ] {
        let mut builder = limited(magic, codec, 1024);
        builder.append_next(simple(283_843, "key1", "value1")).unwrap();
        builder.append_next(simple(1234, "key2", "value2")).unwrap();
        let stored = match &batches_of(builder.build().unwrap())[0] {
            AnyBatch::V2(batch) => batch.stored_crc(),
            AnyBatch::Legacy(batch) => batch.stored_crc(),
        };
        assert_eq!(stored, checksum, "{magic:?} {codec:?}");
    }
}

#[test]
fn test_has_room_for_method() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 1024);
        builder.append_next(simple(0, "a", "1")).unwrap();
        let next = simple(1, "b", "2");
        assert!(builder.has_room_for(&next), "{magic:?} {codec:?}");
        builder.close().unwrap();
        assert!(!builder.has_room_for(&next), "{magic:?} {codec:?}");
    }
}

/// Headers count, but for the formats that have none, where a record with headers is refused.
#[test]
fn test_has_room_for_method_with_headers() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 120);
        builder.append_next(simple(1_700_000_000_000, "key", "value")).unwrap();
        let plain = simple(1_700_000_000_000, "key", "value");
        let header = Header { key: Bytes::from_static(b"hello"), value: Some(Bytes::from_static(b"world.world")) };
        let headed = Record { headers: vec![header; 10], ..plain.clone() };
        assert!(builder.has_room_for(&plain), "{magic:?} {codec:?}");
        assert_eq!(builder.has_room_for(&headed), magic < Magic::V2, "{magic:?} {codec:?}");
        let appended = builder.append_next(headed).map_err(|error| error.kafka_class());
        assert_eq!(appended, if magic < Magic::V2 { Err("IllegalArgumentException") } else { Ok(()) });
    }
}

#[test]
fn test_with_records() {
    for (magic, codec) in formats() {
        let mut builder = limited(magic, codec, 1024);
        builder.append_next(simple(10, "key1", "value1")).unwrap();
        let read = records_of(builder.build().unwrap());
        assert_eq!(read[0].key.as_deref(), Some(b"key1".as_slice()), "{magic:?} {codec:?}");
    }
}

#[test]
fn test_unsupported_compress() {
    for magic in [Magic::V0, Magic::V1] {
        let settings = BatchBuilder::new(Offset(0)).compression(Compression::Zstd);
        let error = RecordsBuilder::new(magic, settings, 1024).unwrap_err();
        assert_eq!(error.kafka_class(), "IllegalArgumentException");
        assert_eq!(error.to_string(), format!("magic {} has no zstd", magic.get()));
    }
}

/// Three or four batches in a row with so many records each, and how long the first ones are.
fn in_a_row(base: i64, counts: &[i64]) -> (Bytes, Vec<RecordBatch>) {
    let mut offset = base;
    let build = |count: &i64| {
        let records = (offset..offset + count).map(|offset| Record { offset: Offset(offset), ..Record::default() });
        let batch = BatchBuilder::new(Offset(offset)).records(records).build().unwrap();
        offset += count;
        batch
    };
    let batches: Vec<RecordBatch> = counts.iter().map(build).collect();
    let bytes: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes().to_vec()).collect();
    (bytes.into(), batches)
}

/// The batches of a part of the records, which begin where the part begins.
fn part(records: &Bytes, from: usize, to: usize) -> Vec<RecordBatch> {
    let mut reader = BatchReader::new(records.slice(from..to));
    let found = reader.by_ref().map(Result::unwrap).collect();
    assert!(reader.position() <= to - from);
    found
}

#[test]
fn test_slice() {
    let (records, batches) = in_a_row(57, &[3, 8, 4]);
    let [first, second] = [&batches[0], &batches[1]].map(RecordBatch::size_in_bytes);
    let end = records.len();
    assert_eq!(part(&records, 0, end), batches);
    assert_eq!(part(&records, first, end), batches[1..]);
    assert_eq!(part(&records, first, first + second), batches[1..2]);
    // Part of a batch at the end is none.
    assert_eq!(part(&records, first, first + second - 1), []);
    assert_eq!(part(&records.slice(first..), second, end - first), batches[2..]);
    assert_eq!(part(&records.slice(1..), first - 1, end - 1), batches[1..]);
    assert_eq!(part(&Bytes::new(), 0, 0), []);
}

#[test]
fn test_slice_for_already_sliced_memory_records() {
    let (records, batches) = in_a_row(0, &[5, 10, 12, 4]);
    let [first, second, third] = [0, 1, 2].map(|index: usize| batches[index].size_in_bytes());
    let sliced = records.slice(first + second..);
    assert_eq!(part(&sliced, 0, sliced.len()), batches[2..]);
    // What is left is shorter than the place at which it lay.
    assert!(sliced.len() - third < first + second + third);
    assert_eq!(part(&sliced, third, sliced.len()), batches[3..]);
}
