//! A leader: appends of clients and coordinators, answers to readers, the in-sync follower and the high watermark.

use super::{Ask, Replica, ReplicaConfig, Role, Waiting};
use crate::barrier::Place;
use crate::batch::Batch;
use crate::design::{Divergence, Fault, FetchBound, Gate, OwnEpoch};
use crate::effect::{Effect, Outcome};
use crate::epochs::end_offset_for;
use crate::ids::{LeaderEpoch, Offset};
use crate::message::{FetchRequest, FetchResponse, Request};
use crate::mirror::{MirrorMeta, MirrorState};
use crate::psm::Origin;
use crate::truth::{Anomaly, is_same_batch};

impl ReplicaConfig {
    /// The controller makes this replica the leader; it takes up the work of the mirror's state (MIR-5).
    pub fn lead(&self, replica: &mut Replica, epoch: LeaderEpoch, in_sync: bool, mirror: MirrorMeta) -> Vec<Ask> {
        replica.role = Role::Leader;
        replica.epoch = epoch;
        replica.wanted_epoch = LeaderEpoch::default();
        replica.in_sync = in_sync;
        replica.follower_end = None;
        replica.mirror = mirror;
        self.learn_source(replica, mirror);
        replica.progress = mirror.progress;
        replica.align_to = None;
        replica.journal.push(Effect::Lead(epoch));
        let mut asks = self.advance_high_watermark(replica);
        replica.mirror.stint = mirror.stint.in_log_until(replica.log_end());
        if replica.mirror != mirror {
            asks.push(Ask::StoreMirror);
        }
        asks.extend(self.resume(replica));
        asks
    }

    /// The follower has gone: the leader is the only one in sync.
    pub fn follower_lost(&self, replica: &mut Replica) -> Option<Vec<Ask>> {
        if replica.role != Role::Leader {
            return Some(Vec::new());
        }
        replica.in_sync = false;
        replica.follower_end = None;
        Some(self.advance_high_watermark(replica))
    }

    /// The high watermark rises to what all in-sync replicas have (LOG-2), and appends that waited for it are answered.
    pub(super) fn advance_high_watermark(&self, replica: &mut Replica) -> Vec<Ask> {
        let end = replica.log_end();
        let alone = self.design.fault == Fault::HighWatermarkAlone;
        let replicated = if replica.in_sync && !alone { replica.follower_end.unwrap_or_default().min(end) } else { end };
        if replicated > replica.high_watermark {
            replica.set_high_watermark(replicated);
            replica.journal.push(Effect::HighWatermark(replicated));
        }
        let reached = replica.high_watermark;
        let (answered, waiting) = replica.waiting.iter().partition(|w| w.until <= reached);
        replica.waiting = waiting;
        answered.into_iter().map(|w: Waiting| Ask::Answer(w.request, w.outcome, w.marker)).collect()
    }

    /// A producer's batch reaches the leader. None while the partition is read-only: the client tries again later (GATE-1).
    pub fn produce(&self, replica: &mut Replica, request: Request) -> Option<Vec<Ask>> {
        let open = match replica.mirror.state {
            MirrorState::Stopped => true,
            MirrorState::Stopping => self.design.gate == Gate::Stopping,
            _ => self.design.fault == Fault::WritableWhileMirroring,
        };
        if replica.role != Role::Leader || !open {
            return None;
        }
        let batch = request.batch;
        let known = self.design.psm_ids.sees(batch.producer_id);
        let known = known && self.design.fault != Fault::ResendCountsAsNew;
        let outcome = match replica.psm.duplicate_of(&batch).filter(|_| known) {
            Some(offset) => {
                let same = replica.durable.log.get(offset.index()).is_some_and(|b| is_same_batch(b, &batch));
                if !same {
                    replica.journal.push(Effect::Suspect { anomaly: Anomaly::FalseDuplicate, batch });
                }
                replica.journal.insert(0, Effect::Append { origin: Origin::Client, batch, outcome: Outcome::Duplicate(offset) });
                Outcome::Duplicate(offset)
            }
            None => self.append_as_leader(replica, batch, Origin::Client),
        };
        Some(self.answer_when_replicated(replica, request, outcome, false))
    }

    /// A coordinator's marker reaches the leader. None while the partition is read-only: the coordinator tries again later (GATE-1).
    pub fn write_marker(&self, replica: &mut Replica, request: Request) -> Option<Vec<Ask>> {
        let open = replica.is_writable() || self.design.fault == Fault::MarkersWhileMirroring;
        if replica.role != Role::Leader || !open {
            return None;
        }
        let outcome = self.append_as_leader(replica, request.batch, Origin::Coordinator);
        Some(self.answer_when_replicated(replica, request, outcome, true))
    }

    fn answer_when_replicated(&self, replica: &mut Replica, request: Request, outcome: Outcome, marker: bool) -> Vec<Ask> {
        match outcome {
            Outcome::Rejected(_) => vec![Ask::Answer(request, outcome, marker)],
            Outcome::Appended(at) | Outcome::Duplicate(at) => {
                if self.design.fault == Fault::AcknowledgedTooEarly {
                    let mut asks = self.advance_high_watermark(replica);
                    asks.push(Ask::Answer(request, outcome, marker));
                    return asks;
                }
                replica.waiting.push(Waiting { until: at.plus(1), request, outcome, marker });
                self.advance_high_watermark(replica)
            }
        }
    }

    pub(super) fn append_as_leader(&self, replica: &mut Replica, batch: Batch, origin: Origin) -> Outcome {
        let stored = Batch { leader_epoch: replica.epoch, ..batch };
        let from = replica.journal.len();
        let outcome = match self.append(replica, &[stored], origin, Place::LeaderAppend) {
            Ok(offset) => Outcome::Appended(offset),
            Err(rejection) => {
                replica.journal.push(Effect::Suspect { anomaly: Anomaly::FalseRejection, batch });
                Outcome::Rejected(rejection)
            }
        };
        replica.journal.insert(from, Effect::Append { origin, batch, outcome });
        outcome
    }

    /// The leader's epoch counts as an epoch of its log from the moment when it leads; by design not while it copies another cluster's
    /// (EPOCH-7).
    fn own_epoch(&self, replica: &Replica) -> Option<LeaderEpoch> {
        let always = self.design.own_epoch == OwnEpoch::Always;
        let counts = (always || replica.mirror.state == MirrorState::Stopped) && self.design.fault != Fault::OwnEpochUnknown;
        counts.then_some(replica.epoch)
    }

    /// What a leader tells a reader whose log is not a beginning of its own.
    fn parting(&self, replica: &Replica, request: &FetchRequest) -> Option<FetchResponse> {
        let end = replica.log_end();
        let diverging =
            request.last_epoch.map(|asked| (asked, end_offset_for(&replica.durable.log, self.own_epoch(replica), asked)));
        match diverging {
            // An epoch that the leader has never seen is answered like an offset that it does not have.
            Some((_, None)) => Some(FetchResponse::OutOfRange(end)),
            Some((asked, Some(known))) if known.epoch < asked || known.end < request.offset => {
                Some(FetchResponse::Diverging(known))
            }
            _ if request.offset > end => Some(FetchResponse::OutOfRange(end)),
            _ => None,
        }
    }

    /// A reader that is refused although its log is not longer asks the same again, for as long as the leader's log stays as it is
    /// (EPOCH-6).
    fn refuse(request: &FetchRequest, parting: FetchResponse) -> Option<Vec<Ask>> {
        match parting {
            FetchResponse::OutOfRange(end) if end >= request.offset => None,
            _ => Some(vec![Ask::Respond(parting)]),
        }
    }

    fn batches(replica: &Replica, request: &FetchRequest, bound: Offset) -> Option<Vec<Batch>> {
        let available = replica.durable.log.get(request.offset.index()..bound.index()).unwrap_or_default();
        match (request.bulk, available.len()) {
            // A fetch of all that there is differs from a fetch of one only if there are several.
            (true, 0 | 1) => None,
            (true, _) => Some(available.to_vec()),
            (false, _) => Some(available.first().copied().into_iter().collect()),
        }
    }

    /// A mirror asks for batches (MIR-2). None if there is nothing for it yet (long poll).
    #[must_use]
    pub fn serve_mirror(&self, replica: &Replica, request: &FetchRequest) -> Option<Vec<Ask>> {
        if replica.role != Role::Leader {
            return None;
        }
        if let Some(parting) = self.parting(replica, request) {
            return Self::refuse(request, parting);
        }
        let bound = match self.design.fetch_bound {
            _ if self.design.fault == Fault::MirrorReadsToEnd => replica.log_end(),
            FetchBound::Lso => replica.last_stable_offset(),
            FetchBound::Hw => replica.high_watermark,
        };
        let batches = Self::batches(replica, request, bound).filter(|b| !b.is_empty())?;
        Some(vec![Ask::Respond(FetchResponse::Batches { offset: request.offset, batches, high_watermark: replica.high_watermark })])
    }

    /// The follower asks for batches, and thereby tells how far it is. None if nothing is new.
    pub fn serve_follower(&self, replica: &mut Replica, request: &FetchRequest) -> Option<Vec<Ask>> {
        if replica.role != Role::Leader {
            return None;
        }
        if let Some(parting) = self.parting(replica, request) {
            return Self::refuse(request, parting);
        }
        let batches = Self::batches(replica, request, replica.log_end())?;
        let mut asks = Vec::new();
        let news = replica.follower_end != Some(request.offset) && !request.bulk;
        if news {
            replica.follower_end = Some(request.offset);
            let caught_up = request.offset >= replica.high_watermark || self.design.fault == Fault::InSyncTooEarly;
            if !replica.in_sync && caught_up {
                replica.in_sync = true;
                asks.push(Ask::FollowerInSync);
            }
            asks.extend(self.advance_high_watermark(replica));
        }
        let known = request.high_watermark.unwrap_or_default();
        if !news && batches.is_empty() && known >= replica.high_watermark.min(request.offset) {
            return None;
        }
        let high_watermark = replica.high_watermark;
        asks.push(Ask::Respond(FetchResponse::Batches { offset: request.offset, batches, high_watermark }));
        Some(asks)
    }

    /// The epoch with which a reader looks for divergence (EPOCH-5).
    pub(super) fn last_epoch(&self, replica: &Replica, of_source: bool) -> Option<LeaderEpoch> {
        let looks = match self.design.divergence {
            Divergence::None => false,
            Divergence::Followers => !of_source,
            Divergence::All => true,
        };
        crate::epochs::latest_epoch(&replica.durable.log).filter(|_| looks)
    }
}
