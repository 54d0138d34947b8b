//! A replica: a broker's copy of the partition, with its log, its producer state, and its part in leading, following and mirroring.
//!
//! Pure transitions. Each handler changes the state, notes the effects in the journal, and returns what to do besides. A handler that
//! returns none does not take its message: whoever sent it sends it again.

mod follow;
mod lead;
mod mirroring;
mod source;
mod stop;

use std::sync::Arc;

use crate::barrier::{Barriers, Place};
use crate::batch::{Batch, Log, log_end};
use crate::design::{Design, Fault, LeaderTruncation, Timing};
use crate::effect::{Effect, Outcome, TruncateWhy};
use crate::ids::{Broker, Cluster, LeaderEpoch, Offset};
use crate::message::{FetchRequest, FetchResponse, Request};
use crate::mirror::{LastMirrored, MirrorMeta, MirrorState};
use crate::psm::{self, AbortedTxn, Finding, Origin, Pending, Psm, Rejection, Snapshots, recover, truncate};
use crate::truth::{Anomaly, foreign_marker};

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Durable {
    /// The log. An acknowledged batch survives the crash of a process.
    pub log: Log,
    /// The base offsets of the segments, in order; the first is 0 and is not kept.
    pub segments: Vec<Offset>,
    /// The producer snapshots on disk.
    pub snapshots: Snapshots,
    /// The transaction index.
    pub aborted: Vec<AbortedTxn>,
    /// The cluster that the partition mirrors or last mirrored, as this broker knows it.
    pub source: Option<Cluster>,
}

/// What a replica does for its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Not yet told.
    None,
    /// It leads.
    Leader,
    /// It follows.
    Follower,
}

/// An append that waits until the in-sync replicas have it (acks=all).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiting {
    /// The high watermark that it waits for.
    pub until: Offset,
    /// The request.
    pub request: Request,
    /// What it will be answered.
    pub outcome: Outcome,
    /// Whether it is a coordinator's marker.
    pub marker: bool,
}

/// A replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// What survives a crash.
    pub durable: Arc<Durable>,
    /// The producer state; lost in a crash, as all below.
    pub psm: Psm,
    /// What it does.
    pub role: Role,
    /// The leader's epoch.
    pub epoch: LeaderEpoch,
    /// The high watermark.
    pub high_watermark: Offset,
    /// The first offset that was not both decided and replicated when the log last asked its producer state (LOG-3).
    pub first_unstable: Option<Offset>,
    /// A leader's: whether the follower is in sync.
    pub in_sync: bool,
    /// A leader's: the log end offset that the follower last asked for.
    pub follower_end: Option<Offset>,
    /// A leader's: the epoch that it has asked the controller for; it waits until it has it.
    pub wanted_epoch: LeaderEpoch,
    /// The mirror's metadata as it knows them.
    pub mirror: MirrorMeta,
    /// A leader's: how far a stop or start sequence has come.
    pub progress: u8,
    /// A leader's: what its source's last stop recorded, once known.
    pub align_to: Option<Option<LastMirrored>>,
    /// A leader's: the appends that are not yet answered.
    pub waiting: Vec<Waiting>,
    /// False between a crash and the recovery.
    pub up: bool,
    /// The effects of the step that is being taken. Empty between steps.
    pub journal: Vec<Effect>,
}

/// What a replica is and which rules it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// The rules.
    pub design: Design,
    /// The broker.
    pub broker: Broker,
    /// Whether the cluster has a second replica.
    pub has_peer: bool,
    /// Whether fetches may carry several batches.
    pub bulk: bool,
    /// The cluster that it mirrors at the start.
    pub mirrors: Option<Cluster>,
}

/// What a handler asks for besides the change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Go on with the sequence that is being carried out.
    NextStep,
    /// Fetch from the leader of this cluster: the source's or the own.
    Fetch(Cluster, FetchRequest),
    /// Answer a reader.
    Respond(FetchResponse),
    /// Ask the source what its last stop recorded.
    DescribeMirror(Cluster),
    /// Answer it.
    Describe(Option<LastMirrored>),
    /// Answer a producer.
    Answer(Request, Outcome, bool),
    /// Tell a producer that its append will not be answered.
    GiveUp(Request),
    /// Tell the controller the mirror's metadata.
    StoreMirror,
    /// The same, and that this line of the operator's script is done with it.
    Done(u8),
    /// Ask the controller who leads.
    WhoLeads,
    /// Tell the controller that the follower has caught up.
    FollowerInSync,
    /// Tell the controller to raise the leader epoch from the first to the second.
    RaiseEpoch(LeaderEpoch, LeaderEpoch),
}

impl ReplicaConfig {
    /// A new replica with an empty log.
    #[must_use]
    pub fn initial(&self) -> Replica {
        let leads = self.broker.number == 0;
        let durable = Durable { source: self.mirrors, ..Durable::default() };
        Replica {
            role: if leads { Role::Leader } else { Role::Follower },
            in_sync: leads && self.has_peer,
            mirror: MirrorMeta::initial(self.mirrors),
            up: true,
            ..self.blank(&Arc::new(durable))
        }
    }

    fn blank(&self, durable: &Arc<Durable>) -> Replica {
        Replica {
            durable: Arc::clone(durable),
            psm: Psm::default(),
            role: Role::None,
            epoch: LeaderEpoch::default(),
            high_watermark: Offset(0),
            first_unstable: None,
            in_sync: false,
            follower_end: None,
            wanted_epoch: LeaderEpoch::default(),
            mirror: MirrorMeta::initial(self.mirrors),
            progress: 0,
            align_to: None,
            waiting: Vec::new(),
            up: false,
            journal: Vec::new(),
        }
    }

    /// A replica after a crash: nothing but what is durable.
    #[must_use]
    pub fn crashed(&self, durable: &Arc<Durable>) -> Replica {
        Replica { journal: vec![Effect::Crash], ..self.blank(durable) }
    }

    /// The replica that starts on what survived a crash: segment recovery (PSM-11).
    #[must_use]
    pub fn recovered(&self, durable: &Arc<Durable>) -> Replica {
        let mut replica = Replica { up: true, journal: vec![Effect::Recover { clean: false }], ..self.blank(durable) };
        let recovered = recover(&durable.log, &durable.segments, &durable.snapshots, &durable.aborted, &self.barriers(&replica));
        replica.psm = recovered.psm;
        replica.look_for_unstable();
        if recovered.snapshots != durable.snapshots || recovered.aborted != durable.aborted {
            let durable = replica.durable_mut();
            durable.snapshots = recovered.snapshots;
            durable.aborted = recovered.aborted;
        }
        replica
    }

    /// The broker stops in good order and starts again: the state comes from the snapshot that the stop took (PSM-12).
    pub fn restart(&self, replica: &mut Replica) {
        let mut durable = Durable::clone(&replica.durable);
        let end = log_end(&durable.log);
        if self.design.fault != Fault::RestartWithoutSnapshot {
            psm::take(&replica.psm, &mut durable.snapshots, end, self.design.fault);
        }
        let psm = psm::load_at_start(&mut durable.snapshots, &durable.log, &durable.segments);
        let journal = vec![Effect::Crash, Effect::Recover { clean: true }];
        *replica = Replica { psm, up: true, journal, ..self.blank(&Arc::new(durable)) };
        replica.look_for_unstable();
    }

    /// A new segment begins: a snapshot is taken at its base (LOG-4). None if the active segment is empty.
    #[must_use]
    pub fn roll(&self, replica: &mut Replica) -> Option<()> {
        let end = log_end(&replica.durable.log);
        if end <= replica.durable.segments.last().copied().unwrap_or_default() {
            return None;
        }
        let Replica { durable, psm, .. } = replica;
        let durable = Arc::make_mut(durable);
        durable.segments.push(end);
        psm::take(psm, &mut durable.snapshots, end, self.design.fault);
        replica.follow_log_end();
        replica.journal.push(Effect::Roll(end));
        Some(())
    }

    fn barriers(&self, replica: &Replica) -> Barriers {
        Barriers::new(&self.design, replica.durable.source)
    }

    /// One append call (LOG-1): analysis of all batches, write, then producer state.
    fn append(&self, replica: &mut Replica, batches: &[Batch], origin: Origin, place: Place) -> Result<Offset, Rejection> {
        let base = log_end(&replica.durable.log);
        let barriers = self.barriers(replica);
        let mut psm = replica.psm.clone();
        let mut pending = Pending::default();
        let mut findings = Vec::with_capacity(batches.len());
        for (i, batch) in batches.iter().enumerate() {
            let offset = Offset::end_of(base.index() + i);
            match barriers.meet(&mut psm, &mut pending, batch, offset, origin, place) {
                Ok(finding) => findings.push(finding),
                Err(rejection) => {
                    if self.design.timing == Timing::Analysis {
                        // A barrier before this batch has already cleared the live map (BAR-5).
                        replica.psm = psm;
                    }
                    return Err(rejection);
                }
            }
        }
        let aborted = pending.apply(&mut psm);
        replica.psm = psm;
        replica.look_for_unstable();
        replica.durable_mut().log.extend_from_slice(batches);
        if !aborted.is_empty() && self.design.fault != Fault::AbortsNotIndexed {
            replica.durable_mut().aborted.extend(aborted);
        }
        batches.iter().zip(&findings).for_each(|(batch, finding)| note(replica, finding, batch));
        Ok(base)
    }

    fn truncate_to(&self, replica: &mut Replica, to: Offset, why: TruncateWhy) {
        if to >= replica.log_end() {
            // There is nothing to cut, so nothing is built again.
            return;
        }
        let barriers = self.barriers(replica);
        let Replica { durable, psm, .. } = replica;
        let durable = Arc::make_mut(durable);
        durable.log.truncate(to.index());
        durable.segments.retain(|base| *base <= to);
        if self.design.fault != Fault::TruncationKeepsIndex {
            durable.aborted.retain(|t| t.last_offset < to);
        }
        truncate(psm, &mut durable.snapshots, &durable.log, &durable.segments, &barriers);
        replica.follow_log_end();
        replica.journal.push(Effect::Truncate { to, why });
        if self.design.leader_truncation == LeaderTruncation::ForgetsFollower {
            replica.follower_end = None;
        }
    }

    fn set_state(&self, replica: &mut Replica, to: MirrorState) -> Ask {
        replica.mirror.state = to;
        replica.journal.push(Effect::MirrorState { to, source: None });
        Ask::StoreMirror
    }
}

fn note(replica: &mut Replica, finding: &Finding, batch: &Batch) {
    if let Some(anomaly) = finding.tolerated {
        replica.journal.push(Effect::Anomaly(anomaly));
    }
    if finding.ends_transaction_at.is_some_and(|first| foreign_marker(&replica.durable.log, first, batch)) {
        replica.journal.push(Effect::Anomaly(Anomaly::ForeignMarker));
    }
}

impl Replica {
    /// The durable state, for a change.
    pub fn durable_mut(&mut self) -> &mut Durable {
        Arc::make_mut(&mut self.durable)
    }

    /// The high watermark becomes this, and what lies below is replicated (Kafka: `UnifiedLog.updateHighWatermark`).
    pub(crate) fn set_high_watermark(&mut self, to: Offset) {
        self.high_watermark = to;
        self.psm.on_high_watermark(to);
        self.look_for_unstable();
    }

    /// After a change that left the log shorter, or its last segment empty: only a high watermark at the end is set anew, and only then
    /// does the log ask its producer state what is unstable now (Kafka: `UnifiedLog.truncateTo`, `roll`).
    fn follow_log_end(&mut self) {
        if self.high_watermark >= self.log_end() {
            self.set_high_watermark(self.log_end());
        }
    }

    /// The log asks its producer state (Kafka: `UnifiedLog.maybeIncrementFirstUnstableOffset`).
    fn look_for_unstable(&mut self) {
        self.first_unstable = self.psm.first_unstable();
    }

    /// The log end offset.
    #[must_use]
    pub fn log_end(&self) -> Offset {
        log_end(&self.durable.log)
    }

    /// The last stable offset.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        self.first_unstable.map_or(self.high_watermark, |offset| offset.min(self.high_watermark))
    }

    /// Whether this replica leads and clients may write to it.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.up && self.role == Role::Leader && self.mirror.state == MirrorState::Stopped
    }
}
