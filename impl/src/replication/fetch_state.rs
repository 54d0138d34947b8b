//! What a fetcher knows of a partition (Kafka: `PartitionFetchState`, `ReplicaState`, `InitialFetchState`).

use crate::log_dir::Uuid;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// What comes next for a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchPhase {
    /// The log may have to be cut before anything is fetched.
    Truncating,
    /// Records are fetched.
    Fetching,
    /// The leader did not have the fetch offset; its log end offset is asked for, and then, if that is known, its log start offset.
    Resetting {
        /// The leader's log end offset, once it is known.
        leader_end: Option<Offset>,
    },
}

/// With what a follower begins to fetch under a leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InitialFetchState {
    /// The id of the topic, if it is known.
    pub topic_id: Option<Uuid>,
    /// The leader epoch.
    pub current_leader_epoch: LeaderEpoch,
    /// From where: the log end offset, or the high watermark of a log without leader epochs. Below 0 the leader is asked.
    pub offset: Offset,
}

/// What a fetcher knows of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionFetchState {
    /// The id of the topic, if it is known.
    pub topic_id: Option<Uuid>,
    /// From where it fetches next.
    pub fetch_offset: Offset,
    /// How many records it was behind the leader's high watermark after the last answer.
    pub lag: Option<i64>,
    /// The leader epoch under which it asks.
    pub current_leader_epoch: LeaderEpoch,
    /// Nothing is asked before this time, in milliseconds.
    pub delayed_until: Option<TimestampMs>,
    /// What comes next.
    pub phase: FetchPhase,
    /// The leader epoch of the last batch in the log.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// Whose turn it is: the lowest is asked for first.
    pub(super) turn: u64,
}

impl PartitionFetchState {
    /// Whether the partition waits after an error.
    #[must_use]
    pub fn is_delayed(&self, now: TimestampMs) -> bool {
        self.delayed_until.is_some_and(|until| until > now)
    }

    /// Whether records are fetched next.
    #[must_use]
    pub fn is_ready_for_fetch(&self, now: TimestampMs) -> bool {
        self.phase == FetchPhase::Fetching && !self.is_delayed(now)
    }

    /// Whether the follower had all that is replicated after the last answer (Kafka: `isReplicaInSync`).
    #[must_use]
    pub fn is_in_sync(&self) -> bool {
        self.lag.is_some_and(|lag| lag <= 0)
    }

    /// Whether the log may have to be cut next.
    #[must_use]
    pub fn is_truncating(&self, now: TimestampMs) -> bool {
        self.phase == FetchPhase::Truncating && !self.is_delayed(now)
    }

    /// The state after a step that succeeded: fetching, without a delay.
    pub(super) fn fetching(&self, fetch_offset: Offset, lag: Option<i64>, last_fetched_epoch: Option<LeaderEpoch>) -> Self {
        Self { fetch_offset, lag, delayed_until: None, phase: FetchPhase::Fetching, last_fetched_epoch, ..*self }
    }
}
