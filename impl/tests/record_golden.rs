//! Every vector is decoded to the fields it was written from, and encoded from these fields to the same bytes.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{
    Attributes, BatchBuilder, BatchHeader, ControlRecord, ControlRecordType, DecodeError, EndTxnMarker, HEADER_BYTES, Header,
    KRaftVersion, KRaftVoters, LeaderChange, MAGIC_V2, MirrorPidResetRecord, Record, RecordBatch, SnapshotFooter, SnapshotHeader,
    TimestampType, Voter, VoterEndpoint,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

#[path = "data/record/vectors.rs"]
mod vectors;
use vectors::Vector;

/// The time of Kafka's vectors.
const T: TimestampMs = TimestampMs(1_700_000_000_000);
/// The time of KIP-1279's examples.
const T_KIP: TimestampMs = TimestampMs(1_774_000_000_000);
/// The leader epoch of most of Kafka's vectors.
const EPOCH: LeaderEpoch = LeaderEpoch(5);

/// The header of a batch of one record without producer, of which each test changes what differs.
fn header(vector: &Vector, base_offset: i64, crc: u32) -> BatchHeader {
    BatchHeader {
        base_offset: Offset(base_offset),
        batch_length: i32::try_from(vector.size).unwrap() - 12,
        partition_leader_epoch: EPOCH,
        magic: MAGIC_V2,
        crc,
        attributes: Attributes(0),
        last_offset_delta: 0,
        base_timestamp: T,
        max_timestamp: T,
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
        base_sequence: Sequence::NONE,
        record_count: 1,
    }
}

fn control_header(vector: &Vector, base_offset: i64, crc: u32) -> BatchHeader {
    BatchHeader { attributes: Attributes(0x20), ..header(vector, base_offset, crc) }
}

fn record(offset: i64, timestamp: i64, key: Option<&'static str>, value: Option<&'static str>) -> Record {
    Record {
        offset: Offset(offset),
        timestamp: TimestampMs(timestamp),
        key: key.map(Bytes::from),
        value: value.map(Bytes::from),
        headers: Vec::new(),
    }
}

/// Decodes a vector, compares the header, and compares the bytes with those of the batch that was built.
fn check(vector: &Vector, expected: BatchHeader, built: RecordBatch) -> RecordBatch {
    let bytes = vector.bytes();
    let (batch, next) = RecordBatch::decode(&bytes, 0).unwrap();
    assert_eq!(next, vector.size);
    assert_eq!(batch.size_in_bytes(), vector.size);
    assert_eq!(*batch.header(), expected, "{}", vector.name);
    assert_eq!(batch.ensure_valid(), Ok(()), "{}", vector.name);
    assert_eq!(built.bytes(), &bytes, "{}", vector.name);
    assert_eq!(built, batch);
    batch
}

/// As `check`, for a control batch and its record; the vector's batch has no producer.
fn check_control(vector: &Vector, expected: BatchHeader, record: ControlRecord) {
    let offset = expected.base_offset;
    let timestamp = expected.max_timestamp;
    let built = RecordBatch::control(offset, expected.partition_leader_epoch, timestamp, &record).unwrap();
    let batch = check(vector, expected, built);
    assert!(batch.is_control() && !batch.is_transactional() && !batch.has_producer_id());
    assert_eq!(batch.control_type(), Ok(Some(record.record_type())));
    let [stored] = &batch.records().unwrap()[..] else { panic!("one record expected") };
    assert_eq!(ControlRecord::decode(stored.key.as_ref(), stored.value.as_ref()), Ok(record.clone()));
    assert_eq!(batch.control_record(), Ok(Some(record)));
}

#[test]
fn plain_batch() {
    let header_value =
        |key: &'static str, value: Option<&'static str>| Header { key: Bytes::from(key), value: value.map(Bytes::from) };
    let mut first = record(100, T.get(), Some("k1"), Some("v1"));
    first.headers = vec![header_value("h", Some("x")), header_value("n", None)];
    let records = vec![first, record(101, T.get() + 5, None, Some("v2")), record(102, T.get() - 3, Some("k3"), None)];
    let expected = BatchHeader {
        partition_leader_epoch: LeaderEpoch(7),
        last_offset_delta: 2,
        max_timestamp: TimestampMs(T.get() + 5),
        record_count: 3,
        ..header(&vectors::PLAIN, 100, 0x9ff9_c3f1)
    };
    let built = BatchBuilder::new(Offset(100)).leader_epoch(LeaderEpoch(7)).records(records.clone()).build().unwrap();
    let batch = check(&vectors::PLAIN, expected, built);
    assert_eq!(batch.records(), Ok(records));
    assert_eq!((batch.last_offset(), batch.next_offset()), (Offset(102), Offset(103)));
    assert_eq!(batch.last_sequence(), Sequence::NONE);
    assert_eq!((batch.control_type(), batch.control_record()), (Ok(None), Ok(None)));
    assert_eq!(batch.records().unwrap()[0].headers[0].key_utf8(), "h");
}

#[test]
fn idempotent_batch() {
    let expected = BatchHeader {
        last_offset_delta: 1,
        producer_id: ProducerId(4711),
        producer_epoch: ProducerEpoch(3),
        base_sequence: Sequence(10),
        record_count: 2,
        ..header(&vectors::IDEMPOTENT, 0, 0x4e67_c332)
    };
    let built = BatchBuilder::new(Offset(0))
        .leader_epoch(EPOCH)
        .producer(ProducerId(4711), ProducerEpoch(3), Sequence(10))
        .timestamp(T)
        .record(Some(b"ka"), Some(b"a"))
        .record(Some(b"kb"), Some(b"b"))
        .build()
        .unwrap();
    let batch = check(&vectors::IDEMPOTENT, expected, built);
    assert_eq!(batch.last_sequence(), Sequence(11));
    assert_eq!(batch.sequence_of(Offset(1)), Sequence(11));
    let records = vec![record(0, T.get(), Some("ka"), Some("a")), record(1, T.get(), Some("kb"), Some("b"))];
    assert_eq!(batch.records(), Ok(records));
}

#[test]
fn transactional_batch() {
    let expected = BatchHeader {
        attributes: Attributes(0x10),
        producer_id: ProducerId(4711),
        producer_epoch: ProducerEpoch(3),
        base_sequence: Sequence(12),
        ..header(&vectors::TRANSACTIONAL, 2, 0x0576_d1e6)
    };
    let built = BatchBuilder::new(Offset(2))
        .leader_epoch(EPOCH)
        .producer(ProducerId(4711), ProducerEpoch(3), Sequence(12))
        .transactional(true)
        .append(record(2, T.get(), Some("kc"), Some("c")))
        .build()
        .unwrap();
    let batch = check(&vectors::TRANSACTIONAL, expected, built);
    assert!(batch.is_transactional() && !batch.is_control() && batch.has_producer_id());
    assert_eq!(batch.records(), Ok(vec![record(2, T.get(), Some("kc"), Some("c"))]));
}

fn check_marker(vector: &Vector, expected: BatchHeader, commit: bool, coordinator_epoch: CoordinatorEpoch) {
    let expected = BatchHeader { attributes: Attributes(0x30), ..expected };
    let built = RecordBatch::end_txn_marker(
        expected.base_offset,
        expected.partition_leader_epoch,
        expected.max_timestamp,
        expected.producer_id,
        expected.producer_epoch,
        commit,
        coordinator_epoch,
    );
    let batch = check(vector, expected, built.unwrap());
    let record_type = if commit { ControlRecordType::Commit } else { ControlRecordType::Abort };
    assert_eq!(batch.control_type(), Ok(Some(record_type)));
    let marker = EndTxnMarker { commit, coordinator_epoch };
    assert_eq!(batch.control_record(), Ok(Some(ControlRecord::EndTxnMarker(marker))));
    assert_eq!(batch.last_sequence(), Sequence::NONE);
}

#[test]
fn end_transaction_markers() {
    let producer = |header| BatchHeader { producer_id: ProducerId(4711), producer_epoch: ProducerEpoch(3), ..header };
    let commit = producer(header(&vectors::COMMIT, 3, 0xa8da_8731));
    check_marker(&vectors::COMMIT, commit, true, CoordinatorEpoch(9));
    let abort = producer(header(&vectors::ABORT, 3, 0x5ce4_5179));
    check_marker(&vectors::ABORT, abort, false, CoordinatorEpoch(9));
    let kip_abort = BatchHeader {
        partition_leader_epoch: LeaderEpoch(6),
        base_timestamp: T_KIP,
        max_timestamp: T_KIP,
        producer_id: ProducerId(5),
        producer_epoch: ProducerEpoch(7),
        ..header(&vectors::ABORT_BEFORE_BARRIER, 80, 0x05a6_43f1)
    };
    check_marker(&vectors::ABORT_BEFORE_BARRIER, kip_abort, false, CoordinatorEpoch(0));
}

#[test]
fn kraft_control_records() {
    let message = LeaderChange { version: 0, leader_id: 1, voters: vec![1, 2], granting_voters: vec![1] };
    let expected = control_header(&vectors::LEADER_CHANGE, 0, 0x7253_19f0);
    check_control(&vectors::LEADER_CHANGE, expected, ControlRecord::LeaderChange(message));

    let message = SnapshotHeader { version: 0, last_contained_log_timestamp: T };
    let expected = control_header(&vectors::SNAPSHOT_HEADER, 0, 0xc7ac_7804);
    check_control(&vectors::SNAPSHOT_HEADER, expected, ControlRecord::SnapshotHeader(message));

    let message = SnapshotFooter { version: 0 };
    let expected = control_header(&vectors::SNAPSHOT_FOOTER, 0, 0x8f66_08e6);
    check_control(&vectors::SNAPSHOT_FOOTER, expected, ControlRecord::SnapshotFooter(message));

    let message = KRaftVersion { version: 0, kraft_version: 1 };
    let expected = control_header(&vectors::KRAFT_VERSION, 0, 0xa89c_5586);
    check_control(&vectors::KRAFT_VERSION, expected, ControlRecord::KRaftVersion(message));

    let endpoint = VoterEndpoint { name: "C".to_owned(), host: "h".to_owned(), port: 9093 };
    let voter = Voter {
        voter_id: 1,
        directory_id: [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2],
        endpoints: vec![endpoint],
        min_supported_version: 0,
        max_supported_version: 1,
    };
    let message = KRaftVoters { version: 0, voters: vec![voter] };
    let expected = control_header(&vectors::KRAFT_VOTERS, 0, 0x372d_0b84);
    check_control(&vectors::KRAFT_VOTERS, expected, ControlRecord::KRaftVoters(message));
}

fn check_barrier(vector: &Vector, expected: BatchHeader, source_cluster_id: Option<&str>) {
    let value = MirrorPidResetRecord { version: 0, source_cluster_id: source_cluster_id.map(str::to_owned) };
    let built =
        RecordBatch::mirror_pid_reset(expected.base_offset, expected.partition_leader_epoch, expected.max_timestamp, &value);
    assert_eq!(built.unwrap().bytes(), &vector.bytes(), "{}", vector.name);
    check_control(vector, expected, ControlRecord::MirrorPidReset(value));
}

#[test]
fn barriers_of_both_layouts() {
    let kip =
        |header| BatchHeader { partition_leader_epoch: LeaderEpoch(6), base_timestamp: T_KIP, max_timestamp: T_KIP, ..header };
    let expected = kip(control_header(&vectors::BARRIER_VERSION_ONLY, 81, 0xfd99_d6dc));
    check_barrier(&vectors::BARRIER_VERSION_ONLY, expected, None);
    let expected = kip(control_header(&vectors::BARRIER_WITH_KIP_ID, 81, 0xa83a_7f61));
    check_barrier(&vectors::BARRIER_WITH_KIP_ID, expected, Some("MkU3OEVBNTcwNTJENDM2Qg"));
    let expected = control_header(&vectors::BARRIER_EMPTY_ID, 4, 0xd792_6ad1);
    check_barrier(&vectors::BARRIER_EMPTY_ID, expected, Some(""));
    let expected = control_header(&vectors::BARRIER_WITH_ID, 4, 0x81c8_e601);
    check_barrier(&vectors::BARRIER_WITH_ID, expected, Some("AAAAAAAAAAEAAAAAAAAAAg"));
}

#[test]
fn a_barrier_with_a_broken_value_is_a_barrier_by_its_key() {
    let key = ControlRecordType::MirrorPidReset.key();
    let built = BatchBuilder::new(Offset(4))
        .leader_epoch(EPOCH)
        .timestamp(T)
        .control(true)
        .record(Some(&key), Some(&[0, 0, 1]))
        .build()
        .unwrap();
    let vector = &vectors::TYPE_7_INCOMPLETE;
    let batch = check(vector, control_header(vector, 4, 0xa878_5b4b), built);
    assert_eq!(batch.control_type(), Ok(Some(ControlRecordType::MirrorPidReset)));
    let error = batch.control_record().unwrap_err();
    // The value is the three bytes before the header count, which is the last byte.
    assert_eq!(error.position(), vector.size - 1);
    assert!(matches!(error, DecodeError::UnexpectedEnd { .. }), "{error}");
}

#[test]
fn empty_header_of_a_compacted_batch() {
    let vector = &vectors::EMPTY_HEADER;
    let expected = BatchHeader {
        last_offset_delta: 4,
        base_timestamp: TimestampMs::NONE,
        producer_id: ProducerId(4711),
        producer_epoch: ProducerEpoch(3),
        base_sequence: Sequence(10),
        record_count: 0,
        ..header(vector, 100, 0xe2c4_a67d)
    };
    let original = BatchBuilder::new(Offset(100))
        .leader_epoch(EPOCH)
        .producer(ProducerId(4711), ProducerEpoch(3), Sequence(10))
        .timestamp(T)
        .delete_horizon(TimestampMs(T.get() + 1000))
        .record(Some(b"k"), None)
        .last_offset(Offset(104))
        .build()
        .unwrap();
    assert_eq!(original.delete_horizon(), Some(TimestampMs(T.get() + 1000)));
    let batch = check(vector, expected, RecordBatch::empty_header(original.header()));
    assert_eq!(batch.size_in_bytes(), HEADER_BYTES);
    assert_eq!(batch.records(), Ok(Vec::new()));
    assert_eq!((batch.last_offset(), batch.last_sequence()), (Offset(104), Sequence(14)));
    assert_eq!(batch.delete_horizon(), None);
}

#[test]
fn an_empty_header_keeps_the_flags_and_is_no_barrier() {
    let barrier = RecordBatch::decode(&vectors::BARRIER_WITH_ID.bytes(), 0).unwrap().0;
    let empty = RecordBatch::empty_header(barrier.header());
    assert!(empty.is_control());
    assert_eq!((empty.control_type(), empty.control_record()), (Ok(None), Ok(None)));
    let commit = RecordBatch::decode(&vectors::COMMIT.bytes(), 0).unwrap().0;
    let empty = RecordBatch::empty_header(commit.header());
    assert!(empty.is_control() && empty.is_transactional());
    assert_eq!((empty.max_timestamp(), empty.timestamp_type()), (T, TimestampType::CreateTime));
    assert_eq!(empty.ensure_valid(), Ok(()));
}

#[test]
fn delete_horizon_on_a_tombstone() {
    let vector = &vectors::DELETE_HORIZON;
    let horizon = TimestampMs(T.get() + 1000);
    let expected = BatchHeader { attributes: Attributes(0x40), base_timestamp: horizon, ..header(vector, 100, 0x3a7f_46b2) };
    let built = BatchBuilder::new(Offset(100))
        .leader_epoch(EPOCH)
        .timestamp(T)
        .delete_horizon(horizon)
        .record(Some(b"k"), None)
        .build()
        .unwrap();
    let batch = check(vector, expected, built);
    assert_eq!(batch.delete_horizon(), Some(horizon));
    assert_eq!(batch.records(), Ok(vec![record(100, T.get(), Some("k"), None)]));
}

#[test]
fn offsets_and_leader_epochs_are_restamped_without_a_new_crc() {
    for vector in vectors::VECTORS {
        let (batch, _) = RecordBatch::decode(&vector.bytes(), 0).unwrap();
        let restamped = batch.with_base_offset(Offset(1 << 40)).with_leader_epoch(LeaderEpoch(i32::MAX));
        assert_eq!(restamped.stored_crc(), batch.stored_crc());
        assert_eq!(restamped.ensure_valid(), Ok(()), "{}", vector.name);
        assert_eq!((restamped.base_offset(), restamped.leader_epoch()), (Offset(1 << 40), LeaderEpoch(i32::MAX)));
        let back = restamped.with_base_offset(batch.base_offset()).with_leader_epoch(batch.leader_epoch());
        assert_eq!(back, batch);
    }
}

#[test]
fn a_new_producer_id_gets_a_new_crc() {
    for vector in vectors::VECTORS {
        let (batch, _) = RecordBatch::decode(&vector.bytes(), 0).unwrap();
        let mapped = batch.with_producer_id(ProducerId(-4713));
        assert_eq!(mapped.ensure_valid(), Ok(()), "{}", vector.name);
        assert_ne!(mapped.stored_crc(), batch.stored_crc());
        assert_eq!(RecordBatch::decode(mapped.bytes(), 0), Ok((mapped.clone(), vector.size)));
        assert!(!mapped.has_producer_id());
        assert_eq!(mapped.records(), batch.records());
        assert_eq!(mapped.with_producer_id(batch.producer_id()), batch);
    }
}
