//! A follower: it copies its leader's log as it is, in any grouping of batches, and cuts its own where the two part.

use super::{Ask, Replica, ReplicaConfig, Role};
use crate::barrier::Place;
use crate::batch::Batch;
use crate::design::Fault;
use crate::effect::{Effect, Outcome, TruncateWhy};
use crate::epochs::{EpochEnd, truncation_offset};
use crate::ids::{Cluster, LeaderEpoch, Offset};
use crate::message::{FetchRequest, FetchResponse};
use crate::mirror::{MirrorMeta, MirrorState};
use crate::psm::Origin;

impl ReplicaConfig {
    /// The controller makes this replica a follower. What waited for an answer is sent again by its clients.
    pub fn follow(&self, replica: &mut Replica, epoch: LeaderEpoch, mirror: MirrorMeta) -> Vec<Ask> {
        if replica.role != Role::None && epoch <= replica.epoch {
            return Vec::new();
        }
        replica.role = Role::Follower;
        replica.epoch = epoch;
        replica.wanted_epoch = LeaderEpoch::default();
        replica.in_sync = false;
        replica.follower_end = None;
        replica.mirror = mirror;
        self.learn_source(replica, mirror);
        replica.progress = 0;
        replica.align_to = None;
        replica.waiting.clear();
        replica.journal.push(Effect::Follow(epoch));
        self.fetches(replica)
    }

    /// A deposed leader learns that it is one. If it leads again by now, that is old news.
    pub fn step_down(&self, replica: &Replica) -> Vec<Ask> {
        if replica.role == Role::Leader { vec![Ask::WhoLeads] } else { Vec::new() }
    }

    /// The mirror's metadata have changed. A leader that did not write them takes up the work of the new state.
    pub fn mirror_is(&self, replica: &mut Replica, mirror: MirrorMeta) -> Vec<Ask> {
        replica.mirror = mirror;
        self.learn_source(replica, mirror);
        if replica.role != Role::Leader {
            return Vec::new();
        }
        replica.progress = mirror.progress;
        replica.align_to = None;
        self.resume(replica)
    }

    /// The leader's epoch was raised without an election. The leader goes on with what it wanted it for; its follower now takes batches of
    /// it, which it refused before.
    pub fn epoch_is(&self, replica: &mut Replica, leader: u8, epoch: LeaderEpoch) -> Vec<Ask> {
        if (replica.role == Role::Leader) != (self.broker.number == leader) {
            // A deposed leader that does not know it yet, or a leader to be: both will be told more.
            return Vec::new();
        }
        replica.epoch = replica.epoch.max(epoch);
        if replica.role != Role::Leader {
            return Vec::new();
        }
        replica.journal.push(Effect::RaiseEpoch(epoch));
        if replica.mirror.state == MirrorState::Mirroring { self.fetches(replica) } else { Vec::new() }
    }

    pub(super) fn learn_source(&self, replica: &mut Replica, mirror: MirrorMeta) {
        if replica.durable.source != mirror.source {
            replica.durable_mut().source = mirror.source;
        }
    }

    /// The request that a reader has on its way, if it reads at all; a bulk one only where fetches may carry several batches.
    #[must_use]
    pub fn current_fetch(&self, replica: &Replica, bulk: bool) -> Option<(Cluster, FetchRequest)> {
        let follows = replica.role == Role::Follower;
        let stays = self.design.fault == Fault::FetcherStays && replica.mirror.state == MirrorState::Stopping;
        let mirrors = replica.role == Role::Leader && (replica.mirror.state == MirrorState::Mirroring || stays);
        let source = if follows { Some(self.broker.cluster) } else { replica.mirror.source };
        let request = FetchRequest {
            offset: replica.log_end(),
            last_epoch: self.last_epoch(replica, !follows),
            high_watermark: follows.then_some(replica.high_watermark),
            bulk,
        };
        let reads = replica.up && (follows || mirrors) && (!bulk || self.bulk);
        source.filter(|_| reads).map(|cluster| (cluster, request))
    }

    /// The fetches of a reader.
    #[must_use]
    pub fn fetches(&self, replica: &Replica) -> Vec<Ask> {
        let requests = [false, true].into_iter().filter_map(|bulk| self.current_fetch(replica, bulk));
        requests.map(|(cluster, request)| Ask::Fetch(cluster, request)).collect()
    }

    /// The leader has answered.
    pub fn replicate(&self, replica: &mut Replica, response: FetchResponse) -> Vec<Ask> {
        if replica.role != Role::Follower {
            return Vec::new();
        }
        match response {
            FetchResponse::Batches { offset, batches, high_watermark } if offset == replica.log_end() => {
                self.copy_from_leader(replica, offset, &batches);
                let known = high_watermark.min(replica.log_end());
                // It is set with every answer, also to a lower one (Kafka: `UnifiedLog.maybeUpdateHighWatermark`).
                let before = (replica.high_watermark, replica.first_unstable, replica.psm.unreplicated().len());
                replica.set_high_watermark(known);
                if before != (known, replica.first_unstable, replica.psm.unreplicated().len()) {
                    replica.journal.push(Effect::HighWatermark(known));
                }
            }
            FetchResponse::Batches { .. } => return Vec::new(),
            FetchResponse::OutOfRange(end) if end < replica.log_end() => self.truncate_to(replica, end, TruncateWhy::SourceShorter),
            // The same offset again will be refused again: the follower is stuck until the leader's log changes (EPOCH-6).
            FetchResponse::OutOfRange(_) => return Vec::new(),
            FetchResponse::Diverging(leader) => {
                let to = self.cut_at(replica, leader);
                self.truncate_to(replica, to, TruncateWhy::Diverging);
            }
        }
        self.fetches(replica)
    }

    /// Where a reader cuts its log that was told where it parts (EPOCH-4).
    pub(super) fn cut_at(&self, replica: &Replica, told: EpochEnd) -> Offset {
        match self.design.fault {
            Fault::CutsToLeadersEnd => told.end.min(replica.log_end()),
            _ => truncation_offset(&replica.durable.log, told),
        }
    }

    fn copy_from_leader(&self, replica: &mut Replica, offset: Offset, batches: &[Batch]) {
        // A follower takes nothing of an epoch that it has not heard of (LOG-5; Kafka: `UnifiedLog.appendAsFollower`).
        let fit: Vec<Batch> = batches.iter().copied().take_while(|b| b.leader_epoch <= replica.epoch).collect();
        if fit.is_empty() {
            return;
        }
        let from = replica.journal.len();
        let outcome = match self.append(replica, &fit, Origin::Replication, Place::ReplicationAppend { mirrored: false }) {
            Ok(at) => Outcome::Appended(at),
            Err(rejection) => Outcome::Rejected(rejection),
        };
        replica.journal.insert(from, Effect::Copy { from: self.broker.other(), offset, sent: fit.clone(), stored: fit, outcome });
    }
}
