#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's OffsetIndexTest and TimeIndexTest, with the same numbers: indexes with base offset 45 and room for 30 entries.

use bytes::{BufMut, Bytes, BytesMut};

use super::{
    IndexError, OFFSET_INDEX_ENTRY_BYTES, OffsetIndex, OffsetIndexEntry, TIME_INDEX_ENTRY_BYTES, TimeIndex, TimeIndexEntry,
    check_offset_index, check_time_index,
};
use crate::types::{Offset, TimestampMs};

const BASE: Offset = Offset(45);
const ENTRIES: usize = 30;

mod offset_index_test {
    use super::*;

    const MAX_BYTES: usize = ENTRIES * OFFSET_INDEX_ENTRY_BYTES;

    /// Offsets and positions.
    fn index(base: Offset, entries: &[(i64, u32)]) -> OffsetIndex {
        let mut index = OffsetIndex::new(base);
        for (offset, position) in entries {
            assert!(index.append(Offset(*offset), *position).is_some(), "{offset}");
        }
        index
    }

    fn last(index: &OffsetIndex) -> Option<i64> {
        index.entries.last().map(|entry| entry.offset.get())
    }

    #[test]
    fn random_lookup_test() {
        assert_eq!(index(BASE, &[]).lookup(Offset(92)), 0);
        // Any ascending numbers: distances of 1 to 7 offsets, and as many bytes.
        let step = |n: i64| 1 + (n * 5) % 7;
        let entries: Vec<(i64, u32)> = (0..30)
            .scan((45, 0_u32), |(offset, position), n| {
                *offset += step(n);
                *position += u32::try_from(step(n)).unwrap();
                Some((*offset, *position))
            })
            .collect();
        let index = index(BASE, &entries);
        for offset in 45..entries[29].0 + 9 {
            let floor = entries.iter().rev().find(|(known, _)| *known <= offset).map_or(0, |(_, position)| *position);
            assert_eq!(index.lookup(Offset(offset)), u64::from(floor), "{offset}");
        }
    }

    #[test]
    fn lookup_extreme_cases() {
        assert_eq!(index(BASE, &[]).lookup(BASE), 0);
        let entries: Vec<(i64, u32)> = (0..30).map(|n| (46 + i64::from(n), n + 1)).collect();
        let index = index(BASE, &entries);
        assert_eq!((index.lookup(BASE), index.lookup(Offset(75)), index.lookup(Offset(i64::MAX))), (0, 30, 30));
        assert_eq!(index.lookup(Offset(44)), 0);
    }

    #[test]
    fn test_entry() {
        let entries = [(51, 0), (52, 1), (53, 2), (54, 3)];
        let index = index(BASE, &entries);
        for (entry, (offset, position)) in index.entries.iter().zip(entries) {
            assert_eq!(*entry, OffsetIndexEntry { offset: Offset(offset), position });
        }
    }

    /// Where Kafka throws for an entry that there is not, there is none.
    #[test]
    fn test_entry_overflow() {
        assert_eq!(index(BASE, &[]).entries.first(), None);
    }

    /// An index that is full says so, which makes the log begin a segment before there is another entry.
    #[test]
    fn append_too_many() {
        let mut index = index(BASE, &[]);
        for n in 0..30 {
            assert!(!index.is_full(MAX_BYTES), "{n}");
            index.append(Offset(46 + i64::from(n)), n);
        }
        assert!(index.is_full(MAX_BYTES));
    }

    /// Kafka throws; here an entry that does not ascend is left out.
    #[test]
    fn append_out_of_order() {
        let mut index = index(BASE, &[(51, 0)]);
        assert_eq!((index.append(Offset(50), 1), index.append(Offset(51), 1)), (None, None));
        assert_eq!(last(&index), Some(51));
    }

    #[test]
    fn test_fetch_upper_bound_offset() {
        assert_eq!(index(BASE, &[]).upper_bound(5), None);
        let index = index(BASE, &[(45, 0), (46, 10), (47, 23), (48, 37)]);
        // From the position of the first entry, of the second, of the fourth; so many bytes.
        for (from, bytes, expected) in [
            (0, 5, Some(46)),
            (0, 10, Some(46)),
            (0, 22, Some(47)),
            (0, 23, Some(47)),
            (10, 24, Some(48)),
            (37, 1, None),
            (0, 200, None),
            (10, 200, None),
        ] {
            assert_eq!(index.upper_bound(from + bytes), expected.map(Offset), "{from} {bytes}");
        }
    }

    #[test]
    fn test_reopen() {
        let entries = [(51, 0), (52, 1)];
        let mut index = OffsetIndex::new(BASE);
        let mut file = BytesMut::new();
        for (offset, position) in entries {
            file.extend_from_slice(&index.append(Offset(offset), position).unwrap());
        }
        assert_eq!(file.len() as u64, index.bytes());
        let reopened = OffsetIndex::decode(BASE, file.freeze());
        assert_eq!(reopened, index);
        assert_eq!((reopened.lookup(Offset(51)), reopened.lookup(Offset(52))), (0, 1));
    }

    #[test]
    fn truncate() {
        let entries: Vec<(i64, u32)> = (1..10).map(|n| (i64::from(n), n)).collect();
        let mut index = index(Offset(0), &entries);
        assert_eq!((index.truncate_to(Offset(12)), last(&index)), (None, Some(9)));
        index.append(Offset(10), 10);
        assert_eq!((index.truncate_to(Offset(10)), last(&index)), (Some(72), Some(9)));
        assert_eq!((index.truncate_to(Offset(9)), last(&index)), (Some(64), Some(8)));
        index.append(Offset(9), 9);
        assert_eq!((index.truncate_to(Offset(5)), last(&index)), (Some(32), Some(4)));
        index.append(Offset(5), 5);
        assert_eq!((index.truncate_to(Offset(0)), last(&index)), (Some(0), None));
        index.append(Offset(0), 0);
        assert_eq!(last(&index), Some(0));
    }

    #[test]
    fn test_sanity_last_offset_equal_to_base_offset() {
        let index = index(BASE, &[(45, 0)]);
        assert_eq!((last(&index), index.lookup(BASE)), (Some(45), 0));
        // What a file says is believed.
        let mut file = BytesMut::new();
        file.put_i32(0);
        file.put_u32(0);
        let file = file.freeze();
        assert_eq!(check_offset_index(BASE, &file), Ok(()));
        assert_eq!(OffsetIndex::decode(BASE, file), index);
        // An offset in front of the base is what the check refuses, and an entry that is not whole.
        let below = Bytes::from_static(&[0xff; OFFSET_INDEX_ENTRY_BYTES]);
        assert_eq!(check_offset_index(BASE, &below), Err(IndexError::BelowBase { offset: Offset(44), base_offset: BASE }));
        assert_eq!(check_offset_index(BASE, &below.slice(..7)), Err(IndexError::NotWhole { len: 7, entry_bytes: 8 }));
    }
}

mod time_index_test {
    use super::*;

    const MAX_BYTES: usize = ENTRIES * TIME_INDEX_ENTRY_BYTES;

    fn entry(timestamp: i64, offset: i64) -> TimeIndexEntry {
        TimeIndexEntry { timestamp: TimestampMs(timestamp), offset: Offset(offset) }
    }

    /// Timestamps 10, 20 and so on at offsets 55, 65 and so on.
    fn index(count: i64) -> TimeIndex {
        let mut index = TimeIndex::new(BASE);
        for n in 1..=count {
            assert!(index.maybe_append(entry(n * 10, n * 10 + BASE.get())).is_some());
        }
        index
    }

    #[test]
    fn test_entry() {
        let index = index(4);
        assert_eq!(index.entries, [entry(10, 55), entry(20, 65), entry(30, 75), entry(40, 85)]);
    }

    #[test]
    fn test_look_up() {
        assert_eq!(index(0).lookup(TimestampMs(100)), entry(-1, BASE.get()));
        let index = index(4);
        for (timestamp, expected) in [(9, entry(-1, 45)), (25, entry(20, 65)), (30, entry(30, 75))] {
            assert_eq!(index.lookup(TimestampMs(timestamp)), expected, "{timestamp}");
        }
    }

    /// What a file holds is not believed blindly by a tool that asks.
    #[test]
    fn test_sanity_check() {
        let file = |entries: &[(i64, i32)]| {
            let mut file = BytesMut::new();
            for (timestamp, relative) in entries {
                file.put_i64(*timestamp);
                file.put_i32(*relative);
            }
            file.freeze()
        };
        let check = |file: &Bytes| check_time_index(BASE, file).map_err(|error| error.kafka_class());
        assert_eq!(check(&file(&[])), Ok(()));
        assert_eq!(check(&file(&[(10, 10), (20, 20), (30, 30)])), Ok(()));
        assert_eq!(check(&file(&[(10, 10), (20, 20), (9, 30)])), Err("CorruptIndexException"));
        assert_eq!(check(&file(&[(10, 10), (20, -1)])), Err("CorruptIndexException"));
        assert_eq!(check(&file(&[(10, 10)]).slice(..11)), Err("CorruptIndexException"));
    }

    /// Where Kafka throws for an entry that there is not, there is none.
    #[test]
    fn test_entry_overflow() {
        assert_eq!(index(0).entries.first(), None);
    }

    #[test]
    fn test_truncate() {
        let mut index = index(29);
        assert_eq!(index.truncate_to(Offset(55)), Some(0));
        assert_eq!(index.entries, []);
        index.maybe_append(entry(10, 55));
        assert_eq!(index.last_entry(), entry(10, 55));
    }

    /// An index that is full says so; the last entry that it is given is that of a segment that is left.
    #[test]
    fn test_append() {
        let mut index = index(28);
        assert!(!index.is_full(MAX_BYTES));
        index.maybe_append(entry(290, 335));
        assert!(index.is_full(MAX_BYTES));
        assert_eq!(index.maybe_append(entry(290, 1000)), None);
        assert!(index.maybe_append(entry(10_000, 1000)).is_some());
        assert_eq!((index.entries.len(), index.last_entry()), (30, entry(10_000, 1000)));
    }

    #[test]
    fn test_is_full() {
        for (count, full) in [(28, false), (29, true), (30, true)] {
            assert_eq!(index(count).is_full(MAX_BYTES), full, "{count}");
        }
    }

    /// Files have the size of their entries; the size that a configuration gives decides how many go in. To give another one loses
    /// none.
    #[test]
    fn test_resize() {
        let full = |entries: i64, room: usize| index(entries).is_full(room * TIME_INDEX_ENTRY_BYTES);
        // One entry is kept free for the largest timestamp of a segment that ends.
        assert!(full(29, ENTRIES) && !full(28, ENTRIES));
        assert!(full(14, ENTRIES / 2) && !full(13, ENTRIES / 2));
        assert!(full(59, ENTRIES * 2) && !full(29, ENTRIES * 2));
    }

    #[test]
    fn test_last_entry() {
        let mut index = index(0);
        assert_eq!(index.last_entry(), entry(-1, 45));
        index.maybe_append(entry(0, 45));
        assert_eq!(index.last_entry(), entry(0, 45));
    }

    #[test]
    fn test_entry_size() {
        assert_eq!(TIME_INDEX_ENTRY_BYTES, 12);
        assert_eq!(index(1).bytes(), 12);
    }

    /// The bytes of an entry; what follows the last whole one is ignored. Kafka has a check of an index's contents, which a log of 4.x
    /// does not make.
    #[test]
    fn test_parse_entry() {
        let mut file = BytesMut::new();
        for (timestamp, relative) in [(10, 10), (20, 20)] {
            file.put_i64(timestamp);
            file.put_i32(relative);
        }
        file.extend_from_slice(&[7; 11]);
        assert_eq!(TimeIndex::decode(BASE, file.freeze()), index(2));
        let added = index(0).maybe_append(entry(10, 55)).unwrap();
        assert_eq!(added[..], [0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 10]);
    }
}
