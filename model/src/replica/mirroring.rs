//! The leader of a mirror: alignment with the source, and the copying of its batches.

use super::{Ask, Replica, ReplicaConfig, Role};
use crate::barrier::Place;
use crate::batch::Batch;
use crate::design::{Alignment, AlignmentScope, AlignmentWaits, EpochFencing, Fault, StopAcks, UnansweredAtStart};
use crate::effect::{Effect, Outcome, TruncateWhy};
use crate::epochs::end_offset_for;
use crate::ids::{Broker, Cluster, LeaderEpoch, Offset};
use crate::message::FetchResponse;
use crate::mirror::{LastMirrored, MirrorState};
use crate::psm::Origin;
use crate::truth::{Anomaly, Ghost};

impl ReplicaConfig {
    /// What a leader does first: it takes up the work of the mirror's state (MIR-5).
    #[must_use]
    pub fn resume(&self, replica: &mut Replica) -> Vec<Ask> {
        match replica.mirror.state {
            MirrorState::Mirroring => self.fetches(replica),
            MirrorState::Stopping => match self.design.fault {
                Fault::StopForgotten => Vec::new(),
                Fault::StopTakenForDone => self.take_stop_for_done(replica),
                _ => vec![Ask::NextStep],
            },
            MirrorState::LogAlignment => self.begin_alignment(replica.mirror.source),
            // Only if a design becomes writable before its last stop step: those steps are not made up for.
            MirrorState::Stopped => match replica.mirror.command.take() {
                Some(line) => vec![Ask::Done(line)],
                None => Vec::new(),
            },
            MirrorState::Failed => Vec::new(),
        }
    }

    /// The operator starts a mirror of `source` (ALI-1).
    pub fn start(&self, replica: &mut Replica, source: Cluster, line: u8) -> Option<Vec<Ask>> {
        if replica.role != Role::Leader || replica.mirror.state != MirrorState::Stopped {
            return None;
        }
        replica.mirror.source = Some(source);
        replica.mirror.command = Some(line);
        replica.mirror.stint = Ghost::new(None);
        replica.mirror.recorded = false;
        replica.mirror.starts = replica.mirror.starts.saturating_add(1);
        replica.mirror.state = MirrorState::LogAlignment;
        self.learn_source(replica, replica.mirror);
        replica.progress = 0;
        replica.align_to = None;
        replica.journal.push(Effect::MirrorState { to: MirrorState::LogAlignment, source: Some(source) });
        let mut asks = vec![Ask::StoreMirror];
        if self.design.unanswered_at_start == UnansweredAtStart::Refused {
            asks.extend(std::mem::take(&mut replica.waiting).into_iter().map(|w| Ask::GiveUp(w.request)));
        }
        asks.extend(self.begin_alignment(Some(source)));
        Some(asks)
    }

    fn begin_alignment(&self, source: Option<Cluster>) -> Vec<Ask> {
        match self.design.alignment {
            Alignment::Lmo | Alignment::Lme | Alignment::Both => source.map(Ask::DescribeMirror).into_iter().collect(),
            Alignment::None | Alignment::OwnLso => vec![Ask::NextStep],
        }
    }

    /// Another cluster's mirror asks what the last stop here recorded (ALI-2). None if this replica does not lead.
    #[must_use]
    pub fn describe(&self, replica: &Replica, asked_by: Cluster) -> Option<Option<LastMirrored>> {
        let for_asker = |r: &LastMirrored| self.design.alignment_scope == AlignmentScope::Any || r.source == asked_by;
        (replica.role == Role::Leader).then(|| replica.mirror.last_mirrored.filter(for_asker))
    }

    /// The source has told what its last stop recorded.
    pub fn align(&self, replica: &mut Replica, recorded: Option<LastMirrored>) -> Vec<Ask> {
        let waits = replica.role == Role::Leader && replica.mirror.state == MirrorState::LogAlignment && replica.align_to.is_none();
        if !waits {
            return Vec::new();
        }
        replica.align_to = Some(recorded);
        vec![Ask::NextStep]
    }

    fn alignment_target(&self, replica: &Replica) -> Offset {
        let recorded = replica.align_to.flatten();
        match self.design.alignment {
            Alignment::None => replica.log_end(),
            Alignment::OwnLso => replica.last_stable_offset(),
            Alignment::Lmo => recorded.map_or(Offset(0), |r| r.offset),
            Alignment::Lme => end_of_recorded_epoch(replica, recorded),
            Alignment::Both => recorded.map_or(Offset(0), |r| r.offset.min(end_of_recorded_epoch(replica, recorded))),
        }
    }

    pub(super) fn next_alignment_step(&self, replica: &mut Replica) -> Vec<Ask> {
        let target = self.alignment_target(replica);
        let waits_for_all = self.has_peer && self.design.alignment_waits == AlignmentWaits::EveryReplica;
        if replica.progress == 0 && (target < replica.log_end() || waits_for_all) {
            if target < replica.log_end() {
                self.truncate_to(replica, target, TruncateWhy::Alignment);
            } else {
                replica.follower_end = None;
            }
            replica.progress = 1;
            return vec![Ask::NextStep];
        }
        replica.progress = 0;
        replica.align_to = None;
        let line = replica.mirror.command.take();
        let stored = self.set_state(replica, MirrorState::Mirroring);
        let mut asks = vec![line.map_or(stored, Ask::Done)];
        asks.extend(self.fetches(replica));
        asks
    }

    /// Whether the follower has done what the last step of a sequence wants of the in-sync replicas (STOP-3).
    #[must_use]
    pub(super) fn follower_is_aligned(&self, replica: &Replica) -> bool {
        let waits = matches!(self.design.stop_acks, StopAcks::All | StopAcks::EveryStep) && replica.in_sync;
        !waits || Self::follower_is_at_end(replica)
    }

    pub(super) fn follower_is_at_end(replica: &Replica) -> bool {
        replica.follower_end == Some(replica.log_end())
    }

    /// Whether the logs are aligned, as far as the design waits for it (ALI-3).
    #[must_use]
    pub(super) fn alignment_is_done(&self, replica: &Replica) -> bool {
        match self.design.alignment_waits {
            AlignmentWaits::InSync => self.follower_is_aligned(replica),
            AlignmentWaits::EveryReplica => !self.has_peer || Self::follower_is_at_end(replica),
        }
    }

    /// The source has answered (MIR-1, MIR-4).
    pub fn mirror(&self, replica: &mut Replica, from: Broker, response: FetchResponse) -> Vec<Ask> {
        let stays = self.design.fault == Fault::FetcherStays && replica.mirror.state == MirrorState::Stopping;
        if replica.role != Role::Leader || !(stays || replica.mirror.state == MirrorState::Mirroring) {
            return Vec::new();
        }
        match response {
            FetchResponse::Batches { offset, batches, .. } if offset == replica.log_end() => {
                return self.store_mirrored(replica, from, offset, batches);
            }
            FetchResponse::Batches { .. } => return Vec::new(),
            FetchResponse::OutOfRange(end) if end < replica.log_end() => self.truncate_to(replica, end, TruncateWhy::SourceShorter),
            FetchResponse::OutOfRange(_) => return Vec::new(),
            FetchResponse::Diverging(source) => {
                let to = self.cut_at(replica, source);
                self.truncate_to(replica, to, TruncateWhy::Diverging);
            }
        }
        self.fetches(replica)
    }

    fn store_mirrored(&self, replica: &mut Replica, from: Broker, offset: Offset, sent: Vec<Batch>) -> Vec<Ask> {
        if let Some(first) = self.raise_first(replica, &sent) {
            return first;
        }
        let own = replica.epoch;
        let store = |b: &Batch| Batch {
            producer_id: self.design.pid_mapping.apply(b.producer_id),
            leader_epoch: self.design.leader_epochs.apply(b.leader_epoch, own),
            ..*b
        };
        let stored: Vec<Batch> = sent.iter().map(store).collect();
        let at = replica.journal.len();
        let result = self.append(replica, &stored, Origin::Replication, Place::ReplicationAppend { mirrored: true });
        let outcome = match result {
            Ok(base) => Outcome::Appended(base),
            Err(rejection) => Outcome::Rejected(rejection),
        };
        replica.journal.insert(at, Effect::Copy { from, offset, sent, stored, outcome });
        if result.is_err() {
            replica.journal.push(Effect::Anomaly(Anomaly::FalseRejection));
            return vec![self.set_state(replica, MirrorState::Failed)];
        }
        let mut asks = self.advance_high_watermark(replica);
        asks.extend(self.fetches(replica));
        asks
    }

    /// The leader epoch of a mirror is not below that of any batch in its log (MIR-7; KIP-1279: EPOCH_FENCING). None if it is high enough;
    /// otherwise the batches are fetched again once it is.
    fn raise_first(&self, replica: &mut Replica, batches: &[Batch]) -> Option<Vec<Ask>> {
        let highest = batches.iter().map(|b| b.leader_epoch).max().unwrap_or(LeaderEpoch(0));
        if self.design.epoch_fencing == EpochFencing::Off || highest <= replica.epoch {
            return None;
        }
        replica.wanted_epoch = highest;
        Some(vec![Ask::RaiseEpoch(replica.epoch, highest)])
    }
}

/// Where the epoch that the source recorded ends in this log; 0 if none was recorded or this log does not know it.
fn end_of_recorded_epoch(replica: &Replica, recorded: Option<LastMirrored>) -> Offset {
    let known = recorded.and_then(|r| r.epoch).and_then(|epoch| end_offset_for(&replica.durable.log, None, epoch));
    known.map_or(Offset(0), |known| known.end)
}
