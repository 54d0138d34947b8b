//! The target behind the adapter protocol: a partition log in a process of its own, such as Kafka's classes.
//!
//! The log is the other implementation's: appends, copies, truncation, high watermark, crash and recovery, producer state. What no log has
//! is done here: the mirror state, and the producer id mapping of the mirror's leader. The state that a step must show is read from the
//! implementation after every operation; `one_log` has the requests.

use std::collections::BTreeMap;

use bytes::BytesMut;
use cleanslate_log::mirror::{MirrorState as LogMirrorState, PidMapping};
use cleanslate_log::record::RecordBatch;

use super::axes::Axes;
use super::codec::{decode, encode};
use super::gate::{Gate, ILLEGAL_STATE, READ_ONLY};
use super::one_log::{self, appended, batches_of, done};
use super::show::mirror_state;
use super::{Observed, ObservedBatch, ObservedState, Target, TargetError};
use crate::adapter::message::Origin as Sender;
use crate::adapter::reply::{Answer, Failure, Reply};
use crate::adapter::state::{Producer, State};
use crate::adapter::{Adapter, Operation};
use crate::trace::format::{
    AbortedTransaction, Batch, CachedBatch, MirrorState, Op, OpenTransaction, Origin, ProducerEntry, Trace,
};

/// The logs of an adapter.
pub struct OverAdapter<'a> {
    adapter: &'a mut Adapter,
    name: &'static str,
    mapping: PidMapping,
    replicas: BTreeMap<String, Replica>,
    /// How many batches were sent, so that no two have the same payload.
    sent: u64,
}

struct Replica {
    /// The log's name in the protocol, which allows fewer names than a trace.
    log: String,
    cluster: String,
    gate: Gate,
    /// Up to where the log is known to be durable.
    recovery_point: i64,
    life: Life,
    /// What the last operation has left.
    batches: Vec<RecordBatch>,
    state: ObservedState,
}

/// A replica's broker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Up,
    /// It has died. Only the way in which it starts again tells whether it had stopped in good order, so its log is still open there.
    Down,
    /// It has died, and could not start again.
    Closed,
}

fn failed(error: impl std::fmt::Display) -> TargetError {
    TargetError::Failed(error.to_string())
}

fn impossible(text: impl Into<String>) -> TargetError {
    TargetError::Impossible(text.into())
}

impl<'a> OverAdapter<'a> {
    /// The logs of this adapter; `name` is what the command line calls it.
    #[must_use]
    pub fn new(adapter: &'a mut Adapter, name: &'static str) -> Self {
        Self { adapter, name, mapping: PidMapping::None, replicas: BTreeMap::new(), sent: 0 }
    }
}

impl Target for OverAdapter<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn reset(&mut self, trace: &Trace) -> Result<(), TargetError> {
        let design = Axes::new(&trace.scenario.axes)?.mirror_design()?;
        self.mapping = design.pid_mapping;
        self.replicas.clear();
        self.sent = 0;
        // All in one go: most of the time of a short trace is spent with its logs' files, and the rest with waiting for each other.
        self.adapter.send(&Operation::Reset {}, false).map_err(failed)?;
        for (number, declared) in trace.replicas.iter().enumerate() {
            let log = format!("r{number}");
            self.adapter.send(&one_log::create(&log), true).map_err(failed)?;
            let gate = Gate::new(&design, declared.mirrors.is_some());
            let state = ObservedState { mirror_state: mirror_state(gate.state()), ..empty() };
            let replica = Replica {
                log,
                cluster: declared.cluster.clone(),
                gate,
                recovery_point: 0,
                life: Life::Up,
                batches: Vec::new(),
                state,
            };
            self.replicas.insert(declared.name.clone(), replica);
        }
        self.adapter.receive().map_err(failed)?;
        for declared in &trace.replicas {
            match self.adapter.receive().map_err(failed)? {
                Some(Reply { outcome: Ok(_), state: Some(state) }) => self.take_in(&declared.name, &state, Vec::new())?,
                Some(Reply { outcome: Err(failure), .. }) => {
                    return Err(failed(format!("{} when a log was created: {}", failure.name, failure.message)));
                }
                _ => return Err(failed("a log was created without a state")),
            }
        }
        Ok(())
    }

    fn execute(&mut self, op: &Op) -> Result<Observed, TargetError> {
        match op {
            Op::Append { replica, origin, batch, .. } => self.append(replica, *origin, batch),
            Op::Mirror { replica, from, offset, batches, .. } => self.mirror(replica, from, *offset, *batches),
            Op::Truncate { replica, offset } => {
                let truncated = self.up(replica)?;
                truncated.recovery_point = truncated.recovery_point.min(*offset);
                let truncate = one_log::truncate(&truncated.log, *offset);
                self.ask(replica, vec![truncate]).map(done)
            }
            Op::HighWatermark { replica, offset } => {
                let set = one_log::high_watermark(&self.up(replica)?.log, *offset);
                self.ask(replica, vec![set]).map(done)
            }
            Op::MirrorState { replica, to, source } => {
                let replica = self.up(replica)?;
                let taken = replica.gate.turn(*to, source.as_deref());
                replica.state.mirror_state = mirror_state(replica.gate.state());
                Ok(if taken { Observed::Done } else { Observed::Error(ILLEGAL_STATE.to_owned()) })
            }
            Op::LastMirroredOffset { replica, offset } => {
                let replica = self.up(replica)?;
                let (end, stops) = (replica.state.log_end_offset, replica.gate.state() == LogMirrorState::Stopping);
                if stops && *offset != end {
                    return Err(impossible(format!("the log ends at offset {end}, expected the last mirrored offset {offset}")));
                }
                Ok(Observed::Done)
            }
            Op::LearnMirrorState { replica, to, .. } => {
                let replica = self.up(replica)?;
                replica.gate.learn(*to);
                replica.state.mirror_state = mirror_state(replica.gate.state());
                Ok(Observed::Done)
            }
            // Who leads is the cluster's business: a log does what it is told.
            Op::Lead { replica } => self.up(replica).map(|_| Observed::Done),
            Op::Roll { replica } => {
                self.require(&["roll", "flush"])?;
                let roll = one_log::roll(&self.up(replica)?.log);
                let observed = self.ask(replica, roll).map(done)?;
                // What a roll has made durable is not recovered again.
                let replica = self.up(replica)?;
                replica.recovery_point = replica.state.log_end_offset;
                Ok(observed)
            }
            Op::Crash { replica } => {
                let replica = self.up(replica)?;
                replica.life = Life::Down;
                down(&mut replica.state);
                Ok(Observed::Done)
            }
            Op::Recover { replica, clean } => self.recover(replica, *clean),
        }
    }

    fn observe(&mut self, replica: &str) -> Result<ObservedState, TargetError> {
        Ok(self.replica(replica)?.state.clone())
    }
}

impl OverAdapter<'_> {
    fn replica(&self, name: &str) -> Result<&Replica, TargetError> {
        self.replicas.get(name).ok_or_else(|| TargetError::UnknownReplica(name.to_owned()))
    }

    fn up(&mut self, name: &str) -> Result<&mut Replica, TargetError> {
        match self.replicas.get_mut(name) {
            Some(replica) if replica.life == Life::Up => Ok(replica),
            Some(_) => Err(impossible(format!("the broker of {name} is down"))),
            None => Err(TargetError::UnknownReplica(name.to_owned())),
        }
    }

    fn append(&mut self, name: &str, origin: Origin, batch: &Batch) -> Result<Observed, TargetError> {
        self.sent += 1;
        let bytes = encode(batch, self.sent)?;
        let replica = self.up(name)?;
        if !replica.gate.lets_pass(origin, batch) {
            return Ok(Observed::Error(READ_ONLY.to_owned()));
        }
        let (origin, transaction_version) = match origin {
            Origin::Client => (Sender::Client, -1),
            // The ABORT markers of a stop carry the producer's present epoch, as they did before transaction version 2.
            Origin::Coordinator if replica.gate.state() != LogMirrorState::Stopping => (Sender::Coordinator, 2),
            Origin::Coordinator | Origin::StoppingMirror => (Sender::Coordinator, 0),
        };
        let append = one_log::append_leader(&replica.log, &bytes, origin, transaction_version);
        appended(self.ask(name, vec![append])?)
    }

    fn mirror(&mut self, name: &str, from: &str, offset: i64, batches: u32) -> Result<Observed, TargetError> {
        let source = self.replica(from)?;
        if source.life != Life::Up {
            return Err(impossible(format!("the broker of {from} is down")));
        }
        let rest = source.batches.iter().skip_while(|batch| batch.last_offset().get() < offset);
        let taken: Vec<RecordBatch> = rest.take(usize::try_from(batches).unwrap_or(usize::MAX)).cloned().collect();
        if u32::try_from(taken.len()) != Ok(batches) {
            let whole = taken.len();
            return Err(impossible(format!("{from} holds {whole} batches from offset {offset} on, expected {batches} or more")));
        }
        let (mapping, cluster) = (self.mapping, source.cluster.clone());
        let replica = self.up(name)?;
        let end = replica.state.log_end_offset;
        if end != offset {
            return Err(impossible(format!("the log of {name} ends at offset {end}, expected {offset}")));
        }
        // A follower copies its leader as it is; only the leader of a mirror maps ids, and needs a fetcher.
        let is_mirror = replica.cluster != cluster;
        if is_mirror && !replica.gate.is_fetching() {
            return Ok(Observed::Error(ILLEGAL_STATE.to_owned()));
        }
        let mut bytes = BytesMut::new();
        for batch in taken {
            let id = if is_mirror { mapping.map(batch.producer_id()) } else { batch.producer_id() };
            let mapped = if id == batch.producer_id() { batch } else { batch.with_producer_id(id) };
            bytes.extend_from_slice(mapped.bytes());
        }
        let append = one_log::append_follower(&replica.log, &bytes);
        appended(self.ask(name, vec![append])?)
    }

    /// Operations and features that a step needs.
    fn require(&self, names: &[&'static str]) -> Result<(), TargetError> {
        let abilities = self.adapter.abilities();
        let lacking = names.iter().find(|name| !abilities.knows(name) && !abilities.has(name));
        lacking.map_or(Ok(()), |name| Err(TargetError::Lacking(name)))
    }

    fn recover(&mut self, name: &str, clean: bool) -> Result<Observed, TargetError> {
        if clean {
            self.require(&["snapshots"])?;
        }
        let replica = self.replica(name)?;
        let stop = match replica.life {
            Life::Up => return Err(impossible(format!("the broker of {name} is up already"))),
            Life::Down => Some(one_log::stop(&replica.log, clean)),
            Life::Closed => None,
        };
        let open = one_log::open(&replica.log, clean, replica.recovery_point);
        let observed = self.ask(name, stop.into_iter().chain([open]).collect()).map(done)?;
        if let Some(replica) = self.replicas.get_mut(name) {
            replica.gate.reopen();
            // A stop in good order has made all of it durable.
            if clean && replica.life == Life::Up {
                replica.recovery_point = replica.state.log_end_offset;
            }
        }
        Ok(observed)
    }

    /// Asks for operations on one log and for everything that can be seen of it afterwards, in one go. Returns what came of them:
    /// of the first that was refused, and else of the last.
    fn ask(&mut self, name: &str, operations: Vec<Operation>) -> Result<Result<Answer, Failure>, TargetError> {
        let (log, log_start) = {
            let replica = self.replica(name)?;
            (replica.log.clone(), replica.state.log_start_offset)
        };
        let sent = one_log::send(self.adapter, &log, log_start, &operations)?;
        let seen = one_log::receive(self.adapter, sent)?;
        match &seen.reply.state {
            Some(state) => {
                let batches = match seen.read {
                    Some(first) => self.batches(&log, log_start, state.log_end_offset, first)?,
                    None => self.replica(name)?.batches.clone(),
                };
                self.take_in(name, state, batches)?;
            }
            None => {
                if let Some(replica) = self.replicas.get_mut(name) {
                    replica.life = Life::Closed;
                }
            }
        }
        Ok(seen.reply.outcome)
    }

    /// All batches from an offset on, of which the first have been read.
    fn batches(&mut self, log: &str, from: i64, end: i64, first: Reply) -> Result<Vec<RecordBatch>, TargetError> {
        let (mut batches, mut next, mut reply) = (Vec::new(), from, first);
        loop {
            let before = next;
            for batch in batches_of(reply, next)? {
                next = batch.next_offset().get();
                batches.push(batch);
            }
            if next >= end {
                return Ok(batches);
            }
            if next <= before {
                return Err(failed(format!("nothing can be read at offset {next} of a log that ends at {end}")));
            }
            reply = self.adapter.call(&one_log::read(log, next), false).map_err(failed)?;
        }
    }

    fn take_in(&mut self, name: &str, state: &State, batches: Vec<RecordBatch>) -> Result<(), TargetError> {
        let shown = batches.iter().map(|b| Ok(ObservedBatch { offset: b.base_offset().get(), batch: decode(b)? }));
        let log = shown.collect::<Result<_, TargetError>>()?;
        let replica = self.replicas.get_mut(name).ok_or_else(|| TargetError::UnknownReplica(name.to_owned()))?;
        let open = state.ongoing_transactions.iter();
        replica.state = ObservedState {
            up: true,
            mirror_state: mirror_state(replica.gate.state()),
            log_start_offset: state.log_start_offset,
            log_end_offset: state.log_end_offset,
            high_watermark: state.high_watermark,
            last_stable_offset: state.last_stable_offset,
            log,
            producers: state.producers.iter().map(entry).collect(),
            open_transactions: open.map(|t| OpenTransaction { producer_id: t.producer_id, first_offset: t.first_offset }).collect(),
            aborted_transactions: state.aborted_transactions.as_ref().map(|all| all.iter().map(aborted).collect()),
        };
        replica.life = Life::Up;
        replica.batches = batches;
        Ok(())
    }
}

fn aborted(of: &crate::adapter::state::AbortedTransaction) -> AbortedTransaction {
    AbortedTransaction { producer_id: of.producer_id, first_offset: of.first_offset, last_offset: of.last_offset }
}

fn entry(entry: &Producer) -> ProducerEntry {
    let cached = entry.batches.iter().map(|batch| CachedBatch {
        base_sequence: batch.base_sequence,
        last_sequence: batch.last_sequence,
        base_offset: batch.base_offset,
        last_offset: batch.last_offset,
    });
    ProducerEntry {
        producer_id: entry.producer_id,
        producer_epoch: entry.producer_epoch,
        coordinator_epoch: entry.coordinator_epoch,
        batches: cached.collect(),
        txn_first_offset: entry.txn_first_offset,
    }
}

/// What a trace tells of a log that is not open.
fn down(state: &mut ObservedState) {
    state.up = false;
    state.producers.clear();
    state.open_transactions.clear();
    state.high_watermark = state.log_end_offset;
    state.last_stable_offset = state.log_end_offset;
}

const fn empty() -> ObservedState {
    ObservedState {
        up: true,
        mirror_state: MirrorState::Stopped,
        log_start_offset: 0,
        log_end_offset: 0,
        high_watermark: 0,
        last_stable_offset: 0,
        log: Vec::new(),
        producers: Vec::new(),
        open_transactions: Vec::new(),
        aborted_transactions: None,
    }
}
