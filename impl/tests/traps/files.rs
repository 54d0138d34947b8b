//! Segments and their indexes: traps 25 to 28, and 30.

use bytes::Bytes;
use cleanslate_log::log::{LOG_FILE, LogConfig, OFFSET_INDEX_ENTRY_BYTES, OpenOptions, PartitionLog, Recovery, TXN_INDEX_FILE};
use cleanslate_log::storage::Storage;
use cleanslate_log::types::Offset;

use crate::log_support::{NOW, batch};
use crate::support::{after, bases, epochs, follow, open, snapshots, stock};

const INDEX: &str = "00000000000000000000.index";

/// An append that is refused leaves its leader epoch behind, and the segment that was begun for it.
#[test]
fn k25_a_refused_append_leaves_traces() {
    let size = batch("5.0#0", Offset(0)).size_in_bytes();
    let mut log = after(&LogConfig { segment_bytes: size, ..LogConfig::default() }, &["client 5.0#0"]);
    assert_eq!(log.run("client E5/5.0#9"), "OutOfOrderSequenceException");
    assert_eq!((epochs(&log.log), bases(&log.log)), (vec![(0, 0), (5, 1)], vec![0, 1]));
    assert_eq!((log.log.log_end_offset(), snapshots(log.log.storage())), (Offset(1), vec![1]));
}

/// A clean start leaves junk of fewer than 18 bytes in the file. Kafka appends behind it, which makes the segment unreadable; here
/// the next append cuts it off. An unclean start cuts it.
#[test]
fn k26_a_clean_start_does_not_cut_junk() {
    let mut storage = stock(&["copy 5.0#0", "clean"]).log.into_storage();
    let whole = storage.len(LOG_FILE).unwrap().unwrap();
    storage.append(LOG_FILE, &Bytes::from_static(&[9; 17])).unwrap();
    let mut log = open(&storage, Recovery::Clean, 1, 0);
    assert_eq!(log.storage().len(LOG_FILE), Ok(Some(whole + 17)));
    let next = batch("5.0#1", Offset(1));
    assert_eq!(follow(&mut log, next.bytes().clone()), Ok(1));
    assert_eq!(log.storage().len(LOG_FILE), Ok(Some(whole + next.size_in_bytes() as u64)));
    assert_eq!(log.batches().unwrap().len(), 2);
    assert_eq!(open(&storage, Recovery::Unclean, 1, 0).storage().len(LOG_FILE), Ok(Some(whole)));
}

/// An index has as many entries as its file is long: one that was left at its full size, filled with zeros, is full.
#[test]
fn k27_an_index_has_as_many_entries_as_its_file_is_long() {
    let config = LogConfig { segment_index_bytes: 10 * OFFSET_INDEX_ENTRY_BYTES, ..LogConfig::default() };
    let mut storage = after(&config, &["copy 5.0#0", "clean"]).log.into_storage();
    storage.replace(INDEX, &Bytes::from(vec![0; config.segment_index_bytes])).unwrap();
    for (recovery, expected) in [(Recovery::Clean, vec![0, 1]), (Recovery::Unclean, vec![0])] {
        let (mut log, _) = PartitionLog::open(storage.clone(), config.clone(), OpenOptions::new(recovery), NOW).unwrap();
        assert_eq!(follow(&mut log, batch("5.0#1", Offset(1)).bytes().clone()), Ok(1));
        assert_eq!(bases(&log), expected, "{recovery:?}");
    }
}

/// A time index is full one entry early: the last is for when the segment is left.
#[test]
fn k28_a_time_index_is_full_one_entry_early() {
    // Room for three entries of a time index, and for four of an offset index.
    let config = LogConfig { segment_index_bytes: 36, index_interval_bytes: 1, ..LogConfig::default() };
    let mut log = after(&config, &["copy -@0 | -@1 | -@2"]);
    // The first batch is in no index, the next two are in both.
    assert_eq!(bases(&log.log), [0]);
    log.run("copy -@3");
    assert_eq!(bases(&log.log), [0, 3]);
    assert_eq!(log.log.storage().len("00000000000000000000.timeindex"), Ok(Some(24)));
    assert_eq!(log.log.storage().len(INDEX), Ok(Some(16)));
}

/// Of the two bytes of the version of an aborted transaction Kafka reads the first, as a signed number; above 0 it is not opened.
#[test]
fn k30_the_version_of_an_aborted_transaction_is_one_byte() {
    let storage = stock(&["copy t7.0#0 | AB7.0", "clean"]).log.into_storage();
    let entry = storage.read_all(TXN_INDEX_FILE).unwrap().unwrap();
    for (version, expected) in [
        ([0, 0], Ok(1)),
        ([0, 1], Ok(1)),
        ([0x80, 0], Ok(1)),
        ([0xff, 0xff], Ok(1)),
        ([1, 0], Err("KafkaException")),
        ([0x7f, 0], Err("KafkaException")),
    ] {
        let mut changed = storage.clone();
        changed.replace(TXN_INDEX_FILE, &Bytes::from([&version[..], &entry[2..]].concat())).unwrap();
        let opened = PartitionLog::open(changed.clone(), LogConfig::default(), Recovery::Clean, NOW);
        let found = opened.map(|(log, _)| log.aborted_transactions().count()).map_err(|error| error.kafka_class());
        assert_eq!(found, expected, "{version:?}");
        // Where the offset index is missing, the segment is recovered before a look at this one.
        changed.remove(INDEX).unwrap();
        assert_eq!(open(&changed, Recovery::Clean, 0, 0).aborted_transactions().count(), 1);
    }
}
