#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's CompletedFetchTest, and what FetchRequestManagerTest and FetcherTest have about the records of one fetch.

use bytes::{BufMut, Bytes, BytesMut};
use cleanslate_log::consumer::{CompletedFetch, ConsumeError, DeserializationError, Origin};
use cleanslate_log::log::{AbortedTxn, FetchData, FetchIsolation, LogConfig};
use cleanslate_log::record::{
    Attributes, BatchBuilder, BatchHeader, Compression, Header, LEGACY_CRC_POSITION, LegacyEntry, MirrorPidResetRecord, Record,
    RecordBatch, TimestampType, compress,
};
use cleanslate_log::types::{
    CoordinatorEpoch, LeaderEpoch, Offset, OffsetMetadata, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};

use crate::upstream::support::{NOW, end_txn, hw, lead, lead_marker, new_log, produced};

const UNCOMMITTED: FetchIsolation = FetchIsolation::HighWatermark;
const COMMITTED: FetchIsolation = FetchIsolation::TxnCommitted;

/// What a fetch from a position brings, with aborted transactions by producer and first offset.
fn fetch(position: i64, isolation: FetchIsolation, records: Bytes, aborted: &[(i64, i64)]) -> CompletedFetch {
    // Of an aborted transaction, a fetch tells the producer and the beginning.
    let aborted = aborted.iter().map(|(id, first)| AbortedTxn {
        producer_id: ProducerId(*id),
        first_offset: Offset(*first),
        last_offset: Offset(i64::MAX),
        last_stable_offset: Offset(i64::MAX),
    });
    let offset = OffsetMetadata::offset_only(Offset(position));
    CompletedFetch::new(Offset(position), isolation, FetchData { records, aborted: Some(aborted.collect()), offset })
}

fn offsets(fetch: &mut CompletedFetch, max: i32) -> Vec<i64> {
    fetch.fetch_raw(max).unwrap().iter().map(|record| record.offset.get()).collect()
}

fn joined(batches: &[RecordBatch]) -> Bytes {
    batches.iter().flat_map(|batch| batch.bytes().to_vec()).collect::<Vec<u8>>().into()
}

/// Records of an open transaction of a producer, with keys.
fn in_txn(id: i64, first: i64, keys: &[&str]) -> RecordBatch {
    let builder = BatchBuilder::new(Offset(first)).timestamp(NOW).transactional(true);
    let builder = builder.producer(ProducerId(id), ProducerEpoch(0), Sequence(0));
    keys.iter().fold(builder, |builder, key| builder.record(Some(key.as_bytes()), Some(b"value"))).build().unwrap()
}

fn marker(id: i64, offset: i64, commit: bool) -> RecordBatch {
    let (id, epoch) = (ProducerId(id), ProducerEpoch(0));
    RecordBatch::end_txn_marker(Offset(offset), LeaderEpoch(0), NOW, id, epoch, commit, CoordinatorEpoch(0)).unwrap()
}

fn abort(id: i64, offset: i64) -> RecordBatch {
    marker(id, offset, false)
}

fn commit(id: i64, offset: i64) -> RecordBatch {
    marker(id, offset, true)
}

/// So many records from an offset on.
fn plain(first: i64, count: usize) -> Bytes {
    let builder = BatchBuilder::new(Offset(first)).timestamp(TimestampMs(0));
    (0..count).fold(builder, |builder, _| builder.record(Some(b"key"), Some(b"value"))).build().unwrap().bytes().clone()
}

#[test]
fn test_simple() {
    let mut fetch = fetch(5, UNCOMMITTED, plain(10, 11), &[]);
    assert_eq!(offsets(&mut fetch, 10), (10..20).collect::<Vec<i64>>());
    assert_eq!((fetch.position(), fetch.is_consumed()), (Offset(20), false));
    assert_eq!((offsets(&mut fetch, 10), fetch.last_epoch()), (vec![20], None));
    assert_eq!(offsets(&mut fetch, 10), [0; 0]);
    assert_eq!((fetch.position(), fetch.is_consumed()), (Offset(21), true));
}

/// How many of ten records a consumer gets from a log, of any and of committed transactions.
fn received(commit: bool) -> (usize, usize) {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, produced(1, 0, 0, 10).transactional(true)).unwrap();
    lead_marker(&mut log, &end_txn(1, 0, commit, 0)).unwrap();
    hw(&mut log, 11);
    let mut count = |isolation| {
        let data = log.fetch(Offset(0), isolation, usize::MAX, true).unwrap();
        let mut fetch = CompletedFetch::new(Offset(0), isolation, data);
        let count = offsets(&mut fetch, 20).len();
        assert_eq!((offsets(&mut fetch, 20).len(), fetch.position()), (0, Offset(11)));
        count
    };
    (count(UNCOMMITTED), count(COMMITTED))
}

#[test]
fn test_aborted_transaction_records_removed() {
    assert_eq!(received(false), (10, 0));
}

#[test]
fn test_committed_transaction_records_included() {
    assert_eq!(received(true), (10, 10));
}

#[test]
fn test_negative_fetch_count() {
    let mut fetch = fetch(0, UNCOMMITTED, plain(0, 10), &[]);
    assert_eq!(offsets(&mut fetch, -10), [0; 0]);
    assert_eq!((fetch.position(), fetch.is_consumed()), (Offset(0), false));
    assert_eq!(offsets(&mut fetch, 10).len(), 10, "nothing is lost");
}

#[test]
fn test_no_records_in_fetch() {
    let mut fetch = fetch(1, UNCOMMITTED, Bytes::new(), &[]);
    assert_eq!(offsets(&mut fetch, 10), [0; 0]);
    assert_eq!((fetch.position(), fetch.is_consumed()), (Offset(1), true));
}

type Uuid = [u8; 16];
type Refused = ConsumeError<&'static str>;

/// Kafka's deserializer of UUIDs takes text of 36 characters; here 16 bytes do.
fn uuid(_: &[Header], bytes: &Bytes) -> Result<Uuid, &'static str> {
    bytes[..].try_into().map_err(|_| "no UUID")
}

fn uuids(fetch: &mut CompletedFetch) -> Result<Vec<i64>, Refused> {
    let records = fetch.fetch_records(10, uuid, uuid)?;
    Ok(records.iter().map(|record| record.offset.get()).collect())
}

/// A record that a deserializer refuses, of which everything is told; at every call, until one seeks past it.
#[test]
fn test_corrupted_message() {
    let good = Bytes::from_static(&[7; 16]);
    let headers = vec![Header { key: "hkey".into(), value: Some("hvalue".into()) }];
    let record = |offset: i64, timestamp: i64, key: Option<Bytes>, value: &Bytes| Record {
        offset: Offset(offset),
        timestamp: TimestampMs(timestamp),
        key,
        value: Some(value.clone()),
        headers: Vec::new(),
    };
    let (key, value, other) = (Bytes::from("key"), Bytes::from("value"), Bytes::from("otherValue"));
    let batch = BatchBuilder::new(Offset(0)).records([
        record(0, -1, None, &good),
        record(1, 0, Some(key.clone()), &value),
        record(2, -1, None, &good),
        Record { headers: headers.clone(), ..record(3, 10, Some(good.clone()), &other) },
    ]);
    let bytes = batch.build().unwrap().bytes().clone();
    let expected = |origin, offset, timestamp, key, value, headers| {
        Err(ConsumeError::Deserialization(Box::new(DeserializationError {
            origin,
            offset: Offset(offset),
            timestamp: TimestampMs(timestamp),
            timestamp_type: Some(TimestampType::CreateTime),
            key: Some(key),
            value: Some(value),
            headers,
            cause: "no UUID",
        })))
    };
    let mut first = fetch(0, COMMITTED, bytes.clone(), &[]).check_crcs(false);
    assert_eq!(uuids(&mut first), Ok(vec![0]));
    for _ in 0..2 {
        let refused = uuids(&mut first);
        assert_eq!(refused, expected(Origin::Key, 1, 0, key.clone(), value.clone(), Vec::new()));
        assert_eq!(refused.unwrap_err().kafka_class(), "RecordDeserializationException");
        assert_eq!(first.position(), Offset(1));
    }
    // Another deserializer may take it.
    let raw: Vec<i64> = offsets(&mut first, 10);
    assert_eq!(raw, [1, 2, 3]);
    let mut second = fetch(2, COMMITTED, bytes, &[]).check_crcs(false);
    assert_eq!(uuids(&mut second), Ok(vec![2]));
    assert_eq!(uuids(&mut second), expected(Origin::Value, 3, 10, good, other, headers));
}

/// The keys that a read-committed consumer gets from the beginning on, and its position then.
fn committed_keys(batches: &[RecordBatch], aborted: &[(i64, i64)]) -> (Vec<String>, i64) {
    let mut fetch = fetch(0, COMMITTED, joined(batches), aborted);
    let records = fetch.fetch_raw(i32::MAX).unwrap();
    let keys = records.iter().map(|record| String::from_utf8(record.key.clone().unwrap().to_vec()).unwrap());
    (keys.collect(), fetch.position().get())
}

#[test]
fn test_read_committed_with_committed_and_aborted_transactions() {
    let batches = [
        in_txn(1, 0, &["commit1-1", "commit1-2"]),
        in_txn(2, 2, &["abort2-1"]),
        commit(1, 3),
        in_txn(2, 4, &["abort2-2"]),
        abort(2, 5),
        in_txn(1, 6, &["abort1-1"]),
        in_txn(2, 7, &["commit2-1"]),
        in_txn(1, 8, &["abort1-2"]),
        abort(1, 9),
        commit(2, 10),
    ];
    let (keys, position) = committed_keys(&batches, &[(2, 2), (1, 6)]);
    assert_eq!((keys, position), (["commit1-1", "commit1-2", "commit2-1"].map(str::to_owned).to_vec(), 11));
}

/// The transaction of the first marker begins in front of what is left of the log.
#[test]
fn test_read_committed_abort_marker_with_no_data() {
    let batches = [abort(1, 5), in_txn(1, 6, &["6", "7", "8"]), commit(1, 9)];
    let mut fetch = fetch(0, COMMITTED, joined(&batches), &[(1, 0)]);
    assert_eq!(offsets(&mut fetch, 10), [6, 7, 8]);
}

/// Aborted transactions whose beginning compaction has taken; the marker of the last one is not fetched yet.
#[test]
fn test_read_committed_with_compacted_topic() {
    let batches = [
        in_txn(3, 3, &["3", "4"]),
        in_txn(2, 15, &["15", "16", "17"]),
        in_txn(1, 22, &["22", "23"]),
        abort(2, 28),
        in_txn(3, 30, &["30", "31", "32"]),
        commit(3, 35),
        in_txn(1, 39, &["39", "40"]),
    ];
    let mut fetch = fetch(0, COMMITTED, joined(&batches), &[(2, 6), (1, 0)]);
    assert_eq!(offsets(&mut fetch, 10), [3, 4, 30, 31, 32]);
    assert_eq!(fetch.position(), Offset(41));
}

/// The second marker ends nothing.
#[test]
fn test_multiple_abort_markers() {
    let batches = [
        in_txn(1, 0, &["abort1-1", "abort1-2"]),
        abort(1, 2),
        abort(1, 3),
        in_txn(1, 4, &["commit1-1", "commit1-2"]),
        commit(1, 6),
    ];
    assert_eq!(committed_keys(&batches, &[(1, 0)]).0, ["commit1-1", "commit1-2"]);
}

/// Two records and the marker that aborts them.
fn aborted_batches() -> Bytes {
    joined(&[in_txn(1, 0, &["key", "key"]), abort(1, 2)])
}

#[test]
fn test_return_aborted_transactions_in_uncommitted_mode() {
    let mut fetch = fetch(0, UNCOMMITTED, aborted_batches(), &[(1, 0)]);
    assert_eq!(offsets(&mut fetch, 10), [0, 1]);
}

#[test]
fn test_consumer_position_updated_when_skipping_aborted_transactions() {
    let mut fetch = fetch(0, COMMITTED, aborted_batches(), &[(1, 0)]);
    assert_eq!((offsets(&mut fetch, 10), fetch.position()), (vec![], Offset(3)));
}

#[test]
fn test_skipping_aborted_transactions() {
    let mut fetch = fetch(0, COMMITTED, joined(&[in_txn(1, 0, &["key", "key"])]), &[(1, 0)]);
    assert_eq!((offsets(&mut fetch, 10), fetch.position()), (vec![], Offset(2)));
}

/// Compaction has taken the last of four records.
#[test]
fn test_update_position_with_last_record_missing_from_batch() {
    let record = |offset: i64| Record { offset: Offset(offset), ..Record::default() };
    let batch = BatchBuilder::new(Offset(0)).records((0..3).map(record)).last_offset(Offset(3)).build().unwrap();
    let mut fetch = fetch(0, UNCOMMITTED, batch.bytes().clone(), &[]);
    assert_eq!((offsets(&mut fetch, 10), fetch.position()), (vec![0, 1, 2], Offset(4)));
}

/// Gaps within a batch are stepped over.
#[test]
fn test_fetch_non_continuous_records() {
    let record = |offset: i64| Record { offset: Offset(offset), timestamp: TimestampMs(0), ..Record::default() };
    let batch = BatchBuilder::new(Offset(15)).records([15, 20, 30].map(record)).build().unwrap();
    let mut fetch = fetch(0, UNCOMMITTED, batch.bytes().clone(), &[]);
    assert_eq!((offsets(&mut fetch, 10), fetch.position()), (vec![15, 20, 30], Offset(31)));
}

/// Records without headers, with one, and with two of the same name, in their order.
#[test]
fn test_headers() {
    let header = |value: &'static str| Header { key: "headerKey".into(), value: Some(value.into()) };
    let headers = [vec![], vec![header("headerValue")], vec![header("headerValue"), header("headerValue2")]];
    let record =
        |(offset, headers): (i64, &Vec<Header>)| Record { offset: Offset(offset), headers: headers.clone(), ..Record::default() };
    let batch = BatchBuilder::new(Offset(1)).records((1..).zip(&headers).map(record)).build().unwrap();
    let records = fetch(1, UNCOMMITTED, batch.bytes().clone(), &[]).fetch_raw(10).unwrap();
    assert_eq!(records.into_iter().map(|record| record.headers).collect::<Vec<_>>(), headers);
}

/// Compaction has taken all records of a batch.
#[test]
fn test_update_position_on_empty_batch() {
    let batch = in_txn(1, 37, &["key"]);
    let header = BatchHeader {
        partition_leader_epoch: LeaderEpoch(7),
        base_sequence: Sequence(1),
        last_offset_delta: 54 - 37,
        ..*batch.header()
    };
    let empty = RecordBatch::empty_header(&header);
    for isolation in [UNCOMMITTED, COMMITTED] {
        let mut fetch = fetch(0, isolation, empty.bytes().clone(), &[]);
        assert_eq!((offsets(&mut fetch, 10), fetch.position()), (vec![], Offset(55)));
    }
}

/// The position and the class of the error at each of two calls.
#[track_caller]
fn blocked(fetch: &mut CompletedFetch, at: i64) {
    for _ in 0..2 {
        assert_eq!(fetch.fetch_raw(10).unwrap_err().kafka_class(), "KafkaException");
        assert_eq!(fetch.position(), Offset(at));
    }
}

/// A wrong checksum is that at every call, unless checksums do not count.
#[test]
fn test_invalid_default_record_batch() {
    let mut garbled = BytesMut::from(&plain(0, 1)[..]);
    garbled[17..21].copy_from_slice(b"beef");
    let garbled = garbled.freeze();
    blocked(&mut fetch(0, UNCOMMITTED, garbled.clone(), &[]), 0);
    assert_eq!(offsets(&mut fetch(0, UNCOMMITTED, garbled, &[]).check_crcs(false), 10), [0]);
}

/// Records of magic 1, of which the second has a wrong checksum and the fourth no size: one can seek over the former only.
#[test]
fn test_parse_corrupted_record() {
    let entry = |offset: i64| {
        let (timestamp, key, value) = (Some(TimestampMs(500)), Some(&b"foo"[..]), Some(&b"baz"[..]));
        BytesMut::from(
            &LegacyEntry { offset: Offset(offset), timestamp, key, value, ..LegacyEntry::default() }.to_bytes().unwrap()[..],
        )
    };
    let mut bytes = entry(0);
    let mut wrong = entry(1);
    wrong[15] = wrong[15].wrapping_add(1);
    bytes.unsplit(wrong);
    bytes.unsplit(entry(2));
    bytes.put_i64(3);
    bytes.put_i32(1);
    bytes.unsplit(entry(4));
    let bytes = bytes.freeze();
    let mut first = fetch(0, UNCOMMITTED, bytes.clone(), &[]);
    assert_eq!(offsets(&mut first, 10), [0]);
    blocked(&mut first, 1);
    let mut second = fetch(2, UNCOMMITTED, bytes.clone(), &[]);
    assert_eq!(offsets(&mut second, 10), [2]);
    blocked(&mut second, 3);
    blocked(&mut fetch(4, UNCOMMITTED, bytes, &[]), 4);
}

/// Beyond Kafka's own tests: damage within a batch, where checksums do not count or are right. What is in front of it comes first.
#[test]
fn damage_within_a_batch_blocks_behind_what_can_be_read() {
    let mut counted = BytesMut::from(&plain(0, 3)[..]);
    counted[60] = 5;
    let mut fetch_counted = fetch(0, UNCOMMITTED, counted.freeze(), &[]).check_crcs(false);
    assert_eq!(offsets(&mut fetch_counted, 10), [0, 1, 2]);
    blocked(&mut fetch_counted, 3);
    // A record of a set, whose own checksum is wrong, unlike that of the set.
    let entry = |offset: i64, value: &'static [u8]| {
        LegacyEntry { offset: Offset(offset), value: Some(value), ..LegacyEntry::default() }.to_bytes().unwrap()
    };
    let mut wrong = BytesMut::from(&entry(1, b"b")[..]);
    wrong[15] = wrong[15].wrapping_add(1);
    let set = compress(Compression::Gzip, &[entry(0, b"a"), wrong.freeze()].concat()).unwrap();
    let attributes = Attributes::default().with_compression(Compression::Gzip);
    let wrapper = LegacyEntry { offset: Offset(1), attributes, value: Some(&set), ..LegacyEntry::default() }.to_bytes().unwrap();
    let mut fetch_set = fetch(0, UNCOMMITTED, wrapper.clone(), &[]);
    assert_eq!(offsets(&mut fetch_set, 10), [0]);
    blocked(&mut fetch_set, 1);
    assert_eq!(offsets(&mut fetch(0, UNCOMMITTED, wrapper.clone(), &[]).check_crcs(false), 10), [0, 1]);
    // A bound on what comes out is one on all of a set.
    blocked(&mut fetch(0, UNCOMMITTED, wrapper, &[]).max_decompressed_bytes(10), 0);
}

/// Beyond Kafka's own tests: the epoch to commit stays when all is consumed.
#[test]
fn the_epoch_of_the_last_batch_stays() {
    let batch = BatchBuilder::new(Offset(0)).leader_epoch(LeaderEpoch(7)).record(None, Some(b"v")).build().unwrap();
    let mut fetched = fetch(0, UNCOMMITTED, batch.bytes().clone(), &[]);
    assert_eq!(fetched.last_epoch(), None);
    assert_eq!((offsets(&mut fetched, 10), fetched.is_consumed(), fetched.last_epoch()), (vec![0], true, Some(LeaderEpoch(7))));
    let mut damaged = batch.bytes().to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let mut fetched = fetch(0, UNCOMMITTED, damaged.into(), &[]);
    assert!(fetched.fetch_raw(1).is_err());
    assert_eq!(fetched.last_epoch(), Some(LeaderEpoch(7)), "it is known before the checksum is looked at");
}

/// Beyond Kafka's own tests: the position goes to the end of the last batch, also where that is in front of it.
#[test]
fn an_answer_that_ends_in_front_of_the_position() {
    let mut one = fetch(100, UNCOMMITTED, plain(0, 13), &[]);
    assert_eq!((offsets(&mut one, 10), one.position(), one.is_consumed()), (vec![], Offset(13), true));
    let mut two = fetch(100, UNCOMMITTED, [plain(0, 13), plain(100, 1)].concat().into(), &[]);
    assert_eq!((offsets(&mut two, 10), two.position(), two.is_consumed()), (vec![100], Offset(101), true));
}

/// Beyond Kafka's own tests: old records in front of the position are passed over unread, and those in front of a damaged one come.
#[test]
fn old_records_that_cannot_be_read() {
    let good = |offset: i64, value: &[u8]| {
        let entry =
            LegacyEntry { offset: Offset(offset), timestamp: Some(TimestampMs(5)), value: Some(value), ..Default::default() };
        entry.to_bytes().unwrap()
    };
    // The value has more bytes than the entry.
    let bad = |offset: i64| {
        let mut entry = good(offset, b"v").to_vec();
        let at = entry.len() - 5;
        entry[at..at + 4].copy_from_slice(&2057_i32.to_be_bytes());
        let crc = crc32fast::hash(&entry[LEGACY_CRC_POSITION + 4..]);
        entry[LEGACY_CRC_POSITION..LEGACY_CRC_POSITION + 4].copy_from_slice(&crc.to_be_bytes());
        Bytes::from(entry)
    };
    let set = |entries: &[Bytes]| {
        let value = compress(Compression::Gzip, &entries.concat()).unwrap();
        let attributes = Attributes::default().with_compression(Compression::Gzip);
        LegacyEntry { attributes, value: Some(&value), timestamp: Some(TimestampMs(5)), offset: Offset(7), key: None }
            .to_bytes()
            .unwrap()
    };
    let two: Bytes = [bad(3), good(5, b"v")].concat().into();
    assert_eq!(offsets(&mut fetch(5, UNCOMMITTED, two.clone(), &[]), 10), [5]);
    blocked(&mut fetch(3, UNCOMMITTED, two, &[]), 3);
    let inner = set(&[good(0, b"w"), bad(1), good(2, b"x")]);
    assert_eq!(offsets(&mut fetch(7, UNCOMMITTED, inner.clone(), &[]), 10), [7]);
    let mut from_its_start = fetch(5, UNCOMMITTED, inner, &[]);
    assert_eq!(offsets(&mut from_its_start, 10), [5]);
    blocked(&mut from_its_start, 6);
    let mut compressed_twice = fetch(0, UNCOMMITTED, set(&[good(0, b"w"), set(&[good(0, b"x")])]), &[]);
    assert_eq!(offsets(&mut compressed_twice, 10).len(), 1);
    let at = compressed_twice.position().0;
    blocked(&mut compressed_twice, at);
}

/// Beyond Kafka's own tests: a consumer streams a compressed batch, which has to be one though it has no records.
#[test]
fn a_compressed_batch_without_records_has_a_stream() {
    let mut header = *BatchBuilder::new(Offset(0)).record(None, None).build().unwrap().header();
    header.attributes = header.attributes.with_compression(Compression::Gzip);
    (header.record_count, header.batch_length) = (0, 49);
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    blocked(&mut fetch(0, UNCOMMITTED, bytes.clone().into(), &[]).check_crcs(false), 0);
    assert_eq!(RecordBatch::decode(&bytes.into(), 0).unwrap().0.records(), Ok(vec![]), "read at once, it is empty");
}

/// Beyond Kafka's own tests: a barrier is no record in either isolation level, at any place of a fetch, and the position goes over it.
#[test]
fn a_barrier_is_never_handed_out() {
    let barrier = |offset: i64| {
        let record = MirrorPidResetRecord { source_cluster_id: Some("A".to_owned()), ..MirrorPidResetRecord::default() };
        RecordBatch::mirror_pid_reset(Offset(offset), LeaderEpoch(0), NOW, &record).unwrap()
    };
    for isolation in [UNCOMMITTED, COMMITTED] {
        let batches = [barrier(0), in_txn(1, 1, &["a", "b"]), barrier(3), commit(1, 4), barrier(5)];
        let mut fetch = fetch(0, isolation, joined(&batches), &[]);
        let mut seen = Vec::new();
        while !fetch.is_consumed() {
            seen.extend(offsets(&mut fetch, 1));
        }
        assert_eq!((seen, fetch.position()), (vec![1, 2], Offset(6)), "{isolation:?}");
        // Alone, as the end of a mirror that was stopped.
        let mut alone = self::fetch(0, isolation, joined(&[barrier(0)]), &[]);
        assert_eq!((offsets(&mut alone, 10), alone.position()), (vec![], Offset(1)), "{isolation:?}");
    }
}
