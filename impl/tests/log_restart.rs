//! What is left after a restart and after a truncation.
#![cfg(test)]

mod log_support;

use bytes::Bytes;
use cleanslate_log::log::{LOG_FILE, LogConfig, LogError, PartitionLog, Recovery, RecoveryReport, TXN_INDEX_FILE};
use cleanslate_log::psm::snapshot_files;
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};
use log_support::{NOW, TestLog, batch, batches, check, show};

#[track_caller]
fn stock(lines: &[(&str, &str)], state: &str) -> TestLog {
    check(&LogConfig::default(), lines, state)
}

#[test]
fn after_any_restart_one_batch_of_each_id_is_remembered() {
    for restart in ["crash 0", "clean"] {
        stock(
            &[("copy 5.0#0 | 5.0#1 | t6.1#0 | 5.0#2", "0 | 1 | 2 | 3"), ("hw 4", ""), (restart, "")],
            "LEO 4 HW 0 LSO 0 {5:e0[2@3] 6:e1[0@2]txn@2}",
        );
        stock(
            &[
                ("client 5.0#0", "0"),
                ("client 5.0#1", "1"),
                (restart, ""),
                ("client 5.0#0", "OutOfOrderSequenceException"),
                ("client 5.0#1", "duplicate 1"),
                ("client 5.0#2", "2"),
            ],
            "LEO 3 HW 0 LSO 0 {5:e0[1@1,2@2]}",
        );
    }
}

#[test]
fn a_clean_open_from_an_older_snapshot_remembers_more() {
    stock(
        &[("copy 5.0#0 | 5.0#1", "0 | 1"), ("snapshot", ""), ("copy 5.0#2 | 5.0#3", "2 | 3"), ("reopen", "")],
        "LEO 4 HW 0 LSO 0 {5:e0[1@1,2@2,3@3]}",
    );
}

#[test]
fn a_clean_open_without_snapshots_knows_nothing() {
    let log = stock(&[("copy 5.0#0 | t5.0#1", "0 | 1"), ("hw 2", ""), ("drop-snapshots", ""), ("hw 2", "")], "LEO 2 HW 2 LSO 2 {}");
    let state = log.log.producer_state();
    assert_eq!(state.map_end_offset(), Offset(2));
    let snapshots = snapshot_files(log.log.storage()).unwrap();
    assert_eq!(snapshots.len(), 1);
    assert_eq!(snapshots[0].offset, Offset(2));
}

#[test]
fn replay_in_one_call_differs_where_an_epoch_is_left_and_entered_again() {
    let before = [("copy 7.0#0 | 7.0#1", "0 | 1"), ("snapshot", ""), ("copy 7.1#0 | 7.0#2", "2 | 3")];
    let run = |last: &[(&str, &str)], state: &str| {
        stock(&[&before, last].concat(), state);
    };
    run(&[], "LEO 4 HW 0 LSO 0 {7:e0[2@3]}");
    run(&[("crash 0", "")], "LEO 4 HW 0 LSO 0 {7:e0[2@3]}");
    run(&[("reopen", "")], "LEO 4 HW 0 LSO 0 {7:e0[1@1,2@3]}");
    run(&[("copy -", "4"), ("truncate 4", "cut")], "LEO 4 HW 0 LSO 0 {7:e0[1@1,2@3]}");
}

#[test]
fn unreplicated_transactions_are_forgotten_by_a_restart() {
    for (restart, lso) in [("hw 1", 0), ("clean", 1), ("crash 0", 1)] {
        let mut log = TestLog::new(&LogConfig::default());
        for line in ["copy t7.0#0 | t8.0#0 | AB7.0", "hw 1", restart, "hw 1"] {
            log.run(line);
        }
        assert_eq!(log.log.last_stable_offset(), Offset(lso), "{restart}");
        let aborted: Vec<_> = log.log.aborted_transactions().collect();
        assert_eq!(aborted.len(), 1, "{restart}");
    }
}

#[test]
fn a_torn_tail_is_cut_and_nothing_before_it() {
    stock(
        &[("copy 5.0#0 | 5.0#1 | t6.0#0", "0 | 1 | 2"), ("crash 5", ""), ("client 5.0#2", "2")],
        "LEO 3 HW 0 LSO 0 {5:e0[1@1,2@2]}",
    );
    stock(&[("copy 5.0#0x3", "0..2"), ("crash 1", "")], "LEO 0 HW 0 LSO 0 {}");
}

#[test]
fn recovery_writes_the_index_anew_and_group_by_group_differences_vanish() {
    stock(
        &[("copy t7.0#0 AB7.0 - t8.0#0", "0..3"), ("crash 0", "")],
        "LEO 4 HW 0 LSO 0 {7:e0[0@0]c0 8:e0[0@3]txn@3} aborted 7/0/1/2",
    );
    stock(
        &[("copy t7.0#0 AB7.0 - t8.0#0", "0..3"), ("clean", "")],
        "LEO 4 HW 0 LSO 0 {7:e0[0@0]c0 8:e0[0@3]txn@3} aborted 7/0/1/3",
    );
}

#[test]
fn a_replay_that_is_refused_keeps_the_log_closed() {
    // Under another visibility of ids, these bytes could be appended.
    let mut log = TestLog::new(&LogConfig::default());
    log.run("copy t-5.0#0 | -5.0#1");
    let mapped = LogConfig { ids: cleanslate_log::psm::ProducerIdVisibility::Mapped, ..LogConfig::default() };
    let storage = log.log.storage().clone();
    let error = PartitionLog::open(storage, mapped, Recovery::Unclean, NOW).unwrap_err();
    assert_eq!(error.kafka_class(), "InvalidTxnStateException");
}

#[test]
fn a_batch_that_cannot_be_read_yet_is_not_cut() {
    // A marker under zstd: nobody writes it, but it is a batch.
    let mut bytes = batches("AB5.0 5.0#0", Offset(0)).to_vec();
    let size = batch("AB5.0", Offset(0)).size_in_bytes();
    bytes[22] |= 4;
    let crc = crc32c::crc32c(&bytes[21..size]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let error = open(&bytes, Recovery::Unclean).unwrap_err();
    assert_eq!(error.kafka_class(), "UnsupportedCompressionTypeException");
}

#[test]
fn a_batch_of_an_old_format_is_checked_like_any() {
    // What was a batch of magic 2 has no valid checksum as one of magic 1.
    let mut bytes = batches("5.0#0", Offset(0)).to_vec();
    bytes[16] = 1;
    let (state, report) = open(&bytes, Recovery::Unclean).unwrap();
    assert_eq!((state.as_str(), report.truncated_bytes), ("LEO 0 HW 0 LSO 0 {}", bytes.len() as u64));
}

fn open(bytes: &[u8], recovery: Recovery) -> Result<(String, RecoveryReport), LogError> {
    let mut storage = MemoryStorage::new();
    storage.append(LOG_FILE, &Bytes::copy_from_slice(bytes)).unwrap();
    // Without an index the segment would be recovered, however it is opened.
    storage.append("00000000000000000000.index", &Bytes::new()).unwrap();
    let (log, report) = PartitionLog::open(storage, LogConfig::default(), recovery, NOW)?;
    Ok((show(&log), report))
}

#[test]
fn recovery_cuts_at_the_first_corrupt_batch() {
    let good = batches("5.0#0 5.0#1 5.0#2", Offset(0)).to_vec();
    let size = good.len() / 3;
    for position in 21..size {
        let mut bad = good.clone();
        bad[size + position] ^= 0x40;
        let (state, report) = open(&bad, Recovery::Unclean).unwrap();
        assert_eq!(state, "LEO 1 HW 0 LSO 0 {5:e0[0@0]}", "byte {position}");
        assert_eq!(report.truncated_bytes, 2 * size as u64);
        assert!(report.corruption.is_some());
    }
}

#[test]
fn what_follows_the_last_batch() {
    let good = batches("5.0#0", Offset(0)).to_vec();
    for junk in 1..40 {
        let mut bytes = good.clone();
        bytes.extend(std::iter::repeat_n(0, junk));
        let (_, report) = open(&bytes, Recovery::Unclean).unwrap();
        assert_eq!(report.truncated_bytes, junk as u64);
        match open(&bytes, Recovery::Clean) {
            // Too short to be looked at.
            Ok((_, report)) if junk < 18 => assert_eq!(report.trailing_bytes, junk as u64),
            Err(error) if junk >= 18 => assert_eq!(error.kafka_class(), "CorruptRecordException"),
            other => panic!("{junk} zero bytes: {other:?}"),
        }
    }
}

#[test]
fn an_append_after_trailing_bytes_can_be_read_after_the_next_open() {
    let mut storage = MemoryStorage::new();
    storage.append(LOG_FILE, &batches("5.0#0", Offset(0))).unwrap();
    storage.append(LOG_FILE, &Bytes::from_static(b"junk")).unwrap();
    let clean = Recovery::Clean;
    let (log, _) = PartitionLog::open(storage, LogConfig::default(), clean, NOW).unwrap();
    let mut log = TestLog { log };
    assert_eq!(log.run("client 5.0#1"), "1");
    assert_eq!(log.run("clean"), "");
    assert_eq!(show(&log.log), "LEO 2 HW 0 LSO 0 {5:e0[1@1]}");
}

#[test]
fn a_torn_entry_of_the_index_is_dropped() {
    let mut log = TestLog::new(&LogConfig::default());
    log.run("copy t7.0#0 | AB7.0");
    log.run("clean");
    let mut storage = log.log.storage().clone();
    storage.append(TXN_INDEX_FILE, &Bytes::from_static(&[0; 33])).unwrap();
    let config = LogConfig::default();
    let (log, _) = PartitionLog::open(storage, config, Recovery::Clean, NOW).unwrap();
    let mut log = TestLog { log };
    log.run("copy t7.0#1 | AB7.0");
    log.run("clean");
    assert_eq!(show(&log.log), "LEO 4 HW 0 LSO 0 {7:e0[1@2]c0} aborted 7/0/1/2 aborted 7/2/3/4");
}

#[test]
fn producers_expire_by_the_time_of_their_records() {
    let day = 86_400_000;
    let old = format!("copy 5.0#0@-{day} | 6.0#0@-{}", day - 1);
    stock(&[(&old, "0 | 1"), ("expire 0", "")], "LEO 2 HW 0 LSO 0 {6:e0[0@1]}");
    // When a snapshot is loaded, so after every unclean open; not in a replay.
    stock(&[(&old, "0 | 1"), ("crash 0", "")], "LEO 2 HW 0 LSO 0 {6:e0[0@1]}");
    stock(&[("copy -", "0"), ("snapshot", ""), (&old, "1 | 2"), ("reopen", "")], "LEO 3 HW 0 LSO 0 {5:e0[0@1] 6:e0[0@2]}");
    // An open transaction does not expire.
    let open = format!("copy t5.0#0@-{day}");
    stock(&[(&open, "0"), ("expire 0", "")], "LEO 1 HW 0 LSO 0 {5:e0[0@0]txn@0}");
}

#[test]
fn truncation_rebuilds_producer_state_and_leaves_one_snapshot() {
    let before = ("copy 5.0#0 | t6.0#0 | AB6.0 | 5.0#1", "0 | 1 | 2 | 3");
    let log = stock(&[before, ("hw 4", ""), ("truncate 3", "cut")], "LEO 3 HW 3 LSO 3 {5:e0[0@0] 6:e0[0@1]c0} aborted 6/1/2/3");
    assert_eq!(snapshot_offsets(&log), [3]);
    let log =
        stock(&[before, ("hw 4", ""), ("truncate 3", "cut"), ("truncate 2", "cut")], "LEO 2 HW 2 LSO 1 {5:e0[0@0] 6:e0[0@1]txn@1}");
    assert_eq!(snapshot_offsets(&log), [2]);
    stock(
        &[before, ("truncate 9", ""), ("truncate 4", ""), ("truncate -1", "IllegalArgumentException")],
        "LEO 4 HW 0 LSO 0 {5:e0[0@0,1@3] 6:e0[0@1]c0} aborted 6/1/2/3",
    );
    stock(&[before, ("truncate 0", "cut")], "LEO 0 HW 0 LSO 0 {}");
}

fn snapshot_offsets(log: &TestLog) -> Vec<i64> {
    let files = snapshot_files(log.log.storage()).unwrap();
    files.iter().map(|file| file.offset.get()).collect()
}

#[test]
fn truncation_brings_back_what_was_expired_unless_nothing_is_left() {
    let expire = ("expire 86400000", "");
    // Something is left: the log is replayed from its beginning.
    stock(&[("copy 5.0#0 | 6.0#0@9 | -", "0 | 1 | 2"), expire, ("truncate 2", "cut")], "LEO 2 HW 0 LSO 0 {5:e0[0@0] 6:e0[0@1]}");
    // Nothing is left: it stays so.
    stock(&[("copy 5.0#0 | 6.0#0 | -", "0 | 1 | 2"), expire, ("truncate 2", "cut")], "LEO 2 HW 0 LSO 0 {}");
    // A snapshot without them lies between.
    let before = [("copy 5.0#0 | -", "0 | 1"), expire, ("snapshot", ""), ("copy 7.0#0 | -", "2 | 3")];
    let run = |truncate, state| stock(&[&before[..], &[(truncate, "cut")]].concat(), state);
    run("truncate 3", "LEO 3 HW 0 LSO 0 {7:e0[0@2]}");
    run("truncate 1", "LEO 1 HW 0 LSO 0 {5:e0[0@0]}");
}

#[test]
fn truncation_inside_a_batch_leaves_a_hole() {
    let mut log = TestLog::new(&LogConfig::default());
    log.run("copy 5.0#0x4");
    assert_eq!(log.run("truncate 2"), "cut");
    assert_eq!(show(&log.log), "LEO 2 HW 0 LSO 0 {}");
    assert_eq!(log.log.storage().len(LOG_FILE), Ok(Some(0)));
    let path = cleanslate_log::barrier::ReplicationPath::IntraCluster;
    let whole = batch("5.0#0x4", Offset(0)).bytes().clone();
    let error = log.log.append_as_follower(whole, LeaderEpoch(0), path, NOW).unwrap_err();
    assert_eq!(error.kafka_class(), "UnexpectedAppendOffsetException");
    assert_eq!(log.run("copy 5.0#0"), "2");
    // What a restart cannot see: the hole at the end.
    log.run("copy -x4");
    log.run("truncate 5");
    assert_eq!(log.log.log_end_offset(), Offset(5));
    log.run("crash 0");
    assert_eq!(log.log.log_end_offset(), Offset(3));
}

#[test]
fn truncation_cuts_leader_epochs() {
    let epochs = |log: &TestLog| -> Vec<(i32, i64)> {
        let entries = log.log.leader_epochs().entries().iter();
        entries.map(|e| (e.epoch.get(), e.start_offset.get())).collect()
    };
    let mut log = TestLog::new(&LogConfig::default());
    log.run("copy E0/- | E2/-");
    log.log.assign_epoch_start_offset(LeaderEpoch(4)).unwrap();
    assert_eq!(epochs(&log), [(0, 0), (2, 1), (4, 2)]);
    for (asked, answer) in [(0, Some((0, 1))), (1, Some((0, 1))), (2, Some((2, 2))), (4, Some((4, 2))), (5, None)] {
        let end = log.log.end_offset_for_epoch(LeaderEpoch(asked));
        assert_eq!(end.map(|(e, o)| (e.get(), o.get())), answer, "{asked}");
    }
    assert_eq!(log.run("truncate 2"), "");
    assert_eq!(epochs(&log), [(0, 0), (2, 1)]);
    log.run("clean");
    assert_eq!(epochs(&log), [(0, 0), (2, 1)]);
    log.run("truncate 1");
    assert_eq!(epochs(&log), [(0, 0)]);
    log.run("crash 0");
    assert_eq!(epochs(&log), [(0, 0)]);
}

#[test]
fn only_the_newest_snapshot_is_kept_by_an_open() {
    let mut log = TestLog::new(&LogConfig::default());
    for line in ["copy 5.0#0", "snapshot", "copy 5.0#1", "snapshot", "snapshot", "copy 5.0#2", "reopen"] {
        log.run(line);
    }
    assert_eq!(snapshot_offsets(&log), [2, 3]);
    // A snapshot from beyond the end drives out the good one, and then goes itself.
    let mut storage = log.log.storage().clone();
    storage.replace("00000000000000000099.snapshot", &Bytes::from_static(b"stray")).unwrap();
    let config = LogConfig::default();
    let (log, report) = PartitionLog::open(storage, config, Recovery::Clean, NOW).unwrap();
    assert_eq!(report.replayed_batches, 3);
    assert_eq!(show(&log), "LEO 3 HW 0 LSO 0 {5:e0[0@0,1@1,2@2]}");
    assert_eq!(snapshot_offsets(&TestLog { log }), [3]);
}

#[test]
fn a_corrupt_snapshot_is_removed_and_the_log_replayed() {
    let mut log = TestLog::new(&LogConfig::default());
    log.run("copy 5.0#0 | 5.0#1");
    log.run("clean");
    let mut storage = log.log.storage().clone();
    let name = "00000000000000000002.snapshot";
    let mut bytes = storage.read_all(name).unwrap().unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    storage.replace(name, &bytes.into()).unwrap();
    let config = LogConfig::default();
    let (log, _) = PartitionLog::open(storage, config, Recovery::Clean, NOW).unwrap();
    assert_eq!(show(&log), "LEO 2 HW 0 LSO 0 {5:e0[0@0,1@1]}");
}

#[test]
fn a_log_is_created_once() {
    let log = TestLog::new(&LogConfig::default());
    let storage = log.log.into_storage();
    let error = PartitionLog::create(storage, LogConfig::default(), NOW).unwrap_err();
    assert_eq!(error, LogError::AlreadyExists);
    let (log, report) = PartitionLog::open(MemoryStorage::new(), LogConfig::default(), Recovery::Unclean, TimestampMs(0)).unwrap();
    assert_eq!(show(&log), "LEO 0 HW 0 LSO 0 {}");
    assert_eq!(report, RecoveryReport::default());
}
