#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Transactions.

use cleanslate_log::log::{FetchIsolation, LogConfig, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};

use super::script::aborted;
use crate::upstream::support::{
    FENCED, Log, NOW, STALE_EPOCH, bases, end_txn, follow, hw, lead, lead_as, lead_marker, new_log, per_segment, placed, plain,
    produced, reopen, start_at,
};

fn stock() -> Log {
    new_log(&LogConfig::default())
}

fn txn(id: i64, epoch: i16, sequence: i32, count: usize) -> BatchBuilder {
    produced(id, epoch, sequence, count).transactional(true)
}

fn unstable(log: &Log) -> Option<i64> {
    log.first_unstable_offset().map(Offset::get)
}

fn end_under(log: &mut Log, epoch: i16, tv: TransactionVersion) -> Result<(i64, i64), &'static str> {
    lead_as(log, &end_txn(1, epoch, true, 0), AppendOrigin::Coordinator, tv, NOW)
}

#[test]
fn test_zombie_coordinator_fenced() {
    let mut log = stock();
    lead(&mut log, txn(1, 5, 0, 5)).unwrap();
    lead_marker(&mut log, &end_txn(1, 5, false, 1)).unwrap();
    lead(&mut log, txn(1, 5, 5, 5)).unwrap();
    lead_marker(&mut log, &end_txn(1, 5, true, 2)).unwrap();
    assert_eq!(lead_marker(&mut log, &end_txn(1, 5, false, 1)), Err(FENCED));
}

#[test]
fn test_zombie_coordinator_fenced_empty_transaction() {
    let mut log = stock();
    let data = placed(txn(1, 5, 0, 5), 0, 0);
    follow(&mut log, &[data, end_txn(1, 5, false, 1).with_base_offset(Offset(5))]).unwrap();
    for _ in 0..2 {
        lead_marker(&mut log, &end_txn(1, 5, false, 2)).unwrap();
    }
    assert_eq!(lead_marker(&mut log, &end_txn(1, 5, false, 1)), Err(FENCED));
}

#[test]
fn test_end_txn_with_fenced_producer_epoch() {
    for (tv, same_is_valid) in [(TransactionVersion::V0, true), (TransactionVersion::V1, true), (TransactionVersion::V2, false)] {
        let mut log = stock();
        lead(&mut log, txn(1, 5, 0, 5)).unwrap();
        assert_eq!(end_under(&mut log, 4, tv), Err(STALE_EPOCH));
        let same = end_under(&mut log, 5, tv);
        assert_eq!(same, if same_is_valid { Ok((5, 5)) } else { Err(STALE_EPOCH) });
    }
}

#[test]
fn test_tv2_marker_with_bumped_epoch_succeeds() {
    let mut log = stock();
    lead(&mut log, txn(1, 5, 0, 5)).unwrap();
    end_under(&mut log, 6, TransactionVersion::V2).unwrap();
    assert_eq!(log.producer_state().last_entry(ProducerId(1)).unwrap().producer_epoch, ProducerEpoch(6));
}

#[test]
fn test_replication_with_tv_unknown_allowed() {
    let mut leader = stock();
    lead(&mut leader, txn(1, 5, 0, 5)).unwrap();
    end_under(&mut leader, 6, TransactionVersion::V2).unwrap();
    let mut follower = stock();
    follow(&mut follower, &leader.batches().unwrap()).unwrap();
    assert_eq!(follower.producer_state().last_entry(ProducerId(1)).unwrap().producer_epoch, ProducerEpoch(6));
    assert_eq!(follower.batches().unwrap(), leader.batches().unwrap());
}

#[test]
fn test_leader_rejects_tv_unknown_for_transaction_marker() {
    let mut log = stock();
    lead(&mut log, txn(1, 5, 0, 5)).unwrap();
    assert_eq!(end_under(&mut log, 6, TransactionVersion::Unknown), Err("IllegalArgumentException"));
}

/// An open transaction at offset 0, a roll at 8, and more.
fn open_over_two_segments() -> Log {
    let mut log = stock();
    lead(&mut log, txn(1, 0, 0, 5)).unwrap();
    lead(&mut log, txn(1, 0, 5, 3)).unwrap();
    log.roll(NOW).unwrap();
    lead(&mut log, txn(1, 0, 8, 10)).unwrap();
    assert_eq!(unstable(&log), Some(0));
    assert_eq!(bases(&log), [0, 8]);
    let end = log.log_end_offset().get();
    hw(&mut log, end);
    log
}

#[test]
fn test_last_stable_offset_does_not_exceed_log_start_offset_mid_segment() {
    let mut log = open_over_two_segments();
    start_at(&mut log, 5);
    assert_eq!(unstable(&log), Some(5));
}

#[test]
fn test_last_stable_offset_does_not_exceed_log_start_offset_after_segment_deletion() {
    let mut log = open_over_two_segments();
    start_at(&mut log, 8);
    assert_eq!(log.delete_old_segments(NOW), Ok(1));
    assert_eq!(bases(&log), [8]);
    assert_eq!(unstable(&log), Some(8));
}

#[test]
fn test_last_stable_offset_with_mixed_producer_data() {
    let mut log = stock();
    lead(&mut log, txn(137, 5, 0, 3)).unwrap();
    lead(&mut log, plain(3)).unwrap();
    lead(&mut log, txn(983, 5, 0, 3)).unwrap();
    assert_eq!(unstable(&log), Some(0));
    lead_marker(&mut log, &end_txn(137, 5, false, 0)).unwrap();
    assert_eq!(unstable(&log), Some(0));
    hw(&mut log, 10);
    assert_eq!(unstable(&log), Some(6));
    lead_marker(&mut log, &end_txn(983, 5, true, 0)).unwrap();
    assert_eq!(unstable(&log), Some(6));
    hw(&mut log, 11);
    assert_eq!(unstable(&log), None);
}

#[test]
fn test_aborted_transaction_spanning_multiple_segments() {
    let size = txn(137, 5, 0, 3).build().unwrap().size_in_bytes();
    let mut log = new_log(&LogConfig { segment_bytes: size, ..per_segment(1) });
    lead(&mut log, txn(137, 5, 0, 3)).unwrap();
    assert_eq!(unstable(&log), Some(0));
    lead(&mut log, txn(137, 5, 3, 3)).unwrap();
    assert_eq!(bases(&log).len(), 2);
    lead_marker(&mut log, &end_txn(137, 5, false, 0)).unwrap();
    assert_eq!(bases(&log).len(), 3);
    hw(&mut log, 7);
    assert_eq!(unstable(&log), None);
    assert_eq!(aborted(&log), [(137, 0, 6, 7)]);
    let data = log.fetch(Offset(0), FetchIsolation::TxnCommitted, 2048, true).unwrap();
    let found: Vec<(i64, i64)> = data.aborted.unwrap().iter().map(|txn| (txn.producer_id.get(), txn.first_offset.get())).collect();
    assert_eq!(found, [(137, 0)]);
}

fn stale(log: &mut Log, epoch: i16) {
    let batch = txn(1, epoch, 1, 1).build().unwrap();
    let tv = TransactionVersion::Unknown;
    let error = log.append_as_leader(batch.bytes().clone(), AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap_err();
    assert_eq!(error.kafka_class(), STALE_EPOCH);
}

#[test]
fn test_stale_producer_epoch_returns_recoverable_error_for_tv1_clients() {
    let mut log = new_log(&LogConfig { transaction_verification: true, ..LogConfig::default() });
    lead_marker(&mut log, &end_txn(1, 6, true, 0)).unwrap();
    stale(&mut log, 5);
}

#[test]
fn test_stale_producer_epoch_returns_recoverable_error_for_tv2_clients() {
    let mut log = new_log(&LogConfig { transaction_verification: true, ..LogConfig::default() });
    follow(&mut log, &[placed(txn(1, 3, 0, 1), 0, 0)]).unwrap();
    let marker = end_txn(1, 4, false, 0);
    lead_as(&mut log, &marker, AppendOrigin::Coordinator, TransactionVersion::V2, NOW).unwrap();
    stale(&mut log, 3);
}

#[test]
fn test_read_committed_with_concurrent_high_watermark_updates() {
    let mut log = stock();
    for (sequence, round) in (0..25).zip(0..) {
        let before = log.log_end_offset().get();
        lead(&mut log, txn(1, 0, sequence, 1)).unwrap();
        for high_watermark in [before, before + 1] {
            hw(&mut log, high_watermark);
            assert_eq!(log.last_stable_offset(), Offset(before));
        }
        lead_marker(&mut log, &end_txn(1, 0, round % 2 == 0, 0)).unwrap();
        assert_eq!(log.last_stable_offset(), Offset(before));
        hw(&mut log, before + 2);
        assert_eq!(log.last_stable_offset(), Offset(before + 2));
        let data = log.fetch(Offset(before), FetchIsolation::TxnCommitted, 4096, true).unwrap();
        assert_eq!(data.aborted.unwrap().len(), usize::from(round % 2 != 0));
    }
    assert_eq!(log.log_end_offset(), Offset(50));
    let reopened = reopen(&log, Recovery::Unclean, 0, 0);
    assert_eq!(aborted(&reopened), aborted(&log));
}
