//! Actions become requests.

use bytes::Bytes;
use cleanslate_log::log::{FetchIsolation, PartitionLog};
use cleanslate_log::psm::ProducerStateEntry;
use cleanslate_log::record::{
    AnyBatchReader, BatchBuilder, Compression, ControlRecord, EncodeError, MAGIC_POSITION, MirrorPidResetRecord, RecordBatch,
};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::action::{Action, Codec, Copied, Damaged, Data, End, Flip, Loss, SequenceChoice, Which};
use super::local::Local;
use super::needs::{Names, Needs, lacking, possible};
use super::old::{is_set, old_records};
use crate::adapter::message::{Config, Cut, Operation, Origin};
use crate::adapter::reply::{Answer, Reply};
use crate::adapter::{Abilities, Hex};

/// The clock when a sequence begins, in milliseconds.
pub const START_MS: i64 = 1_700_000_000_000;

const MINUTE_MS: i64 = 60_000;
/// The length of a batch's first field.
const BASE_OFFSET_BYTES: usize = 8;

/// Turns the actions of one plan into requests, one after the other, and carries them out on the log of this project: what an action
/// becomes depends on the state that it meets. An action that needs what the other side lacks is left out.
#[derive(Clone, Debug)]
pub struct Concrete {
    local: Local,
    abilities: Abilities,
    needs: Needs,
    /// What the requests of the present action need and the other side lacks.
    missing: Names,
    /// What was missing for actions that were left out.
    pub left_out: Names,
    /// What was asked, and what came of it here.
    pub requests: Vec<(Operation, Reply)>,
    epochs: [i32; 2],
    guards: [u32; 2],
    /// How many batches were made, so that no two have the same payload.
    serial: u64,
    /// Whether a log may hold a compressed set of an old format. Cleaning would compress it anew, to other bytes on the other side.
    holds_sets: bool,
}

/// What a new batch needs to know.
#[derive(Clone, Copy)]
struct Slot<'a> {
    log: &'a PartitionLog<MemoryStorage>,
    now: TimestampMs,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
}

/// Two of the three ids meet in one bucket of Java's hash map, so that the order of a snapshot tells who came first.
fn id_of(producer: i8) -> ProducerId {
    match producer {
        0 => ProducerId(16),
        1 => ProducerId(0),
        2 => ProducerId(33),
        other => ProducerId(i64::from(other)),
    }
}

fn name(which: Which) -> String {
    match which {
        Which::A => "A".to_owned(),
        Which::B => "B".to_owned(),
    }
}

fn index(which: Which) -> usize {
    usize::from(which == Which::B)
}

impl Concrete {
    /// For another side that can do this, and has no logs.
    #[must_use]
    pub fn new(abilities: Abilities) -> Self {
        Self {
            local: Local::default(),
            abilities,
            needs: Needs::default(),
            missing: Names::new(),
            left_out: Names::new(),
            requests: Vec::new(),
            epochs: [0; 2],
            guards: [0; 2],
            serial: 0,
            holds_sets: false,
        }
    }

    /// Two new logs, with those settings that are possible on the other side.
    pub fn begin(&mut self, now_ms: i64, config: &Config) {
        let possible = possible(config, &self.abilities);
        for log in ["A", "B"] {
            self.ask(Operation::Create { log: log.to_owned(), now_ms, config: possible.clone() });
        }
    }

    /// Asks for something that the other side may lack; then it is left out. Tells whether it was asked for.
    fn attempt(&mut self, ask: impl FnOnce(&mut Self)) -> bool {
        // A copy of the logs for each action costs more than the action.
        let before = if self.abilities.is_all() { None } else { Some(self.clone()) };
        ask(self);
        match before {
            Some(before) if !self.missing.is_empty() => {
                let mut left_out = std::mem::take(&mut self.left_out);
                left_out.append(&mut self.missing);
                *self = Self { left_out, ..before };
                false
            }
            _ => true,
        }
    }

    /// Asks for one thing.
    pub fn ask(&mut self, operation: Operation) {
        let log = operation.log().map(ToOwned::to_owned);
        let segments = |local: &Local| log.as_deref().and_then(|log| local.log(log)).map(|log| log.segments().count());
        let before = segments(&self.local);
        let may_replace = matches!(operation, Operation::Roll { .. } | Operation::TruncateFully { .. });
        let reply = self.local.call(&operation, true);
        if !self.abilities.is_all() {
            let missing = lacking(self.needs.next(&operation, &reply), &self.abilities);
            match operation {
                // Nothing else depends on these two: one that does not know the first puts nothing off, and files are only looked at.
                Operation::RunTasks { .. } if !self.abilities.knows(operation.name()) => return,
                Operation::Files { .. } if !missing.is_empty() => return self.left_out.extend(missing),
                _ => self.missing.extend(missing),
            }
        }
        self.requests.push((operation, reply));
        if let (Some(before), Some(after), Some(log)) = (before, segments(&self.local), &log)
            && (before != after || may_replace)
        {
            // What a broker does a moment after a new segment has begun, here it does at once.
            self.ask(Operation::RunTasks { log: log.clone() });
        }
    }

    fn epoch(&self, which: Which) -> i32 {
        self.epochs.get(index(which)).copied().unwrap_or(0)
    }

    fn log(&self, which: Which) -> Option<&PartitionLog<MemoryStorage>> {
        self.local.log(&name(which))
    }

    /// The files that this project's log has written, as it was closed or as it stands, are put into a log of their own and opened there
    /// by both sides.
    pub fn transplant(&mut self, which: Which, config: &Config, clean: bool) {
        let config = possible(config, &self.abilities);
        self.attempt(|concrete| concrete.carry_over(which, &config, clean));
    }

    fn carry_over(&mut self, which: Which, config: &Config, clean: bool) {
        let Some(log) = self.log(which) else { return };
        let log_start = log.log_start_offset().get();
        let now_ms = self.local.now(&name(which)).get();
        if clean {
            self.ask(Operation::RunTasks { log: name(which) });
            self.ask(Operation::Close { log: name(which) });
        }
        let other = "C".to_owned();
        self.ask(Operation::Create { log: other.clone(), now_ms, config: config.clone() });
        let lost = ["*.log", "*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint"].map(ToOwned::to_owned);
        self.ask(Operation::Crash { log: other.clone(), cuts: Vec::new(), lost: lost.into() });
        for (file, bytes) in self.local.stored(&name(which)) {
            self.ask(Operation::PutFile { log: other.clone(), file, content: Hex::from(bytes.as_ref()) });
        }
        self.ask(Operation::Open { log: other.clone(), clean, recovery_point: 0, log_start, now_ms: None });
        // Where no start is possible, what is left of the files tells nothing.
        if self.requests.last().is_some_and(|(_, reply)| reply.outcome.is_ok()) {
            self.ask(Operation::RunTasks { log: other.clone() });
            self.ask(Operation::Close { log: other.clone() });
            self.ask(Operation::Files { log: other, content: true });
        }
    }

    /// An offset at so many 255ths of the log; the largest lies one beyond its end.
    fn at(&self, which: Which, at: u8) -> i64 {
        let Some(log) = self.log(which) else { return 0 };
        let (start, end) = (log.log_start_offset().get(), log.log_end_offset().get());
        let from = start.saturating_sub(1).max(0);
        from.saturating_add(end.saturating_sub(from).saturating_add(1).saturating_mul(i64::from(at)) / 254)
    }

    /// Carries out an action; one that makes no sense in the present state becomes nothing.
    pub fn act(&mut self, action: &Action) {
        if self.is_stuck() || self.attempt(|concrete| concrete.carry_out(action)) {
            return;
        }
        let whole = match action.clone() {
            Action::Restart { log, clean, recovery, .. } => Action::Restart { log, clean, loss: Loss::Nothing, recovery },
            Action::Crash { log, recovery, .. } => Action::Crash { log, loss: Loss::Nothing, recovery },
            _ => return,
        };
        self.attempt(|concrete| concrete.carry_out(&whole));
    }

    fn carry_out(&mut self, action: &Action) {
        match action {
            Action::Produce { .. }
            | Action::Finish { .. }
            | Action::Control { .. }
            | Action::Copy { .. }
            | Action::Replicate { .. } => {
                self.append(action);
            }
            Action::Restart { log, clean, loss, recovery } => self.restart(*log, Some(*clean), *loss, *recovery),
            Action::Crash { log, loss, recovery } => self.restart(*log, None, *loss, *recovery),
            Action::BecomeLeader { log, ahead } => {
                let epoch = self.epoch(*log).saturating_add(i32::from(*ahead));
                if let Some(own) = self.epochs.get_mut(index(*log)) {
                    *own = epoch;
                }
                self.ask(Operation::BecomeLeader { log: name(*log), leader_epoch: epoch });
            }
            Action::Verify { log, producer, epoch, sequence, bump } if *producer >= 0 => {
                self.ask(Operation::StartVerification {
                    log: name(*log),
                    producer_id: id_of(*producer).get(),
                    producer_epoch: i16::from(*epoch),
                    sequence: i32::from(*sequence),
                    epoch_bump: *bump,
                });
                if let Some((_, Reply { outcome: Ok(Answer::Guard(guard)), .. })) = self.requests.last()
                    && let Some(own) = self.guards.get_mut(index(*log))
                {
                    *own = guard.guard;
                }
            }
            Action::Compact { .. } if self.holds_sets => {}
            other => {
                if let Action::Compact { log, prepare: true, .. } = other {
                    self.prepare_cleaning(*log);
                }
                if let Some(operation) = self.simple(other) {
                    self.ask(operation);
                }
            }
        }
    }

    /// Everything is replicated, and the active segment is empty: what is decided can be cleaned.
    fn prepare_cleaning(&mut self, which: Which) {
        let Some(offset) = self.log(which).map(|log| log.log_end_offset().get()) else { return };
        let rule = crate::adapter::message::HighWatermarkRule::Set;
        self.ask(Operation::HighWatermark { log: name(which), offset, rule });
        self.ask(Operation::Roll { log: name(which) });
    }

    /// A refused append over a gap may have begun a segment behind the log end offset. Kafka cannot write index entries there, and fails
    /// after it has written the batch; nothing that follows tells anything. Nor does a log that damage keeps from being loaded.
    fn is_stuck(&self) -> bool {
        [Which::A, Which::B].into_iter().any(|which| {
            self.log(which).is_none_or(|log| {
                let active = log.segments().last().map(|(base, _)| base);
                active.is_some_and(|base| base > log.log_end_offset())
            })
        })
    }

    /// Actions that become one request.
    fn simple(&self, action: &Action) -> Option<Operation> {
        let later = |log: Which, minutes: u16| {
            self.local.now(&name(log)).get().saturating_add(i64::from(minutes).saturating_mul(MINUTE_MS))
        };
        Some(match action {
            Action::Truncate { log, at } => Operation::Truncate { log: name(*log), offset: self.at(*log, *at) },
            Action::TruncateFully { log, ahead } => {
                let end = self.log(*log)?.log_end_offset().get();
                Operation::TruncateFully { log: name(*log), offset: end.saturating_add(i64::from(*ahead)) }
            }
            Action::HighWatermark { log, at, rule } => {
                let offset = self.at(*log, *at);
                let offset = if *at == u8::MAX { self.log(*log)?.log_end_offset().get() } else { offset };
                Operation::HighWatermark { log: name(*log), offset, rule: *rule }
            }
            Action::LogStart { log, at } => Operation::LogStart { log: name(*log), offset: self.at(*log, *at) },
            Action::EpochEnd { log, epoch } => Operation::EndOffsetForEpoch { log: name(*log), leader_epoch: i32::from(*epoch) },
            Action::Roll { log } => Operation::Roll { log: name(*log) },
            Action::Flush { log } => Operation::Flush { log: name(*log) },
            Action::Snapshot { log } => Operation::Snapshot { log: name(*log) },
            Action::DeleteSnapshots { log, at } => Operation::DeleteSnapshots { log: name(*log), before: self.at(*log, *at) },
            Action::Expire { log, minutes } => Operation::Expire { log: name(*log), now_ms: later(*log, *minutes) },
            Action::Wait { log, minutes } => Operation::SetTime { log: name(*log), now_ms: later(*log, *minutes) },
            Action::Retention { log } => Operation::Retention { log: name(*log) },
            Action::Compact { log, minutes, .. } => {
                let stable = self.log(*log)?.last_stable_offset().get();
                let (first_dirty, now_ms) = (self.log(*log)?.log_start_offset().get(), later(*log, *minutes));
                Operation::Compact { log: name(*log), first_dirty, first_uncleanable: stable, now_ms }
            }
            Action::Read { log, at, isolation, max_bytes, min_one_message } => Operation::Read {
                log: name(*log),
                offset: self.at(*log, *at),
                max_bytes: u32::from(*max_bytes),
                isolation: *isolation,
                min_one_message: *min_one_message,
            },
            _ => return None,
        })
    }

    fn append(&mut self, action: &Action) {
        self.serial = self.serial.saturating_add(1);
        match action {
            Action::Produce { log, data, guarded } => {
                let guard = if *guarded { self.guards.get(index(*log)).copied().unwrap_or(0) } else { 0 };
                let batch = self.slot(*log).map(|slot| records(slot, data, self.serial));
                self.lead(*log, batch, Origin::Client, 0, guard);
            }
            Action::Finish { log, end, version } => {
                let batch = self.slot(*log).map(|slot| marker(slot, end));
                self.lead(*log, batch, Origin::Coordinator, i16::from(*version), 0);
            }
            Action::Control { log, type_id, producer } => {
                let batch = self.slot(*log).map(|slot| control(slot, *type_id, *producer));
                self.lead(*log, batch, Origin::Coordinator, 0, 0);
            }
            Action::Copy { log, batches, gap, epoch } => self.copy(*log, batches, *gap, *epoch),
            Action::Replicate { groups } => groups.iter().for_each(|group| self.replicate(usize::from(*group))),
            _ => {}
        }
    }

    fn slot(&self, which: Which) -> Option<Slot<'_>> {
        let log = self.log(which)?;
        let now = self.local.now(&name(which));
        Some(Slot { log, now, base_offset: Offset(0), leader_epoch: LeaderEpoch(self.epoch(which)) })
    }

    fn lead(&mut self, which: Which, batch: Option<Result<RecordBatch, EncodeError>>, origin: Origin, version: i16, guard: u32) {
        let Some(Ok(batch)) = batch else { return };
        self.ask(Operation::AppendLeader {
            log: name(which),
            batch: Hex::from(batch.bytes().as_ref()),
            origin,
            leader_epoch: self.epoch(which),
            transaction_version: version,
            guard,
        });
    }

    fn copy(&mut self, which: Which, batches: &[Copied], gap: u8, epoch: i8) {
        let own = self.epoch(which);
        let Some(mut slot) = self.slot(which) else { return };
        slot.base_offset = slot.log.log_end_offset().plus(i64::from(gap));
        slot.leader_epoch = LeaderEpoch(own.saturating_add(i32::from(epoch)).max(0));
        let mut bytes = Vec::new();
        let (mut serial, mut holds_sets) = (self.serial, self.holds_sets);
        for copied in batches {
            serial = serial.saturating_add(1);
            let batch = match copied {
                Copied::Old(old) => {
                    let Ok((old_bytes, next_offset)) = old_records(old, slot.base_offset, slot.now, serial) else { continue };
                    holds_sets |= is_set(old);
                    slot.base_offset = next_offset;
                    bytes.extend_from_slice(&old_bytes);
                    continue;
                }
                Copied::Data(data) => records(slot, data, serial),
                Copied::End(end) => marker(slot, end),
                Copied::Control(type_id, producer) => control(slot, *type_id, *producer),
            };
            let Ok(batch) = batch else { continue };
            slot.base_offset = batch.next_offset();
            bytes.extend_from_slice(batch.bytes());
        }
        (self.serial, self.holds_sets) = (serial, holds_sets);
        self.ask(Operation::AppendFollower { log: name(which), batches: Hex(bytes), leader_epoch: own });
    }

    /// `B` reads so many batches of `A` from its own end on, and appends them.
    fn replicate(&mut self, batches: usize) {
        let (Some(a), Some(b)) = (self.log(Which::A), self.log(Which::B)) else { return };
        let from = b.log_end_offset();
        let Ok(bytes) = a.read(from, FetchIsolation::LogEnd, usize::MAX) else { return };
        let mut reader = AnyBatchReader::new(bytes.clone());
        let count = reader.by_ref().take(batches).map_while(Result::ok).count();
        let end = reader.position().min(bytes.len());
        if count > 0 {
            let leader_epoch = self.epoch(Which::A);
            self.ask(Operation::AppendFollower {
                log: "B".to_owned(),
                batches: Hex::from(bytes.slice(..end).as_ref()),
                leader_epoch,
            });
        }
    }

    /// What a crash loses of a log's files.
    fn damage(&self, which: Which, loss: Loss) -> (Vec<Cut>, Vec<String>) {
        let bases: Vec<i64> = self.log(which).map(|log| log.segments().map(|(base, _)| base.get()).collect()).unwrap_or_default();
        let (first, last) = (bases.first().copied().unwrap_or(0), bases.last().copied().unwrap_or(0));
        match loss {
            Loss::Nothing => (Vec::new(), Vec::new()),
            Loss::Tail(bytes) => (vec![Cut { file: format!("{last:020}.log"), bytes: u64::from(bytes) }], Vec::new()),
            Loss::Snapshots => (Vec::new(), vec!["*.snapshot".to_owned()]),
            Loss::Index => (Vec::new(), vec![format!("*{first:020}.index")]),
            // Bytes are changed when the log is closed; see `flip`.
            Loss::Flip(_) => (Vec::new(), Vec::new()),
        }
    }

    /// Turns a bit in a file of a log that is not open; nothing if there is no such file, or it is empty.
    fn flip(&mut self, which: Which, flip: Flip) {
        let files = self.local.stored(&name(which));
        let found = |end: &str, last: bool| {
            let mut fitting = files.iter().filter(|(name, _)| name.ends_with(end));
            if last { fitting.next_back() } else { fitting.next() }
        };
        let file = match flip.file {
            Damaged::Segment => found(".log", true),
            Damaged::OffsetIndex(last) => found(".index", last),
            Damaged::TimeIndex(last) => found(".timeindex", last),
            Damaged::TransactionIndex(last) => found(".txnindex", last),
            Damaged::Snapshot => found(".snapshot", true),
            Damaged::LeaderEpochs => found("leader-epoch-checkpoint", false),
        };
        let Some((file, bytes)) = file else { return };
        let mut content = bytes.to_vec();
        let at = usize::from(flip.at).checked_rem(content.len()).unwrap_or(0);
        let at = if flip.file == Damaged::Segment { in_a_batch(bytes, bytes.len().saturating_sub(at + 1)) } else { at };
        let Some(byte) = content.get_mut(at) else { return };
        *byte ^= 1_u8.wrapping_shl(u32::from(flip.bit));
        let put = Operation::PutFile { log: name(which), file: file.clone(), content: Hex(content) };
        self.ask(put);
    }

    /// A stop and a start. `clean` is how the log is started after a clean stop; after a crash there is no choice.
    fn restart(&mut self, which: Which, clean: Option<bool>, loss: Loss, recovery: u8) {
        let log = name(which);
        let Some(open) = self.log(which) else { return };
        let log_start = open.log_start_offset().get();
        // Kafka believes a damaged offset index of a segment that it does not recover, and finds other batches by it.
        let is_believed = matches!(loss, Loss::Flip(Flip { file: Damaged::OffsetIndex(_), .. }));
        let recovery = if is_believed { 0 } else { recovery };
        let recovery_point = open.recovery_point().get().saturating_mul(i64::from(recovery)) / 255;
        let high_watermark = open.high_watermark().get();
        let reopen = |clean| Operation::Open { log: log.clone(), clean, recovery_point, log_start, now_ms: None };
        // What a running broker does by and by is done: what is lost otherwise is only repaired in part.
        let settle = Operation::RunTasks { log: log.clone() };
        self.ask(settle.clone());
        let crashes = clean.is_none() || loss != Loss::Nothing;
        if let Some(clean) = clean {
            self.ask(Operation::Close { log: log.clone() });
            self.ask(Operation::Files { log: log.clone(), content: true });
            self.ask(reopen(clean));
            self.ask(settle);
        }
        if crashes {
            let (cuts, lost) = self.damage(which, loss);
            self.ask(Operation::Crash { log: log.clone(), cuts, lost });
            if let Loss::Flip(flip) = loss {
                self.flip(which, flip);
            }
            self.ask(reopen(false));
        }
        // Damage may keep the log from being loaded.
        if self.log(which).is_some() {
            let rule = crate::adapter::message::HighWatermarkRule::Set;
            self.ask(Operation::HighWatermark { log, offset: high_watermark, rule });
        }
    }
}

fn records(slot: Slot<'_>, data: &Data, serial: u64) -> Result<RecordBatch, EncodeError> {
    let timestamp = TimestampMs(slot.now.get().saturating_sub(i64::from(data.age_minutes).saturating_mul(MINUTE_MS)));
    let mut builder =
        BatchBuilder::new(slot.base_offset).leader_epoch(slot.leader_epoch).timestamp(timestamp).transactional(data.transactional);
    let mut count = data.records.max(1);
    if let Some(producer) = data.producer {
        let id = id_of(producer);
        let entry = slot.log.producer_state().last_entry(id);
        let (epoch, sequence, records) = sequence(entry, data);
        builder = builder.producer(id, epoch, sequence);
        count = records;
    }
    let compression = compression(data.codec);
    builder = builder.compression(compression);
    for i in 0..count {
        // What the cleaner compresses anew may have other bytes on the other side: a compressed batch stays as it is, or goes as a whole.
        let whole = compression != Compression::None;
        let key = if whole && count > 1 { format!("c{serial}.{i}") } else { format!("k{}", serial % 5) };
        let value = format!("{serial}.{i}");
        // Some are tombstones.
        let value = if serial.is_multiple_of(7) && i == 0 && !whole { None } else { Some(value.as_bytes()) };
        builder = builder.record(Some(key.as_bytes()), value);
    }
    builder.build()
}

/// A byte of a segment, at or behind this one, whose damage both sides see alike. The base offset and the magic are covered by no checksum:
/// Kafka goes on with another offset, even one below that before, splits segments whose offsets overflow, and takes a magic above 2 for 2.
fn in_a_batch(segment: &Bytes, at: usize) -> usize {
    let mut reader = AnyBatchReader::new(segment.clone());
    let mut start = 0;
    while reader.next().is_some_and(|batch| batch.is_ok()) && reader.position() <= at {
        start = reader.position();
    }
    match at.saturating_sub(start) {
        field if field < BASE_OFFSET_BYTES => at.saturating_add(BASE_OFFSET_BYTES),
        MAGIC_POSITION => at.saturating_add(1),
        _ => at,
    }
}

pub(super) fn compression(codec: Codec) -> Compression {
    match codec {
        Codec::None => Compression::None,
        Codec::Gzip => Compression::Gzip,
        Codec::Snappy => Compression::Snappy,
        Codec::Lz4 => Compression::Lz4,
        Codec::Zstd => Compression::Zstd,
    }
}

/// Epoch, first sequence and number of records of a batch.
fn sequence(entry: Option<&ProducerStateEntry>, data: &Data) -> (ProducerEpoch, Sequence, u8) {
    let epoch = ProducerEpoch(i16::from(data.epoch));
    let same_epoch = entry.is_some_and(|entry| entry.producer_epoch == epoch);
    let next = match entry {
        Some(entry) if same_epoch && !entry.is_empty() => entry.last_sequence().plus(1),
        _ => Sequence(0),
    };
    let sequence = match data.sequence {
        SequenceChoice::Next => next,
        SequenceChoice::Again(back) => {
            let batch = entry.and_then(|entry| entry.batches().iter().rev().nth(usize::from(back)));
            if let (Some(entry), Some(batch)) = (entry, batch) {
                let records = u8::try_from(batch.offset_delta.saturating_add(1)).unwrap_or(1);
                return (entry.producer_epoch, batch.first_sequence(), records);
            }
            next
        }
        SequenceChoice::Gap(gap) => next.plus(i32::from(gap)),
        SequenceChoice::Zero => Sequence(0),
        SequenceChoice::NearMax(before) => Sequence(i32::MAX.saturating_sub(i32::from(before))),
    };
    (epoch, sequence, data.records.max(1))
}

fn marker(slot: Slot<'_>, end: &End) -> Result<RecordBatch, EncodeError> {
    let (id, epoch) = (id_of(end.producer), ProducerEpoch(i16::from(end.epoch)));
    let coordinator_epoch = CoordinatorEpoch(i32::from(end.coordinator_epoch));
    RecordBatch::end_txn_marker(slot.base_offset, slot.leader_epoch, slot.now, id, epoch, end.commit, coordinator_epoch)
}

fn control(slot: Slot<'_>, type_id: i8, producer: Option<i8>) -> Result<RecordBatch, EncodeError> {
    let mut builder = BatchBuilder::new(slot.base_offset).leader_epoch(slot.leader_epoch).timestamp(slot.now).control(true);
    if let Some(producer) = producer {
        builder = builder.producer(id_of(producer), ProducerEpoch(0), Sequence::NONE);
    }
    if type_id == 7 {
        let record = MirrorPidResetRecord { version: 0, source_cluster_id: Some("source".to_owned()) };
        return builder.control_record(ControlRecord::MirrorPidReset(record)).build();
    }
    let key = [0, 0, 0, type_id.unsigned_abs()];
    builder.record(Some(&key), Some(&[0, 0, 0])).build()
}
