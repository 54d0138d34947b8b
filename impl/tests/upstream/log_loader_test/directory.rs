#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! All logs of a directory.

use cleanslate_log::log::{LogConfig, LogError, PartitionLog, Recovery};
use cleanslate_log::log_dir::{CLEAN_SHUTDOWN_FILE, CleanShutdown, LoadedLogs, TopicPartition};
use cleanslate_log::storage::{FaultyCalls, FaultyStorage, MemoryStorage, Storage, StorageError};
use cleanslate_log::types::{BrokerEpoch, PartitionId};

use crate::upstream::support::NOW;

/// A log directory; what is in the directory of its one partition when that is opened; and whether the stop was orderly, as the
/// last log that was opened was told.
struct Directory {
    files: MemoryStorage,
    partition: FaultyStorage,
    was_clean: Option<bool>,
}

impl Directory {
    /// The start of a broker.
    fn load(&mut self) -> Result<LoadedLogs<PartitionLog<FaultyStorage>>, LogError> {
        let (partition, was_clean) = (&self.partition, &mut self.was_clean);
        let loaded = LoadedLogs::load(&mut self.files, [TopicPartition::new("foo", PartitionId(0))], |_, options| {
            *was_clean = Some(options.recovery == Recovery::Clean);
            PartitionLog::open(partition.clone(), LogConfig::default(), options, NOW).map(|(log, _)| log)
        });
        assert!(!self.has_mark(), "the mark is gone, whatever came of it");
        loaded
    }

    fn stop_orderly(&mut self) {
        self.files.replace(CLEAN_SHUTDOWN_FILE, &CleanShutdown::encode(BrokerEpoch(0))).unwrap();
    }

    fn has_mark(&self) -> bool {
        self.files.len(CLEAN_SHUTDOWN_FILE).unwrap().is_some()
    }
}

fn is_online(loaded: &Result<LoadedLogs<PartitionLog<FaultyStorage>>, LogError>) -> bool {
    matches!(loaded, Ok(LoadedLogs::Online { logs, unreadable }) if logs.len() == 1 && unreadable.is_empty())
}

#[test]
fn test_log_recovery_is_called_upon_broker_crash() {
    let mut directory = Directory { files: MemoryStorage::new(), partition: FaultyStorage::new(), was_clean: None };
    directory.stop_orderly();
    assert!(is_online(&directory.load()));
    assert_eq!(directory.was_clean, Some(true));
    assert!(is_online(&directory.load()));
    assert_eq!(directory.was_clean, Some(false));

    // An error that is not one of the storage is passed on; the directory may be loaded again.
    directory.stop_orderly();
    for (name, class) in [("leader-epoch-checkpoint", "KafkaStorageException"), ("mirror-metadata", "KafkaStorageException")] {
        let mut broken = MemoryStorage::new();
        broken.replace(name, &b"no such file\n".as_slice().into()).unwrap();
        directory.partition = FaultyStorage::over(broken);
        let error = directory.load().unwrap_err();
        assert_eq!((error.kafka_class(), matches!(error, LogError::Storage(_))), (class, false), "{error}");
    }

    // A storage that fails takes the directory offline, and the broker goes on.
    directory.stop_orderly();
    directory.partition = FaultyStorage::new().counting(FaultyCalls::All);
    directory.partition.fail_after(0);
    assert!(matches!(directory.load(), Ok(LoadedLogs::Offline(StorageError::Io { .. }))));

    // The start that failed had removed the mark.
    directory.partition = FaultyStorage::new();
    assert!(is_online(&directory.load()));
    assert_eq!(directory.was_clean, Some(false));
}
