//! What the traps need beyond lines.

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::snapshot_files;
use cleanslate_log::record::{ATTRIBUTES_POSITION, CRC_POSITION, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerId};

use crate::log_support::{NOW, TestLog, batch};

pub(crate) type Log = PartitionLog<MemoryStorage>;

/// A log on which lines were run.
pub(crate) fn after(config: &LogConfig, lines: &[&str]) -> TestLog {
    let mut log = TestLog::new(config);
    for line in lines {
        log.run(line);
    }
    log
}

pub(crate) fn stock(lines: &[&str]) -> TestLog {
    after(&LogConfig::default(), lines)
}

/// A log that begins a segment behind every two records of producer 5, with sequences 0 to 5, and was stopped in order:
/// segments at 0, 2 and 4, snapshots at 2, 4 and 6.
pub(crate) fn three_segments() -> Log {
    let mut log = stock(&[]);
    for sequence in 0..6 {
        if sequence == 2 || sequence == 4 {
            log.log.roll(NOW).unwrap();
        }
        log.run(&format!("copy 5.0#{sequence}"));
    }
    log.log.close_clean().unwrap();
    log.log
}

/// Opens files.
pub(crate) fn open(storage: &MemoryStorage, recovery: Recovery, recovery_point: i64, log_start: i64) -> Log {
    let options = OpenOptions { recovery, recovery_point: Offset(recovery_point), log_start_offset: Offset(log_start) };
    PartitionLog::open(storage.clone(), LogConfig::default(), options, NOW).unwrap().0
}

pub(crate) fn snapshots(storage: &impl Storage) -> Vec<i64> {
    snapshot_files(storage).unwrap().iter().map(|file| file.offset.get()).collect()
}

/// The producers that are known.
pub(crate) fn ids(log: &Log) -> Vec<i64> {
    log.producer_state().active_producers().keys().map(|id| id.get()).collect()
}

/// Sequences and offsets of the remembered batches of a producer, by their last record.
pub(crate) fn remembered(log: &Log, id: i64) -> Vec<(i32, i64)> {
    let entry = log.producer_state().last_entry(ProducerId(id)).unwrap();
    entry.batches().iter().map(|batch| (batch.last_sequence.get(), batch.last_offset.get())).collect()
}

pub(crate) fn epochs(log: &Log) -> Vec<(i32, i64)> {
    log.leader_epochs().entries().iter().map(|entry| (entry.epoch.get(), entry.start_offset.get())).collect()
}

pub(crate) fn bases(log: &Log) -> Vec<i64> {
    log.segments().map(|(base, _)| base.get()).collect()
}

/// A follower appends bytes; the offset of the first record, or the name of Kafka's exception.
pub(crate) fn follow(log: &mut Log, bytes: Bytes) -> Result<i64, &'static str> {
    let result = log.append_as_follower(bytes, LeaderEpoch(9), ReplicationPath::IntraCluster, NOW);
    result.map(|result| result.first_offset.get()).map_err(|error| error.kafka_class())
}

/// The bytes of a batch with some of them set, and the CRC that belongs to that.
pub(crate) fn patched(spec: &str, patches: &[(usize, u8)]) -> Bytes {
    let mut bytes = batch(spec, Offset(0)).bytes().to_vec();
    for (position, byte) in patches {
        bytes[*position] = *byte;
    }
    let crc = crc32c::crc32c(&bytes[ATTRIBUTES_POSITION..]);
    bytes[CRC_POSITION..CRC_POSITION + 4].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(bytes)
}

pub(crate) fn decoded(bytes: &Bytes) -> RecordBatch {
    RecordBatch::decode(bytes, 0).unwrap().0
}

/// The bytes of a file.
pub(crate) fn file(log: &Log, name: &str) -> Vec<u8> {
    log.storage().read_all(name).unwrap().unwrap().to_vec()
}
