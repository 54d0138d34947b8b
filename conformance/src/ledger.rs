//! The ground truth about every batch in every log: who wrote it and how it came there. No replica knows any of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::target::{Observed, ObservedState};
use crate::trace::format::{MirrorState, Op, Origin, ReplicaState, Trace};

/// How a batch came into the partition of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was appended by a leader of this cluster.
    Local,
    /// It was mirrored from another cluster, by this replica or by the leader from which this replica has it.
    Mirrored,
}

/// The truth about one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The real producer, or none for a barrier.
    pub by: Option<String>,
    /// How the batch came into this cluster.
    pub came: Came,
    /// The cluster's phase in which the batch came; see [`Ledger::phase`].
    pub phase: u32,
    /// The cluster whose leader wrote it.
    pub cluster: String,
    /// Whether it is the work of a stopping mirror.
    pub by_stop: bool,
    /// The number of the append that wrote it; a copy keeps it, so that two barriers can be told apart.
    pub serial: u64,
}

/// The labels of all replicas.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    replicas: BTreeMap<String, ReplicaLabels>,
    phases: BTreeMap<String, Phase>,
    /// The replica that leads each cluster's partition: the first that is declared, until another one does.
    leaders: BTreeMap<String, String>,
    /// The clusters whose partitions have begun to mirror after the start.
    started: BTreeSet<String>,
    axes: BTreeMap<String, String>,
    appends: u64,
}

#[derive(Clone, Debug)]
struct ReplicaLabels {
    cluster: String,
    /// The cluster that is mirrored, or was mirrored last.
    source: Option<String>,
    labels: BTreeMap<i64, Label>,
    /// What the last operation cut off.
    cut: BTreeMap<i64, Label>,
}

#[derive(Clone, Copy, Debug)]
struct Phase {
    number: u32,
    writable: bool,
}

impl Ledger {
    /// The empty logs at the start of `trace`.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let mut ledger = Self { axes: trace.scenario.axes.clone(), ..Self::default() };
        for replica in &trace.replicas {
            let labels = ReplicaLabels {
                cluster: replica.cluster.clone(),
                source: replica.mirrors.clone(),
                labels: BTreeMap::new(),
                cut: BTreeMap::new(),
            };
            ledger.replicas.insert(replica.name.clone(), labels);
            ledger.leaders.entry(replica.cluster.clone()).or_insert_with(|| replica.name.clone());
            let writable = replica.mirrors.is_none();
            ledger.phases.entry(replica.cluster.clone()).or_insert(Phase { number: u32::from(!writable), writable });
        }
        ledger
    }

    /// The number of the phase that the cluster of `replica` is in. Writable phases are even and read-only ones odd, so that
    /// a stop and the writing that follows it are the phases 2k-1 and 2k of the same [stint](Self::stint).
    #[must_use]
    pub fn phase(&self, replica: &str) -> u32 {
        self.replicas.get(replica).and_then(|r| self.phases.get(&r.cluster)).map_or(0, |p| p.number)
    }

    /// The stint to which a phase belongs: from the start of a mirror to the start of the next one.
    #[must_use]
    pub const fn stint(phase: u32) -> u32 {
        phase.div_ceil(2)
    }

    /// The cluster of a replica.
    #[must_use]
    pub fn cluster(&self, replica: &str) -> Option<&str> {
        self.replicas.get(replica).map(|r| r.cluster.as_str())
    }

    /// The cluster that a replica mirrors, or mirrored last.
    #[must_use]
    pub fn source(&self, replica: &str) -> Option<&str> {
        self.replicas.get(replica)?.source.as_deref()
    }

    /// The replica that leads the partition of a cluster.
    #[must_use]
    pub fn leader_of_cluster(&self, cluster: &str) -> Option<&str> {
        self.leaders.get(cluster).map(String::as_str)
    }

    /// The replica that leads the partition that `replica` belongs to.
    #[must_use]
    pub fn leader(&self, replica: &str) -> Option<&str> {
        self.leader_of_cluster(self.cluster(replica)?)
    }

    /// The replicas that lead, in order of cluster.
    pub fn leaders(&self) -> impl Iterator<Item = &str> {
        self.leaders.values().map(String::as_str)
    }

    /// Whether the partition of a cluster has begun to mirror after the start of the trace.
    #[must_use]
    pub fn has_started_a_mirror(&self, cluster: &str) -> bool {
        self.started.contains(cluster)
    }

    /// The choice that the trace's design makes on an axis.
    #[must_use]
    pub fn axis(&self, axis: &str) -> Option<&str> {
        self.axes.get(axis).map(String::as_str)
    }

    /// The labels of what the last operation cut off a replica's log.
    #[must_use]
    pub fn cut(&self, replica: &str) -> Option<&BTreeMap<i64, Label>> {
        self.replicas.get(replica).map(|r| &r.cut)
    }

    /// The labels of a replica's batches by offset.
    #[must_use]
    pub fn labels(&self, replica: &str) -> Option<&BTreeMap<i64, Label>> {
        self.replicas.get(replica).map(|r| &r.labels)
    }

    /// Adds what `op` wrote, given its outcome and the state after it.
    pub fn apply(&mut self, op: &Op, outcome: &Observed, after: &ObservedState) {
        match (op, outcome) {
            (Op::Append { replica, origin, by, .. }, Observed::Appended { base_offset, .. }) => {
                self.appends = self.appends.saturating_add(1);
                let cluster = self.cluster(replica).unwrap_or_default().to_owned();
                let label = Label {
                    by: by.clone(),
                    came: Came::Local,
                    phase: self.phase(replica),
                    cluster,
                    // The older way to tell, of traces that do not name a stop as the origin.
                    by_stop: *origin == Origin::StoppingMirror || after.mirror_state == MirrorState::Stopping,
                    serial: self.appends,
                };
                if let Some(own) = self.replicas.get_mut(replica) {
                    own.labels.insert(*base_offset, label);
                }
            }
            (Op::Mirror { replica, from, .. }, Observed::Appended { base_offset, last_offset }) => {
                self.copy(replica, from, *base_offset..=*last_offset);
            }
            (Op::MirrorState { replica, to, source } | Op::LearnMirrorState { replica, to, source }, Observed::Done) => {
                self.turn(replica, *to, source.as_deref());
            }
            (Op::Lead { replica }, Observed::Done) => {
                if let Some(cluster) = self.cluster(replica).map(str::to_owned) {
                    self.leaders.insert(cluster, replica.clone());
                }
            }
            _ => {}
        }
        // Whatever cut the log (a truncation, a recovery that found a torn end), its labels go with it.
        if let Some(own) = self.replicas.get_mut(op.replica()) {
            own.cut = own.labels.split_off(&after.log_end_offset);
        }
    }

    fn copy(&mut self, to: &str, from: &str, offsets: std::ops::RangeInclusive<i64>) {
        let phase = self.phase(to);
        let (Some(source), Some(own)) = (self.replicas.get(from), self.replicas.get(to)) else { return };
        let same_cluster = source.cluster == own.cluster;
        let copied: Vec<(i64, Label)> = source
            .labels
            .range(offsets)
            .map(|(offset, label)| {
                let label = if same_cluster { label.clone() } else { Label { came: Came::Mirrored, phase, ..label.clone() } };
                (*offset, label)
            })
            .collect();
        if let Some(own) = self.replicas.get_mut(to) {
            own.labels.extend(copied);
        }
    }

    /// The phase of a cluster is that of its leader: what a follower learns late, or a deposed leader does, does not turn it.
    fn turn(&mut self, replica: &str, to: MirrorState, source: Option<&str>) {
        let leads = self.leader(replica) == Some(replica);
        let Some(own) = self.replicas.get_mut(replica) else { return };
        own.source = source.map(str::to_owned).or(own.source.take());
        if !leads {
            return;
        }
        if to == MirrorState::LogAlignment {
            self.started.insert(own.cluster.clone());
        }
        let Some(phase) = self.phases.get_mut(&own.cluster) else { return };
        let writable = match to {
            MirrorState::Stopped => true,
            MirrorState::LogAlignment | MirrorState::Mirroring => false,
            MirrorState::EpochFencing
            | MirrorState::UleRecovery
            | MirrorState::Pausing
            | MirrorState::Paused
            | MirrorState::Stopping
            | MirrorState::Failed => return,
        };
        if writable != phase.writable {
            *phase = Phase { number: phase.number.saturating_add(1), writable };
        }
    }

    /// The state of `replica` with the real producers filled in.
    #[must_use]
    pub fn label(&self, replica: &str, state: ObservedState) -> ReplicaState {
        let authors = self.labels(replica).map(|labels| labels.iter().map(|(o, l)| (*o, l.by.clone())).collect());
        state.labelled(&authors.unwrap_or_default())
    }
}
