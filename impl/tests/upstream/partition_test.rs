#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! What Kafka's PartitionTest and the test of the epoch checkpoint say: here of the log, in `roles` of who leads, in `in_sync` of who has
//! what the leader has. In `rules` is what they do not say.

mod delete_records;
mod in_sync;
mod roles;
mod rules;

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{FetchIsolation, LeaderEpochCache, LogConfig, OffsetSpec, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard};
use cleanslate_log::replication::{EpochEndOffset, Partition, PartitionConfig, PartitionFetch, Reader};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::replication::{FOLLOWER, LEADER, led_by};
use crate::upstream::support::{Log, NOW, epochs, follow, hw, lead, new_log, placed, plain, produced, reopen, start_at};

const OUT_OF_RANGE: &str = "OffsetOutOfRangeException";

/// A leader under an epoch, whose follower is not in sync.
fn leader(log: Log, epoch: i32) -> Partition<MemoryStorage> {
    let mut partition = Partition::new(LEADER, log, PartitionConfig::default());
    assert_eq!(partition.make_leader(&led_by(LEADER, epoch), NOW), Ok(true));
    partition
}

/// What a leader answers a follower that fetches from an offset and last fetched an epoch: where they diverge, if they do.
fn diverging(leader: &mut Partition<MemoryStorage>, last_epoch: i32, from: i64) -> Result<Option<(i32, i64)>, &'static str> {
    let request = PartitionFetch {
        fetch_offset: Offset(from),
        log_start_offset: Offset(0),
        current_leader_epoch: Some(leader.leader_epoch()),
        last_fetched_epoch: Some(LeaderEpoch(last_epoch)),
        topic_id: None,
    };
    let fetched = leader.fetch(Reader::Follower(FOLLOWER), &request, usize::MAX, NOW);
    let diverging = fetched.map_err(|error| error.kafka_class())?.diverging;
    Ok(diverging.map(|at| (at.epoch.get(), at.end_offset.get())))
}

#[test]
fn test_last_fetched_offset_validation() {
    let mut log = new_log(&LogConfig::default());
    for (epoch, count) in [(0, 2), (3, 3), (3, 3), (4, 5), (7, 1), (9, 3)] {
        let end = log.log_end_offset().get();
        follow(&mut log, &[placed(plain(count), end, epoch)]).unwrap();
    }
    let mut leader = leader(log, 10);
    assert_eq!(leader.log().log_end_offset(), Offset(17));
    for (last, from, expected) in [(2, 5, (0, 2)), (0, 4, (0, 2)), (6, 6, (4, 13)), (5, 9, (4, 13)), (10, 18, (10, 17))] {
        assert_eq!(diverging(&mut leader, last, from), Ok(Some(expected)), "{last} {from}");
    }
    for (last, from) in [(0, 2), (7, 14), (9, 17), (10, 17)] {
        assert_eq!(diverging(&mut leader, last, from), Ok(None), "{last} {from}");
    }
    assert_eq!(diverging(&mut leader, 11, 5), Err(OUT_OF_RANGE));
    hw(leader.log_mut(), 17);
    start_at(leader.log_mut(), 5);
    assert_eq!(diverging(&mut leader, 2, 8), Ok(Some((2, 5))));
    assert_eq!(diverging(&mut leader, 0, 5), Ok(None));
    assert_eq!(diverging(&mut leader, 3, 5), Ok(None));
    assert_eq!(diverging(&mut leader, 0, 0), Err(OUT_OF_RANGE));
    start_at(leader.log_mut(), 10);
    assert_eq!(diverging(&mut leader, 5, 6), Err(OUT_OF_RANGE));
    assert_eq!(diverging(&mut leader, 3, 6), Err(OUT_OF_RANGE));
}

/// The log starts in the middle of a batch that its leader still has.
#[test]
fn test_append_records_as_follower_below_log_start_offset() {
    let mut log = new_log(&LogConfig::default());
    log.truncate_fully_and_start_at(Offset(5), NOW).unwrap();
    let fetched = |log: &mut Log, count: usize, offset: i64| {
        let batch = placed(plain(count), offset, 0).bytes().clone();
        let result = log.append_fetched(batch, LeaderEpoch(0), ReplicationPath::IntraCluster, NOW);
        result.map(|result| (result.first_offset.get(), result.last_offset.get())).map_err(|error| error.kafka_class())
    };
    let ends = |log: &Log| (log.log_start_offset().get(), log.log_end_offset().get());
    assert_eq!(fetched(&mut log, 1, 3), Err("UnexpectedAppendOffsetException"));
    assert_eq!(ends(&log), (5, 5));
    assert_eq!(fetched(&mut log, 3, 4), Ok((4, 6)));
    assert_eq!(ends(&log), (4, 7));
    assert_eq!(fetched(&mut log, 1, 7), Ok((7, 7)));
    assert_eq!(ends(&log), (4, 8));
    assert_eq!(fetched(&mut log, 2, 3), Err("UnexpectedAppendOffsetException"));
    assert_eq!(ends(&log), (4, 8));
}

#[test]
fn test_make_leader_updates_epoch_cache() {
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(2), 0, 0), placed(plain(2), 2, 5)]).unwrap();
    let leader = leader(log, 8);
    let end = EpochEndOffset { epoch: LeaderEpoch(8), end_offset: Offset(4) };
    assert_eq!(leader.end_offset_for_epoch(Some(LeaderEpoch(8)), LeaderEpoch(8), true), Ok(Some(end)));
    assert_eq!(epochs(leader.log()), [(0, 0), (5, 2), (8, 4)]);
}

#[test]
fn test_list_offset_isolation_levels() {
    let mut leader = leader(new_log(&LogConfig::default()), 5);
    let records = produced(2, 0, 0, 3).transactional(true).build().unwrap().bytes().clone();
    let (tv, guard) = (TransactionVersion::Unknown, VerificationGuard::SENTINEL);
    leader.append_to_leader(records, AppendOrigin::Client, tv, guard, NOW).unwrap();
    let offsets = |leader: &mut Partition<MemoryStorage>, spec| {
        [FetchIsolation::LogEnd, FetchIsolation::HighWatermark, FetchIsolation::TxnCommitted].map(|isolation| {
            let found = leader.fetch_offset_for_timestamp(spec, isolation, None, true);
            found.unwrap().unwrap().offset.get()
        })
    };
    assert_eq!(offsets(&mut leader, OffsetSpec::Latest), [3, 0, 0]);
    hw(leader.log_mut(), 1);
    assert_eq!(offsets(&mut leader, OffsetSpec::Latest), [3, 1, 0]);
    assert_eq!(offsets(&mut leader, OffsetSpec::Earliest), [0, 0, 0]);
    assert_eq!(offsets(&mut leader, OffsetSpec::EarliestLocal), [0, 0, 0]);
}

#[test]
fn should_persist_and_overwrite_and_reload_file() {
    let cache = LeaderEpochCache::decode(&Bytes::from_static(b"0\n3\n0 1\n1 2\n2 3\n")).unwrap();
    let entries: Vec<(i32, i64)> = cache.entries().iter().map(|entry| (entry.epoch.get(), entry.start_offset.get())).collect();
    assert_eq!(entries, [(0, 1), (1, 2), (2, 3)]);
    assert_eq!(LeaderEpochCache::decode(&cache.encode()), Ok(cache));
}

/// What is checkpointed of the high watermark is set after the log was opened.
#[test]
fn test_use_checkpoint_to_initialize_high_watermark() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, plain(6)).unwrap();
    let mut log = reopen(&log, Recovery::Unclean, 0, 0);
    assert_eq!(log.log_end_offset(), Offset(6));
    hw(&mut log, 4);
    assert_eq!(log.high_watermark(), Offset(4));
}
