#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Pending verifications, which only a log begins.

use cleanslate_log::log::{AppendError, LogConfig, PartitionLog};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationEntry, VerificationGuard, VerificationRequest};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::upstream::support::{DAY_MS, Log, NOW, OUT_OF_ORDER, produced};

fn request(sequence: i32, epoch: i16) -> VerificationRequest {
    VerificationRequest {
        producer_id: ProducerId(1),
        producer_epoch: ProducerEpoch(epoch),
        sequence: Sequence(sequence),
        supports_epoch_bump: false,
    }
}

fn start(log: &mut Log, sequence: i32, epoch: i16) -> VerificationGuard {
    log.maybe_start_transaction_verification(&request(sequence, epoch), NOW).unwrap()
}

fn entry(log: &Log) -> Option<&VerificationEntry> {
    log.producer_state().verification(ProducerId(1))
}

fn new_log(required: bool) -> Log {
    let config = LogConfig { transaction_verification: required, ..LogConfig::default() };
    PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap()
}

fn append(log: &mut Log, sequence: i32, guard: VerificationGuard) -> Result<(), AppendError> {
    let batch = produced(1, 0, sequence, 1).transactional(true).build().unwrap();
    let tv = TransactionVersion::Unknown;
    log.append_verified(batch.bytes().clone(), AppendOrigin::Client, LeaderEpoch(0), tv, guard, NOW).map(|_| ())
}

#[test]
fn test_entry_for_verification() {
    let mut log = new_log(true);
    let guard = start(&mut log, 0, 0);
    assert_ne!(guard, VerificationGuard::SENTINEL);
    assert_eq!(start(&mut log, 0, 0), guard);
    append(&mut log, 0, guard).unwrap();
    assert_eq!(entry(&log), None);
}

#[test]
fn test_sequence_and_epoch_in_verification_entry() {
    let mut log = new_log(true);
    let guard = start(&mut log, 1, 0);
    for (sequence, epoch, expected) in [(1, 0, (1, 0)), (0, 0, (0, 0)), (2, 1, (2, 1)), (0, 0, (2, 1))] {
        assert_eq!(start(&mut log, sequence, epoch), guard);
        let entry = entry(&log).unwrap();
        assert_eq!((entry.lowest_sequence.get(), entry.producer_epoch.get()), expected);
        assert_eq!(entry.guard, guard);
    }
}

#[test]
fn test_throw_out_of_order_sequence_with_verification_sequence_check() {
    for required in [true, false] {
        let mut log = new_log(required);
        let guard = start(&mut log, 0, 0);
        assert_eq!(append(&mut log, 4, guard).unwrap_err().kafka_class(), OUT_OF_ORDER);
        assert_eq!(entry(&log).map(|entry| entry.guard), Some(guard));
    }
}

#[test]
fn test_verification_state_entry_expiration() {
    let mut log = new_log(true);
    let guard = start(&mut log, 0, 0);
    log.remove_expired_producers(TimestampMs(NOW.get() + DAY_MS / 2));
    assert_eq!(entry(&log).map(|entry| entry.guard), Some(guard));
    log.remove_expired_producers(TimestampMs(NOW.get() + DAY_MS));
    assert_eq!(entry(&log), None);
}
