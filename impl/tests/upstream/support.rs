#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Small helpers: batches, and a ProducerStateManager with its storage.

use std::ops::RangeInclusive;

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{FetchIsolation, LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::{
    AppendOrigin, BatchFacts, BatchKind, CompletedTxn, ProducerIdVisibility, ProducerStateEntry, ProducerStateError,
    ProducerStateManager, TransactionVersion, snapshot_files,
};
use cleanslate_log::record::{BatchBuilder, BatchReader, Record, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

pub(crate) const DAY_MS: i64 = 86_400_000;
pub(crate) const OUT_OF_ORDER: &str = "OutOfOrderSequenceException";
pub(crate) const STALE_EPOCH: &str = "InvalidProducerEpochException";
pub(crate) const INVALID_TXN: &str = "InvalidTxnStateException";
pub(crate) const FENCED: &str = "TransactionCoordinatorFencedException";

/// Data of producer 1 from a sequence on, over a range of offsets.
pub(crate) fn data(epoch: i16, sequence: i32, offsets: RangeInclusive<i64>) -> BatchFacts {
    let delta = i32::try_from(offsets.end() - offsets.start()).unwrap();
    let last_sequence = if sequence < 0 { Sequence(sequence) } else { Sequence(sequence).plus(delta) };
    BatchFacts {
        base_offset: Offset(*offsets.start()),
        last_offset: Offset(*offsets.end()),
        producer_id: ProducerId(1),
        producer_epoch: ProducerEpoch(epoch),
        base_sequence: Sequence(sequence),
        last_sequence,
        max_timestamp: TimestampMs(1),
        transactional: false,
        kind: BatchKind::Data,
        position: None,
    }
}

/// One record of producer 1.
pub(crate) fn one(epoch: i16, sequence: i32, offset: i64) -> BatchFacts {
    data(epoch, sequence, offset..=offset)
}

pub(crate) fn txn(facts: BatchFacts) -> BatchFacts {
    BatchFacts { transactional: true, ..facts }
}

pub(crate) fn of(id: i64, facts: BatchFacts) -> BatchFacts {
    BatchFacts { producer_id: ProducerId(id), ..facts }
}

pub(crate) fn at_time(timestamp: i64, mut facts: BatchFacts) -> BatchFacts {
    facts.max_timestamp = TimestampMs(timestamp);
    if let BatchKind::Marker { timestamp: of_marker, .. } = &mut facts.kind {
        *of_marker = TimestampMs(timestamp);
    }
    facts
}

fn marker(epoch: i16, commit: bool, coordinator: i32, offset: i64) -> BatchFacts {
    BatchFacts {
        kind: BatchKind::Marker { commit, coordinator_epoch: CoordinatorEpoch(coordinator), timestamp: TimestampMs(1) },
        ..txn(one(epoch, -1, offset))
    }
}

pub(crate) fn commit(epoch: i16, coordinator: i32, offset: i64) -> BatchFacts {
    marker(epoch, true, coordinator, offset)
}

pub(crate) fn abort(epoch: i16, coordinator: i32, offset: i64) -> BatchFacts {
    marker(epoch, false, coordinator, offset)
}

/// The epoch that a marker has after data of an epoch.
pub(crate) fn epoch_for_marker(epoch: i16, tv: TransactionVersion) -> i16 {
    if tv == TransactionVersion::V2 { epoch + 1 } else { epoch }
}

/// A ProducerStateManager, its files, and its clock in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Psm {
    pub(crate) state: ProducerStateManager,
    pub(crate) storage: MemoryStorage,
    pub(crate) now: i64,
}

pub(crate) type Outcome = Result<Option<CompletedTxn>, &'static str>;

impl Psm {
    pub(crate) fn new() -> Self {
        let state = ProducerStateManager::new(ProducerIdVisibility::Stock, DAY_MS);
        Self { state, storage: MemoryStorage::new(), now: 1 }
    }

    pub(crate) fn try_append(
        &mut self,
        origin: AppendOrigin,
        tv: TransactionVersion,
        facts: &BatchFacts,
    ) -> Result<Option<CompletedTxn>, ProducerStateError> {
        let mut info = self.state.prepare_update(facts.producer_id, origin);
        let completed = info.append(facts, tv)?;
        self.state.update(info);
        if let Some(completed) = &completed {
            self.state.complete_txn(completed)?;
        }
        self.state.set_map_end_offset(facts.last_offset.plus(1));
        Ok(completed)
    }

    pub(crate) fn client(&mut self, facts: &BatchFacts) -> Outcome {
        self.try_append(AppendOrigin::Client, TransactionVersion::Unknown, facts).map_err(|e| e.kafka_class())
    }

    pub(crate) fn copy(&mut self, facts: &BatchFacts) -> Outcome {
        self.try_append(AppendOrigin::Replication, TransactionVersion::Unknown, facts).map_err(|e| e.kafka_class())
    }

    pub(crate) fn coordinator(&mut self, tv: TransactionVersion, facts: &BatchFacts) -> Outcome {
        self.try_append(AppendOrigin::Coordinator, tv, facts).map_err(|e| e.kafka_class())
    }

    pub(crate) fn snapshot(&mut self) {
        self.state.take_snapshot(&mut self.storage).unwrap();
    }

    pub(crate) fn snapshots(&self) -> Vec<i64> {
        snapshots_in(&self.storage)
    }

    pub(crate) fn reload(&mut self, start: i64, end: i64) {
        self.state.truncate_and_reload(&mut self.storage, Offset(start), Offset(end), TimestampMs(self.now)).unwrap();
    }

    /// Another manager over the same files.
    pub(crate) fn recovered(&self, start: i64, end: i64) -> Self {
        let mut recovered = Self { storage: self.storage.clone(), now: self.now, ..Self::new() };
        recovered.reload(start, end);
        recovered
    }

    pub(crate) fn entry(&self, id: i64) -> &ProducerStateEntry {
        self.state.last_entry(ProducerId(id)).unwrap()
    }

    /// First and last sequence of the newest batch, and its first and last offset.
    pub(crate) fn newest(&self, id: i64) -> (i32, i32, i64, i64) {
        let batch = self.entry(id).last_batch().unwrap();
        (batch.first_sequence().get(), batch.last_sequence.get(), batch.first_offset().get(), batch.last_offset.get())
    }

    pub(crate) fn unstable(&self) -> Option<i64> {
        self.state.first_unstable_offset().map(Offset::get)
    }

    pub(crate) fn undecided(&self) -> Option<i64> {
        self.state.first_undecided_offset().map(Offset::get)
    }

    pub(crate) fn high_watermark(&mut self, offset: i64) {
        self.state.on_high_watermark_updated(Offset(offset));
    }

    pub(crate) fn expire(&mut self) {
        self.state.remove_expired_producers(TimestampMs(self.now));
    }

    /// First open offset of the producer's transaction.
    pub(crate) fn open_since(&self, id: i64) -> Option<i64> {
        self.entry(id).current_txn_first_offset.map(Offset::get)
    }
}

/// Offsets of the snapshot files.
pub(crate) fn snapshots_in(storage: &impl Storage) -> Vec<i64> {
    snapshot_files(storage).unwrap().iter().map(|file| file.offset.get()).collect()
}

/// The clock of the log tests, in milliseconds.
pub(crate) const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

pub(crate) type Log = PartitionLog<MemoryStorage>;

pub(crate) fn new_log(config: &LogConfig) -> Log {
    PartitionLog::create(MemoryStorage::new(), config.clone(), NOW).unwrap()
}

/// Records of a producer, to be given offsets.
pub(crate) fn produced(id: i64, epoch: i16, sequence: i32, count: usize) -> BatchBuilder {
    let producer = (ProducerId(id), ProducerEpoch(epoch), Sequence(sequence));
    filled(BatchBuilder::new(Offset(0)).timestamp(NOW).producer(producer.0, producer.1, producer.2), count)
}

/// Records without a producer.
pub(crate) fn plain(count: usize) -> BatchBuilder {
    filled(BatchBuilder::new(Offset(0)).timestamp(NOW), count)
}

fn filled(builder: BatchBuilder, count: usize) -> BatchBuilder {
    (0..count).fold(builder, |builder, _| builder.record(Some(b"key"), Some(b"value")))
}

/// A marker in its batch.
pub(crate) fn end_txn(id: i64, epoch: i16, commit: bool, coordinator: i32) -> RecordBatch {
    let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
    let coordinator = CoordinatorEpoch(coordinator);
    RecordBatch::end_txn_marker(Offset(0), LeaderEpoch(0), NOW, id, epoch, commit, coordinator).unwrap()
}

/// A leader of epoch 0 appends for a client at [`NOW`].
pub(crate) fn lead(log: &mut Log, batch: BatchBuilder) -> Result<(i64, i64), &'static str> {
    lead_as(log, &batch.build().unwrap(), AppendOrigin::Client, TransactionVersion::Unknown, NOW)
}

/// A leader of epoch 0 appends a marker under transaction version 0.
pub(crate) fn lead_marker(log: &mut Log, batch: &RecordBatch) -> Result<(i64, i64), &'static str> {
    lead_as(log, batch, AppendOrigin::Coordinator, TransactionVersion::V0, NOW)
}

pub(crate) fn lead_as(
    log: &mut Log,
    batch: &RecordBatch,
    origin: AppendOrigin,
    tv: TransactionVersion,
    now: TimestampMs,
) -> Result<(i64, i64), &'static str> {
    let result = log.append_as_leader(batch.bytes().clone(), origin, LeaderEpoch(0), tv, now);
    result.map(|r| (r.first_offset.get(), r.last_offset.get())).map_err(|e| e.kafka_class())
}

/// A follower appends batches at the offsets that they have, fetched under the highest leader epoch.
pub(crate) fn follow(log: &mut Log, batches: &[RecordBatch]) -> Result<(i64, i64), &'static str> {
    follow_under(log, batches, i32::MAX)
}

pub(crate) fn follow_under(log: &mut Log, batches: &[RecordBatch], epoch: i32) -> Result<(i64, i64), &'static str> {
    let bytes: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes().to_vec()).collect();
    let result = log.append_as_follower(bytes.into(), LeaderEpoch(epoch), ReplicationPath::IntraCluster, NOW);
    result.map(|r| (r.first_offset.get(), r.last_offset.get())).map_err(|e| e.kafka_class())
}

/// The batch at an offset under a leader epoch.
pub(crate) fn placed(batch: BatchBuilder, offset: i64, epoch: i32) -> RecordBatch {
    batch.build().unwrap().with_base_offset(Offset(offset)).with_leader_epoch(LeaderEpoch(epoch))
}

/// Base offsets of the segments.
pub(crate) fn bases(log: &Log) -> Vec<i64> {
    log.segments().map(|(base, _)| base.get()).collect()
}

/// The leader epochs with their first offsets.
pub(crate) fn epochs(log: &Log) -> Vec<(i32, i64)> {
    log.leader_epochs().entries().iter().map(|entry| (entry.epoch.get(), entry.start_offset.get())).collect()
}

/// End offset, high watermark, first unstable offset.
pub(crate) fn ends(log: &Log) -> (i64, i64, Option<i64>) {
    (log.log_end_offset().get(), log.high_watermark().get(), log.first_unstable_offset().map(Offset::get))
}

/// Opens the log's files anew.
pub(crate) fn reopen(log: &Log, recovery: Recovery, recovery_point: i64, log_start: i64) -> Log {
    reopen_files(log.storage().reopened(), log.config(), recovery, recovery_point, log_start)
}

pub(crate) fn reopen_files(
    storage: MemoryStorage,
    config: &LogConfig,
    recovery: Recovery,
    recovery_point: i64,
    log_start: i64,
) -> Log {
    let (recovery_point, log_start_offset) = (Offset(recovery_point), Offset(log_start));
    let options = OpenOptions { recovery, recovery_point, log_start_offset };
    PartitionLog::open(storage, config.clone(), options, NOW).unwrap().0
}

/// Offsets of the batches that a reader gets, first and last.
pub(crate) fn read(log: &Log, from: i64, isolation: FetchIsolation) -> Result<Vec<(i64, i64)>, &'static str> {
    let bytes = log.read(Offset(from), isolation, usize::MAX).map_err(|e| e.kafka_class())?;
    let batches = BatchReader::new(bytes).map(Result::unwrap);
    Ok(batches.map(|batch| (batch.base_offset().get(), batch.last_offset().get())).collect())
}

pub(crate) fn hw(log: &mut Log, offset: i64) {
    log.update_high_watermark(Offset(offset));
}

/// A leader of some epoch appends for a client.
pub(crate) fn lead_under(log: &mut Log, batch: BatchBuilder, epoch: i32) {
    let bytes = batch.build().unwrap().bytes().clone();
    let tv = TransactionVersion::Unknown;
    log.append_as_leader(bytes, AppendOrigin::Client, LeaderEpoch(epoch), tv, NOW).unwrap();
}

/// A later time, in milliseconds after [`NOW`].
pub(crate) fn later(ms: i64) -> TimestampMs {
    TimestampMs(NOW.get() + ms)
}

/// One record with a time.
pub(crate) fn timed(timestamp: TimestampMs) -> BatchBuilder {
    BatchBuilder::new(Offset(0)).timestamp(timestamp).record(Some(b"key"), Some(b"value"))
}

/// The size of a batch of one record without a producer, in bytes.
pub(crate) fn record_bytes() -> usize {
    plain(1).build().unwrap().size_in_bytes()
}

/// Settings with so many single records in a segment.
pub(crate) fn per_segment(records: usize) -> LogConfig {
    LogConfig { segment_bytes: record_bytes() * records, ..LogConfig::default() }
}

pub(crate) fn map_end(log: &Log) -> i64 {
    log.producer_state().map_end_offset().get()
}

/// Sequence of the newest batch of a producer, and its last offset.
pub(crate) fn last_of(log: &Log, id: i64) -> Option<(i32, i64)> {
    let entry = log.producer_state().last_entry(ProducerId(id))?;
    Some((entry.last_sequence().get(), entry.last_data_offset().get()))
}

/// The producers that are known.
pub(crate) fn ids(log: &Log) -> Vec<i64> {
    log.producer_state().active_producers().keys().map(|id| id.get()).collect()
}

pub(crate) fn snapshots(log: &Log) -> Vec<i64> {
    snapshots_in(log.storage())
}

pub(crate) fn start_at(log: &mut Log, offset: i64) {
    assert_eq!(log.maybe_increment_log_start_offset(Offset(offset)), Ok(true));
}

/// Removes all snapshots from the files of a log.
pub(crate) fn without_snapshots(log: &Log) -> MemoryStorage {
    let mut storage = log.storage().clone();
    for file in snapshot_files(&storage).unwrap() {
        storage.remove(&file.name).unwrap();
    }
    storage
}

/// A batch that compaction has left some records of.
pub(crate) fn compacted(builder: BatchBuilder, kept: &[i64], last: i64) -> RecordBatch {
    let record = |offset: &i64| Record { offset: Offset(*offset), timestamp: NOW, ..Record::default() };
    builder.records(kept.iter().map(record)).last_offset(Offset(last)).leader_epoch(LeaderEpoch(0)).build().unwrap()
}
