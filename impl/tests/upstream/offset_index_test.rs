#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's OffsetIndexTest, as far as the file of the index matters; the rest is beside the code.

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{FetchIsolation, LogConfig, OFFSET_INDEX_ENTRY_BYTES, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::record::{AnyBatchReader, BatchBuilder};
use cleanslate_log::storage::FileStorage;
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

/// An index with room for ten entries, whose file somebody has taken away. The log does not need the file until it is opened
/// again: then it makes another one.
#[test]
fn force_unmap_test() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { segment_index_bytes: 10 * OFFSET_INDEX_ENTRY_BYTES, index_interval_bytes: 1, ..LogConfig::default() };
    let open = || {
        let files = FileStorage::open(dir.path()).unwrap();
        PartitionLog::open(files, config.clone(), OpenOptions::new(Recovery::Clean), TimestampMs(0)).unwrap().0
    };
    let path = dir.path().join("00000000000000000000.index");
    let entries = || std::fs::read(&path).map(|bytes| bytes.len() / OFFSET_INDEX_ENTRY_BYTES);
    let mut log = open();
    for offset in 0..4 {
        let batch = BatchBuilder::new(Offset(offset)).record(None, Some(b"value")).build().unwrap();
        let bytes = batch.with_leader_epoch(LeaderEpoch(0)).bytes().clone();
        log.append_as_follower(bytes, LeaderEpoch(0), ReplicationPath::IntraCluster, TimestampMs(0)).unwrap();
    }
    assert_eq!(entries().unwrap(), 3);
    std::fs::remove_file(&path).unwrap();
    let found = |log: &PartitionLog<FileStorage>| {
        let bytes = log.read(Offset(1), FetchIsolation::LogEnd, 1000).unwrap();
        AnyBatchReader::new(bytes).map(|batch| batch.unwrap().last_offset().get()).collect::<Vec<_>>()
    };
    assert_eq!(found(&log), [1, 2, 3]);
    log.close_clean().unwrap();
    assert_eq!(entries().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    drop(log);
    let log = open();
    assert_eq!((found(&log), entries().unwrap()), (vec![1, 2, 3], 3));
}
