#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rules of a partition that no test of Kafka 4.3.1 has on its own.

use cleanslate_log::replication::{EpochEndOffset, PartitionFetch, Reader};
use cleanslate_log::types::{LeaderEpoch, Offset, PartitionEpoch};

use super::in_sync::{brokers, high_watermark, seeded};
use super::roles::{broker, fetch_follower, follower_state, word};
use crate::upstream::support::{NOW, later};

/// Beyond Kafka's own tests: the controller's agreement under an older partition epoch than the known one is not looked at, and does not end
/// the waiting; one under the known epoch changed nothing at the controller, but counts.
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
