#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Logs that are cut before the first fetch, and what happens while the leader is asked.

use cleanslate_log::log::LogConfig;
use cleanslate_log::log_dir::TopicPartition;
use cleanslate_log::record::Compression;
use cleanslate_log::replication::{
    EpochEndOffset, FetchPhase, FetcherEvent, TruncationMode, TruncationPoint, UnrequestedPartition,
};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::legacy::{follow_bytes, same};
use crate::upstream::replication::{Cluster, of_epochs, topic, with_hw};
use crate::upstream::support::{Log, NOW, new_log};

/// Three records of magic 1, which have no leader epochs.
fn without_epochs() -> Log {
    let mut log = new_log(&LogConfig::default());
    for offset in 0..3 {
        follow_bytes(&mut log, same(1, offset, Compression::None, 1)).unwrap();
    }
    assert_eq!((log.log_end_offset(), log.leader_epochs().latest_epoch()), (Offset(3), None));
    log
}

#[test]
fn test_truncate_to_high_watermark_if_leader_epoch_info_not_available() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, with_hw(without_epochs(), 2));
    cluster.add(&partition, 2, 5);
    cluster.work();
    let cut = FetcherEvent::Truncated(TruncationPoint { offset: Offset(2), completed: true });
    assert_eq!(cluster.events.first(), Some(&(partition.clone(), cut)));
    assert_eq!(cluster.ends(&partition).1, 2);
    let state = cluster.state(&partition);
    assert_eq!((state.fetch_offset, state.is_ready_for_fetch(NOW)), (Offset(2), true));
}

#[test]
fn test_truncate_to_high_watermark_during_remove_partitions() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, with_hw(without_epochs(), 2));
    cluster.add(&partition, 2, 5);
    let plan = cluster.fetcher.truncation_plan(&cluster.followers, NOW);
    assert_eq!((plan.requests, plan.to_high_watermark.as_slice()), (Vec::new(), [partition.clone()].as_slice()));
    cluster.fetcher.remove_partition(&partition);
    let events = cluster.fetcher.truncate_to_high_watermark(&plan.to_high_watermark, &mut cluster.followers, NOW);
    assert_eq!(events, [(partition.clone(), FetcherEvent::Ignored)]);
    assert_eq!((cluster.ends(&partition).1, cluster.fetcher.state(&partition)), (3, None));
}

#[test]
fn test_truncation_skipped_if_no_epoch_change() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 5);
    cluster.lead(&partition, with_hw(of_epochs(&[1, 3, 5]), 2), 5);
    cluster.work();
    assert_eq!((cluster.ends(&partition).1, cluster.truncations()), (1, 1));
    cluster.add(&partition, 3, 5);
    cluster.work();
    assert_eq!((cluster.ends(&partition).1, cluster.truncations()), (2, 1));
}

/// An empty log that has led under epoch 0, so that there is an epoch to ask about before the first fetch.
fn asking(partition: &TopicPartition, current_leader_epoch: i32) -> Cluster {
    let mut cluster = Cluster::new(TruncationMode::BeforeFetch);
    let mut log = of_epochs(&[]);
    log.assign_epoch_start_offset(LeaderEpoch(0)).unwrap();
    cluster.follow(partition, log);
    cluster.add(partition, 0, current_leader_epoch);
    cluster
}

/// The follower hears of epoch 1 while the leader, which has heard of it or has not, is asked under epoch 0: the answer, be it
/// that the request is fenced or where the epoch ends, is not one to what would be asked now.
#[test]
fn test_parameterized_leader_epoch_change_during_fetch_epochs_from_leader() {
    for leader_epoch in [0, 1] {
        let partition = TopicPartition::new("topic", cleanslate_log::types::PartitionId(1));
        let mut cluster = asking(&partition, 0);
        cluster.lead(&partition, of_epochs(&[0]), leader_epoch);
        let requests = cluster.fetcher.truncation_plan(&cluster.followers, NOW).requests;
        let answers = cluster.answer_epochs(&requests);
        assert_eq!(answers[0].1.is_ok(), leader_epoch == 0);
        cluster.fetcher.remove_partition(&partition);
        cluster.add(&partition, 0, 1);
        cluster.on_epochs(&requests, answers);
        assert_eq!(cluster.events, [(partition.clone(), FetcherEvent::Ignored)]);
        let state = cluster.state(&partition);
        assert_eq!((state.phase, state.current_leader_epoch), (FetchPhase::Truncating, LeaderEpoch(1)));
        cluster.lead(&partition, of_epochs(&[0]), 1);
        cluster.work();
        assert!(cluster.same_logs(&partition));
    }
}

#[test]
fn test_truncate_to_epoch_end_offsets_during_remove_partitions() {
    let partition = topic("topic");
    let mut cluster = asking(&partition, 0);
    cluster.lead(&partition, of_epochs(&[0]), 0);
    let requests = cluster.fetcher.truncation_plan(&cluster.followers, NOW).requests;
    let answers = cluster.answer_epochs(&requests);
    cluster.fetcher.remove_partition(&partition);
    cluster.on_epochs(&requests, answers);
    assert_eq!((cluster.fetcher.state(&partition), cluster.is_failed(&partition)), (None, false));
    cluster.bump(&partition, 1);
    cluster.work();
    assert_eq!(cluster.follower(&partition).batches(), Ok(Vec::new()));
    assert_eq!(cluster.events, [(partition, FetcherEvent::Ignored)]);
}

#[test]
fn test_truncation_throws_exception_if_leader_returns_partitions_not_requested_in_fetch_epochs() {
    let partition = topic("topic");
    let mut cluster = asking(&partition, 0);
    cluster.lead(&partition, of_epochs(&[]), 0);
    let requests = cluster.fetcher.truncation_plan(&cluster.followers, NOW).requests;
    let mut answers = cluster.answer_epochs(&requests);
    answers.push((topic("topic2"), Ok(Some(EpochEndOffset { epoch: LeaderEpoch(0), end_offset: Offset(0) }))));
    let before = cluster.state(&partition);
    let result = cluster.fetcher.on_epoch_end_offsets(&requests, answers, &mut cluster.followers, NOW);
    assert_eq!(result, Err(UnrequestedPartition(topic("topic2"))));
    assert_eq!(cluster.state(&partition), before);
}

/// Both logs have leader epochs, so nothing is asked about them before the fetch, which asks for both partitions at once.
#[test]
fn should_not_fetch_leader_epoch_on_first_fetch_with_truncate_on_fetch() {
    let (mut cluster, partitions) = (Cluster::new(TruncationMode::OnFetch), ["topic1", "topic2"].map(topic));
    for partition in &partitions {
        cluster.follow(partition, of_epochs(&[5]));
        cluster.add(partition, 1, 5);
        cluster.lead(partition, of_epochs(&[5, 5]), 5);
    }
    let plan = cluster.fetcher.truncation_plan(&cluster.followers, NOW);
    assert_eq!((plan.requests.len(), plan.to_high_watermark.len()), (0, 0));
    assert_eq!(
        cluster.requests().iter().map(|(partition, _)| partition).collect::<Vec<_>>(),
        partitions.iter().collect::<Vec<_>>()
    );
    cluster.work();
    assert_eq!((cluster.truncations(), cluster.appends()), (0, 2));
}
