#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's VerificationGuardTest.

use cleanslate_log::psm::{VerificationGuard, VerificationRequest};
use cleanslate_log::types::{ProducerEpoch, ProducerId, Sequence};

use crate::upstream::support::{NOW, new_log};

/// Two guards of a log, for two producers.
fn two() -> [VerificationGuard; 2] {
    let mut log = new_log(&cleanslate_log::log::LogConfig::default());
    [1, 2].map(|id| {
        let request = VerificationRequest {
            producer_id: ProducerId(id),
            producer_epoch: ProducerEpoch(0),
            sequence: Sequence(0),
            supports_epoch_bump: true,
        };
        log.maybe_start_transaction_verification(&request, NOW).unwrap()
    })
}

#[test]
fn test_equals_and_hash_code() {
    let [first, second] = two();
    assert_ne!(first, second);
    assert!(first != VerificationGuard::SENTINEL && second != VerificationGuard::SENTINEL);
    let copy = first;
    assert_eq!(copy, first);
}

#[test]
fn test_verify() {
    let [first, second] = two();
    let sentinel = VerificationGuard::SENTINEL;
    assert!(first.verifies(first) && second.verifies(second));
    for (guard, other) in [(first, second), (second, first), (first, sentinel), (sentinel, first), (sentinel, sentinel)] {
        assert!(!guard.verifies(other), "{guard:?} {other:?}");
    }
}
