//! What becomes of each file, whole or damaged, when a log is opened: sentence by sentence what Kafka's LogLoader does.

use bytes::Bytes;
use cleanslate_log::log::{LEADER_EPOCH_CHECKPOINT, LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::snapshot_file_name;
use cleanslate_log::record::{ATTRIBUTES_POSITION, CRC_POSITION};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::Offset;

use crate::log_support::{NOW, batch, batches};
use crate::support::{Log, after, bases, epochs, follow, ids, open, patched, remembered, snapshots, stock, three_segments};

fn name(base: i64, suffix: &str) -> String {
    format!("{base:0>20}.{suffix}")
}

fn put(storage: &mut MemoryStorage, name: &str, content: &[u8]) {
    storage.replace(name, &Bytes::copy_from_slice(content)).unwrap();
}

fn flip(storage: &mut MemoryStorage, name: &str, position: usize) {
    let mut bytes = storage.read_all(name).unwrap().unwrap().to_vec();
    bytes[position] ^= 1;
    put(storage, name, &bytes);
}

/// A segment at 0 of these batches, with an index, so that a clean start does not recover it.
fn segment(content: &[u8]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    put(&mut storage, &name(0, "log"), content);
    put(&mut storage, &name(0, "index"), &[]);
    storage
}

/// Sequences and offsets of producer 5.
fn five(log: &Log) -> Vec<(i32, i64)> {
    remembered(log, 5)
}

// Files that are there for a while only.

#[test]
fn deleted_files_go_but_for_checkpoints() {
    let mut storage = three_segments().into_storage();
    let checkpoint = "00000000000000000004-0000000002.checkpoint.deleted";
    for deleted in [&name(0, "log.deleted"), &name(2, "snapshot.deleted"), checkpoint] {
        put(&mut storage, deleted, b"x");
    }
    let names = open(&storage, Recovery::Clean, 6, 0).storage().names().unwrap();
    assert_eq!(names.iter().filter(|name| name.ends_with(".deleted")).collect::<Vec<_>>(), [checkpoint]);
}

#[test]
fn a_swap_below_what_is_being_cleaned_is_finished_and_one_above_is_not() {
    let storage = three_segments().into_storage();
    let replacement = |base: i64| batch("-x2", Offset(base)).bytes().clone();
    let with = |swap: i64| {
        let mut changed = storage.clone();
        put(&mut changed, &name(swap, "log.swap"), &replacement(swap));
        put(&mut changed, &name(2, "log.cleaned"), b"unfinished");
        let log = open(&changed, Recovery::Unclean, 0, 0);
        let names = log.storage().names().unwrap();
        assert!(!names.iter().any(|name| name.ends_with("swap") || name.ends_with("cleaned")), "{names:?}");
        assert_eq!((bases(&log), log.log_end_offset()), (vec![0, 2, 4], Offset(6)));
        let index = usize::try_from(swap / 2).unwrap();
        // Two batches of one record each, or one of two.
        log.batches().unwrap().iter().filter(|batch| batch.base_offset().get() / 2 == i64::try_from(index).unwrap()).count()
    };
    assert_eq!((with(0), with(2), with(4)), (1, 2, 2));
}

#[test]
fn a_swap_takes_the_place_of_all_files_within_its_offsets() {
    let mut storage = three_segments().into_storage();
    put(&mut storage, &name(0, "log.swap"), &batches("5.0#0x2 5.0#2x2", Offset(0)));
    put(&mut storage, &name(0, "index.swap"), &[]);
    put(&mut storage, &name(3, "snapshot"), b"of no use");
    let log = open(&storage, Recovery::Clean, 6, 0);
    assert_eq!((bases(&log), snapshots(log.storage())), (vec![0, 4], vec![4, 6]));
    assert_eq!((log.batches().unwrap().len(), five(&log)), (4, vec![(5, 5)]));
}

// Indexes.

#[test]
fn an_index_without_a_log_goes_and_a_missing_time_index_comes() {
    let mut storage = three_segments().into_storage();
    for kind in ["index", "timeindex", "txnindex"] {
        put(&mut storage, &name(9, kind), b"orphan");
    }
    storage.remove(&name(2, "timeindex")).unwrap();
    let log = open(&storage, Recovery::Clean, 6, 0);
    assert!(!log.storage().names().unwrap().iter().any(|name| name.starts_with("00000000000000000009")));
    assert_eq!(log.storage().len(&name(2, "timeindex")), Ok(Some(0)));
    assert_eq!((log.log_end_offset(), five(&log)), (Offset(6), vec![(5, 5)]));
}

#[test]
fn a_segment_without_index_is_recovered_whatever_the_stop_was() {
    let mut storage = three_segments().into_storage();
    storage.remove(&name(2, "index")).unwrap();
    put(&mut storage, &name(2, "timeindex"), &[9; 24]);
    let log = open(&storage, Recovery::Clean, 6, 0);
    assert_eq!((snapshots(log.storage()), five(&log)), (vec![2, 4, 6], vec![(3, 3), (4, 4), (5, 5)]));
    // The indexes are made anew: no entry of a segment that short, but the time of its last batch.
    assert_eq!((log.storage().len(&name(2, "index")), log.storage().len(&name(2, "timeindex"))), (Ok(Some(0)), Ok(Some(12))));
}

#[test]
fn an_aborted_transaction_below_the_base_has_the_segment_recovered() {
    let mut log = stock(&["copy t7.0#0 | AB7.0"]).log;
    log.roll(NOW).unwrap();
    follow(&mut log, batches("t7.0#1 AB7.0", Offset(2))).unwrap();
    log.close_clean().unwrap();
    let mut storage = log.into_storage();
    let good = storage.read_all(&name(2, "txnindex")).unwrap().unwrap();
    let below = storage.read_all(&name(0, "txnindex")).unwrap().unwrap();
    put(&mut storage, &name(2, "txnindex"), &below);
    let log = open(&storage, Recovery::Clean, 4, 0);
    assert_eq!(log.storage().read_all(&name(2, "txnindex")), Ok(Some(good)));
    assert_eq!(log.aborted_transactions().map(|aborted| aborted.last_offset.get()).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn what_is_in_an_index_is_not_checked_after_a_clean_stop_and_made_anew_after_another() {
    let storage = three_segments().into_storage();
    let mut damaged = storage.clone();
    for kind in ["index", "timeindex"] {
        put(&mut damaged, &name(0, kind), &[0xff; 24]);
    }
    let clean = open(&damaged, Recovery::Clean, 6, 0);
    assert_eq!(clean.storage().read_all(&name(0, "index")), Ok(Some(Bytes::from_static(&[0xff; 24]))));
    assert_eq!((clean.log_end_offset(), five(&clean)), (Offset(6), vec![(5, 5)]));
    let unclean = open(&damaged, Recovery::Unclean, 0, 0);
    for kind in ["index", "timeindex"] {
        assert_eq!(unclean.storage().read_all(&name(0, kind)), storage.read_all(&name(0, kind)), "{kind}");
    }
    // Only of what is recovered: the segment that holds the recovery point, and those behind it.
    let from_the_second = open(&damaged, Recovery::Unclean, 3, 0);
    assert_eq!(from_the_second.storage().len(&name(0, "index")), Ok(Some(24)));
}

#[test]
fn a_segment_may_reach_into_the_next_one() {
    let mut storage = three_segments().into_storage();
    put(&mut storage, &name(0, "log"), &batches("5.0#0 5.0#1 5.0#2", Offset(0)));
    for (recovery, point) in [(Recovery::Clean, 6), (Recovery::Unclean, 4)] {
        let log = open(&storage, recovery, point, 0);
        assert_eq!((log.log_end_offset(), bases(&log)), (Offset(6), vec![0, 2, 4]));
        let at_two = log.read(Offset(2), cleanslate_log::log::FetchIsolation::LogEnd, 1).unwrap();
        assert_eq!(at_two, batches("5.0#2", Offset(2)));
    }
}

// Leader epochs, log start, recovery point.

#[test]
fn leader_epochs_are_cut_at_both_ends() {
    let mut log = stock(&["copy E1/- | E2/- | E3/-", "clean"]).log.into_storage();
    put(&mut log, LEADER_EPOCH_CHECKPOINT, b"0\n4\n1 0\n2 1\n3 2\n9 3\n");
    assert_eq!(epochs(&open(&log, Recovery::Clean, 3, 0)), [(1, 0), (2, 1), (3, 2)]);
    assert_eq!(epochs(&open(&log, Recovery::Clean, 3, 2)), [(3, 2)]);
    // Recovery finds those that the checkpoint lacks at its end.
    put(&mut log, LEADER_EPOCH_CHECKPOINT, b"0\n1\n1 0\n");
    assert_eq!(epochs(&open(&log, Recovery::Clean, 3, 0)), [(1, 0)]);
    assert_eq!(epochs(&open(&log, Recovery::Unclean, 0, 0)), [(1, 0), (2, 1), (3, 2)]);
    // One that cannot be read is an error: a broker keeps off the directory.
    put(&mut log, LEADER_EPOCH_CHECKPOINT, b"1\n0\n");
    let error = PartitionLog::open(log, LogConfig::default(), Recovery::Unclean, NOW).unwrap_err();
    assert_eq!(error.kafka_class(), "KafkaStorageException");
}

#[test]
fn the_log_start_is_at_least_the_first_base_and_so_is_the_high_watermark() {
    let mut storage = three_segments().into_storage();
    for kind in ["log", "index", "timeindex"] {
        storage.remove(&name(0, kind)).unwrap();
    }
    for (checkpoint, start) in [(0, 2), (3, 3), (6, 6)] {
        let log = open(&storage, Recovery::Clean, 6, checkpoint);
        assert_eq!((log.log_start_offset(), log.high_watermark()), (Offset(start), Offset(start)), "{checkpoint}");
    }
}

#[test]
fn a_log_start_behind_the_end_empties_the_log() {
    let storage = three_segments().into_storage();
    for recovery in [Recovery::Clean, Recovery::Unclean] {
        let log = open(&storage, recovery, 6, 50);
        assert_eq!((bases(&log), log.log_end_offset()), (vec![50], Offset(50)));
        // After a clean stop it looks like a log whose snapshots are gone, which is given some.
        let expected = if recovery == Recovery::Clean { vec![50] } else { vec![] };
        assert_eq!(snapshots(log.storage()), expected, "{recovery:?}");
        assert_eq!((log.high_watermark(), log.last_stable_offset(), epochs(&log)), (Offset(50), Offset(50), vec![]));
        assert_eq!(ids(&log), [] as [i64; 0]);
    }
}

#[test]
fn the_recovery_point_is_the_end_after_a_clean_stop_and_at_most_the_end_after_another() {
    let storage = three_segments().into_storage();
    for (recovery, point, expected) in
        [(Recovery::Clean, 0, 6), (Recovery::Clean, 99, 6), (Recovery::Unclean, 3, 3), (Recovery::Unclean, 99, 6)]
    {
        assert_eq!(open(&storage, recovery, point, 0).recovery_point(), Offset(expected), "{recovery:?} {point}");
    }
}

// Recovery.

#[test]
fn three_segments_that_were_not_flushed_leave_three_snapshots() {
    let mut storage = three_segments().into_storage();
    for offset in snapshots(&storage) {
        storage.remove(&snapshot_file_name(Offset(offset))).unwrap();
    }
    let log = open(&storage, Recovery::Unclean, 0, 0);
    assert_eq!((snapshots(log.storage()), log.log_end_offset(), five(&log)), (vec![2, 4, 6], Offset(6), vec![(5, 5)]));
}

#[test]
fn a_bad_batch_ends_the_log_with_all_that_follows() {
    let storage = three_segments().into_storage();
    let size = batch("5.0#0", Offset(0)).size_in_bytes();
    // A record in the second batch of a segment; in the first; the length of a batch; its leader epoch, which the CRC leaves out.
    for (base, position, end) in
        [(2, 2 * size - 1, 3), (0, size - 1, 0), (4, size - 1, 4), (0, size + CRC_POSITION, 1), (2, 11, 2), (2, 12, 6)]
    {
        let mut damaged = storage.clone();
        flip(&mut damaged, &name(base, "log"), position);
        let log = open(&damaged, Recovery::Unclean, 0, 0);
        assert_eq!(log.log_end_offset(), Offset(end), "{base} {position}");
        assert!(bases(&log).iter().all(|base| *base <= end), "{:?}", bases(&log));
        assert!(snapshots(log.storage()).iter().all(|offset| *offset <= end));
        assert_eq!(log.batches().unwrap().len(), usize::try_from(end).unwrap());
        assert_eq!(log.producer_state().map_end_offset(), Offset(end));
        let state = if end == 0 { vec![] } else { vec![5] };
        assert_eq!(ids(&log), state);
    }
    // Nothing looks at what lies in front of the recovery point.
    let mut damaged = storage;
    flip(&mut damaged, &name(0, "log"), size - 1);
    assert_eq!(open(&damaged, Recovery::Unclean, 2, 0).log_end_offset(), Offset(6));
    assert_eq!(open(&damaged, Recovery::Clean, 6, 0).log_end_offset(), Offset(6));
}

#[test]
fn a_partial_batch_is_cut() {
    let mut storage = three_segments().into_storage();
    let whole = storage.len(&name(4, "log")).unwrap().unwrap();
    storage.append(&name(4, "log"), &batch("5.0#6", Offset(6)).bytes().slice(..10)).unwrap();
    let options = OpenOptions { recovery: Recovery::Unclean, recovery_point: Offset(4), log_start_offset: Offset(0) };
    let (log, report) = PartitionLog::open(storage, LogConfig::default(), options, NOW).unwrap();
    assert_eq!((report.truncated_bytes, log.storage().len(&name(4, "log"))), (10, Ok(Some(whole))));
    assert_eq!((log.log_end_offset(), five(&log)), (Offset(6), vec![(5, 5)]));
}

#[test]
fn records_are_not_read_but_those_of_a_producers_control_batch() {
    let last = batch("5.0#0", Offset(0)).size_in_bytes() - 1;
    let nonsense = patched("5.0#0", &[(61, 0x7f), (last, 9)]);
    let log = open(&segment(&nonsense), Recovery::Unclean, 0, 0);
    assert_eq!((log.log_end_offset(), ids(&log)), (Offset(1), vec![5]));
    // The key of a marker without its length.
    let marker = patched("AB5.0", &[(61, 0x7f)]);
    assert_eq!(marker[ATTRIBUTES_POSITION + 1], 0x30);
    let opened = PartitionLog::open(segment(&marker), LogConfig::default(), Recovery::Unclean, NOW);
    assert_eq!(opened.unwrap_err().kafka_class(), "InvalidRecordException");
    // Without a producer nobody looks.
    let log = open(&segment(&patched("CTL9", &[(61, 0x7f)])), Recovery::Unclean, 0, 0);
    assert_eq!(log.log_end_offset(), Offset(1));
}

#[test]
fn what_producer_state_refuses_keeps_the_log_closed() {
    for (content, class) in [
        (batches("t5.0#0 5.0#1", Offset(0)), "InvalidTxnStateException"),
        (batches("5.0#0 CTL9:5.0", Offset(0)), "IllegalArgumentException"),
    ] {
        let opened = PartitionLog::open(segment(&content), LogConfig::default(), Recovery::Unclean, NOW);
        assert_eq!(opened.unwrap_err().kafka_class(), class);
    }
}

// Snapshots.

#[test]
fn a_corrupt_snapshot_goes_and_an_older_one_is_loaded() {
    let storage = three_segments().into_storage();
    let newest = snapshot_file_name(Offset(6));
    let whole = storage.read_all(&newest).unwrap().unwrap();
    // Empty, cut, a flipped bit of each part, and bytes behind its end.
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
    damaged.extend((0..whole.len()).map(|at| {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1;
        bytes
    }));
    damaged.push([&whole[..], b"x"].concat());
    for content in damaged {
        let mut changed = storage.clone();
        put(&mut changed, &newest, &content);
        let log = open(&changed, Recovery::Clean, 6, 0);
        // One batch from the snapshot at 4, and those that were replayed.
        assert_eq!(five(&log), [(3, 3), (4, 4), (5, 5)]);
        assert_eq!((snapshots(log.storage()), log.storage().read_all(&newest)), (vec![2, 4, 6], Ok(Some(whole.clone()))));
    }
}

#[test]
fn snapshots_at_or_below_the_log_start_go() {
    let log = open(three_segments().storage(), Recovery::Clean, 6, 4);
    assert_eq!((snapshots(log.storage()), ids(&log)), (vec![6], vec![5]));
}

#[test]
fn a_new_log_that_does_not_begin_at_zero_has_a_snapshot_at_once() {
    assert_eq!(snapshots(open(&MemoryStorage::new(), Recovery::Clean, 0, 100).storage()), [100]);
    assert_eq!(snapshots(open(&MemoryStorage::new(), Recovery::Clean, 0, 0).storage()), [] as [i64; 0]);
    assert_eq!(snapshots(after(&LogConfig::default(), &[]).log.storage()), [] as [i64; 0]);
}
