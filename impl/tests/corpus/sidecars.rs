//! The small files beside the logs.

use bytes::Bytes;
use cleanslate_log::log::{LeaderEpochCache, LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::{ProducerSnapshot, ProducerStateEntry};
use cleanslate_log::storage::{MemoryStorage, Storage as _};
use cleanslate_log::types::{Offset, TimestampMs};

use super::manifest::{Aborted, Manifest, Producer};

#[test]
fn every_snapshot_says_what_kafka_reads_in_it() {
    let mut seen = 0;
    for (case, directory) in Manifest::load().directories() {
        for (path, file) in directory.files_of(".snapshot") {
            let snapshot = ProducerSnapshot::decode(&file).unwrap();
            let mut producers: Vec<_> =
                snapshot.entries.iter().map(|entry| Producer::from(&ProducerStateEntry::from(entry))).collect();
            let mut expected: Vec<_> = case.snapshots[&path].iter().collect();
            producers.sort();
            expected.sort();
            assert_eq!(producers.iter().collect::<Vec<_>>(), expected, "{path}");
            assert_eq!(snapshot.encode(), file, "{path}");
            seen += 1;
        }
    }
    assert_eq!(seen, 72);
}

#[test]
fn every_leader_epoch_checkpoint_says_what_kafka_reads_in_it() {
    let mut seen = 0;
    for (case, directory) in Manifest::load().directories() {
        for (path, file) in directory.files_of("leader-epoch-checkpoint") {
            let cache = LeaderEpochCache::decode(&file).unwrap();
            let pairs: Vec<_> = cache.entries().iter().map(|entry| (entry.epoch.get(), entry.start_offset.get())).collect();
            assert_eq!(pairs, case.leader_epochs[&path], "{path}");
            assert_eq!(cache.encode(), file, "{path}");
            seen += 1;
        }
    }
    assert_eq!(seen, 43);
}

#[test]
fn every_transaction_index_says_what_kafka_reads_in_it() {
    let (mut seen, mut entries) = (0, 0);
    for (case, directory) in Manifest::load().directories() {
        for (path, file) in directory.files_of(".txnindex") {
            let aborted = aborted_transactions(&path, &file);
            assert_eq!(aborted, case.txn_indexes[&path], "{path}");
            seen += 1;
            entries += aborted.len();
        }
    }
    assert_eq!((seen, entries), (41, 104));
}

/// Opens a segment without batches that has this transaction index.
fn aborted_transactions(path: &str, file: &Bytes) -> Vec<Aborted> {
    let name = path.rsplit('/').next().unwrap();
    let base = name.strip_suffix(".txnindex").unwrap();
    let mut storage = MemoryStorage::new();
    storage.replace(name, file).unwrap();
    for empty in [".log", ".index", ".timeindex"] {
        storage.replace(&format!("{base}{empty}"), &Bytes::new()).unwrap();
    }
    let options = OpenOptions::new(Recovery::Clean);
    let (log, _) = PartitionLog::open(storage, LogConfig::default(), options, TimestampMs(0)).unwrap();
    assert_eq!(log.log_end_offset(), Offset(base.parse().unwrap()));
    assert_eq!(log.storage().read_all(name).unwrap().as_ref(), Some(file), "{path}");
    log.aborted_transactions().map(aborted_tuple).collect()
}

pub(crate) fn aborted_tuple(txn: &cleanslate_log::log::AbortedTxn) -> Aborted {
    (txn.producer_id.get(), txn.first_offset.get(), txn.last_offset.get(), txn.last_stable_offset.get())
}
