#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's TransactionIndexTest, through the log that the index belongs to.

use bytes::{BufMut, BytesMut};
use cleanslate_log::log::{LogConfig, PartitionLog, Recovery, TXN_INDEX_FILE};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::{FaultyStorage, FileStorage, Storage, Unsynced};
use cleanslate_log::types::{LeaderEpoch, Offset};

use super::unified_log_test_core::script::aborted;
use crate::upstream::support::{Log, NOW, end_txn, lead, lead_marker, new_log, plain, produced, reopen, reopen_files};

type Entry = (i64, i64, i64, i64);

const ENTRIES: [Entry; 4] = [(0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40)];

fn encoded(entries: &[Entry]) -> BytesMut {
    let mut out = BytesMut::new();
    for (id, first, last, stable) in entries {
        out.put_i16(0);
        [id, first, last, stable].into_iter().for_each(|field| out.put_i64(*field));
    }
    out
}

/// A log of 100 records whose transaction index holds some entries.
fn indexed(entries: &[Entry], start: i64) -> Log {
    let mut log = new_log(&LogConfig::default());
    log.truncate_fully_and_start_at(Offset(start), NOW).unwrap();
    (0..100).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    log.close_clean().unwrap();
    let mut storage = log.storage().clone();
    let name = format!("{start:0>20}.txnindex");
    storage.replace(&name, &encoded(entries).freeze()).unwrap();
    reopen_files(storage, log.config(), Recovery::Clean, start, start)
}

#[test]
fn test_position_set_correctly_when_opened() {
    let mut log = indexed(&ENTRIES, 0);
    assert_eq!(aborted(&log), ENTRIES);
    lead(&mut log, produced(4, 0, 0, 1).transactional(true)).unwrap();
    let marker = end_txn(4, 0, false, 0);
    lead_marker(&mut log, &marker).unwrap();
    let mut expected = ENTRIES.to_vec();
    expected.push((4, 100, 101, 102));
    assert_eq!(aborted(&log), expected);
    assert_eq!(log.storage().read_all(TXN_INDEX_FILE).unwrap().unwrap(), encoded(&expected));
    log.close_clean().unwrap();
    assert_eq!(aborted(&reopen(&log, Recovery::Clean, 0, 0)), expected);
}

/// The index is found to be wrong, and made again from the log.
#[test]
fn test_sanity_check() {
    assert_eq!(aborted(&indexed(&ENTRIES, 100)), []);
}

#[test]
fn test_collect_aborted_transactions() {
    let log = indexed(&ENTRIES, 0);
    for (from, to, expected) in [(0, 100, 0..4), (0, 32, 0..3), (0, 35, 0..4), (10, 35, 0..4), (11, 35, 1..4), (20, 41, 2..4)] {
        let found = log.collect_aborted_transactions(Offset(from), Offset(to));
        let ids: Vec<i64> = found.iter().map(|txn| txn.producer_id.get()).collect();
        assert_eq!(ids, expected.collect::<Vec<i64>>(), "{from} {to}");
    }
}

#[test]
fn test_truncate() {
    let mut log = indexed(&ENTRIES, 0);
    for (target, left) in [(51, 4), (50, 3), (0, 0)] {
        log.truncate_to(Offset(target), NOW).unwrap();
        // What is cut cannot be made again: these transactions are in the index only.
        assert_eq!(aborted(&log), ENTRIES[..left], "{target}");
        assert_eq!(log.storage().read_all(TXN_INDEX_FILE).unwrap().unwrap(), encoded(&ENTRIES[..left]));
    }
}

#[test]
fn test_aborted_txn_serde() {
    let entry = (983_493, 137, 299, 200);
    let log = indexed(&[entry], 0);
    assert_eq!(aborted(&log), [entry]);
    assert_eq!(encoded(&[entry]).len(), cleanslate_log::log::TXN_INDEX_ENTRY_BYTES);
}

/// The file is there from the first aborted transaction on, and an index without a file is one without entries.
#[test]
fn test_is_empty() {
    let mut log = new_log(&LogConfig::default());
    let first = produced(4, 0, 0, 1).transactional(true);
    lead(&mut log, first).unwrap();
    assert_eq!((log.storage().len(TXN_INDEX_FILE), aborted(&log)), (Ok(None), vec![]));
    let mut storage = log.storage().clone();
    storage.replace(TXN_INDEX_FILE, &encoded(&[]).freeze()).unwrap();
    assert_eq!(aborted(&reopen_files(storage, log.config(), Recovery::Clean, 0, 0)), []);
    lead_marker(&mut log, &end_txn(4, 0, false, 0)).unwrap();
    assert_eq!((log.storage().len(TXN_INDEX_FILE), aborted(&log)), (Ok(Some(34)), vec![(4, 0, 1, 2)]));
}

/// The index goes with its segment.
#[test]
fn test_delete_if_exists() {
    let mut log = indexed(&ENTRIES, 0);
    log.roll(NOW).unwrap();
    log.update_high_watermark(Offset(100));
    log.maybe_increment_log_start_offset(Offset(100)).unwrap();
    assert_eq!(log.delete_old_segments(NOW), Ok(1));
    assert_eq!((log.storage().len(TXN_INDEX_FILE), aborted(&log)), (Ok(None), vec![]));
    assert_eq!(log.delete_old_segments(NOW), Ok(0));
}

/// A deleted segment's index keeps its entries under its other name, and takes more; under the name that it had, a log finds both.
#[test]
fn test_rename_index() {
    let config = LogConfig { file_delete_delay_ms: Some(1), ..LogConfig::default() };
    let source = indexed(&[(0, 0, 10, 2)], 0);
    let mut log = reopen_files(source.storage().clone(), &config, Recovery::Clean, 0, 0);
    log.truncate_fully_and_start_at(Offset(0), NOW).unwrap();
    assert_eq!(aborted(&log), []);
    let mut storage = log.storage().clone();
    let renamed = format!("{TXN_INDEX_FILE}.deleted");
    storage.append(&renamed, &encoded(&[(1, 5, 15, 16)]).freeze()).unwrap();
    assert_eq!(storage.len(TXN_INDEX_FILE), Ok(None));
    let both = storage.read_all(&renamed).unwrap().unwrap();
    assert_eq!(both, encoded(&[(0, 0, 10, 2), (1, 5, 15, 16)]));
    let mut files = source.storage().clone();
    files.replace(&renamed, &both).unwrap();
    files.rename(&renamed, TXN_INDEX_FILE).unwrap();
    let log = reopen_files(files, &config, Recovery::Clean, 0, 0);
    let found = log.collect_aborted_transactions(Offset(0), Offset(100));
    assert_eq!(found.iter().map(|txn| txn.first_offset.get()).collect::<Vec<_>>(), [0, 5]);
}

/// The directory of a log gets another name while the log is open, and the index goes on there.
#[test]
fn test_update_parent_dir() {
    let parent = tempfile::tempdir().unwrap();
    let (before, after) = (parent.path().join("t-0"), parent.path().join("parent"));
    let mut files = FileStorage::open(&before).unwrap();
    let source = indexed(&ENTRIES, 0);
    for name in source.storage().names().unwrap() {
        files.replace(&name, &source.storage().read_all(&name).unwrap().unwrap()).unwrap();
    }
    let (mut log, _) = PartitionLog::open(files, LogConfig::default(), Recovery::Clean, NOW).unwrap();
    let append = |log: &mut PartitionLog<FileStorage>, batch: &RecordBatch, origin| {
        log.append_as_leader(batch.bytes().clone(), origin, LeaderEpoch(0), TransactionVersion::V0, NOW).unwrap();
    };
    append(&mut log, &produced(4, 0, 0, 1).transactional(true).build().unwrap(), AppendOrigin::Client);
    assert_eq!(log.storage().dir(), before);
    log.rename_dir("parent").unwrap();
    assert_eq!(log.storage().dir(), after);
    append(&mut log, &end_txn(4, 0, false, 0), AppendOrigin::Coordinator);
    let mut expected = ENTRIES.to_vec();
    expected.push((4, 100, 101, 102));
    assert_eq!(std::fs::read(after.join(TXN_INDEX_FILE)).unwrap(), encoded(&expected));
    log.close_clean().unwrap();
    assert!(!before.exists());
    let (log, _) = PartitionLog::open(FileStorage::open(&after).unwrap(), LogConfig::default(), Recovery::Clean, NOW).unwrap();
    assert_eq!(log.aborted_transactions().map(|txn| txn.first_offset.get()).collect::<Vec<_>>(), [0, 5, 18, 32, 100]);
    assert_eq!(log.log_end_offset(), Offset(102));
}

#[test]
fn test_flush() {
    let mut log = PartitionLog::create(FaultyStorage::new(), LogConfig::default(), NOW).unwrap();
    let mut append = |batch: &RecordBatch, origin| {
        let tv = TransactionVersion::V0;
        log.append_as_leader(batch.bytes().clone(), origin, LeaderEpoch(0), tv, NOW).unwrap();
        // To flush an index that is not there is nothing.
        log.flush().unwrap();
        log.storage().after_power_failure(Unsynced::Lost).read_all(TXN_INDEX_FILE).unwrap()
    };
    let data = produced(0, 0, 0, 10).transactional(true).build().unwrap();
    assert_eq!(append(&data, AppendOrigin::Client), None);
    let flushed = append(&end_txn(0, 0, false, 0), AppendOrigin::Coordinator);
    assert_eq!(flushed.unwrap(), encoded(&[(0, 0, 10, 11)]));
}
