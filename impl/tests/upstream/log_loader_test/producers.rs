#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Producer state at load.

use bytes::Bytes;
use cleanslate_log::log::{LogConfig, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, snapshot_file_name, snapshot_files};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::Storage;
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId};

use crate::upstream::support::{
    DAY_MS, Log, NOW, bases, hw, ids, last_of, later, lead, lead_as, new_log, produced, reopen, reopen_files, snapshots, start_at,
    timed,
};

fn stock() -> Log {
    new_log(&LogConfig::default())
}

/// 101 records; the fourth segment from the end is the first that has to be recovered.
fn check_snapshots(kept_from_end: usize, recovery_point_plus: i64) {
    let mut log = new_log(&LogConfig { segment_bytes: 640, ..LogConfig::default() });
    for index in 0..=100 {
        lead(&mut log, timed(later(index * 10))).unwrap();
    }
    log.close_clean().unwrap();
    let bases = bases(&log);
    assert!(bases.len() >= 5);
    let kept = bases[bases.len() - kept_from_end];
    let mut storage = log.storage().clone();
    for file in snapshot_files(&storage).unwrap() {
        if file.offset.get() < kept {
            storage.remove(&file.name).unwrap();
        }
    }
    let point = bases[bases.len() - 4] + recovery_point_plus;
    let recovered = reopen_files(storage, log.config(), Recovery::Unclean, point, 0);
    let mut expected = bases[bases.len() - 4..].to_vec();
    expected.push(101);
    assert_eq!(snapshots(&recovered), expected);
}

#[test]
fn test_producer_snapshots_recovery_after_unclean_shutdown() {
    check_snapshots(2, 0);
    check_snapshots(4, 1);
}

#[test]
fn test_recover_after_non_monotonic_coordinator_epoch_write() {
    let mut log = stock();
    let abort = |log: &mut Log, coordinator, after: i64| {
        let (offset, now) = (Offset(0), later(after));
        let (id, epoch) = (ProducerId(1), ProducerEpoch(5));
        let coordinator = CoordinatorEpoch(coordinator);
        let batch = RecordBatch::end_txn_marker(offset, LeaderEpoch(0), now, id, epoch, false, coordinator).unwrap();
        lead_as(log, &batch, AppendOrigin::Coordinator, TransactionVersion::V0, now).unwrap();
    };
    abort(&mut log, 5, 0);
    log.remove_expired_producers(later(DAY_MS));
    assert!(ids(&log).is_empty());
    abort(&mut log, 4, DAY_MS);
    let recovered = reopen(&log, Recovery::Unclean, 0, 0);
    assert_eq!(recovered.log_end_offset(), Offset(2));
    let entry = recovered.producer_state().last_entry(ProducerId(1)).unwrap();
    assert_eq!(entry.last_timestamp, later(DAY_MS));
    assert_eq!(entry.coordinator_epoch, CoordinatorEpoch(4));
}

fn two_producers(rolls: bool) -> Log {
    let mut log = stock();
    lead(&mut log, produced(1, 0, 0, 1)).unwrap();
    if rolls {
        log.roll(NOW).unwrap();
    }
    lead(&mut log, produced(2, 0, 0, 1)).unwrap();
    hw(&mut log, 2);
    assert_eq!(ids(&log), [1, 2]);
    start_at(&mut log, 1);
    log
}

#[test]
fn test_load_producers_after_delete_records_mid_segment() {
    let mut log = two_producers(false);
    log.delete_old_segments(NOW).unwrap();
    assert_eq!(ids(&log), [1, 2]);
    log.close_clean().unwrap();
    assert_eq!(ids(&reopen(&log, Recovery::Unclean, 1, 1)), [1, 2]);
}

#[test]
fn test_load_producers_after_delete_records_on_segment() {
    let mut log = two_producers(true);
    assert_eq!(bases(&log).len(), 2);
    assert_eq!(log.delete_old_segments(NOW), Ok(1));
    assert_eq!(bases(&log).len(), 1);
    assert_eq!(ids(&log), [1, 2]);
    log.close_clean().unwrap();
    let reloaded = reopen(&log, Recovery::Unclean, 1, 1);
    assert_eq!(ids(&reloaded), [2]);
    assert_eq!(last_of(&reloaded, 2), Some((0, 1)));
}

#[test]
fn test_loading_log_keeps_largest_stray_producer_state_snapshot() {
    let mut log = stock();
    for sequence in 0..4 {
        lead(&mut log, produced(1, 0, sequence, 1)).unwrap();
        if sequence < 2 {
            log.roll(NOW).unwrap();
        }
    }
    log.close_clean().unwrap();
    assert_eq!(snapshots(&log), [1, 2, 4]);
    let mut storage = log.storage().clone();
    storage.replace(&snapshot_file_name(Offset(3)), &Bytes::new()).unwrap();
    let reopened = reopen_files(storage, log.config(), Recovery::Clean, 4, 0);
    assert_eq!(snapshots(&reopened), [1, 2, 4]);
}
