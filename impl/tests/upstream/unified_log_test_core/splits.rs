#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Splits of segments with offsets too far from their base.

use bytes::Bytes;
use cleanslate_log::log::{FetchIsolation, LogConfig, Recovery};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::Offset;

use crate::upstream::support::{Log, NOW, bases, placed, plain, read, reopen_files};

const MAX: i64 = i32::MAX as i64;

/// A log of one segment with base offset 0, opened without a look at its batches.
fn opened(batches: &[RecordBatch]) -> Log {
    let mut storage = MemoryStorage::new();
    let bytes: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes().to_vec()).collect();
    storage.replace("00000000000000000000.log", &bytes.into()).unwrap();
    for file in ["00000000000000000000.index", "00000000000000000000.timeindex"] {
        storage.replace(file, &Bytes::new()).unwrap();
    }
    reopen_files(storage, &LogConfig::default(), Recovery::Clean, 0, 0)
}

/// Splits the segment; the base offsets of the new ones, and that everything can still be read.
fn split(batches: &[RecordBatch]) -> Vec<i64> {
    let mut log = opened(batches);
    assert_eq!(bases(&log), [0]);
    let before = read(&log, 0, FetchIsolation::LogEnd).unwrap();
    let parts = log.split_overflowed_segment(Offset(0), NOW).unwrap();
    assert_eq!(parts.iter().map(|base| base.get()).collect::<Vec<_>>(), bases(&log));
    assert_eq!(read(&log, bases(&log)[0], FetchIsolation::LogEnd).unwrap(), before);
    assert_eq!(before.len(), batches.len());
    bases(&log)
}

#[test]
fn test_split_on_offset_overflow() {
    let batches = [0, 1, MAX - 1, MAX, MAX + 1, MAX + 2].map(|offset| placed(plain(1), offset, 0));
    assert_eq!(split(&batches), [0, MAX + 1]);
}

#[test]
fn test_degenerate_segment_split() {
    assert_eq!(split(&[MAX + 1, MAX + 2].map(|offset| placed(plain(1), offset, 0))), [MAX + 1]);
}

#[test]
fn test_degenerate_segment_split_with_out_of_range_batch_last_offset() {
    assert_eq!(split(&[placed(plain(3), MAX - 1, 0)]), [MAX - 1]);
}

/// Kafka's LogSegmentTest `testAppendFromFile`.
#[test]
fn test_append_from_file() {
    assert_eq!(split(&[0, 500, MAX + 5].map(|offset| placed(plain(1), offset, 0))), [0, MAX + 5]);
}
