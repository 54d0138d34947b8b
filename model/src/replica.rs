//! A replica: the leader of the partition in one cluster, its log, its producer state and its mirror.
//!
//! Pure transitions. Each handler changes the state, notes the effects in the journal, and returns the messages to send.

use std::sync::Arc;

use crate::barrier::{Barriers, Place};
use crate::batch::{Batch, Kind, Log, log_end};
use crate::design::{Alignment, Design, FetchBound, StopStep, Timing};
use crate::effect::{Effect, Outcome, TruncateWhy};
use crate::ids::{Cluster, Offset};
use crate::mirror::{MirrorMeta, MirrorState};
use crate::psm::{Finding, Origin, Pending, Psm, Rejection, Snapshots, recover, truncate};
use crate::truth::{Anomaly, Author, Ghost, Stint, foreign_marker, is_same_batch};

/// What survives a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Durable {
    /// The log. An acknowledged batch survives the crash of a process.
    pub log: Log,
    /// The producer snapshots on disk.
    pub snapshots: Snapshots,
    /// The mirror's metadata.
    pub mirror: MirrorMeta,
    /// The last mirrored offset that the last stop stored.
    pub last_mirrored_offset: Option<Offset>,
    /// Ground truth: since when the partition is writable.
    pub stint: Ghost<Stint>,
}

/// A replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// What survives a crash.
    pub durable: Arc<Durable>,
    /// The producer state; lost in a crash.
    pub psm: Psm,
    /// How far a stop or start sequence has come; lost in a crash, after which the sequence starts again.
    pub progress: u8,
    /// The offset to align to, once known.
    pub align_to: Option<Offset>,
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
    /// The cluster.
    pub cluster: Cluster,
    /// The cluster that it mirrors at the start.
    pub mirrors: Option<Cluster>,
}

/// What a handler asks for besides the change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Go on with the sequence that is being carried out.
    NextStep,
    /// Fetch from the source from this offset on.
    Fetch(Cluster, Offset),
    /// Ask the source for its last mirrored offset.
    DescribeMirror(Cluster),
    /// Tell the operator that this line of the script is done.
    Done(u8),
}

impl ReplicaConfig {
    /// A new replica with an empty log.
    #[must_use]
    pub fn initial(&self) -> Replica {
        let state = if self.mirrors.is_some() { MirrorState::Mirroring } else { MirrorState::Stopped };
        let durable = Durable {
            log: Vec::new(),
            snapshots: Vec::new(),
            mirror: MirrorMeta { state, source: self.mirrors, command: None },
            last_mirrored_offset: None,
            stint: Ghost::new(if self.mirrors.is_some() { None } else { Some(Offset(0)) }),
        };
        Replica { durable: Arc::new(durable), psm: Psm::default(), progress: 0, align_to: None, up: true, journal: Vec::new() }
    }

    /// What a running replica does first: resume the work of its mirror state (MIR-5).
    #[must_use]
    pub fn resume(&self, replica: &Replica) -> Option<Ask> {
        let source = replica.durable.mirror.source;
        match replica.durable.mirror.state {
            MirrorState::Mirroring => source.map(|s| Ask::Fetch(s, log_end(&replica.durable.log))),
            MirrorState::Stopping => Some(Ask::NextStep),
            MirrorState::LogAlignment => self.begin_alignment(source),
            // Only if a design becomes writable before its last stop step: those steps are not made up for after a crash.
            MirrorState::Stopped => replica.durable.mirror.command.map(Ask::Done),
            MirrorState::Failed => None,
        }
    }

    fn begin_alignment(&self, source: Option<Cluster>) -> Option<Ask> {
        match self.design.alignment {
            Alignment::Lmo => source.map(Ask::DescribeMirror),
            Alignment::None | Alignment::OwnLso => Some(Ask::NextStep),
        }
    }

    /// A replica after a crash: nothing but what is durable.
    #[must_use]
    pub fn crashed(&self, durable: &Arc<Durable>) -> Replica {
        Replica {
            durable: Arc::clone(durable),
            psm: Psm::default(),
            progress: 0,
            align_to: None,
            up: false,
            journal: vec![Effect::Crash],
        }
    }

    /// The replica that starts on what survived: segment recovery of the whole log (PSM-11).
    #[must_use]
    pub fn recovered(&self, durable: &Arc<Durable>) -> Replica {
        let mut replica =
            Replica { up: true, journal: vec![Effect::Recover { log_end: log_end(&durable.log) }], ..self.crashed(durable) };
        let (psm, snapshots) = recover(&durable.log, &self.barriers(&replica));
        replica.psm = psm;
        if snapshots != durable.snapshots {
            replica.durable_mut().snapshots = snapshots;
        }
        replica
    }

    fn barriers(&self, replica: &Replica) -> Barriers {
        Barriers::new(&self.design, replica.durable.mirror.source)
    }

    /// A producer's batch reaches the leader. None while the partition is read-only: the client tries again later (GATE-1).
    pub fn produce(&self, replica: &mut Replica, batch: Batch) -> Option<Outcome> {
        if replica.durable.mirror.state != MirrorState::Stopped {
            return None;
        }
        let known = self.design.psm_ids.sees(batch.producer_id);
        let outcome = match replica.psm.duplicate_of(&batch).filter(|_| known) {
            Some(offset) => {
                let same = replica.durable.log.get(offset.index()).is_some_and(|b| is_same_batch(&b.author, &batch.author));
                if !same {
                    replica.journal.push(Effect::Anomaly(Anomaly::FalseDuplicate));
                }
                Outcome::Duplicate(offset)
            }
            None => self.append_as_leader(replica, batch, Origin::Client),
        };
        replica.journal.insert(0, Effect::Append { origin: Origin::Client, batch, outcome });
        Some(outcome)
    }

    /// A coordinator's marker reaches the leader. None while the partition is read-only: the coordinator tries again later (GATE-1).
    pub fn write_marker(&self, replica: &mut Replica, marker: Batch) -> Option<Outcome> {
        if replica.durable.mirror.state != MirrorState::Stopped {
            return None;
        }
        let outcome = self.append_as_leader(replica, marker, Origin::Coordinator);
        replica.journal.insert(0, Effect::Append { origin: Origin::Coordinator, batch: marker, outcome });
        Some(outcome)
    }

    fn append_as_leader(&self, replica: &mut Replica, batch: Batch, origin: Origin) -> Outcome {
        match self.append(replica, batch, origin, Place::LeaderAppend) {
            Ok(offset) => Outcome::Appended(offset),
            Err(rejection) => {
                replica.journal.push(Effect::Anomaly(Anomaly::FalseRejection));
                Outcome::Rejected(rejection)
            }
        }
    }

    /// One append call of one batch (LOG-1): analysis, write, then producer state.
    fn append(&self, replica: &mut Replica, batch: Batch, origin: Origin, place: Place) -> Result<Offset, Rejection> {
        let offset = log_end(&replica.durable.log);
        let mut psm = replica.psm.clone();
        let mut pending = Pending::default();
        match self.barriers(replica).meet(&mut psm, &mut pending, &batch, offset, origin, place) {
            Ok(finding) => {
                pending.apply(&mut psm);
                replica.psm = psm;
                self.note(replica, &finding, &batch);
                replica.durable_mut().log.push(batch);
                Ok(offset)
            }
            Err(rejection) => {
                if self.design.timing == Timing::Analysis {
                    // The barrier has already cleared the live map (BAR-5).
                    replica.psm = psm;
                }
                Err(rejection)
            }
        }
    }

    fn note(&self, replica: &mut Replica, finding: &Finding, batch: &Batch) {
        if let Some(anomaly) = finding.tolerated {
            replica.journal.push(Effect::Anomaly(anomaly));
        }
        if finding.ends_transaction_at.is_some_and(|first| foreign_marker(&replica.durable.log, first, batch)) {
            replica.journal.push(Effect::Anomaly(Anomaly::ForeignMarker));
        }
    }

    /// A mirror asks for the batch at `offset`. None if there is nothing for it yet (long poll).
    #[must_use]
    pub fn serve_fetch(&self, replica: &Replica, offset: Offset) -> Option<Served> {
        let log = &replica.durable.log;
        let end = log_end(log);
        if offset > end {
            return Some(Served::OutOfRange(end));
        }
        let bound = match self.design.fetch_bound {
            FetchBound::Lso => replica.psm.last_stable_offset(end),
            FetchBound::Hw => end,
        };
        log.get(offset.index()).filter(|_| offset < bound).map(|b| Served::Batch(*b))
    }

    /// A batch arrives from the source (MIR-1).
    pub fn fetched(&self, replica: &mut Replica, offset: Offset, batch: Batch) -> Option<Ask> {
        let source = replica.durable.mirror.source?;
        if replica.durable.mirror.state != MirrorState::Mirroring || offset != log_end(&replica.durable.log) {
            return None;
        }
        let stored = Batch { producer_id: self.design.pid_mapping.apply(batch.producer_id), ..batch };
        let result = self.append(replica, stored, Origin::Replication, Place::ReplicationAppend { mirrored: true });
        let outcome = match result {
            Ok(at) => Outcome::Appended(at),
            Err(rejection) => Outcome::Rejected(rejection),
        };
        replica.journal.insert(0, Effect::Mirror { from: source, offset, sent: batch, stored, outcome });
        if result.is_ok() {
            return Some(Ask::Fetch(source, offset.plus(1)));
        }
        replica.journal.push(Effect::Anomaly(Anomaly::FalseRejection));
        self.set_state(replica, MirrorState::Failed);
        None
    }

    /// The source's log is shorter than this one: the fetcher truncates to its end (MIR-4).
    pub fn out_of_range(&self, replica: &mut Replica, source_end: Offset) -> Option<Ask> {
        let source = replica.durable.mirror.source?;
        if replica.durable.mirror.state != MirrorState::Mirroring {
            return None;
        }
        self.truncate_to(replica, source_end, TruncateWhy::SourceShorter);
        Some(Ask::Fetch(source, log_end(&replica.durable.log)))
    }

    /// The operator stops the mirror: the fetcher goes, the stop sequence begins (STOP-1).
    pub fn stop(&self, replica: &mut Replica, line: u8) -> Option<Ask> {
        let state = replica.durable.mirror.state;
        if !matches!(state, MirrorState::Mirroring | MirrorState::LogAlignment | MirrorState::Failed) {
            return None;
        }
        replica.durable_mut().mirror.command = Some(line);
        replica.progress = 0;
        replica.align_to = None;
        self.set_state(replica, MirrorState::Stopping);
        Some(Ask::NextStep)
    }

    /// The operator starts a mirror of `source` (ALI-1).
    pub fn start(&self, replica: &mut Replica, source: Cluster, line: u8) -> Option<Ask> {
        if replica.durable.mirror.state != MirrorState::Stopped {
            return None;
        }
        let durable = replica.durable_mut();
        durable.mirror = MirrorMeta { source: Some(source), command: Some(line), ..durable.mirror };
        durable.stint = Ghost::new(None);
        replica.progress = 0;
        replica.durable_mut().mirror.state = MirrorState::LogAlignment;
        replica.journal.push(Effect::MirrorState { to: MirrorState::LogAlignment, source: Some(source) });
        self.begin_alignment(Some(source))
    }

    /// The source has told its last mirrored offset.
    pub fn align(&self, replica: &mut Replica, last_mirrored: Option<Offset>) -> Option<Ask> {
        if replica.durable.mirror.state != MirrorState::LogAlignment || replica.align_to.is_some() {
            return None;
        }
        replica.align_to = Some(last_mirrored.unwrap_or_default());
        Some(Ask::NextStep)
    }

    /// The next durable step of the sequence that is being carried out.
    pub fn next_step(&self, replica: &mut Replica) -> Vec<Ask> {
        match replica.durable.mirror.state {
            MirrorState::Stopping | MirrorState::Stopped if replica.durable.mirror.command.is_some() => {
                self.next_stop_step(replica)
            }
            MirrorState::LogAlignment => self.next_alignment_step(replica),
            _ => Vec::new(),
        }
    }

    fn next_alignment_step(&self, replica: &mut Replica) -> Vec<Ask> {
        let end = log_end(&replica.durable.log);
        let target = match self.design.alignment {
            Alignment::None => end,
            Alignment::OwnLso => replica.psm.last_stable_offset(end),
            Alignment::Lmo => replica.align_to.unwrap_or_default(),
        };
        if replica.progress == 0 && target < end {
            self.truncate_to(replica, target, TruncateWhy::Alignment);
            replica.progress = 1;
            return vec![Ask::NextStep];
        }
        replica.progress = 0;
        replica.align_to = None;
        self.set_state(replica, MirrorState::Mirroring);
        let line = replica.durable_mut().mirror.command.take();
        let fetch = replica.durable.mirror.source.map(|s| Ask::Fetch(s, log_end(&replica.durable.log)));
        fetch.into_iter().chain(line.map(Ask::Done)).collect()
    }

    fn next_stop_step(&self, replica: &mut Replica) -> Vec<Ask> {
        // Steps without an effect are passed over, so that they cost no state.
        while let Some(step) = self.design.stop_steps().nth(usize::from(replica.progress)) {
            replica.progress += 1;
            let end = log_end(&replica.durable.log);
            match step {
                StopStep::TruncateToLso => {
                    let lso = replica.psm.last_stable_offset(end);
                    if lso == end {
                        continue;
                    }
                    self.truncate_to(replica, lso, TruncateWhy::StopToLso);
                }
                StopStep::RecordLmo => {
                    replica.durable_mut().last_mirrored_offset = Some(end);
                    replica.journal.push(Effect::LastMirroredOffset(end));
                }
                StopStep::WriteBarrier => self.write_barrier(replica),
                StopStep::BecomeWritable => self.become_writable(replica),
            }
            break;
        }
        if self.design.stop_steps().nth(usize::from(replica.progress)).is_some() {
            return vec![Ask::NextStep];
        }
        replica.progress = 0;
        replica.durable_mut().mirror.command.take().map(Ask::Done).into_iter().collect()
    }

    fn write_barrier(&self, replica: &mut Replica) {
        let Some(source) = replica.durable.mirror.source else { return };
        let author = Ghost::new(Author { writer: None, cluster: self.cluster, serial: 0 });
        let batch = Batch::barrier(source, author);
        let outcome = self.append_as_leader(replica, batch, Origin::Coordinator);
        replica.journal.insert(0, Effect::Append { origin: Origin::Coordinator, batch, outcome });
    }

    fn become_writable(&self, replica: &mut Replica) {
        let end = log_end(&replica.durable.log);
        replica.durable_mut().stint = Ghost::new(Some(end));
        self.set_state(replica, MirrorState::Stopped);
    }

    fn set_state(&self, replica: &mut Replica, to: MirrorState) {
        replica.durable_mut().mirror.state = to;
        replica.journal.push(Effect::MirrorState { to, source: None });
    }

    fn truncate_to(&self, replica: &mut Replica, to: Offset, why: TruncateWhy) {
        let barriers = self.barriers(replica);
        let Replica { durable, psm, .. } = replica;
        let durable = Arc::make_mut(durable);
        durable.log.truncate(to.index());
        truncate(psm, &mut durable.snapshots, &durable.log, to, &barriers);
        replica.journal.push(Effect::Truncate { to, why });
    }
}

/// What a source answers to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The batch.
    Batch(Batch),
    /// The source's log ends here, before the offset that was asked for.
    OutOfRange(Offset),
}

impl Replica {
    /// The durable state, for a change.
    pub fn durable_mut(&mut self) -> &mut Durable {
        Arc::make_mut(&mut self.durable)
    }

    /// The high watermark: with one replica a cluster, the log end.
    #[must_use]
    pub fn high_watermark(&self) -> Offset {
        log_end(&self.durable.log)
    }

    /// The last stable offset.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        self.psm.last_stable_offset(self.high_watermark())
    }

    /// Whether a batch at this offset is a barrier.
    #[must_use]
    pub fn is_barrier_at(&self, offset: Offset) -> bool {
        self.durable.log.get(offset.index()).is_some_and(|b| matches!(b.kind, Kind::Barrier { .. }))
    }
}
