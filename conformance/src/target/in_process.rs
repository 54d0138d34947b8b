//! The target `impl`: the log of this project in the same process, over storage in memory.
//!
//! A crash is that of a process: what was appended survives, what was only in memory does not. Everything happens at one moment and
//! under one leader epoch, because no trace tells of clocks or epochs.

use std::collections::BTreeMap;

use cleanslate_log::barrier::BarrierPolicy;
use cleanslate_log::log::{AppendError, AppendResult, FetchIsolation, LogConfig, LogError, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::mirror::{MirrorDesign, MirrorError, MirrorMetadata, MirrorPartition, MirrorState as LogMirrorState};
use cleanslate_log::psm::{AppendOrigin, ProducerIdVisibility, TransactionVersion, snapshot_files};
use cleanslate_log::record::BatchReader;
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerId};
use serde::Serialize;

use super::axes::Axes;
use super::codec::{NOW, encode};
use super::show::show;
use super::{Observed, ObservedState, Target, TargetError};
use crate::trace::format::{Batch, MirrorState, Op, Origin, Trace};

/// The leader epoch of every append.
const LEADER_EPOCH: LeaderEpoch = LeaderEpoch(0);

pub(super) type Partition = MirrorPartition<MemoryStorage>;

/// Rules that are those of stock Kafka, whatever a trace's design says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StockRules {
    /// A barrier is stored and clears nothing.
    pub barriers: bool,
    /// The ProducerStateManager sees no negative ids.
    pub ids: bool,
}

/// The log of this project.
#[derive(Clone, Debug, Default)]
pub struct InProcess {
    stock: StockRules,
    config: LogConfig,
    design: MirrorDesign,
    /// Clients may write from the beginning of a stop on.
    open_while_stopping: bool,
    replicas: BTreeMap<String, Replica>,
    /// How many batches were sent, so that no two have the same payload.
    sent: u64,
}

#[derive(Clone, Debug)]
struct Replica {
    cluster: String,
    broker: Broker,
}

/// The files of a replica, by the offsets in their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Files {
    /// The base offsets of the segments.
    pub segments: Vec<i64>,
    /// The offsets of the producer snapshots.
    pub snapshots: Vec<i64>,
}

/// A replica's broker.
#[derive(Clone, Debug)]
enum Broker {
    Up(Box<Partition>),
    /// What is left of it, and what can be seen of that. Only the way in which it starts again tells whether it had stopped in good
    /// order, so the partition is kept as it was.
    Down(Box<Partition>, Box<ObservedState>),
}

/// What a log answers, told apart from what a target cannot do.
fn answer<T, E>(result: Result<T, E>, class: impl Fn(&E) -> &'static str, done: impl Fn(T) -> Observed) -> Observed {
    result.map_or_else(|e| Observed::Error(class(&e).to_owned()), done)
}

fn appended(result: AppendResult) -> Observed {
    let (base_offset, last_offset) = (result.first_offset.get(), result.last_offset.get());
    if result.duplicate {
        Observed::Duplicate { base_offset, last_offset }
    } else {
        Observed::Appended { base_offset, last_offset }
    }
}

pub(super) fn failed(error: impl std::fmt::Display) -> TargetError {
    TargetError::Failed(error.to_string())
}

fn impossible(text: impl Into<String>) -> TargetError {
    TargetError::Impossible(text.into())
}

impl InProcess {
    /// The log of this project as far as `stock` says under the rules of stock Kafka, else under those of the trace's design.
    #[must_use]
    pub fn under(stock: StockRules) -> Self {
        Self { stock, ..Self::default() }
    }
}

impl Target for InProcess {
    fn name(&self) -> &'static str {
        "impl"
    }

    fn reset(&mut self, trace: &Trace) -> Result<(), TargetError> {
        let axes = Axes::new(&trace.scenario.axes)?;
        let (mut config, design) = (axes.log_config()?, axes.mirror_design()?);
        if self.stock.barriers {
            config.barrier = BarrierPolicy::default();
        }
        if self.stock.ids {
            config.ids = ProducerIdVisibility::Stock;
        }
        let open_while_stopping = axes.open_while_stopping()?;
        let mut replicas = BTreeMap::new();
        for replica in &trace.replicas {
            let partition = new_partition(&config, &design, replica.mirrors.as_deref()).map_err(failed)?;
            let broker = Broker::Up(Box::new(partition));
            replicas.insert(replica.name.clone(), Replica { cluster: replica.cluster.clone(), broker });
        }
        *self = Self { stock: self.stock, config, design, open_while_stopping, replicas, sent: 0 };
        Ok(())
    }

    fn execute(&mut self, op: &Op) -> Result<Observed, TargetError> {
        match op {
            Op::Append { replica, origin, batch, .. } => self.append(replica, *origin, batch),
            Op::Mirror { replica, from, offset, batches, .. } => self.mirror(replica, from, Offset(*offset), *batches),
            Op::Truncate { replica, offset } => {
                let result = self.up(replica)?.log_mut().truncate_to(Offset(*offset), NOW);
                Ok(answer(result, LogError::kafka_class, |_| Observed::Done))
            }
            Op::HighWatermark { replica, offset } => {
                self.up(replica)?.log_mut().update_high_watermark(Offset(*offset));
                Ok(Observed::Done)
            }
            Op::MirrorState { replica, to, source } => {
                let result = turn(self.up(replica)?, *to, source.as_deref());
                Ok(answer(result, MirrorError::kafka_class, |()| Observed::Done))
            }
            Op::LearnMirrorState { replica, to, source } => {
                let result = self.up(replica)?.learn(log_state(*to), source.as_deref());
                Ok(answer(result, MirrorError::kafka_class, |()| Observed::Done))
            }
            // Who leads is the cluster's business: a log does what it is told.
            Op::Lead { replica } => self.up(replica).map(|_| Observed::Done),
            Op::Roll { replica } => {
                let result = self.up(replica)?.log_mut().roll(NOW);
                Ok(answer(result, LogError::kafka_class, |_| Observed::Done))
            }
            Op::LastMirroredOffset { replica, offset } => record_last_mirrored(self.up(replica)?, Offset(*offset)),
            Op::Crash { replica } => self.crash(replica),
            Op::Recover { replica, clean } => self.recover(replica, *clean),
        }
    }

    fn observe(&mut self, replica: &str) -> Result<ObservedState, TargetError> {
        match &self.replica(replica)?.broker {
            Broker::Up(partition) => show(partition),
            Broker::Down(_, state) => Ok(ObservedState::clone(state)),
        }
    }
}

impl InProcess {
    fn replica(&self, name: &str) -> Result<&Replica, TargetError> {
        self.replicas.get(name).ok_or_else(|| TargetError::UnknownReplica(name.to_owned()))
    }

    /// The base offsets of a replica's segments, and the offsets of its producer snapshots: what a trace does not tell of its files.
    ///
    /// # Errors
    /// [`TargetError`] if there is no such replica, or its storage cannot be read.
    pub fn files(&self, name: &str) -> Result<Files, TargetError> {
        let log = self.log(name)?;
        let snapshots = snapshot_files(log.storage()).map_err(failed)?;
        Ok(Files {
            segments: log.segments().map(|(base, _)| base.get()).collect(),
            snapshots: snapshots.iter().map(|file| file.offset.get()).collect(),
        })
    }

    /// A replica's log; that of a broker that is down as it was before.
    ///
    /// # Errors
    /// [`TargetError::UnknownReplica`].
    pub fn log(&self, name: &str) -> Result<&PartitionLog<MemoryStorage>, TargetError> {
        let (Broker::Up(partition) | Broker::Down(partition, _)) = &self.replica(name)?.broker;
        Ok(partition.log())
    }

    /// The id under which `to` stores a batch of `from` (MAP-1): a follower copies its leader as it is; only the leader of a mirror maps ids.
    ///
    /// # Errors
    /// [`TargetError::UnknownReplica`].
    pub fn stored_id(&self, from: &str, to: &str, id: ProducerId) -> Result<ProducerId, TargetError> {
        let maps = self.replica(from)?.cluster != self.replica(to)?.cluster;
        Ok(if maps { self.design.pid_mapping.map(id) } else { id })
    }

    /// As whom, and under which transaction version, a replica's log appends what comes from `origin` now.
    ///
    /// # Errors
    /// [`TargetError::UnknownReplica`].
    pub fn append_as(&self, name: &str, origin: Origin) -> Result<(AppendOrigin, TransactionVersion), TargetError> {
        let (Broker::Up(partition) | Broker::Down(partition, _)) = &self.replica(name)?.broker;
        Ok(append_as(partition, origin))
    }

    fn up(&mut self, name: &str) -> Result<&mut Partition, TargetError> {
        match self.replicas.get_mut(name).map(|r| &mut r.broker) {
            Some(Broker::Up(partition)) => Ok(partition),
            Some(Broker::Down(..)) => Err(impossible(format!("the broker of {name} is down"))),
            None => Err(TargetError::UnknownReplica(name.to_owned())),
        }
    }

    fn append(&mut self, replica: &str, origin: Origin, batch: &Batch) -> Result<Observed, TargetError> {
        self.sent += 1;
        let bytes = encode(batch, self.sent)?.bytes().clone();
        let open_while_stopping = self.open_while_stopping;
        let partition = self.up(replica)?;
        let stopping = partition.state() == LogMirrorState::Stopping;
        let (origin, tv) = append_as(partition, origin);
        if stopping && open_while_stopping && origin == AppendOrigin::Client {
            // The gate of this design is open already; that of the partition is not.
            let result = partition.log_mut().append_as_leader(bytes, origin, LEADER_EPOCH, tv, NOW);
            return Ok(answer(result, AppendError::kafka_class, appended));
        }
        let result = partition.append_as_leader(bytes, origin, LEADER_EPOCH, tv, NOW);
        Ok(answer(result, AppendError::kafka_class, appended))
    }

    fn mirror(&mut self, replica: &str, from: &str, offset: Offset, batches: u32) -> Result<Observed, TargetError> {
        let (own, source) = (self.replica(replica)?, self.replica(from)?);
        let same_cluster = own.cluster == source.cluster;
        let Broker::Up(source) = &source.broker else { return Err(impossible(format!("the broker of {from} is down"))) };
        let rest = source.log().read(offset, FetchIsolation::LogEnd, usize::MAX);
        let rest = rest.map_err(|e| impossible(format!("reading {from}: {e}")))?;
        let mut reader = BatchReader::new(rest.clone());
        let whole = reader.by_ref().take(usize::try_from(batches).unwrap_or(usize::MAX)).filter(Result::is_ok).count();
        if u32::try_from(whole) != Ok(batches) {
            return Err(impossible(format!("{from} holds {whole} batches from offset {offset} on, expected {batches} or more")));
        }
        let bytes = rest.slice(..reader.position().min(rest.len()));
        let partition = self.up(replica)?;
        let end = partition.log().log_end_offset();
        if end != offset {
            return Err(impossible(format!("the log of {replica} ends at offset {end}, expected {offset}")));
        }
        // A follower copies its leader as it is; only the leader of a mirror maps ids.
        Ok(if same_cluster {
            answer(partition.append_as_follower(bytes, LEADER_EPOCH, NOW), AppendError::kafka_class, appended)
        } else {
            answer(partition.mirror_append(bytes, LEADER_EPOCH, NOW), MirrorError::kafka_class, appended)
        })
    }

    fn crash(&mut self, name: &str) -> Result<Observed, TargetError> {
        let partition = self.up(name)?.clone();
        let mut state = show(&partition)?;
        state.up = false;
        state.producers.clear();
        state.open_transactions.clear();
        // A log that is not open has neither; the format says what stands in their place.
        state.high_watermark = state.log_end_offset;
        state.last_stable_offset = state.log_end_offset;
        self.put(name, Broker::Down(Box::new(partition), Box::new(state)));
        Ok(Observed::Done)
    }

    fn recover(&mut self, name: &str, clean: bool) -> Result<Observed, TargetError> {
        let Broker::Down(partition, _) = &self.replica(name)?.broker else {
            return Err(impossible(format!("the broker of {name} is up already")));
        };
        let mut log = partition.log().clone();
        let recovery = if clean { Recovery::Clean } else { Recovery::Unclean };
        if clean {
            log.close_clean().map_err(failed)?;
        }
        // What a roll has made durable is not recovered again.
        let options = OpenOptions { recovery, recovery_point: log.recovery_point(), log_start_offset: log.log_start_offset() };
        let opened = PartitionLog::open(log.into_storage(), self.config.clone(), options, NOW);
        match opened.and_then(|(log, _)| MirrorPartition::new(log, self.design.clone())) {
            Ok(partition) => {
                self.put(name, Broker::Up(Box::new(partition)));
                Ok(Observed::Done)
            }
            Err(e) => Ok(Observed::Error(e.kafka_class().to_owned())),
        }
    }

    fn put(&mut self, name: &str, broker: Broker) {
        if let Some(replica) = self.replicas.get_mut(name) {
            replica.broker = broker;
        }
    }
}

fn append_as(partition: &Partition, origin: Origin) -> (AppendOrigin, TransactionVersion) {
    match origin {
        Origin::Client => (AppendOrigin::Client, TransactionVersion::Unknown),
        Origin::Coordinator if partition.state() != LogMirrorState::Stopping => (AppendOrigin::Coordinator, TransactionVersion::V2),
        // The ABORT markers of a stop carry the producer's present epoch, as they did before transaction version 2.
        Origin::Coordinator | Origin::StoppingMirror => (AppendOrigin::Coordinator, TransactionVersion::V0),
    }
}

fn new_partition(config: &LogConfig, design: &MirrorDesign, mirrors: Option<&str>) -> Result<Partition, LogError> {
    let mut storage = MemoryStorage::new();
    if let Some(source) = mirrors {
        let metadata = MirrorMetadata {
            state: LogMirrorState::Mirroring,
            source_cluster: Some(source.to_owned()),
            ..MirrorMetadata::default()
        };
        metadata.store(&mut storage)?;
    }
    MirrorPartition::new(PartitionLog::create(storage, config.clone(), NOW)?, design.clone())
}

pub(super) const fn log_state(state: MirrorState) -> LogMirrorState {
    match state {
        MirrorState::LogAlignment => LogMirrorState::LogAlignment,
        MirrorState::EpochFencing => LogMirrorState::EpochFencing,
        MirrorState::UleRecovery => LogMirrorState::UleRecovery,
        MirrorState::Mirroring => LogMirrorState::Mirroring,
        MirrorState::Pausing => LogMirrorState::Pausing,
        MirrorState::Paused => LogMirrorState::Paused,
        MirrorState::Stopping => LogMirrorState::Stopping,
        MirrorState::Stopped => LogMirrorState::Stopped,
        MirrorState::Failed => LogMirrorState::Failed,
    }
}

fn turn(partition: &mut Partition, to: MirrorState, source: Option<&str>) -> Result<(), MirrorError> {
    match (to, source) {
        (MirrorState::LogAlignment, Some(source)) => partition.start(source).map(|_| ()),
        (MirrorState::Stopping, _) => {
            partition.transition(LogMirrorState::Stopping)?;
            // The first step of every stop sequence, and no operation of its own: it changes no log.
            partition.remove_fetcher();
            Ok(())
        }
        (to, _) => partition.transition(log_state(to)),
    }
}

fn record_last_mirrored(partition: &mut Partition, offset: Offset) -> Result<Observed, TargetError> {
    let end = partition.log().log_end_offset();
    if partition.state() != LogMirrorState::Stopping {
        // A design may become writable first. The partition stores the offset only while it stops, and no operation of a trace
        // depends on it: where a failback truncates, the trace says.
        return Ok(Observed::Done);
    }
    if offset != end {
        return Err(impossible(format!("the log ends at offset {end}, expected the last mirrored offset {offset}")));
    }
    Ok(answer(partition.record_last_mirrored_offset(), MirrorError::kafka_class, |_| Observed::Done))
}
