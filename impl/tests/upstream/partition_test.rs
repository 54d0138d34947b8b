#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! What Kafka's PartitionTest, AbstractFetcherThreadTest and the test of the epoch checkpoint say about the log itself.

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{LeaderEpochCache, LogConfig, Recovery};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::support::{
    Log, NOW, epochs, follow, follow_under, hw, lead, new_log, placed, plain, produced, reopen, start_at,
};

const OUT_OF_RANGE: &str = "OffsetOutOfRangeException";

/// What a leader answers a follower that fetches from an offset and last fetched an epoch: where they diverge, if they do.
fn diverging(log: &Log, last_epoch: i32, from: i64) -> Result<Option<(i32, i64)>, &'static str> {
    if from < log.log_start_offset().get() {
        return Err(OUT_OF_RANGE);
    }
    let (epoch, end) = log.end_offset_for_epoch(LeaderEpoch(last_epoch)).ok_or(OUT_OF_RANGE)?;
    Ok((epoch < LeaderEpoch(last_epoch) || end < Offset(from)).then_some((epoch.get(), end.get())))
}

#[test]
fn test_last_fetched_offset_validation() {
    let mut log = new_log(&LogConfig::default());
    for (epoch, count) in [(0, 2), (3, 3), (3, 3), (4, 5), (7, 1), (9, 3)] {
        let end = log.log_end_offset().get();
        follow(&mut log, &[placed(plain(count), end, epoch)]).unwrap();
    }
    assert_eq!(log.log_end_offset(), Offset(17));
    log.assign_epoch_start_offset(LeaderEpoch(10)).unwrap();
    for (last, from, expected) in [(2, 5, (0, 2)), (0, 4, (0, 2)), (6, 6, (4, 13)), (5, 9, (4, 13)), (10, 18, (10, 17))] {
        assert_eq!(diverging(&log, last, from), Ok(Some(expected)), "{last} {from}");
    }
    for (last, from) in [(0, 2), (7, 14), (9, 17), (10, 17)] {
        assert_eq!(diverging(&log, last, from), Ok(None), "{last} {from}");
    }
    assert_eq!(diverging(&log, 11, 5), Err(OUT_OF_RANGE));
    hw(&mut log, 17);
    start_at(&mut log, 5);
    assert_eq!(diverging(&log, 2, 8), Ok(Some((2, 5))));
    assert_eq!(diverging(&log, 0, 5), Ok(None));
    assert_eq!(diverging(&log, 3, 5), Ok(None));
    assert_eq!(diverging(&log, 0, 0), Err(OUT_OF_RANGE));
    start_at(&mut log, 10);
    assert_eq!(diverging(&log, 5, 6), Err(OUT_OF_RANGE));
    assert_eq!(diverging(&log, 3, 6), Err(OUT_OF_RANGE));
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
    log.assign_epoch_start_offset(LeaderEpoch(8)).unwrap();
    assert_eq!(log.end_offset_for_epoch(LeaderEpoch(8)), Some((LeaderEpoch(8), Offset(4))));
    assert_eq!(epochs(&log), [(0, 0), (5, 2), (8, 4)]);
}

#[test]
fn test_list_offset_isolation_levels() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, produced(2, 0, 0, 3).transactional(true)).unwrap();
    let latest = |log: &Log| [log.log_end_offset(), log.high_watermark(), log.last_stable_offset()].map(Offset::get);
    assert_eq!(latest(&log), [3, 0, 0]);
    hw(&mut log, 1);
    assert_eq!(latest(&log), [3, 1, 0]);
}

#[test]
fn test_replicate_batches_up_to_leader_epoch() {
    let mut log = new_log(&LogConfig::default());
    let batches = [placed(plain(1), 0, 3), placed(plain(1), 1, 4), placed(plain(1), 2, 5)];
    follow_under(&mut log, &batches, 4).unwrap();
    assert_eq!(log.batches().unwrap(), batches[..2]);
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
