#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! The directory of a log gets another name or goes; what the files of a log have room for.

use std::path::{Path, PathBuf};

use cleanslate_log::log::{LEADER_EPOCH_CHECKPOINT, LogConfig, OffsetSpec, PartitionLog};
use cleanslate_log::log_dir::{DirectoryKind, DirectoryName, PARTITION_METADATA_FILE, PartitionMetadata, Uuid};
use cleanslate_log::storage::{FileStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::local_log_test::append_under;
use crate::upstream::support::{NOW, bases, hw, later, lead, new_log, plain, start_at, timed};

const ID: Uuid = Uuid(0xf21d_5939_710f_435b_9d8d_df68_b565_a2fd);

/// A log in a directory of another one, which is returned too.
fn on_disk(parent: &Path, config: LogConfig) -> (PartitionLog<FileStorage>, PathBuf) {
    let dir = parent.join("kafka-3");
    (PartitionLog::create(FileStorage::open(&dir).unwrap(), config, NOW).unwrap(), dir)
}

fn small() -> LogConfig {
    LogConfig { segment_bytes: 1000, index_interval_bytes: 1, max_message_bytes: 64 * 1024, ..LogConfig::default() }
}

/// Gives the directory the name of one that waits for its deletion.
fn to_be_deleted(log: &mut PartitionLog<FileStorage>) -> PathBuf {
    let name = log.storage().dir().file_name().unwrap().to_str().unwrap().to_owned();
    let partition = DirectoryName::parse(&name).unwrap().partition;
    assert_eq!(log.rename_dir(&DirectoryName::name_of(&partition, DirectoryKind::Delete, Uuid(7))), Ok(true));
    log.storage().dir().to_owned()
}

fn latest(log: &PartitionLog<FileStorage>) -> Option<LeaderEpoch> {
    log.leader_epochs().entries().last().map(|entry| entry.epoch)
}

#[test]
fn test_write_leader_epoch_checkpoint_after_directory_rename() {
    let parent = tempfile::tempdir().unwrap();
    let (mut log, dir) = on_disk(parent.path(), small());
    append_under(&mut log, &[(None, "foo")], 5).unwrap();
    assert_eq!(latest(&log), Some(LeaderEpoch(5)));
    let renamed = to_be_deleted(&mut log);
    append_under(&mut log, &[(None, "foo")], 10).unwrap();
    assert_eq!(latest(&log), Some(LeaderEpoch(10)));
    let checkpoint = std::fs::read_to_string(renamed.join(LEADER_EPOCH_CHECKPOINT)).unwrap();
    assert_eq!(checkpoint, "0\n2\n5 0\n10 1\n");
    assert!(!dir.join(LEADER_EPOCH_CHECKPOINT).exists());
}

#[test]
fn test_topic_id_transfers_after_directory_rename() {
    let parent = tempfile::tempdir().unwrap();
    let (mut log, dir) = on_disk(parent.path(), small());
    log.assign_topic_id(ID).unwrap();
    append_under(&mut log, &[(None, "foo")], 5).unwrap();
    let renamed = to_be_deleted(&mut log);
    append_under(&mut log, &[(None, "foo")], 10).unwrap();
    assert_eq!(latest(&log), Some(LeaderEpoch(10)));
    assert!(renamed.join(PARTITION_METADATA_FILE).exists());
    assert!(!dir.join(PARTITION_METADATA_FILE).exists());
    assert_eq!(log.topic_id(), Some(ID));
    assert_eq!(PartitionMetadata::load(log.storage()), Ok(Some(PartitionMetadata::new(ID))));
}

#[test]
fn test_topic_id_flushes_before_directory_rename() {
    let parent = tempfile::tempdir().unwrap();
    let (mut log, dir) = on_disk(parent.path(), small());
    log.assign_topic_id(ID).unwrap();
    assert!(!dir.join(PARTITION_METADATA_FILE).exists());
    to_be_deleted(&mut log);
    assert!(!dir.exists());
    assert_eq!(PartitionMetadata::load(log.storage()), Ok(Some(PartitionMetadata::new(ID))));
}

#[test]
fn test_renaming_dir_without_reinitialization() {
    let parent = tempfile::tempdir().unwrap();
    let (mut log, _) = on_disk(parent.path(), LogConfig { segment_bytes: 1024 * 1024, ..LogConfig::default() });
    assert_eq!(log.segments().count(), 1);
    // An empty directory may have the name already.
    let target = parent.path().join("kafka-4");
    std::fs::create_dir(&target).unwrap();
    assert_eq!(log.rename_dir("kafka-4"), Ok(true));
    assert_eq!(log.log_end_offset(), Offset(0));
    append_under(&mut log, &[(Some("key"), "value")], 0).unwrap();
    assert_eq!(log.log_end_offset(), Offset(1));
    log.delete().unwrap().remove_dir().unwrap();
    assert!(!target.exists());
}

/// A file is where the directory was.
#[test]
fn test_background_deletion_with_io_exception() {
    let parent = tempfile::tempdir().unwrap();
    let (log, dir) = on_disk(parent.path(), LogConfig { segment_bytes: 1024 * 1024, ..LogConfig::default() });
    assert_eq!(log.segments().count(), 1);
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::write(&dir, "").unwrap();
    assert_eq!(log.delete().unwrap_err().kafka_class(), "KafkaStorageException");
}

/// A segment that was cut to nothing takes as many records as a new one.
#[test]
fn test_index_resizing_at_truncation() {
    let set = timed(NOW).build().unwrap().size_in_bytes();
    let mut log = new_log(&LogConfig { segment_bytes: 10 * set, index_interval_bytes: set - 1, ..LogConfig::default() });
    let mut time = 0;
    for expected in [vec![0], vec![0, 10]] {
        (1..=10).for_each(|ms| assert!(lead(&mut log, timed(later(time + ms))).is_ok()));
        assert_eq!(bases(&log), expected);
        time += 10;
    }
    // The indexes of the first have nine entries, of 8 and 12 bytes.
    let size = |suffix: &str| log.storage().len(&format!("00000000000000000000.{suffix}")).unwrap();
    assert_eq!([size("index"), size("timeindex")], [Some(9 * 8), Some(9 * 12)]);
    log.truncate_to(Offset(0), NOW).unwrap();
    assert_eq!(bases(&log), [0]);
    (1..=10).for_each(|ms| assert!(lead(&mut log, timed(later(time + ms))).is_ok()));
    assert_eq!(bases(&log), [0]);
}

#[test]
fn test_fetch_offset_by_timestamp_should_read_only_local_log_when_log_is_empty() {
    let mut log = new_log(&LogConfig::default());
    assert_eq!(log.fetch_offset_by_timestamp(OffsetSpec::Timestamp(NOW)), Ok(None));
}

#[test]
fn test_no_op_when_remote_log_storage_is_disabled() {
    let mut log = new_log(&LogConfig::default());
    for _ in 0..100 {
        lead(&mut log, plain(1)).unwrap();
    }
    hw(&mut log, 90);
    start_at(&mut log, 20);
    assert_eq!(log.log_start_offset(), Offset(20));
}
