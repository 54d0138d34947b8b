//! Projections: the effects of a model step as operations on logs, and the model's replica as observable state.

use cleanslate_model::batch::{Batch as ModelBatch, Kind};
use cleanslate_model::effect::{Effect, Outcome};
use cleanslate_model::ids::Offset;
use cleanslate_model::mirror::MirrorState as ModelMirrorState;
use cleanslate_model::psm::Origin as ModelOrigin;
use cleanslate_model::replica::Replica;
use cleanslate_model::scenario::{MicroStep, Scenario};

use crate::trace::format::{
    Batch, CachedBatch, Control, Expect, LogEntry, MirrorState, Op, OpenTransaction, Origin, ProducerEntry, ReplicaState,
};

/// The operations that one part of a step means on the log of its actor.
#[must_use]
pub fn ops_of(scenario: &Scenario, part: &MicroStep) -> Vec<Op> {
    let Some((cluster, _)) = scenario.topology.clusters.get(part.actor) else { return Vec::new() };
    let replica = cluster.name();
    part.effects.iter().flat_map(|effect| effect_ops(scenario, replica, effect)).collect()
}

fn effect_ops(scenario: &Scenario, replica: &str, effect: &Effect) -> Vec<Op> {
    let replica = replica.to_owned();
    match effect {
        Effect::Append { origin, batch, outcome } => {
            let op = Op::Append {
                replica: replica.clone(),
                origin: if *origin == ModelOrigin::Client { Origin::Client } else { Origin::Coordinator },
                by: writer(scenario, batch),
                batch: batch_of(batch),
                expect: expect_of(*outcome),
            };
            std::iter::once(op).chain(high_watermark_after(&replica, *outcome)).collect()
        }
        Effect::Mirror { from, offset, outcome, .. } => {
            let op = Op::Mirror {
                replica: replica.clone(),
                from: from.name().to_owned(),
                offset: number(*offset),
                batches: 1,
                expect: expect_of(*outcome),
            };
            std::iter::once(op).chain(high_watermark_after(&replica, *outcome)).collect()
        }
        Effect::Truncate { to, .. } => vec![Op::Truncate { replica, offset: number(*to) }],
        Effect::MirrorState { to, source } => {
            vec![Op::MirrorState { replica, to: mirror_state(*to), source: source.map(|s| s.name().to_owned()) }]
        }
        Effect::LastMirroredOffset(offset) => vec![Op::LastMirroredOffset { replica, offset: number(*offset) }],
        Effect::Crash => vec![Op::Crash { replica }],
        Effect::Recover { log_end } => {
            // A log that starts again does not know how far it was replicated: the leader's high watermark tells it.
            vec![Op::Recover { replica: replica.clone(), clean: false }, Op::HighWatermark { replica, offset: number(*log_end) }]
        }
        Effect::Anomaly(_) => Vec::new(),
    }
}

fn high_watermark_after(replica: &str, outcome: Outcome) -> Option<Op> {
    match outcome {
        Outcome::Appended(at) => Some(Op::HighWatermark { replica: replica.to_owned(), offset: number(at) + 1 }),
        Outcome::Duplicate(_) | Outcome::Rejected(_) => None,
    }
}

fn expect_of(outcome: Outcome) -> Expect {
    match outcome {
        Outcome::Appended(at) => Expect::Appended { base_offset: number(at), last_offset: number(at) },
        Outcome::Duplicate(at) => Expect::Duplicate { base_offset: number(at), last_offset: number(at) },
        Outcome::Rejected(why) => Expect::Error(why.class().to_owned()),
    }
}

fn number(offset: Offset) -> i64 {
    i64::from(offset.0)
}

fn writer(scenario: &Scenario, batch: &ModelBatch) -> Option<String> {
    batch.author.for_display().writer.map(|w| scenario.writer_name(w))
}

fn batch_of(batch: &ModelBatch) -> Batch {
    Batch {
        producer_id: i64::from(batch.producer_id.0),
        producer_epoch: i16::from(batch.producer_epoch.0),
        base_sequence: i32::from(batch.sequence.0),
        records: 1,
        transactional: batch.is_transactional(),
        control: match batch.kind {
            Kind::Data { .. } => None,
            Kind::Marker { commit: true, coordinator_epoch } => {
                Some(Control::Commit { coordinator_epoch: i32::from(coordinator_epoch.0) })
            }
            Kind::Marker { commit: false, coordinator_epoch } => {
                Some(Control::Abort { coordinator_epoch: i32::from(coordinator_epoch.0) })
            }
            Kind::Barrier { source } => Some(Control::MirrorPidReset { source_cluster: source.name().to_owned() }),
        },
    }
}

const fn mirror_state(state: ModelMirrorState) -> MirrorState {
    match state {
        ModelMirrorState::LogAlignment => MirrorState::LogAlignment,
        ModelMirrorState::Mirroring => MirrorState::Mirroring,
        ModelMirrorState::Stopping => MirrorState::Stopping,
        ModelMirrorState::Stopped => MirrorState::Stopped,
        ModelMirrorState::Failed => MirrorState::Failed,
    }
}

/// The model's replica as an implementation would show it.
#[must_use]
pub fn replica_state(scenario: &Scenario, replica: &Replica) -> ReplicaState {
    let log = replica.durable.log.iter().enumerate().map(|(i, batch)| LogEntry {
        offset: i64::try_from(i).unwrap_or(i64::MAX),
        by: writer(scenario, batch),
        batch: batch_of(batch),
    });
    let producers = replica.psm.entries().iter().map(|entry| ProducerEntry {
        producer_id: i64::from(entry.id.0),
        producer_epoch: i16::from(entry.epoch.0),
        coordinator_epoch: i32::from(entry.coordinator_epoch.0),
        batches: entry.window.as_slice().iter().map(cached).collect(),
        txn_first_offset: entry.txn_first_offset.map(number),
    });
    let open = replica.psm.ongoing().iter();
    ReplicaState {
        up: replica.up,
        mirror_state: mirror_state(replica.durable.mirror.state),
        log_start_offset: 0,
        log_end_offset: number(replica.high_watermark()),
        high_watermark: number(replica.high_watermark()),
        last_stable_offset: number(replica.last_stable_offset()),
        log: log.collect(),
        producers: producers.collect(),
        open_transactions: open
            .map(|t| OpenTransaction { producer_id: i64::from(t.id.0), first_offset: number(t.first_offset) })
            .collect(),
    }
}

fn cached(batch: &cleanslate_model::psm::Cached) -> CachedBatch {
    CachedBatch {
        base_sequence: i32::from(batch.sequence.0),
        last_sequence: i32::from(batch.sequence.0),
        base_offset: number(batch.offset),
        last_offset: number(batch.offset),
    }
}
