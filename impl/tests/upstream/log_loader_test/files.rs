#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Files: indexes, damage, far offsets.

use bytes::Bytes;
use cleanslate_log::log::{FetchIsolation, LEADER_EPOCH_CHECKPOINT, LogConfig, OffsetSpec, Recovery};
use cleanslate_log::psm::snapshot_file_name;
use cleanslate_log::record::{BatchBuilder, Compression, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::legacy::{follow_bytes, same};
use crate::upstream::support::{
    Log, NOW, bases, epochs, follow, hw, later, lead, new_log, placed, plain, read, reopen, reopen_files, snapshots, start_at,
    timed,
};

const MAX: i64 = i32::MAX as i64;

fn name(base: i64, suffix: &str) -> String {
    format!("{base:0>20}.{suffix}")
}

/// Every file but snapshots and checkpoints.
fn segment_files(log: &Log) -> Vec<(String, Bytes)> {
    let names = log.storage().names().unwrap().into_iter();
    let of_segment = names.filter(|name| name.ends_with("log") || name.ends_with("index"));
    of_segment.map(|name| (name.clone(), log.storage().read_all(&name).unwrap().unwrap())).collect()
}

#[test]
fn test_log_recovers_to_correct_offset() {
    let batch = |timestamp| BatchBuilder::new(Offset(0)).timestamp(timestamp).record(None, Some(&[7; 100]));
    let config = LogConfig { segment_bytes: 700, segment_index_bytes: 4096, index_interval_bytes: 300, ..LogConfig::default() };
    let mut log = new_log(&config);
    for index in 0..100 {
        lead(&mut log, batch(later(index * 10))).unwrap();
    }
    assert_eq!(log.log_end_offset(), Offset(100));
    log.close_clean().unwrap();
    let expected = segment_files(&log);
    for (recovery, point) in [(Recovery::Clean, 100), (Recovery::Unclean, 0)] {
        let reopened = reopen(&log, recovery, point, 0);
        assert_eq!(reopened.log_end_offset(), Offset(100));
        assert_eq!(reopened.recovery_point(), Offset(point));
        assert_eq!(segment_files(&reopened), expected, "{recovery:?}");
    }
}

fn two_hundred() -> Log {
    let mut log = new_log(&LogConfig { segment_bytes: 200, index_interval_bytes: 1, ..LogConfig::default() });
    for index in 0..200 {
        lead(&mut log, timed(later(index * 10))).unwrap();
    }
    log
}

fn check_all_read(log: &Log) {
    for offset in 0..200 {
        assert_eq!(read(log, offset, FetchIsolation::LogEnd).unwrap()[0], (offset, offset));
    }
}

fn changed(log: &Log, suffixes: [&str; 2], bytes: Option<&'static [u8]>) -> MemoryStorage {
    let mut storage = log.storage().clone();
    for file in storage.names().unwrap() {
        if suffixes.iter().any(|suffix| file.ends_with(suffix)) {
            match bytes {
                Some(bytes) => storage.replace(&file, &Bytes::from_static(bytes)).unwrap(),
                None => storage.remove(&file).unwrap(),
            }
        }
    }
    storage
}

#[test]
fn test_index_rebuild() {
    let log = two_hundred();
    let mut reopened = reopen_files(changed(&log, [".index", ".timeindex"], None), log.config(), Recovery::Unclean, 200, 0);
    assert_eq!(reopened.log_end_offset(), Offset(200));
    assert!(reopened.storage().len(&name(0, "index")).unwrap().unwrap() > 0);
    assert!(reopened.storage().len(&name(0, "timeindex")).unwrap().unwrap() > 0);
    check_all_read(&reopened);
    for index in 0..200 {
        let found = reopened.fetch_offset_by_timestamp(OffsetSpec::Timestamp(later(index * 10))).unwrap();
        assert_eq!(found.map(|found| found.offset), Some(Offset(index)));
    }
}

#[test]
fn test_corrupt_index_rebuild() {
    let log = two_hundred();
    let storage = changed(&log, [".index", ".timeindex"], Some(b"  "));
    let reopened = reopen_files(storage, log.config(), Recovery::Unclean, 0, 0);
    assert_eq!(reopened.log_end_offset(), Offset(200));
    check_all_read(&reopened);
}

#[test]
fn test_bogus_index_segments_are_removed() {
    let mut storage = MemoryStorage::new();
    for suffix in ["index", "timeindex"] {
        storage.replace(&name(0, suffix), &Bytes::new()).unwrap();
        storage.replace(&name(5, suffix), &Bytes::new()).unwrap();
    }
    let mut log = reopen_files(storage, &LogConfig { segment_bytes: 200, ..LogConfig::default() }, Recovery::Unclean, 0, 0);
    for suffix in ["index", "timeindex"] {
        assert_eq!(log.storage().len(&name(0, suffix)).unwrap(), Some(0));
        assert_eq!(log.storage().len(&name(5, suffix)).unwrap(), None);
    }
    (0..10).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    log.delete_old_segments(NOW).unwrap();
}

#[test]
fn test_reopen_then_truncate() {
    let mut log = new_log(&LogConfig { segment_bytes: 5 * 79, segment_index_bytes: 1000, ..LogConfig::default() });
    (0..100).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    log.close_clean().unwrap();
    let mut log = reopen(&log, Recovery::Unclean, 100, 0);
    assert!(bases(&log).len() > 1);
    log.truncate_to(Offset(3), NOW).unwrap();
    assert_eq!(bases(&log).len(), 1);
    assert_eq!(log.log_end_offset(), Offset(3));
}

#[test]
fn test_open_deletes_obsolete_files() {
    let mut log = two_hundred();
    hw(&mut log, 200);
    let mut storage = log.storage().clone();
    for suffix in ["log.deleted", "index.deleted", "timeindex.deleted"] {
        storage.replace(&name(0, suffix), &Bytes::new()).unwrap();
    }
    let reopened = reopen_files(storage, log.config(), Recovery::Clean, 200, 0);
    assert!(!reopened.storage().names().unwrap().iter().any(|name| name.ends_with(".deleted")));
    check_all_read(&reopened);
}

#[test]
fn test_corrupt_log() {
    for round in 0..10u8 {
        let mut log = new_log(&LogConfig { segment_bytes: 1000, index_interval_bytes: 1, ..LogConfig::default() });
        let count = 50 + i64::from(round) * 49 / 9;
        (0..count).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
        let records = log.batches().unwrap();
        let mut storage = log.storage().clone();
        let active = bases(&log)[bases(&log).len() - 1];
        let garbage = |len: usize| Bytes::from((0..len).map(|at| (at as u8).wrapping_mul(29) ^ round).collect::<Vec<u8>>());
        storage.append(&name(active, "index"), &garbage(usize::from(round) * 97 + 1)).unwrap();
        storage.append(&name(active, "log"), &garbage(usize::from(round) * 101 + 1)).unwrap();
        let recovered = reopen_files(storage, log.config(), Recovery::Unclean, 50, 0);
        assert_eq!(recovered.log_end_offset(), Offset(count));
        assert_eq!(recovered.batches().unwrap(), records);
    }
}

fn check_over_compacted(batches: &[RecordBatch]) {
    let mut log = new_log(&LogConfig { index_interval_bytes: 1, ..LogConfig::default() });
    batches.iter().for_each(|batch| assert!(follow(&mut log, std::slice::from_ref(batch)).is_ok()));
    assert_eq!(bases(&log), [0, MAX + 2]);
    assert_eq!(snapshots(&log), [MAX + 2]);
    assert!(log.storage().len(&snapshot_file_name(Offset(MAX + 2))).unwrap().is_some());
    assert_eq!(log.batches().unwrap(), batches);
    // Offsets in an index count from the base, in 32 bits.
    let index = log.storage().read_all(&name(MAX + 2, "index")).unwrap().unwrap();
    assert!(index.chunks(8).all(|entry| entry[0] & 0x80 == 0));
    let reopened = reopen(&log, Recovery::Unclean, 0, 0);
    assert_eq!(reopened.batches().unwrap(), batches);
}

#[test]
fn test_over_compacted_log_recovery() {
    check_over_compacted(&[0, MAX + 2, MAX + 3, MAX + 4].map(|offset| placed(plain(1), offset, 0)));
}

#[test]
fn test_over_compacted_log_recovery_multi_record() {
    let gzip = |offset| placed(plain(2).compression(Compression::Gzip), offset, 0);
    check_over_compacted(&[placed(plain(1), 0, 0), gzip(MAX + 2), gzip(MAX + 4), gzip(MAX + 6)]);
}

/// What begins a set is not known without decompressing it, so that a segment begins as far in front of its last offset as can be.
#[test]
fn test_over_compacted_log_recovery_multi_record_v1() {
    let mut log = new_log(&LogConfig { segment_bytes: 1000, index_interval_bytes: 1, ..LogConfig::default() });
    let gzip = |first| same(1, first, Compression::Gzip, 2);
    let sets = [same(1, 0, Compression::None, 1), gzip(MAX + 2), gzip(MAX + 4), gzip(MAX + 6)];
    let active = |log: &Log| bases(log)[bases(log).len() - 1];
    for (set, base) in sets.iter().zip([0, 3, MAX + 4, MAX + 4]) {
        follow_bytes(&mut log, set.clone()).unwrap();
        assert_eq!(active(&log), base);
        assert_eq!(snapshots(&log).last().copied().unwrap_or(0), base);
    }
    assert_eq!((bases(&log), snapshots(&log)), (vec![0, 3, MAX + 4], vec![3, MAX + 4]));
    assert_eq!(log.read(Offset(0), FetchIsolation::LogEnd, usize::MAX).unwrap(), sets.concat());
    let reopened = reopen(&log, Recovery::Unclean, 0, 0);
    assert_eq!((bases(&reopened), reopened.log_end_offset()), (vec![0, 3, MAX + 4], Offset(MAX + 8)));
    assert_eq!(reopened.read(Offset(0), FetchIsolation::LogEnd, usize::MAX).unwrap(), sets.concat());
}

#[test]
fn test_clean_shutdown_file() {
    let log = two_hundred();
    let mut log = reopen(&log, Recovery::Clean, 0, 0);
    assert_eq!(log.log_end_offset(), Offset(200));
    (0..100).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    log.close_clean().unwrap();
    let report = cleanslate_log::log::PartitionLog::open(log.storage().clone(), log.config().clone(), Recovery::Clean, NOW);
    let (reopened, report) = report.unwrap();
    assert_eq!(reopened.log_end_offset(), Offset(300));
    assert_eq!((report.truncated_bytes, report.replayed_batches), (0, 0));
}

#[test]
fn test_log_recovers_for_leader_epoch() {
    let mut log = new_log(&LogConfig::default());
    for (offset, epoch) in [(0, 1), (1, 2), (2, 2), (3, 3)] {
        follow(&mut log, &[placed(plain(1), offset, epoch)]).unwrap();
    }
    assert_eq!(epochs(&log), [(1, 0), (2, 1), (3, 3)]);
    log.close_clean().unwrap();
    let mut storage = log.storage().clone();
    storage.replace(LEADER_EPOCH_CHECKPOINT, &Bytes::from_static(b"0\n1\n1 0\n")).unwrap();
    let recovered = reopen_files(storage, log.config(), Recovery::Unclean, 0, 0);
    assert_eq!(epochs(&recovered), [(1, 0), (2, 1), (3, 3)]);
    assert_eq!(recovered.leader_epochs().latest_epoch(), Some(LeaderEpoch(3)));
}

/// One record in a segment; log start offset 4; noise over the segment at offset 1.
fn damaged_below_start(records: i64) -> Log {
    let mut log = new_log(&LogConfig::default());
    for _ in 0..records {
        lead(&mut log, plain(1)).unwrap();
        log.roll(NOW).unwrap();
    }
    assert_eq!(bases(&log).len(), usize::try_from(records).unwrap() + 1);
    hw(&mut log, records);
    start_at(&mut log, 4);
    let mut storage = log.storage().clone();
    let size = usize::try_from(storage.len(&name(1, "log")).unwrap().unwrap()).unwrap();
    storage.replace(&name(1, "log"), &Bytes::from(vec![0x11; size])).unwrap();
    let log = reopen_files(storage, log.config(), Recovery::Unclean, 0, 4);
    assert_eq!(bases(&log), [4]);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(4), Offset(4)));
    log
}

#[test]
fn test_log_end_less_than_start_after_reopen() {
    let log = damaged_below_start(5);
    for suffix in ["log", "index", "timeindex"] {
        assert!(log.storage().len(&name(4, suffix)).unwrap().is_some(), "{suffix}");
    }
}

#[test]
fn test_corrupted_log_recovery_does_not_delete_producer_state_snapshots_post_recovery() {
    let mut log = damaged_below_start(9);
    assert_eq!(log.size_in_bytes(), 0);
    assert_eq!(snapshots(&log).into_iter().filter(|offset| (1..=4).contains(offset)).count(), 0);
    for _ in 0..5 {
        lead(&mut log, plain(1)).unwrap();
        log.roll(NOW).unwrap();
    }
    assert_eq!(snapshots(&log), [5, 6, 7, 8, 9]);
    assert_eq!(bases(&log), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn test_recover_with_empty_active_segment() {
    let mut log = new_log(&LogConfig { segment_bytes: 700, index_interval_bytes: 300, ..LogConfig::default() });
    (0..100).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    log.roll(NOW).unwrap();
    let index_names = [name(100, "index"), name(100, "timeindex")];
    let missing = |log: &Log| index_names.iter().all(|name| log.storage().len(name).unwrap().is_none());
    assert!(missing(&log));
    let recovered = reopen(&log, Recovery::Unclean, 100, 0);
    assert!(!missing(&recovered));
    assert_eq!(recovered.log_end_offset(), Offset(100));
    assert_eq!(recovered.recovery_point(), Offset(100));
}
