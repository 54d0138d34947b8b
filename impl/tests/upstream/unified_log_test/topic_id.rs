#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! The id of the topic in the log's directory; names of snapshots.

use cleanslate_log::log::{LogConfig, PartitionLog, Recovery, offset_from_file};
use cleanslate_log::log_dir::{PARTITION_METADATA_FILE, PartitionMetadata, Uuid};
use cleanslate_log::psm::snapshot_file_name;
use cleanslate_log::storage::{FaultyStorage, Storage};
use cleanslate_log::types::Offset;

use crate::upstream::local_log_test::append_under;
use crate::upstream::support::{Log, NOW, follow, lead, new_log, placed, plain, reopen};

const ID: Uuid = Uuid(0xf21d_5939_710f_435b_9d8d_df68_b565_a2fd);

/// The id that the directory has.
fn recorded(log: &Log) -> Option<Uuid> {
    PartitionMetadata::load(log.storage()).unwrap().map(|metadata| metadata.topic_id)
}

fn assigned() -> Log {
    let mut log = new_log(&LogConfig::default());
    log.assign_topic_id(ID).unwrap();
    assert_eq!((log.topic_id(), recorded(&log)), (Some(ID), None));
    log
}

#[test]
fn test_log_flushes_partition_metadata_on_append() {
    let mut log = assigned();
    lead(&mut log, plain(1)).unwrap();
    assert_eq!(recorded(&log), Some(ID));
    let mut log = assigned();
    follow(&mut log, &[placed(plain(1), 0, 0)]).unwrap();
    assert_eq!(recorded(&log), Some(ID));
}

#[test]
fn test_log_flushes_partition_metadata_on_close() {
    let mut log = assigned();
    log.close_clean().unwrap();
    let log = reopen(&log, Recovery::Clean, 0, 0);
    assert_eq!((log.topic_id(), recorded(&log)), (Some(ID), Some(ID)));
}

#[test]
fn test_log_recovers_topic_id() {
    let mut log = assigned();
    log.flush_topic_id().unwrap();
    assert_eq!(reopen(&log, Recovery::Unclean, 0, 0).topic_id(), Some(ID));
}

#[test]
fn test_log_fails_when_inconsistent_topic_id_set() {
    let mut log = assigned();
    log.close_clean().unwrap();
    let mut log = reopen(&log, Recovery::Clean, 0, 0);
    let mut assign = |id| log.assign_topic_id(id).map_err(|error| error.kafka_class());
    assert_eq!(assign(Uuid(1)), Err("InconsistentTopicIdException"));
    assert_eq!(assign(ID), Ok(()));
    assert_eq!(log.topic_id(), Some(ID));
    // Also while it is not written yet.
    assert!(assigned().assign_topic_id(Uuid(1)).is_err());
}

/// Beyond Kafka's own tests: no record is there without the id, and a directory that says none that can be read is not opened.
#[test]
fn an_id_that_cannot_be_written_or_read_is_an_error() {
    let mut storage = FaultyStorage::new();
    storage.refuse_files(PARTITION_METADATA_FILE);
    let mut log = PartitionLog::create(storage, LogConfig::default(), NOW).unwrap();
    log.assign_topic_id(ID).unwrap();
    assert_eq!(append_under(&mut log, &[(None, "a")], 0), Err("KafkaStorageException"));
    assert_eq!(log.log_end_offset(), Offset(0));
    assert!(log.flush().is_err());

    let mut log = new_log(&LogConfig::default());
    assert!(log.assign_topic_id(Uuid::ZERO).is_err());
    lead(&mut log, plain(1)).unwrap();
    let mut storage = log.into_storage();
    assert!(PartitionMetadata::record(&mut storage, Uuid::ZERO).is_err());
    let zero = PartitionMetadata::new(Uuid::ZERO).encode();
    storage.replace(PARTITION_METADATA_FILE, &zero).unwrap();
    let opened = PartitionLog::open(storage, LogConfig::default(), Recovery::Clean, NOW);
    assert_eq!(opened.unwrap_err().kafka_class(), "KafkaStorageException");
}

#[test]
fn test_offset_from_producer_snapshot_file() {
    let name = snapshot_file_name(Offset(23_423_423));
    assert_eq!(offset_from_file(&name), Some(Offset(23_423_423)));
}
