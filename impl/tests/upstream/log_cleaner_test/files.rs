#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Segments: how they are grouped, damage, and crashes while they are replaced.

use bytes::Bytes;
use cleanslate_log::log::{CleanRules, CleanableOffsets, LogConfig, LogToClean, Recovery};
use cleanslate_log::record::{BatchBuilder, MAGIC_POSITION};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::Offset;

use super::cleaning::{Cleaned, at};
use crate::upstream::support::{NOW, bases, follow, lead, record_bytes, reopen_files};

/// Ten segments of records with different keys, so that cleaning changes nothing but how they are grouped.
fn ten_segments(records: usize, segment_bytes: usize, segment_index_bytes: usize) -> Cleaned {
    let mut log = Cleaned::with(&LogConfig { segment_bytes, segment_index_bytes, index_interval_bytes: 1, ..LogConfig::default() });
    for segment in 0..10 {
        (0..records).for_each(|record| assert!(lead(&mut log.log, one(segment * records + record)).is_ok()));
        log.roll();
    }
    log
}

fn one(key: usize) -> BatchBuilder {
    BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(format!("{key:03}").as_bytes()), Some(b"hello"))
}

/// How many segments there are in front of the active one, after a round.
fn cleaned_segments(mut log: Cleaned) -> usize {
    let before = log.offsets();
    log.clean(NOW);
    assert_eq!(log.offsets(), before);
    let found = bases(&log.log);
    assert!(found.is_sorted());
    found.len() - 1
}

#[test]
fn test_segment_grouping() {
    let size = record_bytes();
    const LARGE: usize = 1 << 20;
    assert_eq!(cleaned_segments(ten_segments(3, LARGE, LARGE)), 1);
    assert_eq!(cleaned_segments(ten_segments(3, size * 4, LARGE)), 10);
    assert_eq!(cleaned_segments(ten_segments(3, size * 10, LARGE)), 4);
    // Two entries of 8 bytes in the offset index of each segment; three times two, and one more.
    assert_eq!(cleaned_segments(ten_segments(3, LARGE, 50)), 4);
}

#[test]
fn test_segment_grouping_with_sparse_offsets() {
    const MAX: i64 = i32::MAX as i64;
    // The second segment ends at the largest distance, or one behind it.
    for (last, segments) in [(MAX, 1), (MAX + 1, 2)] {
        let mut log = Cleaned::new();
        log.plain(&[0, 1]).roll();
        follow(&mut log.log, &[at(2, MAX - 1)]).unwrap();
        (MAX..=last).for_each(|offset| assert!(follow(&mut log.log, &[at(offset, offset)]).is_ok()));
        log.roll();
        assert_eq!(cleaned_segments(log), segments, "{last}");
    }
}

#[test]
fn test_segment_grouping_following_load_of_zero_index() {
    const MAX: i64 = i32::MAX as i64;
    let mut log = Cleaned::with(&LogConfig { index_interval_bytes: 400, ..LogConfig::default() });
    follow(&mut log.log, &[at(0, 0)]).unwrap();
    follow(&mut log.log, &[at(1, 1)]).unwrap();
    log.roll();
    follow(&mut log.log, &[at(2, MAX / 2)]).unwrap();
    follow(&mut log.log, &[at(3, MAX + 1)]).unwrap();
    log.roll();
    assert_eq!(cleaned_segments(log), 2);
}

#[test]
fn test_large_message() {
    let config = LogConfig { max_message_bytes: 2 << 20, ..LogConfig::default() };
    let mut log = Cleaned::with(&config);
    let large = |key: &[u8]| BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(key), Some(&vec![0; 1 << 20]));
    for key in [b"1", b"2", b"1"] {
        lead(&mut log.log, large(key)).unwrap();
    }
    log.roll().clean(NOW);
    assert_eq!(log.offsets(), [1, 2]);
}

/// A log of large messages, changed on file.
fn damaged(change: impl Fn(&mut Vec<u8>)) -> Result<i64, &'static str> {
    let mut log = Cleaned::new();
    for key in [b"1", b"2"] {
        lead(&mut log.log, BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(key), Some(&vec![0; 4096]))).unwrap();
    }
    log.roll();
    log.log.close_clean().unwrap();
    let mut storage = log.log.storage().clone();
    let mut bytes = storage.read_all("00000000000000000000.log").unwrap().unwrap().to_vec();
    change(&mut bytes);
    // The log is open while its file is changed.
    storage.replace("00000000000000000000.log", &Bytes::from(bytes)).unwrap();
    let config = log.log.config().clone();
    let opened = cleanslate_log::log::PartitionLog::open(storage, config, Recovery::Clean, NOW);
    opened.map(|(log, _)| log.log_end_offset().get()).map_err(|error| error.kafka_class())
}

/// Such a batch is noticed when the log is opened, before anything is cleaned.
#[test]
fn test_message_larger_than_max_message_size_with_corrupt_header() {
    assert_eq!(damaged(|bytes| bytes[MAGIC_POSITION] = 0xff), Err("CorruptRecordException"));
    assert_eq!(damaged(|bytes| bytes[8..12].copy_from_slice(&3_i32.to_be_bytes())), Err("CorruptRecordException"));
    assert_eq!(damaged(|_| ()), Ok(2));
}

const SEGMENTS: [&str; 3] = ["log", "index", "timeindex"];

/// The files of some segments under other suffixes.
fn put(into: &mut MemoryStorage, from: &MemoryStorage, bases: &[i64], suffix: &str) {
    for base in bases {
        for kind in SEGMENTS {
            let name = format!("{base:0>20}.{kind}");
            if let Some(bytes) = from.read_all(&name).unwrap() {
                into.replace(&format!("{name}{suffix}"), &bytes).unwrap();
            }
        }
    }
}

#[test]
fn test_recovery_after_crash() {
    let mut log = Cleaned::with(&LogConfig { index_interval_bytes: 1, ..LogConfig::default() });
    for segment in 0..4 {
        log.plain(&[segment, 9]).roll();
    }
    log.log.close_clean().unwrap();
    let (all_keys, before) = (log.keys(), log.log.storage().clone());
    let old = bases(&log.log);
    assert_eq!((all_keys.as_slice(), old.as_slice()), (&[0, 9, 1, 9, 2, 9, 3, 9][..], &[0, 2, 4, 6, 8][..]));
    log.clean(NOW);
    log.log.close_clean().unwrap();
    let (cleaned_keys, after) = (log.keys(), log.log.storage().clone());
    assert_eq!((cleaned_keys.as_slice(), bases(&log.log)), (&[0, 1, 2, 3, 9][..], vec![0, 8]));
    let (replaced, active) = old.split_at(4);
    let crash = |parts: &[(&MemoryStorage, &[i64], &str)]| {
        let mut image = MemoryStorage::new();
        put(&mut image, &before, active, "");
        parts.iter().for_each(|(from, bases, suffix)| put(&mut image, from, bases, suffix));
        let recovered = reopen_files(image, &LogConfig::default(), Recovery::Unclean, 0, 0);
        let names = recovered.storage().names().unwrap();
        assert!(names.iter().all(|name| !name.ends_with("cleaned") && !name.ends_with("swap") && !name.ends_with("deleted")));
        let mut found = Cleaned::new();
        found.log = recovered;
        found.keys()
    };
    // The new segment is not complete.
    assert_eq!(crash(&[(&before, replaced, ""), (&after, &[0], ".cleaned")]), all_keys);
    // It has begun to be renamed: another segment of it is still to come.
    assert_eq!(crash(&[(&before, replaced, ""), (&after, &[0], ".cleaned"), (&after, &[0], ".swap")]), all_keys);
    // It is complete.
    assert_eq!(crash(&[(&before, replaced, ""), (&after, &[0], ".swap")]), cleaned_keys);
    assert_eq!(crash(&[(&before, replaced, ".deleted"), (&after, &[0], ".swap")]), cleaned_keys);
    assert_eq!(
        crash(&[(&before, &replaced[2..], ""), (&before, &replaced[..2], ".deleted"), (&after, &[0], ".swap")]),
        cleaned_keys
    );
    // It is in place.
    assert_eq!(crash(&[(&before, replaced, ".deleted"), (&after, &[0], "")]), cleaned_keys);
}

/// Sizes are those of whole segments: what is clean, and what can be cleaned.
fn six_segments() -> Cleaned {
    let mut log = Cleaned::with(&LogConfig { segment_bytes: 100, ..LogConfig::default() });
    for _ in 0..6 {
        lead(&mut log.log, BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(b"1"), Some(&[0; 25]))).unwrap();
    }
    assert_eq!(log.log.segments().count(), 6);
    log
}

fn to_clean(log: &Cleaned, first_dirty: i64, first_uncleanable: i64) -> LogToClean {
    let (first_dirty, first_uncleanable) = (Offset(first_dirty), Offset(first_uncleanable));
    let offsets = CleanableOffsets { first_dirty, first_uncleanable, invalid_checkpoint: false };
    log.log.log_to_clean(&offsets, &CleanRules::default(), NOW)
}

#[test]
fn test_log_to_clean() {
    let log = six_segments();
    let active = log.log.segments().last().unwrap();
    let found = to_clean(&log, active.0.get(), active.0.get());
    assert_eq!(found.total_bytes(), log.log.size_in_bytes() - active.1);
}

#[test]
fn test_log_to_clean_with_uncleanable_section() {
    let log = six_segments();
    let (bases, sizes): (Vec<Offset>, Vec<u64>) = log.log.segments().unzip();
    let found = to_clean(&log, bases[2].get(), bases[4].get());
    let (clean, cleanable) = (sizes[..2].iter().sum::<u64>(), sizes[2..4].iter().sum::<u64>());
    assert_eq!((found.clean_bytes, found.cleanable_bytes, found.total_bytes()), (clean, cleanable, clean + cleanable));
    assert_eq!((found.first_dirty, found.first_uncleanable), (bases[2], bases[4]));
    assert!((found.cleanable_ratio() - 0.5).abs() < f64::EPSILON);
}

/// A log that has become smaller in its settings than what it holds.
#[test]
fn test_message_larger_than_max_message_size() {
    let mut log = Cleaned::with(&LogConfig { max_message_bytes: 1 << 20, ..LogConfig::default() });
    for key in [b"1", b"2", b"1"] {
        lead(&mut log.log, BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(key), Some(&vec![0; 1 << 18]))).unwrap();
    }
    log.roll();
    let config = LogConfig { max_message_bytes: 1024, ..LogConfig::default() };
    log.log = reopen_files(log.log.storage().clone(), &config, Recovery::Unclean, 0, 0);
    log.clean(NOW);
    assert_eq!(log.offsets(), [1, 2]);
}

/// A segment whose offsets lie too far from its base is split, and the round is given up; the next one cleans its parts.
#[test]
fn test_segment_with_offset_overflow() {
    const MAX: i64 = i32::MAX as i64;
    let offsets = [0, 1, MAX - 1, MAX, MAX + 1, MAX + 2];
    let batches = offsets.map(|offset| at(offset % 2, offset).bytes().to_vec()).concat();
    let mut storage = MemoryStorage::new();
    for (kind, bytes) in [("log", batches), ("index", vec![]), ("timeindex", vec![])] {
        storage.replace(&format!("{:0>20}.{kind}", 0), &bytes.into()).unwrap();
    }
    let mut log = Cleaned::new();
    log.log = reopen_files(storage, &LogConfig::default(), Recovery::Clean, 0, 0);
    log.roll();
    assert_eq!((bases(&log.log), log.offsets()), (vec![0, MAX + 3], offsets.to_vec()));
    let error = log.round(0, NOW, 100).unwrap_err();
    assert_eq!(error.kafka_class(), "LogCleaningAbortedException");
    assert_eq!((bases(&log.log), log.offsets()), (vec![0, MAX + 1, MAX + 3], offsets.to_vec()));
    assert_eq!(log.round(0, NOW, 100), Ok(MAX + 3));
    assert_eq!(log.offsets(), [MAX + 1, MAX + 2]);
}
