//! The properties, promise by promise.

use super::stuck::{never_stuck, stable_when_quiet, stops_have_ended};
use super::{Group, PropertySpec};
use crate::barrier::Barriers;
use crate::ids::Broker;
use crate::mirror::MirrorState;
use crate::psm::meaning;
use crate::replica::Replica;
use crate::scenario::{Scenario, State};
use crate::truth::{self, Anomaly, Ghost, Stint};

fn never(scenario: &Scenario, state: &State, anomaly: Anomaly) -> bool {
    scenario.judged(state).all(|(broker, _)| !state.history.anomalies.contains(anomaly, broker.cluster))
}

/// The leaders that the properties look at.
pub(super) fn leaders<'s>(s: &'s Scenario, st: &'s State) -> impl Iterator<Item = (Broker, &'s Replica)> {
    s.leaders(st).filter(|(b, _)| s.is_judged(*b))
}

/// Since when a replica's log is that of a writable partition; none for one that is not in sync with its leader.
fn stint(s: &Scenario, st: &State, broker: Broker) -> Option<Ghost<Stint>> {
    let (leader, replica) = s.leader(st, broker.cluster)?;
    (replica.is_writable() && (leader == broker || replica.in_sync)).then_some(replica.mirror.stint)
}

/// CONV-1, for one replica.
fn state_is_that_of_log(s: &Scenario, replica: &Replica) -> bool {
    !replica.up || replica.psm.agrees_with(&meaning(&replica.durable.log, &Barriers::ideal(&s.design, replica.durable.source)))
}

/// CONV-2: every two replicas with the same log, in one cluster or in two. The state of an arbitrary source is that of no one.
fn equal_logs_equal_state(s: &Scenario, st: &State) -> bool {
    let up: Vec<_> = s.replicas(st).filter(|(b, r)| r.up && s.topology.environment != Some(b.cluster)).collect();
    up.iter().enumerate().all(|(i, (a, x))| {
        up.iter().skip(i + 1).all(|(b, y)| {
            let judged = s.is_judged(*a) || s.is_judged(*b);
            !judged || !truth::same_content(&x.durable.log, &y.durable.log) || x.psm.agrees_with(&y.psm)
        })
    })
}

/// ALIGN-1: each mirror against the leader of its source.
fn mirrors_match(s: &Scenario, st: &State) -> bool {
    leaders(s, st).filter(|(_, r)| r.mirror.state == MirrorState::Mirroring).all(|(_, r)| {
        let source = r.mirror.source.and_then(|source| s.leader(st, source));
        source.is_none_or(|(_, source)| truth::logs_match(&r.durable.log, &source.durable.log))
    })
}

/// ALIGN-2: each follower against its leader.
fn followers_match(s: &Scenario, st: &State) -> bool {
    leaders(s, st).all(|(b, leader)| {
        let follower = s.replicas(st).find(|(other, _)| *other == b.other());
        follower.is_none_or(|(_, follower)| truth::logs_match(&leader.durable.log, &follower.durable.log))
    })
}

/// LOSS-1: where a partition has been writable since its producers began, all that they were told of is there.
fn nothing_acknowledged_is_lost(s: &Scenario, st: &State) -> bool {
    // Whoever elects a replica that is not in sync accepts that acknowledged batches are lost.
    st.history.unclean > 0
        || leaders(s, st).filter(|(_, r)| r.is_writable() && r.mirror.starts == 0).all(|(b, r)| {
            s.producers.iter().filter(|p| p.cluster == b.cluster).all(|p| {
                s.producer(st, p.writer)
                    .is_none_or(|state| truth::holds_acknowledged(&r.durable.log, p.writer, state.answered(), state.given_up))
            })
        })
}

/// All properties.
pub static PROPERTIES: [PropertySpec; 21] = [
    PropertySpec {
        id: "psm-entry-single-producer",
        requirement: "UNIQ-1",
        group: Group::Uniqueness,
        about: "no producer state entry, on any replica, mixes batches of two real producers",
        condition: |s, st| s.judged(st).all(|(_, r)| truth::psm_entry_single_producer(&r.psm)),
        goal: None,
    },
    PropertySpec {
        id: "log-pid-single-producer",
        requirement: "UNIQ-2",
        group: Group::Uniqueness,
        about: "no log holds two real producers' batches under one stored producer id without a barrier between them",
        condition: |s, st| s.judged(st).all(|(_, r)| truth::log_pid_single_producer(&r.durable.log)),
        goal: None,
    },
    PropertySpec {
        id: "writable-psm-empty",
        requirement: "CLEAN-1",
        group: Group::CleanSlate,
        about: "no in-sync replica of a writable partition keeps producer state from before it became writable",
        condition: |s, st| s.judged(st).all(|(b, r)| stint(s, st, b).is_none_or(|since| truth::writable_psm_empty(&r.psm, &since))),
        goal: None,
    },
    PropertySpec {
        id: "barrier-before-local",
        requirement: "CLEAN-2",
        group: Group::CleanSlate,
        about: "a barrier lies between the last inherited and the first local batch",
        condition: |s, st| {
            leaders(s, st)
                .filter(|(_, r)| r.is_writable())
                .all(|(b, r)| truth::barrier_before_local(&r.durable.log, &r.mirror.stint, b.cluster))
        },
        goal: None,
    },
    PropertySpec {
        id: "no-barrier-after-local",
        requirement: "CLEAN-3",
        group: Group::CleanSlate,
        about: "no barrier lands after a local batch of the same stint",
        condition: |s, st| {
            leaders(s, st)
                .filter(|(_, r)| r.is_writable())
                .all(|(b, r)| truth::no_barrier_after_local(&r.durable.log, &r.mirror.stint, b.cluster))
        },
        goal: None,
    },
    PropertySpec {
        id: "sequence-break-accepted",
        requirement: "SILENT-1",
        group: Group::SilentCorruption,
        about: "replication never accepts a batch of a known epoch whose sequence does not follow (scenario 1)",
        condition: |s, st| never(s, st, Anomaly::SequenceBreakAccepted),
        goal: None,
    },
    PropertySpec {
        id: "lower-epoch-accepted",
        requirement: "SILENT-2",
        group: Group::SilentCorruption,
        about: "replication never accepts a batch or marker of a lower epoch than the one known (scenario 2)",
        condition: |s, st| never(s, st, Anomaly::LowerEpochAccepted),
        goal: None,
    },
    PropertySpec {
        id: "foreign-marker",
        requirement: "SILENT-3",
        group: Group::SilentCorruption,
        about: "no marker ends a transaction that another real producer began (scenario 3)",
        condition: |s, st| never(s, st, Anomaly::ForeignMarker),
        goal: None,
    },
    PropertySpec {
        id: "false-duplicate",
        requirement: "SILENT-4",
        group: Group::SilentCorruption,
        about: "no honest producer's new batch is acknowledged as a duplicate and dropped",
        condition: |s, st| never(s, st, Anomaly::FalseDuplicate),
        goal: None,
    },
    PropertySpec {
        id: "false-rejection",
        requirement: "SILENT-5",
        group: Group::SilentCorruption,
        about: "no honest producer's batch or marker is refused, by a leader or by a mirror",
        condition: |s, st| never(s, st, Anomaly::FalseRejection),
        goal: None,
    },
    PropertySpec {
        id: "batch-twice",
        requirement: "SILENT-6",
        group: Group::SilentCorruption,
        about: "no idempotent or transactional producer's batch lies twice in a log",
        condition: |s, st| s.judged(st).all(|(_, r)| truth::no_batch_twice(&r.durable.log)),
        goal: None,
    },
    PropertySpec {
        id: "reads-committed",
        requirement: "SILENT-7",
        group: Group::SilentCorruption,
        about: "a read-committed reader gets what was committed in this log, all of it and nothing else",
        condition: |s, st| {
            leaders(s, st).all(|(_, r)| truth::reads_committed(&r.durable.log, &r.durable.aborted, r.last_stable_offset()))
        },
        goal: None,
    },
    PropertySpec {
        id: "commit-commits",
        requirement: "SILENT-8",
        group: Group::SilentCorruption,
        about: "a COMMIT in a log has the records of its transaction before it, and nothing has ended the transaction earlier",
        condition: |s, st| leaders(s, st).all(|(_, r)| truth::commits_commit(&r.durable.log)),
        goal: None,
    },
    PropertySpec {
        id: "state-is-that-of-log",
        requirement: "CONV-1",
        group: Group::Convergence,
        about: "every replica's producer state is the one that its log means, however it was built",
        condition: |s, st| s.judged(st).all(|(_, r)| state_is_that_of_log(s, r)),
        goal: None,
    },
    PropertySpec {
        id: "equal-logs-equal-state",
        requirement: "CONV-2",
        group: Group::Convergence,
        about: "replicas with the same log have the same producer state, in one cluster and across clusters",
        condition: equal_logs_equal_state,
        goal: None,
    },
    PropertySpec {
        id: "stop-completes",
        requirement: "LIVE-1",
        group: Group::Liveness,
        about: "a partition that was told to stop becomes writable, one that was told to start mirrors",
        condition: |s, st| never_stuck(s, st, stops_have_ended),
        goal: Some(stops_have_ended),
    },
    PropertySpec {
        id: "stable-when-quiet",
        requirement: "LIVE-2",
        group: Group::Liveness,
        about: "once the producers of a writable partition are quiet, its last stable offset reaches its end",
        condition: |s, st| never_stuck(s, st, stable_when_quiet),
        goal: Some(stable_when_quiet),
    },
    PropertySpec {
        id: "mirror-matches-source",
        requirement: "ALIGN-1",
        group: Group::Alignment,
        about: "a mirror and its source that hold the same batch at an offset hold the same batches below it",
        condition: mirrors_match,
        goal: None,
    },
    PropertySpec {
        id: "follower-matches-leader",
        requirement: "ALIGN-2",
        group: Group::Alignment,
        about: "a follower and its leader that hold the same batch at an offset hold the same batches below it",
        condition: followers_match,
        goal: None,
    },
    PropertySpec {
        id: "acknowledged-is-kept",
        requirement: "LOSS-1",
        group: Group::Loss,
        about: "what a writable partition has acknowledged stays in its log while it is writable",
        condition: nothing_acknowledged_is_lost,
        goal: None,
    },
    PropertySpec {
        id: "failback-throws-away-own",
        requirement: "LOSS-2",
        group: Group::Loss,
        about: "a failback throws away only what its source does not hold",
        condition: |s, st| never(s, st, Anomaly::ThrewAwayShared),
        goal: None,
    },
];
