#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rules of the fetcher that no test of Kafka 4.3.1 has on its own.

use cleanslate_log::log::OffsetSpec;
use cleanslate_log::log_dir::TopicPartition;
use cleanslate_log::replication::{
    EpochEndOffset, FetchPhase, Fetcher, FetcherConfig, FetcherEvent, FollowError, LeaderError, TruncationMode, TruncationPoint,
};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::replication::{Cluster, of_epochs, topic, with_hw};
use crate::upstream::support::{NOW, follow, later, placed, plain};

fn cut(offset: i64, completed: bool) -> FetcherEvent {
    FetcherEvent::Truncated(TruncationPoint { offset: Offset(offset), completed })
}

/// A follower of one partition under an epoch, which begins at its log end.
fn following(truncation: TruncationMode, epochs: &[i32], leader_epoch: i32) -> (Cluster, TopicPartition) {
    let (mut cluster, partition) = (Cluster::new(truncation), topic("topic"));
    cluster.follow(&partition, of_epochs(epochs));
    cluster.add(&partition, i64::try_from(epochs.len()).unwrap(), leader_epoch);
    (cluster, partition)
}

/// Beyond Kafka's own tests: before the first fetch the leader is asked once more for each epoch that the follower does not know.
#[test]
fn the_leader_is_asked_until_both_know_the_epoch() {
    let (mut cluster, partition) = following(TruncationMode::BeforeFetch, &[0, 2, 4], 5);
    cluster.lead(&partition, of_epochs(&[0, 3, 3, 5]), 5);
    // Epoch 3 ends at 3 and is not known here; of epoch 2 the leader has nothing, and of epoch 0 all that is here.
    for (event, phase) in [(cut(2, false), FetchPhase::Truncating), (cut(1, true), FetchPhase::Fetching)] {
        cluster.truncate();
        assert_eq!((cluster.events.last().unwrap().1.clone(), cluster.state(&partition).phase), (event, phase));
    }
    for _ in 0..3 {
        assert_eq!(cluster.requests()[0].1.last_fetched_epoch, None);
        cluster.fetch();
    }
    assert!(cluster.same_logs(&partition));
}

/// Beyond Kafka's own tests: where the leader knows nothing of the epoch, the log is cut where the fetcher has begun.
#[test]
fn without_an_end_of_the_epoch_the_initial_offset_counts() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::BeforeFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[0, 0, 0]));
    cluster.add(&partition, 1, 1);
    let requests = cluster.fetcher.truncation_plan(&cluster.followers, NOW).requests;
    cluster.on_epochs(&requests, vec![(partition.clone(), Ok(None))]);
    assert_eq!(cluster.events, [(partition.clone(), cut(1, true))]);
    assert_eq!((cluster.ends(&partition).1, cluster.state(&partition).phase), (1, FetchPhase::Fetching));
    // The same answer a second time is not one to what would be asked now.
    cluster
        .on_epochs(&requests, vec![(partition.clone(), Ok(Some(EpochEndOffset { epoch: LeaderEpoch(0), end_offset: Offset(0) })))]);
    assert_eq!(cluster.events.last(), Some(&(partition.clone(), FetcherEvent::Ignored)));
    assert_eq!(cluster.ends(&partition).1, 1);
}

/// Beyond Kafka's own tests: an epoch that ends at no offset cuts the log where the fetcher has begun.
#[test]
fn an_epoch_that_ends_nowhere_cuts_at_the_initial_offset() {
    let nowhere = |epoch| EpochEndOffset { epoch: LeaderEpoch(epoch), end_offset: Offset::UNKNOWN };
    for epoch in [-1, 0, i32::MAX] {
        let (mut cluster, partition) = (Cluster::new(TruncationMode::BeforeFetch), topic("topic"));
        cluster.follow(&partition, of_epochs(&[0, 0, 0]));
        cluster.add(&partition, 1, 1);
        let requests = cluster.fetcher.truncation_plan(&cluster.followers, NOW).requests;
        cluster.on_epochs(&requests, vec![(partition.clone(), Ok(Some(nowhere(epoch))))]);
        assert_eq!((&cluster.events[0].1, cluster.ends(&partition).1), (&cut(1, true), 1));
    }
}

/// Beyond Kafka's own tests: an answer that fences the request of an earlier epoch does not concern the one that is known now.
#[test]
fn only_the_known_epoch_can_be_fenced() {
    let (mut cluster, partition) = following(TruncationMode::BeforeFetch, &[0], 0);
    let requests = cluster.fetcher.truncation_plan(&cluster.followers, NOW).requests;
    cluster.add(&partition, 1, 1);
    cluster.on_epochs(&requests, vec![(partition.clone(), Err(LeaderError::FencedLeaderEpoch))]);
    assert_eq!((cluster.is_failed(&partition), cluster.state(&partition).current_leader_epoch), (false, LeaderEpoch(1)));
    let requests = cluster.fetcher.truncation_plan(&cluster.followers, NOW).requests;
    cluster.on_epochs(&requests, vec![(partition.clone(), Err(LeaderError::FencedLeaderEpoch))]);
    assert!(cluster.is_failed(&partition));
}

/// Beyond Kafka's own tests: a log that has grown or is gone since the fetch gives the partition up.
#[test]
fn a_log_that_is_not_as_it_was_fails() {
    let (mut cluster, partition) = following(TruncationMode::OnFetch, &[0], 0);
    cluster.lead(&partition, of_epochs(&[0, 0]), 0);
    let requests = cluster.requests();
    let answers = cluster.answer_fetch(&requests);
    let (mut gone, other) = (cluster.fetcher.clone(), answers.clone());
    follow(cluster.followers.get_mut(&partition).unwrap().log_mut(), &[placed(plain(1), 1, 0)]).unwrap();
    cluster.on_fetch(&requests, answers);
    let mismatch = FollowError::OffsetMismatch { fetched: Offset(1), log_end_offset: Offset(2) };
    assert_eq!(cluster.events, [(partition.clone(), FetcherEvent::Failed(mismatch))]);
    assert!(cluster.is_failed(&partition));
    cluster.followers.clear();
    let events = gone.on_fetch(&requests, other, &mut cluster.followers, NOW);
    assert_eq!(events, [(partition.clone(), FetcherEvent::Failed(FollowError::NoReplica(partition)))]);
}

/// Beyond Kafka's own tests: the leader's log has grown over the fetch offset before its end was asked for.
#[test]
fn an_offset_that_is_in_range_by_now_is_fetched_again() {
    let (mut cluster, partition) = following(TruncationMode::OnFetch, &[0, 0], 0);
    cluster.lead(&partition, with_hw(of_epochs(&[0, 0, 0]), 3), 0);
    let requests = cluster.requests();
    cluster.on_fetch(&requests, vec![(partition.clone(), Err(LeaderError::OffsetOutOfRange))]);
    assert_eq!(cluster.requests(), []);
    let (_, latest) = cluster.fetcher.offset_requests(NOW)[0];
    assert_eq!(latest.spec, OffsetSpec::Latest);
    cluster.reset();
    assert_eq!(cluster.events.last(), Some(&(partition.clone(), FetcherEvent::Resumed(Offset(2)))));
    assert_eq!((cluster.state(&partition).lag, cluster.ends(&partition).1), (Some(1), 2));
    // The answer comes once more.
    cluster.on_offset(&partition, latest, Ok(Offset(0)));
    assert_eq!((cluster.events.last(), cluster.ends(&partition).1), (Some(&(partition.clone(), FetcherEvent::Ignored)), 2));
    cluster.work();
    assert!(cluster.same_logs(&partition));
}

/// Beyond Kafka's own tests: a partition that begins without an offset asks the leader for one.
#[test]
fn a_partition_without_an_offset_asks_for_one() {
    for (log, end) in [(&[0, 0, 0][..], 2), (&[0], 1)] {
        let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
        cluster.follow(&partition, of_epochs(log));
        cluster.add(&partition, -1, 0);
        cluster.lead(&partition, of_epochs(&[0, 0]), 0);
        assert_eq!(cluster.requests(), []);
        cluster.reset();
        assert_eq!((cluster.state(&partition).fetch_offset, cluster.ends(&partition).1), (Offset(end), end));
        cluster.fetch();
        assert!(cluster.same_logs(&partition));
    }
}

/// Beyond Kafka's own tests: who has got something is asked for last.
#[test]
fn partitions_take_turns() {
    let mut cluster = Cluster::new(TruncationMode::OnFetch);
    let partitions = ["b", "a", "c"].map(topic);
    for partition in &partitions {
        cluster.follow(partition, of_epochs(&[0]));
        cluster.add(partition, 1, 0);
    }
    cluster.lead(&partitions[0], of_epochs(&[0, 0]), 0);
    let asked = |cluster: &Cluster| cluster.requests().into_iter().map(|(partition, _)| partition.topic).collect::<String>();
    assert_eq!(asked(&cluster), "bac");
    let requests: Vec<_> = cluster.requests().into_iter().take(1).collect();
    let answers = cluster.answer_fetch(&requests);
    cluster.on_fetch(&requests, answers);
    assert_eq!(asked(&cluster), "acb");
}

/// Beyond Kafka's own tests: the answer to a fetch from another offset than the next one is not looked at, whatever it says.
#[test]
fn an_answer_for_another_offset_is_ignored() {
    let (mut cluster, partition) = following(TruncationMode::OnFetch, &[0], 0);
    cluster.lead(&partition, of_epochs(&[0, 0]), 0);
    let requests = cluster.requests();
    let answers = cluster.answer_fetch(&requests);
    cluster.on_fetch(&requests, answers.clone());
    let after = cluster.state(&partition);
    assert_eq!((after.fetch_offset, cluster.appends()), (Offset(2), 1));
    for answer in [answers[0].1.clone(), Err(LeaderError::OffsetOutOfRange), Err(LeaderError::FencedLeaderEpoch)] {
        cluster.on_fetch(&requests, vec![(partition.clone(), answer)]);
        assert_eq!(cluster.events.last(), Some(&(partition.clone(), FetcherEvent::Ignored)));
        assert_eq!((cluster.state(&partition), cluster.ends(&partition).1), (after, 2));
    }
}

/// Beyond Kafka's own tests: another error does not make a partition wait longer, nor come later.
#[test]
fn a_delay_is_not_prolonged() {
    let mut cluster = Cluster::new(TruncationMode::OnFetch);
    cluster.fetcher = Fetcher::new(FetcherConfig { backoff_ms: 250, ..FetcherConfig::default() });
    let partitions = ["a", "b"].map(topic);
    for partition in &partitions {
        cluster.follow(partition, of_epochs(&[0]));
        cluster.add(partition, 1, 0);
    }
    let requests = cluster.requests();
    cluster.on_fetch(&requests, vec![(partitions[0].clone(), Err(LeaderError::NotLeaderOrFollower))]);
    let first = cluster.state(&partitions[0]);
    assert_eq!(first.delayed_until, Some(later(250)));
    cluster.fetcher.on_fetch_failed(later(100));
    assert_eq!(cluster.state(&partitions[0]), first);
    assert_eq!(cluster.state(&partitions[1]).delayed_until, Some(later(350)));
    for (ms, ready) in [(249, 0), (250, 1), (349, 1), (350, 2)] {
        cluster.now = later(ms);
        assert_eq!(cluster.requests().len(), ready, "{ms}");
    }
    // Whoever waits no longer may wait again.
    cluster.fetcher.on_fetch_failed(later(250));
    assert_eq!(cluster.state(&partitions[0]).delayed_until, Some(later(500)));
}

/// Beyond Kafka's own tests: who has asked without an epoch cannot tell whether a newer one is meant than the known one.
#[test]
fn a_request_without_an_epoch_is_not_fenced() {
    let (mut cluster, partition) = following(TruncationMode::OnFetch, &[0], 0);
    let mut requests = cluster.requests();
    requests[0].1.current_leader_epoch = None;
    cluster.on_fetch(&requests, vec![(partition.clone(), Err(LeaderError::FencedLeaderEpoch))]);
    let delayed = FetcherEvent::Delayed(LeaderError::FencedLeaderEpoch);
    assert_eq!((cluster.events.last(), cluster.is_failed(&partition)), (Some(&(partition.clone(), delayed)), false));
    // Its answers count like those under an epoch.
    cluster.lead(&partition, of_epochs(&[0, 0]), 0);
    let answers = cluster.answer_fetch(&requests);
    cluster.on_fetch(&requests, answers);
    assert!(cluster.same_logs(&partition));
}

/// Beyond Kafka's own tests: of a leader whose log ends where the own one does, the start is asked for, too.
#[test]
fn an_equal_log_end_does_not_cut() {
    for (end, next) in [(1, None), (2, Some(OffsetSpec::Earliest)), (3, Some(OffsetSpec::Earliest))] {
        let (mut cluster, partition) = following(TruncationMode::OnFetch, &[0, 0], 0);
        let requests = cluster.requests();
        cluster.on_fetch(&requests, vec![(partition.clone(), Err(LeaderError::OffsetOutOfRange))]);
        let (_, latest) = cluster.fetcher.offset_requests(NOW)[0];
        cluster.on_offset(&partition, latest, Ok(Offset(end)));
        let asked = cluster.fetcher.offset_requests(NOW);
        assert_eq!(asked.first().map(|(_, request)| request.spec), next, "{end}");
        let expected = if next.is_some() { FetcherEvent::OutOfRange } else { cut(1, true) };
        assert_eq!(cluster.events.last(), Some(&(partition.clone(), expected)));
        assert_eq!(cluster.ends(&partition).1, end.min(2));
        // A leader that starts where the own log ends has all that is next.
        for (_, earliest) in asked {
            cluster.on_offset(&partition, earliest, Ok(Offset(2)));
            assert_eq!(cluster.events.last(), Some(&(partition.clone(), FetcherEvent::Resumed(Offset(2)))));
            assert_eq!((cluster.ends(&partition), cluster.state(&partition).lag), ((0, 2, 0), Some(end - 2)));
        }
    }
}

/// Beyond Kafka's own tests: while a partition waits, or its offset is being reset, no answer to a fetch counts.
#[test]
fn an_answer_that_is_not_waited_for_is_ignored() {
    for (error, event) in
        [(LeaderError::OffsetOutOfRange, FetcherEvent::OutOfRange), (LeaderError::Other, FetcherEvent::Delayed(LeaderError::Other))]
    {
        let (mut cluster, partition) = following(TruncationMode::OnFetch, &[0], 0);
        cluster.fetcher = Fetcher::new(FetcherConfig { backoff_ms: 250, ..FetcherConfig::default() });
        cluster.add(&partition, 1, 0);
        cluster.lead(&partition, of_epochs(&[0, 0]), 0);
        let requests = cluster.requests();
        let answers = cluster.answer_fetch(&requests);
        cluster.on_fetch(&requests, vec![(partition.clone(), Err(error))]);
        assert_eq!(cluster.events, [(partition.clone(), event)]);
        let before = cluster.state(&partition);
        for ms in [0, 249] {
            cluster.now = later(ms);
            cluster.on_fetch(&requests, answers.clone());
            assert_eq!(cluster.events.last(), Some(&(partition.clone(), FetcherEvent::Ignored)));
            assert_eq!((cluster.state(&partition), cluster.ends(&partition).1), (before, 1));
        }
        cluster.now = later(250);
        cluster.reset();
        cluster.on_fetch(&requests, answers);
        assert_eq!((cluster.appends(), cluster.state(&partition).delayed_until), (1, None));
        assert!(cluster.same_logs(&partition));
    }
}
