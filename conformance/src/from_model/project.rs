//! Projections: the effects of a model step as operations on logs, and the model's replica as observable state.

use cleanslate_model::batch::{Batch as ModelBatch, Kind};
use cleanslate_model::effect::{Effect, Outcome};
use cleanslate_model::ids::{Cluster, Offset};
use cleanslate_model::mirror::MirrorState as ModelMirrorState;
use cleanslate_model::psm::Origin as ModelOrigin;
use cleanslate_model::replica::Replica;
use cleanslate_model::scenario::{MicroStep, Scenario, State};

use crate::trace::format::{
    AbortedTransaction, Batch, CachedBatch, Control, Expect, LogEntry, MirrorState, Op, OpenTransaction, Origin, ProducerEntry,
    ReplicaState,
};

/// The operations that a step means: what its parts did to logs, and what brokers have learnt by its end.
#[must_use]
pub fn ops_of(scenario: &Scenario, before: &State, parts: &[MicroStep], after: &State) -> Vec<Op> {
    let mut ops: Vec<Op> = parts.iter().flat_map(|part| part_ops(scenario, part)).collect();
    ops.extend(learnt(scenario, before, parts, after));
    ops
}

fn part_ops(scenario: &Scenario, part: &MicroStep) -> Vec<Op> {
    let Some(broker) = scenario.directory.broker(part.actor) else { return Vec::new() };
    part.effects.iter().filter_map(|effect| effect_op(scenario, &broker.to_string(), effect)).collect()
}

/// What a broker knows of the mirror changes not only by its own transitions: it is told by the metadata of its cluster (STATE-2).
fn learnt(scenario: &Scenario, before: &State, parts: &[MicroStep], after: &State) -> Vec<Op> {
    let known = |replica: &Replica| (replica.mirror.state, replica.mirror.source);
    let pairs = scenario.replicas(before).zip(scenario.replicas(after));
    let learnt = pairs.enumerate().filter(|(_, (_, (_, replica)))| replica.up).filter_map(|(actor, ((_, was), (broker, is)))| {
        let (mut state, mut source) = known(was);
        for effect in parts.iter().filter(|part| part.actor == actor).flat_map(|part| &part.effects) {
            if let Effect::MirrorState { to, source: started } = effect {
                (state, source) = (*to, started.or(source));
            }
        }
        ((state, source) != known(is)).then(|| Op::LearnMirrorState {
            replica: broker.to_string(),
            to: mirror_state(is.mirror.state),
            source: is.mirror.source.map(name),
        })
    });
    learnt.collect()
}

fn name(cluster: Cluster) -> String {
    cluster.name().to_owned()
}

fn effect_op(scenario: &Scenario, replica: &str, effect: &Effect) -> Option<Op> {
    let replica = replica.to_owned();
    Some(match effect {
        Effect::Append { origin, batch, outcome } => Op::Append {
            replica,
            origin: match origin {
                ModelOrigin::Client => Origin::Client,
                ModelOrigin::Coordinator | ModelOrigin::Replication => Origin::Coordinator,
                ModelOrigin::StoppingMirror => Origin::StoppingMirror,
            },
            by: writer(scenario, batch),
            batch: batch_of(batch),
            expect: expect_of(*outcome, 1),
        },
        Effect::Copy { from, offset, sent, outcome, .. } => Op::Mirror {
            replica,
            from: from.to_string(),
            offset: number(*offset),
            batches: u32::try_from(sent.len()).unwrap_or(u32::MAX),
            expect: expect_of(*outcome, sent.len()),
        },
        Effect::HighWatermark(offset) => Op::HighWatermark { replica, offset: number(*offset) },
        Effect::Truncate { to, .. } => Op::Truncate { replica, offset: number(*to) },
        Effect::Roll(_) => Op::Roll { replica },
        Effect::MirrorState { to, source } => Op::MirrorState { replica, to: mirror_state(*to), source: source.map(name) },
        Effect::LastMirrored(recorded) => Op::LastMirroredOffset { replica, offset: number(recorded.offset) },
        Effect::Lead(_) => Op::Lead { replica },
        Effect::Crash => Op::Crash { replica },
        Effect::Recover { clean } => Op::Recover { replica, clean: *clean },
        // Leader epochs are no part of a trace: which logs part, and where, is in its truncations.
        Effect::Follow(_) | Effect::RaiseEpoch(_) | Effect::Anomaly(_) | Effect::Suspect { .. } => return None,
    })
}

fn expect_of(outcome: Outcome, batches: usize) -> Expect {
    let more = i64::try_from(batches.saturating_sub(1)).unwrap_or(i64::MAX);
    match outcome {
        Outcome::Appended(at) => Expect::Appended { base_offset: number(at), last_offset: number(at).saturating_add(more) },
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
            Kind::Barrier { source } => Some(Control::MirrorPidReset { source_cluster: name(source) }),
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
    let aborted = replica.durable.aborted.iter().map(|t| AbortedTransaction {
        producer_id: i64::from(t.id.0),
        first_offset: number(t.first_offset),
        last_offset: number(t.last_offset),
    });
    let end = replica.log_end();
    // A log that is not open has neither high watermark nor last stable offset; the format says what stands in their place.
    let (high_watermark, stable) = if replica.up { (replica.high_watermark, replica.last_stable_offset()) } else { (end, end) };
    ReplicaState {
        up: replica.up,
        mirror_state: mirror_state(replica.mirror.state),
        log_start_offset: 0,
        log_end_offset: number(end),
        high_watermark: number(high_watermark),
        last_stable_offset: number(stable),
        log: log.collect(),
        producers: producers.collect(),
        open_transactions: open
            .map(|t| OpenTransaction { producer_id: i64::from(t.id.0), first_offset: number(t.first_offset) })
            .collect(),
        aborted_transactions: Some(aborted.collect()),
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
