#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Appends, rolls and cuts.

use cleanslate_log::log::{FetchIsolation, LogConfig, PartitionLog};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::storage::{FaultyStorage, Storage, Unsynced};
use cleanslate_log::types::{Offset, OffsetMetadata};

use super::{A, append, key_values, pairs, read};
use crate::upstream::support::{Log, NOW, bases, hw, lead_as, new_log, per_segment, placed, produced};

/// Deleted files wait for a minute.
pub(super) fn delayed() -> LogConfig {
    LogConfig { file_delete_delay_ms: Some(60_000), ..LogConfig::default() }
}

/// The segments whose log files wait for their deletion.
pub(super) fn deleted(log: &Log) -> Vec<i64> {
    let base = |name: &str| name.strip_suffix(".log.deleted").map(|digits| digits.parse().unwrap());
    log.deleted_files().filter_map(|(name, _)| base(name)).collect()
}

/// So many single records; a segment ends behind each that `ends` tells.
fn rolled(config: &LogConfig, records: i64, ends: impl Fn(i64) -> bool) -> Log {
    let mut log = new_log(config);
    for offset in 0..records {
        append(&mut log, &A);
        if ends(offset) {
            log.roll(NOW).unwrap();
        }
    }
    log
}

#[test]
fn test_log_append() {
    let mut log = new_log(&LogConfig::default());
    assert_eq!(read(&log, 0), []);
    append(&mut log, &[(Some("abc"), "ABC"), (Some("de"), "DE")]);
    assert_eq!((log.log_end_offset(), log.recovery_point()), (Offset(2), Offset(0)));
    assert_eq!(read(&log, 0), pairs(&[("abc", "ABC"), ("de", "DE")]));
}

#[test]
fn test_roll_empty_active_segment() {
    let mut log = new_log(&delayed());
    assert_eq!(log.roll(NOW), Ok(Offset(0)));
    assert_eq!(bases(&log), [0]);
    // The old one has gone, and another one is there in its place.
    assert_eq!(deleted(&log), [0]);
    assert_eq!(log.storage().len("00000000000000000000.log"), Ok(Some(0)));
}

#[test]
fn test_roll_segment_that_already_exists() {
    let mut log = new_log(&LogConfig::default());
    assert_eq!(bases(&log), [0]);
    log.roll(NOW).unwrap();
    assert_eq!(bases(&log), [0]);
    append(&mut log, &[(Some("k1"), "v1")]);
    append(&mut log, &[(Some("k2"), "v2")]);
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0], Offset(2)));
    assert_eq!(read(&log, 0), pairs(&[("k1", "v1"), ("k2", "v2")]));
    log.roll(NOW).unwrap();
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0, 2], Offset(2)));
}

#[test]
fn test_new_segments_after_roll() {
    let mut log = new_log(&LogConfig::default());
    assert_eq!(log.roll(NOW), Ok(Offset(0)));
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0], Offset(0)));
    append(&mut log, &[(Some("k1"), "v1")]);
    assert_eq!(log.roll(NOW), Ok(Offset(1)));
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0, 1], Offset(1)));
    append(&mut log, &[(Some("k2"), "v2")]);
    assert_eq!(log.roll(NOW), Ok(Offset(2)));
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0, 1, 2], Offset(2)));
}

/// The active segment begins behind the log end: an append over a gap began it, and was refused then.
#[test]
fn test_roll_segment_error_when_next_offset_is_illegal() {
    let raft = |log: &mut Log, epoch: i16, offset: i64| {
        let batch = placed(produced(1, epoch, 0, 3), offset, 0);
        lead_as(log, &batch, AppendOrigin::RaftLeader, TransactionVersion::Unknown, NOW)
    };
    let mut log = new_log(&per_segment(2));
    assert_eq!(raft(&mut log, 1, 0), Ok((0, 2)));
    assert_eq!(raft(&mut log, 0, 5), Err("InvalidProducerEpochException"));
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0, 5], Offset(3)));
    assert_eq!(log.roll(NOW).unwrap_err().kafka_class(), "KafkaException");
}

#[test]
fn test_when_fetch_offset_higher_than_max_offset() {
    let mut log = rolled(&LogConfig::default(), 5, |offset| offset % 2 != 0);
    assert_eq!(bases(&log), [0, 2, 4]);
    hw(&mut log, 4);
    let mut fetch = |from: i64| {
        let data = log.fetch(Offset(from), FetchIsolation::HighWatermark, usize::MAX, false).unwrap();
        (key_values(data.records).len(), data.offset)
    };
    assert_eq!(fetch(3), (1, OffsetMetadata::at(Offset(3), Offset(2), 69)));
    assert_eq!(fetch(4), (0, OffsetMetadata::at(Offset(4), Offset(4), 0)));
    assert_eq!(fetch(5), (0, OffsetMetadata::at(Offset(5), Offset(4), 69)));
}

#[test]
fn test_truncate_to() {
    let mut log = rolled(&delayed(), 12, |offset| offset % 3 == 2);
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0, 3, 6, 9, 12], Offset(12)));
    assert_eq!(log.truncate_to(Offset(7), NOW), Ok(true));
    // From the end on.
    assert_eq!(deleted(&log), [12, 9]);
    assert_eq!((bases(&log), log.log_end_offset()), (vec![0, 3, 6], Offset(7)));
    // What was durable before, up to the cut.
    assert_eq!(log.recovery_point(), Offset(7));
    assert_eq!(read(&log, 6), pairs(&[("", "a")]));
    append(&mut log, &A);
    assert_eq!(log.log_end_offset(), Offset(8));
}

#[test]
fn test_truncate_fully_and_start_at() {
    let mut log = rolled(&delayed(), 13, |offset| offset < 8 && offset % 2 != 0);
    assert_eq!(bases(&log), [0, 2, 4, 6, 8]);
    log.truncate_fully_and_start_at(Offset(10), NOW).unwrap();
    assert_eq!(deleted(&log), [8, 6, 4, 2, 0]);
    assert_eq!((bases(&log), log.log_end_offset(), log.recovery_point()), (vec![10], Offset(10), Offset(8)));
    assert_eq!(read(&log, 10), []);
}

#[test]
fn test_create_and_delete_segment() {
    let mut log = new_log(&delayed());
    append(&mut log, &A);
    log.truncate_fully_and_start_at(Offset(1), NOW).unwrap();
    assert_eq!(deleted(&log), [0]);
    assert_eq!((bases(&log), log.log_end_offset(), log.recovery_point()), (vec![1], Offset(1), Offset(0)));
    assert_eq!(read(&log, 1), []);
}

#[test]
fn test_log_flush() {
    let mut log = PartitionLog::create(FaultyStorage::new(), LogConfig::default(), NOW).unwrap();
    assert_eq!(log.recovery_point(), Offset(0));
    append(&mut log, &A);
    let durable = |log: &PartitionLog<FaultyStorage>| {
        let left = log.storage().after_power_failure(Unsynced::Lost);
        left.read_all("00000000000000000000.log").unwrap().unwrap().len()
    };
    assert_eq!(durable(&log), 0);
    // A roll flushes what is below.
    assert_eq!(log.roll(NOW), Ok(Offset(1)));
    assert_eq!((log.recovery_point(), durable(&log)), (Offset(1), 69));
}
