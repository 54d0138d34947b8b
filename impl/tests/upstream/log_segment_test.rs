#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LogSegmentTest, as far as a segment can be seen through its log.

use bytes::Bytes;
use cleanslate_log::log::{
    FetchIsolation, LogConfig, OFFSET_INDEX_ENTRY_BYTES, OffsetSpec, OpenOptions, PartitionLog, Recovery, TIME_INDEX_ENTRY_BYTES,
};
use cleanslate_log::record::Compression;
use cleanslate_log::storage::{FileStorage, MemoryStorage, Storage};
use cleanslate_log::types::{Offset, OffsetMetadata, TimestampMs};

use super::unified_log_test_core::script::aborted;
use crate::upstream::legacy::{KeyValue, follow_bytes, legacy};
use crate::upstream::support::{
    Log, NOW, end_txn, epochs, follow, map_end, new_log, placed, plain, produced, read, record_bytes, reopen, reopen_files, timed,
};

const LOG_END: FetchIsolation = FetchIsolation::LogEnd;

/// A log whose first segment begins at an offset.
fn based(config: &LogConfig, base: i64) -> Log {
    let mut log = new_log(config);
    log.truncate_fully_and_start_at(Offset(base), NOW).unwrap();
    log
}

fn at_forty() -> Log {
    based(&LogConfig::default(), 40)
}

/// Entries of the offset index (offsets) and of the time index (timestamp, offset) of a segment.
fn indexes(log: &Log, base: i64) -> (Vec<i64>, Vec<(i64, i64)>) {
    let file = |suffix: &str| log.storage().read_all(&format!("{base:0>20}.{suffix}")).unwrap().unwrap();
    let relative = |bytes: &[u8]| base + i64::from(i32::from_be_bytes(bytes[..4].try_into().unwrap()));
    let offsets = file("index").chunks(OFFSET_INDEX_ENTRY_BYTES).map(relative).collect();
    let timestamp = |bytes: &[u8]| i64::from_be_bytes(bytes[..8].try_into().unwrap());
    let times = file("timeindex").chunks(TIME_INDEX_ENTRY_BYTES).map(|entry| (timestamp(entry), relative(&entry[8..]))).collect();
    (offsets, times)
}

/// The first offset and the place of what a reader gets.
fn begins(log: &mut Log, from: i64) -> OffsetMetadata {
    log.fetch(Offset(from), LOG_END, 1, true).unwrap().offset
}

/// What a log answers for an offset, whatever a reader may read. Two records of magic 1, of 39 bytes each.
#[test]
fn test_read_when_no_max_position() {
    let mut log = at_forty();
    let records: [KeyValue<'_>; 2] = [(None, Some(b"hello")), (None, Some(b"there"))];
    follow_bytes(&mut log, legacy(1, 50, Compression::None, &records)).unwrap();
    let mut found = |offset: i64| log.convert_to_offset_metadata(Offset(offset)).map_err(|error| error.kafka_class());
    for offset in [48, 50] {
        assert_eq!(found(offset), Ok(OffsetMetadata::at(Offset(50), Offset(40), 0)));
    }
    assert_eq!(found(51), Ok(OffsetMetadata::at(Offset(51), Offset(40), 39)));
    // A segment has nothing at its end and behind it; the end of a log is a place.
    assert_eq!(found(52), Ok(OffsetMetadata::at(Offset(52), Offset(40), 78)));
    assert_eq!(found(53), Err("OffsetOutOfRangeException"));
}

#[test]
fn test_read_on_empty_segment() {
    assert_eq!(read(&at_forty(), 40, LOG_END), Ok(vec![]));
}

#[test]
fn test_read_before_first_offset() {
    let mut log = at_forty();
    follow(&mut log, &[placed(plain(4), 50, 0)]).unwrap();
    assert_eq!(read(&log, 41, LOG_END), Ok(vec![(50, 53)]));
    assert_eq!(begins(&mut log, 41), OffsetMetadata::at(Offset(50), Offset(40), 0));
}

#[test]
fn test_read_from_middle_of_batch() {
    let mut log = at_forty();
    follow(&mut log, &[placed(plain(4), 50, 0)]).unwrap();
    assert_eq!(read(&log, 52, LOG_END), Ok(vec![(50, 53)]));
    assert_eq!(begins(&mut log, 52), OffsetMetadata::at(Offset(50), Offset(40), 0));
}

#[test]
fn test_read_after_last() {
    let mut log = at_forty();
    follow(&mut log, &[placed(plain(2), 50, 0)]).unwrap();
    assert_eq!(read(&log, 52, LOG_END), Ok(vec![]));
}

#[test]
fn test_read_from_gap() {
    let mut log = at_forty();
    follow(&mut log, &[placed(plain(2), 50, 0)]).unwrap();
    follow(&mut log, &[placed(plain(2), 60, 0)]).unwrap();
    assert_eq!(read(&log, 55, LOG_END), Ok(vec![(60, 61)]));
}

/// Two records, the second cut again, over and over.
fn check_truncate(distance: i64) {
    let mut log = at_forty();
    for offset in 40..70 {
        follow(&mut log, &[placed(plain(1), offset, 0)]).unwrap();
        follow(&mut log, &[placed(plain(1), offset + distance, 0)]).unwrap();
        assert_eq!(read(&log, offset, LOG_END), Ok(vec![(offset, offset), (offset + distance, offset + distance)]));
        log.truncate_to(Offset(offset + 1), NOW).unwrap();
        assert_eq!(read(&log, offset, LOG_END), Ok(vec![(offset, offset)]));
        assert_eq!(log.log_end_offset(), Offset(offset + 1));
    }
}

#[test]
fn test_truncate() {
    check_truncate(1);
}

#[test]
fn should_truncate_even_if_offset_points_to_a_gap_in_the_log() {
    check_truncate(3);
}

#[test]
fn test_reload_largest_timestamp_and_next_offset_after_truncation() {
    let config = LogConfig { index_interval_bytes: 2 * record_bytes() - 1, ..LogConfig::default() };
    let mut log = based(&config, 40);
    for offset in 40..70 {
        follow(&mut log, &[placed(timed(TimestampMs(offset * 10)), offset, 0)]).unwrap();
    }
    assert_eq!(indexes(&log, 40).1.len(), 14);
    log.truncate_to(Offset(41), NOW).unwrap();
    assert_eq!(indexes(&log, 40).1, []);
    assert_eq!(log.log_end_offset(), Offset(41));
    // The largest timestamp is noted when the segment becomes inactive.
    log.roll(NOW).unwrap();
    assert_eq!(indexes(&log, 40).1, [(400, 40)]);
}

#[test]
fn test_next_offset_calculation() {
    let mut log = at_forty();
    assert_eq!(reopen(&log, Recovery::Clean, 40, 40).log_end_offset(), Offset(40));
    follow(&mut log, &[placed(plain(3), 50, 0)]).unwrap();
    assert_eq!(reopen(&log, Recovery::Clean, 40, 40).log_end_offset(), Offset(53));
}

fn hundred() -> Log {
    let mut log = new_log(&LogConfig { index_interval_bytes: 1, ..LogConfig::default() });
    for offset in 0..100 {
        follow(&mut log, &[placed(timed(TimestampMs(offset * 10)), offset, 0)]).unwrap();
    }
    log
}

fn damaged(log: &Log, suffix: &str) -> Log {
    let mut storage = log.storage().clone();
    let name = format!("{:0>20}.{suffix}", 0);
    let garbage: Vec<u8> = (0..800u32).map(|byte| u8::try_from(byte * 31 % 256).unwrap()).collect();
    storage.replace(&name, &garbage.into()).unwrap();
    reopen_files(storage, log.config(), Recovery::Unclean, 0, 0)
}

#[test]
fn test_recovery_fixes_corrupt_index() {
    let log = hundred();
    let recovered = damaged(&log, "index");
    for offset in 0..100 {
        assert_eq!(read(&recovered, offset, LOG_END).unwrap()[0], (offset, offset));
    }
    assert_eq!(indexes(&recovered, 0).0, indexes(&log, 0).0);
}

#[test]
fn test_recovery_with_corrupt_message() {
    for round in 0..10i64 {
        let log = {
            let mut log = new_log(&LogConfig::default());
            (0..20).for_each(|offset| assert!(follow(&mut log, &[placed(plain(1), offset, 0)]).is_ok()));
            log
        };
        let kept = round * 7 % 20;
        let mut storage = log.storage().clone();
        let name = "00000000000000000000.log";
        let mut bytes = storage.read_all(name).unwrap().unwrap().to_vec();
        let from = usize::try_from(kept).unwrap() * record_bytes();
        bytes[from..].iter_mut().zip(0u8..=250).for_each(|(byte, noise)| *byte = noise.wrapping_mul(37));
        storage.replace(name, &bytes.into()).unwrap();
        let recovered = reopen_files(storage, log.config(), Recovery::Unclean, 0, 0);
        assert_eq!(recovered.log_end_offset(), Offset(kept));
        assert_eq!(recovered.batches().unwrap(), log.batches().unwrap()[..usize::try_from(kept).unwrap()]);
    }
}

#[test]
fn test_recovery_rebuilds_epoch_cache() {
    let mut log = new_log(&LogConfig::default());
    for (offset, epoch) in [(104, 0), (106, 1), (108, 1), (110, 2)] {
        follow(&mut log, &[placed(plain(2), offset, epoch)]).unwrap();
    }
    let mut storage = log.storage().clone();
    storage.replace(cleanslate_log::log::LEADER_EPOCH_CHECKPOINT, &Bytes::new()).unwrap();
    let recovered = reopen_files(storage, log.config(), Recovery::Unclean, 0, 0);
    assert_eq!(epochs(&recovered), [(0, 104), (1, 106), (2, 110)]);
}

/// With an open transaction of producer 10 before the segment, or without.
fn check_transaction_index(before: Option<i64>) {
    let txn = |id, sequence| produced(id, 0, sequence, 2).transactional(true);
    let mut log = new_log(&LogConfig::default());
    if let Some(offset) = before {
        follow(&mut log, &[placed(produced(10, 0, 0, 1).transactional(true), offset, 0)]).unwrap();
        log.roll(NOW).unwrap();
    }
    let second = i32::from(before.is_some());
    let end = |id, commit, offset| end_txn(id, 0, commit, 0).with_base_offset(Offset(offset));
    let batches = [
        placed(txn(5, 0), 100, 0),
        placed(txn(10, second), 102, 0),
        placed(plain(2), 104, 0),
        end(10, false, 106),
        end(5, true, 107),
    ];
    batches.iter().for_each(|batch| assert!(follow(&mut log, std::slice::from_ref(batch)).is_ok()));
    let recovery_point = before.map_or(0, |offset| offset + 1);
    let mut storage = log.storage().clone();
    for name in storage.names().unwrap() {
        if name.ends_with(".txnindex") {
            storage.remove(&name).unwrap();
        }
    }
    let recovered = reopen_files(storage, log.config(), Recovery::Unclean, recovery_point, 0);
    assert_eq!(map_end(&recovered), 108);
    assert_eq!(aborted(&recovered), [(10, before.unwrap_or(102), 106, 100)]);
}

#[test]
fn test_recover_transaction_index() {
    check_transaction_index(None);
    check_transaction_index(Some(75));
}

/// The size of a file that is made as long from the beginning on, in bytes.
const INIT_FILE_SIZE: usize = 512 * 1024 * 1024;

/// A segment at 40 whose file is made as long from the beginning on, and two sets of records in it.
fn with_init_file_size<S: Storage>(storage: S) -> (PartitionLog<S>, [Bytes; 2]) {
    let config = LogConfig {
        index_interval_bytes: 10,
        segment_index_bytes: 1000,
        segment_bytes: INIT_FILE_SIZE,
        preallocate: true,
        ..LogConfig::default()
    };
    let mut log = PartitionLog::create(storage, config, NOW).unwrap();
    log.truncate_fully_and_start_at(Offset(40), NOW).unwrap();
    let set =
        |first: i64, values: [&str; 2]| legacy(1, first, Compression::None, &values.map(|value| (None, Some(value.as_bytes()))));
    let sets = [set(50, ["hello", "there"]), set(60, ["alpha", "beta"])];
    sets.iter().for_each(|set| assert!(follow_bytes(&mut log, set.clone()).is_ok()));
    assert_eq!(log.read(Offset(55), LOG_END, 200).unwrap(), sets[1]);
    (log, sets)
}

#[test]
fn test_create_with_init_file_size_append_message() {
    let (log, sets) = with_init_file_size(MemoryStorage::new());
    assert_eq!(log.size_in_bytes(), sets.concat().len() as u64);
}

/// The file is as long as its segment may be, until the log is closed; then it is as long as what is in it.
#[test]
fn test_create_with_init_file_size_clear_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let file_len = || std::fs::metadata(dir.path().join("00000000000000000040.log")).unwrap().len();
    let (mut log, sets) = with_init_file_size(FileStorage::open(dir.path()).unwrap());
    let size = sets.concat().len() as u64;
    assert_eq!((log.size_in_bytes(), file_len()), (size, INIT_FILE_SIZE as u64));
    log.close_clean().unwrap();
    assert_eq!(file_len(), size);
    let config = log.config().clone();
    drop(log);
    let options = OpenOptions { log_start_offset: Offset(40), ..OpenOptions::new(Recovery::Clean) };
    let (reopened, _) = PartitionLog::open(FileStorage::open(dir.path()).unwrap(), config, options, NOW).unwrap();
    assert_eq!(reopened.read(Offset(55), LOG_END, 200).unwrap(), sets[1]);
    assert_eq!((reopened.size_in_bytes(), file_len()), (size, size));
}

fn check_indexes(timestamps: [i64; 3], offsets: &[i64], times: &[(i64, i64)]) {
    let mut log = new_log(&LogConfig { index_interval_bytes: 1, ..LogConfig::default() });
    let batch = |offset: i64| placed(timed(TimestampMs(timestamps[usize::try_from(offset).unwrap()])), offset, 0);
    follow(&mut log, &[batch(0), batch(1)]).unwrap();
    follow(&mut log, &[batch(2)]).unwrap();
    assert_eq!(indexes(&log, 0), (offsets.to_vec(), times.to_vec()));
}

#[test]
fn test_index_for_multiple_batches_in_memory_records() {
    check_indexes([0, 1, 2], &[1, 2], &[(1, 1), (2, 2)]);
}

#[test]
fn test_non_monotonic_timestamp_for_multiple_batches_in_memory_records() {
    check_indexes([1, 0, 2], &[1, 2], &[(1, 0), (2, 2)]);
}

/// The offset that is found for a timestamp.
fn offset_at(log: &mut Log, timestamp: i64) -> Option<i64> {
    let found = log.fetch_offset_by_timestamp(OffsetSpec::Timestamp(TimestampMs(timestamp))).unwrap();
    found.map(|found| found.offset.get())
}

#[test]
fn test_find_offset_by_timestamp() {
    let mut log = based(&LogConfig { index_interval_bytes: 140, ..LogConfig::default() }, 40);
    for offset in 40..50 {
        follow(&mut log, &[placed(timed(TimestampMs(offset * 10)), offset, 0)]).unwrap();
    }
    for (timestamp, offset) in [(420, 42), (421, 43), (430, 43), (431, 44), (401, 41), (399, 40)] {
        assert_eq!(offset_at(&mut log, timestamp), Some(offset), "{timestamp}");
    }
    assert_eq!(offset_at(&mut log, 491), None);
}

#[test]
fn test_recovery_fixes_corrupt_time_index() {
    let mut log = new_log(&LogConfig { index_interval_bytes: 1, ..LogConfig::default() });
    for offset in 0..100 {
        follow(&mut log, &[placed(timed(TimestampMs(offset * 10)), offset, 0)]).unwrap();
    }
    let mut storage = log.storage().clone();
    storage.replace("00000000000000000000.timeindex", &Bytes::from_static(&[0x5a; 40])).unwrap();
    let mut recovered = reopen_files(storage, log.config(), Recovery::Unclean, 0, 0);
    for offset in 0..99 {
        assert_eq!(offset_at(&mut recovered, offset * 10), Some(offset));
        assert_eq!(offset_at(&mut recovered, offset * 10 + 1), Some(offset + 1));
    }
}

/// Files that are not there get no other name, and are not made for that.
#[test]
fn test_change_file_suffixes() {
    let mut log = based(&LogConfig { file_delete_delay_ms: Some(60_000), ..LogConfig::default() }, 40);
    let of_segment = |log: &Log| {
        let names = log.storage().names().unwrap();
        names.into_iter().filter(|name| name.starts_with("00000000000000000040") && !name.ends_with(".snapshot")).collect()
    };
    let files: Vec<String> = of_segment(&log);
    assert_eq!(files, ["00000000000000000040.log"]);
    log.roll(NOW).unwrap();
    assert_eq!(of_segment(&log), ["00000000000000000040.log", "00000000000000000040.log.deleted"]);
    // The indexes are made when they are looked at.
    log.flush_with_active().unwrap();
    assert!(of_segment(&log).contains(&"00000000000000000040.index".to_owned()));
    log.roll(NOW).unwrap();
    let names = log.deleted_files().map(|(name, _)| name);
    let deleted: Vec<&str> = names.filter(|name| name.starts_with("00000000000000000040")).skip(1).collect();
    assert_eq!(
        deleted,
        ["00000000000000000040.log.deleted", "00000000000000000040.index.deleted", "00000000000000000040.timeindex.deleted"]
    );
}
