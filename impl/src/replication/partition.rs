//! A broker's replica of a partition: who leads under which epoch, who is in sync, and the high watermark that follows from it
//! (Kafka: `Partition`).

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Fetched, PartitionFetch};
use super::error::{FollowError, PartitionError};
use super::replica::ReplicaState;
use crate::barrier::ReplicationPath;
use crate::log::{AppendResult, LogError, PartitionLog};
use crate::storage::Storage;
use crate::types::{LeaderEpoch, NodeId, Offset, PartitionEpoch, TimestampMs};

/// Settings of a partition. The default is that of Kafka 4.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionConfig {
    /// How many replicas have to be in sync for the high watermark to move, if there are so many (`min.insync.replicas`).
    pub min_in_sync_replicas: usize,
    /// How long a follower that falls behind still counts as caught up, in milliseconds (`replica.lag.time.max.ms`).
    pub replica_lag_time_max_ms: i64,
}

impl Default for PartitionConfig {
    fn default() -> Self {
        Self { min_in_sync_replicas: 1, replica_lag_time_max_ms: 30_000 }
    }
}

/// What the controller says about a partition (Kafka: `PartitionRegistration`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderAndIsr {
    /// The leader.
    pub leader: NodeId,
    /// Its epoch.
    pub leader_epoch: LeaderEpoch,
    /// The version of what the controller says.
    pub partition_epoch: PartitionEpoch,
    /// All replicas.
    pub replicas: BTreeSet<NodeId>,
    /// Those in sync.
    pub isr: BTreeSet<NodeId>,
}

/// A leader asks the controller for a change of the in-sync replicas (Kafka: `AlterPartitionRequest`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrChange {
    /// The in-sync replicas that it asks for.
    pub isr: BTreeSet<NodeId>,
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
    /// The version of the controller's word that the leader knows.
    pub partition_epoch: PartitionEpoch,
}

/// A broker's replica of a partition. In the beginning nobody leads.
#[derive(Clone, Debug)]
pub struct Partition<S> {
    pub(super) log: PartitionLog<S>,
    local: NodeId,
    config: PartitionConfig,
    leader: Option<NodeId>,
    pub(super) leader_epoch: LeaderEpoch,
    partition_epoch: PartitionEpoch,
    /// Where the epoch begins in which this replica leads.
    pub(super) leader_epoch_start_offset: Option<Offset>,
    /// As committed by the controller; empty at a follower.
    isr: BTreeSet<NodeId>,
    /// Asked for, and not answered yet.
    pending_isr: Option<BTreeSet<NodeId>>,
    /// A leader's knowledge of the other replicas.
    followers: BTreeMap<NodeId, ReplicaState>,
    fenced: BTreeSet<NodeId>,
    shutting_down: BTreeSet<NodeId>,
}

impl<S: Storage> Partition<S> {
    /// The replica of broker `local` over its log.
    #[must_use]
    pub fn new(local: NodeId, log: PartitionLog<S>, config: PartitionConfig) -> Self {
        Self {
            log,
            local,
            config,
            leader: None,
            leader_epoch: LeaderEpoch::NONE,
            partition_epoch: PartitionEpoch::NONE,
            leader_epoch_start_offset: None,
            isr: BTreeSet::new(),
            pending_isr: None,
            followers: BTreeMap::new(),
            fenced: BTreeSet::new(),
            shutting_down: BTreeSet::new(),
        }
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &PartitionLog<S> {
        &self.log
    }

    /// The log, past what the partition decides: for what needs no decision, such as snapshots and expiry.
    #[must_use]
    pub fn log_mut(&mut self) -> &mut PartitionLog<S> {
        &mut self.log
    }

    /// Whether this replica leads.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leader == Some(self.local)
    }

    /// Who leads; `None` before the first word of the controller.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// The leader epoch; [`LeaderEpoch::NONE`] before the first word of the controller.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    /// The version of the controller's word; [`PartitionEpoch::NONE`] before the first.
    #[must_use]
    pub fn partition_epoch(&self) -> PartitionEpoch {
        self.partition_epoch
    }

    /// Where the leader epoch begins, if this replica leads.
    #[must_use]
    pub fn leader_epoch_start_offset(&self) -> Option<Offset> {
        self.leader_epoch_start_offset
    }

    /// The in-sync replicas that the controller has committed; none at a follower.
    #[must_use]
    pub fn isr(&self) -> &BTreeSet<NodeId> {
        &self.isr
    }

    /// The in-sync replicas with those that the leader has asked for: the high watermark waits for all of them, as nobody knows what
    /// the controller will say (KIP-497).
    #[must_use]
    pub fn maximal_isr(&self) -> BTreeSet<NodeId> {
        self.isr.iter().chain(self.pending_isr.iter().flatten()).copied().collect()
    }

    /// The change of the in-sync replicas that the controller has to be asked for, until it answers.
    #[must_use]
    pub fn isr_change(&self) -> Option<IsrChange> {
        let (leader_epoch, partition_epoch) = (self.leader_epoch, self.partition_epoch);
        self.pending_isr.clone().map(|isr| IsrChange { isr, leader_epoch, partition_epoch })
    }

    /// What a leader knows of another replica; `None` for one that is not assigned, and at a follower.
    #[must_use]
    pub fn follower(&self, replica: NodeId) -> Option<&ReplicaState> {
        self.followers.get(&replica)
    }

    /// Whether this replica leads and fewer replicas are in sync than have to be.
    #[must_use]
    pub fn is_under_min_isr(&self) -> bool {
        let replicas = self.followers.len().saturating_add(1);
        self.is_leader() && self.isr.len() < self.config.min_in_sync_replicas.min(replicas)
    }

    /// Says which brokers are fenced and which are shutting down: neither come into sync, and nothing waits for them to. The records that
    /// one has which is shutting down count still, those of one that is fenced do not (Kafka: `MetadataCache.hasAliveBroker`).
    pub fn set_unavailable(&mut self, fenced: BTreeSet<NodeId>, shutting_down: BTreeSet<NodeId>) {
        self.fenced = fenced;
        self.shutting_down = shutting_down;
    }

    /// Whether a broker may come into sync (Kafka: `isReplicaIsrEligible`).
    fn is_eligible(&self, replica: NodeId) -> bool {
        !self.fenced.contains(&replica) && !self.shutting_down.contains(&replica)
    }

    /// Up to where no replica has records any more, as far as this one knows, if it leads (Kafka: `lowWatermarkIfLeader`); that of a
    /// follower that has not fetched yet is [`Offset::UNKNOWN`].
    pub(super) fn low_watermark(&self) -> Offset {
        let alive = self.followers.iter().filter(|(id, _)| !self.fenced.contains(id));
        alive.map(|(_, follower)| follower.log_start_offset).fold(self.log.log_start_offset(), Offset::min)
    }

    /// This replica leads, says the controller; tells whether it did not before. An older word than the one that is known is ignored.
    /// Only a new leader epoch is noted with the log end offset, and what is known of the followers is only then forgotten. `now` in
    /// milliseconds.
    ///
    /// # Errors
    /// When the log cannot note the epoch, or raise the high watermark. The replicas are taken over nevertheless.
    pub fn make_leader(&mut self, state: &LeaderAndIsr, now: TimestampMs) -> Result<bool, LogError> {
        if state.partition_epoch < self.partition_epoch {
            return Ok(false);
        }
        let is_new_leader = !self.is_leader();
        let others = state.replicas.iter().filter(|replica| **replica != self.local);
        self.followers = others.map(|id| (*id, self.followers.get(id).copied().unwrap_or_default())).collect();
        self.isr.clone_from(&state.isr);
        self.pending_isr = None;
        if state.leader_epoch > self.leader_epoch {
            let start = self.log.log_end_offset();
            self.log.assign_epoch_start_offset(state.leader_epoch)?;
            for (id, follower) in &mut self.followers {
                follower.reset(start, is_new_leader, state.isr.contains(id), now);
            }
            self.leader_epoch = state.leader_epoch;
            self.leader_epoch_start_offset = Some(start);
        }
        self.partition_epoch = state.partition_epoch;
        self.leader = Some(self.local);
        // All the others may have left the in-sync replicas.
        self.maybe_increment_high_watermark(now)?;
        Ok(is_new_leader)
    }

    /// Another replica leads, says the controller; tells whether that is under a new leader epoch, so that its fetcher has to begin
    /// anew. An older word than the one that is known is ignored.
    pub fn make_follower(&mut self, state: &LeaderAndIsr) -> bool {
        if state.partition_epoch < self.partition_epoch {
            return false;
        }
        let is_new_epoch = state.leader_epoch > self.leader_epoch;
        self.leader = Some(state.leader);
        self.leader_epoch = state.leader_epoch;
        self.leader_epoch_start_offset = None;
        self.partition_epoch = state.partition_epoch;
        self.followers.clear();
        self.isr.clear();
        self.pending_isr = None;
        is_new_epoch
    }

    /// The controller has agreed to a change of the in-sync replicas, which it knows under this partition epoch; tells whether that
    /// counts. It does not if something else was heard or asked since. `now` in milliseconds.
    ///
    /// # Errors
    /// When the log cannot raise the high watermark.
    pub fn isr_changed(&mut self, asked: &IsrChange, partition_epoch: PartitionEpoch, now: TimestampMs) -> Result<bool, LogError> {
        if self.isr_change().as_ref() != Some(asked) || partition_epoch < self.partition_epoch {
            return Ok(false);
        }
        self.isr.clone_from(&asked.isr);
        self.pending_isr = None;
        self.partition_epoch = partition_epoch;
        self.maybe_increment_high_watermark(now)?;
        Ok(true)
    }

    /// The controller has refused a change of the in-sync replicas, because a replica is not eligible or the change was not even tried:
    /// the committed ones count, and the leader may ask again. After any other refusal a leader waits for the controller's next word.
    /// Tells whether that counts: it does not if something else was heard or asked since.
    pub fn isr_change_refused(&mut self, asked: &IsrChange) -> bool {
        let counts = self.isr_change().as_ref() == Some(asked);
        if counts {
            self.pending_isr = None;
        }
        counts
    }

    /// Followers that are not caught up leave the in-sync replicas; to be called from time to time (Kafka: `maybeShrinkIsr`). `now` in
    /// milliseconds.
    pub fn maybe_shrink_isr(&mut self, now: TimestampMs) {
        if self.pending_isr.is_some() || !self.is_leader() {
            return;
        }
        let (end, max_lag_ms) = (self.log.log_end_offset(), self.config.replica_lag_time_max_ms);
        let stays = |id: &NodeId| {
            let caught_up = |follower: &ReplicaState| follower.is_caught_up(end, now, max_lag_ms);
            *id == self.local || self.followers.get(id).is_some_and(caught_up)
        };
        let isr: BTreeSet<NodeId> = self.isr.iter().copied().filter(stays).collect();
        if isr != self.isr {
            self.pending_isr = Some(isr);
        }
    }

    /// A follower has fetched while the leader's log ended at `leader_end` (Kafka: `updateFollowerFetchState`).
    pub(super) fn follower_fetched(
        &mut self,
        replica: NodeId,
        request: &PartitionFetch,
        leader_end: Offset,
        now: TimestampMs,
    ) -> Result<(), LogError> {
        let Some(follower) = self.followers.get_mut(&replica) else { return Ok(()) };
        let before = follower.log_end_offset;
        follower.fetched(request.fetch_offset, request.log_start_offset, leader_end, now);
        self.maybe_expand_isr(replica, request.fetch_offset);
        if before != request.fetch_offset {
            self.maybe_increment_high_watermark(now)?;
        }
        Ok(())
    }

    /// A follower that has all up to the high watermark and up to the beginning of the leader epoch comes into sync, one change at a
    /// time. Without the second rule one that has only what an earlier leader counted as replicated could be elected.
    fn maybe_expand_isr(&mut self, replica: NodeId, end: Offset) {
        let in_sync = end >= self.log.high_watermark() && self.leader_epoch_start_offset.is_some_and(|start| end >= start);
        let may_join = !self.isr.contains(&replica) && self.is_eligible(replica);
        if self.pending_isr.is_none() && may_join && in_sync && self.is_leader() {
            let mut isr = self.isr.clone();
            isr.insert(replica);
            self.pending_isr = Some(isr);
        }
    }

    /// The smallest end of the logs of those that are in sync, may soon be, or are caught up and available; tells whether that raises
    /// the high watermark (Kafka: `maybeIncrementLeaderHW`). Not while too few are in sync.
    pub(super) fn maybe_increment_high_watermark(&mut self, now: TimestampMs) -> Result<bool, LogError> {
        if !self.is_leader() || self.is_under_min_isr() {
            return Ok(false);
        }
        let end = self.log.log_end_offset();
        let (in_sync, max_lag_ms) = (self.maximal_isr(), self.config.replica_lag_time_max_ms);
        let waited_for = self.followers.iter().filter(|(id, follower)| {
            let may_join = follower.is_caught_up(end, now, max_lag_ms) && self.is_eligible(**id);
            in_sync.contains(id) || may_join
        });
        let smallest = waited_for.map(|(_, follower)| follower.log_end_offset).fold(end, Offset::min);
        self.log.maybe_increment_high_watermark(smallest)
    }

    /// A follower takes over what its fetcher got from the leader, under the leader epoch of the fetch: records, high watermark and log
    /// start offset, in this order (Kafka: `ReplicaFetcherThread.processPartitionData`). `now` in milliseconds.
    ///
    /// # Errors
    /// [`FollowError::OffsetMismatch`]; or when the log refuses the append, or to start where the leader's does.
    pub fn follow(
        &mut self,
        fetch_offset: Offset,
        leader_epoch: LeaderEpoch,
        fetched: &Fetched,
        now: TimestampMs,
    ) -> Result<AppendResult, FollowError> {
        let log_end_offset = self.log.log_end_offset();
        if fetch_offset != log_end_offset {
            return Err(FollowError::OffsetMismatch { fetched: fetch_offset, log_end_offset });
        }
        let records = fetched.data.records.clone();
        let result = self.log.append_fetched(records, leader_epoch, ReplicationPath::IntraCluster, now)?;
        self.log.maybe_update_high_watermark(fetched.offsets.high_watermark);
        self.log.maybe_increment_log_start_offset(fetched.offsets.log_start_offset)?;
        Ok(result)
    }

    /// Whether a request under this leader epoch is one for the partition as it is; one without an epoch always is
    /// (Kafka: `checkCurrentLeaderEpoch`).
    ///
    /// # Errors
    /// [`PartitionError::FencedLeaderEpoch`] below, [`PartitionError::UnknownLeaderEpoch`] above the partition's.
    pub fn check_current_leader_epoch(&self, requested: Option<LeaderEpoch>) -> Result<(), PartitionError> {
        let current = self.leader_epoch;
        match requested {
            Some(requested) if requested < current => Err(PartitionError::FencedLeaderEpoch { requested, current }),
            Some(requested) if requested > current => Err(PartitionError::UnknownLeaderEpoch { requested, current }),
            _ => Ok(()),
        }
    }
}
