//! What a fetcher makes of the answer to a fetch (Kafka: `AbstractFetcherThread.processFetchRequest`).

use std::collections::BTreeMap;

use super::access::{Fetched, PartitionFetch};
use super::error::{FollowError, LeaderError};
use super::fetch_state::{FetchPhase, PartitionFetchState};
use super::fetcher::{Fetcher, FetcherEvent, FetcherEvents, Replicas, latest_epoch, replica};
use crate::log_dir::TopicPartition;
use crate::storage::Storage;
use crate::types::{Offset, TimestampMs};

impl Fetcher {
    /// Takes the answers to a fetch over, in their order: appends, or cuts the log where it and the leader's part, without looking at
    /// the rest of such an answer. An answer counts only if the partition would be fetched at the same offset under the same leader epoch
    /// now. `now` in milliseconds.
    pub fn on_fetch<S: Storage>(
        &mut self,
        requests: &[(TopicPartition, PartitionFetch)],
        answers: Vec<(TopicPartition, Result<Fetched, LeaderError>)>,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> FetcherEvents {
        let requests: BTreeMap<&TopicPartition, &PartitionFetch> = requests.iter().map(|(key, value)| (key, value)).collect();
        let mut events = Vec::new();
        for (partition, answer) in answers {
            let current = requests.get(&partition).zip(self.state(&partition).copied());
            let current = current.filter(|(request, state)| {
                let same_epoch = request.current_leader_epoch.is_none_or(|epoch| epoch == state.current_leader_epoch);
                same_epoch && request.fetch_offset == state.fetch_offset && state.is_ready_for_fetch(now)
            });
            let event = match (current, answer) {
                (None, _) => FetcherEvent::Ignored,
                (Some((_, state)), Ok(fetched)) => self.take_over(&partition, &state, &fetched, replicas, now),
                (Some((_, state)), Err(LeaderError::OffsetOutOfRange)) => {
                    self.set(&partition, PartitionFetchState { phase: FetchPhase::Resetting { leader_end: None }, ..state });
                    FetcherEvent::OutOfRange
                }
                (Some((request, _)), Err(error)) => self.refused(&partition, request.current_leader_epoch, error, now),
            };
            events.push((partition, event));
        }
        events
    }

    /// The whole fetch has failed: all partitions wait, whether they were in it or not. `now` in milliseconds.
    pub fn on_fetch_failed(&mut self, now: TimestampMs) {
        let partitions: Vec<TopicPartition> = self.in_turn().into_iter().map(|(partition, _)| partition.clone()).collect();
        for partition in partitions {
            self.delay(&partition, now);
        }
    }

    fn take_over<S: Storage>(
        &mut self,
        partition: &TopicPartition,
        state: &PartitionFetchState,
        fetched: &Fetched,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> FetcherEvent {
        if let Some(diverging) = &fetched.diverging {
            return self.truncate_to_epoch_end(partition, state, diverging, replicas, now);
        }
        match self.append(partition, state, fetched, replicas, now) {
            Ok(next_offset) => FetcherEvent::Appended { next_offset },
            Err(error) if error.may_pass() => {
                self.delay(partition, now);
                FetcherEvent::Retried(error)
            }
            Err(error) => {
                self.fail(partition);
                FetcherEvent::Failed(error)
            }
        }
    }

    /// The offset of the next fetch.
    fn append<S: Storage>(
        &mut self,
        partition: &TopicPartition,
        state: &PartitionFetchState,
        fetched: &Fetched,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> Result<Offset, FollowError> {
        let follower = replica(replicas, partition)?;
        let result = follower.follow(state.fetch_offset, state.current_leader_epoch, fetched, now)?;
        let appended = result.last_offset != Offset::UNKNOWN;
        let next_offset = if appended { result.last_offset.plus(1) } else { state.fetch_offset };
        if appended || state.lag.is_none() {
            let lag = fetched.offsets.high_watermark.get().saturating_sub(next_offset.get()).max(0);
            // Batches of magic 0 and 1 have no epoch; what was fetched before them is the last that is known.
            let last_epoch = latest_epoch(replicas, partition).filter(|_| appended).or(state.last_fetched_epoch);
            self.set(partition, state.fetching(next_offset, Some(lag), last_epoch));
        }
        Ok(next_offset)
    }
}
