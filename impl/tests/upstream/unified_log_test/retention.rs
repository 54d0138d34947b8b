#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Leader epochs and retention.

use cleanslate_log::log::LogConfig;
use cleanslate_log::storage::Storage;
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

use crate::upstream::support::{
    Log, NOW, bases, epochs, follow_under, hw, later, lead, lead_under, new_log, per_segment, placed, plain, record_bytes,
    start_at, timed,
};

/// Records of some leader epochs: so many of each.
fn led(config: &LogConfig, parts: &[(i32, usize)]) -> Log {
    let mut log = new_log(config);
    for (epoch, count) in parts {
        for _ in 0..*count {
            lead_under(&mut log, plain(1), *epoch);
        }
    }
    log
}

fn replicated(log: &mut Log) {
    let end = log.log_end_offset().get();
    hw(log, end);
}

fn delete(log: &mut Log) -> usize {
    log.delete_old_segments(NOW).unwrap()
}

#[test]
fn should_apply_epoch_to_message_on_append_if_leader() {
    let log = led(&LogConfig::default(), &[(72, 50)]);
    let batches = log.batches().unwrap();
    assert_eq!(batches.len(), 50);
    assert!(batches.iter().all(|batch| batch.leader_epoch() == LeaderEpoch(72)));
}

#[test]
fn follower_should_save_epoch_information_from_replicated_messages_to_the_epoch_cache() {
    let mut log = new_log(&LogConfig::default());
    for offset in 0..50 {
        follow_under(&mut log, &[placed(plain(1), offset, 42)], 42).unwrap();
    }
    assert_eq!(log.leader_epochs().latest_epoch(), Some(LeaderEpoch(42)));
    let offsets = log.batches().unwrap().iter().map(|batch| batch.base_offset().get()).collect::<Vec<_>>();
    assert_eq!(offsets, (0..50).collect::<Vec<_>>());
}

fn ten_records_stay() -> LogConfig {
    LogConfig { retention_bytes: i64::try_from(record_bytes() * 10).unwrap(), ..per_segment(5) }
}

#[test]
fn should_truncate_leader_epochs_when_deleting_segments() {
    let mut log = led(&ten_records_stay(), &[(0, 5), (1, 5), (2, 5)]);
    replicated(&mut log);
    delete(&mut log);
    assert_eq!(epochs(&log), [(1, 5), (2, 10)]);
}

#[test]
fn should_update_offset_for_leader_epochs_when_deleting_segments() {
    let mut log = led(&ten_records_stay(), &[(0, 7), (1, 3), (2, 5)]);
    replicated(&mut log);
    delete(&mut log);
    assert_eq!(epochs(&log), [(0, 5), (1, 7), (2, 10)]);
}

#[test]
fn should_truncate_leader_epoch_checkpoint_file_when_truncating_log() {
    let mut log = led(&per_segment(10), &[(0, 10), (1, 6), (2, 4)]);
    assert_eq!(epochs(&log), [(0, 0), (1, 10), (2, 16)]);
    for (target, left) in [(20, 3), (11, 2), (10, 1), (0, 0)] {
        log.truncate_to(Offset(target), NOW).unwrap();
        assert_eq!(epochs(&log).len(), left, "{target}");
    }
}

#[test]
fn test_truncate_to_end_offset_clears_epoch_cache() {
    for (epoch, target) in [(20, 29), (24, 30)] {
        let mut log = new_log(&LogConfig::default());
        follow_under(&mut log, &[placed(plain(1), 0, 0), placed(plain(2), 27, 19)], 24).unwrap();
        log.assign_epoch_start_offset(LeaderEpoch(epoch)).unwrap();
        assert_eq!(epochs(&log), [(0, 0), (19, 27), (epoch, 29)]);
        log.truncate_to(Offset(target), NOW).unwrap();
        assert_eq!(epochs(&log), [(0, 0), (19, 27)]);
        assert_eq!(log.log_end_offset(), Offset(29));
    }
}

/// 15 records in three segments, all replicated.
fn fifteen(config: &LogConfig, timestamp: TimestampMs) -> Log {
    let mut log = new_log(config);
    for _ in 0..15 {
        lead(&mut log, timed(timestamp)).unwrap();
    }
    replicated(&mut log);
    log
}

#[test]
fn should_delete_size_based_segments() {
    let mut log = fifteen(&ten_records_stay(), NOW);
    delete(&mut log);
    assert_eq!(bases(&log).len(), 2);
}

#[test]
fn should_not_delete_size_based_segments_when_under_retention_size() {
    let retention_bytes = i64::try_from(record_bytes() * 15).unwrap();
    let mut log = fifteen(&LogConfig { retention_bytes, ..per_segment(5) }, NOW);
    assert_eq!(delete(&mut log), 0);
    assert_eq!(bases(&log).len(), 3);
}

#[test]
fn should_delete_time_based_segments_ready_to_be_deleted() {
    let mut log = fifteen(&LogConfig { retention_ms: 10_000, ..per_segment(15) }, TimestampMs(10));
    assert_eq!(bases(&log), [0]);
    assert_eq!(delete(&mut log), 1);
    assert_eq!(bases(&log), [15]);
    assert_eq!(log.size_in_bytes(), 0);
}

#[test]
fn should_not_delete_time_based_segments_when_none_ready_to_be_deleted() {
    let mut log = fifteen(&LogConfig { retention_ms: 10_000_000, ..per_segment(5) }, NOW);
    assert_eq!(delete(&mut log), 0);
    assert_eq!(bases(&log).len(), 3);
}

#[test]
fn should_not_delete_segments_when_policy_does_not_include_delete() {
    let config = LogConfig { retention_ms: 10_000, compact: true, delete: false, ..per_segment(5) };
    let mut log = fifteen(&config, TimestampMs(10));
    assert_eq!(delete(&mut log), 0);
    assert_eq!(bases(&log).len(), 3);
}

#[test]
fn should_delete_segments_ready_to_be_deleted_when_cleanup_policy_is_compact_and_delete() {
    let config = LogConfig { retention_ms: 10_000, compact: true, ..per_segment(5) };
    let mut log = fifteen(&config, TimestampMs(10));
    delete(&mut log);
    assert_eq!(bases(&log).len(), 1);
}

#[test]
fn should_delete_start_offset_breached_segments_when_policy_does_not_include_delete() {
    let config = LogConfig { compact: true, delete: false, ..per_segment(5) };
    let mut log = fifteen(&config, NOW);
    start_at(&mut log, 5);
    assert_eq!(delete(&mut log), 1);
    let bases = bases(&log);
    assert!(bases[0] <= 5);
    assert!(bases[1..].iter().all(|base| *base > 5));
}

#[test]
fn test_log_deletion_after_delete_records() {
    let mut log = fifteen(&per_segment(5), NOW);
    for (start, deleted, segments) in [(1, 0, 3), (6, 1, 2), (15, 1, 1)] {
        start_at(&mut log, start);
        assert_eq!(delete(&mut log), deleted);
        assert_eq!(bases(&log).len(), segments);
        assert_eq!(log.log_start_offset(), Offset(start));
    }
}

/// Without the end, at which the log itself is deleted.
#[test]
fn test_delete_old_segments() {
    let config = LogConfig { retention_ms: 999, segment_index_bytes: 1000, ..per_segment(5) };
    let mut log = new_log(&config);
    for count in 0..100 {
        lead_under(&mut log, timed(later(-1000)), i32::from(count >= 90));
    }
    assert_eq!(epochs(&log), [(0, 0), (1, 90)]);
    assert_eq!(delete(&mut log), 0);
    assert_eq!(bases(&log).len(), 20);
    for high_watermark in 25..=30 {
        hw(&mut log, high_watermark);
        delete(&mut log);
        assert!(log.log_start_offset() <= Offset(high_watermark));
        assert!(bases(&log)[1..].iter().all(|next| *next > high_watermark));
    }
    replicated(&mut log);
    delete(&mut log);
    assert_eq!(bases(&log).len(), 1);
    assert_eq!(epochs(&log), [(1, 100)]);
    assert_eq!(log.delete().unwrap().names(), Ok(vec![]));
}

#[test]
fn test_log_deletion_after_close() {
    let config = LogConfig { retention_ms: 999, segment_index_bytes: 1000, ..per_segment(5) };
    let mut log = new_log(&config);
    lead(&mut log, timed(later(-1000))).unwrap();
    assert_eq!(bases(&log).len(), 1);
    assert_eq!(epochs(&log), [(0, 0)]);
    log.close_clean().unwrap();
    replicated(&mut log);
    assert_eq!(delete(&mut log), 1);
}

#[test]
fn test_that_garbage_collecting_segments_doesnt_change_offset() {
    for count in [0, 25] {
        let config = LogConfig { retention_ms: 0, ..per_segment(5) };
        let mut log = new_log(&config);
        for _ in 0..count {
            lead(&mut log, timed(later(-10))).unwrap();
        }
        assert_eq!(log.log_end_offset(), Offset(count));
        replicated(&mut log);
        delete(&mut log);
        assert_eq!(bases(&log).len(), 1);
        assert_eq!(log.log_end_offset(), Offset(count));
        assert_eq!(lead(&mut log, timed(later(-10))), Ok((count, count)));
    }
}

#[test]
fn test_retention_idempotency() {
    let config = LogConfig { retention_ms: 900, ..LogConfig::default() };
    let mut log = new_log(&config);
    for timestamp in [100, 0, 100] {
        if log.log_end_offset() > Offset(0) {
            log.roll(NOW).unwrap();
        }
        lead(&mut log, timed(later(timestamp))).unwrap();
    }
    replicated(&mut log);
    start_at(&mut log, 1);
    assert_eq!(log.delete_old_segments(later(901)), Ok(2));
    assert_eq!(log.delete_old_segments(later(901)), Ok(0));
}
