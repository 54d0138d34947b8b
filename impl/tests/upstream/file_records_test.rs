#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's FileRecordsTest, through the log that the file belongs to, and through storages.

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{
    FetchIsolation, LOG_FILE, LogConfig, LogError, OffsetSpec, OpenOptions, PartitionLog, Recovery, TimestampAndOffset,
};
use cleanslate_log::record::{AnyBatchReader, BatchBuilder, LegacyEntry, Magic, RecordBatch};
use cleanslate_log::storage::{FaultyStorage, FileStorage, MemoryStorage, Storage, StorageError};
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

use crate::upstream::legacy::follow_bytes;
use crate::upstream::support::{Log, NOW, follow, new_log, placed, plain, read, reopen_files};

/// A batch of which the file has a part only is none, and what is in front of it stays.
#[test]
fn test_iteration_over_partial_and_truncation() {
    let mut log = new_log(&LogConfig::default());
    for offset in 0..3 {
        follow(&mut log, &[placed(plain(1), offset, 0)]).unwrap();
    }
    log.close_clean().unwrap();
    let size = u64::try_from(plain(1).build().unwrap().size_in_bytes()).unwrap();
    for len in 0..=3 * size {
        let mut storage = log.storage().clone();
        storage.truncate(LOG_FILE, len).unwrap();
        for recovery in [Recovery::Clean, Recovery::Unclean] {
            let left = reopen_files(storage.clone(), log.config(), recovery, 0, 0);
            assert_eq!(left.log_end_offset().get(), i64::try_from(len / size).unwrap(), "{len} {recovery:?}");
        }
    }
}

/// A reader gets the first batch that ends at its offset or behind it: below the first one, in a gap, within a batch; none behind
/// the last.
#[test]
fn test_search() {
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(1), 5, 0), placed(plain(3), 30, 0), placed(plain(1), 50, 0)]).unwrap();
    for (from, first) in [(0, Some(5)), (5, Some(5)), (6, Some(30)), (31, Some(30)), (32, Some(30)), (33, Some(50)), (51, None)] {
        let found = read(&log, from, FetchIsolation::LogEnd).unwrap();
        assert_eq!(found.first().map(|(base, _)| *base), first, "{from}");
    }
}

const END: FetchIsolation = FetchIsolation::LogEnd;

/// A batch of one record at an offset.
fn with_value(offset: i64, value: &[u8]) -> RecordBatch {
    BatchBuilder::new(Offset(offset)).timestamp(NOW).record(None, Some(value)).build().unwrap().with_leader_epoch(LeaderEpoch(0))
}

/// The log that Kafka's tests begin with: three batches of one record.
fn three() -> (Log, [RecordBatch; 3]) {
    let batches = [with_value(0, b"abcd"), with_value(1, b"efgh"), with_value(2, b"ijkl")];
    let mut log = new_log(&LogConfig::default());
    for batch in &batches {
        follow(&mut log, std::slice::from_ref(batch)).unwrap();
    }
    (log, batches)
}

fn joined(batches: &[RecordBatch]) -> Bytes {
    batches.iter().flat_map(|batch| batch.bytes().to_vec()).collect::<Vec<u8>>().into()
}

fn file_bytes(log: &Log) -> u64 {
    log.storage().len(LOG_FILE).unwrap().unwrap()
}

/// The size that is kept is that of the file.
#[test]
fn test_file_size() {
    let (mut log, _) = three();
    for offset in 3..23 {
        assert_eq!(log.size_in_bytes(), file_bytes(&log));
        follow(&mut log, &[with_value(offset, b"abcd")]).unwrap();
    }
    assert_eq!(log.size_in_bytes(), file_bytes(&log));
}

/// A reader changes nothing: the next append goes behind the last.
#[test]
fn test_iteration_doesnt_change_position() {
    let (mut log, batches) = three();
    let before = log.storage().read_all(LOG_FILE).unwrap().unwrap();
    assert_eq!(log.batches().unwrap(), batches);
    assert_eq!(log.storage().read_all(LOG_FILE).unwrap().unwrap(), before);
    let fourth = with_value(3, b"mnop");
    follow(&mut log, std::slice::from_ref(&fourth)).unwrap();
    assert_eq!(log.storage().read_all(LOG_FILE).unwrap().unwrap(), [before, fourth.bytes().clone()].concat());
}

/// From the beginning and from the second batch on, up to the end and beyond, and one batch alone.
#[test]
fn test_read() {
    let (log, batches) = three();
    let all = joined(&batches);
    let (from_second, one) = (joined(&batches[1..]), batches[1].size_in_bytes());
    for (from, max, expected) in [
        (0, all.len(), &all),
        (1, from_second.len(), &from_second),
        (1, all.len(), &from_second),
        (1, usize::MAX, &from_second),
        (1, one, batches[1].bytes()),
    ] {
        assert_eq!(&log.read(Offset(from), END, max).unwrap(), expected, "{from} {max}");
    }
    // A part of a part is that of the whole.
    let first = batches[0].size_in_bytes();
    let part = log.read(Offset(0), END, usize::MAX).unwrap().slice(1..);
    assert_eq!(part.slice(first - 1..), from_second);
}

/// A slice of what a reader got holds the same batches as a slice of the file.
#[test]
fn test_slice_for_already_sliced_file_records() {
    let (log, batches) = three();
    let at = |count: usize| joined(&batches[..count]).len();
    let position = |count: usize| u64::try_from(at(count)).unwrap();
    let sliced = log.storage().read(LOG_FILE, position(1), usize::MAX).unwrap();
    assert_eq!(sliced.slice(at(2) - at(1)..), log.storage().read(LOG_FILE, position(2), usize::MAX).unwrap());
    let read: Vec<_> = AnyBatchReader::new(sliced.slice(at(2) - at(1)..)).map(|batch| batch.unwrap().bytes().clone()).collect();
    assert_eq!(read, [batches[2].bytes().clone()]);
}

/// Behind the end there is nothing to read.
#[test]
fn test_out_of_range_slice() {
    let (log, _) = three();
    let error = log.read(Offset(4), END, 15).unwrap_err();
    assert_eq!(error.kafka_class(), "OffsetOutOfRangeException");
    assert_eq!(log.storage().read(LOG_FILE, file_bytes(&log) + 1, 15), Ok(Bytes::new()));
}

/// What a reader got does not grow with the log.
#[test]
fn test_slice_size_limit_with_concurrent_write() {
    let mut log = new_log(&LogConfig::default());
    let mut slices = Vec::new();
    let mut offset = 0;
    while log.size_in_bytes() < 16384 {
        let size = usize::try_from(log.size_in_bytes()).unwrap();
        slices.push((size, log.read(Offset(0), END, size).unwrap()));
        follow(&mut log, &[with_value(offset, b"abcd")]).unwrap();
        offset += 1;
    }
    assert!(slices.len() > 100, "{}", slices.len());
    let whole = log.read(Offset(0), END, usize::MAX).unwrap();
    assert!(slices.iter().all(|(size, slice)| slice.len() == *size && whole.starts_with(slice)));
}

/// Exactly one batch, and none where a byte of it is missing.
#[test]
fn test_iterator_with_limits() {
    let (mut log, batches) = three();
    let size = batches[1].size_in_bytes();
    let mut whole = |max: usize| {
        let data = log.fetch(Offset(1), END, max, false).unwrap();
        AnyBatchReader::new(data.records).map(|batch| batch.unwrap().bytes().clone()).collect::<Vec<_>>()
    };
    assert_eq!(whole(size), [batches[1].bytes().clone()]);
    assert_eq!(whole(size - 1), Vec::<Bytes>::new());
}

#[test]
fn test_truncate() {
    let (mut log, batches) = three();
    assert_eq!(log.truncate_to(Offset(1), NOW), Ok(true));
    assert_eq!(log.batches().unwrap(), batches[..1]);
    assert_eq!((log.size_in_bytes(), file_bytes(&log)), (batches[0].size_in_bytes() as u64, batches[0].size_in_bytes() as u64));
}

/// A cut at the end calls nothing that changes a file.
#[test]
fn test_truncate_not_called_if_size_is_same_as_target_size() {
    let mut log = PartitionLog::create(FaultyStorage::new(), LogConfig::default(), NOW).unwrap();
    let bytes = with_value(0, b"abcd").bytes().clone();
    log.append_as_follower(bytes, LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
    let calls = log.storage().calls();
    assert_eq!(log.truncate_to(Offset(1), NOW), Ok(false));
    assert_eq!(log.storage().calls(), calls);
}

/// Cuts a file of 42 bytes to a length; what came of it, and the length then.
fn truncated(mut storage: impl Storage, len: u64) -> (Result<(), StorageError>, Option<u64>) {
    storage.append(LOG_FILE, &Bytes::from_static(&[0; 42])).unwrap();
    let result = storage.truncate(LOG_FILE, len);
    (result, storage.len(LOG_FILE).unwrap())
}

/// The same in memory and in a directory.
fn truncated_everywhere(len: u64) -> (Result<(), StorageError>, Option<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let found = truncated(MemoryStorage::new(), len);
    assert_eq!(truncated(FileStorage::open(dir.path()).unwrap(), len), found);
    found
}

/// A file is cut only to a length that it has.
#[test]
fn test_truncate_not_called_if_size_is_bigger_than_target_size() {
    let error = StorageError::TruncateBeyondEnd { name: LOG_FILE.to_owned(), requested: 43, len: 42 };
    assert_eq!(truncated_everywhere(43), (Err(error), Some(42)));
}

#[test]
fn test_truncate_if_size_is_different_to_target_size() {
    assert_eq!(truncated_everywhere(23), (Ok(()), Some(23)));
}

/// A storage whose log file says that it is longer than any that Kafka opens.
#[derive(Debug)]
struct Oversize(MemoryStorage);

impl Storage for Oversize {
    fn names(&self) -> Result<Vec<String>, StorageError> {
        self.0.names()
    }

    fn len(&self, name: &str) -> Result<Option<u64>, StorageError> {
        if name == LOG_FILE { Ok(Some(i32::MAX as u64 + 5)) } else { self.0.len(name) }
    }

    fn read(&self, name: &str, at: u64, max: usize) -> Result<Bytes, StorageError> {
        self.0.read(name, at, max)
    }

    fn append(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        self.0.append(name, bytes)
    }

    fn reserve(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        self.0.reserve(name, len)
    }

    fn trim(&mut self, name: &str) -> Result<(), StorageError> {
        self.0.trim(name)
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        self.0.truncate(name, len)
    }

    fn replace(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        self.0.replace(name, bytes)
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        self.0.remove(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        self.0.rename(from, to)
    }

    fn sync(&mut self, name: &str) -> Result<(), StorageError> {
        self.0.sync(name)
    }
}

#[test]
fn test_open_oversize_file() {
    let (mut log, _) = three();
    log.close_clean().unwrap();
    for recovery in [Recovery::Clean, Recovery::Unclean] {
        let opened = PartitionLog::open(Oversize(log.storage().clone()), LogConfig::default(), OpenOptions::new(recovery), NOW);
        let error = opened.err().unwrap();
        assert_eq!(error, LogError::SegmentTooLong { base_offset: Offset(0), bytes: 2_147_483_652 });
        assert_eq!(error.kafka_class(), "KafkaException");
    }
}

/// A log in a directory whose segments have 1 MiB, and how long its file is.
fn preallocated(dir: &std::path::Path, preallocate: bool) -> (PartitionLog<FileStorage>, u64) {
    let config = LogConfig { segment_bytes: 1024 * 1024, preallocate, ..LogConfig::default() };
    let (log, _) = PartitionLog::open(FileStorage::open(dir).unwrap(), config, Recovery::Clean, NOW).unwrap();
    (log, std::fs::metadata(dir.join(LOG_FILE)).unwrap().len())
}

/// A new file is as long as a segment may be, though nothing is in it.
#[test]
fn test_preallocate_true() {
    let dir = tempfile::tempdir().unwrap();
    let (log, file_len) = preallocated(dir.path(), true);
    assert_eq!((log.storage().len(LOG_FILE), log.size_in_bytes(), file_len), (Ok(Some(0)), 0, 1024 * 1024));
}

/// A new file is as long as what is in it: nothing.
#[test]
fn test_preallocate_false() {
    let dir = tempfile::tempdir().unwrap();
    let (log, file_len) = preallocated(dir.path(), false);
    assert_eq!((log.storage().len(LOG_FILE), log.size_in_bytes(), file_len), (Ok(Some(0)), 0, 0));
}

/// The file of a closed log has what was appended and no more, and is not made longer when the log is opened with it.
#[test]
fn test_preallocate_clear_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = preallocated(dir.path(), true);
    let (_, batches) = three();
    for batch in &batches {
        log.append_as_follower(batch.bytes().clone(), LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
    }
    let size = joined(&batches).len() as u64;
    assert_eq!((log.storage().len(LOG_FILE), log.size_in_bytes()), (Ok(Some(size)), size));
    log.close_clean().unwrap();
    drop(log);
    let (reopened, file_len) = preallocated(dir.path(), true);
    assert_eq!((reopened.storage().len(LOG_FILE), reopened.size_in_bytes(), file_len), (Ok(Some(size)), size, size));
}

/// Beyond Kafka's own tests: a log that was not closed has zeros behind what was appended, and recovery cuts them.
#[test]
fn test_preallocated_file_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = preallocated(dir.path(), true);
    let (_, batches) = three();
    log.append_as_follower(joined(&batches), LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
    let config = log.config().clone();
    drop(log);
    assert_eq!(std::fs::metadata(dir.path().join(LOG_FILE)).unwrap().len(), 1024 * 1024);
    let (recovered, report) = PartitionLog::open(FileStorage::open(dir.path()).unwrap(), config, Recovery::Unclean, NOW).unwrap();
    let size = joined(&batches).len() as u64;
    assert_eq!((recovered.batches().unwrap().as_slice(), recovered.size_in_bytes()), (batches.as_slice(), size));
    assert_eq!(report.truncated_bytes, 1024 * 1024 - size);
    assert_eq!(std::fs::metadata(dir.path().join(LOG_FILE)).unwrap().len(), size);
}

/// One record with a time, in any format.
fn at_time(magic: Magic, timestamp: i64, offset: i64, epoch: i32) -> Bytes {
    let (time, key, value) = (TimestampMs(timestamp), Some(&b"key"[..]), Some(&b"value"[..]));
    match magic {
        Magic::V2 => {
            let batch = BatchBuilder::new(Offset(offset)).timestamp(time).record(key, value);
            batch.leader_epoch(LeaderEpoch(epoch)).build().unwrap().bytes().clone()
        }
        old => {
            let timestamp = (old == Magic::V1).then_some(time);
            LegacyEntry { offset: Offset(offset), timestamp, key, value, ..LegacyEntry::default() }.to_bytes().unwrap()
        }
    }
}

/// The first record that is not older; none where records have no times.
#[test]
fn test_search_for_timestamp() {
    for magic in [Magic::V0, Magic::V1, Magic::V2] {
        let mut log = new_log(&LogConfig::default());
        follow_bytes(&mut log, [at_time(magic, 10, 5, 0), at_time(magic, 11, 6, 1)].concat().into()).unwrap();
        let (first, second) = ((10, 5, 0), (11, 6, 1));
        for (timestamp, expected) in [(9, Some(first)), (10, Some(first)), (11, Some(second)), (12, None)] {
            let found = log.fetch_offset_by_timestamp(OffsetSpec::Timestamp(TimestampMs(timestamp))).unwrap();
            let expected = expected.filter(|_| magic > Magic::V0).map(|(timestamp, offset, epoch)| TimestampAndOffset {
                timestamp: TimestampMs(timestamp),
                offset: Offset(offset),
                leader_epoch: (magic == Magic::V2).then_some(LeaderEpoch(epoch)),
            });
            assert_eq!(found, expected, "{magic:?} {timestamp}");
        }
    }
}

/// What is asked for behind the end is not there, and nothing stands in for it.
#[test]
fn test_bytes_length_of_write_to() {
    let (log, _) = three();
    let (size, bytes) = (file_bytes(&log), log.storage().read_all(LOG_FILE).unwrap().unwrap());
    let first = size / 3;
    let part = |at: u64, len: u64| log.storage().read(LOG_FILE, at, usize::try_from(len).unwrap()).unwrap();
    let parts = [part(0, first), part(first, size - first + 1)];
    assert_eq!(parts.iter().map(|part| part.len() as u64).collect::<Vec<_>>(), [first, size - first]);
    assert_eq!(parts.concat(), bytes);
}
