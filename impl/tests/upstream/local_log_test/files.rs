#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Files, the directory and its names, and the end of a log.

use std::path::{Path, PathBuf};

use cleanslate_log::log::{LogConfig, PartitionLog, Recovery, offset_from_file};
use cleanslate_log::log_dir::{DirectoryKind, DirectoryName, TopicPartition, Uuid};
use cleanslate_log::storage::{FileStorage, Storage};
use cleanslate_log::types::{Offset, PartitionId};

use super::segments::{delayed, deleted};
use super::{A, append, pairs, read};
use crate::upstream::support::{Log, NOW, bases, ids, later, lead, new_log, produced};

/// Nine segments of a record, and an empty one.
fn ten_segments(config: &LogConfig) -> Log {
    let mut log = new_log(config);
    for _ in 0..=8 {
        append(&mut log, &A);
        log.roll(NOW).unwrap();
    }
    assert_eq!(bases(&log), (0..10).collect::<Vec<i64>>());
    log
}

/// Two segments in a directory of another one.
fn on_disk(parent: &Path) -> (PartitionLog<FileStorage>, PathBuf) {
    let dir = parent.join("kafka-3");
    let mut log = PartitionLog::create(FileStorage::open(&dir).unwrap(), LogConfig::default(), NOW).unwrap();
    append(&mut log, &A);
    log.roll(NOW).unwrap();
    assert_eq!(log.segments().count(), 2);
    (log, dir)
}

#[test]
fn test_log_delete_segments_success() {
    let parent = tempfile::tempdir().unwrap();
    let (log, dir) = on_disk(parent.path());
    assert!(std::fs::read_dir(&dir).unwrap().count() > 0);
    assert_eq!(log.delete().unwrap().names(), Ok(vec![]));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn test_log_delete_dir_success_when_empty_and_failure_when_non_empty() {
    let parent = tempfile::tempdir().unwrap();
    let (log, dir) = on_disk(parent.path());
    assert!(FileStorage::existing(&dir).remove_dir().is_err());
    assert!(dir.join("00000000000000000000.log").exists());
    log.delete().unwrap().remove_dir().unwrap();
    assert!(!dir.exists());
}

#[test]
fn test_update_config() {
    let mut log = new_log(&LogConfig::default());
    let before = log.config().clone();
    let after = LogConfig { segment_bytes: before.segment_bytes + 1, ..before.clone() };
    assert_eq!(log.update_config(after.clone()), before);
    assert_eq!(log.config(), &after);
}

/// Beyond Kafka's own tests: what the log has handed on of its settings changes with them.
#[test]
fn what_parts_of_a_log_know_of_its_settings_changes_with_them() {
    let mut log = new_log(&LogConfig { segment_bytes: 200, ..delayed() });
    (0..5).for_each(|_| append(&mut log, &A));
    assert_eq!(bases(&log), [0, 2, 4]);
    log.update_config(LogConfig { segment_bytes: 69, file_delete_delay_ms: None, ..LogConfig::default() });
    append(&mut log, &A);
    assert_eq!(bases(&log), [0, 2, 4, 5]);
    log.truncate_to(Offset(3), NOW).unwrap();
    assert_eq!(log.deleted_files().count(), 0);
    assert_eq!(log.storage().len("00000000000000000004.log"), Ok(None));
    // Producers are forgotten earlier.
    log.update_config(LogConfig { producer_id_expiration_ms: 10, ..LogConfig::default() });
    lead(&mut log, produced(7, 0, 0, 1)).unwrap();
    for (after, known) in [(9, vec![7]), (10, vec![])] {
        log.remove_expired_producers(later(after));
        assert_eq!(ids(&log), known);
    }
}

#[test]
fn test_log_dir_rename_to_new_dir() {
    let parent = tempfile::tempdir().unwrap();
    let (mut log, dir) = on_disk(parent.path());
    assert_eq!(log.rename_dir("kafka-27"), Ok(true));
    assert!(!dir.exists());
    let renamed = parent.path().join("kafka-27");
    assert_eq!(log.storage().dir(), renamed);
    assert_eq!(log.segments().count(), 2);
    // Both segments are read and written there.
    append(&mut log, &[(None, "b")]);
    assert_eq!(read(&log, 0), pairs(&[("", "a"), ("", "b")]));
    assert_eq!(std::fs::metadata(renamed.join("00000000000000000001.log")).unwrap().len(), 69);
    // Only one name in the same directory is a name.
    for name in ["", ".", "..", "a/b", "/a"] {
        assert_eq!(log.rename_dir(name).unwrap_err().kafka_class(), "KafkaStorageException", "{name}");
    }
    append(&mut log, &A);
    log.close_clean().unwrap();
    let files = FileStorage::open(&renamed).unwrap();
    let (log, _) = PartitionLog::open(files, LogConfig::default(), Recovery::Clean, NOW).unwrap();
    assert_eq!(log.log_end_offset(), Offset(3));
}

#[test]
fn test_log_dir_rename_to_existing_dir() {
    let parent = tempfile::tempdir().unwrap();
    let (mut log, dir) = on_disk(parent.path());
    assert_eq!(log.rename_dir("kafka-3"), Ok(false));
    assert!(dir.exists());
    append(&mut log, &A);
    // A directory with something in it is not taken, and the log is offline then.
    std::fs::create_dir(parent.path().join("kafka-4")).unwrap();
    std::fs::write(parent.path().join("kafka-4/file"), "").unwrap();
    assert_eq!(log.rename_dir("kafka-4").unwrap_err().kafka_class(), "KafkaStorageException");
    assert_eq!(log.flush().unwrap_err().kafka_class(), "KafkaStorageException");
}

#[test]
fn test_log_close_idempotent() {
    let mut log = new_log(&LogConfig::default());
    append(&mut log, &A);
    log.close_clean().unwrap();
    let files = |log: &Log| {
        let content = |name: String| (name.clone(), log.storage().read_all(&name).unwrap());
        log.storage().names().unwrap().into_iter().map(content).collect::<Vec<_>>()
    };
    let closed = files(&log);
    log.close_clean().unwrap();
    assert_eq!(files(&log), closed);
}

#[test]
fn test_remove_and_delete_segments_sync() {
    let storage = ten_segments(&LogConfig::default()).delete().unwrap();
    assert_eq!(storage.names(), Ok(vec![]));
}

#[test]
fn test_delete_segment_files_sync() {
    let mut log = ten_segments(&LogConfig::default());
    log.truncate_fully_and_start_at(Offset(20), NOW).unwrap();
    let left: Vec<Option<Offset>> = log.storage().names().unwrap().iter().map(|name| offset_from_file(name)).collect();
    assert_eq!(left.into_iter().flatten().collect::<Vec<_>>(), [Offset(20)]);
}

#[test]
fn test_delete_segment_files_async() {
    let mut log = ten_segments(&delayed());
    log.truncate_fully_and_start_at(Offset(20), NOW).unwrap();
    assert_eq!(deleted(&log), (0..10).rev().collect::<Vec<i64>>());
    let logs = |log: &Log| log.storage().names().unwrap().iter().filter(|name| name.ends_with(".log.deleted")).count();
    assert_eq!(log.remove_deleted_files(later(59_999)), Ok(0));
    assert_eq!(logs(&log), 10);
    log.remove_deleted_files(later(60_001)).unwrap();
    assert_eq!((logs(&log), deleted(&log)), (0, vec![]));
}

fn partition(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, PartitionId(partition))
}

fn parsed(name: &str) -> Option<TopicPartition> {
    DirectoryName::parse(name).map(|name| name.partition)
}

fn delete_name(of: &TopicPartition) -> String {
    DirectoryName::name_of(of, DirectoryKind::Delete, Uuid(0x0c96_c88f_6ccb_41ae_9d0e_6645_c47d_8bbb))
}

#[test]
fn test_parse_topic_partition_name() {
    let name = DirectoryName::name_of(&partition("test_topic", 143), DirectoryKind::Log, Uuid::ZERO);
    assert_eq!((name.as_str(), parsed(&name)), ("test_topic-143", Some(partition("test_topic", 143))));
}

#[test]
fn test_parse_topic_partition_name_with_period_for_deleted_topic() {
    let of = partition("foo.bar-testtopic", 42);
    assert_eq!(parsed(&delete_name(&of)), Some(of));
}

#[test]
fn test_parse_topic_partition_name_for_empty_name() {
    assert_eq!(parsed(""), None);
}

#[test]
fn test_parse_topic_partition_name_for_missing_separator() {
    assert_eq!([parsed("test_topic1999"), parsed("test_topic1999.-delete")], [None, None]);
}

#[test]
fn test_parse_topic_partition_name_for_missing_topic() {
    assert_eq!([parsed("-1999"), parsed(&delete_name(&partition("", 1999)))], [None, None]);
}

#[test]
fn test_parse_topic_partition_name_for_missing_partition() {
    assert_eq!([parsed("test_topic-"), parsed("test_topic-.-delete")], [None, None]);
}

#[test]
fn test_parse_topic_partition_name_for_invalid_partition() {
    assert_eq!([parsed("test_topic-1999a"), parsed("test_topic1999a.-delete")], [None, None]);
}

#[test]
fn test_parse_topic_partition_name_for_existing_invalid_dir() {
    assert_eq!([parsed("non_kafka_dir"), parsed("non_kafka_dir-delete")], [None, None]);
}

#[test]
fn test_log_delete_dir_name() {
    let name = delete_name(&partition("foo", 3));
    assert_eq!(name, "foo-3.0c96c88f6ccb41ae9d0e6645c47d8bbb-delete");
    assert_eq!(DirectoryName::parse(&name).unwrap().kind, DirectoryKind::Delete);
    let long = partition(&format!("n{}", "o".repeat(248)), 5);
    let name = delete_name(&long);
    assert_eq!(name.len(), 255);
    assert_eq!(name, format!("n{}-5.0c96c88f6ccb41ae9d0e6645c47d8bbb-delete", "o".repeat(212)));
    assert_eq!(DirectoryName::parse(&name).unwrap().kind, DirectoryKind::Delete);
}

/// Beyond Kafka's own tests: the other kinds. The name of a copy is not cut, as Kafka looks for the topic in it.
#[test]
fn names_of_other_directories() {
    let long = partition(&"x".repeat(249), 5);
    let name = |of: &TopicPartition, kind| DirectoryName::name_of(of, kind, Uuid(u128::MAX));
    assert_eq!(name(&partition("foo", 3), DirectoryKind::Future), format!("foo-3.{}-future", "f".repeat(32)));
    assert_eq!(name(&partition("foo", 3), DirectoryKind::Stray), format!("foo-3.{}-stray", "f".repeat(32)));
    assert_eq!([DirectoryKind::Future, DirectoryKind::Stray].map(|kind| name(&long, kind).len()), [291, 255]);
    // A topic of letters that Kafka does not allow is not cut within one.
    let letters = partition(&"ä".repeat(200), 5);
    assert_eq!(name(&letters, DirectoryKind::Delete).len(), 254);
}

#[test]
fn test_offset_from_file() {
    let mut log = new_log(&LogConfig::default());
    log.truncate_fully_and_start_at(Offset(23_423_423), NOW).unwrap();
    append(&mut log, &A);
    log.flush().unwrap();
    for suffix in ["log", "index", "timeindex"] {
        let name = format!("00000000000023423423.{suffix}");
        assert!(log.storage().len(&name).unwrap().is_some(), "{name}");
        assert_eq!(offset_from_file(&name), Some(Offset(23_423_423)), "{name}");
    }
    assert_eq!(offset_from_file("00000000000023423423.log.deleted"), Some(Offset(23_423_423)));
    for name in ["leader-epoch-checkpoint", "partition.metadata", "", "."] {
        assert_eq!(offset_from_file(name), None, "{name}");
    }
}
