//! What must be reachable, so that a model in which nothing happens cannot pass.

use super::WitnessSpec;
use crate::batch::{Batch, Kind};
use crate::design::{Barrier, Clears, OpenTransactions};
use crate::ids::{Cluster, ProducerId};
use crate::mirror::MirrorState;
use crate::replica::Role;
use crate::scenario::Scenario;
use crate::truth::is_same_batch;

fn is_barrier(batch: &Batch) -> bool {
    matches!(batch.kind, Kind::Barrier { .. })
}

fn written_at(batch: &Batch) -> Cluster {
    batch.author.for_display().cluster
}

/// Whether the PSM of a mirror sees the ids of its source.
fn sees_mirrored_ids(s: &Scenario) -> bool {
    s.design.psm_ids.sees(s.design.pid_mapping.apply(ProducerId::FIRST))
}

/// All witnesses.
pub static WITNESSES: [WitnessSpec; 15] = [
    WitnessSpec {
        id: "local-after-stop",
        about: "a former mirror takes a local producer's batch",
        applies: |s| s.bounds.commands > 0 && (s.bounds.idempotent > 0 || s.bounds.transactional > 0),
        condition: |s, st| {
            s.leaders(st).any(|(b, r)| {
                let local = |batch: &Batch| written_at(batch) == b.cluster && !is_barrier(batch);
                r.mirror.source.is_some() && r.is_writable() && r.durable.log.last().is_some_and(local)
            })
        },
    },
    WitnessSpec {
        id: "producer-ids-collide",
        about: "two real producers that were given one producer id by their clusters both have batches in one log",
        applies: |s| {
            // An arbitrary source has no producers that were given ids.
            s.topology.environment.is_none() && s.bounds.commands > 0 && s.bounds.idempotent > 0 && s.bounds.batches > 1
        },
        condition: |s, st| {
            s.leaders(st).any(|(_, r)| {
                let writers = r.durable.log.iter().filter_map(|b| b.author.for_display().writer);
                let ids: Vec<_> =
                    writers.filter_map(|w| s.producer(st, w).map(|p| (p.id, w))).filter(|(id, _)| id.0 >= 0).collect();
                ids.iter().any(|(id, w)| ids.iter().any(|(id2, w2)| id == id2 && w != w2))
            })
        },
    },
    WitnessSpec {
        id: "barrier-propagates",
        about: "a barrier reaches a log by mirroring",
        applies: |s| s.design.barrier == Barrier::OnStop && s.bounds.commands > 1 && s.topology.propagates(),
        condition: |s, st| {
            s.leaders(st).any(|(b, r)| r.durable.log.iter().any(|batch| is_barrier(batch) && written_at(batch) != b.cluster))
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
            // Up to the last stable offset a mirror sees the beginning of a transaction only with its end behind it.
            s.bounds.commands > 0
                && s.bounds.transactional > 0
                && s.design.open_transactions == OpenTransactions::Abort
                && sees_mirrored_ids(s)
        },
        condition: |s, st| s.leaders(st).any(|(_, r)| r.mirror.state == MirrorState::Stopping && !r.psm.ongoing().is_empty()),
    },
    WitnessSpec {
        id: "failback",
        about: "the original source mirrors a batch that was written after the failover",
        applies: |s| s.topology.name == "failback" && s.bounds.commands > 1,
        condition: |s, st| {
            let from_b = |b: &Batch| written_at(b) == Cluster::B && !is_barrier(b);
            s.leaders(st).any(|(b, r)| b.cluster == Cluster::A && r.durable.log.iter().any(from_b))
        },
    },
    WitnessSpec {
        id: "follower-copies",
        about: "a follower holds a batch below its high watermark",
        applies: |s| s.bounds.followers > 0,
        condition: |s, st| s.replicas(st).any(|(_, r)| r.role == Role::Follower && r.high_watermark.0 > 0),
    },
    WitnessSpec {
        id: "second-broker-leads",
        about: "the second broker of a cluster leads and its log holds data",
        applies: |s| s.bounds.followers > 0 && s.bounds.crashes + s.bounds.elections + s.bounds.unclean + s.bounds.restarts > 0,
        condition: |s, st| s.leaders(st).any(|(b, r)| b.number == 1 && !r.durable.log.is_empty()),
    },
    WitnessSpec {
        id: "reload-from-a-rolled-snapshot",
        about: "a log with two segments holds batches in both",
        applies: |s| s.bounds.rolls > 0,
        condition: |s, st| s.replicas(st).any(|(_, r)| r.durable.segments.last().is_some_and(|base| r.log_end() > *base)),
    },
    WitnessSpec {
        id: "clean-restart",
        about: "a broker with data has restarted in good order",
        applies: |s| s.bounds.restarts > 0,
        condition: |s, st| st.history.restarts > 0 && s.replicas(st).any(|(_, r)| r.up && !r.psm.entries().is_empty()),
    },
    WitnessSpec {
        id: "resend",
        about: "a batch was sent again and both copies were answered",
        applies: |s| s.bounds.retries > 0,
        condition: |s, st| st.history.retries > 0 && s.replicas(st).any(|(_, r)| !r.durable.log.is_empty()),
    },
    WitnessSpec {
        id: "epoch-bump",
        about: "an idempotent producer has written under a second epoch",
        applies: |s| s.bounds.bumps > 0 && s.bounds.idempotent > 0 && s.bounds.batches > 1,
        condition: |s, st| {
            let bumped = |b: &Batch| b.producer_epoch.0 == 1 && b.kind == Kind::Data { transactional: false };
            s.replicas(st).any(|(_, r)| r.durable.log.iter().any(bumped))
        },
    },
    WitnessSpec {
        id: "source-cut-under-its-mirror",
        about: "an arbitrary source has lost a batch that its mirror still holds",
        applies: |s| s.topology.environment.is_some() && s.bounds.cuts > 0,
        condition: |s, st| {
            let lost = |log: &[Batch], source: &[Batch]| {
                log.iter().enumerate().any(|(i, b)| source.get(i).is_none_or(|other| !is_same_batch(b, other)))
            };
            s.leaders(st).filter(|(_, r)| r.mirror.state == MirrorState::Mirroring).any(|(_, r)| {
                let source = r.mirror.source.filter(|source| s.topology.environment == Some(*source));
                source.and_then(|source| s.leader(st, source)).is_some_and(|(_, a)| lost(&r.durable.log, &a.durable.log))
            })
        },
    },
    WitnessSpec {
        id: "two-barriers-in-a-row",
        about: "a mirror holds two barriers of its arbitrary source, with nothing between them",
        applies: |s| s.topology.environment.is_some() && s.bounds.source > 1 && s.design.barrier == Barrier::OnStop,
        condition: |s, st| {
            let old = |b: &Batch| is_barrier(b) && Some(written_at(b)) == s.topology.environment;
            s.leaders(st).any(|(b, r)| {
                s.is_judged(b) && r.durable.log.iter().zip(r.durable.log.iter().skip(1)).any(|(x, y)| old(x) && old(y))
            })
        },
    },
    WitnessSpec {
        id: "several-former-writers",
        about: "a mirror holds batches of two real producers of its arbitrary source under one id, a barrier between them",
        applies: |s| {
            // Where a barrier leaves some ids, no leader takes a second producer under one of them.
            let clears = s.design.barrier == Barrier::OnStop && s.design.clears != Clears::NegativeIds;
            s.topology.environment.is_some() && s.bounds.source > 2 && clears
        },
        condition: |s, st| {
            let former = |b: &&Batch| !is_barrier(b) && Some(written_at(b)) == s.topology.environment;
            let writer = |b: &Batch| b.author.for_display().writer;
            s.leaders(st).filter(|(b, _)| s.is_judged(*b)).any(|(_, r)| {
                let old: Vec<&Batch> = r.durable.log.iter().filter(former).collect();
                old.iter().any(|x| old.iter().any(|y| x.producer_id == y.producer_id && writer(x) != writer(y)))
            })
        },
    },
];
