#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rows of Kafka's LogCleanerTest and OffsetMapTest that no log shows, with the same numbers.

use bytes::Bytes;

use super::OffsetMap;
use crate::types::Offset;

fn key(number: i64) -> Bytes {
    number.to_string().into_bytes().into()
}

fn with_room(max_keys: usize) -> OffsetMap {
    let mut map = OffsetMap::default();
    map.clear(max_keys);
    map
}

mod offset_map_test {
    use super::*;

    /// Room in 4096 bytes, at 24 for each key in Kafka.
    const SLOTS: usize = 4096 / 24;

    /// The map knows exactly this offset for the key.
    fn knows(map: &OffsetMap, number: i64) -> bool {
        map.is_latest(&key(number), Offset(number)) && !map.is_latest(&key(number), Offset(number - 1))
    }

    /// Full with the keys from 37 on; and the first number that did not go in.
    fn full() -> (OffsetMap, i64) {
        let mut map = with_room(SLOTS);
        let refused = (37..).find(|number| !map.put(key(*number), Offset(*number))).unwrap();
        (map, refused)
    }

    #[test]
    fn test_basic_validation() {
        for items in [10, 100, 1000, 5000] {
            let mut map = with_room(usize::MAX);
            assert!((0..items).all(|number| map.put(key(number), Offset(number))));
            assert!((0..items).all(|number| knows(&map, number)));
        }
    }

    #[test]
    fn test_clear() {
        let mut map = with_room(SLOTS);
        assert!((0..10).all(|number| map.put(key(number), Offset(number))));
        assert!((0..10).all(|number| knows(&map, number)));
        map.clear(SLOTS);
        // Of a key that is not there, every record is the latest.
        assert!((0..10).all(|number| map.is_latest(&key(number), Offset(-1))));
        assert_eq!((map.latest, map.utilization()), (Offset::UNKNOWN, 0.0));
        // There is room for as many as before.
        assert_eq!((0..).find(|number| !map.put(key(*number), Offset(*number))), Some(170));
    }

    #[test]
    fn test_utilization() {
        let mut map = with_room(SLOTS);
        assert_eq!((SLOTS, map.utilization()), (170, 0.0));
        for size in 1..=SLOTS {
            let number = 36 + i64::try_from(size).unwrap();
            assert!(map.put(key(number), Offset(number)));
            assert_eq!(map.utilization(), size as f64 / SLOTS as f64);
        }
        // A key that is there takes no room.
        let mut map = with_room(2);
        assert!((0..5).all(|offset| map.put(key(1), Offset(offset))));
        assert_eq!((map.utilization(), with_room(0).utilization()), (0.5, 1.0));
    }

    #[test]
    fn test_get_when_full() {
        let (map, refused) = full();
        assert_eq!(refused, 37 + 170);
        // Of a key that is not there, every record is the latest.
        assert!(map.is_latest(&key(refused), Offset(-1)));
        assert!(knows(&map, refused - 1));
    }

    #[test]
    fn test_update_latest_offset() {
        let (mut map, refused) = full();
        assert!(knows(&map, refused - 1));
        map.latest = Offset(40);
        assert!(knows(&map, 40));
    }

    #[test]
    fn test_latest_offset() {
        let (map, refused) = full();
        assert_eq!(map.latest, Offset(refused - 1));
        assert_eq!(with_room(SLOTS).latest, Offset::UNKNOWN);
    }
}

mod log_cleaner_test {
    use super::*;
    use crate::log::clean_txns::CleanedTransactions;
    use crate::log::{CleanOptions, CleanerStats, LogConfig, PartitionLog};
    use crate::psm::{AppendOrigin, TransactionVersion};
    use crate::record::BatchBuilder;
    use crate::storage::MemoryStorage;
    use crate::types::{LeaderEpoch, TimestampMs};

    const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

    fn keys(log: &PartitionLog<MemoryStorage>) -> Vec<Bytes> {
        let batches = log.batches().unwrap();
        batches.iter().flat_map(|batch| batch.records().unwrap()).filter_map(|record| record.key).collect()
    }

    #[test]
    fn test_clean_segments() {
        let config = LogConfig { segment_bytes: 1024, ..LogConfig::default() };
        let mut log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
        while log.segments.len() < 4 {
            let number = key(log.log_end_offset().get());
            let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(&number), Some(&number)).build().unwrap();
            let tv = TransactionVersion::Unknown;
            log.append_as_leader(batch.bytes().clone(), AppendOrigin::Client, LeaderEpoch(0), tv, NOW).unwrap();
        }
        let before = keys(&log);
        assert_eq!(before, (0..log.log_end_offset().get()).map(key).collect::<Vec<_>>());
        // As if these keys had been written again, behind everything.
        let gone = [1, 3, 5, 7, 9].map(key);
        let mut map = with_room(usize::MAX);
        assert!(gone.iter().all(|key| map.put(key.clone(), Offset(i64::MAX))));
        let bases: Vec<Offset> = log.segments().map(|(base, _)| base).collect();
        let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: bases[3], now: NOW, max_keys: usize::MAX };
        let mut txns = CleanedTransactions::default();
        let mut stats = CleanerStats::default();
        let expected_bytes_read: u64 = log.segments().take(3).map(|(_, size)| size).sum();
        log.clean_group(&bases[..3], &map, (&mut txns, &mut stats), (&options, bases[3]), &mut || true).unwrap();
        let remain: Vec<Bytes> = before.into_iter().filter(|key| !gone.contains(key)).collect();
        assert_eq!(keys(&log), remain);
        assert_eq!(log.segments().map(|(base, _)| base).collect::<Vec<_>>(), [bases[0], bases[3]]);
        let cleaned = log.segments().next().unwrap().1;
        assert_eq!((stats.bytes_read, stats.bytes_written), (expected_bytes_read, cleaned));
        let records = u64::try_from(bases[3].get()).unwrap();
        assert_eq!((stats.records_read, stats.records_written), (records, records - 5));
    }
}
