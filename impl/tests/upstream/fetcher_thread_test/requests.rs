#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! What a fetcher asks for.

use std::collections::BTreeSet;

use cleanslate_log::log::LogConfig;
use cleanslate_log::log_dir::{TopicPartition, Uuid};
use cleanslate_log::record::Compression;
use cleanslate_log::replication::{InitialFetchState, PartitionFetch, TruncationMode};
use cleanslate_log::types::{LeaderEpoch, Offset, PartitionId};

use crate::upstream::legacy::{follow_bytes, same};
use crate::upstream::replication::{Cluster, of_epochs, topic, with_hw};
use crate::upstream::support::{Log, NOW, new_log};

#[test]
fn test_maybe_update_topic_ids() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic1"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 0);
    assert_eq!(cluster.state(&partition).topic_id, None);
    let ids = |name: &str| (name == "topic1").then_some(Uuid(1));
    cluster.fetcher.maybe_update_topic_ids(std::slice::from_ref(&partition), ids);
    assert_eq!(cluster.state(&partition).topic_id, Some(Uuid(1)));
    let unknown = topic("unknown");
    cluster.fetcher.maybe_update_topic_ids(std::slice::from_ref(&unknown), ids);
    assert_eq!(cluster.fetcher.state(&unknown), None);
}

/// Beyond Kafka's own tests: a new id changes nothing else, and an id that is not known any more is forgotten.
#[test]
fn topic_ids_change_no_turn() {
    let mut cluster = Cluster::new(TruncationMode::OnFetch);
    let partitions = ["a", "b"].map(topic);
    for partition in &partitions {
        cluster.follow(partition, of_epochs(&[0]));
        cluster.add(partition, 1, 0);
    }
    let asked =
        |cluster: &Cluster| cluster.requests().into_iter().map(|(at, request)| (at.topic, request.topic_id)).collect::<Vec<_>>();
    let (a, b) = ("a".to_owned(), "b".to_owned());
    cluster.fetcher.maybe_update_topic_ids(&partitions[..1], |_| Some(Uuid(7)));
    assert_eq!(asked(&cluster), [(a.clone(), Some(Uuid(7))), (b.clone(), None)]);
    cluster.fetcher.maybe_update_topic_ids(&partitions, |name| (name == "b").then_some(Uuid(8)));
    assert_eq!(asked(&cluster), [(a, None), (b, Some(Uuid(8)))]);
}

/// A log of magic 1, so that no leader epoch is known.
fn without_epochs(end: i64) -> Log {
    let mut log = new_log(&LogConfig::default());
    for offset in 0..end {
        follow_bytes(&mut log, same(1, offset, Compression::None, 1)).unwrap();
    }
    with_hw(log, end)
}

/// The fetch of all three partitions; the second one of Kafka's test, with what has changed since the first, is one of fetch sessions.
#[test]
fn test_build_fetch() {
    let mut cluster = Cluster::new(TruncationMode::OnFetch);
    let partitions = [("topic1", 0, 1, 150), ("topic1", 1, 1, 155), ("topic2", 1, 2, 160)];
    let expected = partitions.map(|(name, id, topic_id, offset)| {
        let partition = TopicPartition::new(name, PartitionId(id));
        cluster.follow(&partition, without_epochs(offset));
        let (topic_id, offset, epoch) = (Some(Uuid(topic_id)), Offset(offset), LeaderEpoch(1));
        let initial = InitialFetchState { topic_id, current_leader_epoch: epoch, offset };
        cluster.fetcher.add_partition(&partition, initial, &cluster.followers);
        let request = PartitionFetch {
            fetch_offset: offset,
            log_start_offset: Offset(0),
            current_leader_epoch: Some(epoch),
            last_fetched_epoch: None,
            topic_id,
        };
        (partition, request)
    });
    cluster.truncate();
    assert_eq!(cluster.requests(), expected);
    cluster.fetcher.remove_partition(&expected[0].0);
    cluster.fetcher.maybe_update_topic_ids(&[expected[2].0.clone()], |_| Some(Uuid(3)));
    let mut expected = expected[1..].to_vec();
    expected[1].1.topic_id = Some(Uuid(3));
    assert_eq!(cluster.requests(), expected);
}

/// Beyond Kafka's own tests: a partition whose quota is exceeded is not fetched, unless it lags behind nothing.
#[test]
fn throttled_partitions_are_fetched_in_sync_only() {
    let mut cluster = Cluster::new(TruncationMode::OnFetch);
    let partitions = ["behind", "in sync", "other", "unknown"].map(topic);
    for (partition, hw) in partitions[..3].iter().zip([3, 2, 3]) {
        cluster.follow(partition, of_epochs(&[0]));
        cluster.add(partition, 1, 0);
        cluster.lead(partition, with_hw(of_epochs(&[0, 0, 0]), hw), 0);
    }
    let throttled: BTreeSet<TopicPartition> = [0, 1, 3].map(|index| partitions[index].clone()).into();
    let asked = |cluster: &Cluster| {
        let requests = cluster.fetcher.fetch_requests(&cluster.followers, &throttled, NOW);
        requests.into_iter().map(|(partition, _)| partition.topic).collect::<Vec<_>>()
    };
    // Nobody knows yet how far behind they are.
    assert_eq!(asked(&cluster), ["other"]);
    cluster.work();
    let lags = [0, 1, 2].map(|index| cluster.state(&partitions[index]).lag);
    assert_eq!(lags, [Some(1), Some(0), Some(1)]);
    assert_eq!(asked(&cluster), ["in sync", "other"]);
}
