//! How a fetcher cuts logs (Kafka: `AbstractFetcherThread.maybeTruncate`, `truncateToEpochEndOffsets`, `truncateToHighWatermark`,
//! `truncateOnFetchResponse`).

use std::collections::BTreeMap;

use super::divergence::{EpochEndOffset, TruncationPoint, truncation_point};
use super::error::{FollowError, LeaderError, UnrequestedPartition};
use super::fetch_state::{FetchPhase, PartitionFetchState};
use super::fetcher::{Fetcher, FetcherEvent, FetcherEvents, Replicas, TruncationMode, latest_epoch, replica};
use crate::log_dir::TopicPartition;
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// A request for the end of an epoch (Kafka: `OffsetForLeaderEpochRequest`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochRequest {
    /// The leader epoch under which the follower asks.
    pub current_leader_epoch: LeaderEpoch,
    /// The epoch whose end it asks for.
    pub leader_epoch: LeaderEpoch,
}

/// What is to be done for the partitions that may have to be cut before they are fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TruncationPlan {
    /// To be asked of the leader; the answers go to [`Fetcher::on_epoch_end_offsets`].
    pub requests: Vec<(TopicPartition, EpochRequest)>,
    /// Without leader epochs: to be cut at the high watermark by [`Fetcher::truncate_to_high_watermark`].
    pub to_high_watermark: Vec<TopicPartition>,
}

impl Fetcher {
    /// What is to be done before the first fetch. `now` in milliseconds.
    #[must_use]
    pub fn truncation_plan<S: Storage>(&self, replicas: &Replicas<S>, now: TimestampMs) -> TruncationPlan {
        let mut plan = TruncationPlan::default();
        for (partition, state) in self.in_turn().into_iter().filter(|(_, state)| state.is_truncating(now)) {
            match latest_epoch(replicas, partition) {
                Some(leader_epoch) => {
                    let request = EpochRequest { current_leader_epoch: state.current_leader_epoch, leader_epoch };
                    plan.requests.push((partition.clone(), request));
                }
                None => plan.to_high_watermark.push(partition.clone()),
            }
        }
        plan
    }

    /// Cuts logs by the leader's answers, which tell where an epoch ends; `None` when the leader knows nothing of it, so that the log is
    /// cut at the offset with which the fetcher has begun. An answer counts only if the partition is still to be cut under the same
    /// leader epoch. `now` in milliseconds.
    ///
    /// # Errors
    /// When there is an answer without a request; nothing is changed then.
    pub fn on_epoch_end_offsets<S: Storage>(
        &mut self,
        requests: &[(TopicPartition, EpochRequest)],
        answers: Vec<(TopicPartition, Result<Option<EpochEndOffset>, LeaderError>)>,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> Result<FetcherEvents, UnrequestedPartition> {
        let requests: BTreeMap<&TopicPartition, &EpochRequest> = requests.iter().map(|(key, value)| (key, value)).collect();
        if let Some((partition, _)) = answers.iter().find(|(partition, _)| !requests.contains_key(partition)) {
            return Err(UnrequestedPartition(partition.clone()));
        }
        let mut events = Vec::new();
        for (partition, answer) in answers {
            let requested = requests.get(&partition).map(|request| request.current_leader_epoch);
            let current = self.state(&partition).copied();
            let current =
                current.filter(|state| Some(state.current_leader_epoch) == requested && state.phase == FetchPhase::Truncating);
            let event = match (current, answer) {
                (None, _) => FetcherEvent::Ignored,
                (Some(_), Err(error)) => self.refused(&partition, requested, error, now),
                (Some(state), Ok(Some(answer))) => self.truncate_to_epoch_end(&partition, &state, &answer, replicas, now),
                (Some(state), Ok(None)) => {
                    let point = TruncationPoint { offset: state.fetch_offset, completed: true };
                    self.truncate(&partition, &state, point, replicas, now)
                }
            };
            events.push((partition, event));
        }
        Ok(events)
    }

    /// Cuts logs without leader epochs at the offset with which the fetcher has begun, which is their high watermark. Partitions that
    /// were removed are left alone. `now` in milliseconds.
    pub fn truncate_to_high_watermark<S: Storage>(
        &mut self,
        partitions: &[TopicPartition],
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> FetcherEvents {
        let mut events = Vec::new();
        for partition in partitions {
            let event = match self.state(partition).copied() {
                Some(state) => {
                    let point = TruncationPoint { offset: state.fetch_offset, completed: true };
                    self.truncate(partition, &state, point, replicas, now)
                }
                None => FetcherEvent::Ignored,
            };
            events.push((partition.clone(), event));
        }
        events
    }

    /// Cuts a log where the leader's leaves an epoch, or where the fetcher has begun if that is at no offset
    /// (Kafka: `UNDEFINED_EPOCH_OFFSET`).
    pub(super) fn truncate_to_epoch_end<S: Storage>(
        &mut self,
        partition: &TopicPartition,
        state: &PartitionFetchState,
        answer: &EpochEndOffset,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> FetcherEvent {
        let Some(follower) = replicas.get(partition) else {
            self.fail(partition);
            return FetcherEvent::Failed(FollowError::NoReplica(partition.clone()));
        };
        let point = if answer.end_offset == Offset::UNKNOWN {
            TruncationPoint { offset: state.fetch_offset, completed: true }
        } else {
            truncation_point(follower.log().leader_epochs(), follower.log().log_end_offset(), answer)
        };
        self.truncate(partition, state, point, replicas, now)
    }

    /// Cuts a log; it is fetched next, or asked about once more. A log that cannot be cut is given up.
    fn truncate<S: Storage>(
        &mut self,
        partition: &TopicPartition,
        state: &PartitionFetchState,
        point: TruncationPoint,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> FetcherEvent {
        let cut = replica(replicas, partition).and_then(|follower| Ok(follower.log_mut().truncate_to(point.offset, now)?));
        if let Err(error) = cut {
            self.fail(partition);
            return FetcherEvent::Failed(error);
        }
        let last_fetched_epoch = latest_epoch(replicas, partition);
        let fetches = point.completed || self.config().truncation == TruncationMode::OnFetch;
        let phase = if fetches { FetchPhase::Fetching } else { FetchPhase::Truncating };
        self.set(partition, PartitionFetchState { fetch_offset: point.offset, phase, last_fetched_epoch, ..*state });
        FetcherEvent::Truncated(point)
    }
}
