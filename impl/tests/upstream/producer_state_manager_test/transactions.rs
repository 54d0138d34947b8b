#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Transactions.

use cleanslate_log::psm::{AppendOrigin, BatchFacts, BatchKind, TransactionVersion};
use cleanslate_log::types::{CoordinatorEpoch, Offset, OffsetMetadata, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::upstream::support::{
    DAY_MS, FENCED, INVALID_TXN, Psm, STALE_EPOCH, abort, at_time, commit, data, epoch_for_marker, of, one, txn,
};

const TIMEOUT_MS: i64 = 300_000;
const VERSIONS: [TransactionVersion; 2] = [TransactionVersion::V0, TransactionVersion::V2];

#[test]
fn update_producer_transaction_state() {
    let mut psm = Psm::new();
    let mut info = psm.state.prepare_update(ProducerId(1), AppendOrigin::Client);
    for (facts, last) in [(data(0, 1, 16..=20), (5, 20)), (data(0, 6, 26..=30), (10, 30))] {
        info.append(&txn(facts), TransactionVersion::Unknown).unwrap();
        let updated = info.updated();
        assert_eq!((updated.last_sequence().get(), updated.last_data_offset().get()), last);
        assert_eq!(updated.current_txn_first_offset, Some(Offset(16)));
        assert_eq!(info.started_transactions().len(), 1);
    }
    psm.state.update(info);
    let mut info = psm.state.prepare_update(ProducerId(1), AppendOrigin::Coordinator);
    let completed = info.append(&commit(0, 15, 40), TransactionVersion::V0).unwrap().unwrap();
    assert_eq!((completed.first_offset, completed.last_offset, completed.aborted), (Offset(16), Offset(40), false));
    psm.state.update(info);
    let entry = psm.entry(1);
    assert_eq!((entry.last_sequence(), entry.last_data_offset()), (Sequence(10), Offset(30)));
    assert_eq!(entry.coordinator_epoch, CoordinatorEpoch(15));
    assert_eq!(entry.current_txn_first_offset, None);
    assert_eq!(entry.batches()[0].first_sequence(), Sequence(1));
}

#[test]
fn test_non_transactional_append_with_ongoing_transaction() {
    let mut psm = Psm::new();
    psm.client(&txn(one(0, 0, 0))).unwrap();
    assert_eq!(psm.client(&one(0, 1, 1)), Err(INVALID_TXN));
}

#[test]
fn test_skip_empty_transactions() {
    let mut psm = Psm::new();
    psm.client(&txn(data(0, 0, 16..=20))).unwrap();
    let mut info = psm.state.prepare_update(ProducerId(1), AppendOrigin::Replication);
    let steps = [
        (commit(0, 0, 21), Some((16, 21, false))),
        (commit(0, 0, 22), None),
        (abort(0, 0, 23), None),
        (txn(data(0, 5, 24..=27)), None),
        (abort(0, 0, 28), Some((24, 28, true))),
        (abort(0, 0, 29), None),
        (txn(data(0, 9, 30..=31)), None),
    ];
    let mut ended = Vec::new();
    for (facts, expected) in steps {
        let completed = info.append(&facts, TransactionVersion::V0).unwrap();
        assert_eq!(completed.map(|c| (c.first_offset.get(), c.last_offset.get(), c.aborted)), expected, "{facts:?}");
        ended.extend(completed);
    }
    let started: Vec<i64> = info.started_transactions().iter().map(|t| t.first_offset.get()).collect();
    assert_eq!(started, [24, 30]);
    psm.state.update(info);
    for completed in &ended {
        psm.state.complete_txn(completed).unwrap();
    }
    psm.high_watermark(32);
    assert_eq!(psm.unstable(), Some(30));
}

#[test]
fn test_txn_first_offset_metadata_cached() {
    let mut psm = Psm::new();
    let first = OffsetMetadata::at(Offset(992_342), Offset(990_000), 234_224);
    psm.client(&BatchFacts { position: first.position, ..txn(one(0, 0, 992_342)) }).unwrap();
    assert_eq!(psm.state.first_unstable_offset_metadata(), Some(first));
}

#[test]
fn test_last_stable_offset_completed_txn() {
    let mut psm = Psm::new();
    let start = 992_342;
    let (second, third) = (start + 25, start + 57);
    for (id, offset) in [(1, start), (2, second), (3, third)] {
        psm.client(&of(id, txn(one(0, 0, offset)))).unwrap();
    }
    let last = third + 13;
    let steps = [(1, last, second, Some(second)), (3, last + 1, second, Some(second)), (2, last + 20, last + 21, None)];
    for (id, end, stable, unstable) in steps {
        let mut info = psm.state.prepare_update(ProducerId(id), AppendOrigin::Coordinator);
        let completed = info.append(&of(id, commit(0, 0, end)), TransactionVersion::V0).unwrap().unwrap();
        psm.state.update(info);
        assert_eq!(psm.state.last_stable_offset(&completed), Offset(stable));
        psm.state.complete_txn(&completed).unwrap();
        psm.high_watermark(end + 1);
        assert_eq!(psm.unstable(), unstable);
    }
}

#[test]
fn test_first_unstable_offset() {
    for tv in VERSIONS {
        let mut psm = Psm::new();
        assert_eq!((psm.undecided(), psm.unstable()), (None, None));
        psm.client(&txn(one(5, 0, 99))).unwrap();
        psm.client(&of(2, txn(one(5, 0, 105)))).unwrap();
        assert_eq!((psm.undecided(), psm.unstable()), (Some(99), Some(99)));
        psm.coordinator(tv, &commit(epoch_for_marker(5, tv), 0, 109)).unwrap();
        assert_eq!((psm.undecided(), psm.unstable()), (Some(105), Some(99)));
        for (high_watermark, unstable) in [(100, 99), (110, 105)] {
            psm.high_watermark(high_watermark);
            assert_eq!((psm.undecided(), psm.unstable()), (Some(105), Some(unstable)));
        }
        psm.coordinator(tv, &of(2, abort(epoch_for_marker(5, tv), 0, 112))).unwrap();
        assert_eq!((psm.undecided(), psm.unstable()), (None, Some(105)));
        psm.high_watermark(113);
        assert_eq!((psm.undecided(), psm.unstable()), (None, None));
    }
}

#[test]
fn test_first_unstable_offset_after_truncation() {
    let mut psm = Psm::new();
    psm.client(&txn(one(0, 0, 99))).unwrap();
    assert_eq!(psm.unstable(), Some(99));
    psm.snapshot();
    psm.coordinator(TransactionVersion::V0, &commit(0, 0, 105)).unwrap();
    psm.high_watermark(106);
    assert_eq!(psm.unstable(), None);
    psm.snapshot();
    psm.client(&one(0, 1, 106)).unwrap();
    psm.reload(0, 106);
    assert_eq!(psm.unstable(), None);
    psm.reload(0, 100);
    assert_eq!(psm.unstable(), Some(99));
}

#[test]
fn test_has_late_transaction() {
    for tv in VERSIONS {
        let mut psm = Psm::new();
        let late = |psm: &Psm, now| psm.state.has_late_transaction(TimestampMs(now), TIMEOUT_MS);
        let (first, second) = (1000, 1000 + TIMEOUT_MS);
        psm.client(&at_time(first, txn(one(2, 0, 100)))).unwrap();
        assert!(!late(&psm, first));
        psm.client(&at_time(second, of(2, txn(one(9, 0, 150))))).unwrap();
        assert!(!late(&psm, first + 600_000));
        assert!(late(&psm, first + 600_001));
        let now = second + 600_001;
        assert!(late(&psm, now));
        psm.coordinator(tv, &at_time(now, commit(epoch_for_marker(2, tv), 0, 200))).unwrap();
        assert!(!late(&psm, second + 600_000));
        assert!(late(&psm, now));
        psm.coordinator(tv, &at_time(now, of(2, commit(epoch_for_marker(9, tv), 0, 250)))).unwrap();
        assert!(!late(&psm, now));
    }
}

fn late_at(psm: &Psm, now: i64) -> bool {
    psm.state.has_late_transaction(TimestampMs(now), TIMEOUT_MS)
}

#[test]
fn test_has_late_transaction_initialized_after_reload() {
    let mut psm = Psm::new();
    psm.client(&at_time(1000, txn(one(2, 0, 100)))).unwrap();
    psm.snapshot();
    assert!(late_at(&psm, 601_001));
    psm.now = 601_001;
    let recovered = psm.recovered(0, psm.state.map_end_offset().get());
    assert!(late_at(&recovered, 601_001));
    assert!(!late_at(&recovered, 601_000));
}

#[test]
fn test_has_late_transaction_updated_after_partial_truncation() {
    let mut psm = Psm::new();
    psm.client(&at_time(1000, txn(one(2, 0, 100)))).unwrap();
    assert!(late_at(&psm, 601_001));
    psm.reload(0, 80);
    assert!(!late_at(&psm, 601_001));
}

#[test]
fn test_has_late_transaction_updated_after_full_truncation() {
    let mut psm = Psm::new();
    psm.client(&at_time(1000, txn(one(2, 0, 100)))).unwrap();
    assert!(late_at(&psm, 601_001));
    psm.state.truncate_fully_and_start_at(&mut psm.storage, Offset(150)).unwrap();
    assert!(!late_at(&psm, 601_001));
}

#[test]
fn test_producers_with_ongoing_transactions_dont_expire() {
    let mut psm = Psm::new();
    psm.client(&at_time(1, txn(one(5, 0, 99)))).unwrap();
    for _ in 0..2 {
        psm.now += DAY_MS + 1;
        psm.expire();
        assert_eq!(psm.open_since(1), Some(99));
        assert_eq!(psm.undecided(), Some(99));
    }
}

#[test]
fn test_producer_state_after_fencing_abort_marker() {
    let mut psm = Psm::new();
    psm.client(&txn(one(0, 0, 0))).unwrap();
    psm.coordinator(TransactionVersion::V0, &abort(1, 0, 1)).unwrap();
    let entry = psm.entry(1);
    assert_eq!(entry.current_txn_first_offset, None);
    assert!(entry.is_empty());
    assert_eq!(entry.last_data_offset(), Offset::UNKNOWN);
    psm.expire();
    assert_eq!(psm.entry(1).producer_epoch, ProducerEpoch(1));
}

#[test]
fn test_old_epoch_for_control_record() {
    for tv in VERSIONS {
        let mut psm = Psm::new();
        psm.client(&txn(one(5, 0, 99))).unwrap();
        assert_eq!(psm.coordinator(tv, &commit(3, 0, 100)), Err(STALE_EPOCH));
        let same = psm.coordinator(tv, &commit(5, 0, 100));
        if tv == TransactionVersion::V2 { assert_eq!(same, Err(STALE_EPOCH)) } else { assert!(same.is_ok()) }
    }
}

#[test]
fn test_idempotent_transaction_marker_retry_tv2() {
    let mut psm = Psm::new();
    psm.client(&txn(one(5, 0, 99))).unwrap();
    psm.coordinator(TransactionVersion::V2, &commit(6, 0, 100)).unwrap();
    let before = psm.entry(1).clone();
    assert_eq!((before.producer_epoch, before.current_txn_first_offset), (ProducerEpoch(6), None));
    assert_eq!(psm.coordinator(TransactionVersion::V2, &commit(6, 0, 101)), Ok(None));
    assert_eq!(*psm.entry(1), before);
}

#[test]
fn test_coordinator_fencing() {
    for tv in VERSIONS {
        let mut psm = Psm::new();
        psm.client(&txn(one(0, 0, 0))).unwrap();
        let epoch = epoch_for_marker(0, tv);
        for (coordinator, offset) in [(1, 100), (1, 101), (2, 102)] {
            psm.coordinator(tv, &commit(epoch, coordinator, offset)).unwrap();
            assert_eq!(psm.entry(1).coordinator_epoch, CoordinatorEpoch(coordinator));
        }
        assert_eq!(psm.coordinator(tv, &commit(epoch, 1, 103)), Err(FENCED));
    }
}

/// Corrected: the reloaded state is asked, and its snapshot is kept.
#[test]
fn test_coordinator_fenced_after_reload() {
    for tv in VERSIONS {
        let mut psm = Psm::new();
        psm.client(&txn(one(0, 0, 99))).unwrap();
        let epoch = epoch_for_marker(0, tv);
        psm.coordinator(tv, &commit(epoch, 1, 100)).unwrap();
        psm.snapshot();
        let mut recovered = psm.recovered(0, 101);
        assert_eq!(recovered.coordinator(tv, &commit(epoch, 0, 101)), Err(FENCED));
    }
}

#[test]
fn test_append_empty_control_batch() {
    let mut psm = Psm::new();
    let facts = BatchFacts { kind: BatchKind::EmptyControl, ..commit(0, 0, 15) };
    assert_eq!(psm.copy(&facts), Ok(None));
    assert_eq!(psm.open_since(1), None);
}
