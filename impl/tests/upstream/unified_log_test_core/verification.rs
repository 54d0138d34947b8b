#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Verification of transactions (KIP-890).

use cleanslate_log::log::LogConfig;
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard, VerificationRequest};
use cleanslate_log::types::{LeaderEpoch, ProducerEpoch, ProducerId, Sequence};

use crate::upstream::support::{INVALID_TXN, Log, NOW, OUT_OF_ORDER, end_txn, hw, lead_as, new_log, produced};

const NONE: VerificationGuard = VerificationGuard::SENTINEL;
const CLIENT: AppendOrigin = AppendOrigin::Client;

fn verifying(required: bool) -> Log {
    new_log(&LogConfig { transaction_verification: required, ..LogConfig::default() })
}

/// The guard of producer 23.
fn guard(log: &Log) -> VerificationGuard {
    log.producer_state().verification(ProducerId(23)).map(|entry| entry.guard).unwrap_or_default()
}

fn start(log: &mut Log, sequence: i32, epoch: i16, supports_epoch_bump: bool) -> VerificationGuard {
    let request = VerificationRequest {
        producer_id: ProducerId(23),
        producer_epoch: ProducerEpoch(epoch),
        sequence: Sequence(sequence),
        supports_epoch_bump,
    };
    log.maybe_start_transaction_verification(&request, NOW).unwrap()
}

fn append(log: &mut Log, origin: AppendOrigin, epoch: i16, sequence: i32, guard: VerificationGuard) -> Result<(), &'static str> {
    let batch = produced(23, epoch, sequence, 2).transactional(true).build().unwrap();
    let (epoch, tv) = (LeaderEpoch(0), TransactionVersion::Unknown);
    let result = log.append_verified(batch.bytes().clone(), origin, epoch, tv, guard, NOW);
    result.map(|_| ()).map_err(|error| error.kafka_class())
}

fn end(log: &mut Log, epoch: i16, tv: TransactionVersion) {
    lead_as(log, &end_txn(23, epoch, true, 0), AppendOrigin::Coordinator, tv, NOW).unwrap();
}

fn is_ongoing(log: &Log, epoch: i16) -> bool {
    log.producer_state().has_ongoing_transaction(ProducerId(23), ProducerEpoch(epoch))
}

/// The life of a guard; `first` is the producer's first sequence.
fn lifecycle(origin: AppendOrigin, epoch: i16, first: i32, tv: TransactionVersion) {
    let bumps = tv == TransactionVersion::V2;
    let next = first + 2;
    let mut log = verifying(true);
    assert!(!is_ongoing(&log, epoch));
    assert_eq!(guard(&log), NONE);
    let given = start(&mut log, next, epoch, bumps);
    assert_ne!(given, NONE);
    // A batch outside of transactions leaves the guard.
    let batch = produced(23, epoch, first, 2).build().unwrap();
    lead_as(&mut log, &batch, origin, TransactionVersion::Unknown, NOW).unwrap();
    assert!(!is_ongoing(&log, epoch));
    assert_eq!(guard(&log), given);
    append(&mut log, origin, epoch, next, given).unwrap();
    assert!(is_ongoing(&log, epoch));
    assert_eq!(guard(&log), NONE);
    // While the transaction is open none is needed.
    assert_eq!(start(&mut log, next + 2, epoch, bumps), NONE);
    append(&mut log, origin, epoch, next + 2, NONE).unwrap();
    assert_eq!(guard(&log), NONE);
    let marker_epoch = if bumps { epoch + 1 } else { epoch };
    let end_offset = log.log_end_offset().get();
    end(&mut log, marker_epoch, tv);
    hw(&mut log, end_offset + 1);
    assert!(!is_ongoing(&log, marker_epoch));
    let second = start(&mut log, 0, marker_epoch, bumps);
    assert_ne!(second, NONE);
    assert_ne!(second, given);
}

#[test]
fn test_transaction_is_ongoing_and_verification_guard_tv1() {
    for origin in [CLIENT, AppendOrigin::Coordinator] {
        lifecycle(origin, 1, 3, TransactionVersion::V1);
    }
}

#[test]
fn test_empty_transaction_still_clears_verification_guard() {
    for (tv, bumps) in [(TransactionVersion::V0, false), (TransactionVersion::V2, true)] {
        let mut log = verifying(true);
        let given = start(&mut log, 0, 1, bumps);
        assert_ne!(given, NONE);
        end(&mut log, if bumps { 2 } else { 1 }, tv);
        assert_eq!(guard(&log), NONE);
        assert!(!is_ongoing(&log, 1));
    }
}

#[test]
fn test_next_transaction_verification_guard_not_cleared() {
    let mut log = verifying(true);
    let given = start(&mut log, 0, 1, true);
    end(&mut log, 1, TransactionVersion::V2);
    assert_eq!(guard(&log), given);
}

#[test]
fn test_disabled_verification_clears_verification_guard() {
    for bumps in [false, true] {
        let mut log = verifying(false);
        assert_ne!(start(&mut log, 0, 1, bumps), NONE);
        append(&mut log, CLIENT, 1, 0, NONE).unwrap();
        assert!(is_ongoing(&log, 1));
        assert_eq!(guard(&log), NONE);
    }
}

#[test]
fn test_enabling_verification_when_request_is_at_log_layer() {
    let mut log = verifying(true);
    assert_eq!(append(&mut log, CLIENT, 1, 0, NONE), Err(INVALID_TXN));
    let given = start(&mut log, 0, 1, false);
    assert_eq!(append(&mut log, CLIENT, 1, 0, NONE), Err(INVALID_TXN));
    append(&mut log, CLIENT, 1, 0, given).unwrap();
    assert!(is_ongoing(&log, 1));
    assert_eq!(guard(&log), NONE);
}

#[test]
fn test_non_zero_sequence_on_first_append_non_zero_epoch() {
    for bumps in [true, false] {
        let mut log = verifying(true);
        let given = start(&mut log, 3, 1, bumps);
        let result = append(&mut log, CLIENT, 1, 3, given);
        assert_eq!(result, if bumps { Err(OUT_OF_ORDER) } else { Ok(()) });
    }
}

#[test]
fn test_transaction_is_ongoing_and_verification_guard_tv2() {
    for origin in [CLIENT, AppendOrigin::Coordinator] {
        lifecycle(origin, 1, 0, TransactionVersion::V2);
    }
}
