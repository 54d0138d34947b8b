//! A log directory that a broker left after an orderly stop, and the partitions that were in it.

use bytes::Bytes;
use cleanslate_log::log::{OpenOptions, Recovery};
use cleanslate_log::log_dir::{
    CLEAN_SHUTDOWN_FILE, CheckpointFile, CleanShutdown, ClosedLog, DirectoryName, LogDirState, META_PROPERTIES_FILE,
    MetaProperties, OffsetCheckpoint, PARTITION_METADATA_FILE, PartitionMetadata,
};
use cleanslate_log::storage::{MemoryStorage, Storage as _};
use cleanslate_log::types::{BrokerEpoch, Offset, TimestampMs};

use super::loads::{differing_fields, open_with, state_of};
use super::manifest::{Directory, Manifest};

const FILES: [CheckpointFile; 4] =
    [CheckpointFile::RecoveryPoint, CheckpointFile::LogStartOffset, CheckpointFile::HighWatermark, CheckpointFile::Cleaner];

/// The log directory. The mark of an orderly stop lies under another name in the corpus.
fn log_dir() -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    for (name, bytes) in Directory::at("real/log-dir-files").files() {
        let name = if name == "dot-kafka_cleanshutdown" { CLEAN_SHUTDOWN_FILE } else { &name };
        storage.replace(name, &bytes).unwrap();
    }
    storage
}

fn bytes_of(storage: &MemoryStorage, file: CheckpointFile) -> Bytes {
    storage.read_all(file.name()).unwrap().unwrap()
}

#[test]
fn checkpoints_are_written_as_they_were_read() {
    let storage = log_dir();
    for (file, entries) in FILES.into_iter().zip([20, 1, 20, 4]) {
        let checkpoint = OffsetCheckpoint::load(&storage, file).unwrap();
        assert_eq!(checkpoint.entries().len(), entries, "{}", file.name());
        assert_eq!(checkpoint.encode(), bytes_of(&storage, file), "{}", file.name());
        // Filled in another order; but a broker has another kind of table for high watermarks.
        if file != CheckpointFile::HighWatermark {
            let mut filled = checkpoint.entries().to_vec();
            let quarter = filled.len() / 4;
            filled.rotate_left(quarter);
            assert_eq!(OffsetCheckpoint::new(filled), checkpoint, "{}", file.name());
        }
    }
    let metadata = PartitionMetadata::load(&storage).unwrap().unwrap();
    assert_eq!(Some(metadata.encode()), storage.read_all(PARTITION_METADATA_FILE).unwrap());
    assert_eq!(metadata.topic_id.to_string(), "ZM-RU10hTHiVWOh4VdERuQ");
    let mark = storage.read_all(CLEAN_SHUTDOWN_FILE).unwrap().unwrap();
    assert_eq!(CleanShutdown::decode(&mark).broker_epoch, Some(BrokerEpoch(306)));
    assert_eq!(CleanShutdown::encode(BrokerEpoch(306)), mark);
    let owner = storage.read_all(META_PROPERTIES_FILE).unwrap().unwrap();
    let written_at = TimestampMs(1_796_096_032_000);
    assert_eq!(MetaProperties::decode(&owner).unwrap().encode(written_at), owner);
}

/// Every partition of the corpus that was in that log directory is opened by what the directory says, as Kafka opened it;
/// and closed again, so that the directory says the same.
#[test]
fn a_log_directory_says_how_its_partitions_are_opened() {
    let mut storage = log_dir();
    let (state, unreadable) = LogDirState::start(&mut storage).unwrap();
    assert_eq!(unreadable, []);
    let mut closed = Vec::new();
    for (case, directory) in Manifest::load().directories() {
        let name = directory.path.rsplit('/').next().unwrap();
        let partition = DirectoryName::parse(name).unwrap().partition;
        let is_of_that_broker = format!("real/{}/{name}", partition.topic) == directory.path;
        let Some(recovery_point) = state.recovery_points.get(&partition).filter(|_| is_of_that_broker) else { continue };
        let load = directory.loads.iter().find(|load| load.mode == "clean").unwrap();
        let log_start_offset = Offset(load.log_start_offset_checkpoint);
        let options = state.open_options(&partition);
        assert_eq!(options, OpenOptions { recovery: Recovery::Clean, recovery_point, log_start_offset }, "{name}");
        let mut log = open_with(case, directory, load, options).unwrap();
        log.close_clean().unwrap();
        closed.push(ClosedLog::of(partition, &log));
        assert_eq!(differing_fields(&state_of(log), load.state.as_ref().unwrap()), [], "{name}");
    }
    assert_eq!(closed.len(), 12);
    for log in &closed {
        assert_eq!(Some(log.recovery_point), state.recovery_points.get(&log.partition), "{}", log.partition);
        assert_eq!(log.log_start_offset, state.log_start_offsets.get(&log.partition), "{}", log.partition);
    }
}
