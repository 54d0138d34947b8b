#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rows of Kafka's LogSegmentTest that no log shows, with the same numbers.

mod log_segment_test {
    use super::super::{BatchSlot, Incoming, Segment};
    use crate::log::LogConfig;
    use crate::record::{AnyBatch, BatchBuilder};
    use crate::storage::MemoryStorage;
    use crate::types::{Offset, TimestampMs};

    const MAX: i64 = i32::MAX as i64;

    /// A segment refuses offsets that cannot be told relative to its base; the log begins another one for them.
    #[test]
    fn test_append_for_log_segment_offset_overflow_exception() {
        let rolls = |base: i64, largest: i64| {
            let segment = Segment::new(Offset(base), TimestampMs(0));
            let last_offset = Offset(largest);
            let incoming = Incoming { bytes: 0, first_offset: Some(Offset(0)), last_offset, max_timestamp: TimestampMs(0) };
            segment.should_roll(&LogConfig::default(), &incoming, TimestampMs(0))
        };
        for (base, largest) in
            [(0, i64::from(i32::MIN)), (0, MAX + 1), (1, 0), (100, 10), (MAX + 1, 0), (i64::from(i32::MIN), MAX + 1)]
        {
            assert!(rolls(base, largest), "{base} {largest}");
        }
        for (base, largest) in [(0, 0), (0, MAX), (1, MAX + 1), (MAX + 1, MAX + 1)] {
            assert!(!rolls(base, largest), "{base} {largest}");
        }
    }

    /// Where a read begins whose end is not known: at the batch that holds or follows the offset, or nowhere.
    #[test]
    fn test_read_when_no_max_position() {
        let mut segment = Segment::new(Offset(40), TimestampMs(0));
        for (offset, position) in [(50, 0), (51, 39)] {
            let (base_offset, last_offset) = (Offset(offset), Offset(offset));
            segment.take_in(BatchSlot { base_offset, last_offset, max_timestamp: TimestampMs(0), position, size: 39 });
        }
        let found = |offset: i64| segment.slots_from(Offset(offset)).first().map(|slot| (slot.base_offset.get(), slot.position));
        assert_eq!([48, 50, 51, 52, 53].map(found), [Some((50, 0)), Some((50, 0)), Some((51, 39)), None, None]);
    }

    const SEGMENT_MS: i64 = 300_000;

    /// Whether an append without a timestamp, of 1024 bytes up to an offset, needs another segment.
    fn rolls(segment: &Segment, last_offset: i64, now: i64) -> bool {
        let config = LogConfig { segment_ms: SEGMENT_MS, segment_bytes: i32::MAX as usize, ..LogConfig::default() };
        let last_offset = Offset(last_offset);
        let incoming = Incoming { bytes: 1024, first_offset: None, last_offset, max_timestamp: TimestampMs::NONE };
        segment.should_roll(&config, &incoming, TimestampMs(now))
    }

    #[test]
    fn test_truncate_empty_segment() {
        let mut storage = MemoryStorage::new();
        let mut segment = Segment::new(Offset(0), TimestampMs(0));
        segment.touch_indexes(&mut storage).unwrap();
        segment.close(&mut storage).unwrap();
        assert_eq!(segment.sizes(), (0, 0, 0));

        let mut reopened = Segment::new(Offset(0), TimestampMs(0));
        reopened.truncate_to(&mut storage, Offset(57), TimestampMs(500)).unwrap();
        // It counts as new, and has room in its indexes.
        assert_eq!(reopened.created(), TimestampMs(500));
        assert!(!rolls(&reopened, 100, 500));
        assert!(!rolls(&reopened, 100, 500 + SEGMENT_MS + 1));
        assert!(rolls(&reopened, MAX + 200, 500 + SEGMENT_MS + 1));
    }

    #[test]
    fn test_truncate_full() {
        let (mut storage, config) = (MemoryStorage::new(), LogConfig::default());
        let mut segment = Segment::new(Offset(40), TimestampMs(0));
        let batch = BatchBuilder::new(Offset(40)).record(None, Some(b"hello")).record(None, Some(b"there")).build().unwrap();
        let bytes = batch.bytes().clone();
        let batches = [AnyBatch::V2(batch)];
        segment.append(&mut storage, &config, &batches, &bytes).unwrap();
        assert_eq!((segment.created(), segment.next_offset()), (TimestampMs(0), Offset(42)));
        assert!(rolls(&segment, 42, SEGMENT_MS + 1));

        segment.truncate_to(&mut storage, Offset(0), TimestampMs(500)).unwrap();
        assert_eq!(segment.created(), TimestampMs(500));
        assert!(!rolls(&segment, 42, SEGMENT_MS + 1));
        assert_eq!((segment.slots_from(Offset(0)), segment.sizes()), (&[][..], (0, 0, 0)));
        segment.append(&mut storage, &config, &batches, &bytes).unwrap();
        assert!(!rolls(&segment, 42, 500 + SEGMENT_MS));
        assert!(rolls(&segment, 42, 500 + SEGMENT_MS + 1));
    }
}

mod transaction_index_test {
    use super::super::Segment;
    use crate::log::files::SegmentFile;
    use crate::log::txn_index::TxnIndexError;
    use crate::log::{AbortedTxn, TXN_INDEX_FILE};
    use crate::storage::{FaultyStorage, MemoryStorage, Storage, Unsynced};
    use crate::types::{Offset, ProducerId, TimestampMs};

    fn aborted(id: i64, first: i64, last: i64, last_stable: i64) -> AbortedTxn {
        AbortedTxn {
            producer_id: ProducerId(id),
            first_offset: Offset(first),
            last_offset: Offset(last),
            last_stable_offset: Offset(last_stable),
        }
    }

    /// What comes of a second marker at this offset. A log appends none: the offsets of its batches ascend.
    fn second(last: i64) -> Option<(i64, i64)> {
        let (mut storage, mut segment) = (MemoryStorage::new(), Segment::new(Offset(0), TimestampMs(0)));
        segment.append_aborted(&mut storage, aborted(1, 5, 15, 13)).unwrap();
        match segment.append_aborted(&mut storage, aborted(0, 0, last, 11)) {
            Err(TxnIndexError::Order { offset, previous }) => Some((offset.get(), previous.get())),
            Err(TxnIndexError::Storage(error)) => panic!("{error}"),
            Ok(()) => None,
        }
    }

    /// To flush an index without a file is nothing; then there is an entry, and a flush makes it durable.
    #[test]
    fn test_flush() {
        let (mut storage, mut segment) = (FaultyStorage::new(), Segment::new(Offset(0), TimestampMs(0)));
        storage.append(&segment.name(SegmentFile::Log), &bytes::Bytes::new()).unwrap();
        let durable = |storage: &FaultyStorage| storage.after_power_failure(Unsynced::Lost).read_all(TXN_INDEX_FILE).unwrap();
        segment.flush(&mut storage).unwrap();
        assert_eq!(durable(&storage), None);
        let entry = aborted(0, 0, 10, 2);
        segment.append_aborted(&mut storage, entry).unwrap();
        assert_eq!(durable(&storage), Some(bytes::Bytes::new()));
        segment.flush(&mut storage).unwrap();
        assert_eq!(durable(&storage), Some(entry.encode()));
    }

    #[test]
    fn test_last_offset_must_increase() {
        assert_eq!(second(15), Some((15, 15)));
        assert_eq!(second(16), None);
    }

    #[test]
    fn test_last_offset_cannot_decrease() {
        assert_eq!(second(10), Some((10, 15)));
    }
}

/// Kafka's FileRecordsTest.
mod file_records_test {
    use super::super::{Incoming, Segment};
    use crate::log::LogConfig;
    use crate::types::{Offset, TimestampMs};

    /// A file has no more bytes than a position of 31 bits can tell, whatever the setting is; the next append goes into another.
    #[test]
    fn test_append_protects_from_overflow() {
        let max = u64::try_from(i32::MAX).unwrap();
        let config = LogConfig { segment_bytes: usize::MAX, ..LogConfig::default() };
        let incoming = Incoming { bytes: 100, first_offset: None, last_offset: Offset(1), max_timestamp: TimestampMs(0) };
        for (file_bytes, rolls) in [(0, false), (max - 100, false), (max - 99, true), (max, true)] {
            let mut segment = Segment::new(Offset(0), TimestampMs(0));
            segment.file_bytes = file_bytes;
            assert_eq!(segment.should_roll(&config, &incoming, TimestampMs(0)), rolls, "{file_bytes}");
        }
    }
}
