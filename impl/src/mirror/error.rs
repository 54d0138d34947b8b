//! Why a mirror refuses an operation.

use super::state::MirrorState;
use crate::log::{AppendError, LogError};
use crate::record::EncodeError;

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
            Self::IllegalTransition { .. } | Self::WrongState { .. } | Self::StillFetching => "IllegalStateException",
            Self::Append(error) => error.kafka_class(),
            Self::Encode(_) => "IllegalArgumentException",
            Self::Log(error) => error.kafka_class(),
        }
    }
}
