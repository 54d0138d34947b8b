#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Producer state: snapshots, rebuild, duplicates.

use bytes::Bytes;
use cleanslate_log::log::{LogConfig, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, snapshot_file_name};
use cleanslate_log::record::{BatchBuilder, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};

use crate::upstream::support::{
    Log, NOW, OUT_OF_ORDER, STALE_EPOCH, bases, compacted, end_txn, follow, hw, ids, last_of, later, lead, lead_marker, map_end,
    new_log, placed, plain, produced, reopen, reopen_files, snapshots, start_at, timed, without_snapshots,
};

fn stock() -> Log {
    new_log(&LogConfig::default())
}

#[test]
fn test_initialization_of_producer_snapshots_upgrade_path() {
    let mut log = new_log(&LogConfig { segment_bytes: 640, ..LogConfig::default() });
    for index in 0..=100 {
        lead(&mut log, timed(later(index * 10))).unwrap();
    }
    assert!(bases(&log).len() >= 3);
    log.close_clean().unwrap();
    let bases = bases(&log);
    let mut newest = bases[bases.len() - 2..].to_vec();
    newest.push(101);
    let mut all = bases[1..].to_vec();
    all.push(101);
    for (recovery, recovery_point, expected) in
        [(Recovery::Clean, 101, &newest), (Recovery::Unclean, 101, &newest), (Recovery::Unclean, 0, &all)]
    {
        let mut log = reopen_files(without_snapshots(&log), log.config(), recovery, recovery_point, 0);
        assert_eq!(&snapshots(&log), expected, "{recovery:?} {recovery_point}");
        log.close_clean().unwrap();
        assert_eq!(&snapshots(&log), expected, "{recovery:?} {recovery_point}");
    }
}

#[test]
fn test_producer_id_map_offset_updated_for_non_idempotent_data() {
    let mut log = stock();
    lead(&mut log, plain(1)).unwrap();
    log.take_snapshot().unwrap();
    assert_eq!(snapshots(&log), [1]);
}

fn by_producer(base: i64, sequence: i32) -> BatchBuilder {
    BatchBuilder::new(Offset(base)).timestamp(NOW).producer(ProducerId(1), ProducerEpoch(0), Sequence(sequence))
}

#[test]
fn test_rebuild_producer_id_map_with_compacted_data() {
    let mut log = stock();
    follow(&mut log, &[compacted(by_producer(23, 0), &[24, 25], 26)]).unwrap();
    follow(&mut log, &[placed(plain(2), 27, 0)]).unwrap();
    log.truncate_to(Offset(27), NOW).unwrap();
    assert_eq!(ids(&log), [1]);
    assert_eq!(last_of(&log, 1), Some((3, 26)));
}

#[test]
fn test_rebuild_producer_state_with_empty_compacted_batch() {
    let mut log = stock();
    let whole = produced(1, 0, 0, 2).build().unwrap().with_base_offset(Offset(23));
    let emptied = RecordBatch::empty_header(whole.header());
    assert_eq!((emptied.base_offset(), emptied.last_offset(), emptied.record_count()), (Offset(23), Offset(24), 0));
    follow(&mut log, &[emptied.with_leader_epoch(LeaderEpoch(0))]).unwrap();
    follow(&mut log, &[placed(plain(2), 25, 0)]).unwrap();
    log.truncate_to(Offset(25), NOW).unwrap();
    assert_eq!(ids(&log), [1]);
    assert_eq!(last_of(&log, 1), Some((1, 24)));
}

#[test]
fn test_update_producer_id_map_with_compacted_data() {
    let mut log = stock();
    follow(&mut log, &[compacted(by_producer(23, 0), &[24, 25], 26)]).unwrap();
    assert_eq!(ids(&log), [1]);
    assert_eq!(last_of(&log, 1), Some((3, 26)));
}

#[test]
fn test_producer_id_map_truncate_to() {
    let mut log = stock();
    lead(&mut log, plain(1)).unwrap();
    lead(&mut log, plain(1)).unwrap();
    log.take_snapshot().unwrap();
    lead(&mut log, plain(1)).unwrap();
    log.take_snapshot().unwrap();
    assert_eq!(snapshots(&log), [2, 3]);
    for (target, newest) in [(2, Some(2)), (1, Some(1)), (0, None)] {
        log.truncate_to(Offset(target), NOW).unwrap();
        assert_eq!(snapshots(&log).last().copied(), newest);
        assert_eq!(map_end(&log), target);
    }
}

#[test]
fn test_producer_id_map_truncate_to_with_no_snapshots() {
    let mut log = stock();
    lead(&mut log, produced(1, 0, 0, 1)).unwrap();
    lead(&mut log, produced(1, 0, 1, 1)).unwrap();
    log.delete_snapshots_before(Offset(i64::MAX)).unwrap();
    log.truncate_to(Offset(1), NOW).unwrap();
    assert_eq!(ids(&log), [1]);
    assert_eq!(last_of(&log, 1), Some((0, 0)));
}

fn three_segments(config: &LogConfig) -> Log {
    let mut log = new_log(config);
    for sequence in 0..3 {
        if sequence > 0 {
            log.roll(NOW).unwrap();
        }
        lead(&mut log, produced(1, 0, sequence, 1)).unwrap();
    }
    log
}

#[test]
fn test_producer_id_map_truncate_fully_and_start_at() {
    let mut log = three_segments(&LogConfig::default());
    assert_eq!(bases(&log).len(), 3);
    assert_eq!(snapshots(&log), [1, 2]);
    assert_eq!(map_end(&log), 3);
    log.truncate_fully_and_start_at(Offset(29), NOW).unwrap();
    assert_eq!(bases(&log).len(), 1);
    assert_eq!(snapshots(&log), [0i64; 0]);
    assert_eq!(map_end(&log), 29);
}

#[test]
fn test_producer_id_expiration_on_segment_deletion() {
    let mut log = new_log(&LogConfig { retention_bytes: 0, ..LogConfig::default() });
    for (id, sequence) in [(1, 0), (2, 0), (2, 1)] {
        lead(&mut log, produced(id, 0, sequence, 1)).unwrap();
        if sequence == 0 {
            log.roll(NOW).unwrap();
        }
    }
    assert_eq!(bases(&log).len(), 3);
    assert_eq!(ids(&log), [1, 2]);
    hw(&mut log, 3);
    log.delete_old_segments(NOW).unwrap();
    assert_eq!(bases(&log), [3]);
    assert_eq!(ids(&log), [1, 2]);
}

/// Settings under which deleted files wait.
fn delayed(file_delete_delay_ms: i64) -> LogConfig {
    LogConfig { file_delete_delay_ms: Some(file_delete_delay_ms), ..LogConfig::default() }
}

/// So many snapshots were renamed at a time, in milliseconds after [`NOW`], and are there until the delay is over.
fn check_delay(log: &mut Log, renamed_at: i64, delay_ms: i64, count: usize) {
    let waiting = |log: &Log| {
        let names = log.storage().names().unwrap();
        names.iter().filter(|name| name.ends_with(".snapshot.deleted")).count()
    };
    log.remove_deleted_files(later(renamed_at + delay_ms - 1)).unwrap();
    assert_eq!(waiting(log), count);
    log.remove_deleted_files(later(renamed_at + delay_ms)).unwrap();
    assert_eq!(waiting(log), 0);
}

#[test]
fn test_retention_deletes_producer_state_snapshots() {
    for empty_active in [false, true] {
        let mut log = three_segments(&LogConfig { retention_bytes: 0, retention_ms: 60_000, ..delayed(0) });
        if empty_active {
            log.roll(NOW).unwrap();
        }
        hw(&mut log, 3);
        assert_eq!(snapshots(&log).len(), if empty_active { 3 } else { 2 });
        log.delete_old_segments(later(60_001)).unwrap();
        assert_eq!(snapshots(&log), [3]);
        check_delay(&mut log, 60_001, 0, 2);
        assert_eq!(log.log_start_offset(), Offset(3));
    }
}

#[test]
fn test_log_start_offset_movement_deletes_snapshots() {
    let mut log = three_segments(&LogConfig { retention_bytes: -1, ..delayed(0) });
    hw(&mut log, 3);
    assert_eq!(snapshots(&log).len(), 2);
    start_at(&mut log, 2);
    log.delete_old_segments(NOW).unwrap();
    assert_eq!(snapshots(&log).len(), 1);
    check_delay(&mut log, 0, 0, 1);
}

#[test]
fn test_delete_snapshots_on_increment_log_start_offset() {
    let mut log = new_log(&delayed(60_000));
    lead(&mut log, produced(1, 0, 0, 1)).unwrap();
    log.roll(NOW).unwrap();
    lead(&mut log, produced(2, 0, 0, 1)).unwrap();
    log.roll(NOW).unwrap();
    assert_eq!(ids(&log), [1, 2]);
    assert_eq!(snapshots(&log).len(), 2);
    hw(&mut log, 2);
    start_at(&mut log, 2);
    log.delete_old_segments(NOW).unwrap();
    check_delay(&mut log, 0, 60_000, 1);
    assert_eq!(ids(&log), [1, 2]);
    assert_eq!(snapshots(&log).len(), 1);
    assert_eq!(last_of(&log, 2).unwrap().0, 0);
}

#[test]
fn test_loading_log_deletes_producer_state_snapshots_past_log_end_offset() {
    let mut storage = MemoryStorage::new();
    storage.replace(&snapshot_file_name(Offset(42)), &Bytes::new()).unwrap();
    let log = reopen_files(storage, &LogConfig::default(), Recovery::Unclean, 0, 0);
    assert!(snapshots(&log).is_empty());
}

/// Without the flush up to an offset inside the active segment, which there is not.
#[test]
fn test_take_snapshot_on_roll_and_delete_snapshot_on_recovery_point_checkpoint() {
    let mut log = stock();
    for base in 1..=3 {
        lead(&mut log, plain(1)).unwrap();
        log.roll(NOW).unwrap();
        assert_eq!(snapshots(&log), (1..=base).collect::<Vec<i64>>());
    }
}

#[test]
fn test_producer_snapshot_after_segment_roll_on_append() {
    let mut log = new_log(&LogConfig { segment_bytes: 1024, ..LogConfig::default() });
    let big = |sequence| {
        let (id, epoch) = (ProducerId(1), ProducerEpoch(0));
        BatchBuilder::new(Offset(0)).timestamp(NOW).producer(id, epoch, Sequence(sequence)).record(None, Some(&[0; 512]))
    };
    lead(&mut log, big(0)).unwrap();
    lead(&mut log, big(1)).unwrap();
    assert_eq!(bases(&log), [0, 1]);
    assert_eq!(snapshots(&log), [1]);
    log.truncate_to(Offset(1), NOW).unwrap();
    let entry = log.producer_state().last_entry(ProducerId(1)).unwrap();
    let batch = entry.last_batch().unwrap();
    assert_eq!((batch.first_offset(), batch.last_offset), (Offset(0), Offset(0)));
    assert_eq!(log.segments().last(), Some((Offset(1), 0)));
}

#[test]
fn test_rebuild_transactional_state() {
    let mut log = stock();
    lead(&mut log, produced(137, 5, 0, 3).transactional(true)).unwrap();
    lead_marker(&mut log, &end_txn(137, 5, false, 0)).unwrap();
    let mut log = reopen(&log, Recovery::Unclean, 0, 0);
    hw(&mut log, 4);
    assert_eq!(log.first_unstable_offset(), None);
    assert_eq!(log.log_end_offset(), Offset(4));
}

#[test]
fn test_periodic_producer_id_expiration() {
    let mut log = new_log(&LogConfig { producer_id_expiration_ms: 200, ..LogConfig::default() });
    lead(&mut log, produced(23, 0, 0, 1)).unwrap();
    assert_eq!(ids(&log), [23]);
    log.remove_expired_producers(later(100));
    assert_eq!(ids(&log), [23]);
    log.remove_expired_producers(later(200));
    assert_eq!(ids(&log), [0i64; 0]);
}

#[test]
fn test_duplicate_appends() {
    let mut log = stock();
    for sequence in 0..6 {
        lead(&mut log, produced(1, 0, sequence, 1)).unwrap();
    }
    assert_eq!(lead(&mut log, produced(1, 0, 6, 3)), Ok((6, 8)));
    assert_eq!(lead(&mut log, produced(1, 0, 6, 3)), Ok((6, 8)));
    assert_eq!(lead(&mut log, produced(1, 0, 7, 2)), Err(OUT_OF_ORDER));
    assert_eq!(lead(&mut log, produced(1, 0, 2, 1)), Ok((2, 2)));
    assert_eq!(lead(&mut log, produced(1, 0, 1, 1)), Err(OUT_OF_ORDER));
    for _ in 0..2 {
        assert_eq!(lead(&mut log, produced(1, 0, 9, 1)), Ok((9, 9)));
    }
    assert_eq!(log.log_end_offset(), Offset(10));
}

#[test]
fn test_multiple_producer_ids_per_memory_record() {
    let mut log = stock();
    let batches: Vec<RecordBatch> = (0..4).map(|index| placed(produced(index + 1, 0, 0, 1), index, 0)).collect();
    follow(&mut log, &batches).unwrap();
    assert_eq!(log.batches().unwrap(), batches);
    assert_eq!(ids(&log), [1, 2, 3, 4]);
}

#[test]
fn test_duplicate_append_to_follower() {
    let mut log = stock();
    follow(&mut log, &[placed(produced(1, 0, 0, 2), 0, 0)]).unwrap();
    follow(&mut log, &[placed(produced(1, 0, 0, 2), 2, 0)]).unwrap();
    assert_eq!(log.log_end_offset(), Offset(4));
}

#[test]
fn test_multiple_producers_with_duplicates_in_single_append() {
    let mut log = stock();
    let batches: Vec<RecordBatch> = [(1, 0), (2, 0), (1, 1), (2, 1), (1, 1)]
        .into_iter()
        .zip(0..)
        .map(|((id, sequence), offset)| placed(produced(id, 0, sequence, 1), offset, 0))
        .collect();
    follow(&mut log, &batches).unwrap();
    assert_eq!(log.log_end_offset(), Offset(5));
}

#[test]
fn test_old_producer_epoch() {
    let mut log = stock();
    lead(&mut log, produced(1, 1, 0, 1)).unwrap();
    let old = produced(1, 0, 0, 1).build().unwrap();
    let tv = TransactionVersion::Unknown;
    let error = log.append_as_leader(old.bytes().clone(), AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap_err();
    assert_eq!(error.kafka_class(), STALE_EPOCH);
}
