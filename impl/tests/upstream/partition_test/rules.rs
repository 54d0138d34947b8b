#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rules of a partition that no test of Kafka 4.3.1 has on its own.

use cleanslate_log::log::{FetchIsolation, OffsetSpec};
use cleanslate_log::replication::{EpochEndOffset, IsrChange, Partition, PartitionFetch, Reader};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset, PartitionEpoch, TimestampMs};

use super::in_sync::{brokers, high_watermark, seeded};
use super::roles::{append, broker, fetch_follower, follower_state, word};
use crate::upstream::support::{NOW, later};

/// Beyond Kafka's own tests: an agreement under an older partition epoch does not end the waiting; one under the known epoch counts.
#[test]
fn an_agreement_under_an_older_partition_epoch_is_ignored() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 4, &[0, 1], &[0]), NOW), Ok(true));
    fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
    let asked = partition.isr_change().unwrap();
    assert_eq!(asked.isr, brokers(&[0, 1]));
    for older in [3, -1, i32::MIN] {
        assert_eq!(partition.isr_changed(&asked, PartitionEpoch(older), NOW), Ok(false));
        assert_eq!((partition.isr(), partition.isr_change().as_ref()), (&brokers(&[0]), Some(&asked)));
        assert_eq!(partition.partition_epoch(), PartitionEpoch(4));
    }
    assert_eq!(partition.isr_changed(&asked, PartitionEpoch(4), NOW), Ok(true));
    assert_eq!((partition.isr(), partition.isr_change()), (&brokers(&[0, 1]), None));
}

/// Beyond Kafka's own tests: a fetch from where the logs have parted tells nothing of what the follower has.
#[test]
fn a_fetch_that_diverges_is_not_noted() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 4, 1, &[0, 1], &[0]), NOW), Ok(true));
    let mut fetch = |from: i64, after_ms: i64| {
        let request = PartitionFetch {
            fetch_offset: Offset(from),
            log_start_offset: Offset(0),
            current_leader_epoch: Some(LeaderEpoch(4)),
            last_fetched_epoch: Some(LeaderEpoch(4)),
            topic_id: None,
        };
        let diverging = partition.fetch(Reader::Follower(broker(1)), &request, usize::MAX, later(after_ms)).unwrap().diverging;
        (diverging, follower_state(&partition, broker(1)), partition.isr_change().is_some())
    };
    let parted = Some(EpochEndOffset { epoch: LeaderEpoch(4), end_offset: Offset(10) });
    assert_eq!(fetch(11, 7), (parted, (-1, -1, None), false));
    assert_eq!(fetch(10, 8), (None, (0, 10, Some(8)), true));
    assert_eq!(fetch(11, 9), (parted, (0, 10, Some(8)), true));
    assert_eq!(high_watermark(&partition), 10);
}

/// Beyond Kafka's own tests: while the controller is being asked nothing else is, and only the answer to what was asked ends the waiting.
#[test]
fn one_change_is_asked_for_at_a_time() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1, 2], &[0, 2]), NOW), Ok(true));
    fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
    let asked = partition.isr_change().unwrap();
    assert_eq!(asked.isr, brokers(&[0, 1, 2]));
    // The second follower has never fetched, and would have to go.
    partition.maybe_shrink_isr(later(40_000));
    assert_eq!(partition.isr_change().as_ref(), Some(&asked));
    let other = IsrChange { isr: brokers(&[0]), ..asked.clone() };
    assert!(!partition.isr_change_refused(&other));
    assert_eq!(partition.isr_changed(&other, PartitionEpoch(2), NOW), Ok(false));
    assert_eq!(partition.isr_change().as_ref(), Some(&asked));
    assert!(partition.isr_change_refused(&asked));
    partition.maybe_shrink_isr(later(40_000));
    assert_eq!(partition.isr_change().unwrap().isr, brokers(&[0]));
}

/// Beyond Kafka's own tests: a follower knows neither who is in sync nor where its leader's epoch begins, and asks for nothing.
#[test]
fn a_follower_has_nothing_to_say_of_the_others() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0]), NOW), Ok(true));
    fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
    assert!(partition.isr_change().is_some());
    assert!(partition.make_follower(&word(1, 6, 2, &[0, 1], &[0, 1])));
    assert_eq!((partition.isr_change(), partition.maximal_isr()), (None, brokers(&[])));
    assert_eq!((partition.leader_epoch_start_offset(), partition.follower(broker(1))), (None, None));
}

/// Beyond Kafka's own tests: no more replicas have to be in sync than there are.
#[test]
fn as_many_replicas_as_there_are_suffice() {
    for (replicas, isr, under) in [(&[0, 1][..], &[0, 1][..], false), (&[0, 1], &[0], true), (&[0, 1, 2], &[0, 1], true)] {
        let mut partition = seeded(10, 3);
        assert_eq!(partition.make_leader(&word(0, 5, 1, replicas, isr), NOW), Ok(true));
        assert_eq!(partition.is_under_min_isr(), under, "{replicas:?} {isr:?}");
    }
}

/// Beyond Kafka's own tests: whoever has what the epoch began with, but less than is replicated, does not come into sync.
#[test]
fn who_comes_into_sync_has_all_that_is_replicated() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0]), NOW), Ok(true));
    append(&mut partition, 5);
    assert_eq!(high_watermark(&partition), 15);
    for (from, joins) in [(10, false), (14, false), (15, true)] {
        fetch_follower(&mut partition, broker(1), from, None, 0).unwrap();
        assert_eq!(partition.isr_change().is_some(), joins, "{from}");
    }
}

/// Beyond Kafka's own tests: a leader that leads on keeps what it knows of a follower's log, and if the clock goes back its time of that.
#[test]
fn what_is_known_of_a_follower() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    for after_ms in [7, 5] {
        fetch_follower(&mut partition, broker(1), 10, None, after_ms).unwrap();
        assert_eq!(follower_state(&partition, broker(1)), (0, 10, Some(7)));
    }
    assert_eq!(partition.make_leader(&word(0, 6, 2, &[0, 1], &[0, 1]), later(9)), Ok(false));
    assert_eq!(follower_state(&partition, broker(1)), (0, 10, Some(9)));
    assert!(partition.make_follower(&word(1, 7, 3, &[0, 1], &[0, 1])));
    assert_eq!(partition.make_leader(&word(0, 8, 4, &[0, 1], &[0, 1]), later(11)), Ok(true));
    assert_eq!(follower_state(&partition, broker(1)), (-1, -1, Some(11)));
}

/// Beyond Kafka's own tests: the first record that a client may not read is not found by its time either.
#[test]
fn an_offset_by_time_is_one_that_may_be_read() {
    let mut partition = seeded(0, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    append(&mut partition, 1);
    append(&mut partition, 1);
    let found = |partition: &mut Partition<MemoryStorage>, isolation| {
        let found = partition.fetch_offset_for_timestamp(OffsetSpec::Timestamp(TimestampMs(0)), isolation, None, true).unwrap();
        found.map(|found| found.offset.get())
    };
    assert_eq!(found(&mut partition, FetchIsolation::LogEnd), Some(0));
    for (from, expected) in [(0, None), (1, Some(0))] {
        fetch_follower(&mut partition, broker(1), from, None, 0).unwrap();
        assert_eq!(high_watermark(&partition), from);
        assert_eq!(found(&mut partition, FetchIsolation::HighWatermark), expected);
    }
}
