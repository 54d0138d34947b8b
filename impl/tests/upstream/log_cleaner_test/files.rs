#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Segments: how they are grouped, damage, and crashes while they are replaced.

use std::collections::BTreeMap;

use bytes::Bytes;
use cleanslate_log::log::{CleanOptions, CleanRules, CleanableOffsets, LOG_FILE, LogConfig, LogError, LogToClean, Recovery};
use cleanslate_log::record::{BatchBuilder, MAGIC_POSITION, RecordBatch};
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

/// Segments of 1024 bytes until there are four; all but the active one hold the keys 0 to 2, over and over.
fn four_dirty_segments() -> Cleaned {
    let mut log = Cleaned::with(&LogConfig { segment_bytes: 1024, ..LogConfig::default() });
    while log.log.segments().count() < 4 {
        let key = log.log.log_end_offset().get() % 3;
        log.plain(&[key]);
    }
    log
}

fn stopped_after(log: &mut Cleaned, batches: usize) -> Result<Offset, LogError> {
    let first_uncleanable = log.log.segments().last().unwrap().0;
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable, now: NOW, max_keys: usize::MAX };
    let mut left = batches;
    log.log.compact_while(&options, || {
        let goes_on = left > 0;
        left = left.saturating_sub(1);
        goes_on
    })
}

/// A round that is told to stop has changed nothing that a reader of the newest values sees; the next one ends where one that was
/// not stopped does.
#[test]
fn test_clean_segments_with_abort() {
    let newest = |log: &Cleaned| -> BTreeMap<i64, i64> { log.keys().into_iter().zip(log.offsets()).collect() };
    let before = four_dirty_segments();
    let mut whole = four_dirty_segments();
    whole.clean(NOW);
    assert!(whole.offsets().len() < before.offsets().len());
    let mut unchanged = 0;
    for batches in 0.. {
        let mut log = four_dirty_segments();
        match stopped_after(&mut log, batches) {
            Ok(_) => {
                assert_eq!(log.log.storage(), whole.log.storage());
                // The map alone takes a look at every batch in front of the active segment.
                assert!(unchanged > 3 * 10 && batches > unchanged, "{unchanged} of {batches}");
                return;
            }
            Err(error) => assert_eq!(error.kafka_class(), "LogCleaningAbortedException"),
        }
        unchanged += usize::from(log.log.storage() == before.log.storage());
        assert_eq!(newest(&log), newest(&before), "{batches}");
        log.clean(NOW);
        assert_eq!(log.offsets(), whole.offsets(), "{batches}");
    }
}

#[test]
fn test_segment_grouping_with_sparse_offsets_and_empty_segments() {
    const MAX: i64 = i32::MAX as i64;
    let mut log = Cleaned::new();
    // Each segment ends at the largest distance from its base.
    for segment in 0..3 {
        log.plain(&[0]);
        follow(&mut log.log, &[at(0, (segment + 1) * (MAX + 1) - 1)]).unwrap();
        assert_eq!(log.log.segments().count(), usize::try_from(segment).unwrap() + 1);
    }
    log.plain(&[0]);
    assert_eq!(log.log.segments().count(), 4);
    // Three groups of one: the first two become empty, and then one.
    log.clean(NOW);
    let sizes: Vec<bool> = log.log.segments().map(|(_, size)| size > 0).collect();
    assert_eq!(sizes, [false, false, true, true]);
    log.clean(NOW);
    assert_eq!(bases(&log.log), [0, 2 * (MAX + 1), 3 * (MAX + 1)]);
}

/// The file of a cleaned segment is as long as what is left, where that of the active one has 1024 bytes.
#[test]
fn test_size_trimmed_for_preallocated_and_compacted_topic() {
    let mut log = Cleaned::with(&LogConfig { segment_bytes: 1024, preallocate: true, ..LogConfig::default() });
    let file_len = |log: &Cleaned, name: &str| log.log.storage().reopened().len(name).unwrap();
    log.plain(&[0, 1, 0, 1, 0]);
    assert_eq!(file_len(&log, LOG_FILE), Some(1024));
    log.roll();
    let before = log.log.size_in_bytes();
    log.round(2, NOW, 2).unwrap();
    let left: usize = log.log.batches().unwrap().iter().map(RecordBatch::size_in_bytes).sum();
    assert_eq!(file_len(&log, LOG_FILE), Some(left as u64));
    assert_eq!(file_len(&log, "00000000000000000005.log"), Some(1024));
    assert!(log.log.size_in_bytes() < before && before < 1024);
}
