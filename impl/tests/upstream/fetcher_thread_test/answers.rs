#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Answers with records, and answers that tell where the logs part.

use cleanslate_log::log::{FetchData, LogConfig};
use cleanslate_log::log_dir::TopicPartition;
use cleanslate_log::replication::{
    EpochEndOffset, FetchPhase, Fetched, FetcherEvent, ReadOffsets, TruncationMode, TruncationPoint,
};
use cleanslate_log::types::{LeaderEpoch, Offset, OffsetMetadata, PartitionId};

use crate::upstream::replication::{Cluster, of_epochs, topic, with_hw};
use crate::upstream::support::{Log, NOW, epochs, follow, new_log, placed, plain};

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

/// Each round tells both partitions of an epoch that their leader has; never is one asked where an epoch ends. What Kafka's mock of a log
/// says of its epochs no single log could: it is another one in the last round, and that epoch 1 is left then is known.
#[test]
fn should_truncate_if_leader_replies_with_diverging_epoch_not_known_to_follower() {
    let (mut cluster, partitions) =
        (Cluster::new(TruncationMode::OnFetch), [0, 1].map(|id| TopicPartition::new("topic1", PartitionId(id))));
    for partition in &partitions {
        cluster.follow(partition, with_hw(of_ranges(&[(1, 0, 119), (2, 119, 129), (4, 129, 149), (5, 149, 200)]), 115));
        cluster.add(partition, 200, 5);
    }
    let round = |cluster: &mut Cluster, told: Option<(i32, [i64; 2])>, last_fetched: i32| {
        let plan = cluster.fetcher.truncation_plan(&cluster.followers, NOW);
        assert_eq!((plan.requests, plan.to_high_watermark), (Vec::new(), Vec::new()));
        let requests = cluster.requests();
        assert_eq!(requests.iter().map(|(partition, _)| partition).collect::<Vec<_>>(), partitions.iter().collect::<Vec<_>>());
        assert!(requests.iter().all(|(_, request)| request.last_fetched_epoch == Some(LeaderEpoch(last_fetched))));
        let Some((epoch, ends)) = told else { return };
        let answers = partitions.iter().zip(ends).map(|(partition, end)| (partition.clone(), Ok(answer(Some((epoch, end)), 0))));
        cluster.on_fetch(&requests, answers.collect());
    };
    let at = |cluster: &Cluster| {
        partitions.clone().map(|partition| {
            let state = cluster.state(&partition);
            assert_eq!((state.phase, state.lag), (FetchPhase::Fetching, None));
            assert_eq!(state.fetch_offset, cluster.follower(&partition).log_end_offset());
            (state.fetch_offset.get(), state.last_fetched_epoch.map(LeaderEpoch::get))
        })
    };
    round(&mut cluster, None, 5);
    assert_eq!(at(&cluster), [(200, Some(5)); 2]);
    round(&mut cluster, Some((4, [140, 141])), 5);
    assert_eq!(at(&cluster), [(140, Some(4)), (141, Some(4))]);
    round(&mut cluster, Some((3, [130, 131])), 4);
    assert_eq!(at(&cluster), [(129, Some(2)); 2]);
    partitions.iter().for_each(|partition| cluster.follow(partition, with_hw(of_ranges(&[(1, 0, 119), (3, 119, 129)]), 115)));
    round(&mut cluster, Some((2, [120, 121])), 2);
    assert_eq!(at(&cluster), [(119, Some(1)); 2]);
    assert_eq!(cluster.truncations(), 6);
}

/// A batch for each leader epoch, first offset and the offset behind the last.
fn of_ranges(ranges: &[(i32, i64, i64)]) -> Log {
    let mut log = new_log(&LogConfig::default());
    for (epoch, from, to) in ranges {
        follow(&mut log, &[placed(plain(usize::try_from(to - from).unwrap()), *from, *epoch)]).unwrap();
    }
    log
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
