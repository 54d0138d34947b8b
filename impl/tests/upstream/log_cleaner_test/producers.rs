#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Producers, keys and tombstones.

use cleanslate_log::log::{LogConfig, Recovery};
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::types::{Offset, ProducerEpoch, ProducerId, Sequence};

use super::cleaning::{Cleaned, LATE, at, keyed};
use crate::upstream::support::{DAY_MS, NOW, bases, follow, later, lead, per_segment, reopen, snapshots};

fn resend(log: &mut Cleaned, id: i64, keys: &[i64]) -> (i64, i64) {
    let builder = BatchBuilder::new(Offset(0)).producer(ProducerId(id), ProducerEpoch(0), Sequence(0));
    lead(&mut log.log, keyed(builder, keys)).unwrap()
}

fn reload(log: &mut Cleaned) {
    log.log.close_clean().unwrap();
    log.log = reopen(&log.log, Recovery::Clean, 0, 0);
}

#[test]
fn test_duplicate_check_after_cleaning() {
    let mut log = Cleaned::new();
    log.idempotent(1, &[1, 2, 3]).idempotent(2, &[3, 1, 4]).idempotent(3, &[1, 4]).roll().clean(NOW);
    assert_eq!((log.last_offsets(), log.last_sequences()), (vec![2, 5, 7], vec![(1, 2), (2, 2), (3, 1)]));
    assert_eq!((log.keys(), log.offsets()), (vec![2, 3, 1, 4], vec![1, 3, 6, 7]));
    reload(&mut log);
    assert_eq!(resend(&mut log, 1, &[1, 2, 3]), (0, 2));
    assert_eq!(resend(&mut log, 3, &[1, 4]), (6, 7));
    assert_eq!(resend(&mut log, 2, &[3, 1, 4]), (3, 5));
    log.idempotent(4, &[2]).roll().clean(NOW);
    assert_eq!((log.last_offsets(), log.last_sequences()), (vec![2, 5, 7, 8], vec![(1, 2), (2, 2), (3, 1), (4, 0)]));
    assert_eq!((log.keys(), log.offsets()), (vec![3, 1, 4, 2], vec![3, 6, 7, 8]));
    reload(&mut log);
    assert_eq!(resend(&mut log, 1, &[1, 2, 3]), (0, 2));
}

#[test]
fn test_log_cleaner_retains_producer_last_sequence() {
    let mut log = Cleaned::new();
    log.plain(&[0]).idempotent(1, &[0]).idempotent(2, &[0]).idempotent(3, &[0]).idempotent(2, &[1]).roll().clean(NOW);
    assert_eq!((log.last_offsets(), log.last_sequences()), (vec![1, 3, 4], vec![(1, 0), (2, 1), (3, 0)]));
    assert_eq!((log.keys(), log.offsets()), (vec![0, 1], vec![3, 4]));
}

#[test]
fn test_log_cleaner_retains_last_sequence_even_if_transaction_aborted() {
    let mut log = Cleaned::new();
    log.txn(1, &[1]).txn(1, &[2, 3]).abort(1).roll().clean(NOW);
    assert_eq!((log.last_offsets(), log.last_sequences()), (vec![2, 3], vec![(1, 2)]));
    assert_eq!((log.keys(), log.offsets()), (vec![], vec![3]));
    log.txn(1, &[1, 5]).roll().clean(NOW);
    assert_eq!((log.last_offsets(), log.last_sequences()), (vec![3, 5], vec![(1, 4)]));
    assert_eq!((log.keys(), log.offsets()), (vec![1, 5], vec![3, 4, 5]));
}

#[test]
fn test_clean_segments_retaining_last_empty_batch() {
    let mut log = Cleaned::with(&per_segment(5));
    while log.log.segments().count() < 4 {
        let next = log.log.log_end_offset().get();
        log.plain(&[next]);
    }
    // A copy of all keys behind them supersedes the first three segments; then nothing of those is left but the last batch.
    let cleaned = bases(&log.log)[3];
    let keys: Vec<i64> = (0..=cleaned).collect();
    log.plain(&keys).roll().clean(NOW);
    let below: Vec<i64> = log.last_offsets().into_iter().filter(|offset| *offset < cleaned).collect();
    assert_eq!(below, [] as [i64; 0]);
    let mut unkeyed = Cleaned::new();
    for _ in 0..3 {
        lead(&mut unkeyed.log, BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(b"v"))).unwrap();
    }
    unkeyed.roll().clean(NOW);
    assert_eq!((unkeyed.offsets(), unkeyed.last_offsets()), (vec![], vec![2]));
    assert_eq!(bases(&unkeyed.log), [0, 3]);
}

#[test]
fn test_clean_tombstone() {
    let mut log = Cleaned::new();
    let one = |key: &[u8], value: Option<&[u8]>, after: i64| {
        BatchBuilder::new(Offset(0)).timestamp(later(after)).record(Some(key), value)
    };
    // The horizon is set by the time of cleaning, whatever the records' times.
    let config = LogConfig { timestamp_after_max_ms: i64::MAX, ..LogConfig::default() };
    log.log = crate::upstream::support::new_log(&config);
    lead(&mut log.log, one(b"0", Some(b"0"), DAY_MS + 10_000)).unwrap();
    log.roll().clean(NOW);
    lead(&mut log.log, one(b"0", None, -DAY_MS - 10_000)).unwrap();
    log.roll().clean(NOW);
    assert_eq!(log.last_offsets()[0], 1);
    lead(&mut log.log, one(b"1", Some(b"1"), 0)).unwrap();
    log.roll().clean(NOW);
    assert_eq!(log.last_offsets()[0], 1);
}

#[test]
fn test_cleaning_with_deletes() {
    let mut log = Cleaned::with(&per_segment(10));
    while log.log.segments().count() < 2 {
        let next = log.log.log_end_offset().get();
        log.plain(&[next]);
    }
    let end = log.log.log_end_offset().get();
    for key in (0..end).step_by(2) {
        let tombstone = BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(key.to_string().as_bytes()), None);
        lead(&mut log.log, tombstone).unwrap();
    }
    while log.log.segments().count() < 4 {
        let next = log.log.log_end_offset().get();
        log.plain(&[next]);
    }
    log.clean(NOW);
    let keys = log.keys();
    assert!((0..end).all(|key| keys.contains(&key) == (key % 2 == 1)), "{keys:?}");
}

#[test]
fn test_cleaning_with_unkeyed_messages() {
    let mut log = Cleaned::new();
    for _ in 0..3 {
        lead(&mut log.log, BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(b"v"))).unwrap();
    }
    let unkeyed = log.log.size_in_bytes();
    log.roll().plain(&[3, 4, 5]).roll();
    let expected = log.log.size_in_bytes() - unkeyed;
    log.clean(NOW);
    assert_eq!((log.keys(), log.log.size_in_bytes()), (vec![3, 4, 5], expected));
}

#[test]
fn test_partial_segment_clean() {
    // Two slots, of which one is filled.
    let mut log = Cleaned::new();
    log.plain(&[0, 1, 0, 1, 0]).roll();
    for (from, keys, offsets) in
        [(2, vec![1, 0, 1, 0], vec![1, 2, 3, 4]), (3, vec![0, 1, 0], vec![2, 3, 4]), (4, vec![1, 0], vec![3, 4])]
    {
        log.round(from, NOW, 1).unwrap();
        assert_eq!((log.keys(), log.offsets()), (keys, offsets), "{from}");
    }
}

/// As `testPartialSegmentClean`, by where the next round begins and by what is left.
#[test]
fn test_log_cleaner_stats() {
    let mut log = Cleaned::new();
    log.plain(&[0, 1, 0, 1, 0]).roll();
    assert_eq!(log.round(2, NOW, 3), Ok(5));
    assert_eq!(log.offsets(), [3, 4]);
}

#[test]
fn test_build_offset_map() {
    let mut log = Cleaned::with(&per_segment(100));
    log.plain(&(0..500).collect::<Vec<_>>()).roll();
    let segments = bases(&log.log);
    for (from, to) in [(0, segments[1]), (segments[1], segments[3]), (segments[3], 500)] {
        let options = cleanslate_log::log::CleanOptions {
            first_dirty: Offset(from),
            first_uncleanable: Offset(to),
            now: NOW,
            max_keys: 1000,
        };
        assert_eq!(log.log.clone().compact(&options), Ok(Offset(to)));
    }
}

#[test]
fn test_build_offset_map_fake_large() {
    let mut log = Cleaned::new();
    follow(&mut log.log, &[at(0, 0), at(1, 7_206_178)]).unwrap();
    log.roll();
    assert_eq!(log.round(0, NOW, 1000), Ok(7_206_179));
    assert_eq!(log.offsets(), vec![0, 7_206_178]);
}

#[test]
fn test_build_partial_offset_map() {
    // Three slots, of which two are filled: by the keys 2 and 3.
    let mut log = Cleaned::new();
    log.plain(&[0, 1, 2, 3, 4]).roll();
    assert_eq!(log.round(2, NOW, 2), Ok(4));
    // All records of one batch: the map ends in its middle.
    let mut log = Cleaned::new();
    log.idempotent(1, &[0, 1, 2, 3, 4]).roll();
    assert_eq!(log.round(2, NOW, 2), Ok(4));
    assert_eq!(log.offsets(), [0, 1, 2, 3, 4]);
}

#[test]
fn test_cleaning_with_uncleanable_section() {
    let mut log = Cleaned::with(&per_segment(30));
    let append_up_to = |log: &mut Cleaned, segments: usize| {
        while log.log.segments().count() <= segments {
            let next = log.log.log_end_offset().get();
            log.plain(&[next % 10]);
        }
    };
    append_up_to(&mut log, 2);
    let first_uncleanable = Offset(log.log.log_end_offset().get() + 1);
    append_up_to(&mut log, 5);
    let before: Vec<(Offset, u64)> = log.log.segments().collect();
    let options = cleanslate_log::log::CleanOptions { first_dirty: Offset(0), first_uncleanable, now: NOW, max_keys: 1000 };
    assert_eq!(log.log.compact(&options), Ok(before[2].0));
    let after: Vec<(Offset, u64)> = log.log.segments().collect();
    assert_eq!(after[2..], before[2..]);
    assert!(after[0].1 < before[0].1 && after[1].1 < before[1].1, "{after:?}");
}

#[test]
fn test_cleaning_beyond_missing_offsets() {
    let copy = |offset: i64| at(offset % 10, offset);
    for (per_segment, first, second, active) in [(9, 0..9, 0..0, 11), (10, 0..10, 15..25, 30)] {
        let segment_bytes = per_segment * copy(0).size_in_bytes();
        let mut log = Cleaned::with(&LogConfig { segment_bytes, ..LogConfig::default() });
        // What follows a gap does not fit into the segment in front of it, and begins one.
        for offset in first.chain(second).chain([active]) {
            follow(&mut log.log, &[copy(offset)]).unwrap();
        }
        assert_eq!(bases(&log.log).last(), Some(&active));
        assert_eq!(log.round(0, NOW, 1000), Ok(active));
    }
}

#[test]
fn test_compaction_deletes_producer_state_snapshots() {
    let mut log = Cleaned::new();
    for sequence in 0..3 {
        log.idempotent(1, &[1 + sequence % 2]).roll();
    }
    assert_eq!(snapshots(&log.log), [1, 2, 3]);
    log.clean(LATE);
    // Three segments became one, at the first one's base.
    assert_eq!((bases(&log.log), snapshots(&log.log)), (vec![0, 3], vec![3]));
}
