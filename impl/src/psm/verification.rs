//! Verification of transactions before their first batch (KIP-890; Kafka: `VerificationGuard`,
//! `VerificationStateEntry`, `ProducerStateManager.maybeCreateVerificationStateEntry`).
//!
//! A client's transactional batch may open a transaction only if the coordinator has said that the transaction is
//! ongoing. The log hands out a guard before the coordinator is asked, and the batch has to come with that guard. What is
//! pending is neither stored nor replicated.

use crate::types::{ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// A token that an append has to come with. Those of one log are numbered from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerificationGuard(pub u64);

impl VerificationGuard {
    /// None is needed, or none was given; it never verifies.
    pub const SENTINEL: Self = Self(0);

    /// Whether an append that comes with `other` is the one that this guard was given for.
    #[must_use]
    pub fn verifies(self, other: Self) -> bool {
        other != Self::SENTINEL && self == other
    }
}

/// What has to be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerificationRequest {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its epoch.
    pub producer_epoch: ProducerEpoch,
    /// The sequence of the batch that is waiting.
    pub sequence: Sequence,
    /// Whether the client bumps its epoch with every transaction (transaction version 2).
    pub supports_epoch_bump: bool,
}

/// A verification that is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerificationEntry {
    /// When it began, in milliseconds.
    pub created: TimestampMs,
    /// Its guard.
    pub guard: VerificationGuard,
    /// The smallest sequence that waits for it.
    pub lowest_sequence: Sequence,
    /// The producer's epoch.
    pub producer_epoch: ProducerEpoch,
    /// Whether the client bumps its epoch with every transaction.
    pub supports_epoch_bump: bool,
}

impl VerificationEntry {
    pub(super) fn new(request: &VerificationRequest, guard: VerificationGuard, created: TimestampMs) -> Self {
        Self {
            created,
            guard,
            lowest_sequence: request.sequence,
            producer_epoch: request.producer_epoch,
            supports_epoch_bump: request.supports_epoch_bump,
        }
    }

    /// Another batch waits (Kafka: `maybeUpdateLowestSequenceAndEpoch`).
    pub(super) fn join(&mut self, request: &VerificationRequest) {
        if request.producer_epoch == self.producer_epoch {
            self.lowest_sequence = self.lowest_sequence.min(request.sequence);
        }
        if request.producer_epoch > self.producer_epoch {
            self.producer_epoch = request.producer_epoch;
            self.lowest_sequence = request.sequence;
        }
    }
}

/// What an append call says about verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Whether a client's transactional batch needs a verified transaction.
    pub required: bool,
    /// The guard that the call comes with.
    pub guard: VerificationGuard,
}
