#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LogCleanerManagerTest.

mod checkpoints;

use cleanslate_log::log::{
    CleanRules, CleanableOffsets, CleanerManager, CleaningState, LogCleaningError, LogConfig, LogError, LogToClean, PartitionLog,
};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::FaultyStorage;
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

use crate::upstream::support::{Log, NOW, bases, hw, later, lead, lead_as, new_log, per_segment, plain, produced, start_at, timed};

const LAG_MS: i64 = 3_600_000;
/// Any dirty byte is enough.
const ANY: CleanRules = CleanRules { min_compaction_lag_ms: 0, max_compaction_lag_ms: i64::MAX, min_cleanable_ratio: 0.0 };
const LAGGING: CleanRules = CleanRules { min_compaction_lag_ms: LAG_MS, ..ANY };
const INVALID: &str = "IllegalStateException";

type Manager = CleanerManager<&'static str>;

fn compacted(records: usize) -> LogConfig {
    LogConfig { compact: true, delete: false, ..per_segment(records) }
}

/// All replicated, in segments of five records, and an empty one.
fn filthy(records: usize) -> Log {
    let mut log = new_log(&compacted(5));
    (0..records).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    hw(&mut log, i64::MAX);
    log.roll(NOW).unwrap();
    log
}

fn manager(checkpoints: &[(&'static str, i64)]) -> Manager {
    CleanerManager::new(checkpoints.iter().map(|(key, offset)| (*key, Offset(*offset))).collect())
}

fn grab(manager: &mut Manager, logs: &[(&'static str, &Log)]) -> Option<(&'static str, LogToClean)> {
    manager.grab_filthiest(logs.iter().copied(), &ANY, NOW).unwrap()
}

fn checkpoint(manager: &Manager, key: &str) -> Option<i64> {
    manager.checkpoints().get(key).map(|offset| offset.get())
}

/// Logs of 20, 25 and 30 records of which 20 are clean; the first has nothing to clean.
struct Three {
    logs: [(&'static str, Log); 3],
    manager: Manager,
}

impl Three {
    fn new() -> Self {
        let logs = [("0", filthy(20)), ("1", filthy(25)), ("2", filthy(30))];
        Self { logs, manager: manager(&[("0", 20), ("1", 20), ("2", 20)]) }
    }

    fn grab(&mut self) -> Option<&'static str> {
        let logs: Vec<(&'static str, &Log)> = self.logs.iter().map(|(key, log)| (*key, log)).collect();
        grab(&mut self.manager, &logs).map(|(key, _)| key)
    }

    fn in_progress(&mut self, index: usize) {
        let (key, log) = &self.logs[index];
        assert_eq!(self.manager.grab_deletable([(*key, log)]), [*key]);
    }
}

/// What can be cleaned is in memory, so that the log of Kafka's test, which cannot read the time of a batch, is one that is offline
/// here: four batches of ten records, two to a segment, and the storage refuses the third segment.
#[test]
fn test_grab_filthiest_compacted_log_throws_exception() {
    let mut storage = FaultyStorage::new();
    storage.refuse_files("00000000000000000040.log");
    let size = plain(10).build().unwrap().size_in_bytes();
    let config = LogConfig { compact: true, delete: false, segment_bytes: 2 * size, ..LogConfig::default() };
    let mut log = PartitionLog::create(storage, config, NOW).unwrap();
    for _ in 0..4 {
        let (bytes, tv) = (plain(10).build().unwrap().bytes().clone(), TransactionVersion::Unknown);
        log.append_as_leader(bytes, AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap();
    }
    log.update_high_watermark(Offset(40));
    assert_eq!(log.segments().map(|(base, _)| base.get()).collect::<Vec<_>>(), [0, 20]);
    let Err(LogError::Storage(failure)) = log.roll(NOW) else { panic!("the storage does not fail") };
    let mut manager = manager(&[("A-1", 1)]);
    let error = manager.grab_filthiest([("A-1", &log)], &ANY, NOW).unwrap_err();
    assert_eq!(error, LogCleaningError { key: "A-1", source: failure });
    assert_eq!(error.kafka_class(), "LogCleaningException");
    // Nothing is being done with it, and it is asked no more once it is marked.
    assert_eq!(manager.state(&"A-1"), None);
    manager.mark_uncleanable("A-1");
    assert_eq!(manager.grab_filthiest([("A-1", &log)], &ANY, NOW), Ok(None));
}

#[test]
fn test_grab_filthiest_compacted_log_returns_log_with_dirtiest_ratio() {
    let mut three = Three::new();
    assert_eq!(three.grab(), Some("2"));
    assert_eq!(three.manager.state(&"2"), Some(CleaningState::InProgress));
}

#[test]
fn test_grab_filthiest_compacted_log_ignores_uncleanable_partitions() {
    let mut three = Three::new();
    three.manager.mark_uncleanable("2");
    assert_eq!(three.grab(), Some("1"));
}

#[test]
fn test_grab_filthiest_compacted_log_ignores_in_progress_partitions() {
    let mut three = Three::new();
    three.in_progress(2);
    assert_eq!(three.grab(), Some("1"));
}

#[test]
fn test_grab_filthiest_compacted_log_ignores_both_in_progress_partitions_and_uncleanable_partitions() {
    let mut three = Three::new();
    three.in_progress(2);
    three.manager.mark_uncleanable("1");
    assert_eq!(three.grab(), None);
}

#[test]
fn test_dirty_offset_reset_if_larger_than_end_offset() {
    let mut manager = manager(&[("a", 200)]);
    let (_, found) = grab(&mut manager, &[("a", &filthy(20))]).unwrap();
    assert_eq!((found.first_dirty, checkpoint(&manager, "a")), (Offset(0), Some(0)));
}

#[test]
fn test_dirty_offset_reset_if_smaller_than_start_offset() {
    let mut log = filthy(20);
    start_at(&mut log, 10);
    let mut manager = manager(&[("a", 0)]);
    assert_eq!(grab(&mut manager, &[("a", &log)]).unwrap().1.first_dirty, Offset(10));
}

/// One segment only, which is the active one.
fn unrolled() -> Log {
    let mut log = new_log(&compacted(100));
    (0..3).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    hw(&mut log, 3);
    log
}

#[test]
fn test_log_start_offset_larger_than_active_segment_base_offset() {
    let mut log = unrolled();
    start_at(&mut log, 2);
    assert_eq!(grab(&mut manager(&[("a", 0)]), &[("a", &log)]), None);
}

#[test]
fn test_dirty_offset_larger_than_active_segment_base_offset() {
    assert_eq!(grab(&mut manager(&[("a", 3)]), &[("a", &unrolled())]), None);
}

fn cleanable(log: &Log, checkpoint: i64, rules: &CleanRules, now: TimestampMs) -> (i64, i64) {
    let CleanableOffsets { first_dirty, first_uncleanable, .. } = log.cleanable_offsets(Some(Offset(checkpoint)), rules, now);
    (first_dirty.get(), first_uncleanable.get())
}

fn fill_up_to(log: &mut Log, segments: usize, now: TimestampMs) {
    while log.segments().count() < segments {
        lead(log, timed(now)).unwrap();
    }
}

#[test]
fn test_cleanable_offsets_for_none() {
    let mut log = new_log(&compacted(10));
    fill_up_to(&mut log, 8, NOW);
    hw(&mut log, 50);
    assert_eq!(log.last_stable_offset(), Offset(50));
    assert_eq!(cleanable(&log, 0, &ANY, NOW), (0, 50));
}

#[test]
fn test_cleanable_offsets_active_segment() {
    let mut log = new_log(&compacted(10));
    fill_up_to(&mut log, 8, NOW);
    hw(&mut log, i64::MAX);
    assert_eq!(cleanable(&log, 0, &ANY, NOW), (0, 70));
}

#[test]
fn test_cleanable_offsets_for_time() {
    let mut log = new_log(&compacted(10));
    fill_up_to(&mut log, 4, later(-LAG_MS - 1));
    let active = bases(&log)[3];
    fill_up_to(&mut log, 8, NOW);
    hw(&mut log, i64::MAX);
    assert_eq!(cleanable(&log, 0, &LAGGING, NOW), (0, active));
}

#[test]
fn test_cleanable_offsets_for_short_time() {
    let mut log = new_log(&compacted(10));
    fill_up_to(&mut log, 8, later(-LAG_MS - 1));
    hw(&mut log, i64::MAX);
    assert_eq!(cleanable(&log, 0, &LAGGING, NOW), (0, 70));
}

#[test]
fn test_cleanable_offsets_needs_checkpoint_reset() {
    let mut log = new_log(&compacted(10));
    fill_up_to(&mut log, 8, NOW);
    hw(&mut log, i64::MAX);
    let invalid = |log: &Log, checkpoint: i64| log.cleanable_offsets(Some(Offset(checkpoint)), &ANY, NOW).invalid_checkpoint;
    assert!(!invalid(&log, 15));
    start_at(&mut log, 20);
    assert!(invalid(&log, 15));
    assert!(!invalid(&log, 25));
}

#[test]
fn test_undecided_transactional_data_not_cleanable() {
    let mut log = new_log(&compacted(100));
    for (sequence, count) in [(0, 2), (2, 1)] {
        lead(&mut log, produced(15, 0, sequence, count).transactional(true)).unwrap();
    }
    log.roll(NOW).unwrap();
    hw(&mut log, 3);
    assert_eq!(cleanable(&log, 0, &LAGGING, later(LAG_MS + 1)), (0, 0));
    // The marker has a time of its own.
    let at = later(LAG_MS + 1);
    let (id, epoch, coordinator) = (ProducerId(15), ProducerEpoch(0), CoordinatorEpoch(0));
    let marker = RecordBatch::end_txn_marker(Offset(0), LeaderEpoch(0), at, id, epoch, false, coordinator).unwrap();
    lead_as(&mut log, &marker, AppendOrigin::Coordinator, TransactionVersion::V0, at).unwrap();
    log.roll(NOW).unwrap();
    hw(&mut log, 4);
    assert_eq!(cleanable(&log, 0, &LAGGING, later(LAG_MS + 1)), (0, 3));
    assert_eq!(cleanable(&log, 0, &LAGGING, later(2 * LAG_MS + 2)), (0, 4));
}

/// A log in some state.
fn in_state(state: Option<CleaningState>) -> Manager {
    let mut manager = manager(&[]);
    match state {
        None => {}
        Some(CleaningState::Paused(reasons)) => (0..reasons).for_each(|_| manager.abort_and_pause(&"a").unwrap()),
        Some(running) => {
            assert_eq!(manager.grab_deletable([("a", &unrolled())]), ["a"]);
            if running == CleaningState::Aborted {
                manager.abort_and_pause(&"a").unwrap();
            }
        }
    }
    assert_eq!(manager.state(&"a"), state);
    manager
}

#[test]
fn test_done_cleaning() {
    let done = |state| {
        let mut manager = in_state(state);
        let result = manager.done_cleaning(&"a", Offset(1)).map_err(|error| error.kafka_class());
        (result, manager.state(&"a"), checkpoint(&manager, "a"))
    };
    assert_eq!(done(None), (Err(INVALID), None, None));
    let paused = Some(CleaningState::Paused(1));
    assert_eq!(done(paused), (Err(INVALID), paused, None));
    assert_eq!(done(Some(CleaningState::InProgress)), (Ok(()), None, Some(1)));
    assert_eq!(done(Some(CleaningState::Aborted)), (Ok(()), paused, None));
}

#[test]
fn test_done_deleting() {
    let done = |state| {
        let mut manager = in_state(state);
        let result = manager.done_deleting(&"a").map_err(|error| error.kafka_class());
        (result, manager.state(&"a"))
    };
    assert_eq!(done(None), (Err(INVALID), None));
    let paused = Some(CleaningState::Paused(1));
    assert_eq!(done(paused), (Err(INVALID), paused));
    assert_eq!(done(Some(CleaningState::InProgress)), (Ok(()), None));
    assert_eq!(done(Some(CleaningState::Aborted)), (Ok(()), paused));
}

fn with_policy(compact: bool, delete: bool) -> Log {
    new_log(&LogConfig { compact, delete, ..LogConfig::default() })
}

fn deletable(compact: bool, delete: bool) -> usize {
    manager(&[]).grab_deletable([("a", &with_policy(compact, delete))]).len()
}

#[test]
fn test_logs_with_segments_to_delete_should_not_consider_cleanup_policy_delete_logs() {
    assert_eq!(deletable(false, true), 0);
}

#[test]
fn test_logs_with_segments_to_delete_should_consider_cleanup_policy_compact_delete_logs() {
    assert_eq!(deletable(true, true), 1);
}

#[test]
fn test_logs_with_segments_to_delete_should_consider_cleanup_policy_compact_logs() {
    assert_eq!(deletable(true, false), 1);
}

#[test]
fn test_logs_with_segments_to_delete_should_not_consider_uncleanable_partitions() {
    let mut manager = manager(&[]);
    manager.mark_uncleanable("a");
    assert_eq!(manager.grab_deletable([("a", &with_policy(true, false))]), [""; 0]);
}

/// The settings change between the steps.
#[test]
fn test_logs_under_cleanup_ineligible_for_compaction() {
    let (deleted, filthy) = (with_policy(false, true), filthy(20));
    let mut manager = manager(&[]);
    assert_eq!(manager.pause_not_compacted([("a", &deleted)]), ["a"]);
    assert_eq!(grab(&mut manager, &[("a", &filthy)]), None, "old segments are being deleted");
    manager.resume(&"a").unwrap();
    assert!(grab(&mut manager, &[("a", &filthy)]).is_some());
    assert_eq!(manager.pause_not_compacted([("a", &deleted)]), [""; 0], "the log is being cleaned");
    manager.done_deleting(&"a").unwrap();
    assert_eq!(manager.pause_not_compacted([("a", &deleted)]), ["a"]);
}

/// Deletion, truncation and the end of a topic pause a log on their own; it is free when all have ended.
fn check_pauses() {
    let mut manager = manager(&[]);
    assert_eq!(manager.pause_not_compacted([("a", &with_policy(false, true))]), ["a"]);
    manager.abort_and_pause(&"a").unwrap();
    assert_eq!(manager.state(&"a"), Some(CleaningState::Paused(2)));
    manager.resume(&"a").unwrap();
    manager.resume(&"a").unwrap();
    assert_eq!(manager.state(&"a"), None);
    assert_eq!(manager.resume(&"a").map_err(|error| error.kafka_class()), Err(INVALID));
}

#[test]
fn test_concurrent_log_cleanup_and_log_truncation() {
    check_pauses();
}

#[test]
fn test_concurrent_log_cleanup_and_topic_deletion() {
    check_pauses();
}

/// Beyond Kafka's own tests: a log with little to clean is due when its oldest dirty record is too old.
#[test]
fn a_record_does_not_stay_dirty_for_ever() {
    let log = filthy(20);
    let rules = CleanRules { max_compaction_lag_ms: LAG_MS, min_cleanable_ratio: 0.9, ..ANY };
    let offsets = log.cleanable_offsets(Some(Offset(15)), &rules, NOW);
    for (now, is_due) in [(later(LAG_MS), false), (later(LAG_MS + 1), true)] {
        let found = log.log_to_clean(&offsets, &rules, now);
        assert_eq!((found.is_overdue, found.is_due(&rules)), (is_due, is_due), "{now}");
    }
    let clean = log.log_to_clean(&log.cleanable_offsets(Some(Offset(20)), &rules, NOW), &rules, later(LAG_MS + 1));
    assert_eq!((clean.cleanable_bytes, clean.is_due(&rules)), (0, false));
}
