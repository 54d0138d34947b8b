#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Fetch offsets that the leader does not have.

use cleanslate_log::log::{LogConfig, OffsetSpec};
use cleanslate_log::replication::{FetchPhase, FetcherEvent, LeaderError, TruncationMode};
use cleanslate_log::types::Offset;

use crate::upstream::replication::{Cluster, of_epochs, topic, with_hw};
use crate::upstream::support::{Log, NOW, follow, new_log, placed, plain};

/// A log that starts at an offset, with single records under these leader epochs.
fn starting_at(start: i64, of_records: &[i32]) -> Log {
    let mut log = new_log(&LogConfig::default());
    log.truncate_fully_and_start_at(Offset(start), NOW).unwrap();
    for (epoch, offset) in of_records.iter().zip(start..) {
        follow(&mut log, &[placed(plain(1), offset, *epoch)]).unwrap();
    }
    log
}

/// The leader loses its log without anybody being told, and what it knows of leader epochs.
#[test]
fn test_follower_fetch_out_of_range_high() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[0, 2, 4]));
    cluster.add(&partition, 3, 4);
    cluster.lead(&partition, with_hw(of_epochs(&[0, 2, 4]), 2), 4);
    cluster.work();
    assert_eq!((cluster.ends(&partition), cluster.state(&partition).phase), ((0, 3, 2), FetchPhase::Fetching));
    cluster.leaders.get_mut(&partition).unwrap().log_mut().truncate_to(Offset(0), NOW).unwrap();
    cluster.work();
    assert_eq!(cluster.ends(&partition), (0, 0, 0));
    assert_eq!(cluster.state(&partition).lag, Some(0));
}

/// The fetch offset is behind the follower's log end, as it is in Kafka's test, so the first answer is where the logs part.
#[test]
fn test_follower_fetch_out_of_range_low() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[0]));
    cluster.add(&partition, 3, 4);
    cluster.lead(&partition, with_hw(starting_at(2, &[4]), 2), 4);
    cluster.work();
    cluster.work();
    assert_eq!((cluster.ends(&partition), cluster.state(&partition).phase), ((2, 2, 2), FetchPhase::Fetching));
    assert_eq!(cluster.follower(&partition).batches(), Ok(Vec::new()));
    cluster.work();
    assert!(cluster.same_logs(&partition));
    assert_eq!(cluster.ends(&partition), (2, 3, 2));
}

/// The leader's epoch ends between its two answers: where its log ends, and where it starts.
#[test]
fn test_fenced_offset_reset_after_out_of_range() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[]));
    cluster.add(&partition, 0, 4);
    cluster.lead(&partition, with_hw(starting_at(1, &[2, 4]), 2), 4);
    cluster.truncate();
    cluster.fetch();
    let asked = |cluster: &Cluster| cluster.fetcher.offset_requests(NOW)[0].1;
    let request = asked(&cluster);
    assert_eq!(request.spec, OffsetSpec::Latest);
    let answer = cluster.answer_offset(&partition, request);
    assert_eq!(answer, Ok(Offset(3)));
    cluster.on_offset(&partition, request, answer);
    let request = asked(&cluster);
    assert_eq!(request.spec, OffsetSpec::Earliest);
    cluster.bump(&partition, 5);
    let answer = cluster.answer_offset(&partition, request);
    assert_eq!(answer, Err(LeaderError::FencedLeaderEpoch));
    cluster.on_offset(&partition, request, answer);
    assert_eq!(cluster.ends(&partition), (0, 0, 0));
    assert!(cluster.is_failed(&partition));
}

#[test]
fn test_retry_after_unknown_leader_epoch_in_latest_offset_fetch() {
    let (mut cluster, partition) = (Cluster::new(TruncationMode::OnFetch), topic("topic"));
    cluster.follow(&partition, of_epochs(&[0]));
    cluster.add(&partition, 3, 4);
    cluster.lead(&partition, with_hw(starting_at(2, &[4]), 2), 4);
    // Where the logs part; and then an offset in front of the leader's log.
    cluster.fetch();
    cluster.fetch();
    let (_, request) = cluster.fetcher.offset_requests(NOW)[0];
    cluster.on_offset(&partition, request, Err(LeaderError::UnknownLeaderEpoch));
    assert_eq!(cluster.state(&partition).phase, FetchPhase::Fetching);
    let retried = FetcherEvent::Delayed(LeaderError::UnknownLeaderEpoch);
    assert_eq!(cluster.events.last(), Some(&(partition.clone(), retried)));
    cluster.work();
    cluster.work();
    assert!(cluster.same_logs(&partition));
    assert_eq!(cluster.ends(&partition), (2, 3, 2));
}
