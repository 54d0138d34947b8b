//! Properties and witnesses: what must never be seen, and what must be seen so that the former means something.

use crate::batch::Kind;
use crate::design::Barrier;
use crate::ids::Cluster;
use crate::mirror::MirrorState;
use crate::scenario::{Scenario, State};
use crate::truth::{self, Anomaly};

/// The promise that a property belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// A producer id stands for one producer.
    Uniqueness,
    /// A partition becomes writable without anything inherited.
    CleanSlate,
    /// Nothing goes wrong without a signal, and no honest producer is refused.
    SilentCorruption,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 3] = [Self::Uniqueness, Self::CleanSlate, Self::SilentCorruption];

    /// The id.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Uniqueness => "uniqueness",
            Self::CleanSlate => "clean-slate",
            Self::SilentCorruption => "silent-corruption",
        }
    }
}

/// A property of every reachable state.
#[derive(Debug)]
pub struct PropertySpec {
    /// The id.
    pub id: &'static str,
    /// The requirement that it states.
    pub requirement: &'static str,
    /// The promise that it belongs to.
    pub group: Group,
    /// One sentence.
    pub about: &'static str,
    /// Whether a state keeps it.
    pub condition: fn(&Scenario, &State) -> bool,
}

/// Something that must be reachable.
#[derive(Debug)]
pub struct WitnessSpec {
    /// The id.
    pub id: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Whether the scenario can reach it at all.
    pub applies: fn(&Scenario) -> bool,
    /// Whether a state shows it.
    pub condition: fn(&Scenario, &State) -> bool,
}

fn never(scenario: &Scenario, state: &State, anomaly: Anomaly) -> bool {
    scenario.judged(state).all(|(cluster, _)| !state.history.anomalies.contains(anomaly, cluster))
}

/// All properties.
pub static PROPERTIES: [PropertySpec; 10] = [
    PropertySpec {
        id: "psm-entry-single-producer",
        requirement: "UNIQ-1",
        group: Group::Uniqueness,
        about: "no producer state entry, on any replica, mixes batches of two real producers",
        condition: |s, st| s.judged(st).all(|(_, r)| truth::psm_entry_single_producer(&r.psm)),
    },
    PropertySpec {
        id: "log-pid-single-producer",
        requirement: "UNIQ-2",
        group: Group::Uniqueness,
        about: "no log holds two real producers' batches under one stored producer id without a barrier between them",
        condition: |s, st| s.judged(st).all(|(_, r)| truth::log_pid_single_producer(&r.durable.log)),
    },
    PropertySpec {
        id: "writable-psm-empty",
        requirement: "CLEAN-1",
        group: Group::CleanSlate,
        about: "a writable partition keeps no producer state from before it became writable",
        condition: |s, st| s.judged(st).all(|(_, r)| truth::writable_psm_empty(&r.psm, &r.durable.stint)),
    },
    PropertySpec {
        id: "barrier-before-local",
        requirement: "CLEAN-2",
        group: Group::CleanSlate,
        about: "a barrier lies between the last inherited and the first local batch",
        condition: |s, st| s.judged(st).all(|(c, r)| truth::barrier_before_local(&r.durable.log, &r.durable.stint, c)),
    },
    PropertySpec {
        id: "no-barrier-after-local",
        requirement: "CLEAN-3",
        group: Group::CleanSlate,
        about: "no barrier lands after a local batch of the same stint",
        condition: |s, st| s.judged(st).all(|(_, r)| truth::no_barrier_after_local(&r.durable.log, &r.durable.stint)),
    },
    PropertySpec {
        id: "sequence-break-accepted",
        requirement: "SILENT-1",
        group: Group::SilentCorruption,
        about: "replication never accepts a batch of a known epoch whose sequence does not follow (scenario 1)",
        condition: |s, st| never(s, st, Anomaly::SequenceBreakAccepted),
    },
    PropertySpec {
        id: "lower-epoch-accepted",
        requirement: "SILENT-2",
        group: Group::SilentCorruption,
        about: "replication never accepts a batch or marker of a lower epoch than the one known (scenario 2)",
        condition: |s, st| never(s, st, Anomaly::LowerEpochAccepted),
    },
    PropertySpec {
        id: "foreign-marker",
        requirement: "SILENT-3",
        group: Group::SilentCorruption,
        about: "no marker ends a transaction that another real producer began (scenario 3)",
        condition: |s, st| never(s, st, Anomaly::ForeignMarker),
    },
    PropertySpec {
        id: "false-duplicate",
        requirement: "SILENT-4",
        group: Group::SilentCorruption,
        about: "no honest producer's new batch is acknowledged as a duplicate and dropped",
        condition: |s, st| never(s, st, Anomaly::FalseDuplicate),
    },
    PropertySpec {
        id: "false-rejection",
        requirement: "SILENT-5",
        group: Group::SilentCorruption,
        about: "no honest producer's batch or marker is refused, by a leader or by a mirror",
        condition: |s, st| never(s, st, Anomaly::FalseRejection),
    },
];

/// All witnesses.
pub static WITNESSES: [WitnessSpec; 6] = [
    WitnessSpec {
        id: "local-after-stop",
        about: "a former mirror takes a local producer's batch",
        applies: |s| s.bounds.commands > 0 && (s.bounds.idempotent > 0 || s.bounds.transactional > 0),
        condition: |s, st| {
            let local = |c: Cluster, k: &Kind, at: Cluster| c == at && !matches!(k, Kind::Barrier { .. });
            s.replicas(st).any(|(c, r)| {
                r.durable.mirror.source.is_some()
                    && r.durable.mirror.state == MirrorState::Stopped
                    && r.durable.log.last().is_some_and(|b| local(b.author.for_display().cluster, &b.kind, c))
            })
        },
    },
    WitnessSpec {
        id: "producer-ids-collide",
        about: "two real producers that were given one producer id by their clusters both have batches in one log",
        applies: |s| s.bounds.commands > 0 && s.bounds.idempotent > 0 && s.bounds.batches > 1,
        condition: |s, st| {
            s.replicas(st).any(|(_, r)| {
                let ids = r.durable.log.iter().filter_map(|b| b.author.for_display().writer);
                let ids: Vec<_> = ids.filter_map(|w| s.producer(st, w).map(|p| (p.id, w))).filter(|(id, _)| id.0 >= 0).collect();
                ids.iter().any(|(id, w)| ids.iter().any(|(id2, w2)| id == id2 && w != w2))
            })
        },
    },
    WitnessSpec {
        id: "barrier-propagates",
        about: "a barrier reaches a log by mirroring",
        applies: |s| s.design.barrier == Barrier::OnStop && s.bounds.commands > 1 && s.topology.propagates(),
        condition: |s, st| {
            let foreign = |k: &Kind, by: Cluster, at: Cluster| matches!(k, Kind::Barrier { .. }) && by != at;
            s.replicas(st).any(|(c, r)| r.durable.log.iter().any(|b| foreign(&b.kind, b.author.for_display().cluster, c)))
        },
    },
    WitnessSpec {
        id: "crash-with-data",
        about: "a replica has crashed and come back, and some log holds data",
        applies: |s| s.bounds.crashes > 0,
        condition: |s, st| st.history.crashes > 0 && s.replicas(st).any(|(_, r)| r.up && !r.durable.log.is_empty()),
    },
    WitnessSpec {
        id: "open-transaction-at-stop",
        about: "a mirror is told to stop while its log holds an open transaction",
        applies: |s| {
            s.bounds.commands > 0
                && s.bounds.transactional > 0
                && s.design.psm_ids.sees(s.design.pid_mapping.apply(crate::ids::ProducerId::FIRST))
        },
        condition: |s, st| {
            s.replicas(st).any(|(_, r)| r.durable.mirror.state == MirrorState::Stopping && !r.psm.ongoing().is_empty())
        },
    },
    WitnessSpec {
        id: "failback",
        about: "the original source mirrors a batch that was written after the failover",
        applies: |s| s.topology.name == "failback" && s.bounds.commands > 1,
        condition: |s, st| {
            s.replicas(st).any(|(c, r)| {
                c == Cluster::A
                    && r.durable
                        .log
                        .iter()
                        .any(|b| b.author.for_display().cluster == Cluster::B && b.author.for_display().writer.is_some())
            })
        },
    },
];

/// The property of this id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static PropertySpec> {
    PROPERTIES.iter().find(|p| p.id == id)
}

/// The properties that a group id or a property id names.
#[must_use]
pub fn select(name: &str) -> Vec<&'static PropertySpec> {
    PROPERTIES.iter().filter(|p| p.id == name || p.group.id() == name).collect()
}
