#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Reads, and what an append looks at.

use bytes::{Bytes, BytesMut};
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{AppendError, FetchIsolation, LogConfig, Recovery, TIME_INDEX_ENTRY_BYTES};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::{AssignError, BatchBuilder, BatchReader, Compression, RecordError, RecordFault};
use cleanslate_log::storage::Storage;
use cleanslate_log::types::{LeaderEpoch, Offset};
use proptest::prelude::*;

use crate::upstream::support::{
    Log, NOW, bases, ends, follow, follow_under, hw, later, lead, new_log, placed, plain, read, reopen, reopen_files, timed,
};

const LOG_END: FetchIsolation = FetchIsolation::LogEnd;

fn valued(value: i32) -> BatchBuilder {
    BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(&value.to_be_bytes()))
}

#[test]
fn test_append_and_read_with_sequential_offsets() {
    let mut log = new_log(&LogConfig { segment_bytes: valued(0).build().unwrap().size_in_bytes(), ..LogConfig::default() });
    for index in (0..100).step_by(2) {
        lead(&mut log, valued(index)).unwrap();
    }
    for offset in 0..50 {
        let bytes = log.read(Offset(offset), LOG_END, 1).unwrap();
        let batch = BatchReader::new(bytes).next().unwrap().unwrap();
        assert_eq!(batch.base_offset(), Offset(offset));
        assert_eq!(batch.records().unwrap()[0].value.as_deref(), Some(&(i32::try_from(offset).unwrap() * 2).to_be_bytes()[..]));
    }
    assert_eq!(read(&log, 50, LOG_END), Ok(vec![]));
}

fn sparse() -> (Log, Vec<i64>) {
    let mut log = new_log(&LogConfig { segment_bytes: 72, ..LogConfig::default() });
    let offsets: Vec<i64> = (0..50).chain((50..200).step_by(7)).collect();
    for offset in &offsets {
        follow(&mut log, &[placed(valued(7), *offset, 0)]).unwrap();
    }
    (log, offsets)
}

#[test]
fn test_append_and_read_with_non_sequential_offsets() {
    let (log, offsets) = sparse();
    assert_eq!(offsets.last(), Some(&197));
    for from in 50..=197 {
        let next = *offsets.iter().find(|offset| **offset >= from).unwrap();
        assert_eq!(read(&log, from, LOG_END).unwrap()[0], (next, next));
    }
}

#[test]
fn test_read_at_log_gap() {
    let mut log = new_log(&LogConfig { segment_bytes: 300, ..LogConfig::default() });
    let mut count = 0;
    while bases(&log).len() == 1 {
        lead(&mut log, valued(0)).unwrap();
        count += 1;
    }
    // Only the first record of the first segment is left.
    let size = u64::try_from(valued(0).build().unwrap().size_in_bytes()).unwrap();
    log.close_clean().unwrap();
    let mut storage = log.storage().clone();
    storage.truncate("00000000000000000000.log", size).unwrap();
    let log = reopen_files(storage, log.config(), Recovery::Clean, count, 0);
    assert_eq!(read(&log, 1, LOG_END), Ok(vec![(count - 1, count - 1)]));
}

fn first_of(log: &mut Log, from: i64, max_bytes: usize, min_one: bool) -> Option<i64> {
    let data = log.fetch(Offset(from), LOG_END, max_bytes, min_one).unwrap();
    BatchReader::new(data.records).next().map(|batch| batch.unwrap().base_offset().get())
}

#[test]
fn test_read_with_min_message() {
    let (mut log, offsets) = sparse();
    for from in 50..=197 {
        let next = offsets.iter().copied().find(|offset| *offset >= from);
        for max_bytes in [0, 1] {
            assert_eq!(first_of(&mut log, from, max_bytes, true), next);
        }
        assert_eq!(first_of(&mut log, from, 10_000, true), next);
    }
}

#[test]
fn test_read_with_too_small_max_length() {
    let (mut log, _) = sparse();
    for from in 50..=197 {
        let none = log.fetch(Offset(from), LOG_END, 0, false).unwrap();
        assert!(none.records.is_empty());
        let cut = log.fetch(Offset(from), LOG_END, 1, false).unwrap();
        assert_eq!(cut.records.len(), 1);
        assert_eq!(first_of(&mut log, from, 1, false), None);
    }
}

#[test]
fn test_read_out_of_range() {
    let mut log = reopen_files(
        cleanslate_log::storage::MemoryStorage::new(),
        &LogConfig { segment_bytes: 1024, ..LogConfig::default() },
        Recovery::Clean,
        0,
        1024,
    );
    lead(&mut log, valued(0)).unwrap();
    assert_eq!(read(&log, 1025, LOG_END), Ok(vec![]));
    assert_eq!(read(&log, 1023, LOG_END), Err("OffsetOutOfRangeException"));
    assert_eq!(read(&log, 1026, LOG_END), Err("OffsetOutOfRangeException"));
}

#[test]
fn test_compressed_messages() {
    let mut log = new_log(&LogConfig { segment_bytes: 110, ..LogConfig::default() });
    for _ in 0..2 {
        lead(&mut log, plain(2).compression(Compression::Gzip)).unwrap();
    }
    for (from, first) in [(0, 0), (1, 0), (2, 2), (3, 2)] {
        assert_eq!(read(&log, from, LOG_END).unwrap()[0].0, first);
    }
}

#[test]
fn test_message_set_size_check() {
    let batch = plain(2);
    let size = batch.clone().build().unwrap().size_in_bytes();
    let mut log = new_log(&LogConfig { segment_bytes: size - 1, ..LogConfig::default() });
    assert_eq!(lead(&mut log, batch), Err("RecordBatchTooLargeException"));
}

#[test]
fn test_message_size_check() {
    let (first, second) = (plain(2), plain(3));
    let max_message_bytes = second.clone().build().unwrap().size_in_bytes() - 1;
    let mut log = new_log(&LogConfig { max_message_bytes, ..LogConfig::default() });
    lead(&mut log, first).unwrap();
    assert_eq!(lead(&mut log, second), Err("RecordTooLargeException"));
}

#[test]
fn test_message_size_check_in_append_as_follower() {
    let max_message_bytes = plain(3).build().unwrap().size_in_bytes() - 1;
    let mut log = new_log(&LogConfig { max_message_bytes, ..LogConfig::default() });
    follow(&mut log, &[placed(plain(2), 0, 0)]).unwrap();
    follow(&mut log, &[placed(plain(3), 2, 0)]).unwrap();
    assert_eq!(log.log_end_offset(), Offset(5));
}

#[test]
fn test_compacted_topic_constraints() {
    let mut log = new_log(&LogConfig { compact: true, delete: false, ..LogConfig::default() });
    let empty = || BatchBuilder::new(Offset(0)).timestamp(NOW);
    let (keyed, unkeyed) = (empty().record(Some(b"k"), Some(b"v")), empty().record(None, Some(b"v")));
    let mixed = keyed.clone().record(None, Some(b"v"));
    let cases = [
        (unkeyed.clone(), 0),
        (unkeyed.compression(Compression::Gzip), 0),
        (mixed.clone(), 1),
        (mixed.compression(Compression::Gzip), 1),
    ];
    for (batch, index) in cases {
        let bytes = batch.build().unwrap().bytes().clone();
        let tv = TransactionVersion::Unknown;
        let error = log.append_as_leader(bytes, AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap_err();
        let fault = RecordError { index, fault: RecordFault::NoKey };
        assert_eq!(error, AppendError::Assign(AssignError::Records(vec![fault])));
        assert_eq!(error.kafka_class(), "InvalidRecordException");
    }
    lead(&mut log, keyed.clone()).unwrap();
    lead(&mut log, keyed.clone().record(Some(b"k2"), None)).unwrap();
    lead(&mut log, keyed.compression(Compression::Gzip)).unwrap();
}

fn follow_bytes(log: &mut Log, bytes: Bytes) -> Result<i64, &'static str> {
    let result = log.append_as_follower(bytes, LeaderEpoch(i32::MAX), ReplicationPath::IntraCluster, NOW);
    result.map(|result| result.first_offset.get()).map_err(|error| error.kafka_class())
}

#[test]
fn test_invalid_memory_records() {
    let whole = plain(1).build().unwrap().bytes().clone();
    let with = |at: usize, bytes: &[u8]| {
        let mut damaged = BytesMut::from(&whole[..]);
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        damaged.freeze()
    };
    let corrupt = Err("CorruptRecordException");
    let cases = [
        (whole.slice(..11), Ok(-1)),
        (with(8, &13i32.to_be_bytes()), corrupt),
        (whole.slice(..16), Ok(-1)),
        (with(16, &[0xff]), corrupt),
        (with(16, &[3]), corrupt),
        (whole.slice(..whole.len() - 1), Ok(-1)),
    ];
    for (bytes, expected) in cases {
        let mut log = new_log(&LogConfig::default());
        lead(&mut log, plain(1)).unwrap();
        assert_eq!(follow_bytes(&mut log, bytes), expected);
        assert_eq!(ends(&log).0, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn test_random_records(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut log = new_log(&LogConfig::default());
        let result = follow_bytes(&mut log, bytes.into());
        prop_assert!(matches!(result, Ok(-1) | Err("CorruptRecordException")), "{:?}", result);
        prop_assert_eq!(log.log_end_offset(), Offset(0));
    }
}

#[test]
fn test_invalid_leader_epoch() {
    let mut log = new_log(&LogConfig::default());
    let batches = [placed(plain(1), 0, 7), placed(plain(1), 1, 8)];
    follow_under(&mut log, &batches, 7).unwrap();
    assert_eq!(log.log_end_offset(), Offset(1));
    assert_eq!(log.batches().unwrap(), batches[..1]);
    assert_eq!(log.leader_epochs().latest_epoch(), Some(LeaderEpoch(7)));
}

#[test]
fn test_build_time_index_when_not_assigning_offsets() {
    let mut log = new_log(&LogConfig { index_interval_bytes: 1, ..LogConfig::default() });
    for offset in 0..100 {
        follow(&mut log, &[placed(timed(later(offset)), offset, 0)]).unwrap();
    }
    let index = log.storage().read_all("00000000000000000000.timeindex").unwrap().unwrap();
    assert_eq!(index.len() / TIME_INDEX_ENTRY_BYTES, 99);
    let last = &index[index.len() - TIME_INDEX_ENTRY_BYTES..];
    assert_eq!(last[..8], (NOW.get() + 99).to_be_bytes());
}

#[test]
fn test_load_empty_log() {
    let mut log = new_log(&LogConfig::default());
    log.close_clean().unwrap();
    assert_eq!(log.segments().collect::<Vec<_>>(), [(Offset(0), 0)]);
    assert_eq!(ends(&reopen(&log, Recovery::Clean, 0, 0)), (0, 0, None));
}

#[test]
fn test_log_reinitialize_after_manual_delete() {
    let storage = cleanslate_log::storage::MemoryStorage::new();
    let mut log = reopen_files(storage, &LogConfig::default(), Recovery::Clean, 0, 500);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(500), Offset(500)));
    hw(&mut log, 0);
    assert_eq!(log.high_watermark(), Offset(500));
}
