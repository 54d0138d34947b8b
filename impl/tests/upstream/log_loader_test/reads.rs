#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! What is not read, as there is nothing to learn from it: a storage notes which files are read.

use std::cell::RefCell;

use bytes::Bytes;
use cleanslate_log::log::{LogConfig, PartitionLog, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, snapshot_file_name};
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::storage::{MemoryStorage, Storage, StorageError};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::support::{NOW, plain, produced, snapshots_in};

/// Files in memory, and the names of those whose bytes were read.
#[derive(Debug, Default)]
struct NotedReads {
    files: MemoryStorage,
    reads: RefCell<Vec<String>>,
}

impl NotedReads {
    /// How often a segment's batches were read since this was last asked.
    fn of_batches(&self) -> usize {
        self.reads.take().iter().filter(|name| name.ends_with(".log")).count()
    }
}

impl Storage for NotedReads {
    fn names(&self) -> Result<Vec<String>, StorageError> {
        self.files.names()
    }

    fn len(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.files.len(name)
    }

    fn read(&self, name: &str, at: u64, max: usize) -> Result<Bytes, StorageError> {
        self.reads.borrow_mut().push(name.to_owned());
        self.files.read(name, at, max)
    }

    fn append(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        self.files.append(name, bytes)
    }

    fn reserve(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        self.files.reserve(name, len)
    }

    fn trim(&mut self, name: &str) -> Result<(), StorageError> {
        self.files.trim(name)
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        self.files.truncate(name, len)
    }

    fn replace(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        self.files.replace(name, bytes)
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        self.files.remove(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        self.files.rename(from, to)
    }

    fn sync(&mut self, name: &str) -> Result<(), StorageError> {
        self.files.sync(name)
    }
}

type NotedLog = PartitionLog<NotedReads>;

fn open(files: MemoryStorage, recovery: Recovery) -> (NotedLog, usize) {
    let storage = NotedReads { files, ..NotedReads::default() };
    let (log, report) = PartitionLog::open(storage, LogConfig::default(), recovery, NOW).unwrap();
    (log, report.replayed_batches)
}

/// The end of the producer state, its producers, and the snapshots.
fn state(log: &NotedLog) -> (i64, usize, Vec<i64>) {
    let psm = log.producer_state();
    (psm.map_end_offset().get(), psm.active_producers().len(), snapshots_in(log.storage()))
}

fn append(log: &mut NotedLog, batch: BatchBuilder) {
    let bytes = batch.build().unwrap().bytes().clone();
    log.append_as_leader(bytes, AppendOrigin::Client, LeaderEpoch(0), TransactionVersion::Unknown, NOW).unwrap();
}

#[test]
fn test_skip_loading_if_empty_producer_state_before_truncation() {
    let (mut log, _) = open(MemoryStorage::new(), Recovery::Unclean);
    assert_eq!(state(&log), (0, 0, vec![]));
    for end in [1, 2] {
        append(&mut log, plain(1));
        assert_eq!(state(&log), (end, 0, vec![]));
    }
    log.storage().of_batches();
    log.truncate_to(Offset(1), NOW).unwrap();
    assert_eq!(log.storage().of_batches(), 0);
    assert_eq!(state(&log), (1, 0, vec![1]));
    // A state that knows a producer is made anew from the records.
    append(&mut log, produced(1, 0, 0, 1));
    append(&mut log, produced(1, 0, 1, 1));
    log.delete_snapshots_before(Offset(2)).unwrap();
    log.storage().of_batches();
    log.truncate_to(Offset(2), NOW).unwrap();
    assert!(log.storage().of_batches() > 0);
    assert_eq!(state(&log), (2, 1, vec![2]));
}

#[test]
fn test_skip_truncate_and_reload_if_new_message_format_and_clean_shutdown() {
    let (mut log, replayed) = open(MemoryStorage::new(), Recovery::Clean);
    assert_eq!((log.storage().of_batches(), replayed, state(&log)), (0, 0, (0, 0, vec![])));
    // Without snapshots a clean start does not replay what the log holds either: it only looks where batches begin.
    append(&mut log, produced(1, 0, 0, 1));
    log.take_snapshot().unwrap();
    append(&mut log, produced(1, 0, 1, 1));
    log.flush().unwrap();
    let with_snapshot = log.into_storage().files;
    let mut without = with_snapshot.clone();
    without.remove(&snapshot_file_name(Offset(1))).unwrap();
    let (skips, replayed) = open(without, Recovery::Clean);
    assert_eq!((replayed, state(&skips)), (0, (2, 0, vec![2])));
    let (replays, replayed) = open(with_snapshot, Recovery::Clean);
    assert_eq!((replayed, state(&replays)), (1, (2, 1, vec![1, 2])));
    assert!(skips.storage().of_batches() < replays.storage().of_batches());
}
