#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Transactions and their markers.

use bytes::Bytes;
use cleanslate_log::log::LogConfig;
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::types::{Offset, TimestampMs};

use super::cleaning::{Cleaned, LAST, LATE};
use crate::upstream::support::{NOW, end_txn, lead, lead_marker};

#[test]
fn test_multi_pass_segment_cleaning_with_aborted_transactions() {
    // Four slots, of which three are filled.
    let config = LogConfig { delete_retention_ms: 50_000, ..LogConfig::default() };
    let mut log = Cleaned::with(&config);
    log.txn(1, &[1, 2]).txn(2, &[2, 3]).txn(1, &[3, 4]).commit(1).commit(2);
    log.txn(1, &[5, 6]).abort(1).txn(2, &[7, 8]).txn(1, &[5, 6]).commit(1).abort(2).txn(2, &[7, 8]).commit(2).roll();
    assert_eq!(log.aborted(), [(8, 10), (11, 16)]);
    assert_eq!(log.round(0, NOW, 3), Ok(4));
    assert_eq!(log.base_offsets(), [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]);
    assert_eq!(log.offsets(), [0, 2, 3, 4, 5, 6, 7, 10, 13, 14, 15, 16, 17, 18, 19]);
    assert_eq!(log.aborted(), [(8, 10), (11, 16)]);
    assert_eq!(log.round(4, NOW, 3), Ok(14));
    assert_eq!(log.base_offsets(), [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]);
    assert_eq!(log.offsets(), [0, 2, 4, 5, 6, 7, 10, 13, 14, 15, 16, 17, 18, 19]);
    assert_eq!(log.aborted(), []);
    assert_eq!(log.round(14, TimestampMs(NOW.get() + 50_001), 3), Ok(20));
    assert_eq!(log.base_offsets(), [0, 2, 4, 6, 7, 13, 15, 17, 19]);
    assert_eq!(log.offsets(), [0, 2, 4, 5, 6, 7, 13, 14, 15, 17, 18, 19]);
}

#[test]
fn test_basic_transaction_aware_cleaning() {
    let mut log = Cleaned::new();
    log.txn(1, &[1, 2]).txn(2, &[2, 3]).txn(1, &[3, 4]).abort(1).commit(2).txn(1, &[2]).commit(1);
    let aborted = log.aborted();
    assert_eq!(aborted, [(0, 6)]);
    log.roll().clean(NOW);
    assert_eq!((log.keys(), log.offsets()), (vec![3, 2], vec![3, 6, 7, 8, 9]));
    assert_eq!(log.aborted(), aborted);
}

#[test]
fn test_clean_with_transactions_spanning_segments() {
    let mut log = Cleaned::new();
    log.txn(1, &[1, 2]).txn(3, &[2, 3]).txn(2, &[3, 4]).roll();
    log.txn(2, &[5, 6]).txn(3, &[6, 7]).txn(1, &[7, 8]).abort(2).txn(3, &[8, 9]).commit(3).txn(1, &[9, 10]).abort(1);
    let dirty = log.round(0, NOW, usize::MAX).unwrap();
    assert_eq!(log.keys(), [2, 3, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10]);
    log.roll().txn(2, &[11]).txn(1, &[12]);
    log.round(dirty, NOW, usize::MAX).unwrap();
    assert_eq!(log.keys(), [2, 3, 6, 7, 8, 9, 11, 12]);
}

#[test]
fn test_commit_marker_removal() {
    let mut log = Cleaned::new();
    log.txn(1, &[1]).txn(1, &[2, 3]).commit(1).txn(1, &[2]).commit(1).roll().clean(LATE);
    assert_eq!((log.keys(), log.offsets()), (vec![1, 3, 2], vec![0, 2, 3, 4, 5]));
    log.txn(1, &[1, 3]).commit(1).roll().clean(LATE);
    assert_eq!((log.keys(), log.offsets()), (vec![2, 1, 3], vec![3, 4, 5, 6, 7, 8]));
    log.clean(LATE);
    assert_eq!((log.keys(), log.offsets()), (vec![2, 1, 3], vec![3, 4, 5, 6, 7, 8]));
    log.clean(LAST);
    assert_eq!((log.keys(), log.offsets()), (vec![2, 1, 3], vec![4, 5, 6, 7, 8]));
}

#[test]
fn test_deleted_batches_with_no_messages_read() {
    let mut log = Cleaned::with(&LogConfig { max_message_bytes: 100, ..LogConfig::default() });
    log.txn(1, &[1]).abort(1).txn(1, &[2]).txn(1, &[2]).commit(1).roll().clean(NOW);
    assert_eq!((log.keys(), log.offsets()), (vec![2], vec![1, 3, 4]));
    log.clean_twice();
    assert_eq!((log.keys(), log.offsets()), (vec![2], vec![3, 4]));
}

#[test]
fn test_commit_marker_retention_with_empty_batch() {
    let mut log = Cleaned::new();
    log.txn(1, &[2, 3]).roll().txn(2, &[2, 3]).commit(2).roll().plain(&[2, 3]).commit(1).roll();
    for _ in 0..2 {
        log.clean(LATE);
        assert_eq!((log.keys(), log.offsets()), (vec![2, 3], vec![4, 5, 6, 7]));
        assert_eq!(log.last_offsets(), [1, 3, 4, 5, 6, 7]);
    }
    log.txn(2, &[1]).commit(2).roll().clean(LATE);
    assert_eq!((log.keys(), log.offsets()), (vec![2, 3, 1], vec![4, 5, 6, 7, 8, 9]));
    assert_eq!(log.last_offsets(), [1, 4, 5, 6, 7, 8, 9]);
    log.clean_twice();
    assert_eq!((log.keys(), log.offsets()), (vec![2, 3, 1], vec![5, 6, 7, 8, 9]));
    assert_eq!(log.last_offsets(), [1, 5, 6, 7, 8, 9]);
}

#[test]
fn test_clean_empty_control_batch() {
    let mut log = Cleaned::new();
    log.commit(1).plain(&[2, 3]).roll().clean_twice();
    for _ in 0..2 {
        assert_eq!((log.keys(), log.offsets(), log.last_offsets()), (vec![2, 3], vec![1, 2], vec![0, 1, 2]));
        log.clean(LAST);
    }
}

#[test]
fn test_committed_transaction_spanning_segments() {
    let mut log = Cleaned::new();
    log.txn(1, &[1]).roll().commit(1).roll().clean(LATE);
    assert_eq!((log.offsets(), log.last_offsets()), (vec![0, 1], vec![0, 1]));
}

#[test]
fn test_aborted_transaction_spanning_segments() {
    let mut log = Cleaned::new();
    log.txn(1, &[1]).roll().abort(1).roll();
    for _ in 0..2 {
        log.clean_twice();
        assert_eq!((log.offsets(), log.last_offsets()), (vec![1], vec![0, 1]));
    }
}

#[test]
fn test_abort_marker_removal() {
    let mut log = Cleaned::new();
    log.txn(1, &[1]).txn(1, &[2, 3]).abort(1).txn(1, &[3]).commit(1).roll().clean(NOW);
    assert_eq!((log.keys(), log.offsets()), (vec![3], vec![3, 4, 5]));
    log.clean_twice();
    assert_eq!((log.keys(), log.offsets()), (vec![3], vec![4, 5]));
}

#[test]
fn test_empty_batch_removal_with_sequence_reuse() {
    let mut log = Cleaned::new();
    // Sequence 0 again can only come in a copy, at the next offset.
    log.txn(1, &[1]).commit(1);
    log.forget_sequence(1);
    let again = crate::upstream::support::placed(
        super::cleaning::keyed(crate::upstream::support::produced(1, 0, 0, 0), &[2]).transactional(true),
        2,
        0,
    );
    crate::upstream::support::follow(&mut log.log, &[again]).unwrap();
    log.commit(1);
    lead(&mut log.log, super::cleaning::keyed(BatchBuilder::new(Offset(0)), &[1])).unwrap();
    let changed = BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(b"2"), Some(b"1"));
    lead(&mut log.log, changed).unwrap();
    log.roll().clean(NOW);
    assert_eq!((log.offsets(), log.last_offsets()), (vec![1, 3, 4, 5], vec![1, 2, 3, 4, 5]));
    log.clean_twice();
    assert_eq!((log.offsets(), log.last_offsets()), (vec![3, 4, 5], vec![2, 3, 4, 5]));
}

#[test]
fn test_abort_marker_retention_with_empty_batch() {
    let mut log = Cleaned::new();
    log.txn(1, &[2, 3]).abort(1).roll();
    assert_eq!(log.aborted(), [(0, 2)]);
    log.clean(LATE);
    for _ in 0..2 {
        assert_eq!((log.keys(), log.offsets(), log.last_offsets()), (vec![], vec![2], vec![1, 2]));
        assert_eq!(log.aborted(), [(0, 2)]);
        log.clean_twice();
    }
    log.txn(1, &[1]).roll().clean(NOW);
    assert_eq!((log.keys(), log.offsets(), log.last_offsets()), (vec![1], vec![2, 3], vec![2, 3]));
    assert_eq!(log.aborted(), [(0, 2)]);
    log.clean_twice();
    assert_eq!((log.keys(), log.offsets(), log.last_offsets()), (vec![1], vec![3], vec![3]));
    assert_eq!(log.aborted(), []);
}

#[test]
fn test_cleaning_with_keys_conflicting_with_txn_marker_keys() {
    let mut log = Cleaned::new();
    let commit_key = [0, 0, 0, 1];
    log.txn(1, &[1]).commit(1);
    let conflicting = BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(&commit_key), Some(b"value"));
    lead(&mut log.log, conflicting).unwrap();
    let key = log.log.batches().unwrap()[1].records().unwrap()[0].key.clone();
    assert_eq!(key, Some(Bytes::copy_from_slice(&commit_key)));
    lead_marker(&mut log.log, &end_txn(1, 0, true, 0)).unwrap();
    log.roll().clean(NOW);
    assert_eq!(log.offsets(), [0, 1, 2, 3]);
}
