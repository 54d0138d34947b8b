//! The files of a log directory: what they say, what is refused, and the bytes that are written. What is expected is what
//! the classes of Apache Kafka 4.3.1 do with the same bytes.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

use bytes::Bytes;
use cleanslate_log::log::{LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::log_dir::{
    CLEAN_SHUTDOWN_FILE, CheckpointError, CheckpointFile, CleanShutdown, ClosedLog, DirectoryKind, DirectoryName, LogDirState,
    MetaProperties, MetaPropertiesVersion, OffsetCheckpoint, PARTITION_METADATA_FILE, PartitionMetadata, TopicPartition,
    Unreadable, Uuid,
};
use cleanslate_log::storage::{MemoryStorage, Storage as _};
use cleanslate_log::types::{BrokerEpoch, NodeId, Offset, PartitionId, TimestampMs};

const ID: &str = "8h1ZOXEPQ1udjd9otWWi_Q";

fn partition(topic: &str, number: i32) -> TopicPartition {
    TopicPartition::new(topic, PartitionId(number))
}

/// The entries as `topic-partition=offset`, or the class of the exception and what is wrong.
fn checkpoint(text: &str) -> Result<String, String> {
    let shown = |(partition, offset): &(TopicPartition, Offset)| format!("{partition}={offset}");
    let read = OffsetCheckpoint::decode(&Bytes::copy_from_slice(text.as_bytes()));
    match read {
        Ok(read) => Ok(read.entries().iter().map(shown).collect::<Vec<_>>().join(" ")),
        Err(error) => Err(format!("{}: {error}", error.kafka_class())),
    }
}

#[test]
fn checkpoints_are_read_as_kafka_reads_them() {
    for (text, expected) in [
        ("", ""),
        ("0\n", ""),
        ("0\n0\n", ""),
        ("0\n1\na 0 5\n", "a-0=5"),
        ("0\n1\na 0 5", "a-0=5"),
        ("0\n3\nb 1 1\na 0 5\nb 1 7\n", "b-1=7 a-0=5"),
        ("0\n1\na  0\t5 \n", "a-0=5"),
        ("0\n1\na\u{b}0\u{c}5\n", "a-0=5"),
        ("+0\n1\na +0 +5\n", "a-0=5"),
        ("00\n01\na 00 05\n", "a-0=5"),
        ("0\r\n1\r\na 0 5\r\n", "a-0=5"),
        ("0\r1\ra 0 5\r", "a-0=5"),
        ("0\n1\na 0 -7\n", "a-0=-7"),
        ("0\n1\na -1 7\n", "a--1=7"),
        ("0\n1\n 0 7\n", "-0=7"),
        ("0\n1\n\u{e4} 0 5\n", "\u{e4}-0=5"),
    ] {
        assert_eq!(checkpoint(text).as_deref(), Ok(expected), "{text:?}");
    }
}

#[test]
fn checkpoints_that_kafka_refuses_are_refused() {
    let entry = "expected topic, partition and offset";
    for (text, expected) in [
        ("0\n1\na 0 5\nb 0 6\n", "KafkaStorageException: 2 entries, expected 1".to_owned()),
        ("0\n2\na 0 5\n", "KafkaStorageException: 1 entries, expected 2".to_owned()),
        ("0\n2147483647\n", "KafkaStorageException: 0 entries, expected 2147483647".to_owned()),
        ("1\n0\n", "KafkaStorageException: line 1: version 1, expected 0".to_owned()),
        ("x\n", "KafkaStorageException: line 1: expected a version".to_owned()),
        (" 0\n", "KafkaStorageException: line 1: expected a version".to_owned()),
        ("\n", "KafkaStorageException: line 1: expected a version".to_owned()),
        ("0\nx\n", "KafkaStorageException: line 2: expected the number of entries".to_owned()),
        ("0\n\n", "KafkaStorageException: line 2: expected the number of entries".to_owned()),
        ("0\n-1\n", "IllegalArgumentException: line 2: -1 entries, expected 0 or more".to_owned()),
        ("0\n1\n a 0 5\n", format!("KafkaStorageException: line 3: {entry}")),
        ("0\n1\na 0\n", format!("KafkaStorageException: line 3: {entry}")),
        ("0\n1\na 0 5 6\n", format!("KafkaStorageException: line 3: {entry}")),
        ("0\n1\na\u{a0}0\u{a0}5\n", format!("KafkaStorageException: line 3: {entry}")),
        ("0\n0\n\n", format!("KafkaStorageException: line 3: {entry}")),
        ("0\n2\na 0 5\n\n", format!("KafkaStorageException: line 4: {entry}")),
        ("0\n1\n \t\n", format!("KafkaStorageException: line 3: {entry}")),
        ("0\n1\na x 5\n", "NumberFormatException: line 3: the partition is no number".to_owned()),
        ("0\n1\na 2147483648 5\n", "NumberFormatException: line 3: the partition is no number".to_owned()),
        ("0\n1\na 0 x\n", "NumberFormatException: line 3: the offset is no number".to_owned()),
        ("0\n1\na 0 9223372036854775808\n", "NumberFormatException: line 3: the offset is no number".to_owned()),
    ] {
        assert_eq!(checkpoint(text), Err(expected), "{text:?}");
    }
    let not_text = OffsetCheckpoint::decode(&Bytes::from_static(b"0\n1\n\xff 0 5\n"));
    assert_eq!(not_text, Err(CheckpointError::NotText { position: 4 }));
}

#[test]
fn checkpoints_are_written_in_the_order_of_kafka() {
    // Written by `OffsetCheckpointFile` from a `HashMap` that was filled in the order of the letters.
    let entries = ("abcdefghijklm".chars().zip(0..)).map(|(topic, n)| (partition(&topic.to_string(), n), Offset(i64::from(n))));
    let expected = include_str!("data/log_dir/thirteen-entries");
    assert_eq!(OffsetCheckpoint::new(entries).encode(), expected);
    assert_eq!(OffsetCheckpoint::new([]).encode(), "0\n0\n");
    let twice = OffsetCheckpoint::new([(partition("a", 0), Offset(1)), (partition("a", 0), Offset(2))]);
    assert_eq!(twice.encode(), "0\n1\na 0 2\n");
}

/// Version and id, or the class of the exception.
fn metadata(text: &str) -> Result<(i32, String), &'static str> {
    let read = PartitionMetadata::decode(&Bytes::copy_from_slice(text.as_bytes()));
    read.map(|read| (read.version, read.topic_id.to_string())).map_err(|error| error.kafka_class())
}

#[test]
fn partition_metadata_is_read_as_kafka_reads_it() {
    for (version, first, second) in [
        (0, "version: 0", format!("topic_id: {ID}")),
        (0, "version: 0", format!("topic_id: {ID}\n")),
        (0, "version: 0", format!("topic_id: {ID}\nextra")),
        (0, "version: 0", format!("topic_id: {ID}==")),
        (1, "version: 1", format!("topic_id: {ID}")),
        (0, "version: +0", format!("topic_id: {ID}")),
        (0, "foo: 0", format!("bar: {ID}")),
        (0, ": 0", format!(": {ID}")),
        (0, "version:   0\r", format!("topic_id:\t{ID}\r\n")),
    ] {
        assert_eq!(metadata(&format!("{first}\n{second}")), Ok((version, ID.to_owned())), "{first:?} {second:?}");
    }
}

#[test]
fn partition_metadata_that_kafka_refuses_is_refused() {
    let with_id = |id: &str| format!("version: 0\ntopic_id: {id}");
    for (text, expected) in [
        (String::new(), "NullPointerException"),
        ("version: 0\n".to_owned(), "NullPointerException"),
        (format!("version: -1\ntopic_id: {ID}"), "KafkaStorageException"),
        (format!("version:0\ntopic_id: {ID}"), "KafkaStorageException"),
        (format!("version: 0 \ntopic_id: {ID}"), "KafkaStorageException"),
        (format!("version: x\ntopic_id: {ID}"), "KafkaStorageException"),
        (format!("version: 0: 1\ntopic_id: {ID}"), "KafkaStorageException"),
        (format!("\nversion: 0\ntopic_id: {ID}"), "KafkaStorageException"),
        (format!("version: 0\n\ntopic_id: {ID}"), "KafkaStorageException"),
        (with_id("AAAAAAAAAAAAAAAAAAAAAA"), "KafkaStorageException"),
        (with_id("x"), "IllegalArgumentException"),
        (with_id(&format!("{ID} ")), "IllegalArgumentException"),
        (with_id(&format!("{ID}=")), "IllegalArgumentException"),
    ] {
        assert_eq!(metadata(&text), Err(expected), "{text:?}");
    }
}

#[test]
fn the_topic_of_a_directory_is_recorded_once() {
    let mut storage = MemoryStorage::new();
    let (id, other): (Uuid, Uuid) = (ID.parse().unwrap(), Uuid(1));
    assert_eq!(PartitionMetadata::load(&storage), Ok(None));
    PartitionMetadata::record(&mut storage, id).unwrap();
    PartitionMetadata::record(&mut storage, id).unwrap();
    let file = storage.read_all(PARTITION_METADATA_FILE).unwrap().unwrap();
    assert_eq!(file, "version: 0\ntopic_id: 8h1ZOXEPQ1udjd9otWWi_Q");
    let refused = PartitionMetadata::record(&mut storage, other).unwrap_err();
    assert_eq!(refused.kafka_class(), "InconsistentTopicIdException");
    assert_eq!(PartitionMetadata::load(&storage), Ok(Some(PartitionMetadata::new(id))));
}

#[test]
fn the_mark_of_an_orderly_stop_is_read_as_kafka_reads_it() {
    for (text, expected) in [
        (r#"{"version":0,"brokerEpoch":306}"#, Some(306)),
        (r#"{"version":0,"brokerEpoch":306,"x":[1]}"#, Some(306)),
        (r#"{"brokerEpoch":5}"#, Some(5)),
        (r#"{"version":1,"brokerEpoch":5}"#, Some(5)),
        (r#"{"version":"0","brokerEpoch":" 7 "}"#, Some(7)),
        (r#"{"version":null,"brokerEpoch":2}"#, Some(2)),
        (r#"{"version":-3,"brokerEpoch":-5}"#, Some(-5)),
        (r#"{"version":1.5,"brokerEpoch":1e3}"#, Some(1000)),
        (r#"{"brokerEpoch":1.9}"#, Some(1)),
        (r#"{"brokerEpoch":-1.9}"#, Some(-1)),
        (r#"{"brokerEpoch":-0}"#, Some(0)),
        (r#"{"brokerEpoch":1,"brokerEpoch":2}"#, Some(2)),
        (r#"{"version":0,"brokerEpoch":5} x"#, Some(5)),
        (" {\"version\":0,\"brokerEpoch\":5}\n", Some(5)),
        (r#"{"version":0,"brokerEpoch":9223372036854775807}"#, Some(i64::MAX)),
        ("", None),
        ("{}", None),
        ("[1]", None),
        ("null", None),
        ("5", None),
        (r#"{"version":0,"brokerEpoch":null}"#, None),
        (r#"{"brokerEpoch":true}"#, None),
        (r#"{"brokerEpoch":{}}"#, None),
        (r#"{"brokerEpoch":[3]}"#, None),
        (r#"{"brokerEpoch":""}"#, None),
        (r#"{"brokerEpoch":"1.5"}"#, None),
        (r#"{"brokerEpoch":9223372036854775808}"#, None),
        (r#"{"version":"a","brokerEpoch":2}"#, None),
        (r#"{"version":3000000000,"brokerEpoch":3}"#, None),
        (r#"{"version":true,"brokerEpoch":3}"#, None),
        (r#"{"brokerEpoch":03}"#, None),
        (r#"{"brokerEpoch":3,}"#, None),
        (r#"{"BrokerEpoch":4}"#, None),
    ] {
        let read = CleanShutdown::decode(&Bytes::copy_from_slice(text.as_bytes()));
        assert_eq!(read.broker_epoch, expected.map(BrokerEpoch), "{text:?}");
    }
    assert_eq!(CleanShutdown::encode(BrokerEpoch(10)), r#"{"version":0,"brokerEpoch":10}"#);
    assert_eq!(CleanShutdown::encode(BrokerEpoch(i64::MIN)), r#"{"version":0,"brokerEpoch":-9223372036854775808}"#);
}

#[test]
fn directory_names_are_those_of_kafka() {
    for (name, topic, number, kind) in [
        ("foo-1", "foo", 1, DirectoryKind::Log),
        ("foo.bar-1", "foo.bar", 1, DirectoryKind::Log),
        ("foo-bar-42", "foo-bar", 42, DirectoryKind::Log),
        ("foo.bar-42.8d4ab7f4a0f44cb1a7c7e7a1a1a1a1a1-delete", "foo.bar", 42, DirectoryKind::Delete),
        ("foo-3.8d4ab7f4a0f44cb1a7c7e7a1a1a1a1a1-future", "foo", 3, DirectoryKind::Future),
        ("foo-3.8d4ab7f4a0f44cb1a7c7e7a1a1a1a1a1-stray", "foo", 3, DirectoryKind::Stray),
    ] {
        let partition = partition(topic, number);
        assert_eq!(DirectoryName::parse(name), Some(DirectoryName { partition, kind }), "{name}");
    }
    for name in ["", "topic1", "-1", "topic-", "topic-x", "non_kafka_dir", "non_kafka_dir-delete", "foo-1-delete", "foo-1.-delete"]
    {
        assert_eq!(DirectoryName::parse(name), None, "{name}");
    }
}

#[test]
fn a_stop_leaves_what_the_next_start_needs() {
    let mut directory = MemoryStorage::new();
    let mut log = PartitionLog::create(MemoryStorage::new(), LogConfig::default(), TimestampMs(0)).unwrap();
    log.truncate_fully_and_start_at(Offset(7), TimestampMs(0)).unwrap();
    log.close_clean().unwrap();
    let closed = ClosedLog::of(partition("a", 0), &log);
    assert_eq!((closed.recovery_point, closed.log_start_offset), (Offset(0), None));
    let other = ClosedLog { partition: partition("b", 3), recovery_point: Offset(9), log_start_offset: Some(Offset(4)) };
    ClosedLog::stop(&mut directory, &[closed, other], BrokerEpoch(12)).unwrap();
    let file = |name| directory.read_all(name).unwrap().unwrap();
    assert_eq!(file(CheckpointFile::RecoveryPoint.name()), "0\n2\nb 3 9\na 0 0\n");
    assert_eq!(file(CheckpointFile::LogStartOffset.name()), "0\n1\nb 3 4\n");

    let (state, unreadable) = LogDirState::start(&mut directory).unwrap();
    assert_eq!(unreadable, []);
    assert_eq!(state.clean_shutdown, Some(CleanShutdown { broker_epoch: Some(BrokerEpoch(12)) }));
    assert_eq!(directory.read_all(CLEAN_SHUTDOWN_FILE), Ok(None));
    let options = OpenOptions { recovery: Recovery::Clean, recovery_point: Offset(9), log_start_offset: Offset(4) };
    assert_eq!(state.open_options(&partition("b", 3)), options);
    assert_eq!(state.open_options(&partition("b", 4)), OpenOptions::new(Recovery::Clean));

    // Without another orderly stop the next start is one after a crash.
    let (state, _) = LogDirState::start(&mut directory).unwrap();
    assert_eq!(state.open_options(&partition("b", 3)), OpenOptions { recovery: Recovery::Unclean, ..options });
}

#[test]
fn a_checkpoint_that_cannot_be_read_counts_as_empty() {
    let mut directory = MemoryStorage::new();
    directory.replace(CheckpointFile::RecoveryPoint.name(), &Bytes::from_static(b"0\n1\n")).unwrap();
    directory.replace(CheckpointFile::LogStartOffset.name(), &Bytes::from_static(b"0\n1\na 0 5\n")).unwrap();
    let (state, unreadable) = LogDirState::start(&mut directory).unwrap();
    let error = CheckpointError::Count { expected: 1, found: 0 };
    assert_eq!(unreadable, [Unreadable { file: CheckpointFile::RecoveryPoint, error }]);
    let options = OpenOptions { log_start_offset: Offset(5), ..OpenOptions::new(Recovery::Unclean) };
    assert_eq!(state.open_options(&partition("a", 0)), options);
}

/// Version, cluster, node and directory; or the class of the exception.
fn meta_properties(text: &str) -> Result<String, &'static str> {
    let read = MetaProperties::decode(&Bytes::copy_from_slice(text.as_bytes())).map_err(|error| error.kafka_class())?;
    let directory = read.directory_id.map(|id| id.to_string());
    Ok(format!("{:?} {:?} {:?} {directory:?}", read.version, read.cluster_id, read.node_id.map(NodeId::get)))
}

#[test]
fn meta_properties_are_read_as_kafka_reads_them() {
    for (text, expected) in [
        (
            "version=1\ncluster.id=C\nnode.id=1\ndirectory.id=8h1ZOXEPQ1udjd9otWWi_Q\n",
            r#"V1 Some("C") Some(1) Some("8h1ZOXEPQ1udjd9otWWi_Q")"#,
        ),
        ("#x\n!y\n\n  version : 1\ncluster.id C\nnode.id\t=\t1", r#"V1 Some("C") Some(1) None"#),
        ("version=1\ncluster.id=C\nnode.id=-1", r#"V1 Some("C") Some(-1) None"#),
        ("version=1 \ncluster.id=C \nnode.id=+1", r#"V1 Some("C ") Some(1) None"#),
        ("version=01\r\ncluster.id=C\rnode.id=1\nnode.id=2", r#"V1 Some("C") Some(2) None"#),
        ("version=1\ncluster.id=a\\u0041\\=b\\\n   c\\t\\q\nnode.id=1\nother=x", r#"V1 Some("aA=bc\tq") Some(1) None"#),
        ("version=1\ncluster.id==C\n=x\nnode.id=1", r#"V1 Some("=C") Some(1) None"#),
        ("version=1\ncluster.id=C\\\\\nnode.id=1", r#"V1 Some("C\\") Some(1) None"#),
        ("version=1\ncluster.id=a\\\n#b\nnode.id=1", r#"V1 Some("a#b") Some(1) None"#),
        ("version=1\ncluster.id=a\\\n\nnode.id=1", r#"V1 Some("a") Some(1) None"#),
        ("#c\\\nversion=1\ncluster.id=\nnode.id=1", r#"V1 Some("") Some(1) None"#),
        ("version=1\ncluster.id=\u{e4}\nnode.id=1", "V1 Some(\"\u{c3}\u{a4}\") Some(1) None"),
        ("version=0\nbroker.id=3\ncluster.id=C", r#"V0 Some("C") Some(3) None"#),
        ("", "V0 None None None"),
        ("version=0\nnode.id=3", "V0 None None None"),
    ] {
        assert_eq!(meta_properties(text).as_deref(), Ok(expected), "{text:?}");
    }
}

#[test]
fn meta_properties_that_kafka_refuses_are_refused() {
    for (text, expected) in [
        ("version=1\nnode.id=1", "RuntimeException"),
        ("version=1\ncluster.id=C", "RuntimeException"),
        ("version=1\ncluster.id\\=x=C\nnode.id=1", "RuntimeException"),
        ("version=1\ncluster.id=C\nnode.id=x", "RuntimeException"),
        ("version=1\ncluster.id=C\nnode.id=1 ", "RuntimeException"),
        ("version=2\ncluster.id=C\nnode.id=1", "RuntimeException"),
        ("version=x\ncluster.id=C\nnode.id=1", "RuntimeException"),
        ("version=0\nbroker.id=x", "RuntimeException"),
        ("version=1\ncluster.id=C\nnode.id=1\ndirectory.id=lost+found", "RuntimeException"),
        ("version=1\ncluster.id=a\\", "RuntimeException"),
        ("version=1\ncluster.id=\\u00\nnode.id=1", "IllegalArgumentException"),
    ] {
        assert_eq!(meta_properties(text), Err(expected), "{text:?}");
    }
}

#[test]
fn meta_properties_are_written_as_kafka_writes_them() {
    let now = TimestampMs(1_796_203_136_000);
    let v1 = MetaProperties {
        version: MetaPropertiesVersion::V1,
        cluster_id: Some("a=b: c#!\\\t\u{e4} ".to_owned()),
        node_id: Some(NodeId(1)),
        directory_id: None,
    };
    let head = "#\n#Wed Dec 02 09:18:56 UTC 2026\n";
    assert_eq!(v1.encode(now), format!("{head}node.id=1\nversion=1\ncluster.id=a\\=b\\: c\\#\\!\\\\\\t\u{e4} \n"));
    let v1 = MetaProperties { cluster_id: Some(" x".to_owned()), node_id: Some(NodeId(-1)), ..v1 };
    assert_eq!(v1.encode(now), format!("{head}node.id=-1\nversion=1\ncluster.id=\\ x\n"));
    let v0 = MetaProperties {
        version: MetaPropertiesVersion::V0,
        cluster_id: Some("C".to_owned()),
        node_id: Some(NodeId(3)),
        directory_id: Some(Uuid((1 << 64) | 2)),
    };
    let expected = "broker.id=3\ndirectory.id=AAAAAAAAAAEAAAAAAAAAAg\nversion=0\ncluster.id=C\n";
    assert_eq!(v0.encode(now), format!("{head}{expected}"));
}
