//! A follower's fetcher: for several partitions with one leader, which request comes next (Kafka: `AbstractFetcherThread`).

use std::collections::{BTreeMap, BTreeSet};

use super::access::PartitionFetch;
use super::divergence::TruncationPoint;
use super::error::{FollowError, LeaderError};
use super::fetch_state::{FetchPhase, InitialFetchState, PartitionFetchState};
use super::partition::Partition;
use crate::log_dir::{TopicPartition, Uuid};
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// The replicas of a broker.
pub type Replicas<S> = BTreeMap<TopicPartition, Partition<S>>;

/// When a fetcher finds out where its log and the leader's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TruncationMode {
    /// With each fetch, which carries the epoch of the last batch (KIP-595): between brokers. Before the first fetch only a log without
    /// leader epochs is cut, at its high watermark.
    #[default]
    OnFetch,
    /// Before the first fetch, by asking where the last epoch ends (KIP-101, KIP-279): a copy for another log directory of the broker.
    BeforeFetch,
}

/// Settings of a fetcher. The default is that of Kafka 4.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetcherConfig {
    /// How long a partition waits after an error, in milliseconds (`replica.fetch.backoff.ms`).
    pub backoff_ms: i64,
    /// When it finds out where the logs part.
    pub truncation: TruncationMode,
}

impl Default for FetcherConfig {
    fn default() -> Self {
        Self { backoff_ms: 1000, truncation: TruncationMode::OnFetch }
    }
}

/// What a fetcher did to a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetcherEvent {
    /// Appended up to, not including, this offset; nothing if it is the fetch offset.
    Appended {
        /// The offset of the next fetch.
        next_offset: Offset,
    },
    /// Cut the log.
    Truncated(TruncationPoint),
    /// Emptied the log, which starts here now.
    StartedOver(Offset),
    /// Goes on from here: the offset that was out of range is the leader's by now.
    Resumed(Offset),
    /// The leader does not have the fetch offset; its offsets are asked for next.
    OutOfRange,
    /// Will ask again, after an error of the leader.
    Delayed(LeaderError),
    /// Will ask again: what the leader sent was not good, or the log could not be set to the leader's offsets.
    Retried(FollowError),
    /// Gave the partition up until the controller says something new: the leader knows a newer epoch.
    Fenced,
    /// Gave the partition up until the controller says something new: its log failed.
    Failed(FollowError),
    /// The answer is not one to what would be asked now: the partition was removed, or its epoch or offset is another one.
    Ignored,
}

/// The events of a step, in order.
pub type FetcherEvents = Vec<(TopicPartition, FetcherEvent)>;

/// A follower's fetcher.
///
/// The caller asks for the requests of each kind, sends them, and hands in each answer with its request; a request may be dropped at any
/// time, and is made again. What fails for one partition does not concern the others.
#[derive(Clone, Debug, Default)]
pub struct Fetcher {
    config: FetcherConfig,
    states: BTreeMap<TopicPartition, PartitionFetchState>,
    failed: BTreeSet<TopicPartition>,
    turns: u64,
}

impl Fetcher {
    /// A fetcher without partitions.
    #[must_use]
    pub fn new(config: FetcherConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &FetcherConfig {
        &self.config
    }

    /// What is known of a partition; `None` of one that is not fetched.
    #[must_use]
    pub fn state(&self, partition: &TopicPartition) -> Option<&PartitionFetchState> {
        self.states.get(partition)
    }

    /// The partitions that were given up.
    #[must_use]
    pub fn failed(&self) -> &BTreeSet<TopicPartition> {
        &self.failed
    }

    /// Begins to fetch a partition, or goes on as before if the leader epoch is the known one. A partition that was given up has another
    /// chance.
    pub fn add_partition<S: Storage>(&mut self, partition: &TopicPartition, initial: InitialFetchState, replicas: &Replicas<S>) {
        self.failed.remove(partition);
        let known = self.states.get(partition).copied();
        let state = known.filter(|state| state.current_leader_epoch == initial.current_leader_epoch).unwrap_or_else(|| {
            let last_fetched_epoch =
                latest_epoch(replicas, partition).filter(|_| self.config.truncation == TruncationMode::OnFetch);
            let phase = if initial.offset < Offset(0) {
                FetchPhase::Resetting { leader_end: None }
            } else if last_fetched_epoch.is_some() {
                FetchPhase::Fetching
            } else {
                FetchPhase::Truncating
            };
            PartitionFetchState {
                topic_id: initial.topic_id,
                fetch_offset: initial.offset,
                lag: None,
                current_leader_epoch: initial.current_leader_epoch,
                delayed_until: None,
                phase,
                last_fetched_epoch,
                turn: 0,
            }
        });
        self.set(partition, state);
    }

    /// Stops fetching a partition; what was known of it.
    pub fn remove_partition(&mut self, partition: &TopicPartition) -> Option<PartitionFetchState> {
        self.states.remove(partition)
    }

    /// Notes what ids the topics of partitions have by now; whoever is not fetched is left out. Nobody's turn changes (Kafka:
    /// `maybeUpdateTopicIds`).
    pub fn maybe_update_topic_ids(&mut self, partitions: &[TopicPartition], topic_id: impl Fn(&str) -> Option<Uuid>) {
        for partition in partitions {
            if let Some(state) = self.states.get_mut(partition) {
                state.topic_id = topic_id(&partition.topic);
            }
        }
    }

    /// What to fetch: all partitions that are ready, those first that have waited longest. Those that are throttled are left out, unless
    /// they are in sync: the caller names them only while their quota is exceeded (Kafka: `RemoteLeaderEndPoint.buildFetch`). `now` in
    /// milliseconds.
    #[must_use]
    pub fn fetch_requests<S: Storage>(
        &self,
        replicas: &Replicas<S>,
        throttled: &BTreeSet<TopicPartition>,
        now: TimestampMs,
    ) -> Vec<(TopicPartition, PartitionFetch)> {
        let requests = self.in_turn().into_iter().filter(|(partition, state)| {
            let waits = throttled.contains(*partition) && !state.is_in_sync();
            state.is_ready_for_fetch(now) && !waits
        });
        let requests = requests.filter_map(|(partition, state)| {
            let request = PartitionFetch {
                fetch_offset: state.fetch_offset,
                log_start_offset: replicas.get(partition)?.log().log_start_offset(),
                current_leader_epoch: Some(state.current_leader_epoch),
                last_fetched_epoch: state.last_fetched_epoch.filter(|_| self.config.truncation == TruncationMode::OnFetch),
                topic_id: state.topic_id,
            };
            Some((partition.clone(), request))
        });
        requests.collect()
    }

    /// The states, those first that have waited longest.
    pub(super) fn in_turn(&self) -> Vec<(&TopicPartition, &PartitionFetchState)> {
        let mut states: Vec<_> = self.states.iter().collect();
        states.sort_by_key(|(_, state)| state.turn);
        states
    }

    /// Notes a state; the partition comes last from now on.
    pub(super) fn set(&mut self, partition: &TopicPartition, state: PartitionFetchState) {
        self.turns = self.turns.saturating_add(1);
        self.states.insert(partition.clone(), PartitionFetchState { turn: self.turns, ..state });
    }

    /// The partition waits; one that waits already waits no longer for it. An offset that was being reset is fetched again then.
    pub(super) fn delay(&mut self, partition: &TopicPartition, now: TimestampMs) {
        let Some(state) = self.states.get(partition).copied().filter(|state| !state.is_delayed(now)) else { return };
        let phase = match state.phase {
            FetchPhase::Resetting { .. } => FetchPhase::Fetching,
            phase => phase,
        };
        let delayed_until = Some(TimestampMs(now.get().saturating_add(self.config.backoff_ms)));
        self.set(partition, PartitionFetchState { phase, delayed_until, ..state });
    }

    /// Gives a partition up (Kafka: `markPartitionFailed`).
    pub(super) fn fail(&mut self, partition: &TopicPartition) {
        self.states.remove(partition);
        self.failed.insert(partition.clone());
    }

    /// The leader has a newer epoch than the request. If that was the known one, there is nothing to do before the controller has
    /// spoken; else the next request is made under the newer one (Kafka: `onPartitionFenced`).
    pub(super) fn fenced(&mut self, partition: &TopicPartition, requested: Option<LeaderEpoch>, now: TimestampMs) -> FetcherEvent {
        if self.states.get(partition).is_some_and(|state| Some(state.current_leader_epoch) == requested) {
            self.fail(partition);
            return FetcherEvent::Fenced;
        }
        self.delay(partition, now);
        FetcherEvent::Delayed(LeaderError::FencedLeaderEpoch)
    }

    /// The leader refuses a request for another reason than an offset out of range.
    pub(super) fn refused(
        &mut self,
        partition: &TopicPartition,
        requested: Option<LeaderEpoch>,
        error: LeaderError,
        now: TimestampMs,
    ) -> FetcherEvent {
        if error == LeaderError::FencedLeaderEpoch {
            return self.fenced(partition, requested, now);
        }
        self.delay(partition, now);
        FetcherEvent::Delayed(error)
    }
}

/// The newest leader epoch in a replica's log.
pub(super) fn latest_epoch<S: Storage>(replicas: &Replicas<S>, partition: &TopicPartition) -> Option<LeaderEpoch> {
    replicas.get(partition)?.log().leader_epochs().latest_epoch()
}

/// The replica, to be changed.
pub(super) fn replica<'a, S: Storage>(
    replicas: &'a mut Replicas<S>,
    partition: &TopicPartition,
) -> Result<&'a mut Partition<S>, FollowError> {
    replicas.get_mut(partition).ok_or_else(|| FollowError::NoReplica(partition.clone()))
}
