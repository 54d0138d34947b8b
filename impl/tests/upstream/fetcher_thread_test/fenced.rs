#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Leaders under another epoch than the fetcher's, and partitions that fail.

use cleanslate_log::log::{LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::log_dir::TopicPartition;
use cleanslate_log::replication::{FetchPhase, Fetcher, FetcherConfig, FetcherEvent, LeaderError, TruncationMode};
use cleanslate_log::storage::FaultyStorage;
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::replication::{Cluster, of_epochs, topic, with_hw};
use crate::upstream::support::{NOW, follow, later, new_log, placed, plain};

/// The follower's log is empty, so it is cut at its high watermark, and then fetched under an epoch that the leader has left.
#[test]
fn test_fenced_truncation() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 0);
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(2), 0, 1)]).unwrap();
    cluster.lead(&partition, with_hw(log, 2), 1);
    cluster.work();
    assert_eq!(cluster.ends(&partition), (0, 0, 0));
    assert!(cluster.is_failed(&partition));
    assert_eq!(cluster.events.last(), Some(&(partition, FetcherEvent::Fenced)));
}

#[test]
fn test_fenced_fetch() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 0);
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(2), 0, 0)]).unwrap();
    cluster.lead(&partition, with_hw(log, 2), 0);
    cluster.work();
    assert_eq!(cluster.ends(&partition), (0, 2, 2));
    cluster.bump(&partition, 1);
    cluster.work();
    assert!(cluster.is_failed(&partition));
}

/// The follower has heard of epoch 1, the leader has not. The end of epoch 0, which the follower has led without a record, is asked for
/// before the first fetch.
#[test]
fn test_unknown_leader_epoch_in_truncation() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::BeforeFetch), topic("topic"));
    let mut log = of_epochs(&[]);
    log.assign_epoch_start_offset(LeaderEpoch(0)).unwrap();
    cluster.follow(&partition, log);
    cluster.add(&partition, 0, 1);
    cluster.lead(&partition, of_epochs(&[0]), 0);
    cluster.work();
    assert_eq!((cluster.ends(&partition).1, cluster.state(&partition).phase), (0, FetchPhase::Truncating));
    assert_eq!(cluster.events, [(partition.clone(), FetcherEvent::Delayed(LeaderError::UnknownLeaderEpoch))]);
    cluster.bump(&partition, 1);
    cluster.work();
    assert_eq!((cluster.ends(&partition).1, cluster.state(&partition).phase), (1, FetchPhase::Fetching));
}

/// A leader that goes back to an earlier epoch: one that was restarted and has not heard of its own.
#[test]
fn test_unknown_leader_epoch_while_fetching() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 1);
    let leader_log = with_hw(of_epochs(&[0, 0]), 2);
    for (leader_epoch, log_end) in [(1, 1), (0, 1), (1, 2)] {
        cluster.lead(&partition, leader_log.clone(), leader_epoch);
        cluster.work();
        assert_eq!((cluster.ends(&partition).1, cluster.state(&partition).phase), (log_end, FetchPhase::Fetching));
    }
}

/// The fetch fails as a whole; its partitions wait for the back-off time.
#[test]
fn test_delay() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.fetcher = Fetcher::new(FetcherConfig { backoff_ms: 250, ..FetcherConfig::default() });
    cluster.follow(&partition, of_epochs(&[0]));
    cluster.add(&partition, 1, 0);
    assert_eq!(cluster.requests().len(), 1);
    cluster.fetcher.on_fetch_failed(NOW);
    for (ms, requests) in [(0, 0), (249, 0), (250, 1)] {
        cluster.now = later(ms);
        assert_eq!(cluster.requests().len(), requests, "{ms}");
    }
}

/// Only the partitions with errors wait.
#[test]
fn test_partitions_in_error() {
    let mut cluster = Cluster::new(TruncationMode::OnFetch);
    cluster.fetcher = Fetcher::new(FetcherConfig { backoff_ms: 250, ..FetcherConfig::default() });
    let partitions = ["topic1", "topic2", "topic3"].map(topic);
    for partition in &partitions {
        cluster.follow(partition, of_epochs(&[0]));
        cluster.add(partition, 1, 0);
        cluster.lead(partition, of_epochs(&[0, 0]), 0);
    }
    let requests = cluster.requests();
    let mut answers = cluster.answer_fetch(&requests);
    answers[0].1 = Err(LeaderError::UnknownTopicId);
    answers[1].1 = Err(LeaderError::InconsistentTopicId);
    cluster.on_fetch(&requests, answers);
    assert_eq!(partitions.map(|partition| cluster.state(&partition).is_delayed(NOW)), [true, true, false]);
}

/// A log of records of epoch 0 over a storage that fails at the next change, or does not.
fn over(fails: bool, records: usize) -> PartitionLog<FaultyStorage> {
    let files = of_epochs(&vec![0; records]).storage().clone();
    let open = |storage| PartitionLog::open(storage, LogConfig::default(), OpenOptions::new(Recovery::Clean), NOW).unwrap().0;
    let log = open(FaultyStorage::over(files.clone()));
    if !fails {
        return log;
    }
    let mut storage = FaultyStorage::over(files);
    storage.fail_after(log.storage().calls());
    open(storage)
}

/// The first partition's log fails in the first round; the second one is fetched in the second. The first one has another chance under
/// the next epoch.
fn one_fails(mut cluster: Cluster<FaultyStorage>, partitions: &[TopicPartition; 2]) {
    let [first, second] = partitions;
    cluster.work();
    assert!(cluster.is_failed(first));
    assert!(cluster.events.iter().any(|(partition, event)| partition == first && matches!(event, FetcherEvent::Failed(_))));
    cluster.work();
    assert_eq!((cluster.state(second).phase, cluster.is_failed(second)), (FetchPhase::Fetching, false));
    assert!(cluster.same_logs(second));
    cluster.fetcher.remove_partition(first);
    cluster.add(first, 0, 1);
    assert_eq!((cluster.state(first).phase, cluster.is_failed(first)), (FetchPhase::Truncating, false));
}

#[test]
fn test_fetcher_thread_handling_partition_failure_during_appending() {
    let (mut cluster, partitions) = (Cluster::new(TruncationMode::BeforeFetch), ["topic1", "topic2"].map(topic));
    for (partition, fails) in partitions.iter().zip([true, false]) {
        cluster.follow(partition, over(fails, 0));
        cluster.add(partition, 0, 0);
        cluster.lead(partition, of_epochs(&[0, 0]), 0);
    }
    one_fails(cluster, &partitions);
}

/// The follower's record was lost by its leader, which led on under the same epoch.
#[test]
fn test_fetcher_thread_handling_partition_failure_during_truncation() {
    let (mut cluster, partitions) = (Cluster::new(TruncationMode::BeforeFetch), ["topic1", "topic2"].map(topic));
    for (partition, fails) in partitions.iter().zip([true, false]) {
        cluster.follow(partition, over(fails, 1));
        cluster.add(partition, 1, 0);
        cluster.lead(partition, of_epochs(&[]), 0);
        assert_eq!(cluster.leader(partition).log_end_offset(), Offset(0));
    }
    one_fails(cluster, &partitions);
}
