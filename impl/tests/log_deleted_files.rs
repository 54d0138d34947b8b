//! Deletion in two steps: files of deleted segments and snapshots are renamed, and removed when the delay is over.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

use cleanslate_log::log::{CleanOptions, LogConfig, LogError, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::storage::{FaultyStorage, MemoryStorage, Storage, Unsynced};
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const DELAY_MS: i64 = 1000;

fn later(ms: i64) -> TimestampMs {
    TimestampMs(NOW.get() + ms)
}

fn delayed() -> LogConfig {
    LogConfig { file_delete_delay_ms: Some(DELAY_MS), retention_bytes: 0, ..LogConfig::default() }
}

fn append<S: Storage>(log: &mut PartitionLog<S>) {
    let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(b"key"), Some(b"value")).build().unwrap();
    let tv = TransactionVersion::Unknown;
    log.append_as_leader(batch.bytes().clone(), AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap();
}

/// Segments of one record at 0, 1 and 2, with a snapshot at the base of each but the first, and an empty one at 3.
fn four_segments<S: Storage>(storage: S, config: &LogConfig) -> PartitionLog<S> {
    let mut log = PartitionLog::create(storage, config.clone(), NOW).unwrap();
    for _ in 0..3 {
        append(&mut log);
        log.roll(NOW).unwrap();
    }
    log.update_high_watermark(Offset(3));
    log
}

/// The renamed files, as their segment's base offset and what they were.
fn renamed(storage: &impl Storage) -> Vec<String> {
    let names = storage.names().unwrap();
    let kept = names.iter().filter_map(|name| name.strip_suffix(".deleted"));
    kept.map(|name| name.trim_start_matches('0').to_owned()).collect()
}

/// Base offsets of the segments, and how many files wait.
fn shape(log: &PartitionLog<MemoryStorage>) -> (Vec<i64>, usize) {
    (log.segments().map(|(base, _)| base.get()).collect(), log.deleted_files().count())
}

const FIRST: [&str; 3] = [".index", ".log", ".timeindex"];
const SECOND: [&str; 4] = ["1.index", "1.log", "1.snapshot", "1.timeindex"];
const THIRD: [&str; 4] = ["2.index", "2.log", "2.snapshot", "2.timeindex"];

#[test]
fn retention_renames_and_the_files_go_when_their_time_has_come() {
    let mut log = four_segments(MemoryStorage::new(), &LogConfig { retention_bytes: -1, ..delayed() });
    log.maybe_increment_log_start_offset(Offset(1)).unwrap();
    log.delete_old_segments(NOW).unwrap();
    assert_eq!((shape(&log), renamed(log.storage())), ((vec![1, 2, 3], 3), FIRST.map(str::to_owned).to_vec()));
    log.maybe_increment_log_start_offset(Offset(2)).unwrap();
    log.delete_old_segments(later(600)).unwrap();
    assert_eq!(renamed(log.storage()), [&FIRST[..], &SECOND].concat());
    assert!(log.deleted_files().all(|(name, due)| due == later(if name.starts_with(&"0".repeat(20)) { 1000 } else { 1600 })));
    // Not before the time; then, each by its own.
    assert_eq!(log.remove_deleted_files(later(999)), Ok(0));
    assert_eq!(log.remove_deleted_files(later(1000)), Ok(3));
    assert_eq!(renamed(log.storage()), SECOND);
    assert_eq!(log.remove_deleted_files(later(5000)), Ok(4));
    assert_eq!((shape(&log), renamed(log.storage())), ((vec![2, 3], 0), vec![]));
}

#[test]
fn truncation_renames_what_lies_behind_the_target() {
    let mut log = four_segments(MemoryStorage::new(), &delayed());
    log.truncate_to(Offset(1), NOW).unwrap();
    // The log is cut to an empty segment at 1.
    let expected = ["2.index", "2.log", "2.snapshot", "2.timeindex", "3.log", "3.snapshot"];
    assert_eq!((shape(&log).0, renamed(log.storage())), (vec![0, 1], expected.map(str::to_owned).to_vec()));
    // The same names once more: the second rename takes the place of the first.
    append(&mut log);
    log.roll(NOW).unwrap();
    append(&mut log);
    log.truncate_to(Offset(1), later(500)).unwrap();
    assert_eq!(renamed(log.storage()), expected);
    log.remove_deleted_files(later(1500)).unwrap();
    assert_eq!((renamed(log.storage()), log.deleted_files().count()), (vec![], 0));
    append(&mut log);
    assert_eq!(log.batches().unwrap().len(), 2);
}

#[test]
fn a_fresh_start_renames_the_segments_and_removes_the_snapshots() {
    let mut log = four_segments(MemoryStorage::new(), &delayed());
    log.truncate_fully_and_start_at(Offset(7), NOW).unwrap();
    let segments = |name: &&&str| !name.ends_with("snapshot");
    let expected: Vec<&str> = [&FIRST[..], &SECOND, &THIRD, &["3.log"]].concat().iter().filter(segments).copied().collect();
    assert_eq!((shape(&log).0, renamed(log.storage())), (vec![7], expected.iter().map(ToString::to_string).collect()));
}

#[test]
fn rolling_an_empty_segment_renames_it_and_makes_it_anew() {
    let mut log = PartitionLog::create(MemoryStorage::new(), delayed(), NOW).unwrap();
    log.roll(NOW).unwrap();
    assert_eq!((shape(&log).0, renamed(log.storage())), (vec![0], FIRST.map(str::to_owned).to_vec()));
    append(&mut log);
    log.remove_deleted_files(later(DELAY_MS)).unwrap();
    assert_eq!((renamed(log.storage()).len(), log.batches().unwrap().len()), (0, 1));
}

#[test]
fn compaction_renames_what_it_replaces() {
    let mut log = four_segments(MemoryStorage::new(), &delayed());
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: Offset(3), now: NOW, max_keys: 10 };
    log.compact(&options).unwrap();
    // The new segment has the base of the first; the snapshots of the others go with them.
    assert_eq!(
        (shape(&log).0, renamed(log.storage())),
        (vec![0, 3], [&FIRST[..], &SECOND, &THIRD].concat().iter().map(ToString::to_string).collect())
    );
    log.remove_deleted_files(later(DELAY_MS)).unwrap();
    assert_eq!((renamed(log.storage()).len(), log.batches().unwrap().len()), (0, 1));
}

#[test]
fn recovery_renames_the_segments_behind_a_corrupt_batch() {
    let log = four_segments(MemoryStorage::new(), &delayed());
    let mut storage = log.into_storage();
    let name = "00000000000000000001.log";
    let mut bytes = storage.read_all(name).unwrap().unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    storage.replace(name, &bytes.into()).unwrap();
    let (mut log, _) = PartitionLog::open(storage, delayed(), Recovery::Unclean, NOW).unwrap();
    assert_eq!((shape(&log).0, log.log_end_offset()), (vec![0, 1], Offset(1)));
    assert!(renamed(log.storage()).contains(&"2.log".to_owned()));
    log.remove_deleted_files(later(DELAY_MS)).unwrap();
    assert_eq!((renamed(log.storage()), shape(&log).1), (vec![], 0));
}

#[test]
fn a_start_removes_what_was_renamed_before() {
    let mut log = four_segments(MemoryStorage::new(), &delayed());
    log.delete_old_segments(NOW).unwrap();
    assert!(!renamed(log.storage()).is_empty());
    let start = OpenOptions { log_start_offset: Offset(3), ..OpenOptions::new(Recovery::Unclean) };
    let (log, _) = PartitionLog::open(log.into_storage(), delayed(), start, NOW).unwrap();
    assert_eq!((renamed(log.storage()), shape(&log)), (vec![], (vec![3], 0)));
}

#[test]
fn without_a_delay_nothing_waits() {
    let mut log = four_segments(MemoryStorage::new(), &LogConfig { file_delete_delay_ms: None, ..delayed() });
    log.delete_old_segments(NOW).unwrap();
    assert_eq!((renamed(log.storage()), shape(&log)), (vec![], (vec![3], 0)));
    assert_eq!(log.remove_deleted_files(later(i64::from(i32::MAX))), Ok(0));
}

/// A storage that fails takes the log offline. Wherever that happens, and if the power fails then, the log opens again, and
/// ends where it did.
#[test]
fn a_failure_at_any_step_leaves_a_log_that_opens() {
    let options = OpenOptions { recovery_point: Offset(3), ..OpenOptions::new(Recovery::Unclean) };
    for calls in 0..1000 {
        let mut log = four_segments(FaultyStorage::new(), &delayed());
        log.flush().unwrap();
        // What opens the log calls as often each time, and does not fail.
        let mut storage = log.into_storage();
        storage.fail_after(u64::MAX);
        let (log, _) = PartitionLog::open(storage.clone(), delayed(), options, NOW).unwrap();
        storage.fail_after(log.storage().calls() + calls);
        let (mut log, _) = PartitionLog::open(storage, delayed(), options, NOW).unwrap();
        log.update_high_watermark(Offset(3));
        let result = log.delete_old_segments(NOW).map(|_| ()).and_then(|()| log.remove_deleted_files(later(DELAY_MS)).map(|_| ()));
        if result.is_ok() {
            assert!(calls > 10, "{calls}");
            return;
        }
        assert!(matches!(log.remove_deleted_files(NOW), Err(LogError::Storage(_))));
        let left = log.storage().after_power_failure(Unsynced::Lost);
        let (log, _) = PartitionLog::open(left, delayed(), options, NOW).unwrap();
        assert_eq!(log.log_end_offset(), Offset(3), "after {calls} calls");
        assert!(renamed(log.storage()).is_empty());
    }
    panic!("there are not so many calls");
}
