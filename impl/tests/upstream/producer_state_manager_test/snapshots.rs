#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Snapshots.

use bytes::Bytes;
use cleanslate_log::log::LogConfig;
use cleanslate_log::psm::{ProducerSnapshot, ProducerStateManager, SnapshotEntry, TransactionVersion, snapshot_file_name};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::upstream::support::{Psm, abort, at_time, lead, new_log, of, one, produced, snapshots, snapshots_in, txn};

#[test]
fn test_take_snapshot() {
    let mut psm = Psm::new();
    psm.client(&one(0, 0, 0)).unwrap();
    psm.client(&one(0, 1, 1)).unwrap();
    psm.snapshot();
    assert_eq!(psm.storage.names().unwrap().len(), 1);
    assert!(psm.storage.len(&snapshot_file_name(Offset(2))).unwrap().unwrap() > 0);
}

#[test]
fn test_fetch_snapshot_empty_snap_shot() {
    let psm = Psm::new();
    assert_eq!(psm.storage.read_all(&snapshot_file_name(Offset(1))).unwrap(), None);
    assert!(psm.snapshots().is_empty());
}

#[test]
fn test_read_write_snapshot() {
    let entry = |id: i64, epoch: i16, coordinator: i32| SnapshotEntry {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
        last_sequence: Sequence::NONE,
        last_offset: Offset::UNKNOWN,
        offset_delta: 0,
        timestamp: TimestampMs(123_456),
        coordinator_epoch: CoordinatorEpoch(coordinator),
        current_txn_first_offset: None,
    };
    let first = SnapshotEntry {
        last_sequence: Sequence(1),
        last_offset: Offset(2),
        offset_delta: 3,
        timestamp: TimestampMs(-1),
        current_txn_first_offset: Some(Offset(100)),
        ..entry(1, 2, 3)
    };
    let snapshot = ProducerSnapshot { entries: vec![first, entry(11, 12, 13)] };
    assert_eq!(ProducerSnapshot::decode(&snapshot.encode()), Ok(snapshot.clone()));
    let mut psm = Psm::new();
    psm.state.load(&snapshot, TimestampMs(0));
    assert_eq!(psm.state.snapshot(), snapshot);
    assert_eq!(psm.entry(1).batches().len(), 1);
    assert!(psm.entry(11).is_empty());
}

#[test]
fn test_skip_snapshot_if_offset_unchanged() {
    let mut psm = Psm::new();
    psm.client(&one(0, 0, 0)).unwrap();
    psm.snapshot();
    assert_eq!(psm.snapshots(), [1]);
    assert_eq!(psm.state.take_snapshot(&mut psm.storage), Ok(false));
    assert_eq!(psm.snapshots(), [1]);
}

/// Through a log, which is what deletes them.
#[test]
fn test_delete_snapshots_before() {
    let mut log = new_log(&LogConfig::default());
    for sequence in 0..3 {
        lead(&mut log, produced(1, 0, sequence, 1)).unwrap();
        if sequence > 0 {
            log.take_snapshot().unwrap();
        }
    }
    assert_eq!(snapshots(&log), [2, 3]);
    for (offset, left) in [(3, &[3][..]), (4, &[])] {
        log.delete_snapshots_before(Offset(offset)).unwrap();
        assert_eq!(snapshots(&log), left);
    }
}

#[test]
fn test_truncate_fully_and_start_at() {
    let mut psm = Psm::new();
    for sequence in 0..3 {
        psm.client(&one(0, sequence, i64::from(sequence))).unwrap();
        if sequence > 0 {
            psm.snapshot();
        }
    }
    assert_eq!(psm.snapshots(), [2, 3]);
    psm.state.truncate_fully_and_start_at(&mut psm.storage, Offset(0)).unwrap();
    assert!(psm.snapshots().is_empty());
    psm.client(&one(0, 0, 0)).unwrap();
    psm.snapshot();
    assert_eq!(psm.snapshots(), [1]);
}

fn snapshot_after_each(offsets: std::ops::Range<i64>) -> Psm {
    let mut psm = Psm::new();
    for offset in offsets {
        psm.client(&one(0, i32::try_from(offset).unwrap(), offset)).unwrap();
        psm.snapshot();
    }
    psm
}

#[test]
fn test_truncate_and_reload_removes_out_of_range_snapshots() {
    let mut psm = snapshot_after_each(0..5);
    assert_eq!(psm.snapshots(), [1, 2, 3, 4, 5]);
    psm.reload(1, 3);
    assert_eq!(psm.snapshots(), [2, 3]);
}

#[test]
fn test_reload_snapshots() {
    let mut psm = Psm::new();
    for (sequence, takes) in [(1, false), (2, true), (3, false), (4, true)] {
        psm.client(&one(0, sequence, i64::from(sequence))).unwrap();
        if takes {
            psm.snapshot();
        }
    }
    assert_eq!(psm.snapshots(), [3, 5]);
    let third = psm.storage.read_all(&snapshot_file_name(Offset(3))).unwrap().unwrap();
    psm.reload(3, 5);
    assert_eq!(psm.snapshots(), [5]);
    psm.state.truncate_fully_and_start_at(&mut psm.storage, Offset(0)).unwrap();
    psm.storage.replace(&snapshot_file_name(Offset(3)), &third).unwrap();
    assert_eq!(psm.snapshots(), [3]);
    psm.reload(0, 3);
    assert_eq!(psm.state.map_end_offset(), Offset(3));
}

#[test]
fn test_recover_from_snapshot_unfinished_transaction() {
    let mut psm = Psm::new();
    psm.client(&txn(one(0, 0, 0))).unwrap();
    psm.client(&txn(one(0, 1, 1))).unwrap();
    psm.snapshot();
    let mut recovered = psm.recovered(0, 3);
    assert_eq!(recovered.entry(1).batches().len(), 1);
    assert_eq!(recovered.newest(1), (1, 1, 1, 1));
    assert_eq!(recovered.open_since(1), Some(0));
    recovered.client(&txn(one(0, 2, 2))).unwrap();
}

#[test]
fn test_recover_from_snapshot_finished_transaction() {
    let mut psm = Psm::new();
    psm.client(&txn(one(0, 0, 0))).unwrap();
    psm.client(&txn(one(0, 1, 1))).unwrap();
    psm.coordinator(TransactionVersion::V0, &abort(0, 0, 2)).unwrap();
    psm.snapshot();
    let recovered = psm.recovered(0, 3);
    assert_eq!(recovered.newest(1), (1, 1, 1, 1));
    assert_eq!(recovered.open_since(1), None);
}

#[test]
fn test_recover_from_snapshot_empty_transaction() {
    let mut psm = Psm::new();
    psm.now = 12_345;
    psm.coordinator(TransactionVersion::V0, &at_time(12_345, abort(0, 0, 0))).unwrap();
    psm.snapshot();
    let recovered = psm.recovered(0, 1);
    assert_eq!(recovered.entry(1).last_timestamp, TimestampMs(12_345));
    assert_eq!(recovered.open_since(1), None);
}

#[test]
fn test_load_from_snapshot_retains_non_expired_producers() {
    let mut psm = Psm::new();
    psm.client(&one(0, 0, 0)).unwrap();
    psm.client(&of(2, one(0, 0, 1))).unwrap();
    psm.snapshot();
    assert_eq!(psm.state.active_producers().len(), 2);
    psm.reload(1, 2);
    assert_eq!(psm.state.active_producers().len(), 2);
    let recovered = psm.recovered(1, 2);
    assert_eq!(recovered.state.active_producers().len(), 2);
    assert_eq!((recovered.newest(1), recovered.newest(2)), ((0, 0, 0, 0), (0, 0, 1, 1)));
}

/// Snapshots at 1 and 2, the second of them damaged.
fn check_damaged(damage: impl Fn(Bytes) -> Bytes) {
    let psm = snapshot_after_each(0..2);
    assert_eq!(psm.snapshots(), [1, 2]);
    let mut reopened = Psm { storage: psm.storage, ..Psm::new() };
    let name = snapshot_file_name(Offset(2));
    let file = reopened.storage.read_all(&name).unwrap().unwrap();
    reopened.storage.replace(&name, &damage(file)).unwrap();
    reopened.reload(0, 20);
    assert_eq!(reopened.snapshots(), [1]);
    assert_eq!(reopened.entry(1).last_data_offset(), Offset(0));
}

#[test]
fn test_load_from_empty_snapshot_file() {
    check_damaged(|_| Bytes::new());
}

#[test]
fn test_load_from_truncated_snapshot_file() {
    check_damaged(|file| file.slice(..file.len() / 2));
}

#[test]
fn test_load_from_corrupt_snapshot_file() {
    check_damaged(|file| {
        let mut bytes = file.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] = 37;
        Bytes::from(bytes)
    });
}

fn without_strays(bases: &[i64]) -> Vec<i64> {
    let mut storage = MemoryStorage::new();
    for offset in [5, 2, 42] {
        storage.replace(&snapshot_file_name(Offset(offset)), &Bytes::new()).unwrap();
    }
    let bases: Vec<Offset> = bases.iter().copied().map(Offset).collect();
    ProducerStateManager::remove_stray_snapshots(&mut storage, &bases).unwrap();
    snapshots_in(&storage)
}

#[test]
fn test_remove_stray_snapshots_keep_clean_shutdown_snapshot() {
    assert_eq!(without_strays(&[5]), [5, 42]);
}

#[test]
fn test_remove_all_stray_snapshots() {
    assert_eq!(without_strays(&[42]), [42]);
}

/// A manager's files with one empty snapshot, at offset 5.
fn with_snapshot_at_five() -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    storage.replace(&snapshot_file_name(Offset(5)), &Bytes::new()).unwrap();
    assert_eq!(snapshots_in(&storage), [5]);
    storage
}

#[test]
fn test_remove_and_mark_snapshot_for_deletion() {
    let mut storage = with_snapshot_at_five();
    let marked = ProducerStateManager::mark_snapshot_for_deletion(&mut storage, Offset(5)).unwrap().unwrap();
    assert_eq!((marked.offset, marked.name.as_str()), (Offset(5), "00000000000000000005.snapshot.deleted"));
    assert_eq!(storage.names().unwrap(), [marked.name]);
    assert_eq!(snapshots_in(&storage), [0i64; 0]);
}

#[test]
fn test_remove_and_mark_snapshot_for_deletion_already_deleted() {
    let mut storage = with_snapshot_at_five();
    storage.remove(&snapshot_file_name(Offset(5))).unwrap();
    assert_eq!(ProducerStateManager::mark_snapshot_for_deletion(&mut storage, Offset(5)), Ok(None));
    assert_eq!(snapshots_in(&storage), [0i64; 0]);
}
