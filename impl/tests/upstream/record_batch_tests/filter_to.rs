#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! The tests of `filterTo` in Kafka's MemoryRecordsTest, through the compaction of a log: records without a key go, all others
//! are the last of their keys.

use cleanslate_log::log::{CleanOptions, LogConfig};
use cleanslate_log::record::{BatchBuilder, Compression, HEADER_BYTES, Magic, Record, RecordBatch, RecordsBuilder, TimestampType};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::upstream::legacy::{follow_bytes, legacy};
use crate::upstream::support::{NOW, end_txn, follow, new_log};

/// Timestamp, key, value.
type Row = (i64, Option<&'static str>, &'static str);

const CODECS: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn batch(base: i64, rows: &[Row]) -> BatchBuilder {
    rows.iter().fold(BatchBuilder::new(Offset(base)).leader_epoch(LeaderEpoch(0)), |builder, (timestamp, key, value)| {
        builder.timestamp(TimestampMs(*timestamp)).record(key.map(str::as_bytes), Some(value.as_bytes()))
    })
}

/// What compaction at a time leaves of batches, in front of one that it always keeps.
fn filtered_at(now: i64, config: &LogConfig, batches: Vec<RecordBatch>) -> Vec<RecordBatch> {
    let mut log = new_log(config);
    let end = batches.last().unwrap().next_offset();
    follow(&mut log, &batches).unwrap();
    follow(&mut log, &[batch(end.get(), &[(0, Some("kept"), "kept")]).build().unwrap()]).unwrap();
    // Only what is active keeps a header.
    log.remove_expired_producers(TimestampMs(i64::MAX));
    log.roll(TimestampMs(0)).unwrap();
    let first_uncleanable = log.log_end_offset();
    log.compact(&CleanOptions { first_dirty: Offset(0), first_uncleanable, now: TimestampMs(now), max_keys: 100 }).unwrap();
    let mut left = log.batches().unwrap();
    assert_eq!(left.pop().unwrap().base_offset(), end);
    left
}

fn filtered(batches: Vec<BatchBuilder>) -> Vec<RecordBatch> {
    filtered_at(0, &LogConfig::default(), batches.into_iter().map(|batch| batch.build().unwrap()).collect())
}

fn range(batch: &RecordBatch) -> (i64, i64) {
    (batch.base_offset().get(), batch.last_offset().get())
}

/// Offset, timestamp and value of each record.
fn rows(batches: &[RecordBatch]) -> Vec<(i64, i64, String)> {
    let records = batches.iter().flat_map(|batch| batch.records().unwrap());
    let text = |record: &Record| String::from_utf8(record.value.as_ref().unwrap().to_vec()).unwrap();
    records.map(|record| (record.offset.get(), record.timestamp.get(), text(&record))).collect()
}

#[test]
fn test_filter_to() {
    for codec in CODECS {
        let batches = [
            batch(0, &[(10, None, "a")]),
            batch(1, &[(11, Some("1"), "b"), (12, None, "c")]),
            batch(3, &[(13, None, "d"), (20, Some("4"), "e"), (15, Some("5"), "f")]),
            batch(6, &[(16, Some("6"), "g")]),
        ];
        let left = filtered(batches.map(|batch| batch.compression(codec)).to_vec());
        assert_eq!(left.iter().map(range).collect::<Vec<_>>(), [(1, 2), (3, 5), (6, 6)]);
        let largest: Vec<i64> = left.iter().map(|batch| batch.max_timestamp().get()).collect();
        assert_eq!(largest, [11, 20, 16]);
        let expected = [(1, 11, "b"), (4, 20, "e"), (5, 15, "f"), (6, 16, "g")];
        assert_eq!(rows(&left), expected.map(|(offset, timestamp, value)| (offset, timestamp, value.to_owned())));
        for batch in &left {
            assert_eq!((batch.ensure_valid(), batch.attributes().compression()), (Ok(()), Some(codec)));
            assert_eq!(batch.timestamp_type(), TimestampType::CreateTime);
        }
    }
}

/// Batches of magic 0 and 1 become batches of magic 2 that begin and end with the records that are left.
#[test]
fn test_filter_to_of_old_formats() {
    for magic in [0, 1] {
        for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
            let set = |first: i64, rows: &[(Option<&str>, &str)]| {
                let pairs: Vec<_> = rows.iter().map(|(key, value)| (key.map(str::as_bytes), Some(value.as_bytes()))).collect();
                legacy(magic, first, codec, &pairs)
            };
            let sets = [
                set(0, &[(None, "a")]),
                set(1, &[(Some("1"), "b"), (None, "c")]),
                set(3, &[(None, "d"), (Some("4"), "e"), (Some("5"), "f")]),
                set(6, &[(Some("6"), "g")]),
            ];
            let mut log = new_log(&LogConfig::default());
            follow_bytes(&mut log, sets.concat().into()).unwrap();
            log.roll(TimestampMs(0)).unwrap();
            let (first_uncleanable, now) = (log.log_end_offset(), TimestampMs(0));
            log.compact(&CleanOptions { first_dirty: Offset(0), first_uncleanable, now, max_keys: 100 }).unwrap();
            let left = log.batches().unwrap();
            let single = codec == Compression::None;
            let ranges = if single { vec![(1, 1), (4, 4), (5, 5), (6, 6)] } else { vec![(1, 1), (4, 5), (6, 6)] };
            assert_eq!(left.iter().map(range).collect::<Vec<_>>(), ranges);
            let time = if magic == 0 { -1 } else { NOW.get() };
            let expected = [(1, "b"), (4, "e"), (5, "f"), (6, "g")];
            assert_eq!(rows(&left), expected.map(|(offset, value)| (offset, time, value.to_owned())));
            for batch in &left {
                assert_eq!((batch.ensure_valid(), batch.attributes().compression()), (Ok(()), Some(codec)));
                assert_eq!((batch.max_timestamp().get(), batch.timestamp_type()), (time, TimestampType::CreateTime));
            }
        }
    }
}

/// Of batches larger than the 64 bytes of Kafka's buffer, what has a key is left, in whole batches.
#[test]
fn test_filter_to_with_undersized_buffer() {
    const ZEROS: [u8; 128] = [0; 128];
    let long = std::str::from_utf8(&ZEROS).unwrap();
    for (magic, codec) in magics_and_codecs() {
        let sets = [
            vec![(10, None, "a")],
            vec![(11, Some("1"), long), (12, Some("2"), "c"), (13, None, "d")],
            vec![(14, None, "e"), (15, Some("5"), "f"), (16, Some("6"), "g")],
            vec![(17, Some("7"), long)],
        ];
        let mut next = 0;
        let bytes: Vec<u8> = sets
            .iter()
            .flat_map(|rows| {
                let first = next;
                next += i64::try_from(rows.len()).unwrap();
                RecordsBuilder::new(magic, batch(first, rows).compression(codec), 0).unwrap().build().unwrap()
            })
            .collect();
        let mut log = new_log(&LogConfig::default());
        follow_bytes(&mut log, bytes.into()).unwrap();
        log.roll(TimestampMs(0)).unwrap();
        let (first_uncleanable, now) = (log.log_end_offset(), TimestampMs(0));
        log.compact(&CleanOptions { first_dirty: Offset(0), first_uncleanable, now, max_keys: 100 }).unwrap();
        let left = log.batches().unwrap();
        assert!(left.iter().all(|batch| batch.size_in_bytes() > 64 && batch.ensure_valid().is_ok()));
        assert!(left.iter().flat_map(|batch| batch.records().unwrap()).all(|record| record.key.is_some()));
        let time = |timestamp: i64| if magic == Magic::V0 { -1 } else { timestamp };
        let expected = [(1, 11, long), (2, 12, "c"), (5, 15, "f"), (6, 16, "g"), (7, 17, long)];
        let expected = expected.map(|(offset, timestamp, value)| (offset, time(timestamp), value.to_owned()));
        assert_eq!(rows(&left), expected, "{magic:?} {codec:?}");
    }
}

/// What Kafka's tests of all formats run with: zstd is of magic 2 only.
fn magics_and_codecs() -> impl Iterator<Item = (Magic, Compression)> {
    let all = [Magic::V0, Magic::V1, Magic::V2].into_iter().flat_map(|magic| CODECS.map(|codec| (magic, codec)));
    all.filter(|(magic, codec)| *magic == Magic::V2 || *codec != Compression::Zstd)
}

/// A batch of an aborted transaction goes, whatever its records, and leaves no header.
#[test]
fn test_filter_to_batch_discard() {
    let aborted = batch(0, &[(10, Some("1"), "a")]).transactional(true);
    let aborted = aborted.producer(ProducerId(15), ProducerEpoch(0), Sequence(0)).build().unwrap();
    let marker = end_txn(15, 0, false, 0).with_base_offset(Offset(1));
    let kept = batch(2, &[(10, Some("2"), "b"), (11, None, "c")]).build().unwrap();
    let left = filtered_at(0, &LogConfig::default(), vec![aborted, marker, kept]);
    assert_eq!(left.iter().map(range).collect::<Vec<_>>(), [(1, 1), (2, 3)]);
    assert_eq!(rows(&left[1..]), [(2, 10, "b".to_owned())]);
}

#[test]
fn test_filter_to_already_compacted_log() {
    let row = |offset: i64, key: Option<&'static [u8]>| Record {
        offset: Offset(offset),
        timestamp: TimestampMs(offset),
        key: key.map(Into::into),
        value: Some("v".into()),
        headers: Vec::new(),
    };
    let compacted = BatchBuilder::new(Offset(0)).leader_epoch(LeaderEpoch(0));
    let left = filtered(vec![compacted.records([row(5, None), row(8, Some(b"1")), row(10, None)])]);
    assert_eq!(left.iter().map(range).collect::<Vec<_>>(), [(0, 10)]);
    assert_eq!(rows(&left), [(8, 8, "v".to_owned())]);
}

#[test]
fn test_filter_to_preserves_partition_leader_epoch() {
    let rows = [(10, None, "a"), (11, Some("1"), "b"), (12, None, "c")];
    let left = filtered(vec![batch(0, &rows).leader_epoch(LeaderEpoch(67))]);
    assert_eq!(left.iter().map(RecordBatch::leader_epoch).collect::<Vec<_>>(), [LeaderEpoch(67)]);
}

#[test]
fn test_filter_to_preserves_producer_info() {
    let idempotent = batch(3, &[(13, None, "d"), (20, Some("4"), "e"), (15, Some("5"), "f")]);
    let transactional = batch(6, &[(16, Some("6"), "g"), (17, Some("7"), "h"), (18, None, "i")]).transactional(true);
    let left = filtered(vec![
        batch(0, &[(10, None, "a"), (11, Some("1"), "b"), (12, None, "c")]),
        idempotent.producer(ProducerId(1), ProducerEpoch(5), Sequence(10)),
        transactional.producer(ProducerId(2), ProducerEpoch(5), Sequence(10)),
    ]);
    assert_eq!(left.iter().map(range).collect::<Vec<_>>(), [(0, 2), (3, 5), (6, 8)]);
    assert_eq!(left.iter().map(RecordBatch::record_count).collect::<Vec<_>>(), [1, 2, 2]);
    let producer = |batch: &RecordBatch| {
        let (id, epoch) = (batch.producer_id().get(), batch.producer_epoch().get());
        (id, epoch, batch.base_sequence().get(), batch.last_sequence().get(), batch.is_transactional())
    };
    let expected = [(-1, -1, -1, -1, false), (1, 5, 10, 12, false), (2, 5, 10, 12, true)];
    assert_eq!(left.iter().map(producer).collect::<Vec<_>>(), expected);
    let sequences = |batch: &RecordBatch| {
        let records = batch.records().unwrap();
        records.iter().map(|record| batch.sequence_of(record.offset).get()).collect::<Vec<_>>()
    };
    assert_eq!(left.iter().map(sequences).collect::<Vec<_>>(), [vec![-1], vec![11, 12], vec![10, 11]]);
}

#[test]
fn test_filter_to_preserves_log_append_time() {
    let time = TimestampMs(1_700_000_000_000);
    let groups: [&[Row]; 3] = [
        &[(10, None, "a")],
        &[(11, Some("1"), "b"), (12, None, "c")],
        &[(13, None, "d"), (14, Some("4"), "e"), (15, Some("5"), "f")],
    ];
    let mut next = 0;
    let batches = groups.map(|rows| {
        let built = batch(next, rows).log_append_time(time);
        next += i64::try_from(rows.len()).unwrap();
        built
    });
    let left = filtered(batches.to_vec());
    assert_eq!(left.iter().map(range).collect::<Vec<_>>(), [(1, 2), (3, 5)]);
    for batch in &left {
        assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (TimestampType::LogAppendTime, time));
        assert!(batch.records().unwrap().iter().all(|record| record.timestamp == time));
    }
}

/// Producer 23 of epoch 5, sequence 10 on; both records without a key. One of them was gone before.
fn dropped(transactional: bool) -> RecordBatch {
    batch(3, &[(10, None, "a"), (12, None, "b")])
        .producer(ProducerId(23), ProducerEpoch(5), Sequence(10))
        .transactional(transactional)
        .leader_epoch(LeaderEpoch(293))
        .build()
        .unwrap()
}

#[test]
fn test_empty_batch_retention() {
    for transactional in [false, true] {
        let mut log = new_log(&LogConfig::default());
        follow(
            &mut log,
            &[dropped(transactional), batch(5, &[(12, Some("kept"), "kept")]).leader_epoch(LeaderEpoch(293)).build().unwrap()],
        )
        .unwrap();
        log.roll(TimestampMs(0)).unwrap();
        let first_uncleanable = log.log_end_offset();
        log.compact(&CleanOptions { first_dirty: Offset(0), first_uncleanable, now: TimestampMs(0), max_keys: 100 }).unwrap();
        // The producer is active: its last batch stays.
        let left = log.batches().unwrap().remove(0);
        assert_eq!((left.size_in_bytes(), left.record_count(), left.records()), (HEADER_BYTES, 0, Ok(Vec::new())));
        assert_eq!((range(&left), left.base_sequence(), left.last_sequence()), ((3, 4), Sequence(10), Sequence(11)));
        assert_eq!((left.producer_id(), left.producer_epoch()), (ProducerId(23), ProducerEpoch(5)));
        assert_eq!((left.leader_epoch(), left.max_timestamp()), (LeaderEpoch(293), TimestampMs(12)));
        assert_eq!((left.is_transactional(), left.is_control(), left.ensure_valid()), (transactional, false, Ok(())));
    }
}

#[test]
fn test_empty_batch_deletion() {
    assert_eq!(filtered_at(0, &LogConfig::default(), vec![dropped(false)]), []);
}

#[test]
fn test_base_timestamp_to_delete_horizon_conversion() {
    const HORIZON: i64 = 100;
    for codec in CODECS {
        let tombstone = BatchBuilder::new(Offset(0)).leader_epoch(LeaderEpoch(0)).compression(codec).records((0..3).map(|index| {
            let key = Some(index.to_string().into_bytes().into());
            Record { offset: Offset(index), timestamp: TimestampMs(5 * (index + 1)), key, ..Record::default() }
        }));
        let config = LogConfig { delete_retention_ms: 1, ..LogConfig::default() };
        let left = filtered_at(HORIZON - 1, &config, vec![tombstone.build().unwrap()]);
        assert_eq!((left.len(), left[0].delete_horizon()), (1, Some(TimestampMs(HORIZON))));
        let timestamps: Vec<i64> = left[0].records().unwrap().iter().map(|record| record.timestamp.get()).collect();
        assert_eq!((timestamps, left[0].ensure_valid()), (vec![5, 10, 15], Ok(())));
    }
}
