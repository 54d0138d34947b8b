//! Snapshots, restarts, truncation: traps 13 to 19, 21 to 24, and 37.

use bytes::Bytes;
use cleanslate_log::log::{LOG_FILE, Recovery};
use cleanslate_log::psm::{ProducerSnapshot, snapshot_file_name};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerId};

use crate::log_support::{NOW, batch};
use crate::support::{epochs, file, follow, ids, open, remembered, snapshots, stock, three_segments};

const EMPTY_SNAPSHOT: [u8; 10] = [0x00, 0x01, 0x48, 0x67, 0x4b, 0xc7, 0x00, 0x00, 0x00, 0x00];

fn without(storage: &MemoryStorage, ending: &str) -> MemoryStorage {
    let mut left = storage.clone();
    for name in storage.names().unwrap().iter().filter(|name| name.ends_with(ending)) {
        left.remove(name).unwrap();
    }
    left
}

/// Puts a producer 99, whom the log has never seen, into the snapshots at these offsets.
fn with_stranger(storage: &MemoryStorage, offsets: &[i64]) -> MemoryStorage {
    let mut changed = storage.clone();
    for offset in offsets {
        let name = snapshot_file_name(Offset(*offset));
        let mut snapshot = ProducerSnapshot::decode(&storage.read_all(&name).unwrap().unwrap()).unwrap();
        let mut stranger = snapshot.entries[0];
        stranger.producer_id = ProducerId(99);
        snapshot.entries.push(stranger);
        changed.replace(&name, &snapshot.encode()).unwrap();
    }
    changed
}

/// The state moves on with batches of no producer, so there are snapshots of nothing.
#[test]
fn k13_a_log_without_producers_has_snapshots() {
    let mut log = stock(&["copy -"]).log;
    assert_eq!(log.producer_state().map_end_offset(), Offset(1));
    log.roll(NOW).unwrap();
    assert_eq!(snapshots(log.storage()), [1]);
    assert_eq!(file(&log, &snapshot_file_name(Offset(1))), EMPTY_SNAPSHOT);
}

/// A snapshot has one batch of each producer, with the timestamp of the entry.
#[test]
fn k14_a_snapshot_restores_one_batch() {
    let log = stock(&["client 5.0#0", "client 5.0#1@-9", "coordinator CM5.0", "clean"]).log;
    assert_eq!(remembered(&log, 5), [(1, 1)]);
    let entry = log.producer_state().last_entry(ProducerId(5)).unwrap();
    assert_eq!((entry.last_timestamp, entry.batches()[0].timestamp), (NOW, NOW));
}

/// Kafka writes a snapshot over a longer file without cutting it, which leaves a corrupt one; here it is cut.
#[test]
fn k15_a_snapshot_replaces_a_longer_file() {
    let mut log = stock(&["copy 5.0#0"]).log;
    let mut storage = log.storage().clone();
    let name = snapshot_file_name(Offset(1));
    storage.replace(&name, &Bytes::from(vec![7; 500])).unwrap();
    let mut psm = log.producer_state().clone();
    assert_eq!(psm.take_snapshot(&mut storage), Ok(true));
    let written = storage.read_all(&name).unwrap().unwrap();
    assert_eq!(ProducerSnapshot::decode(&written), Ok(psm.snapshot()));
    log.take_snapshot().unwrap();
    assert_eq!(file(&log, &name), written);
}

/// The entries stand in the order of Java's hash table.
#[test]
fn k16_entries_are_in_the_order_of_a_hash_table() {
    let log = stock(&["copy 1000.0#0 | 3.0#0 | 17.0#0 | 8589934592.0#0 | 33.0#0 | 1.0#0"]).log;
    let order: Vec<i64> = log.producer_state().snapshot().entries.iter().map(|entry| entry.producer_id.get()).collect();
    assert_eq!(order, [17, 33, 1, 1 << 33, 3, 1000]);
}

/// A stray snapshot from beyond the end drives out the good one of the clean stop before it goes itself.
#[test]
fn k17_a_stray_snapshot_drives_out_the_good_one() {
    let log = three_segments();
    assert_eq!(remembered(&open(log.storage(), Recovery::Clean, 6, 0), 5), [(5, 5)]);
    let mut storage = log.into_storage();
    storage.replace(&snapshot_file_name(Offset(99)), &Bytes::from_static(&EMPTY_SNAPSHOT)).unwrap();
    let log = open(&storage, Recovery::Clean, 6, 0);
    assert_eq!(remembered(&log, 5), [(3, 3), (4, 4), (5, 5)]);
    assert_eq!(snapshots(log.storage()), [2, 4, 6]);
}

/// A clean start that finds no snapshot knows no producer; but a segment without index is recovered first, which writes some.
#[test]
fn k18_a_clean_start_without_snapshots_knows_nothing() {
    let storage = without(three_segments().storage(), ".snapshot");
    let log = open(&storage, Recovery::Clean, 6, 0);
    assert_eq!(ids(&log), [] as [i64; 0]);
    assert_eq!(snapshots(log.storage()), [2, 4, 6]);
    let log = open(&without(&storage, "04.index"), Recovery::Clean, 6, 0);
    assert_eq!(ids(&log), [5]);
}

/// Truncating a log whose state is empty does not look at the records, if they have producers or not.
#[test]
fn k19_an_empty_state_stays_empty_in_truncation() {
    let cut = |lines: &[&str]| ids(&stock(lines).log);
    assert_eq!(cut(&["copy 5.0#0 | 6.0#0 | -", "expire 86400000", "truncate 2"]), [] as [i64; 0]);
    assert_eq!(cut(&["copy 5.0#0 | 6.0#0@9 | -", "expire 86400000", "truncate 2"]), [5, 6]);
}

/// Nobody is forgotten when the log start offset moves; but an unclean start may find nothing of them.
#[test]
fn k21_the_log_start_offset_evicts_nobody() {
    let mut log = stock(&["copy 5.0#0"]);
    log.log.roll(NOW).unwrap();
    log.run("copy 6.0#0");
    log.run("hw 2");
    log.log.maybe_increment_log_start_offset(Offset(1)).unwrap();
    assert_eq!(log.log.delete_old_segments(NOW), Ok(1));
    assert_eq!(ids(&log.log), [5, 6]);
    log.log.close_clean().unwrap();
    assert_eq!(ids(&open(log.log.storage(), Recovery::Clean, 2, 1)), [5, 6]);
    assert_eq!(ids(&open(log.log.storage(), Recovery::Unclean, 0, 1)), [6]);
}

/// Recovering a segment deletes the snapshots behind its base: what they say does not count.
#[test]
fn k22_recovery_deletes_newer_snapshots() {
    let storage = three_segments().into_storage();
    let recovered = |offsets: &[i64], point: i64| {
        let log = open(&with_stranger(&storage, offsets), Recovery::Unclean, point, 0);
        assert_eq!(snapshots(log.storage()), [2, 4, 6]);
        ids(&log)
    };
    assert_eq!(recovered(&[4, 6], 2), [5]);
    assert_eq!(recovered(&[2, 4, 6], 0), [5]);
    // The one at the base is where recovery begins.
    assert_eq!(recovered(&[2], 2), [5, 99]);
    // Also with the recovery point at the log end.
    assert_eq!(recovered(&[6], 6), [5]);
}

/// Truncation within a batch drops all of it, and the log goes on at the target: between them is a hole.
#[test]
fn k23_truncation_within_a_batch_leaves_a_hole() {
    let mut log = stock(&["copy 5.0#0x4", "truncate 2"]);
    assert_eq!((log.log.log_end_offset(), log.log.storage().len(LOG_FILE)), (Offset(2), Ok(Some(0))));
    let whole = batch("5.0#0x4", Offset(0)).bytes().clone();
    assert_eq!(follow(&mut log.log, whole), Err("UnexpectedAppendOffsetException"));
    assert_eq!(log.run("copy 5.0#2"), "2");
}

/// Truncation at or behind the log end cuts nothing, but forgets a leader epoch that was to begin there.
#[test]
fn k24_truncation_at_the_end_forgets_an_epoch() {
    for target in ["truncate 2", "truncate 9"] {
        let mut log = stock(&["copy - | -"]);
        log.log.assign_epoch_start_offset(LeaderEpoch(4)).unwrap();
        assert_eq!(epochs(&log.log), [(0, 0), (4, 2)]);
        assert_eq!(log.run(target), "");
        assert_eq!((log.log.log_end_offset(), epochs(&log.log)), (Offset(2), vec![(0, 0)]));
    }
}

/// Records below the log start offset are replayed where their segment is recovered, and left out where state is rebuilt.
#[test]
fn k37_recovery_replays_what_lies_below_the_log_start() {
    let log = stock(&["copy 5.0#0 | 6.0#0 | 7.0#0", "clean"]).log;
    assert_eq!(ids(&open(log.storage(), Recovery::Unclean, 0, 2)), [5, 6, 7]);
    // A clean start reads records where its snapshot is corrupt.
    let mut storage = log.into_storage();
    storage.replace(&snapshot_file_name(Offset(3)), &Bytes::from_static(b"corrupt")).unwrap();
    assert_eq!(ids(&open(&storage, Recovery::Clean, 3, 2)), [7]);
}
