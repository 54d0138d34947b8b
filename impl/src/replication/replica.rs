//! What a leader knows of a follower (Kafka: `Replica`, `ReplicaState`).

use crate::types::{Offset, TimestampMs};

/// What a leader knows of a follower, from the fetches of the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplicaState {
    /// Where the follower's log starts; [`Offset::UNKNOWN`] before its first fetch.
    pub log_start_offset: Offset,
    /// Where it ends: the offset of its last fetch; [`Offset::UNKNOWN`] before the first.
    pub log_end_offset: Offset,
    /// Where the leader's log ended at the last fetch.
    pub last_fetch_leader_end: Offset,
    /// When the last fetch came, in milliseconds.
    pub last_fetch_time: TimestampMs,
    /// The latest time, in milliseconds, at which the follower is known to have had all that the leader had.
    pub last_caught_up_time: TimestampMs,
}

impl Default for ReplicaState {
    /// Of a follower that was never heard of (Kafka: `ReplicaState.Empty`).
    fn default() -> Self {
        Self {
            log_start_offset: Offset::UNKNOWN,
            log_end_offset: Offset::UNKNOWN,
            last_fetch_leader_end: Offset(0),
            last_fetch_time: TimestampMs(0),
            last_caught_up_time: TimestampMs(0),
        }
    }
}

impl ReplicaState {
    /// The follower has fetched at `now` from `fetch_offset` on, while the leader's log ended at `leader_end`. One that has now what
    /// the leader had at the fetch before was caught up then: else a follower of a busy leader would never be.
    pub(super) fn fetched(&mut self, fetch_offset: Offset, log_start_offset: Offset, leader_end: Offset, now: TimestampMs) {
        if fetch_offset >= leader_end {
            self.last_caught_up_time = self.last_caught_up_time.max(now);
        } else if fetch_offset >= self.last_fetch_leader_end {
            self.last_caught_up_time = self.last_caught_up_time.max(self.last_fetch_time);
        }
        self.log_start_offset = log_start_offset;
        self.log_end_offset = fetch_offset;
        self.last_fetch_leader_end = self.last_fetch_leader_end.max(leader_end);
        self.last_fetch_time = now;
    }

    /// A leader epoch begins (Kafka: `resetReplicaState`). A follower that is not in sync counts as caught up at time 0, so that the high
    /// watermark does not wait for it. Only a leader that did not lead before forgets the follower's offsets.
    pub(super) fn reset(&mut self, leader_end: Offset, is_new_leader: bool, in_sync: bool, now: TimestampMs) {
        let since = if in_sync { now } else { TimestampMs(0) };
        *self = if is_new_leader {
            Self { last_fetch_leader_end: Offset::UNKNOWN, last_caught_up_time: since, ..Self::default() }
        } else {
            Self { last_fetch_leader_end: leader_end, last_fetch_time: since, last_caught_up_time: since, ..*self }
        };
    }

    /// Whether the follower has all, or had at most `max_lag_ms` milliseconds ago.
    pub(super) fn is_caught_up(&self, leader_end: Offset, now: TimestampMs, max_lag_ms: i64) -> bool {
        let lag_ms = now.get().saturating_sub(self.last_caught_up_time.get());
        leader_end == self.log_end_offset || lag_ms <= max_lag_ms
    }
}
