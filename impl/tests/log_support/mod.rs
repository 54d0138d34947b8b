//! Logs driven by short lines, and shown in one: data in, data out.
//!
//! A batch: `5.0#0` is producer id 5, epoch 0, sequence 0; `x3` behind it makes three records of it, `t` before it a
//! transactional one, `@7` behind it is its timestamp after [`NOW`] in milliseconds. `-` has no producer. `CM5.0` and
//! `AB5.0` are markers, `c7` behind them the coordinator epoch (else 0). `BAR` is a barrier, `BAR<A` one that names source
//! cluster A. `CTL9` is a control batch of type 9 without a producer, `CTL9:5.0` one under producer id 5. `E1/` before any
//! of them is the leader epoch (else 0).
//!
//! A line: `client B`, `coordinator B` (`coordinator/2 B` under transaction version 2), `copy B B | B` (one follower append
//! a group), `mirror B B | B` (the same from another cluster), `hw N`, `truncate N`, `crash N` (N bytes torn off, then
//! unclean recovery), `clean` (orderly stop and clean open), `reopen` (clean open without the orderly stop), `snapshot`,
//! `drop-snapshots`, `expire N` (N milliseconds after [`NOW`]), `source A`.

use bytes::{Bytes, BytesMut};
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{AppendError, AppendResult, FetchIsolation, LOG_FILE, LogConfig, PartitionLog, Recovery};
use cleanslate_log::psm::{AppendOrigin, ProducerStateEntry, ProducerStateManager, TransactionVersion, snapshot_files};
use cleanslate_log::record::{BatchBuilder, MirrorPidResetRecord, Record, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// The clock of all tests, in milliseconds.
pub(crate) const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

/// A log in memory with its settings.
#[derive(Clone, Debug)]
pub(crate) struct TestLog {
    pub(crate) log: PartitionLog<MemoryStorage>,
}

/// Runs lines on a new log, each with what has to come back, and compares what [`show`] says afterwards.
#[track_caller]
pub(crate) fn check(config: &LogConfig, lines: &[(&str, &str)], state: &str) -> TestLog {
    let mut log = TestLog::new(config);
    for (line, expected) in lines {
        assert_eq!(&log.run(line), expected, "line `{line}`");
    }
    assert_eq!(show(&log.log), state, "after {lines:?}");
    log
}

impl TestLog {
    pub(crate) fn new(config: &LogConfig) -> Self {
        let log = PartitionLog::create(MemoryStorage::new(), config.clone(), NOW).unwrap();
        Self { log }
    }

    /// Carries out a line; returns the offsets, or the name of Kafka's exception, or nothing.
    pub(crate) fn run(&mut self, line: &str) -> String {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.parse::<i64>().unwrap();
        let tv = match verb.split_once('/').map(|(_, tv)| tv) {
            None | Some("1") => TransactionVersion::V1,
            Some("2") => TransactionVersion::V2,
            Some(_) => TransactionVersion::Unknown,
        };
        match verb.split('/').next().unwrap() {
            "client" => self.lead(rest, AppendOrigin::Client, tv),
            "coordinator" => self.lead(rest, AppendOrigin::Coordinator, tv),
            "copy" => self.follow(rest, ReplicationPath::IntraCluster),
            "mirror" => self.follow(rest, ReplicationPath::Mirror),
            "hw" => {
                self.log.update_high_watermark(Offset(number()));
                String::new()
            }
            "truncate" => match self.log.truncate_to(Offset(number()), NOW) {
                Ok(cut) => if cut { "cut" } else { "" }.to_owned(),
                Err(error) => error.kafka_class().to_owned(),
            },
            "crash" => {
                let mut storage = self.log.storage().clone();
                let len = storage.len(LOG_FILE).unwrap().unwrap();
                storage.truncate(LOG_FILE, len - u64::try_from(number()).unwrap()).unwrap();
                self.open(storage, Recovery::Unclean)
            }
            "clean" => {
                self.log.close_clean().unwrap();
                self.open(self.log.storage().clone(), Recovery::Clean)
            }
            "reopen" => self.open(self.log.storage().clone(), Recovery::Clean),
            "snapshot" => {
                self.log.take_snapshot().unwrap();
                String::new()
            }
            "drop-snapshots" => {
                let mut storage = self.log.storage().clone();
                for file in snapshot_files(&storage).unwrap() {
                    storage.remove(&file.name).unwrap();
                }
                self.open(storage, Recovery::Clean)
            }
            "expire" => {
                let now = TimestampMs(NOW.get() + number());
                self.log.remove_expired_producers(now);
                String::new()
            }
            "source" => {
                self.log.set_mirror_source(Some(rest.to_owned())).unwrap();
                String::new()
            }
            other => panic!("no such verb: {other}"),
        }
    }

    fn open(&mut self, storage: MemoryStorage, recovery: Recovery) -> String {
        let config = self.log.config().clone();
        match PartitionLog::open(storage, config, recovery, NOW) {
            Ok((log, _)) => {
                self.log = log;
                String::new()
            }
            Err(error) => error.kafka_class().to_owned(),
        }
    }

    fn lead(&mut self, spec: &str, origin: AppendOrigin, tv: TransactionVersion) -> String {
        let batch = batch(spec, Offset(0));
        let epoch = batch.leader_epoch();
        let bytes = batch.bytes().clone();
        outcome(&self.log.append_as_leader(bytes, origin, epoch, tv, NOW))
    }

    fn follow(&mut self, groups: &str, path: ReplicationPath) -> String {
        let mut outcomes = Vec::new();
        for group in groups.split('|') {
            let bytes = batches(group, self.log.log_end_offset());
            let result = self.log.append_as_follower(bytes, LeaderEpoch(9), path, NOW);
            outcomes.push(outcome(&result));
        }
        outcomes.join(" | ")
    }
}

fn outcome(result: &Result<AppendResult, AppendError>) -> String {
    match result {
        Err(error) => error.kafka_class().to_owned(),
        Ok(result) => {
            let (first, last) = (result.first_offset, result.last_offset);
            let range = if first == last { first.to_string() } else { format!("{first}..{last}") };
            let kind = if result.duplicate { "duplicate " } else { "" };
            format!("{kind}{range}")
        }
    }
}

/// Batches one behind the other from an offset on.
pub(crate) fn batches(specs: &str, first: Offset) -> Bytes {
    let mut next = first;
    let mut out = BytesMut::new();
    for spec in specs.split_whitespace() {
        let batch = batch(spec, next);
        next = batch.next_offset();
        out.extend_from_slice(batch.bytes());
    }
    out.freeze()
}

/// One batch at an offset.
pub(crate) fn batch(spec: &str, offset: Offset) -> RecordBatch {
    let (epoch, spec) = match spec.strip_prefix('E').and_then(|s| s.split_once('/')) {
        Some((epoch, rest)) => (LeaderEpoch(epoch.parse().unwrap()), rest),
        None => (LeaderEpoch(0), spec),
    };
    if let Some(rest) = spec.strip_prefix("BAR") {
        let record = MirrorPidResetRecord { version: 0, source_cluster_id: rest.strip_prefix('<').map(str::to_owned) };
        return RecordBatch::mirror_pid_reset(offset, epoch, NOW, &record).unwrap();
    }
    if let Some(rest) = spec.strip_prefix("CTL") {
        return control(rest, offset, epoch);
    }
    let marker = spec.strip_prefix("CM").map(|rest| (true, rest)).or(spec.strip_prefix("AB").map(|rest| (false, rest)));
    match marker {
        Some((commit, rest)) => {
            let (producer, coordinator) = rest.split_once('c').unwrap_or((rest, "0"));
            let (id, producer_epoch) = producer_of(producer);
            let coordinator = CoordinatorEpoch(coordinator.parse().unwrap());
            let (timestamp, id_epoch) = (NOW, producer_epoch);
            RecordBatch::end_txn_marker(offset, epoch, timestamp, id, id_epoch, commit, coordinator).unwrap()
        }
        None => data(spec, offset, epoch),
    }
}

fn data(spec: &str, offset: Offset, epoch: LeaderEpoch) -> RecordBatch {
    let (spec, after_ms) = spec.split_once('@').unwrap_or((spec, "0"));
    let timestamp = TimestampMs(NOW.get() + after_ms.parse::<i64>().unwrap());
    let (spec, count) = spec.split_once('x').unwrap_or((spec, "1"));
    let transactional = spec.starts_with('t');
    let mut builder = BatchBuilder::new(offset).leader_epoch(epoch).timestamp(timestamp).transactional(transactional);
    if spec != "-" {
        let (producer, sequence) = spec.trim_start_matches('t').split_once('#').unwrap();
        let (id, producer_epoch) = producer_of(producer);
        builder = builder.producer(id, producer_epoch, Sequence(sequence.parse().unwrap()));
    }
    for _ in 0..count.parse::<u32>().unwrap() {
        builder = builder.record(Some(b"k"), Some(b"v"));
    }
    builder.build().unwrap()
}

/// `9`, or `9:5.0`.
fn control(spec: &str, offset: Offset, epoch: LeaderEpoch) -> RecordBatch {
    let (type_id, producer) = spec.split_once(':').unwrap_or((spec, "-1.-1"));
    let (id, producer_epoch) = producer_of(producer);
    let mut key = vec![0, 0];
    key.extend_from_slice(&type_id.parse::<i16>().unwrap().to_be_bytes());
    let record =
        Record { offset, timestamp: NOW, key: Some(key.into()), value: Some(Bytes::from_static(&[0, 0])), headers: Vec::new() };
    BatchBuilder::new(offset)
        .leader_epoch(epoch)
        .producer(id, producer_epoch, Sequence::NONE)
        .control(true)
        .append(record)
        .build()
        .unwrap()
}

fn producer_of(spec: &str) -> (ProducerId, ProducerEpoch) {
    let (id, epoch) = spec.split_once('.').unwrap();
    let id = ProducerId(id.parse().unwrap());
    (id, ProducerEpoch(epoch.parse().unwrap()))
}

/// `LEO 3 HW 0 LSO 0 {7:e0[0@0,1@2]c3txn@2}`, and behind it the aborted transactions, as id/first/last/LSO, and those
/// open transactions that no entry knows, as `open@first`.
pub(crate) fn show<S: Storage>(log: &PartitionLog<S>) -> String {
    let mut out = format!(
        "LEO {} HW {} LSO {} {}",
        log.log_end_offset(),
        log.high_watermark(),
        log.last_stable_offset(),
        show_producers(log.producer_state())
    );
    for aborted in log.aborted_transactions() {
        let (id, lso) = (aborted.producer_id, aborted.last_stable_offset);
        let (first, last) = (aborted.first_offset, aborted.last_offset);
        out.push_str(&format!(" aborted {id}/{first}/{last}/{lso}"));
    }
    for txn in log.producer_state().ongoing_transactions().values() {
        let entry = log.producer_state().last_entry(txn.producer_id);
        if entry.and_then(|e| e.current_txn_first_offset) != Some(txn.first_offset) {
            out.push_str(&format!(" open@{}", txn.first_offset));
        }
    }
    assert_readable(log);
    out
}

/// The log's bytes are its batches, and a reader of everything gets exactly them.
fn assert_readable<S: Storage>(log: &PartitionLog<S>) {
    let batches = log.batches().unwrap();
    let all = log.read(Offset(0), FetchIsolation::LogEnd, usize::MAX).unwrap();
    let bytes: Vec<u8> = batches.iter().flat_map(|b| b.bytes().to_vec()).collect();
    assert_eq!(all, bytes);
}

/// `{7:e0[0@0,1@2]c3txn@2}`.
pub(crate) fn show_producers(psm: &ProducerStateManager) -> String {
    let entries: Vec<String> = psm.active_producers().values().map(show_entry).collect();
    format!("{{{}}}", entries.join(" "))
}

fn show_entry(entry: &ProducerStateEntry) -> String {
    let batches: Vec<String> = entry.batches().iter().map(|b| format!("{}@{}", b.first_sequence(), b.first_offset())).collect();
    let coordinator = match entry.coordinator_epoch {
        CoordinatorEpoch::NONE => String::new(),
        epoch => format!("c{epoch}"),
    };
    let txn = match entry.current_txn_first_offset {
        Some(offset) => format!("txn@{offset}"),
        None => String::new(),
    };
    let (id, epoch) = (entry.producer_id, entry.producer_epoch);
    format!("{id}:e{epoch}[{}]{coordinator}{txn}", batches.join(","))
}
