#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! What Kafka's AbstractFetcherThreadTest and ReplicaFetcherThreadTest say about two logs, without the threads.

use cleanslate_log::log::{FetchIsolation, LeaderEpochCache, LogConfig};
use cleanslate_log::mirror::{DivergingEpoch, FetchPoint, OutOfRange, fetch_point, out_of_range, truncation_offset};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::legacy::follow_bytes;
use crate::upstream::support::{Log, NOW, epochs, follow, hw, new_log, placed, plain, start_at};

/// Single records under these leader epochs, from offset 0 on.
fn of_epochs(of_records: &[i32]) -> Log {
    let mut log = new_log(&LogConfig::default());
    for (epoch, offset) in of_records.iter().zip(0..) {
        follow(&mut log, &[placed(plain(1), offset, *epoch)]).unwrap();
    }
    log
}

/// One fetch and what comes of it; the epoch that the follower last fetched.
fn fetch(follower: &mut Log, leader: &Log) -> Option<i32> {
    let (from, last) = (follower.log_end_offset(), follower.leader_epochs().latest_epoch());
    if from < leader.log_start_offset() || from > leader.log_end_offset() {
        match out_of_range(leader.log_start_offset(), leader.log_end_offset(), from) {
            OutOfRange::TruncateTo(offset) => assert_eq!(follower.truncate_to(offset, NOW), Ok(true)),
            OutOfRange::StartOverAt(offset) => follower.truncate_fully_and_start_at(offset, NOW).unwrap(),
            OutOfRange::Retry => {}
        }
        return last.map(LeaderEpoch::get);
    }
    let point = last.map(|last| fetch_point(leader.leader_epochs(), leader.log_end_offset(), last, from));
    if let Some(FetchPoint::Diverging(diverging)) = point {
        let target = truncation_offset(follower.leader_epochs(), from, &diverging);
        follower.truncate_to(target, NOW).unwrap();
    } else {
        let records = leader.read(from, FetchIsolation::LogEnd, usize::MAX).unwrap();
        follow_bytes(follower, records).unwrap();
        follower.maybe_update_high_watermark(leader.high_watermark());
    }
    last.map(LeaderEpoch::get)
}

#[test]
fn test_simple_fetch() {
    let mut leader = of_epochs(&[0, 0]);
    hw(&mut leader, 2);
    let mut follower = of_epochs(&[]);
    fetch(&mut follower, &leader);
    assert_eq!((follower.log_end_offset(), follower.high_watermark()), (Offset(2), Offset(2)));
}

#[test]
fn test_truncation() {
    let (mut follower, mut leader) = (of_epochs(&[0, 2, 4]), of_epochs(&[1, 3, 5]));
    hw(&mut leader, 2);
    for _ in 0..4 {
        fetch(&mut follower, &leader);
    }
    assert_eq!(follower.batches().unwrap(), leader.batches().unwrap());
    assert_eq!((epochs(&follower), follower.high_watermark()), (epochs(&leader), Offset(2)));
}

#[test]
fn test_diverging_epochs() {
    let (mut follower, leader) = (of_epochs(&[0, 2, 4]), of_epochs(&[0, 2, 5]));
    let last: Vec<Option<i32>> = (0..3).map(|_| fetch(&mut follower, &leader)).collect();
    assert_eq!(last, [Some(4), Some(2), Some(5)]);
    assert_eq!(follower.batches().unwrap(), leader.batches().unwrap());
}

#[test]
fn test_follower_fetch_out_of_range_high() {
    let leader = of_epochs(&[0, 2, 4]);
    let mut follower = of_epochs(&[]);
    fetch(&mut follower, &leader);
    assert_eq!(follower.log_end_offset(), Offset(3));
    fetch(&mut follower, &of_epochs(&[]));
    let start = follower.log_start_offset();
    assert_eq!((start, follower.log_end_offset(), follower.high_watermark()), (Offset(0), Offset(0), Offset(0)));
}

#[test]
fn test_follower_fetch_out_of_range_low() {
    let mut leader = of_epochs(&[0, 2, 4]);
    hw(&mut leader, 3);
    start_at(&mut leader, 2);
    let mut follower = of_epochs(&[0]);
    fetch(&mut follower, &leader);
    assert_eq!((follower.log_start_offset(), follower.log_end_offset()), (Offset(2), Offset(2)));
    fetch(&mut follower, &leader);
    assert_eq!(follower.batches().unwrap(), leader.batches().unwrap()[2..]);
    assert_eq!(follower.log_start_offset(), Offset(2));
}

#[test]
fn test_corrupt_message() {
    let leader = of_epochs(&[0, 0]);
    let mut records = leader.read(Offset(0), FetchIsolation::LogEnd, usize::MAX).unwrap().to_vec();
    // A byte of the checksum of the first batch.
    records[20] ^= 1;
    let mut follower = of_epochs(&[]);
    assert_eq!(follow_bytes(&mut follower, records.into()), Err("CorruptRecordException"));
    fetch(&mut follower, &leader);
    assert_eq!(follower.log_end_offset(), Offset(2));
}

fn cache(entries: &[(i32, i64)]) -> LeaderEpochCache {
    let mut cache = LeaderEpochCache::default();
    entries.iter().for_each(|(epoch, offset)| assert_eq!(cache.assign(LeaderEpoch(*epoch), Offset(*offset)), Ok(true)));
    cache
}

fn diverging(epoch: i32, end: i64) -> DivergingEpoch {
    DivergingEpoch { epoch: LeaderEpoch(epoch), end_offset: Offset(end) }
}

/// The follower's log ends at 200; what it knows of the epoch in the answer is where it ends, or where the one below does.
#[test]
fn should_truncate_if_leader_replies_with_diverging_epoch_not_known_to_follower() {
    for (own, epoch, answers, expected) in [
        (cache(&[(4, 0), (5, 149)]), 4, [140, 141], [140, 141]),
        (cache(&[(2, 0), (4, 129)]), 3, [130, 131], [129, 129]),
        (cache(&[(1, 0), (3, 119)]), 2, [120, 121], [119, 119]),
    ] {
        let targets = answers.map(|end| truncation_offset(&own, Offset(200), &diverging(epoch, end)).get());
        assert_eq!(targets, expected, "{epoch}");
    }
}

#[test]
fn test_truncate_on_fetch_does_not_update_high_watermark() {
    let mut log = of_epochs(&[]);
    follow(&mut log, &[placed(plain(140), 0, 4), placed(plain(9), 140, 4), placed(plain(1), 149, 5)]).unwrap();
    hw(&mut log, 130);
    assert_eq!(
        (log.log_end_offset(), log.end_offset_for_epoch(LeaderEpoch(4))),
        (Offset(150), Some((LeaderEpoch(4), Offset(149))))
    );
    let target = truncation_offset(log.leader_epochs(), log.log_end_offset(), &diverging(4, 140));
    assert_eq!(target, Offset(140));
    log.truncate_to(target, NOW).unwrap();
    assert_eq!((log.log_end_offset(), log.high_watermark()), (Offset(140), Offset(130)));
}
