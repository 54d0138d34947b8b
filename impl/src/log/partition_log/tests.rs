#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rows of Kafka's tests about the segments of a log that nobody sees from outside, with the same numbers.

use super::PartitionLog;
use crate::log::LogConfig;
use crate::log::segment::Segment;
use crate::psm::{AppendOrigin, TransactionVersion};
use crate::record::BatchBuilder;
use crate::storage::MemoryStorage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

fn new_log(config: LogConfig) -> PartitionLog<MemoryStorage> {
    PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap()
}

fn append(log: &mut PartitionLog<MemoryStorage>) {
    let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(b"test")).build().unwrap();
    let tv = TransactionVersion::Unknown;
    log.append_as_leader(batch.bytes().clone(), AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap();
}

/// A log with empty segments at these offsets.
fn of_segments(bases: &[i64]) -> PartitionLog<MemoryStorage> {
    let mut log = new_log(LogConfig::default());
    log.segments = bases.iter().map(|base| Segment::new(Offset(*base), NOW)).collect();
    log
}

/// The base offsets of the segments that hold offsets from one up to another.
fn between(log: &PartitionLog<MemoryStorage>, from: i64, to: i64) -> Vec<i64> {
    log.segments[log.segments_between(Offset(from), Offset(to))].iter().map(|segment| segment.base_offset.get()).collect()
}

fn inactive_from(log: &PartitionLog<MemoryStorage>, from: i64) -> Vec<i64> {
    log.inactive_from(Offset(from)).iter().map(|segment| segment.base_offset.get()).collect()
}

mod local_log_test {
    use super::*;

    #[test]
    fn test_non_active_segments_from() {
        let mut log = new_log(LogConfig::default());
        for _ in 0..5 {
            append(&mut log);
            log.roll(NOW).unwrap();
        }
        assert_eq!(log.segments.last().unwrap().base_offset, Offset(5));
        let from = |offset: i64| inactive_from(&log, offset);
        assert_eq!([from(0), from(5), from(2), from(6)], [vec![0, 1, 2, 3, 4], vec![], vec![2, 3, 4], vec![]]);
    }
}

mod log_segments_test {
    use super::*;

    #[test]
    fn test_segment_access() {
        let log = of_segments(&[1, 2, 3, 4]);
        let bases: Vec<i64> = log.segments().map(|(base, _)| base.get()).collect();
        assert_eq!(bases, [1, 2, 3, 4]);
        for (from, to, expected) in [
            (2, 1, vec![]),
            (1, 1, vec![]),
            (1, 2, vec![1]),
            (1, 3, vec![1, 2]),
            (1, 4, vec![1, 2, 3]),
            (2, 4, vec![2, 3]),
            (3, 4, vec![3]),
            (4, 4, vec![]),
            (4, 5, vec![4]),
        ] {
            assert_eq!(between(&log, from, to), expected, "{from} {to}");
        }
        assert_eq!([inactive_from(&log, 2), inactive_from(&log, 4)], [vec![2, 3], vec![]]);
    }

    #[test]
    fn test_closest_match_operations() {
        let log = of_segments(&[1, 3, 5, 7]);
        assert_eq!(
            [0, 1, 2, 3, 4, 8].map(|offset| log.floor_segment(Offset(offset))),
            [None, Some(0), Some(0), Some(1), Some(1), Some(3)]
        );
    }

    #[test]
    fn test_size_for_large_logs() {
        let mut log = of_segments(&[0, 1]);
        let most = i32::MAX as u64;
        log.segments.iter_mut().for_each(|segment| segment.file_bytes = most);
        assert_eq!(log.size_in_bytes(), 2 * most);
        log.segments.pop();
        assert_eq!(log.size_in_bytes(), most);
    }
}

mod unified_log_test {
    use super::*;
    use crate::log::{CleanRules, CleanableOffsets};

    #[test]
    fn test_log_segments_call_correct() {
        // Ten records in a segment.
        let mut log = new_log(LogConfig { segment_bytes: 10 * 72, ..LogConfig::default() });
        for _ in 0..22 {
            append(&mut log);
        }
        assert_eq!(log.segments().count(), 3);
        for (from, to, expected) in [
            (10, 10, vec![]),
            (15, 15, vec![]),
            (0, 21, vec![0, 10, 20]),
            (1, 5, vec![0]),
            (13, 21, vec![10, 20]),
            (13, 17, vec![10]),
            (10, 0, vec![]),
        ] {
            assert_eq!(between(&log, from, to), expected, "{from} {to}");
        }
    }

    /// The first batch of each segment tells when a compaction is overdue; empty segments tell nothing.
    #[test]
    fn test_get_first_batch_timestamp_for_segments() {
        let mut log = of_segments(&[1, 2, 3]);
        log.log_end_offset = Offset(3);
        let overdue = |log: &PartitionLog<MemoryStorage>, first: i64, now: i64| {
            let offsets = CleanableOffsets { first_dirty: Offset(first), first_uncleanable: Offset(3), invalid_checkpoint: false };
            let rules = CleanRules { max_compaction_lag_ms: 0, ..CleanRules::default() };
            log.log_to_clean(&offsets, &rules, TimestampMs(now)).is_overdue
        };
        assert!(!overdue(&log, 1, i64::MAX));
        for (index, timestamp) in [(0, 1000), (1, 2000)] {
            let offset = Offset(index + 1);
            log.segments[usize::try_from(index).unwrap()].take_in(crate::log::segment::BatchSlot {
                base_offset: offset,
                last_offset: offset,
                max_timestamp: TimestampMs(timestamp),
                position: 0,
                size: 71,
            });
        }
        assert_eq!([1000, 1001].map(|now| overdue(&log, 1, now)), [false, true]);
        assert_eq!([2000, 2001].map(|now| overdue(&log, 2, now)), [false, true]);
    }
}
