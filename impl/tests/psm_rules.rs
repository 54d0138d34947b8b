//! The ProducerStateManager by itself, without a log: after Kafka's ProducerStateManagerTest.
#![cfg(test)]

use cleanslate_log::psm::{
    AppendOrigin, BatchFacts, BatchKind, CompletedTxn, ProducerIdVisibility, ProducerStateError, ProducerStateManager,
    TransactionVersion,
};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const ID: ProducerId = ProducerId(1);
const DAY_MS: i64 = 86_400_000;

fn manager() -> ProducerStateManager {
    ProducerStateManager::new(ProducerIdVisibility::Stock, DAY_MS)
}

/// Data of [`ID`] from a sequence on, over a range of offsets.
fn data(epoch: i16, sequence: i32, offsets: std::ops::RangeInclusive<i64>) -> BatchFacts {
    let delta = i32::try_from(offsets.end() - offsets.start()).unwrap();
    BatchFacts {
        base_offset: Offset(*offsets.start()),
        last_offset: Offset(*offsets.end()),
        producer_id: ID,
        producer_epoch: ProducerEpoch(epoch),
        base_sequence: Sequence(sequence),
        last_sequence: Sequence(sequence).plus(delta),
        max_timestamp: TimestampMs(0),
        transactional: false,
        kind: BatchKind::Data,
        position: None,
    }
}

fn txn(facts: BatchFacts) -> BatchFacts {
    BatchFacts { transactional: true, ..facts }
}

fn of(id: i64, facts: BatchFacts) -> BatchFacts {
    BatchFacts { producer_id: ProducerId(id), ..facts }
}

fn marker(epoch: i16, commit: bool, coordinator: i32, offset: i64) -> BatchFacts {
    BatchFacts {
        base_sequence: Sequence::NONE,
        last_sequence: Sequence::NONE,
        kind: BatchKind::Marker { commit, coordinator_epoch: CoordinatorEpoch(coordinator), timestamp: TimestampMs(0) },
        ..txn(data(epoch, 0, offset..=offset))
    }
}

fn append(
    psm: &mut ProducerStateManager,
    origin: AppendOrigin,
    facts: &BatchFacts,
) -> Result<Option<CompletedTxn>, ProducerStateError> {
    let mut info = psm.prepare_update(facts.producer_id, origin);
    let completed = info.append(facts, TransactionVersion::V1)?;
    psm.update(info);
    if let Some(completed) = &completed {
        psm.complete_txn(completed)?;
    }
    psm.set_map_end_offset(facts.last_offset.plus(1));
    Ok(completed)
}

#[test]
fn an_update_is_not_visible_before_it_is_made() {
    let mut psm = manager();
    append(&mut psm, AppendOrigin::Client, &data(0, 0, 15..=20)).unwrap();
    let mut info = psm.prepare_update(ID, AppendOrigin::Client);
    info.append(&data(0, 6, 26..=30), TransactionVersion::Unknown).unwrap();
    let last = |psm: &ProducerStateManager| {
        let entry = psm.last_entry(ID).unwrap();
        (entry.last_sequence().get(), entry.last_data_offset().get())
    };
    assert_eq!(last(&psm), (5, 20));
    psm.update(info);
    assert_eq!(last(&psm), (10, 30));
    assert_eq!(psm.last_entry(ID).unwrap().batches().len(), 2);
}

#[test]
fn a_batch_whose_sequences_wrap() {
    let mut psm = manager();
    let wraps = data(0, i32::MAX - 10, 2000..=2020);
    append(&mut psm, AppendOrigin::Replication, &wraps).unwrap();
    let batch = *psm.last_entry(ID).unwrap().last_batch().unwrap();
    assert_eq!(batch.first_sequence(), Sequence(i32::MAX - 10));
    assert_eq!(batch.last_sequence, Sequence(9));
    assert_eq!(batch.first_offset(), Offset(2000));
    assert_eq!(batch.last_offset, Offset(2020));
}

#[test]
fn empty_transactions_are_skipped() {
    let mut psm = manager();
    let txn1 = txn(data(0, 0, 16..=20));
    append(&mut psm, AppendOrigin::Replication, &txn1).unwrap();
    let mut info = psm.prepare_update(ID, AppendOrigin::Replication);
    let mut completed = Vec::new();
    for facts in [
        marker(0, true, 0, 21),
        marker(0, true, 0, 22),
        marker(0, false, 0, 23),
        txn(data(0, 5, 24..=27)),
        marker(0, false, 0, 28),
        marker(0, false, 0, 29),
        txn(data(0, 9, 30..=31)),
    ] {
        completed.extend(info.append(&facts, TransactionVersion::V0).unwrap());
    }
    let ends: Vec<(i64, i64, bool)> = completed.iter().map(|c| (c.first_offset.get(), c.last_offset.get(), c.aborted)).collect();
    assert_eq!(ends, [(16, 21, false), (24, 28, true)]);
    let started = info.started_transactions().iter();
    let started: Vec<i64> = started.map(|t| t.first_offset.get()).collect();
    assert_eq!(started, [24, 30]);
    psm.update(info);
    for completed in &completed {
        psm.complete_txn(completed).unwrap();
    }
    psm.on_high_watermark_updated(Offset(32));
    assert_eq!(psm.first_unstable_offset(), Some(Offset(30)));
}

#[test]
fn the_last_stable_offset_of_a_completed_transaction() {
    let mut psm = manager();
    for (id, start) in [(1, 100), (2, 125), (3, 157)] {
        let facts = of(id, txn(data(0, 0, start..=start)));
        append(&mut psm, AppendOrigin::Client, &facts).unwrap();
    }
    for (id, end, lso, unstable) in [(1, 200, 125, Some(125)), (3, 201, 125, Some(125)), (2, 202, 203, None)] {
        let mut info = psm.prepare_update(ProducerId(id), AppendOrigin::Coordinator);
        let facts = of(id, marker(0, true, 0, end));
        let completed = info.append(&facts, TransactionVersion::V0).unwrap();
        let completed = completed.unwrap();
        psm.update(info);
        assert_eq!(psm.last_stable_offset(&completed), Offset(lso), "{id}");
        psm.complete_txn(&completed).unwrap();
        psm.on_high_watermark_updated(Offset(end + 1));
        assert_eq!(psm.first_unstable_offset(), unstable.map(Offset), "{id}");
    }
}

#[test]
fn unstable_and_undecided_offsets() {
    let mut psm = manager();
    let state =
        |psm: &ProducerStateManager| (psm.first_undecided_offset().map(Offset::get), psm.first_unstable_offset().map(Offset::get));
    let client = AppendOrigin::Client;
    append(&mut psm, client, &txn(data(5, 0, 99..=99))).unwrap();
    append(&mut psm, client, &of(2, txn(data(5, 0, 105..=105)))).unwrap();
    assert_eq!(state(&psm), (Some(99), Some(99)));
    let coordinator = AppendOrigin::Coordinator;
    append(&mut psm, coordinator, &marker(5, true, 0, 109)).unwrap();
    assert_eq!(state(&psm), (Some(105), Some(99)));
    for (hw, unstable) in [(100, Some(99)), (109, Some(99)), (110, Some(105))] {
        psm.on_high_watermark_updated(Offset(hw));
        assert_eq!(state(&psm), (Some(105), unstable), "{hw}");
    }
    append(&mut psm, coordinator, &of(2, marker(5, false, 0, 112))).unwrap();
    assert_eq!(state(&psm), (None, Some(105)));
    psm.on_high_watermark_updated(Offset(113));
    assert_eq!(state(&psm), (None, None));
}

#[test]
fn an_emptied_control_batch_leaves_an_entry_without_epoch() {
    let mut psm = manager();
    let facts = BatchFacts { kind: BatchKind::EmptyControl, ..marker(0, true, 0, 15) };
    assert_eq!(append(&mut psm, AppendOrigin::Replication, &facts), Ok(None));
    let entry = psm.last_entry(ID).unwrap();
    assert_eq!(entry.producer_epoch, ProducerEpoch::NONE);
    assert_eq!(entry.last_timestamp, TimestampMs::NONE);
    // Of an id without epoch nothing is known.
    append(&mut psm, AppendOrigin::Client, &data(3, 8, 16..=16)).unwrap();
}

#[test]
fn later_batches_of_an_unknown_id_in_one_call_are_not_checked() {
    let psm = manager();
    let mut info = psm.prepare_update(ID, AppendOrigin::Client);
    for sequence in [7, 3, 3] {
        let facts = data(0, sequence, 0..=0);
        assert!(info.append(&facts, TransactionVersion::Unknown).is_ok());
    }
}

#[test]
fn an_epoch_that_a_marker_raised_in_the_same_call_begins_at_zero() {
    let mut psm = manager();
    append(&mut psm, AppendOrigin::Client, &data(0, 4, 0..=0)).unwrap();
    for (sequence, accepted) in [(0, true), (5, false)] {
        let mut info = psm.prepare_update(ID, AppendOrigin::Client);
        info.append(&marker(1, false, 0, 1), TransactionVersion::V1).unwrap();
        let result = info.append(&data(1, sequence, 2..=2), TransactionVersion::Unknown);
        assert_eq!(result.is_ok(), accepted, "{sequence}");
    }
}

#[test]
fn a_reload_to_where_the_state_is_keeps_it() {
    let mut psm = manager();
    let mut storage = MemoryStorage::new();
    append(&mut psm, AppendOrigin::Client, &data(0, 0, 0..=0)).unwrap();
    append(&mut psm, AppendOrigin::Client, &txn(data(0, 1, 1..=1))).unwrap();
    psm.take_snapshot(&mut storage).unwrap();
    let before = psm.clone();
    psm.truncate_and_reload(&mut storage, Offset(0), Offset(2), TimestampMs(i64::MAX)).unwrap();
    assert_eq!(psm, before);
}

#[test]
fn late_transactions() {
    let mut psm = manager();
    let timeout_ms = 300_000;
    let late = |psm: &ProducerStateManager, now| psm.has_late_transaction(TimestampMs(now), timeout_ms);
    let facts = BatchFacts { max_timestamp: TimestampMs(1000), ..txn(data(0, 0, 100..=100)) };
    append(&mut psm, AppendOrigin::Client, &facts).unwrap();
    assert!(!late(&psm, 601_000));
    assert!(late(&psm, 601_001));
    append(&mut psm, AppendOrigin::Coordinator, &marker(0, true, 0, 101)).unwrap();
    assert!(!late(&psm, i64::MAX));
    // Without a time, never.
    append(&mut psm, AppendOrigin::Client, &txn(data(0, 1, 102..=102))).unwrap();
    assert!(!late(&psm, i64::MAX));
}

#[test]
fn a_completed_transaction_that_is_not_open_is_an_error() {
    let completed = CompletedTxn { producer_id: ID, first_offset: Offset(3), last_offset: Offset(4), aborted: true };
    let error = manager().complete_txn(&completed).unwrap_err();
    assert_eq!(error.kafka_class(), "IllegalArgumentException");
}

#[test]
fn expiry_is_exact_to_the_millisecond() {
    for (now, left) in [(DAY_MS, 1), (DAY_MS + 1, 0)] {
        let mut psm = manager();
        let facts = BatchFacts { max_timestamp: TimestampMs(1), ..data(0, 0, 0..=0) };
        append(&mut psm, AppendOrigin::Client, &facts).unwrap();
        psm.remove_expired_producers(TimestampMs(now));
        assert_eq!(psm.active_producers().len(), left, "{now}");
    }
}

#[test]
fn a_reload_recovers_an_unfinished_transaction_and_one_batch() {
    let mut psm = manager();
    let mut storage = MemoryStorage::new();
    let client = AppendOrigin::Client;
    append(&mut psm, client, &txn(data(0, 0, 0..=0))).unwrap();
    append(&mut psm, client, &txn(data(0, 1, 1..=1))).unwrap();
    assert_eq!(psm.take_snapshot(&mut storage), Ok(true));
    assert_eq!(psm.take_snapshot(&mut storage), Ok(false));
    let mut recovered = manager();
    recovered.truncate_and_reload(&mut storage, Offset(0), Offset(3), TimestampMs(0)).unwrap();
    assert_eq!(recovered.map_end_offset(), Offset(2));
    let entry = recovered.last_entry(ID).unwrap();
    assert_eq!(entry.batches().len(), 1);
    assert_eq!(entry.last_sequence(), Sequence(1));
    assert_eq!(entry.current_txn_first_offset, Some(Offset(0)));
    assert_eq!(recovered.first_undecided_offset(), Some(Offset(0)));
    append(&mut recovered, client, &txn(data(0, 2, 2..=2))).unwrap();
}

#[test]
fn a_coordinator_is_fenced_after_a_reload_too() {
    let mut psm = manager();
    let mut storage = MemoryStorage::new();
    append(&mut psm, AppendOrigin::Coordinator, &marker(0, true, 1, 100)).unwrap();
    psm.take_snapshot(&mut storage).unwrap();
    let mut recovered = manager();
    recovered.truncate_and_reload(&mut storage, Offset(0), Offset(101), TimestampMs(0)).unwrap();
    let stale = marker(0, true, 0, 101);
    let error = append(&mut recovered, AppendOrigin::Coordinator, &stale).unwrap_err();
    assert_eq!(error.kafka_class(), "TransactionCoordinatorFencedException");
}

#[test]
fn errors_say_what_was_expected() {
    let mut psm = manager();
    append(&mut psm, AppendOrigin::Client, &data(0, 0, 0..=0)).unwrap();
    let error = append(&mut psm, AppendOrigin::Client, &data(0, 5, 1..=1)).unwrap_err();
    assert_eq!(error.to_string(), "producer 1 at offset 1: sequence 5 of epoch 0 is out of order, expected 1");
}
