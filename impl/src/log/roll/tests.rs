#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rows of Kafka's UnifiedLogTest that no log shows, with the same numbers.

mod unified_log_test {
    use crate::log::{LogConfig, PartitionLog};
    use crate::psm::{AppendOrigin, TransactionVersion};
    use crate::record::BatchBuilder;
    use crate::storage::MemoryStorage;
    use crate::types::{LeaderEpoch, Offset, TimestampMs};

    const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

    fn append(log: &mut PartitionLog<MemoryStorage>) {
        let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(b"a")).build().unwrap();
        let tv = TransactionVersion::Unknown;
        log.append_as_leader(batch.bytes().clone(), AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap();
        log.update_high_watermark(log.log_end_offset());
    }

    /// Nine segments of one record each, and an empty one, all replicated.
    fn ten_segments() -> PartitionLog<MemoryStorage> {
        let config = LogConfig { segment_bytes: 1024 * 1024, ..LogConfig::default() };
        let mut log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
        for _ in 0..=8 {
            append(&mut log);
            log.roll(NOW).unwrap();
        }
        assert_eq!(log.segments().count(), 10);
        log
    }

    #[test]
    fn test_deletable_segments_filter() {
        let mut log = ten_segments();
        assert_eq!(log.deletable_segments(|segment, _| segment.base_offset <= Offset(5)), 6);
        // The active segment is not deleted while it is empty.
        assert_eq!(log.deletable_segments(|_, _| true), 9);
        append(&mut log);
        assert_eq!(log.deletable_segments(|_, _| true), 10);
        // Nor is one that reaches beyond the high watermark.
        log.update_high_watermark(Offset(4));
        assert_eq!(log.deletable_segments(|_, _| true), 4);
    }

    #[test]
    fn test_deletable_segments_iteration() {
        let mut log = ten_segments();
        let mut asked = Vec::new();
        let count = log.deletable_segments(|segment, next| {
            asked.push((segment.base_offset.get(), next.map(Offset::get)));
            true
        });
        assert_eq!(asked, (0..9).map(|base| (base, Some(base + 1))).collect::<Vec<_>>());
        assert_eq!((count, log.segments().count()), (9, 10));
    }
}
