#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Who is in sync, and what high watermark follows from it.

use std::collections::BTreeSet;

use cleanslate_log::log::{FetchIsolation, LogConfig, OffsetSpec};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard};
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::replication::{Partition, PartitionConfig};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{NodeId, Offset, PartitionEpoch, TimestampMs};

use super::roles::{append, broker, fetch_follower, follower_state, unheard, word};
use crate::upstream::support::{NOW, follow, later, new_log, placed, plain};

type Replica = Partition<MemoryStorage>;

/// A replica with records of epoch 4, of which nothing was heard yet.
pub(super) fn seeded(records: usize, min_in_sync_replicas: usize) -> Replica {
    let mut log = new_log(&LogConfig::default());
    for offset in 0..records {
        follow(&mut log, &[placed(plain(1), i64::try_from(offset).unwrap(), 4)]).unwrap();
    }
    let config = PartitionConfig { min_in_sync_replicas, ..PartitionConfig::default() };
    Partition::new(broker(0), log, config)
}

pub(super) fn brokers(indexes: &[i32]) -> BTreeSet<NodeId> {
    indexes.iter().map(|index| broker(*index)).collect()
}

pub(super) fn high_watermark(partition: &Replica) -> i64 {
    partition.log().high_watermark().get()
}

/// The controller agrees to what it was asked for.
fn complete_isr_update(partition: &mut Replica, partition_epoch: i32) {
    let asked = partition.isr_change().unwrap();
    assert_eq!(partition.isr_changed(&asked, PartitionEpoch(partition_epoch), NOW), Ok(true));
}

#[test]
fn test_update_follower_fetch_state() {
    let mut partition = seeded(6, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    assert_eq!(follower_state(&partition, broker(1)), (-1, -1, Some(0)));
    fetch_follower(&mut partition, broker(1), 3, None, 500).unwrap();
    assert_eq!(follower_state(&partition, broker(1)), (0, 3, Some(0)));
    fetch_follower(&mut partition, broker(1), 6, None, 1000).unwrap();
    assert_eq!(follower_state(&partition, broker(1)), (0, 6, Some(1000)));
}

#[test]
fn test_isr_expansion() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0]), NOW), Ok(true));
    assert_eq!(follower_state(&partition, broker(1)), (-1, -1, None));
    fetch_follower(&mut partition, broker(1), 3, None, 0).unwrap();
    assert_eq!((partition.isr_change(), follower_state(&partition, broker(1))), (None, (0, 3, None)));
    fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
    assert_eq!(partition.isr_change().unwrap().isr, brokers(&[0, 1]));
    assert_eq!((partition.isr(), partition.maximal_isr()), (&brokers(&[0]), brokers(&[0, 1])));
    assert_eq!(follower_state(&partition, broker(1)), (0, 10, Some(0)));
    complete_isr_update(&mut partition, 2);
    assert_eq!((partition.isr(), partition.isr_change()), (&brokers(&[0, 1]), None));
}

/// The controller refuses; the leader then hears that the follower is shutting down, and that it is back.
#[test]
fn test_isr_not_expanded_if_replica_is_in_controlled_shutdown() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0]), NOW), Ok(true));
    fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
    assert_eq!((partition.isr(), partition.maximal_isr()), (&brokers(&[0]), brokers(&[0, 1])));
    let asked = partition.isr_change().unwrap();
    assert_eq!([(), ()].map(|()| partition.isr_change_refused(&asked)), [true, false]);
    assert_eq!((partition.isr(), partition.maximal_isr()), (&brokers(&[0]), brokers(&[0])));
    for (shutting_down, asks) in [(brokers(&[1]), false), (brokers(&[]), true)] {
        partition.set_unavailable(brokers(&[]), shutting_down);
        fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
        assert_eq!(partition.isr_change().is_some(), asks);
    }
    complete_isr_update(&mut partition, 1);
    assert_eq!((partition.isr(), partition.maximal_isr()), (&brokers(&[0, 1]), brokers(&[0, 1])));
}

#[test]
fn test_follower_does_not_join_isr_until_caught_up_to_offset_within_current_leader_epoch() {
    let mut partition = unheard();
    assert_eq!(partition.make_leader(&word(0, 8, 1, &[0, 1, 2], &[0, 2]), NOW), Ok(true));
    assert_eq!(partition.isr(), &brokers(&[0, 2]));
    append(&mut partition, 2);
    append(&mut partition, 3);
    assert_eq!(high_watermark(&partition), 0);
    // The last offset of the first batch, which lies within it.
    for from in [0, 1] {
        fetch_follower(&mut partition, broker(2), from, None, 0).unwrap();
    }
    assert_eq!(high_watermark(&partition), 1);
    assert!(partition.make_follower(&word(2, 9, 1, &[0, 1, 2], &[0, 2])));
    assert_eq!(partition.make_leader(&word(0, 10, 1, &[0, 1, 2], &[0, 2]), NOW), Ok(true));
    let start = partition.log().log_end_offset();
    assert_eq!((start, partition.leader_epoch_start_offset()), (Offset(5), Some(Offset(5))));
    append(&mut partition, 2);
    for from in [0, 1] {
        fetch_follower(&mut partition, broker(1), from, None, 0).unwrap();
        assert_eq!(partition.maximal_isr(), brokers(&[0, 2]));
    }
    fetch_follower(&mut partition, broker(1), start.get(), None, 0).unwrap();
    assert_eq!((partition.isr(), partition.maximal_isr()), (&brokers(&[0, 2]), brokers(&[0, 1, 2])));
    assert_eq!(partition.isr_change().unwrap().isr, brokers(&[0, 1, 2]));
}

#[test]
fn test_is_under_min_isr() {
    let mut partition = seeded(0, 2);
    assert_eq!(partition.make_leader(&word(0, 0, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    assert!(!partition.is_under_min_isr());
    assert_eq!(partition.make_leader(&word(0, 1, 2, &[0, 1], &[0]), NOW), Ok(false));
    assert!(partition.is_under_min_isr());
}

/// A follower that is asked for, but not in sync yet, does not count among those that have to be.
#[test]
fn test_high_watermark_advance_should_not_advance_when_under_min_isr() {
    let mut partition = seeded(10, 3);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1, 2], &[0, 1]), NOW), Ok(true));
    assert_eq!((partition.is_under_min_isr(), high_watermark(&partition)), (true, 0));
    for replica in [1, 2] {
        fetch_follower(&mut partition, broker(replica), 10, None, 0).unwrap();
        assert_eq!(high_watermark(&partition), 0);
    }
    assert_eq!(partition.maximal_isr(), brokers(&[0, 1, 2]));
    complete_isr_update(&mut partition, 2);
    assert_eq!((partition.is_under_min_isr(), high_watermark(&partition)), (false, 10));
}

/// A follower that was in sync a moment ago holds the high watermark, unless it is fenced or is shutting down.
#[test]
fn test_high_watermark_increases_with_fenced_or_shutdown_follower() {
    for (fenced, shutting_down, expected) in [(&[][..], &[][..], 10), (&[1], &[], 20), (&[], &[1], 20)] {
        let mut partition = seeded(10, 1);
        assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
        fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
        assert_eq!((follower_state(&partition, broker(1)), high_watermark(&partition)), ((0, 10, Some(0)), 10));
        partition.set_unavailable(brokers(fenced), brokers(shutting_down));
        append(&mut partition, 10);
        assert_eq!(high_watermark(&partition), 10);
        assert_eq!(partition.make_leader(&word(0, 5, 2, &[0, 1], &[0]), NOW), Ok(false));
        assert_eq!((partition.is_leader(), partition.isr()), (true, &brokers(&[0])));
        assert_eq!(high_watermark(&partition), expected);
    }
}

/// An offset and the timestamp of its record, looked for by a client that may read what is replicated, or by a replica.
fn found(partition: &mut Replica, spec: i64, isolation: FetchIsolation) -> Result<Option<(i64, i64)>, &'static str> {
    let epoch = Some(partition.leader_epoch());
    let found = partition.fetch_offset_for_timestamp(OffsetSpec::from(spec), isolation, epoch, true);
    found.map(|found| found.map(|at| (at.offset.get(), at.timestamp.get()))).map_err(|error| error.kafka_class())
}

/// Records with these timestamps in milliseconds.
fn append_timed(partition: &mut Replica, timestamps: &[i64]) {
    let builder = timestamps.iter().zip(0..).fold(BatchBuilder::new(Offset(0)), |builder, (timestamp, offset)| {
        let timestamp = TimestampMs(*timestamp);
        builder.append(cleanslate_log::record::Record { offset: Offset(offset), timestamp, ..Default::default() })
    });
    let batch = builder.build().unwrap().bytes().clone();
    let (tv, guard) = (TransactionVersion::Unknown, VerificationGuard::SENTINEL);
    partition.append_to_leader(batch, AppendOrigin::Client, tv, guard, NOW).unwrap();
}

/// The leader leads again, and does not know yet that its followers have all that it had: a client must not be told less than it
/// was before.
#[test]
fn test_monotonic_offsets_after_leader_change() {
    const LATEST: i64 = -1;
    const UNAVAILABLE: Result<Option<(i64, i64)>, &str> = Err("OffsetNotAvailableException");
    let (client, replica) = (FetchIsolation::HighWatermark, FetchIsolation::LogEnd);
    let mut partition = unheard();
    assert_eq!(partition.make_leader(&word(0, 8, 1, &[0, 1, 2], &[0, 2]), NOW), Ok(true));
    append_timed(&mut partition, &[10, 11]);
    append_timed(&mut partition, &[-1, 20, 21]);
    assert_eq!(high_watermark(&partition), 0);
    for (follower, from) in [(1, 0), (1, 2), (2, 0), (2, 2)] {
        fetch_follower(&mut partition, broker(follower), from, None, 0).unwrap();
    }
    complete_isr_update(&mut partition, 2);
    assert_eq!(high_watermark(&partition), 2);
    assert_eq!(found(&mut partition, LATEST, replica), Ok(Some((5, -1))));
    assert_eq!(found(&mut partition, LATEST, client), Ok(Some((2, -1))));
    assert_eq!(found(&mut partition, 30, client), Ok(None));
    assert!(partition.make_follower(&word(2, 9, 4, &[0, 1, 2], &[0, 2])));
    assert_eq!(partition.make_leader(&word(0, 10, 5, &[0, 1, 2], &[0, 2]), NOW), Ok(true));
    assert_eq!(found(&mut partition, LATEST, client), UNAVAILABLE);
    assert_eq!(found(&mut partition, LATEST, replica), Ok(Some((5, -1))));
    for earliest in [-2, -4] {
        assert_eq!(found(&mut partition, earliest, client), Ok(Some((0, -1))));
    }
    assert_eq!(found(&mut partition, 11, client), Ok(Some((1, 11))));
    assert_eq!(found(&mut partition, 100, client), UNAVAILABLE);
    // Beyond the high watermark, though there is such a record.
    assert_eq!(found(&mut partition, 20, client), UNAVAILABLE);
    for follower in [1, 2] {
        fetch_follower(&mut partition, broker(follower), 5, None, 0).unwrap();
    }
    complete_isr_update(&mut partition, 6);
    assert_eq!(found(&mut partition, LATEST, client), Ok(Some((5, -1))));
    assert_eq!(found(&mut partition, 100, client), Ok(None));
}

/// A follower that never fetches leaves, but the high watermark waits for it until the controller agrees.
#[test]
fn test_maybe_shrink_isr() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1, 2], &[0, 1, 2]), NOW), Ok(true));
    fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
    assert_eq!((high_watermark(&partition), follower_state(&partition, broker(2))), (0, (-1, -1, Some(0))));
    for (after_ms, asked) in [(0, None), (30_000, None), (30_001, Some(brokers(&[0, 1])))] {
        partition.maybe_shrink_isr(later(after_ms));
        assert_eq!(partition.isr_change().map(|change| change.isr), asked, "{after_ms}");
        assert_eq!((partition.isr(), partition.maximal_isr()), (&brokers(&[0, 1, 2]), brokers(&[0, 1, 2])));
        assert_eq!(high_watermark(&partition), 0);
    }
    let asked = partition.isr_change().unwrap();
    assert_eq!(partition.isr_changed(&asked, PartitionEpoch(2), later(30_001)), Ok(true));
    assert_eq!((partition.isr(), partition.maximal_isr()), (&brokers(&[0, 1]), brokers(&[0, 1])));
    assert_eq!((partition.partition_epoch(), partition.isr_change(), high_watermark(&partition)), (PartitionEpoch(2), None, 10));
}

/// The follower has never all that there is, but at its second fetch all that there was at the first.
#[test]
fn test_should_not_shrink_isr_if_previous_fetch_is_caught_up() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    assert_eq!((high_watermark(&partition), follower_state(&partition, broker(1))), (0, (-1, -1, Some(0))));
    fetch_follower(&mut partition, broker(1), 5, None, 5000).unwrap();
    assert_eq!((high_watermark(&partition), follower_state(&partition, broker(1))), (5, (0, 5, Some(0))));
    append(&mut partition, 5);
    fetch_follower(&mut partition, broker(1), 10, None, 10_001).unwrap();
    assert_eq!((high_watermark(&partition), follower_state(&partition, broker(1))), (10, (0, 10, Some(5000))));
    // 30 seconds after it was in sync at the beginning, and not yet after the first fetch.
    for (after_ms, asks) in [(10_001, false), (30_001, false), (35_000, false), (35_001, true)] {
        partition.maybe_shrink_isr(later(after_ms));
        assert_eq!((partition.isr(), partition.isr_change().is_some()), (&brokers(&[0, 1]), asks), "{after_ms}");
    }
}

#[test]
fn test_should_not_shrink_isr_if_follower_caught_up_to_log_end() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    assert_eq!((high_watermark(&partition), follower_state(&partition, broker(1))), (0, (-1, -1, Some(0))));
    fetch_follower(&mut partition, broker(1), 10, None, 0).unwrap();
    assert_eq!((high_watermark(&partition), follower_state(&partition, broker(1))), (10, (0, 10, Some(0))));
    partition.maybe_shrink_isr(later(30_001));
    assert_eq!((partition.isr(), partition.isr_change()), (&brokers(&[0, 1]), None));
}

/// The controller speaks while it is asked; its answer to what was asked before counts no longer.
#[test]
fn test_alter_isr_leader_and_isr_race() {
    let mut partition = seeded(10, 1);
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    assert_eq!((high_watermark(&partition), follower_state(&partition, broker(1))), (0, (-1, -1, Some(0))));
    partition.maybe_shrink_isr(later(30_001));
    let asked = partition.isr_change().unwrap();
    assert_eq!(partition.make_leader(&word(0, 5, 2, &[0, 1], &[0, 1]), later(30_001)), Ok(false));
    assert_eq!((high_watermark(&partition), partition.isr_change()), (0, None));
    assert_eq!(partition.isr_changed(&asked, PartitionEpoch(10), later(60_002)), Ok(false));
    partition.maybe_shrink_isr(later(60_002));
    assert_eq!(partition.isr_change().unwrap().partition_epoch, PartitionEpoch(2));
    // Not even if the same is asked for once more.
    assert_eq!(partition.isr_changed(&asked, PartitionEpoch(10), later(60_002)), Ok(false));
    assert_eq!((partition.isr(), partition.isr_change().is_some()), (&brokers(&[0, 1]), true));
}
