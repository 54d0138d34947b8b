#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Who leads, under which epoch, and which requests are answered.

use std::collections::BTreeSet;

use cleanslate_log::log::{FetchIsolation, LogConfig, OffsetSpec};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard, VerificationRequest};
use cleanslate_log::replication::{LeaderAndIsr, Partition, PartitionConfig, PartitionError, PartitionFetch, Reader};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, NodeId, Offset, PartitionEpoch, ProducerEpoch, ProducerId, Sequence};

use crate::upstream::support::{INVALID_TXN, NOW, epochs, later, new_log, plain, produced};

type Replica = Partition<MemoryStorage>;

const LOCAL: NodeId = NodeId(101);
const REMOTE: NodeId = NodeId(102);
const FENCED: Result<(), &str> = Err("FencedLeaderEpochException");
const UNKNOWN: Result<(), &str> = Err("UnknownLeaderEpochException");
const NOT_LEADER: Result<(), &str> = Err("NotLeaderOrFollowerException");

pub(super) fn broker(index: i32) -> NodeId {
    NodeId(LOCAL.get() + index)
}

/// A partition without records, of which nothing was heard yet.
pub(super) fn unheard() -> Replica {
    Partition::new(LOCAL, new_log(&LogConfig::default()), PartitionConfig::default())
}

/// What the controller says, about replicas by their distance from the local one.
pub(super) fn word(leader: i32, leader_epoch: i32, partition_epoch: i32, replicas: &[i32], isr: &[i32]) -> LeaderAndIsr {
    LeaderAndIsr {
        leader: broker(leader),
        leader_epoch: LeaderEpoch(leader_epoch),
        partition_epoch: PartitionEpoch(partition_epoch),
        replicas: replicas.iter().map(|index| broker(*index)).collect(),
        isr: isr.iter().map(|index| broker(*index)).collect(),
    }
}

/// Leader epoch and partition epoch.
fn known(partition: &Replica) -> (i32, i32) {
    (partition.leader_epoch().get(), partition.partition_epoch().get())
}

/// A follower's fetch from an offset; its log starts at 0.
pub(super) fn fetch_follower(
    partition: &mut Replica,
    replica: NodeId,
    from: i64,
    epoch: Option<i32>,
    after_ms: i64,
) -> Result<i64, PartitionError> {
    let request = PartitionFetch {
        fetch_offset: Offset(from),
        log_start_offset: Offset(0),
        current_leader_epoch: epoch.map(LeaderEpoch),
        last_fetched_epoch: None,
        topic_id: None,
    };
    let fetched = partition.fetch(Reader::Follower(replica), &request, usize::MAX, later(after_ms))?;
    Ok(fetched.offsets.log_end_offset.get())
}

/// A client of the leader appends records without a producer.
pub(super) fn append(partition: &mut Replica, count: usize) {
    let batch = plain(count).build().unwrap().bytes().clone();
    let (tv, guard) = (TransactionVersion::Unknown, VerificationGuard::SENTINEL);
    partition.append_to_leader(batch, AppendOrigin::Client, tv, guard, NOW).unwrap();
}

#[test]
fn test_do_not_update_epoch_start_offset_if_leader_epoch_is_not_bumped() {
    let mut partition = unheard();
    assert_eq!(partition.make_leader(&word(0, 8, 1, &[0, 1], &[0]), NOW), Ok(true));
    for partition_epoch in [1, 2] {
        assert_eq!(known(&partition), (8, partition_epoch));
        assert_eq!(partition.isr(), &BTreeSet::from([LOCAL]));
        assert_eq!(partition.leader_epoch_start_offset(), Some(Offset(0)));
        assert_eq!(epochs(partition.log()), [(8, 0)]);
        append(&mut partition, 2);
        assert_eq!(partition.make_leader(&word(0, 8, 2, &[0, 1], &[0]), NOW), Ok(false));
    }
}

/// Start offset, end offset and the time of being caught up, in milliseconds after [`NOW`], or `None` for time 0.
pub(super) fn follower_state(partition: &Replica, replica: NodeId) -> (i64, i64, Option<i64>) {
    let state = partition.follower(replica).unwrap();
    let caught_up = state.last_caught_up_time.get();
    (state.log_start_offset.get(), state.log_end_offset.get(), (caught_up > 0).then_some(caught_up - NOW.get()))
}

#[test]
fn test_do_not_reset_replica_state_if_leader_epoch_is_not_bumped() {
    let mut partition = unheard();
    assert_eq!(partition.make_leader(&word(0, 8, 1, &[0, 1], &[0]), NOW), Ok(true));
    assert_eq!(known(&partition), (8, 1));
    // It is not in sync, so nothing is known of it.
    assert_eq!(follower_state(&partition, REMOTE), (-1, -1, None));
    fetch_follower(&mut partition, REMOTE, 0, None, 5).unwrap();
    assert_eq!(follower_state(&partition, REMOTE), (0, 0, Some(5)));
    assert_eq!(partition.make_leader(&word(0, 8, 2, &[0, 1], &[0]), later(9)), Ok(false));
    assert_eq!((known(&partition), partition.isr()), ((8, 2), &BTreeSet::from([LOCAL])));
    assert_eq!(follower_state(&partition, REMOTE), (0, 0, Some(5)));
}

#[test]
fn test_ignore_leader_partition_state_change_with_older_partition_epoch() {
    let mut partition = unheard();
    assert_eq!(partition.make_leader(&word(0, 8, 1, &[0], &[0]), NOW), Ok(true));
    assert_eq!(known(&partition), (8, 1));
    // With a newer leader epoch, that nobody could have given: only the partition epoch is looked at.
    for leader_epoch in [8, 9] {
        assert_eq!(partition.make_leader(&word(0, leader_epoch, 0, &[0], &[0]), NOW), Ok(false));
        assert_eq!((known(&partition), epochs(partition.log())), ((8, 1), vec![(8, 0)]));
    }
}

/// Kafka's test says the same partition epoch twice, which is no older one.
#[test]
fn test_ignore_follower_partition_state_change_with_older_partition_epoch() {
    let mut partition = unheard();
    assert!(partition.make_follower(&word(1, 8, 1, &[0, 1], &[0, 1])));
    assert_eq!(known(&partition), (8, 1));
    assert!(!partition.make_follower(&word(1, 8, 1, &[0, 1], &[0, 1])));
    assert_eq!(known(&partition), (8, 1));
    assert!(!partition.make_follower(&word(2, 9, 0, &[0, 1, 2], &[0, 1])));
    assert_eq!((known(&partition), partition.leader()), ((8, 1), Some(REMOTE)));
}

#[test]
fn test_make_follower_with_no_leader_id_change() {
    let mut partition = unheard();
    assert!(partition.make_follower(&word(1, 1, 1, &[0, 1, 2, 3], &[0, 1, 2, 3])));
    assert!(partition.make_follower(&word(1, 4, 1, &[0, 1, 2, 3], &[0, 1, 2, 3])));
    assert!(!partition.make_follower(&word(1, 4, 1, &[0, 1, 2, 3], &[0, 1, 2, 3])));
}

#[test]
fn test_follower_should_not_have_any_remote_replica_states() {
    let mut partition = unheard();
    assert_eq!(partition.make_leader(&word(0, 1, 1, &[0, 1, 2], &[0, 1, 2]), NOW), Ok(true));
    assert_eq!((known(&partition), partition.leader(), partition.isr().len()), ((1, 1), Some(LOCAL), 3));
    assert_eq!([0, 1, 2].map(|index| partition.follower(broker(index)).is_some()), [false, true, true]);
    assert!(partition.make_follower(&word(1, 2, 2, &[0, 1, 2], &[0, 1, 2])));
    assert_eq!((known(&partition), partition.leader(), partition.isr().len()), ((2, 2), Some(REMOTE), 0));
    assert_eq!([0, 1, 2].map(|index| partition.follower(broker(index)).is_some()), [false, false, false]);
}

#[test]
fn test_fetch_from_unrecognized_follower() {
    let mut partition = unheard();
    assert_eq!(partition.make_leader(&word(0, 8, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    let fetches = [(broker(2), Some(8)), (broker(3), None)];
    let results = fetches.map(|(replica, epoch)| fetch_follower(&mut partition, replica, 0, epoch, 0));
    assert_eq!(results.map(|result| result.map(|_| ()).map_err(|error| error.kafka_class())), [UNKNOWN, NOT_LEADER]);
    assert_eq!(partition.make_leader(&word(0, 8, 2, &[0, 1, 2, 3], &[0, 1]), NOW), Ok(false));
    for (replica, epoch) in fetches {
        assert_eq!(fetch_follower(&mut partition, replica, 0, epoch, 0), Ok(0));
        assert_eq!(follower_state(&partition, replica), (0, 0, Some(0)));
    }
}

/// A replica under epoch 5, which leads or follows.
fn under_epoch_5(leads: bool) -> Replica {
    let mut partition = unheard();
    if leads {
        assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    } else {
        assert!(partition.make_follower(&word(1, 5, 1, &[0, 1], &[0, 1])));
    }
    partition
}

type Ask = fn(&mut Replica, Option<LeaderEpoch>, bool) -> Result<(), PartitionError>;

/// What comes of requests without an epoch, under the epoch, under the one before and the one behind.
fn outcomes(leads: bool, leader_only: bool, ask: Ask) -> [Result<(), &'static str>; 4] {
    let mut partition = under_epoch_5(leads);
    [None, Some(5), Some(4), Some(6)].map(|epoch| {
        let result = ask(&mut partition, epoch.map(LeaderEpoch), leader_only);
        result.map_err(|error| error.kafka_class())
    })
}

/// A follower's request is one for the leader, whatever the epoch that is asked about.
fn on_leader(ask: Ask) {
    assert_eq!(outcomes(true, true, ask), [Ok(()), Ok(()), FENCED, UNKNOWN]);
}

/// The epoch is looked at first.
fn on_follower(ask: Ask) {
    assert_eq!(outcomes(false, false, ask), [Ok(()), Ok(()), FENCED, UNKNOWN]);
    assert_eq!(outcomes(false, true, ask), [NOT_LEADER, NOT_LEADER, FENCED, UNKNOWN]);
}

fn request(current_leader_epoch: Option<LeaderEpoch>) -> PartitionFetch {
    let (fetch_offset, log_start_offset) = (Offset(0), Offset(0));
    PartitionFetch { fetch_offset, log_start_offset, current_leader_epoch, last_fetched_epoch: None, topic_id: None }
}

#[test]
fn test_leader_epoch_validation_on_leader() {
    on_leader(|partition, epoch, _| {
        let fetched = partition.fetch(Reader::Follower(REMOTE), &request(epoch), usize::MAX, NOW)?;
        assert_eq!(fetched.offsets.log_end_offset, Offset(0));
        Ok(())
    });
}

/// A client that does not tell enough of itself to be sent to a follower is answered by the leader only.
#[test]
fn test_leader_epoch_validation_on_follower() {
    on_follower(|partition, epoch, leader_only| {
        let reader = Reader::Client { isolation: FetchIsolation::HighWatermark, from_follower: !leader_only };
        let fetched = partition.fetch(reader, &request(epoch), usize::MAX, NOW)?;
        assert_eq!(fetched.offsets.log_end_offset, Offset(0));
        Ok(())
    });
}

#[test]
fn test_replica_fetch_to_follower() {
    let mut partition = under_epoch_5(false);
    let fetches = [None, Some(5), Some(6), Some(4)].map(|epoch| fetch_follower(&mut partition, broker(2), 0, epoch, 0));
    let results = fetches.map(|result| result.map(|_| ()).map_err(|error| error.kafka_class()));
    assert_eq!(results, [NOT_LEADER, NOT_LEADER, UNKNOWN, FENCED]);
}

const OFFSET_FOR_EPOCH: Ask =
    |partition, epoch, leader_only| partition.end_offset_for_epoch(epoch, LeaderEpoch(0), leader_only).map(|_| ());

#[test]
fn test_offset_for_leader_epoch_validation_for_leader() {
    on_leader(OFFSET_FOR_EPOCH);
}

#[test]
fn test_offset_for_leader_epoch_validation_for_follower() {
    on_follower(OFFSET_FOR_EPOCH);
}

const SNAPSHOT: Ask = |partition, epoch, leader_only| partition.fetch_offset_snapshot(epoch, leader_only).map(|_| ());

#[test]
fn test_fetch_offset_snapshot_epoch_validation_for_leader() {
    on_leader(SNAPSHOT);
}

#[test]
fn test_fetch_offset_snapshot_epoch_validation_for_follower() {
    on_follower(SNAPSHOT);
}

const OFFSET_FOR_TIMESTAMP: Ask = |partition, epoch, leader_only| {
    let spec = OffsetSpec::from(0);
    partition.fetch_offset_for_timestamp(spec, FetchIsolation::LogEnd, epoch, leader_only).map(|_| ())
};

#[test]
fn test_fetch_offset_for_timestamp_epoch_validation_for_leader() {
    on_leader(OFFSET_FOR_TIMESTAMP);
}

#[test]
fn test_fetch_offset_for_timestamp_epoch_validation_for_follower() {
    on_follower(OFFSET_FOR_TIMESTAMP);
}

#[test]
fn test_fetch_latest_offset_includes_leader_epoch() {
    let mut partition = under_epoch_5(true);
    let found = partition.fetch_offset_for_timestamp(OffsetSpec::Latest, FetchIsolation::LogEnd, None, true);
    assert_eq!(found.unwrap().unwrap().leader_epoch, Some(LeaderEpoch(5)));
}

#[test]
fn test_maybe_start_transaction_verification() {
    let config = LogConfig { transaction_verification: true, ..LogConfig::default() };
    let mut partition = Partition::new(LOCAL, new_log(&config), PartitionConfig::default());
    let request = VerificationRequest {
        producer_id: ProducerId(22),
        producer_epoch: ProducerEpoch(0),
        sequence: Sequence(3),
        supports_epoch_bump: true,
    };
    // Who follows does not verify, nor append for clients.
    assert!(partition.make_follower(&word(1, 4, 0, &[0, 1], &[0, 1])));
    assert_eq!(partition.maybe_start_transaction_verification(&request, NOW), Err(PartitionError::NotLeaderOrFollower));
    let append = |partition: &mut Replica, sequence, transactional, guard| {
        let batch = produced(22, 0, sequence, 3).transactional(transactional).build().unwrap().bytes().clone();
        let result = partition.append_to_leader(batch, AppendOrigin::Client, TransactionVersion::Unknown, guard, NOW);
        result.map(|result| result.last_offset.get()).map_err(|error| error.kafka_class())
    };
    let none = VerificationGuard::SENTINEL;
    assert_eq!(append(&mut partition, 0, false, none), Err("NotLeaderOrFollowerException"));

    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1], &[0, 1]), NOW), Ok(true));
    assert_eq!(append(&mut partition, 0, false, none), Ok(2));
    assert_eq!(append(&mut partition, 3, true, none), Err(INVALID_TXN));
    let guard = partition.maybe_start_transaction_verification(&request, NOW).unwrap();
    assert_ne!(guard, none);
    assert_eq!(append(&mut partition, 3, true, VerificationGuard(guard.0 + 1)), Err(INVALID_TXN));
    assert_eq!(partition.maybe_start_transaction_verification(&request, NOW), Ok(guard));
    assert_eq!(append(&mut partition, 3, true, guard), Ok(5));
    // The transaction is open now. The batch is a repetition.
    assert_eq!(partition.maybe_start_transaction_verification(&request, NOW), Ok(none));
    assert_eq!(append(&mut partition, 3, true, none), Ok(5));
}
