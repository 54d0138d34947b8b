//! What a cleaning round leaves of a log, and what that means for producers and barriers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

use bytes::Bytes;
use cleanslate_log::barrier::{BarrierPolicy, BarrierRetention, Clears, ReplicationPath};
use cleanslate_log::log::{CleanOptions, Cleaner, LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::record::{BatchBuilder, MirrorPidResetRecord, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const DAY_MS: i64 = 86_400_000;

type Log = PartitionLog<MemoryStorage>;

/// `5#0 a`: id 5, sequence 0, key a; `t5#0 a` in a transaction; `AB5`, `CM5` markers; `BAR` a barrier; `- a` without a producer; `!` at the
/// end makes a tombstone of it.
fn batch(spec: &str, offset: Offset) -> RecordBatch {
    let (epoch, none) = (ProducerEpoch(0), LeaderEpoch(0));
    if spec == "BAR" {
        let record = MirrorPidResetRecord { version: 0, source_cluster_id: Some("A".to_owned()) };
        return RecordBatch::mirror_pid_reset(offset, none, NOW, &record).unwrap();
    }
    if let Some((commit, id)) =
        spec.strip_prefix("AB").map(|id| (false, id)).or_else(|| spec.strip_prefix("CM").map(|id| (true, id)))
    {
        let id = ProducerId(id.parse().unwrap());
        return RecordBatch::end_txn_marker(offset, none, NOW, id, epoch, commit, CoordinatorEpoch(0)).unwrap();
    }
    let (producer, key) = spec.split_once(' ').unwrap();
    let mut builder = BatchBuilder::new(offset).leader_epoch(none).timestamp(NOW).transactional(producer.starts_with('t'));
    if let Some((id, sequence)) = producer.trim_start_matches('t').split_once('#') {
        builder = builder.producer(ProducerId(id.parse().unwrap()), epoch, Sequence(sequence.parse().unwrap()));
    }
    let value = if key.ends_with('!') { None } else { Some(&b"value"[..]) };
    builder.record(Some(key.trim_end_matches('!').as_bytes()), value).build().unwrap()
}

/// A log of these batches, all replicated, with an empty active segment behind them.
fn log(config: &LogConfig, specs: &[&str]) -> Log {
    let mut log = PartitionLog::create(MemoryStorage::new(), config.clone(), NOW).unwrap();
    for spec in specs {
        let bytes = Bytes::copy_from_slice(batch(spec, log.log_end_offset()).bytes());
        log.append_as_follower(bytes, LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
    }
    log.update_high_watermark(log.log_end_offset());
    log.roll(NOW).unwrap();
    log
}

/// A cleaning round of everything, so many days from now; returns what is left: offset, id and sequence, `<empty>`, `+horizon`.
fn clean(log: &mut Log, days: i64) -> String {
    let now = TimestampMs(NOW.get() + days * DAY_MS);
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: log.last_stable_offset(), now, max_keys: 1000 };
    log.compact(&options).unwrap();
    let show = |batch: &RecordBatch| {
        let what = if batch.is_control() { "ctl".to_owned() } else { format!("{}#{}", batch.producer_id(), batch.base_sequence()) };
        let empty = if batch.record_count() == 0 { "<empty>" } else { "" };
        let horizon = if batch.delete_horizon().is_some() { "+horizon" } else { "" };
        format!("{}:{what}{empty}{horizon}", batch.base_offset())
    };
    log.batches().unwrap().iter().map(show).collect::<Vec<_>>().join(" ")
}

fn producers(log: &Log) -> String {
    let entries = log.producer_state().active_producers().values();
    entries.map(|e| format!("{}:[{}@{}]", e.producer_id, e.last_sequence(), e.last_data_offset())).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_barrier_is_kept_at_its_offset_whatever_goes_around_it() {
    let mut log = log(&LogConfig::default(), &["5#0 a", "5#1 a", "BAR", "- a", "- b"]);
    let barrier = log.batches().unwrap()[2].clone();
    // The last batch of a producer that is known stays as a header.
    assert_eq!(clean(&mut log, 0), "1:5#1<empty> 2:ctl 3:-1#-1 4:-1#-1");
    log.remove_expired_producers(TimestampMs(NOW.get() + DAY_MS));
    for days in 0..3 {
        assert_eq!(clean(&mut log, days), "2:ctl 3:-1#-1 4:-1#-1");
        assert_eq!(log.batches().unwrap()[0], barrier, "byte for byte");
    }
}

#[test]
fn an_unclean_start_finds_an_older_entry_unless_the_barrier_acts() {
    let specs = ["7#0 a", "7#1 b", "BAR", "- b"];
    let restart = |config: &LogConfig| {
        let mut log = log(config, &specs);
        log.remove_expired_producers(TimestampMs(NOW.get() + DAY_MS));
        assert_eq!(clean(&mut log, 0), "0:7#0 2:ctl 3:-1#-1");
        let mut storage = log.into_storage();
        for file in cleanslate_log::psm::snapshot_files(&storage).unwrap() {
            storage.remove(&file.name).unwrap();
        }
        producers(&PartitionLog::open(storage, config.clone(), Recovery::Unclean, NOW).unwrap().0)
    };
    // Kafka ignores the barrier; the producer's true last sequence was 1.
    assert_eq!(restart(&LogConfig::default()), "7:[0@0]");
    let barrier = BarrierPolicy { clears: Clears::AllIds, ..BarrierPolicy::default() };
    assert_eq!(restart(&LogConfig { barrier, ..LogConfig::default() }), "");
}

fn removing(retention: BarrierRetention) -> LogConfig {
    LogConfig { barrier: BarrierPolicy { retention, ..BarrierPolicy::SOUND }, ..LogConfig::default() }
}

fn snapshots(log: &Log) -> Vec<i64> {
    cleanslate_log::psm::snapshot_files(log.storage()).unwrap().iter().map(|file| file.offset.get()).collect()
}

/// The last record of a key outlives its producer's entry, and the barrier has to outlive it.
#[test]
fn a_barrier_that_goes_while_it_protects() {
    let config = removing(BarrierRetention::LikeMarker);
    let mut log = log(&config, &["5#0 a", "BAR", "- b", "- c"]);
    assert_eq!(clean(&mut log, 0), "0:5#0 1:ctl+horizon 2:-1#-1 3:-1#-1");
    assert_eq!(clean(&mut log, 2), "0:5#0 2:-1#-1 3:-1#-1");
    assert_eq!(producers(&log), "");
    let restarted = PartitionLog::open(log.into_storage(), config, Recovery::Unclean, NOW).unwrap().0;
    assert_eq!(producers(&restarted), "5:[0@0]");
}

#[test]
fn a_barrier_that_goes_when_nothing_is_left_in_front_of_it() {
    let config = removing(BarrierRetention::WhileItProtects);
    let mut protecting = log(&config, &["5#0 a", "BAR", "- b", "- c"]);
    for days in 0..3 {
        assert_eq!(clean(&mut protecting, days), "0:5#0 1:ctl 2:-1#-1 3:-1#-1");
    }
    // A marker is a producer's batch too.
    let mut marker = log(&config, &["t5#0 a", "CM5", "BAR", "- a", "- c"]);
    assert_eq!(clean(&mut marker, 0), "1:ctl 2:ctl 3:-1#-1 4:-1#-1");
    assert_eq!(clean(&mut marker, 0), "1:ctl+horizon 2:ctl 3:-1#-1 4:-1#-1");
    assert_eq!(clean(&mut marker, 2), "2:ctl+horizon 3:-1#-1 4:-1#-1");
    assert_eq!(clean(&mut marker, 4), "3:-1#-1 4:-1#-1");
}

/// A snapshot in front of a barrier holds what the barrier cleared. When the later ones are lost, it is loaded.
#[test]
fn snapshots_in_front_go_with_the_barrier() {
    for (retention, left, revived) in
        [(BarrierRetention::WhileItProtects, &[3, 4, 5][..], ""), (BarrierRetention::LikeMarker, &[1, 2, 3, 4, 5], "5:[0@1]")]
    {
        let config = removing(retention);
        let mut log = PartitionLog::create(MemoryStorage::new(), config.clone(), NOW).unwrap();
        for spec in ["- z", "5#0 a", "BAR", "- a", "- c"] {
            let bytes = Bytes::copy_from_slice(batch(spec, log.log_end_offset()).bytes());
            log.append_as_follower(bytes, LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
            log.take_snapshot().unwrap();
        }
        log.update_high_watermark(log.log_end_offset());
        log.roll(NOW).unwrap();
        assert_eq!(clean(&mut log, 0), "0:-1#-1 2:ctl+horizon 3:-1#-1 4:-1#-1");
        assert_eq!(snapshots(&log), [1, 2, 3, 4, 5]);
        assert_eq!(clean(&mut log, 2), "0:-1#-1 3:-1#-1 4:-1#-1");
        assert_eq!(snapshots(&log), left, "{retention:?}");
        let mut storage = log.into_storage();
        for offset in [3, 4, 5] {
            storage.remove(&cleanslate_log::psm::snapshot_file_name(Offset(offset))).unwrap();
        }
        let options = OpenOptions { recovery_point: Offset(5), ..OpenOptions::new(Recovery::Unclean) };
        let log = PartitionLog::open(storage, config, options, NOW).unwrap().0;
        assert_eq!(producers(&log), revived, "{retention:?}");
    }
}

/// The last batch of a round stays as a header, which is no barrier any more.
#[test]
fn a_barrier_that_becomes_a_header_takes_the_snapshots_along() {
    let config = removing(BarrierRetention::WhileItProtects);
    let mut log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
    for spec in ["- z", "5#0 a", "- a", "BAR"] {
        let bytes = Bytes::copy_from_slice(batch(spec, log.log_end_offset()).bytes());
        log.append_as_follower(bytes, LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
        log.take_snapshot().unwrap();
    }
    log.update_high_watermark(log.log_end_offset());
    log.roll(NOW).unwrap();
    assert_eq!(clean(&mut log, 0), "0:-1#-1 2:-1#-1 3:ctl+horizon");
    assert_eq!(snapshots(&log), [1, 2, 3, 4]);
    assert_eq!(clean(&mut log, 2), "0:-1#-1 2:-1#-1 3:ctl<empty>");
    assert_eq!(snapshots(&log), [4]);
}

#[test]
fn an_aborted_transaction_goes_and_its_marker_later() {
    let mut log = log(&LogConfig::default(), &["t5#0 a", "AB5", "5#1 b", "- c"]);
    assert_eq!(clean(&mut log, 0), "1:ctl 2:5#1 3:-1#-1");
    assert_eq!(log.aborted_transactions().count(), 1);
    assert_eq!(clean(&mut log, 0), "1:ctl+horizon 2:5#1 3:-1#-1");
    assert_eq!(log.aborted_transactions().count(), 0);
    assert_eq!(clean(&mut log, 2), "2:5#1 3:-1#-1");
}

#[test]
fn a_tombstone_stays_for_the_retention_time() {
    let mut log = log(&LogConfig::default(), &["- a", "- a!", "- b"]);
    assert_eq!(clean(&mut log, 0), "1:-1#-1+horizon 2:-1#-1");
    assert_eq!(clean(&mut log, 2), "2:-1#-1");
}

/// The keys of one log are none of the next, and each round tells what it did itself.
#[test]
fn a_cleaner_begins_each_round_anew() {
    let mut cleaner = Cleaner::new();
    let mut round = |specs: &[&str], max_keys| {
        let mut log = log(&LogConfig::default(), specs);
        let before = log.size_in_bytes();
        let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: log.last_stable_offset(), now: NOW, max_keys };
        let (end, stats) = log.compact_with(&mut cleaner, &options, || true).unwrap();
        assert_eq!((stats.bytes_read, stats.bytes_written), (before, log.size_in_bytes()));
        let left: Vec<i64> = log.batches().unwrap().iter().map(|batch| batch.base_offset().get()).collect();
        (end.get(), left, stats.records_read, stats.records_written, stats.map_utilization)
    };
    assert_eq!(round(&["- a", "- b", "- a", "- c"], 4), (4, vec![1, 2, 3], 4, 3, 0.75));
    assert_eq!(round(&["- a", "- c"], 8), (2, vec![0, 1], 2, 2, 0.25));
    // A full map ends the round early: the rest is kept as it is.
    assert_eq!(round(&["- a", "- b", "- a", "- a"], 2), (2, vec![0, 1, 2, 3], 4, 4, 1.0));
}
