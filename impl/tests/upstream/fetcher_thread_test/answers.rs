#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Answers with records, and answers that tell where the logs part.

use cleanslate_log::log::{FetchData, LeaderEpochCache, LogConfig};
use cleanslate_log::replication::{
    EpochEndOffset, FetchPhase, Fetched, FetcherEvent, ReadOffsets, TruncationMode, TruncationPoint, truncation_point,
};
use cleanslate_log::types::{LeaderEpoch, Offset, OffsetMetadata};

use crate::upstream::replication::{Cluster, of_epochs, topic, with_hw};
use crate::upstream::support::{epochs, follow, new_log, placed, plain};

#[test]
fn test_simple_fetch() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 0);
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(2), 0, 0)]).unwrap();
    cluster.lead(&partition, with_hw(log, 2), 0);
    cluster.work();
    assert_eq!(cluster.ends(&partition), (0, 2, 2));
    assert_eq!(cluster.state(&partition).lag, Some(0));
}

#[test]
fn test_truncation() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[0, 2, 4]));
    cluster.add(&partition, 3, 5);
    cluster.lead(&partition, with_hw(of_epochs(&[1, 3, 5]), 2), 5);
    for _ in 0..6 {
        cluster.work();
    }
    assert!(cluster.same_logs(&partition));
    assert_eq!((epochs(cluster.follower(&partition)), cluster.ends(&partition)), (vec![(1, 0), (3, 1), (5, 2)], (0, 3, 2)));
}

#[test]
fn test_diverging_epochs() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[0, 2, 4]));
    cluster.add(&partition, 3, 5);
    cluster.lead(&partition, with_hw(of_epochs(&[0, 2, 5]), 2), 5);
    for last_fetched in [4, 2, 5] {
        let state = cluster.state(&partition);
        assert_eq!((state.phase, state.last_fetched_epoch), (FetchPhase::Fetching, Some(LeaderEpoch(last_fetched))));
        cluster.work();
    }
    assert!(cluster.same_logs(&partition));
}

/// An answer to a request, with the high watermark of the leader.
fn answer(diverging: Option<(i32, i64)>, high_watermark: i64) -> Fetched {
    let offsets = ReadOffsets {
        log_start_offset: Offset(0),
        log_end_offset: Offset(high_watermark),
        high_watermark: Offset(high_watermark),
        last_stable_offset: Offset(high_watermark),
    };
    let diverging = diverging.map(|(epoch, end)| EpochEndOffset { epoch: LeaderEpoch(epoch), end_offset: Offset(end) });
    let offset = OffsetMetadata::offset_only(Offset(0));
    Fetched { data: FetchData { records: bytes::Bytes::new(), aborted: None, offset }, diverging, offsets }
}

#[test]
fn test_truncation_on_fetch_skipped_if_partition_removed() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, with_hw(of_epochs(&[0, 2, 4]), 2));
    cluster.add(&partition, 6, 4);
    let requests = cluster.requests();
    cluster.on_fetch(&requests, vec![(partition.clone(), Ok(answer(Some((4, 3)), 2)))]);
    assert_eq!(cluster.truncations(), 1);
    let requests = cluster.requests();
    let removed = cluster.fetcher.remove_partition(&partition);
    assert_eq!(removed.map(|state| state.fetch_offset), Some(Offset(3)));
    cluster.on_fetch(&requests, vec![(partition.clone(), Ok(answer(Some((4, 2)), 2)))]);
    assert_eq!((cluster.truncations(), cluster.ends(&partition).1), (1, 3));
}

#[test]
fn test_truncate_on_fetch_does_not_process_partition_data() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, with_hw(of_epochs(&[0, 0, 2, 4, 4, 4]), 1));
    cluster.add(&partition, 3, 5);
    assert_eq!(cluster.state(&partition).last_fetched_epoch, Some(LeaderEpoch(4)));
    cluster.lead(&partition, with_hw(of_epochs(&[0, 0, 2, 5, 5]), 4), 5);
    cluster.work();
    assert_eq!((cluster.truncations(), cluster.appends(), cluster.ends(&partition)), (1, 0, (0, 3, 1)));
    cluster.work();
    cluster.work();
    assert!(cluster.same_logs(&partition));
    assert_eq!(cluster.state(&partition).last_fetched_epoch, Some(LeaderEpoch(5)));
    assert_eq!((cluster.truncations(), cluster.appends(), cluster.ends(&partition)), (1, 2, (0, 5, 4)));
}

/// The follower's log ends at 200; what it knows of the epoch in the answer is where it ends, or where the one below does.
#[test]
fn should_truncate_if_leader_replies_with_diverging_epoch_not_known_to_follower() {
    for (own, epoch, answers, expected) in [
        (cache(&[(4, 0), (5, 149)]), 4, [140, 141], [140, 141]),
        (cache(&[(2, 0), (4, 129)]), 3, [130, 131], [129, 129]),
        (cache(&[(1, 0), (3, 119)]), 2, [120, 121], [119, 119]),
    ] {
        let answer = |end| EpochEndOffset { epoch: LeaderEpoch(epoch), end_offset: Offset(end) };
        let targets = answers.map(|end| truncation_point(&own, Offset(200), &answer(end)).offset.get());
        assert_eq!(targets, expected, "{epoch}");
    }
}

fn cache(entries: &[(i32, i64)]) -> LeaderEpochCache {
    let mut cache = LeaderEpochCache::default();
    entries.iter().for_each(|(epoch, offset)| assert_eq!(cache.assign(LeaderEpoch(*epoch), Offset(*offset)), Ok(true)));
    cache
}

#[test]
fn test_truncate_on_fetch_does_not_update_high_watermark() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(140), 0, 4), placed(plain(9), 140, 4), placed(plain(1), 149, 5)]).unwrap();
    cluster.follow(&partition, with_hw(log, 130));
    cluster.add(&partition, 150, 5);
    assert_eq!(cluster.ends(&partition), (0, 150, 130));
    let requests = cluster.requests();
    cluster.on_fetch(&requests, vec![(partition.clone(), Ok(answer(Some((4, 140)), 160)))]);
    let cut = FetcherEvent::Truncated(TruncationPoint { offset: Offset(140), completed: true });
    assert_eq!(cluster.events, [(partition.clone(), cut)]);
    assert_eq!(cluster.ends(&partition), (0, 140, 130));
}

/// The fetcher asks under epoch 1 by now; the answer is one under epoch 0.
#[test]
fn test_ignore_fetch_response_when_leader_epoch_changed() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 0);
    cluster.lead(&partition, with_hw(of_epochs(&[0]), 1), 0);
    cluster.truncate();
    let requests = cluster.requests();
    let answers = cluster.answer_fetch(&requests);
    assert!(answers[0].1.as_ref().is_ok_and(|fetched| !fetched.data.records.is_empty()));
    cluster.add(&partition, 0, 1);
    cluster.truncate();
    assert_eq!(cluster.state(&partition).phase, FetchPhase::Fetching);
    cluster.on_fetch(&requests, answers);
    assert_eq!((cluster.ends(&partition), cluster.appends()), ((0, 0, 0), 0));
    assert_eq!(cluster.events.last(), Some(&(partition, FetcherEvent::Ignored)));
}

/// Batches above the epoch of the fetch are left out, with all behind them.
#[test]
fn test_replicate_batches_up_to_leader_epoch() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 4);
    cluster.truncate();
    let batches: Vec<u8> = (3..6).flat_map(|epoch| placed(plain(1), i64::from(epoch) - 3, epoch).bytes().to_vec()).collect();
    let mut answer = answer(None, 0);
    answer.data.records = batches.into();
    let requests = cluster.requests();
    cluster.on_fetch(&requests, vec![(partition.clone(), Ok(answer))]);
    assert_eq!(epochs(cluster.follower(&partition)), [(3, 0), (4, 1)]);
    let state = cluster.state(&partition);
    assert_eq!((state.fetch_offset, state.last_fetched_epoch), (Offset(2), Some(LeaderEpoch(4))));
}

#[test]
fn test_corrupt_message() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 0);
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(2), 0, 0)]).unwrap();
    cluster.lead(&partition, with_hw(log, 2), 0);
    cluster.truncate();
    let requests = cluster.requests();
    let mut answers = cluster.answer_fetch(&requests);
    let fetched = answers[0].1.as_mut().unwrap();
    let mut records = fetched.data.records.to_vec();
    // A byte of the checksum of the batch.
    records[20] ^= 1;
    fetched.data.records = records.into();
    cluster.on_fetch(&requests, answers);
    assert!(matches!(cluster.events.last(), Some((_, FetcherEvent::Retried(_)))));
    assert_eq!((cluster.ends(&partition), cluster.is_failed(&partition)), ((0, 0, 0), false));
    cluster.work();
    assert_eq!(cluster.ends(&partition).1, 2);
    assert_eq!(cluster.state(&partition).delayed_until, None);
}

/// An answer without records tells that the follower is not behind.
#[test]
fn test_lag_is_updated_when_no_records() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[2]));
    cluster.add(&partition, 1, 2);
    assert_eq!(cluster.state(&partition).lag, None);
    let requests = cluster.requests();
    cluster.on_fetch(&requests, vec![(partition.clone(), Ok(answer(None, 0)))]);
    let state = cluster.state(&partition);
    assert_eq!((state.lag, state.fetch_offset, state.last_fetched_epoch), (Some(0), Offset(1), Some(LeaderEpoch(2))));
}
