#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LeaderEpochFileCacheTest.

use cleanslate_log::log::LeaderEpochCache;
use cleanslate_log::types::{LeaderEpoch, Offset};

fn cache(entries: &[(i32, i64)]) -> LeaderEpochCache {
    let mut cache = LeaderEpochCache::default();
    for (epoch, offset) in entries {
        cache.assign(LeaderEpoch(*epoch), Offset(*offset)).unwrap();
    }
    cache
}

fn entries(cache: &LeaderEpochCache) -> Vec<(i32, i64)> {
    cache.entries().iter().map(|entry| (entry.epoch.get(), entry.start_offset.get())).collect()
}

/// The answer for an epoch; -1 and -1 when there is none.
fn end(cache: &LeaderEpochCache, epoch: i32, log_end: i64) -> (i32, i64) {
    let end = cache.end_offset_for(LeaderEpoch(epoch), Offset(log_end));
    end.map_or((-1, -1), |(epoch, offset)| (epoch.get(), offset.get()))
}

fn three() -> LeaderEpochCache {
    cache(&[(2, 6), (3, 8), (4, 11)])
}

#[track_caller]
fn check_start(start: i64, expected: &[(i32, i64)]) {
    let mut cache = three();
    cache.truncate_from_start(Offset(start));
    assert_eq!(entries(&cache), expected);
}

#[track_caller]
fn check_end(target: i64, expected: &[(i32, i64)]) {
    let mut cache = three();
    cache.truncate_from_end(Offset(target));
    assert_eq!(entries(&cache), expected);
}

#[test]
fn test_previous_epoch() {
    let mut cache = cache(&[(2, 10)]);
    let previous = |cache: &LeaderEpochCache| {
        let latest = cache.latest_epoch()?;
        cache.previous_epoch(latest).map(LeaderEpoch::get)
    };
    assert_eq!(previous(&cache), None);
    cache.assign(LeaderEpoch(4), Offset(15)).unwrap();
    assert_eq!(previous(&cache), Some(2));
    cache.assign(LeaderEpoch(10), Offset(20)).unwrap();
    assert_eq!(previous(&cache), Some(4));
    cache.truncate_from_end(Offset(18));
    assert_eq!(previous(&cache), Some(2));
}

#[test]
fn test_find_previous_epoch() {
    let cache = cache(&[(2, 10), (4, 15), (10, 20)]);
    let previous = |epoch| cache.previous_epoch(LeaderEpoch(epoch)).map(LeaderEpoch::get);
    assert_eq!([previous(2), previous(4), previous(10)], [None, Some(2), Some(4)]);
}

#[test]
fn test_find_previous_entry() {
    let mut cache = LeaderEpochCache::default();
    let previous = |cache: &LeaderEpochCache, epoch| {
        cache.previous_entry(LeaderEpoch(epoch)).map(|entry| (entry.epoch.get(), entry.start_offset.get()))
    };
    for (epoch, offset, expected) in [(2, 10, None), (4, 15, Some((2, 10))), (10, 20, Some((4, 15)))] {
        assert_eq!(previous(&cache, epoch), expected);
        cache.assign(LeaderEpoch(epoch), Offset(offset)).unwrap();
        assert_eq!(previous(&cache, epoch), expected);
    }
    cache.truncate_from_end(Offset(18));
    assert_eq!(previous(&cache, cache.latest_epoch().unwrap().get()), Some((2, 10)));
}

#[test]
fn test_find_next_epoch() {
    let cache = cache(&[(0, 0), (1, 100), (2, 200)]);
    let next = |epoch| cache.next_epoch(LeaderEpoch(epoch)).map(LeaderEpoch::get);
    assert_eq!([next(-1), next(0), next(1), next(2), next(100)], [Some(0), Some(1), Some(2), None, None]);
}

#[test]
fn test_get_epoch_entry() {
    let cache = cache(&[(2, 100), (3, 500), (5, 1000)]);
    let start = |epoch| cache.entry(LeaderEpoch(epoch)).map(|entry| entry.start_offset.get());
    assert_eq!([start(2), start(3), start(5)], [Some(100), Some(500), Some(1000)]);
    assert_eq!([start(-1), start(4), start(6)], [None, None, None]);
}

#[test]
fn should_clear_all_entries() {
    let mut cache = three();
    assert!(cache.clear());
    assert_eq!(entries(&cache), []);
    assert!(!cache.clear());
}

#[test]
fn should_add_epoch_and_message_offset_to_cache() {
    let cache = cache(&[(2, 10)]);
    assert_eq!(cache.latest_epoch(), Some(LeaderEpoch(2)));
    assert_eq!(entries(&cache), [(2, 10)]);
    assert_eq!(end(&cache, 2, 11), (2, 11));
}

#[test]
fn should_return_log_end_offset_if_latest_epoch_requested() {
    assert_eq!(end(&cache(&[(2, 11), (2, 12)]), 2, 14), (2, 14));
}

#[test]
fn should_return_undefined_offset_if_undefined_epoch_requested() {
    let cache = cache(&[(2, 11), (3, 12)]);
    assert_eq!(end(&cache, -1, 0), (-1, -1));
    assert_eq!(end(&LeaderEpochCache::default(), -1, 0), (-1, -1));
}

#[test]
fn should_not_overwrite_log_end_offset_for_a_leader_epoch_once_it_has_been_assigned() {
    assert_eq!(entries(&cache(&[(2, 9), (2, 10)])), [(2, 9)]);
}

#[test]
fn should_not_overwrite_offset_for_a_leader_epoch_once_it_has_been_assigned() {
    assert_eq!(entries(&cache(&[(2, 6), (2, 10)])), [(2, 6)]);
}

#[test]
fn should_not_update_epoch_and_start_offset_if_it_did_not_change() {
    assert_eq!(entries(&cache(&[(2, 6), (2, 7)])), [(2, 6)]);
}

#[test]
fn should_enforce_monotonically_increasing_start_offsets() {
    assert_eq!(entries(&cache(&[(2, 9), (3, 9)])), [(3, 9)]);
}

#[test]
fn should_enforce_offsets_increase_monotonically() {
    assert_eq!(entries(&cache(&[(2, 6), (3, 5)])), [(3, 5)]);
}

#[test]
fn should_enforce_monotonically_increasing_epochs() {
    let cache = cache(&[(1, 5), (2, 6), (1, 7)]);
    assert_eq!(entries(&cache), [(1, 7)]);
    assert_eq!(end(&cache, 2, 8), (-1, -1));
    assert_eq!(end(&cache, 1, 8), (1, 8));
}

#[test]
fn should_truncate_if_matching_epoch_but_earlier_starting_offset() {
    let cache = cache(&[(5, 11), (6, 12), (7, 13), (7, 12)]);
    assert_eq!(end(&cache, 5, 20), (5, 12));
    assert_eq!(end(&cache, 6, 20), (5, 12));
}

#[test]
fn should_return_unsupported_if_no_epoch_recorded() {
    assert_eq!(end(&LeaderEpochCache::default(), 0, 0), (-1, -1));
}

#[test]
fn should_return_unsupported_if_no_epoch_recorded_and_undefined_epoch_requested() {
    assert_eq!(end(&LeaderEpochCache::default(), -1, 73), (-1, -1));
}

#[test]
fn should_fetch_end_offset_of_empty_cache() {
    assert_eq!(end(&LeaderEpochCache::default(), 7, 42), (-1, -1));
}

#[test]
fn should_fetch_latest_epoch_of_empty_cache() {
    assert_eq!(LeaderEpochCache::default().latest_epoch(), None);
}

#[test]
fn should_return_invalid_offset_if_epoch_is_requested_which_is_not_currently_tracked() {
    assert_eq!(end(&cache(&[(2, 100)]), 3, 200), (-1, -1));
}

#[test]
fn should_return_first_epoch_if_requested_epoch_less_than_first_epoch() {
    assert_eq!(end(&cache(&[(5, 11), (6, 12), (7, 13)]), 4, 20), (4, 11));
}

#[test]
fn should_get_first_offset_of_subsequent_epoch_when_offset_requested_for_previous_epoch() {
    assert_eq!(end(&cache(&[(1, 11), (2, 13), (3, 15)]), 2, 17), (2, 15));
}

#[test]
fn should_return_next_available_epoch_if_there_is_no_exact_epoch_for_the_one_requested() {
    let cache = cache(&[(0, 10), (2, 13), (4, 17)]);
    assert_eq!(end(&cache, 1, 20), (0, 13));
    assert_eq!(end(&cache, 2, 20), (2, 17));
    assert_eq!(end(&cache, 3, 20), (2, 17));
}

#[test]
fn should_support_epochs_that_do_not_start_from_zero() {
    let cache = cache(&[(2, 6)]);
    assert_eq!(end(&cache, 2, 7), (2, 7));
    assert_eq!(entries(&cache), [(2, 6)]);
}

#[test]
fn should_persist_epochs_between_instances() {
    let cache = cache(&[(2, 6)]);
    assert_eq!(LeaderEpochCache::decode(&cache.encode()), Ok(cache));
}

#[test]
fn should_increase_and_track_epochs_as_leaders_change_many_times() {
    let mut cache = cache(&[(0, 0), (1, 0)]);
    assert_eq!(end(&cache, 1, 0), (1, 0));
    assert_eq!(end(&cache, 0, 0), (0, 0));
    assert_eq!(end(&cache, 1, 5), (1, 5));
    cache.assign(LeaderEpoch(2), Offset(5)).unwrap();
    assert_eq!(end(&cache, 2, 10), (2, 10));
    assert_eq!(end(&cache, 1, 10), (1, 5));
    assert_eq!(end(&cache, 0, 10), (0, 0));
}

#[test]
fn should_increase_and_track_epochs_as_follower_receives_many_messages() {
    let mut cache = LeaderEpochCache::default();
    for offset in 0..9 {
        cache.assign(LeaderEpoch(i32::try_from(offset / 3).unwrap()), Offset(offset)).unwrap();
    }
    assert_eq!([end(&cache, 0, 9), end(&cache, 1, 9), end(&cache, 2, 9)], [(0, 3), (1, 6), (2, 9)]);
}

#[test]
fn should_drop_entries_on_epoch_boundary_when_removing_latest_entries() {
    check_end(8, &[(2, 6)]);
}

#[test]
fn should_drop_entries_between_epoch_boundary_when_removing_newest() {
    check_end(9, &[(2, 6), (3, 8)]);
}

#[test]
fn should_preserve_reset_offset_on_clear_earliest_if_one_exists() {
    check_start(8, &[(3, 8), (4, 11)]);
}

#[test]
fn should_update_saved_offset_when_offset_to_clear_to_is_between_epochs() {
    check_start(9, &[(3, 9), (4, 11)]);
}

#[test]
fn should_update_offset_between_epoch_boundaries_on_clear_earliest() {
    check_start(9, &[(3, 9), (4, 11)]);
}

#[test]
fn should_update_offset_between_epoch_boundaries_on_clear_earliest2() {
    let mut cache = cache(&[(0, 0), (1, 7), (2, 10)]);
    cache.truncate_from_start(Offset(5));
    assert_eq!(entries(&cache), [(0, 5), (1, 7), (2, 10)]);
}

#[test]
fn should_not_clear_anything_if_offset_to_early() {
    check_start(1, &[(2, 6), (3, 8), (4, 11)]);
}

#[test]
fn should_not_clear_anything_if_offset_to_first_offset() {
    check_start(6, &[(2, 6), (3, 8), (4, 11)]);
}

#[test]
fn should_retain_latest_epoch_on_clear_all_earliest() {
    check_start(11, &[(4, 11)]);
}

#[test]
fn should_retain_latest_epoch_on_clear_all_earliest_and_update_its_offset() {
    check_start(15, &[(4, 15)]);
}

#[test]
fn should_not_reset_epoch_history_head_if_undefined_passed() {
    check_end(-1, &[(2, 6), (3, 8), (4, 11)]);
}

#[test]
fn should_not_reset_epoch_history_tail_if_undefined_passed() {
    check_start(-1, &[(2, 6), (3, 8), (4, 11)]);
}

#[test]
fn should_clear_earliest_on_empty_cache() {
    assert!(!LeaderEpochCache::default().truncate_from_start(Offset(7)));
}

#[test]
fn should_clear_latest_on_empty_cache() {
    assert!(!LeaderEpochCache::default().truncate_from_end(Offset(7)));
}

#[test]
fn should_fetch_epoch_for_given_offset() {
    let cache = cache(&[(0, 10), (1, 20), (5, 30)]);
    for (offset, epoch) in [(25, Some(1)), (20, Some(1)), (30, Some(5)), (50, Some(5)), (5, None)] {
        assert_eq!(cache.epoch_for_offset(Offset(offset)), epoch.map(LeaderEpoch), "{offset}");
    }
}

#[test]
fn should_write_checkpoint_on_truncation() {
    let mut cache = three();
    cache.truncate_from_end(Offset(11));
    assert_eq!(cache.encode(), "0\n2\n2 6\n3 8\n");
    cache.truncate_from_start(Offset(8));
    assert_eq!(cache.encode(), "0\n1\n3 8\n");
}
