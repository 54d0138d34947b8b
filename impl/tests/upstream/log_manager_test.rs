#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LogManagerTest, as far as a log directory goes without threads and a schedule.

use cleanslate_log::log::{FetchIsolation, LogConfig, PartitionLog};
use cleanslate_log::log_dir::{
    CLEAN_SHUTDOWN_FILE, CheckpointFile, CleanShutdown, ClosedLog, DirectoryKind, DirectoryName, LogDirState, META_PROPERTIES_FILE,
    MetaProperties, MetaPropertiesVersion, OffsetCheckpoint, TopicPartition, Uuid,
};
use cleanslate_log::storage::{FaultyStorage, FileStorage, MemoryStorage, Storage};
use cleanslate_log::types::{BrokerEpoch, NodeId, Offset, PartitionId, TimestampMs};

use super::local_log_test::{KeyValue, append};
use crate::upstream::support::{Log, NOW, bases, hw, later, new_log, start_at};

const TEST: [KeyValue<'_>; 1] = [(None, "test")];
const MAX_AGE_MS: i64 = 10 * 60 * 1000;

fn partition(topic: &str, number: i32) -> TopicPartition {
    TopicPartition::new(topic, PartitionId(number))
}

/// The settings of Kafka's test.
fn settings() -> LogConfig {
    LogConfig {
        segment_bytes: 1024,
        segment_index_bytes: 4096,
        retention_ms: MAX_AGE_MS,
        file_delete_delay_ms: Some(60_000),
        ..LogConfig::default()
    }
}

fn checkpointed(directory: &impl Storage, file: CheckpointFile, of: &TopicPartition) -> Option<i64> {
    OffsetCheckpoint::load(directory, file).unwrap().get(of).map(Offset::get)
}

/// A log of fifty records, flushed.
fn fifty() -> Log {
    let mut log = new_log(&settings());
    (0..50).for_each(|_| append(&mut log, &TEST));
    log.flush().unwrap();
    assert_eq!(log.recovery_point(), Offset(50));
    log
}

fn check_recovery_points(directory: &mut impl Storage, partitions: &[TopicPartition]) {
    let mut closed: Vec<ClosedLog> = partitions.iter().map(|of| ClosedLog::of(of.clone(), &fifty())).collect();
    ClosedLog::checkpoint(directory, &closed).unwrap();
    for of in partitions {
        assert_eq!(checkpointed(directory, CheckpointFile::RecoveryPoint, of), Some(50), "{of}");
    }
    // Nothing says that the broker has stopped, and a later checkpoint takes the place of the first.
    assert_eq!(directory.len(CLEAN_SHUTDOWN_FILE), Ok(None));
    closed.truncate(1);
    closed[0].recovery_point = Offset(60);
    ClosedLog::checkpoint(directory, &closed).unwrap();
    let found = partitions.iter().map(|of| checkpointed(directory, CheckpointFile::RecoveryPoint, of));
    assert_eq!(found.flatten().collect::<Vec<_>>(), [60]);
}

#[test]
fn test_checkpoint_recovery_points() {
    check_recovery_points(&mut MemoryStorage::new(), &[partition("test-a", 1), partition("test-b", 1)]);
}

#[test]
fn test_recovery_directory_mapping_with_trailing_slash() {
    let directory = tempfile::tempdir().unwrap();
    let with_slash = format!("{}/", directory.path().display());
    check_recovery_points(&mut FileStorage::open(with_slash).unwrap(), &[partition("test-a", 1)]);
    assert!(directory.path().join(CheckpointFile::RecoveryPoint.name()).exists());
}

#[test]
fn test_checkpoint_for_only_affected_logs() {
    let numbers = [("test-a", 0), ("test-a", 1), ("test-a", 2), ("test-b", 0), ("test-b", 1)];
    check_recovery_points(&mut MemoryStorage::new(), &numbers.map(|(topic, number)| partition(topic, number)));
}

#[test]
fn test_checkpoint_log_start_offset_for_normal_topic() {
    let (mut directory, of) = (MemoryStorage::new(), partition("test", 0));
    let mut log = new_log(&LogConfig { segment_bytes: 10_240, ..settings() });
    for offset in 0..50 {
        append(&mut log, &TEST);
        if offset != 0 && offset % 10 == 0 {
            log.roll(NOW).unwrap();
        }
    }
    assert_eq!(bases(&log).len(), 5);
    hw(&mut log, 49);
    start_at(&mut log, 31);
    let mut checkpoint = |log: &Log| {
        ClosedLog::checkpoint(&mut directory, &[ClosedLog::of(of.clone(), log)]).unwrap();
        checkpointed(&directory, CheckpointFile::LogStartOffset, &of)
    };
    assert_eq!(checkpoint(&log), Some(31));
    log.delete_old_segments(NOW).unwrap();
    assert_eq!((bases(&log), log.log_start_offset()), (vec![31, 41], Offset(31)));
    // The first segment tells it.
    assert_eq!(checkpoint(&log), None);
}

/// A directory of a log on a storage that may fail, with two records and a snapshot between them.
fn directory_of(of: &TopicPartition) -> (MemoryStorage, Vec<(TopicPartition, PartitionLog<FaultyStorage>)>) {
    let mut log = PartitionLog::create(FaultyStorage::new(), settings(), NOW).unwrap();
    append(&mut log, &TEST);
    log.take_snapshot().unwrap();
    append(&mut log, &TEST);
    (MemoryStorage::new(), vec![(of.clone(), log)])
}

fn stop(
    directory: &mut MemoryStorage,
    logs: &mut [(TopicPartition, PartitionLog<FaultyStorage>)],
    epoch: i64,
) -> Result<(), &'static str> {
    let logs = logs.iter_mut().map(|(of, log)| (of.clone(), log));
    ClosedLog::stop_all(directory, logs, BrokerEpoch(epoch)).map_err(|error| error.kafka_class())
}

fn mark(directory: &MemoryStorage) -> Option<CleanShutdown> {
    directory.read_all(CLEAN_SHUTDOWN_FILE).unwrap().map(|file| CleanShutdown::decode(&file))
}

#[test]
fn test_clean_shutdown_file_with_broker_epoch() {
    for number in [0, 1] {
        let of = partition("kafka", number);
        let (mut directory, mut logs) = directory_of(&of);
        assert_eq!(stop(&mut directory, &mut logs, 3), Ok(()));
        assert_eq!(mark(&directory), Some(CleanShutdown { broker_epoch: Some(BrokerEpoch(3)) }));
        let (state, _) = LogDirState::start(&mut directory).unwrap();
        assert_eq!(state.open_options(&of).recovery_point, Offset(2));
    }
}

#[test]
fn test_handling_exceptions_during_shutdown() {
    let of = [partition("kafka", 0), partition("kafka", 1)];
    let (mut failing, mut first) = directory_of(&of[0]);
    let (mut other, mut second) = directory_of(&of[1]);
    // The first log of the first directory cannot write, the second can.
    let mut storage = FaultyStorage::new();
    storage.refuse_files(".snapshot");
    let mut log = PartitionLog::create(storage, settings(), NOW).unwrap();
    append(&mut log, &TEST);
    first.insert(0, (partition("kafka", 2), log));

    assert_eq!(stop(&mut failing, &mut first, 3), Err("KafkaStorageException"));
    assert_eq!(stop(&mut other, &mut second, 3), Ok(()));
    assert_eq!((mark(&failing), mark(&other).is_some()), (None, true));
    // What was in the failing directory is not touched, but its other logs are durable.
    assert_eq!(failing.names(), Ok(vec![]));
    assert_eq!(first[1].1.recovery_point(), Offset(2));
}

/// Two hundred records in segments of fourteen, all replicated.
fn two_hundred(config: &LogConfig) -> Log {
    let mut log = new_log(config);
    (0..200).for_each(|_| append(&mut log, &[(Some("test"), "test")]));
    let end = log.log_end_offset().get();
    hw(&mut log, end);
    assert!(bases(&log).len() > 1);
    log
}

/// A log, two indexes and a snapshot for each segment, and the leader epochs; nothing below can be read, and the log goes on.
fn check_cleaned(log: &mut Log) {
    log.remove_deleted_files(later(2 * MAX_AGE_MS)).unwrap();
    log.flush_with_active().unwrap();
    assert_eq!(log.storage().names().unwrap().len(), bases(log).len() * 4 + 1, "{:?}", log.storage().names());
    let read = |from: i64| log.read(Offset(from), FetchIsolation::LogEnd, usize::MAX);
    assert_eq!(read(200).unwrap().len(), 0);
    assert_eq!(read(0).unwrap_err().kafka_class(), "OffsetOutOfRangeException");
    append(log, &TEST);
    assert_eq!(log.log_end_offset(), Offset(201));
}

#[test]
fn test_cleanup_expired_segments() {
    let mut log = two_hundred(&settings());
    let segments = bases(&log).len();
    assert_eq!(log.delete_old_segments(later(MAX_AGE_MS)), Ok(0));
    assert_eq!(log.delete_old_segments(later(MAX_AGE_MS + 1)), Ok(segments));
    assert_eq!(bases(&log), [200]);
    check_cleaned(&mut log);
}

#[test]
fn test_cleanup_segments_to_maintain_size() {
    let mut single = new_log(&settings());
    append(&mut single, &[(Some("test"), "test")]);
    let set = usize::try_from(single.size_in_bytes()).unwrap();
    let retention_bytes = i64::try_from(5 * 10 * set + 10).unwrap();
    let mut log = two_hundred(&LogConfig { segment_bytes: 10 * set, retention_bytes, ..settings() });
    assert_eq!(bases(&log).len(), 20);
    log.delete_old_segments(later(10_000)).unwrap();
    assert_eq!(bases(&log), [140, 150, 160, 170, 180, 190]);
    check_cleaned(&mut log);
}

/// With a policy of compaction only, age deletes nothing.
#[test]
fn test_doesnt_clean_logs_with_compact_policy() {
    let mut log = two_hundred(&LogConfig { compact: true, delete: false, ..settings() });
    let before = bases(&log);
    assert_eq!(log.delete_old_segments(later(MAX_AGE_MS + 1)), Ok(0));
    assert_eq!(bases(&log), before);
}

/// The directory gets the name of one that waits for its deletion while the log is open, and goes later.
#[test]
fn test_file_references_after_async_delete() {
    let parent = tempfile::tempdir().unwrap();
    let files = FileStorage::open(parent.path().join("kafka-0")).unwrap();
    let mut log = PartitionLog::create(files, settings(), NOW).unwrap();
    append(&mut log, &TEST);
    let before = log.storage().names().unwrap();
    assert!(before.iter().any(|name| name.ends_with(".timeindex")));
    log.rename_dir(&DirectoryName::name_of(&partition("kafka", 0), DirectoryKind::Delete, Uuid(1))).unwrap();
    assert_eq!(log.storage().dir().parent(), Some(parent.path()));
    assert_eq!(log.storage().names(), Ok(before.clone()));
    for name in &before {
        assert!(!parent.path().join("kafka-0").join(name).exists() && log.storage().dir().join(name).exists(), "{name}");
    }
    log.delete().unwrap().remove_dir().unwrap();
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

/// A topic so long that the name of its directory has no room for what tells that it is to be deleted.
#[test]
fn test_create_and_delete_overly_long_topic() {
    let parent = tempfile::tempdir().unwrap();
    let of = partition(&"x".repeat(253), 0);
    let files = FileStorage::open(parent.path().join(of.to_string())).unwrap();
    let mut log = PartitionLog::create(files, settings(), NOW).unwrap();
    assert_eq!(log.rename_dir(&DirectoryName::name_of(&of, DirectoryKind::Delete, Uuid(1))), Ok(true));
    assert_eq!(log.storage().dir().file_name().unwrap().len(), 255);
}

/// Who finds that a replica should not be there gives its directory another name, and keeps it.
#[test]
fn test_load_log_rename_log_that_should_be_stray() {
    let parent = tempfile::tempdir().unwrap();
    let files = FileStorage::open(parent.path().join("test-stray-dir-0")).unwrap();
    let mut log = PartitionLog::create(files, settings(), NOW).unwrap();
    append(&mut log, &TEST);
    log.rename_dir(&DirectoryName::name_of(&partition("test-stray-dir", 0), DirectoryKind::Stray, Uuid(1))).unwrap();
    let names: Vec<String> =
        std::fs::read_dir(parent.path()).unwrap().map(|dir| dir.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 1);
    let stray = DirectoryName::parse(&names[0]).unwrap();
    assert_eq!(stray, DirectoryName { partition: partition("test-stray-dir", 0), kind: DirectoryKind::Stray });
}

#[test]
fn test_load_directory_ids() {
    let ids = [None, Some("ZwkGXjB0TvSF6mjVh6gO7Q"), None, Some("kQfNPJ2FTHq_6Qlyyv6Jqg"), None];
    let read = |index: usize, id: Option<&str>| {
        let mut directory = MemoryStorage::new();
        let directory_id = id.map(|id| id.parse().unwrap());
        let properties = MetaProperties {
            version: MetaPropertiesVersion::V1,
            cluster_id: Some("IJwPMvLQTkC9OcqQcIkHtQ".to_owned()),
            node_id: Some(NodeId(1)),
            directory_id,
        };
        // One of them has no such file.
        if index != 2 {
            directory.replace(META_PROPERTIES_FILE, &properties.encode(TimestampMs(0))).unwrap();
        }
        let file = directory.read_all(META_PROPERTIES_FILE).unwrap();
        file.and_then(|file| MetaProperties::decode(&file).unwrap().directory_id).map(|id: Uuid| id.to_string())
    };
    let found: Vec<Option<String>> = ids.iter().enumerate().map(|(index, id)| read(index, *id)).collect();
    assert_eq!(found, ids.map(|id| id.map(str::to_owned)));
}
