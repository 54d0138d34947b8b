//! The leader-epoch cache: after Kafka's LeaderEpochFileCacheTest.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::log::{EpochCheckpointError, LeaderEpochCache};
use cleanslate_log::types::{LeaderEpoch, Offset};

fn cache(entries: &[(i32, i64)]) -> LeaderEpochCache {
    let mut cache = LeaderEpochCache::default();
    for (epoch, offset) in entries {
        cache.assign(LeaderEpoch(*epoch), Offset(*offset)).unwrap();
    }
    cache
}

fn entries(cache: &LeaderEpochCache) -> Vec<(i32, i64)> {
    let entries = cache.entries().iter();
    entries.map(|e| (e.epoch.get(), e.start_offset.get())).collect()
}

#[test]
fn what_is_assigned_ascends_in_both() {
    for (assigned, left) in [
        (&[(2, 10), (2, 12)][..], &[(2, 10)][..]),
        (&[(2, 9), (3, 9)], &[(3, 9)]),
        (&[(2, 6), (3, 5)], &[(3, 5)]),
        (&[(1, 5), (2, 6), (1, 7)], &[(1, 7)]),
        (&[(5, 11), (6, 12), (7, 13), (7, 12)], &[(5, 11), (7, 12)]),
        (&[(3, 0), (1, 1)], &[(1, 1)]),
        (&[(1, 1), (3, 2), (0, 3)], &[(0, 3)]),
    ] {
        assert_eq!(entries(&cache(assigned)), left, "{assigned:?}");
    }
    let mut cache = LeaderEpochCache::default();
    assert_eq!(cache.assign(LeaderEpoch(2), Offset(10)), Ok(true));
    assert_eq!(cache.assign(LeaderEpoch(2), Offset(10)), Ok(false));
    assert!(cache.assign(LeaderEpoch(-1), Offset(10)).is_err());
    assert!(cache.assign(LeaderEpoch(3), Offset(-1)).is_err());
}

#[test]
fn where_an_epoch_ends() {
    for (assigned, leo, asked, end) in [
        (&[(2, 10)][..], 11, 2, Some((2, 11))),
        (&[(2, 10)], 11, -1, None),
        (&[], 11, -1, None),
        (&[], 11, 0, None),
        (&[(2, 100)], 200, 3, None),
        (&[(1, 5), (1, 7)], 8, 2, None),
        (&[(5, 11), (6, 12), (7, 13)], 14, 4, Some((4, 11))),
        (&[(5, 11), (6, 12), (7, 13)], 14, 5, Some((5, 12))),
        (&[(1, 11), (2, 13), (3, 15)], 20, 2, Some((2, 15))),
        (&[(0, 10), (2, 13), (4, 17)], 20, 1, Some((0, 13))),
        (&[(0, 10), (2, 13), (4, 17)], 20, 2, Some((2, 17))),
        (&[(0, 10), (2, 13), (4, 17)], 20, 3, Some((2, 17))),
    ] {
        let found = cache(assigned).end_offset_for(LeaderEpoch(asked), Offset(leo));
        let found = found.map(|(epoch, offset)| (epoch.get(), offset.get()));
        assert_eq!(found, end, "{asked} in {assigned:?}");
    }
}

#[test]
fn neighbours() {
    let cache = cache(&[(0, 10), (1, 20), (5, 30)]);
    for (offset, epoch) in [(5, None), (20, Some(1)), (25, Some(1)), (30, Some(5)), (50, Some(5))] {
        let found = cache.epoch_for_offset(Offset(offset));
        assert_eq!(found.map(LeaderEpoch::get), epoch, "{offset}");
    }
    for (epoch, previous) in [(0, None), (1, Some(0)), (5, Some(1)), (9, Some(5))] {
        let found = cache.previous_epoch(LeaderEpoch(epoch));
        assert_eq!(found.map(LeaderEpoch::get), previous, "{epoch}");
    }
}

#[test]
fn cut_from_the_end() {
    let all = [(2, 6), (3, 8), (4, 11)];
    for (offset, left) in [(8, &all[..1]), (9, &all[..2]), (11, &all[..2]), (12, &all[..]), (-1, &all[..]), (0, &all[..0])] {
        let mut cache = cache(&all);
        let changed = cache.truncate_from_end(Offset(offset));
        assert_eq!(entries(&cache), left, "{offset}");
        assert_eq!(changed, left.len() < 3);
    }
}

#[test]
fn cut_from_the_start() {
    let all = [(2, 6), (3, 8), (4, 11)];
    for (offset, left) in
        [(8, &[(3, 8), (4, 11)][..]), (9, &[(3, 9), (4, 11)]), (1, &all), (6, &all), (11, &[(4, 11)]), (15, &[(4, 15)]), (-1, &all)]
    {
        let mut cache = cache(&all);
        let changed = cache.truncate_from_start(Offset(offset));
        assert_eq!(entries(&cache), left, "{offset}");
        assert_eq!(changed, left != all);
    }
    let mut cache = cache(&[(0, 0), (1, 7), (2, 10)]);
    assert!(cache.truncate_from_start(Offset(5)));
    assert_eq!(entries(&cache), [(0, 5), (1, 7), (2, 10)]);
}

#[test]
fn the_checkpoint_is_kafkas() {
    let three = cache(&[(3, 100)]);
    assert_eq!(three.encode(), "0\n1\n3 100\n");
    for entries in [&[][..], &[(3, 100)], &[(2, 6), (3, 8), (4, 11)]] {
        let cache = cache(entries);
        assert_eq!(LeaderEpochCache::decode(&cache.encode()), Ok(cache));
    }
    for empty in ["", "0", "0\n"] {
        let decoded = LeaderEpochCache::decode(&Bytes::from(empty));
        assert_eq!(decoded, Ok(LeaderEpochCache::default()));
    }
    let spaced = LeaderEpochCache::decode(&Bytes::from("0\n1\n3   100"));
    assert_eq!(spaced, Ok(three));
    let entry = |line| EpochCheckpointError::Line { line, expected: "an epoch and an offset" };
    for (text, error, class) in [
        ("1\n0\n", EpochCheckpointError::Version, "KafkaStorageException"),
        ("0\nx\n", EpochCheckpointError::Line { line: 2, expected: "a count" }, "KafkaStorageException"),
        ("0\n-1\n", EpochCheckpointError::Negative { line: 2 }, "IllegalArgumentException"),
        ("0\n1\n3\n", entry(3), "KafkaStorageException"),
        ("0\n1\n3 4 5\n", entry(3), "KafkaStorageException"),
        ("0\n1\n 3 4\n", entry(3), "KafkaStorageException"),
        ("0\n1\n 4\n", EpochCheckpointError::Number { line: 3 }, "NumberFormatException"),
        ("0\n1\n3 p\n", EpochCheckpointError::Number { line: 3 }, "NumberFormatException"),
        ("0\n1\n-3 4\n", EpochCheckpointError::Negative { line: 3 }, "IllegalArgumentException"),
        ("0\n2\n3 4\n", EpochCheckpointError::Count { expected: 2, found: 1 }, "KafkaStorageException"),
    ] {
        let decoded = LeaderEpochCache::decode(&Bytes::from(text)).unwrap_err();
        assert_eq!((decoded, decoded.kafka_class()), (error, class), "{text:?}");
    }
    // One entry after the other is assigned, as when batches come.
    let again = LeaderEpochCache::decode(&Bytes::from("0\n3\n3 4\n3 5\n2 9\n")).unwrap();
    assert_eq!(entries(&again), [(2, 9)]);
    let not_text = LeaderEpochCache::decode(&Bytes::from_static(b"\xff"));
    assert_eq!(not_text, Err(EpochCheckpointError::NotText));
}
