//! What a fetcher does when the leader does not have the fetch offset (Kafka: `AbstractFetcherThread.fetchOffsetAndTruncate`,
//! `handleOutOfRangeError`): the leader's log end is asked for first, and its log start only if the own log is not longer.

use super::divergence::{OutOfRange, TruncationPoint, out_of_range};
use super::error::{FollowError, LeaderError};
use super::fetch_state::{FetchPhase, PartitionFetchState};
use super::fetcher::{Fetcher, FetcherEvent, Replicas, latest_epoch, replica};
use crate::log::OffsetSpec;
use crate::log_dir::TopicPartition;
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// A request for an end of the leader's log (Kafka: `ListOffsetsRequest`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetRequest {
    /// The leader epoch under which the follower asks.
    pub current_leader_epoch: LeaderEpoch,
    /// [`OffsetSpec::Latest`] or [`OffsetSpec::Earliest`].
    pub spec: OffsetSpec,
}

impl Fetcher {
    /// What to ask of the leader for the partitions whose offset it does not have. `now` in milliseconds.
    #[must_use]
    pub fn offset_requests(&self, now: TimestampMs) -> Vec<(TopicPartition, OffsetRequest)> {
        let due = self.in_turn().into_iter().filter(|(_, state)| !state.is_delayed(now));
        due.filter_map(|(partition, state)| Some((partition.clone(), offset_request(state)?))).collect()
    }

    /// Sets a log to the leader's offsets. An answer counts only if the partition would ask the same now. An error of the log, as one of
    /// the leader, delays the partition, which is fetched again then. `now` in milliseconds.
    pub fn on_offset<S: Storage>(
        &mut self,
        partition: &TopicPartition,
        request: OffsetRequest,
        answer: Result<Offset, LeaderError>,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> FetcherEvent {
        let current = self.state(partition).copied().filter(|state| offset_request(state) == Some(request));
        let (state, offset) = match (current, answer) {
            (None, _) => return FetcherEvent::Ignored,
            (Some(_), Err(error)) => return self.refused(partition, Some(request.current_leader_epoch), error, now),
            (Some(state), Ok(offset)) => (state, offset),
        };
        self.reset(partition, &state, offset, replicas, now).unwrap_or_else(|error| {
            self.delay(partition, now);
            FetcherEvent::Retried(error)
        })
    }

    fn reset<S: Storage>(
        &mut self,
        partition: &TopicPartition,
        state: &PartitionFetchState,
        offset: Offset,
        replicas: &mut Replicas<S>,
        now: TimestampMs,
    ) -> Result<FetcherEvent, FollowError> {
        let log = replica(replicas, partition)?.log_mut();
        let own_end = log.log_end_offset();
        let (leader_start, leader_end) = match state.phase {
            FetchPhase::Resetting { leader_end: Some(end) } => (offset, end),
            _ if offset >= own_end => {
                self.set(partition, PartitionFetchState { phase: FetchPhase::Resetting { leader_end: Some(offset) }, ..*state });
                return Ok(FetcherEvent::OutOfRange);
            }
            // The leader's log is shorter; where it starts does not matter.
            _ => (Offset(0), offset),
        };
        let (fetch_offset, event) = match out_of_range(leader_start, leader_end, own_end) {
            OutOfRange::TruncateTo(end) => {
                log.truncate_to(end, now)?;
                (end, FetcherEvent::Truncated(TruncationPoint { offset: end, completed: true }))
            }
            OutOfRange::StartOverAt(start) => {
                log.truncate_fully_and_start_at(start, now)?;
                (start, FetcherEvent::StartedOver(start))
            }
            OutOfRange::Retry => (own_end, FetcherEvent::Resumed(own_end)),
        };
        let lag = leader_end.get().saturating_sub(fetch_offset.get());
        let last_epoch = latest_epoch(replicas, partition);
        self.set(partition, state.fetching(fetch_offset, Some(lag), last_epoch));
        Ok(event)
    }
}

/// What is to be asked for a partition in this state.
fn offset_request(state: &PartitionFetchState) -> Option<OffsetRequest> {
    let FetchPhase::Resetting { leader_end } = state.phase else { return None };
    let spec = if leader_end.is_some() { OffsetSpec::Earliest } else { OffsetSpec::Latest };
    Some(OffsetRequest { current_leader_epoch: state.current_leader_epoch, spec })
}
