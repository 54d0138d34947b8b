//! The index files of a segment, with the bytes that Kafka 4.3.1 writes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const INDEX: &str = "00000000000000000100.index";
const TIME_INDEX: &str = "00000000000000000100.timeindex";

fn config() -> LogConfig {
    LogConfig { index_interval_bytes: 100, ..LogConfig::default() }
}

/// Six batches of 73 bytes from offset 100 on, each a millisecond later than the one before.
fn six_batches() -> PartitionLog<MemoryStorage> {
    let options = OpenOptions { log_start_offset: Offset(100), ..OpenOptions::new(Recovery::Clean) };
    let (mut log, _) = PartitionLog::open(MemoryStorage::new(), config(), options, NOW).unwrap();
    for i in 0..6 {
        let batch = BatchBuilder::new(Offset(100 + i))
            .leader_epoch(LeaderEpoch(0))
            .timestamp(TimestampMs(NOW.get() + 1 + i))
            .producer(ProducerId(1), ProducerEpoch(0), Sequence(i32::try_from(i).unwrap()))
            .record(Some(b"k"), Some(b"vvvv"))
            .build()
            .unwrap();
        assert_eq!(batch.size_in_bytes(), 73);
        log.append_as_follower(batch.bytes().clone(), LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
    }
    log
}

fn hex(storage: &MemoryStorage, name: &str) -> String {
    storage.read_all(name).unwrap().unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn entries_come_every_so_many_bytes_and_the_last_timestamp_when_the_log_is_closed() {
    let mut log = six_batches();
    assert_eq!(hex(log.storage(), INDEX), "00000002000000920000000400000124");
    assert_eq!(hex(log.storage(), TIME_INDEX), "0000018bcfe56803000000020000018bcfe5680500000004");
    log.close_clean().unwrap();
    assert_eq!(hex(log.storage(), TIME_INDEX), "0000018bcfe56803000000020000018bcfe56805000000040000018bcfe5680600000005");
}

#[test]
fn recovery_builds_the_same_indexes() {
    let mut log = six_batches();
    log.close_clean().unwrap();
    let expected = (hex(log.storage(), INDEX), hex(log.storage(), TIME_INDEX));
    let mut storage = log.into_storage();
    storage.remove(INDEX).unwrap();
    storage.replace(TIME_INDEX, &bytes::Bytes::from_static(b"anything at all")).unwrap();
    for recovery in [Recovery::Clean, Recovery::Unclean] {
        let options = OpenOptions { log_start_offset: Offset(100), ..OpenOptions::new(recovery) };
        let (log, _) = PartitionLog::open(storage.clone(), config(), options, NOW).unwrap();
        assert_eq!((hex(log.storage(), INDEX), hex(log.storage(), TIME_INDEX)), expected, "{recovery:?}");
    }
}

#[test]
fn an_index_that_is_full_begins_a_new_segment() {
    // 24 bytes hold two entries of a time index and 36 hold three; the last is kept for when the segment becomes inactive.
    for (segment_index_bytes, batches) in [(24, 4), (36, 6)] {
        let config = LogConfig { index_interval_bytes: 100, segment_index_bytes, ..LogConfig::default() };
        let mut log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
        let mut first_of_second = None;
        for i in 0..8 {
            let batch = BatchBuilder::new(Offset(i)).leader_epoch(LeaderEpoch(0)).timestamp(TimestampMs(NOW.get() + i));
            let batch = batch.record(Some(b"k"), Some(b"vvvv")).build().unwrap();
            log.append_as_follower(batch.bytes().clone(), LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
            if log.segments().count() > 1 && first_of_second.is_none() {
                first_of_second = Some(i);
            }
        }
        assert_eq!(first_of_second, Some(batches - 1), "{segment_index_bytes} bytes");
    }
}
