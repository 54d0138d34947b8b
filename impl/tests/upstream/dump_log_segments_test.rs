#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's DumpLogSegmentsTest.

use bytes::{BufMut, Bytes};
use cleanslate_log::dump::{DumpError, DumpFile, DumpOptions, Dumper};
use cleanslate_log::log::LogConfig;
use cleanslate_log::psm::{ProducerSnapshot, SnapshotEntry};
use cleanslate_log::record::{
    AnyBatch, AnyBatchReader, BatchBuilder, Compression, ControlRecord, EndTxnMarker, KRaftVersion, KRaftVoters, LeaderChange,
    SnapshotFooter, SnapshotHeader,
};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::legacy::legacy;
use crate::upstream::support::{Log, end_txn, lead, lead_marker, new_log, plain, produced};

const LOG: &str = "00000000000000000000.log";
const INDEX: &str = "00000000000000000000.index";
const TIME_INDEX: &str = "00000000000000000000.timeindex";
const TXN_INDEX: &str = "00000000000000000000.txnindex";
const SNAPSHOT: &str = "00000000000000000000.snapshot";

/// stdout and stderr of a dump that does not fail.
fn dump(storage: &impl Storage, name: &str, options: &DumpOptions) -> (String, String) {
    let (result, out, err) = try_dump(storage, name, options);
    result.unwrap();
    (out, err)
}

fn try_dump(storage: &impl Storage, name: &str, options: &DumpOptions) -> (Result<(), DumpError>, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut dumper = Dumper::new(options.clone(), &mut out, &mut err);
    let result = dumper.file(storage, &DumpFile { path: name, absolute_path: name, name });
    let result = result.and_then(|()| dumper.finish());
    (result, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn file(name: &str, bytes: &[u8]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    storage.append(name, &Bytes::copy_from_slice(bytes)).unwrap();
    storage
}

fn plain_options() -> DumpOptions {
    DumpOptions::default()
}

fn deep() -> DumpOptions {
    DumpOptions { deep_iteration: true, ..plain_options() }
}

fn with_data() -> DumpOptions {
    DumpOptions { print_data_log: true, ..plain_options() }
}

/// A batch with keys and values that can be found in the output.
fn words(builder: BatchBuilder, records: std::ops::Range<usize>) -> BatchBuilder {
    records.fold(builder, |builder, n| {
        builder.record(Some(format!("message key {n}").as_bytes()), Some(format!("message value {n}").as_bytes()))
    })
}

/// The batches of the upstream fixture: plain, gzip, plain, idempotent, transactional with gzip, and its COMMIT.
fn log() -> Log {
    let mut log = new_log(&LogConfig { index_interval_bytes: 128, ..LogConfig::default() });
    lead(&mut log, words(plain(0), 1..3)).unwrap();
    lead(&mut log, words(plain(0).compression(Compression::Gzip), 3..5)).unwrap();
    lead(&mut log, words(plain(0), 5..7)).unwrap();
    lead(&mut log, words(produced(29_342_342, 15, 234_123, 0), 7..9)).unwrap();
    lead(&mut log, words(produced(98_323, 99, 266, 0).transactional(true).compression(Compression::Gzip), 9..11)).unwrap();
    lead_marker(&mut log, &end_txn(98_323, 99, true, 100)).unwrap();
    log
}

fn storage_of(mut log: Log) -> MemoryStorage {
    log.close_clean().unwrap();
    log.into_storage()
}

fn batches(storage: &impl Storage) -> Vec<AnyBatch> {
    AnyBatchReader::new(storage.read_all(LOG).unwrap().unwrap()).map(Result::unwrap).collect()
}

/// The word behind a name in a line.
fn value<'a>(line: &'a str, name: &str) -> &'a str {
    let behind = line.split(&format!("{name}: ")).nth(1).unwrap_or_else(|| panic!("{name} in {line}"));
    behind.split(' ').next().unwrap()
}

#[test]
fn test_batch_and_record_metadata_output() {
    let storage = storage_of(log());
    let (out, _) = dump(&storage, LOG, &deep());
    let mut lines = out.lines();
    assert_eq!((lines.next(), lines.next()), (Some("Dumping 00000000000000000000.log"), Some("Log starting offset: 0")));
    let mut position = 0;
    for batch in batches(&storage) {
        let v2 = batch.as_v2().unwrap();
        let line = lines.next().unwrap();
        assert!(line.starts_with("baseOffset: "), "{line}");
        let fields = [
            ("baseOffset", v2.base_offset().to_string()),
            ("lastOffset", v2.last_offset().to_string()),
            ("count", v2.record_count().to_string()),
            ("baseSequence", v2.base_sequence().to_string()),
            ("lastSequence", v2.last_sequence().to_string()),
            ("producerId", v2.producer_id().to_string()),
            ("producerEpoch", v2.producer_epoch().to_string()),
            ("partitionLeaderEpoch", v2.leader_epoch().to_string()),
            ("isTransactional", v2.is_transactional().to_string()),
            ("isControl", v2.is_control().to_string()),
            ("deleteHorizonMs", "OptionalLong.empty".to_owned()),
            ("position", position.to_string()),
            ("CreateTime", v2.max_timestamp().to_string()),
            ("size", v2.size_in_bytes().to_string()),
            ("magic", "2".to_owned()),
            ("crc", v2.stored_crc().to_string()),
            ("isvalid", "true".to_owned()),
        ];
        for (name, expected) in fields {
            assert_eq!(value(line, name), expected, "{name} in {line}");
        }
        position += v2.size_in_bytes();
        for record in batch.records().unwrap() {
            let line = lines.next().unwrap();
            assert_eq!(value(line, "| offset"), record.offset.to_string());
            assert_eq!(value(line, "keySize"), record.key.unwrap().len().to_string());
            assert_eq!(value(line, "valueSize"), record.value.unwrap().len().to_string());
            assert_eq!(value(line, "CreateTime"), record.timestamp.to_string());
            assert_eq!(value(line, "sequence"), v2.sequence_of(record.offset).to_string());
            let of_batch = [
                "baseOffset",
                "lastOffset",
                "partitionLeaderEpoch",
                "producerId",
                "producerEpoch",
                "baseSequence",
                "isTransactional",
                "isControl",
                "compresscodec",
            ];
            assert!(of_batch.iter().all(|name| !line.contains(name)), "{line}");
        }
    }
    assert_eq!(lines.next(), None);
    let codecs: Vec<_> =
        out.lines().filter(|line| line.contains("compresscodec")).map(|line| value(line, "compresscodec")).collect();
    assert_eq!(codecs, ["none", "gzip", "none", "none", "gzip", "none"]);
    assert!(out.contains("producerId: 29342342 producerEpoch: 15") && out.contains("baseSequence: 234123 lastSequence: 234124"));
    assert!(out.contains("endTxnMarker: COMMIT coordinatorEpoch: 100"));
}

#[test]
fn test_print_data_log() {
    let storage = storage_of(log());
    let (out, _) = dump(&storage, LOG, &plain_options());
    assert!(!out.contains("message") && !out.contains("| "), "{out}");
    let (out, _) = dump(&storage, LOG, &deep());
    assert!(!out.contains("message") && out.matches("| ").count() == 11, "{out}");
    for options in [with_data(), DumpOptions { print_data_log: true, ..deep() }] {
        let (out, _) = dump(&storage, LOG, &options);
        for n in 1..11 {
            assert!(out.contains(&format!(" key: message key {n} payload: message value {n}\n")), "{n} in {out}");
        }
    }
}

#[test]
fn test_print_data_log_partial_batches() {
    let storage = storage_of(log());
    let sizes: Vec<_> = batches(&storage).iter().map(AnyBatch::size_in_bytes).collect();
    assert_eq!(sizes.len(), 6);
    let half: usize = sizes[..3].iter().sum();
    for (bytes, expected) in [(half, 3), (half + 1, 3), (half - 1, 2), (0, 0)] {
        let options = DumpOptions { max_bytes: Some(bytes as u64), ..plain_options() };
        let (out, _) = dump(&storage, LOG, &options);
        assert_eq!(out.matches("baseOffset").count(), expected, "{bytes} bytes");
        assert!(!out.contains("invalid bytes"));
    }
}

#[test]
fn test_dump_index_mismatches() {
    let storage = storage_of(log());
    let (out, err) = dump(&storage, INDEX, &plain_options());
    assert!(out.lines().count() > 2, "the index has entries: {out}");
    assert_eq!(err, "");
}

#[test]
fn test_dump_time_index_errors() {
    let storage = storage_of(log());
    let (out, err) = dump(&storage, TIME_INDEX, &plain_options());
    assert!(out.contains("timestamp: "), "the index has entries: {out}");
    assert_eq!(err, "");
}

#[test]
fn test_index_sanity_check() {
    let storage = storage_of(log());
    for name in [INDEX, TIME_INDEX] {
        let (out, err) = dump(&storage, name, &DumpOptions { index_sanity_check: true, ..plain_options() });
        assert_eq!((out, err), (format!("Dumping {name}\n{name} passed sanity check.\n"), String::new()));
    }
}

#[test]
fn test_time_index_verify_only() {
    let storage = storage_of(log());
    let (out, err) = dump(&storage, TIME_INDEX, &DumpOptions { verify_index_only: true, ..plain_options() });
    assert_eq!((out, err), (format!("Dumping {TIME_INDEX}\n"), String::new()));
}

#[test]
fn test_dump_empty_index() {
    let mut storage = file(LOG, &[]);
    storage.append(INDEX, &Bytes::new()).unwrap();
    let (out, _) = dump(&storage, INDEX, &plain_options());
    assert_eq!(out, format!("Dumping {INDEX}\n{INDEX} is empty.\n"));
}

/// A log and a time index, of which the first entry has another timestamp than the log, the second a smaller one than the
/// first, and the third an offset that the log does not have.
#[test]
fn test_time_index_dump_errors_print_errors() {
    let at = |offset: i64, time: i64| {
        BatchBuilder::new(Offset(offset)).timestamp(TimestampMs(time)).record(None, Some(b"v")).build().unwrap().bytes().clone()
    };
    let mut storage = file(LOG, &[at(0, 200), at(1, 50)].concat());
    storage.append(INDEX, &Bytes::new()).unwrap();
    let mut index = Vec::new();
    for (timestamp, offset) in [(100, 0), (50, 1), (300, 10)] {
        index.put_i64(timestamp);
        index.put_i32(offset);
    }
    storage.append(TIME_INDEX, &index.into()).unwrap();
    let (_, err) = dump(&storage, TIME_INDEX, &plain_options());
    let expected = [
        "Found timestamp mismatch in :00000000000000000000.timeindex",
        "  Index timestamp: 100, log timestamp: 200",
        "Found out of order timestamp in :00000000000000000000.timeindex",
        "  Index timestamp: 50, Previously indexed timestamp: 100",
        "The following indexed offsets are not found in :00000000000000000000.timeindex",
        "Indexed offset: 10, found log offset: -1",
    ];
    assert_eq!(err.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn test_dump_control_record() {
    let marker = EndTxnMarker { commit: true, coordinator_epoch: CoordinatorEpoch(100) };
    let records = [
        ControlRecord::EndTxnMarker(marker),
        ControlRecord::LeaderChange(LeaderChange::default()),
        ControlRecord::SnapshotHeader(SnapshotHeader::default()),
        ControlRecord::SnapshotFooter(SnapshotFooter::default()),
        ControlRecord::KRaftVersion(KRaftVersion::default()),
        ControlRecord::KRaftVoters(KRaftVoters::default()),
    ];
    let batch = |(offset, record): (i64, &ControlRecord)| {
        let builder = BatchBuilder::new(Offset(offset)).leader_epoch(LeaderEpoch(0)).control(true);
        let builder = match record {
            ControlRecord::EndTxnMarker(_) => {
                builder.producer(ProducerId(98_323), ProducerEpoch(99), Sequence::NONE).transactional(true)
            }
            _ => builder,
        };
        builder.control_record(record.clone()).build().unwrap().bytes().clone()
    };
    let bytes: Vec<_> = (0..).zip(&records).map(batch).collect();
    let (out, _) = dump(&file(LOG, &bytes.concat()), LOG, &deep());
    for word in ["COMMIT", "LeaderChange", "SnapshotHeader", "SnapshotFooter", "KRaftVersion", "KRaftVoters"] {
        assert!(out.contains(word), "{word} in {out}");
    }
}

#[test]
fn test_legacy_record_batch_output_format() {
    let records = [(Some(&b"key1"[..]), Some(&b"value1"[..])), (Some(&b"key2"[..]), Some(&b"value2"[..]))];
    for codec in [Compression::None, Compression::Gzip] {
        let (out, _) = dump(&file(LOG, &legacy(1, 0, codec, &records)), LOG, &with_data());
        let lines: Vec<_> = out.lines().filter(|line| line.starts_with("| ")).collect();
        assert_eq!(lines.len(), 2);
        for line in lines {
            assert!(line.contains(" isValid: true crc: ") && !line.contains('}'), "{line}");
        }
    }
}

#[test]
fn test_dump_txn_index() {
    let mut bytes = Vec::new();
    for fields in [[1, 0, 10, 11], [2, 15, 25, 26]] {
        bytes.put_i16(0);
        fields.into_iter().for_each(|field| bytes.put_i64(field));
    }
    let (out, err) = dump(&file(TXN_INDEX, &bytes), TXN_INDEX, &plain_options());
    let expected = [
        "Dumping 00000000000000000000.txnindex",
        "version: 0 producerId: 1 firstOffset: 0 lastOffset: 10 lastStableOffset: 11",
        "version: 0 producerId: 2 firstOffset: 15 lastOffset: 25 lastStableOffset: 26",
    ];
    assert_eq!((out.lines().collect::<Vec<_>>(), err.as_str()), (expected.to_vec(), ""));
}

/// A producer without a batch.
fn producer(id: i64, epoch: i16, coordinator: i32, timestamp: i64, txn: Option<i64>) -> SnapshotEntry {
    SnapshotEntry {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
        last_sequence: Sequence::NONE,
        last_offset: Offset::UNKNOWN,
        offset_delta: 0,
        timestamp: TimestampMs(timestamp),
        coordinator_epoch: CoordinatorEpoch(coordinator),
        current_txn_first_offset: txn.map(Offset),
    }
}

fn snapshot(entries: Vec<SnapshotEntry>) -> (String, String) {
    dump(&file(SNAPSHOT, &ProducerSnapshot { entries }.encode()), SNAPSHOT, &plain_options())
}

#[test]
fn test_dump_producer_id_snapshot() {
    let (out, err) = snapshot(vec![producer(1, 5, 10, 12_345, Some(100)), producer(2, 3, 7, 67_890, None)]);
    let expected = [
        "Dumping 00000000000000000000.snapshot",
        "producerId: 1 producerEpoch: 5 coordinatorEpoch: 10 currentTxnFirstOffset: OptionalLong[100] lastTimestamp: 12345",
        "producerId: 2 producerEpoch: 3 coordinatorEpoch: 7 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 67890",
    ];
    assert_eq!((out.lines().collect::<Vec<_>>(), err.as_str()), (expected.to_vec(), ""));
}

#[test]
fn test_dump_producer_id_snapshot_with_batch_metadata() {
    let entry =
        SnapshotEntry { last_sequence: Sequence(1), last_offset: Offset(1), offset_delta: 1, ..producer(42, 1, -1, -1, None) };
    let (out, _) = snapshot(vec![entry]);
    let expected = "producerId: 42 producerEpoch: 1 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty \
                    lastTimestamp: -1 firstSequence: 0 lastSequence: 1 lastOffset: 1 offsetDelta: 1 timestamp: -1";
    assert_eq!(out.lines().nth(1), Some(expected));
}

#[test]
fn test_dump_producer_id_snapshot_corrupt() {
    let (out, err) = dump(&file(SNAPSHOT, &[0, 1, 2, 3, 4, 5]), SNAPSHOT, &plain_options());
    assert_eq!((out.lines().count(), err.as_str()), (1, "Snapshot failed schema validation: null\n"));
}

#[test]
fn test_print_trailing_bytes() {
    let (out, _) = dump(&file(LOG, &[0xff; 10]), LOG, &plain_options());
    assert!(out.ends_with("Found 10 invalid bytes at the end of 00000000000000000000.log\n"), "{out}");
}

#[test]
fn test_dump_unknown_file_suffix() {
    let (out, err) = dump(&MemoryStorage::new(), "something.foo", &plain_options());
    assert_eq!((out.as_str(), err.as_str()), ("Dumping something.foo\n", "Ignoring unknown file something.foo\n"));
}

#[test]
fn test_dump_file_with_no_dot_in_name() {
    let (out, err) = dump(&MemoryStorage::new(), "nodot", &plain_options());
    assert_eq!((out.as_str(), err.as_str()), ("Dumping nodot\n", "Ignoring unknown file nodot\n"));
}
