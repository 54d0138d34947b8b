#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Sequences and epochs.

use cleanslate_log::psm::{AppendOrigin, ProducerAppendInfo, ProducerStateError, TransactionVersion, VerificationEntry};
use cleanslate_log::types::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::upstream::support::{DAY_MS, OUT_OF_ORDER, Psm, STALE_EPOCH, abort, at_time, commit, data, of, one, txn};

const MAX: i32 = i32::MAX;

#[test]
fn test_basic_id_mapping() {
    let mut psm = Psm::new();
    psm.client(&one(0, 0, 0)).unwrap();
    psm.client(&one(0, 1, 0)).unwrap();
    assert_eq!(psm.client(&one(0, 1, 0)), Err(OUT_OF_ORDER));
    assert_eq!(psm.client(&one(0, 5, 0)), Err(OUT_OF_ORDER));
    psm.client(&one(1, 0, 0)).unwrap();
    assert_eq!(psm.client(&one(0, 0, 0)), Err(STALE_EPOCH));
}

#[test]
fn test_append_txn_marker_with_no_producer_state() {
    let mut psm = Psm::new();
    psm.coordinator(TransactionVersion::V0, &commit(2, 1, 27)).unwrap();
    assert_eq!(psm.entry(1).producer_epoch, ProducerEpoch(2));
    assert_eq!(psm.entry(1).last_sequence(), Sequence::NONE);
    assert_eq!(psm.client(&one(0, 0, 0)), Err(STALE_EPOCH));
    assert_eq!(psm.client(&one(2, 17, 0)), Err(OUT_OF_ORDER));
    psm.client(&one(2, 0, 39)).unwrap();
    assert_eq!(psm.entry(1).producer_epoch, ProducerEpoch(2));
    assert_eq!(psm.entry(1).last_sequence(), Sequence(0));
}

#[test]
fn test_producer_sequence_wrap_around() {
    let mut psm = Psm::new();
    psm.copy(&one(15, MAX, 735)).unwrap();
    psm.client(&one(15, 0, 735 + 500)).unwrap();
    let entry = psm.entry(1);
    assert_eq!(entry.producer_epoch, ProducerEpoch(15));
    assert_eq!(entry.batches()[0].first_sequence(), Sequence(MAX));
    assert_eq!(entry.last_sequence(), Sequence(0));
}

#[test]
fn test_producer_sequence_with_wrap_around_batch_record() {
    let mut psm = Psm::new();
    let mut info = psm.state.prepare_update(ProducerId(1), AppendOrigin::Replication);
    let facts = data(15, MAX - 10, 2000..=2020);
    assert_eq!(facts.last_sequence, Sequence(9));
    info.append(&facts, TransactionVersion::Unknown).unwrap();
    assert!(psm.state.last_entry(ProducerId(1)).is_none());
    psm.state.update(info);
    assert_eq!(psm.newest(1), (MAX - 10, 9, 2000, 2020));
}

#[test]
fn test_producer_sequence_invalid_wrap_around() {
    let mut psm = Psm::new();
    psm.copy(&one(15, MAX, 735)).unwrap();
    assert_eq!(psm.client(&one(15, 1, 735 + 500)), Err(OUT_OF_ORDER));
}

#[test]
fn test_no_validation_on_first_entry_when_loading_log() {
    let mut psm = Psm::new();
    psm.copy(&one(5, 16, 735)).unwrap();
    assert_eq!(psm.entry(1).producer_epoch, ProducerEpoch(5));
    assert_eq!(psm.newest(1), (16, 16, 735, 735));
}

#[test]
fn test_control_record_bumps_producer_epoch() {
    let mut psm = Psm::new();
    psm.client(&one(0, 0, 0)).unwrap();
    psm.coordinator(TransactionVersion::V0, &abort(1, 0, 1)).unwrap();
    let entry = psm.entry(1);
    assert_eq!(entry.producer_epoch, ProducerEpoch(1));
    assert_eq!(entry.current_txn_first_offset, None);
    assert!(entry.is_empty());
    assert_eq!(entry.last_sequence(), Sequence::NONE);
    psm.client(&one(1, 0, 0)).unwrap();
}

#[test]
fn test_out_of_sequence_after_control_record_epoch_bump() {
    let mut psm = Psm::new();
    psm.client(&txn(one(0, 0, 0))).unwrap();
    psm.client(&txn(one(0, 1, 1))).unwrap();
    psm.coordinator(TransactionVersion::V0, &abort(1, 0, 1)).unwrap();
    assert_eq!(psm.client(&txn(one(1, 2, 2))), Err(OUT_OF_ORDER));
    assert_eq!(psm.client(&txn(one(2, 2, 2))), Err(OUT_OF_ORDER));
    psm.client(&txn(one(1, 0, 0))).unwrap();
}

#[test]
fn test_reject_non_zero_sequence_for_direct_epoch_bump() {
    let mut psm = Psm::new();
    for sequence in 0..3 {
        psm.client(&one(0, sequence, i64::from(sequence))).unwrap();
    }
    let error = psm.try_append(AppendOrigin::Client, TransactionVersion::Unknown, &one(1, 5, 3)).unwrap_err();
    let ProducerStateError::OutOfOrderSequence { epoch, expected, found, .. } = error else { panic!("{error}") };
    assert_eq!((epoch, expected, found), (ProducerEpoch(1), Sequence(0), Sequence(5)));
    psm.client(&one(1, 0, 3)).unwrap();
    assert_eq!(psm.entry(1).producer_epoch, ProducerEpoch(1));
    assert_eq!(psm.entry(1).last_sequence(), Sequence(0));
}

fn pending(lowest: i32, supports_epoch_bump: bool) -> VerificationEntry {
    VerificationEntry {
        created: TimestampMs(1),
        guard: cleanslate_log::psm::VerificationGuard(1),
        lowest_sequence: Sequence(lowest),
        producer_epoch: ProducerEpoch(0),
        supports_epoch_bump,
    }
}

fn verified(entry: &VerificationEntry, sequence: i32) -> Result<(), ProducerStateError> {
    let mut info = ProducerAppendInfo::new(ProducerId(1), None, AppendOrigin::Client, Some(entry));
    info.append(&one(0, sequence, 0), TransactionVersion::Unknown).map(|_| ())
}

#[test]
fn test_reject_non_zero_sequence_for_transactions_v2_with_empty_state() {
    let entry = pending(0, true);
    let error = verified(&entry, 5).unwrap_err();
    let ProducerStateError::OutOfOrderSequence { expected, found, .. } = error else { panic!("{error}") };
    assert_eq!((expected, found), (Sequence(0), Sequence(5)));
    assert_eq!(verified(&entry, 0), Ok(()));
}

#[test]
fn test_allow_non_zero_sequence_for_transactions_v1_with_empty_state() {
    assert_eq!(verified(&pending(5, false), 5), Ok(()));
}

#[test]
fn test_accept_append_with_sequence_gaps_on_replica() {
    let mut psm = Psm::new();
    psm.client(&one(0, 0, 0)).unwrap();
    assert_eq!(psm.client(&one(0, 3, 1)), Err(OUT_OF_ORDER));
    assert_eq!(psm.entry(1).last_sequence(), Sequence(0));
    psm.copy(&one(0, 3, 1)).unwrap();
    assert_eq!(psm.entry(1).last_sequence(), Sequence(3));
}

/// Corrected: the producer is not known because it has expired.
#[test]
fn test_accept_append_without_producer_state_on_replica() {
    let mut psm = Psm::new();
    psm.client(&one(0, 0, 0)).unwrap();
    psm.client(&at_time(1, one(0, 1, 1))).unwrap();
    psm.snapshot();
    psm.now = DAY_MS + 1;
    let mut recovered = psm.recovered(0, 2);
    assert!(recovered.state.active_producers().is_empty());
    recovered.copy(&one(0, 2, 2)).unwrap();
    assert_eq!(recovered.entry(1).last_sequence(), Sequence(2));
    assert_eq!(recovered.state.map_end_offset(), Offset(3));
}

/// Corrected: expiry is what removes the producer, to the millisecond.
#[test]
fn test_remove_expired_pids_on_reload() {
    for (now, known) in [(DAY_MS, true), (DAY_MS + 1, false)] {
        let mut psm = Psm::new();
        psm.client(&one(0, 0, 0)).unwrap();
        psm.client(&at_time(1, one(0, 1, 1))).unwrap();
        psm.snapshot();
        psm.now = now;
        let mut recovered = psm.recovered(0, 2);
        assert_eq!(recovered.state.active_producers().len(), usize::from(known), "{now}");
        recovered.client(&one(0, 2, 2)).unwrap();
        assert_eq!(recovered.state.active_producers().len(), 1);
        assert_eq!(recovered.entry(1).last_sequence(), Sequence(2));
        assert_eq!(recovered.state.map_end_offset(), Offset(3));
    }
}

#[test]
fn test_sequence_not_validated_for_group_metadata_topic() {
    let mut psm = Psm::new();
    psm.coordinator(TransactionVersion::Unknown, &txn(one(0, -1, 99))).unwrap();
    psm.coordinator(TransactionVersion::Unknown, &txn(one(0, -1, 100))).unwrap();
}

#[test]
fn test_prepare_update_does_not_mutate() {
    let mut psm = Psm::new();
    let mut info = psm.state.prepare_update(ProducerId(1), AppendOrigin::Client);
    info.append(&data(0, 0, 15..=20), TransactionVersion::Unknown).unwrap();
    assert!(psm.state.last_entry(ProducerId(1)).is_none());
    psm.state.update(info);
    assert_eq!(psm.newest(1), (0, 5, 15, 20));
    let mut info = psm.state.prepare_update(ProducerId(1), AppendOrigin::Client);
    info.append(&data(0, 6, 26..=30), TransactionVersion::Unknown).unwrap();
    assert_eq!(info.updated().last_sequence(), Sequence(10));
    assert_eq!(info.updated().last_data_offset(), Offset(30));
    assert_eq!(psm.newest(1), (0, 5, 15, 20));
    psm.state.update(info);
    assert_eq!(psm.entry(1).batches()[0].first_sequence(), Sequence(0));
    assert_eq!(psm.newest(1), (6, 10, 26, 30));
}

#[test]
fn test_pid_expiration_timeout() {
    let mut psm = Psm::new();
    psm.client(&at_time(psm.now, of(1, one(5, 0, 1)))).unwrap();
    psm.now += DAY_MS + 1;
    psm.expire();
    psm.client(&at_time(psm.now, one(5, 1, 2))).unwrap();
    assert_eq!(psm.state.active_producers().len(), 1);
    assert_eq!(psm.entry(1).last_sequence(), Sequence(1));
    assert_eq!(psm.state.map_end_offset(), Offset(3));
}
