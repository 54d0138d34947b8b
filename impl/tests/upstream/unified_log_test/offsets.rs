#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Unstable offset, high watermark, isolation of readers.

use cleanslate_log::log::{FetchIsolation, LogConfig, Recovery};
use cleanslate_log::types::{CoordinatorEpoch, Offset, OffsetMetadata, ProducerId};

use crate::upstream::support::{
    Log, NOW, end_txn, ends, follow, hw, ids, last_of, lead, lead_marker, new_log, placed, plain, produced, read, record_bytes,
    reopen,
};

fn txn(id: i64, epoch: i16, sequence: i32, count: usize) -> cleanslate_log::record::BatchBuilder {
    produced(id, epoch, sequence, count).transactional(true)
}

#[test]
fn test_first_unstable_offset_no_transactional_data() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, plain(3)).unwrap();
    assert_eq!(log.first_unstable_offset(), None);
}

#[test]
fn test_first_unstable_offset_with_transactional_data() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, txn(137, 5, 0, 3)).unwrap();
    assert_eq!(ends(&log), (3, 0, Some(0)));
    lead(&mut log, txn(137, 5, 3, 1)).unwrap();
    assert_eq!(ends(&log), (4, 0, Some(0)));
    let (first, last) = lead_marker(&mut log, &end_txn(137, 5, true, 0)).unwrap();
    assert_eq!((first, last), (4, 4));
    assert_eq!(log.first_unstable_offset(), Some(Offset(0)));
    hw(&mut log, 5);
    assert_eq!(ends(&log), (5, 5, None));
}

/// Three plain records and an open transaction at offset 3, opened anew.
fn reopened_with_open_txn() -> Log {
    let mut log = new_log(&LogConfig::default());
    for _ in 0..3 {
        lead(&mut log, plain(1)).unwrap();
    }
    lead(&mut log, txn(17, 10, 0, 3)).unwrap();
    assert_eq!(log.first_unstable_offset(), Some(Offset(3)));
    log.close_clean().unwrap();
    let log = reopen(&log, Recovery::Clean, 0, 0);
    assert_eq!(log.first_unstable_offset(), Some(Offset(3)));
    // The snapshot tells no position; the log looks for it.
    let unstable = log.producer_state().first_unstable_offset_metadata();
    assert_eq!(unstable, Some(OffsetMetadata::offset_only(Offset(3))));
    let position = 3 * record_bytes() as u64;
    assert_eq!(log.first_unstable_offset_metadata(), Some(OffsetMetadata::at(Offset(3), Offset(0), position)));
    log
}

#[test]
fn test_truncate_below_first_unstable_offset() {
    let mut log = reopened_with_open_txn();
    log.truncate_to(Offset(0), NOW).unwrap();
    assert_eq!(log.first_unstable_offset(), None);
    assert_eq!(ids(&log), [0i64; 0]);
}

#[test]
fn test_truncate_fully_and_start_below_first_unstable_offset() {
    let mut log = reopened_with_open_txn();
    log.truncate_fully_and_start_at(Offset(0), NOW).unwrap();
    assert_eq!(log.first_unstable_offset(), None);
    assert_eq!(ids(&log), [0i64; 0]);
}

#[test]
fn test_truncate_fully_and_start() {
    let mut log = reopened_with_open_txn();
    log.truncate_fully_below_start(Offset(2), Offset(1), NOW).unwrap();
    assert_eq!((log.first_unstable_offset(), ids(&log)), (None, vec![]));
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.high_watermark()), (Offset(1), Offset(2), Offset(2)));
    // What lies below is elsewhere.
    assert_eq!(read(&log, 1, FetchIsolation::LogEnd), Err("OffsetOutOfRangeException"));
    assert_eq!(read(&log, 2, FetchIsolation::LogEnd), Ok(vec![]));
}

#[test]
fn test_high_watermark_maintenance() {
    let mut log = new_log(&LogConfig::default());
    let copy = |log: &mut Log| {
        let end = log.log_end_offset().get();
        follow(log, &[placed(plain(3), end, 0)]).unwrap();
    };
    assert_eq!(log.high_watermark(), Offset(0));
    lead(&mut log, plain(3)).unwrap();
    assert_eq!(log.high_watermark(), Offset(0));
    assert_eq!(log.maybe_increment_high_watermark(Offset(1)), Ok(true));
    assert_eq!(log.high_watermark(), Offset(1));
    hw(&mut log, 5);
    assert_eq!(log.high_watermark(), Offset(3));
    copy(&mut log);
    hw(&mut log, 6);
    assert_eq!(log.high_watermark(), Offset(6));
    log.truncate_to(Offset(3), NOW).unwrap();
    assert_eq!(log.high_watermark(), Offset(3));
    lead(&mut log, plain(3)).unwrap();
    assert_eq!(log.high_watermark(), Offset(3));
    log.truncate_fully_and_start_at(Offset(4), NOW).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.high_watermark()), (Offset(4), Offset(4), Offset(4)));
}

#[test]
fn test_high_watermark_metadata_updated_after_segment_roll() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, plain(3)).unwrap();
    hw(&mut log, 3);
    let behind = plain(3).build().unwrap().size_in_bytes() as u64;
    for place in [OffsetMetadata::at(Offset(3), Offset(0), behind), OffsetMetadata::at(Offset(3), Offset(3), 0)] {
        assert_eq!(read(&log, 0, FetchIsolation::HighWatermark), Ok(vec![(0, 2)]));
        let nothing = log.fetch(Offset(3), FetchIsolation::HighWatermark, 1024, true).unwrap();
        assert_eq!((nothing.records.len(), nothing.offset), (0, place));
        assert_eq!(log.fetch_offset_snapshot().unwrap().high_watermark, place);
        log.roll(NOW).unwrap();
    }
}

/// From every offset below a bound, a reader gets the batch that holds it first, and nothing at or above the bound; at
/// the bound it gets nothing.
fn check_bounded(log: &Log, isolation: FetchIsolation, bound: i64) {
    for from in 0..log.log_end_offset().get() {
        let batches = read(log, from, isolation).unwrap();
        if from >= bound {
            assert!(batches.is_empty(), "{from} with bound {bound}");
            continue;
        }
        let (first, last) = (batches[0], batches[batches.len() - 1]);
        assert!(first.0 <= from && from <= first.1, "{from} with bound {bound}");
        assert_eq!(last.1, bound - 1, "{from} with bound {bound}");
    }
}

fn three_appends() -> Log {
    let mut log = new_log(&LogConfig { segment_bytes: 1024, ..LogConfig::default() });
    for count in [5, 3, 2] {
        lead(&mut log, plain(count)).unwrap();
        log.roll(NOW).unwrap();
    }
    log
}

#[test]
fn test_fetch_up_to_log_end_offset() {
    let log = three_appends();
    check_bounded(&log, FetchIsolation::LogEnd, 10);
    assert_eq!(read(&log, 10, FetchIsolation::LogEnd), Ok(vec![]));
}

#[test]
fn test_fetch_up_to_high_watermark() {
    let mut log = three_appends();
    for bound in [0, 5, 8, 10] {
        hw(&mut log, bound);
        check_bounded(&log, FetchIsolation::HighWatermark, bound);
    }
}

#[test]
fn test_fetch_up_to_last_stable_offset() {
    let mut log = new_log(&LogConfig { segment_bytes: 1024, ..LogConfig::default() });
    let mut sequences = [0, 0, 0];
    for (id, count) in [(1, 5), (0, 3), (2, 2), (1, 4), (0, 2), (1, 10)] {
        let batch = match id {
            0 => plain(count),
            id => txn(id, 0, sequences[usize::try_from(id).unwrap()], count),
        };
        sequences[usize::try_from(id).unwrap()] += i32::try_from(count).unwrap();
        lead(&mut log, batch).unwrap();
        check_bounded(&log, FetchIsolation::TxnCommitted, 0);
    }
    hw(&mut log, 26);
    check_bounded(&log, FetchIsolation::TxnCommitted, 0);
    lead_marker(&mut log, &end_txn(1, 0, true, 0)).unwrap();
    check_bounded(&log, FetchIsolation::TxnCommitted, 0);
    hw(&mut log, 27);
    assert_eq!(log.last_stable_offset(), Offset(8));
    check_bounded(&log, FetchIsolation::TxnCommitted, 8);
    lead_marker(&mut log, &end_txn(2, 0, false, 0)).unwrap();
    check_bounded(&log, FetchIsolation::TxnCommitted, 8);
    hw(&mut log, 28);
    check_bounded(&log, FetchIsolation::TxnCommitted, 28);
    let bases: Vec<i64> = log.batches().unwrap().iter().map(|batch| batch.base_offset().get()).collect();
    assert_eq!(bases, [0, 5, 8, 10, 14, 16, 26, 27]);
}

#[test]
fn test_active_producers() {
    let mut log = new_log(&LogConfig::default());
    let seen = |log: &Log, id| {
        let entry = log.producer_state().last_entry(ProducerId(id)).unwrap();
        (entry.last_sequence().get(), entry.coordinator_epoch, entry.current_txn_first_offset)
    };
    lead(&mut log, txn(1, 5, 0, 5)).unwrap();
    assert_eq!(seen(&log, 1), (4, CoordinatorEpoch::NONE, Some(Offset(0))));
    lead_marker(&mut log, &end_txn(1, 5, true, 15)).unwrap();
    assert_eq!(seen(&log, 1), (4, CoordinatorEpoch(15), None));
    lead(&mut log, produced(2, 5, 0, 3)).unwrap();
    assert_eq!(seen(&log, 2), (2, CoordinatorEpoch::NONE, None));
    assert_eq!(last_of(&log, 2), Some((2, 8)));
}

#[test]
fn test_append_info_first_offset() {
    let mut log = new_log(&LogConfig::default());
    assert_eq!(lead(&mut log, plain(3)), Ok((0, 2)));
    assert_eq!(lead(&mut log, plain(3)), Ok((3, 5)));
    log.roll(NOW).unwrap();
    assert_eq!(lead(&mut log, plain(3)), Ok((6, 8)));
}
