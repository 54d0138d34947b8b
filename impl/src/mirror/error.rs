//! Why a mirror refuses an operation.

use super::machine::MirrorEvent;
use super::partition::StateFence;
use super::state::MirrorState;
use crate::log::{AppendError, LogError};
use crate::record::EncodeError;
use crate::types::LeaderEpoch;

/// Why a mirror refuses an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// A mirror does not go from the one state to the other.
    #[error("a mirror does not go from {from} to {to}")]
    IllegalTransition {
        /// The present state.
        from: MirrorState,
        /// The state asked for.
        to: MirrorState,
    },
    /// The event cannot happen in the state.
    #[error("{event:?} in state {state} of a mirror")]
    IllegalEvent {
        /// The present state.
        state: MirrorState,
        /// The event.
        event: MirrorEvent,
    },
    /// The operation belongs to another state.
    #[error("the mirror is in state {found}, expected {expected}")]
    WrongState {
        /// The present state.
        found: MirrorState,
        /// The state in which the operation is allowed.
        expected: MirrorState,
    },
    /// The stop sequence goes on only when nothing more can arrive.
    #[error("the fetcher has not been removed")]
    StillFetching,
    /// A task was made under another leader epoch or another state than there is now.
    #[error("the task belongs to {expected:?}, found {found:?}")]
    StaleTask {
        /// What the task was made for.
        expected: StateFence,
        /// What there is now.
        found: StateFence,
    },
    /// A stop appends nothing of its own before its leader epoch is above that of all mirrored batches.
    #[error("leader epoch {found}, expected above {latest}, the latest of the log")]
    LeaderEpochNotRaised {
        /// The latest leader epoch in the log.
        latest: LeaderEpoch,
        /// The present leader epoch.
        found: LeaderEpoch,
    },
    /// The source cluster's id is not known, and the design writes no barrier without it.
    #[error("the id of the source cluster is not known")]
    UnknownSourceCluster,
    /// A batch of the source has a leader epoch above the own one: EPOCH_FENCING comes first.
    #[error("a batch of leader epoch {found}, expected at most {own}, the mirror's own")]
    SourceEpochAhead {
        /// The mirror's leader epoch.
        own: LeaderEpoch,
        /// The batch's.
        found: LeaderEpoch,
    },
    /// A batch of the source cannot be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A control batch cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The log refuses.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl MirrorError {
    /// The simple name of the exception class that Kafka throws in this case, or would.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::IllegalTransition { .. }
            | Self::IllegalEvent { .. }
            | Self::WrongState { .. }
            | Self::StillFetching
            | Self::LeaderEpochNotRaised { .. }
            | Self::UnknownSourceCluster => "IllegalStateException",
            Self::StaleTask { .. } | Self::SourceEpochAhead { .. } => "FencedLeaderEpochException",
            Self::Append(error) => error.kafka_class(),
            Self::Encode(_) => "IllegalArgumentException",
            Self::Log(error) => error.kafka_class(),
        }
    }
}
