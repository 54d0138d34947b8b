//! What a leader appends, and what it refuses.
#![cfg(test)]

mod log_support;
#[path = "log_leader/raft.rs"]
mod raft;

use cleanslate_log::log::{FetchIsolation, LogConfig, PartitionLog, ReadError};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};
use log_support::{NOW, TestLog, batch, batches, check, show};

#[track_caller]
fn stock(lines: &[(&str, &str)], state: &str) {
    check(&LogConfig::default(), lines, state);
}

#[test]
fn a_batch_gets_the_log_end_offset_and_the_leader_epoch() {
    let mut log = TestLog::new(&LogConfig::default());
    assert_eq!(log.run("client -x3"), "0..2");
    assert_eq!(log.run("client E4/-"), "3");
    let stored: Vec<(Offset, LeaderEpoch)> =
        log.log.batches().unwrap().iter().map(|b| (b.base_offset(), b.leader_epoch())).collect();
    assert_eq!(stored, [(Offset(0), LeaderEpoch(0)), (Offset(3), LeaderEpoch(4))]);
    assert_eq!(show(&log.log), "LEO 4 HW 0 LSO 0 {}");
}

#[test]
fn the_last_five_batches_are_recognised_as_duplicates() {
    stock(
        &[
            ("client 5.0#0x2", "0..1"),
            ("client 5.0#2", "2"),
            ("client 5.0#3", "3"),
            ("client 5.0#4", "4"),
            ("client 5.0#5", "5"),
            ("client 5.0#0x2", "duplicate 0..1"),
            ("client 5.0#6", "6"),
            // The sixth batch pushed the first one out.
            ("client 5.0#0x2", "OutOfOrderSequenceException"),
            ("client 5.0#2", "duplicate 2"),
            // Overlapping a remembered range is not equal to it.
            ("client 5.0#2x2", "OutOfOrderSequenceException"),
        ],
        "LEO 7 HW 0 LSO 0 {5:e0[2@2,3@3,4@4,5@5,6@6]}",
    );
}

#[test]
fn a_duplicate_is_told_with_the_time_of_the_first_batch() {
    let mut log = TestLog::new(&LogConfig::default());
    log.run("client 5.0#0@-77");
    let again = batch("5.0#0@-5", Offset(0)).bytes().clone();
    let tv = TransactionVersion::Unknown;
    let result = log.log.append_as_leader(again, AppendOrigin::Client, LeaderEpoch(0), tv, NOW);
    let result = result.unwrap();
    assert!(result.duplicate);
    assert_eq!(result.log_append_time, TimestampMs(NOW.get() - 77));
}

#[test]
fn sequences_follow_each_other_and_wrap_to_zero() {
    stock(
        &[
            ("client 5.0#2147483646x3", "0..2"),
            ("client 5.0#2147483646x3", "duplicate 0..2"),
            ("client 5.0#2", "OutOfOrderSequenceException"),
            ("client 5.0#1", "3"),
        ],
        "LEO 4 HW 0 LSO 0 {5:e0[2147483646@0,1@3]}",
    );
    stock(
        &[("client 5.0#2147483647", "0"), ("client 5.0#1", "OutOfOrderSequenceException"), ("client 5.0#0", "1")],
        "LEO 2 HW 0 LSO 0 {5:e0[2147483647@0,0@1]}",
    );
}

#[test]
fn an_unknown_id_may_begin_anywhere_and_a_new_epoch_only_at_zero() {
    stock(
        &[
            ("client 5.0#40", "0"),
            ("client 5.1#41", "OutOfOrderSequenceException"),
            ("client 5.1#0", "1"),
            ("client 5.0#41", "InvalidProducerEpochException"),
        ],
        "LEO 2 HW 0 LSO 0 {5:e1[0@1]}",
    );
    stock(&[("client 5.0#0", "0"), ("client 5.0#5", "OutOfOrderSequenceException")], "LEO 1 HW 0 LSO 0 {5:e0[0@0]}");
}

#[test]
fn a_marker_leaves_an_entry_that_asks_for_sequence_zero() {
    stock(
        &[("coordinator CM5.0", "0"), ("client 5.0#1", "OutOfOrderSequenceException"), ("client 5.0#0", "1")],
        "LEO 2 HW 0 LSO 0 {5:e0[0@1]c0}",
    );
    stock(
        &[
            ("client t5.0#0", "0"),
            ("client t5.0#1", "1"),
            ("coordinator AB5.1", "2"),
            ("client t5.1#2", "OutOfOrderSequenceException"),
            ("client t5.2#2", "OutOfOrderSequenceException"),
            ("client t5.1#0", "3"),
        ],
        "LEO 4 HW 0 LSO 0 {5:e1[0@3]c0txn@3} aborted 5/0/2/3",
    );
}

#[test]
fn markers_are_held_against_epochs_by_transaction_version() {
    stock(
        &[
            ("client t5.5#0", "0"),
            ("coordinator CM5.3", "InvalidProducerEpochException"),
            ("coordinator/2 CM5.3", "InvalidProducerEpochException"),
            ("coordinator/2 CM5.5", "InvalidProducerEpochException"),
            ("coordinator/unknown CM5.5", "IllegalArgumentException"),
            // The epoch is looked at first.
            ("coordinator/unknown CM5.3", "InvalidProducerEpochException"),
            ("coordinator CM5.5", "1"),
        ],
        "LEO 2 HW 0 LSO 0 {5:e5[0@0]c0}",
    );
    // Version 2: once the transaction is over, the same marker again is a retry.
    stock(
        &[
            ("client t5.0#0", "0"),
            ("coordinator/2 CM5.1", "1"),
            ("coordinator/2 CM5.1", "2"),
            ("client t5.32767#0", "3"),
            ("coordinator/2 CM5.32767", "4"),
        ],
        "LEO 5 HW 0 LSO 0 {5:e32767[0@3]c0}",
    );
}

#[test]
fn a_coordinator_that_was_replaced_is_fenced() {
    stock(
        &[
            ("coordinator CM5.0c1", "0"),
            ("coordinator CM5.0c1", "1"),
            ("coordinator CM5.0c2", "2"),
            ("coordinator CM5.0c1", "TransactionCoordinatorFencedException"),
        ],
        "LEO 3 HW 0 LSO 0 {5:e0[]c2}",
    );
}

#[test]
fn data_outside_the_open_transaction_is_refused() {
    stock(
        &[("client t5.0#0", "0"), ("client 5.0#1", "InvalidTxnStateException"), ("client t5.0#1", "1")],
        "LEO 2 HW 0 LSO 0 {5:e0[0@0,1@1]txn@0}",
    );
}

#[test]
fn the_coordinator_is_not_held_to_sequences() {
    stock(&[("coordinator 5.0#5", "0"), ("coordinator 5.0#5", "1")], "LEO 2 HW 0 LSO 0 {5:e0[5@0,5@1]}");
}

#[test]
fn control_batches_are_not_for_clients() {
    stock(
        &[
            ("client BAR<A", "InvalidRecordException"),
            ("client CM5.0", "InvalidRecordException"),
            ("client CTL9", "InvalidRecordException"),
            ("coordinator CTL9", "0"),
            ("coordinator CTL9:5.0", "IllegalArgumentException"),
            ("coordinator CTL7:5.0", "IllegalArgumentException"),
            ("coordinator BAR<A", "1"),
        ],
        "LEO 2 HW 0 LSO 0 {}",
    );
}

#[test]
fn the_last_stable_offset_waits_for_decision_and_replication() {
    let mut log = TestLog::new(&LogConfig::default());
    let steps = [
        ("client t7.0#0", 0),
        ("client t8.0#0", 0),
        ("hw 2", 0),
        ("coordinator AB7.0", 0),
        ("hw 3", 1),
        ("coordinator CM8.0", 1),
        ("hw 4", 4),
    ];
    for (line, expected) in steps {
        log.run(line);
        assert_eq!(log.log.last_stable_offset(), Offset(expected), "{line}");
    }
    let aborted = log.log.collect_aborted_transactions(Offset(0), Offset(4));
    assert_eq!(aborted.len(), 1);
    assert_eq!(aborted[0].last_stable_offset, Offset(1));
}

#[test]
fn ids_below_minus_one_are_none_to_stock_kafka() {
    stock(
        &[
            ("client -2.0#0", "0"),
            ("client -2.0#0", "1"),
            ("client t-2.0#7", "2"),
            ("coordinator AB-2.0", "3"),
            ("coordinator CTL7:-2.0", "4"),
            ("hw 5", ""),
        ],
        "LEO 5 HW 5 LSO 5 {}",
    );
}

#[track_caller]
fn refused(bytes: bytes::Bytes, origin: AppendOrigin, now: TimestampMs, class: &str) {
    let mut log = PartitionLog::create(MemoryStorage::new(), LogConfig::default(), NOW).unwrap();
    let tv = TransactionVersion::V0;
    let error = log.append_as_leader(bytes, origin, LeaderEpoch(0), tv, now).unwrap_err();
    assert_eq!(error.kafka_class(), class, "{error}");
    assert_eq!(show(&log), "LEO 0 HW 0 LSO 0 {}");
}

#[test]
fn malformed_batches_are_refused_before_anything_is_written() {
    use AppendOrigin::{Client, Coordinator};
    let one = batch("5.0#0", Offset(0));
    let two = batches("5.0#0 5.0#1", Offset(0));
    refused(two.clone(), Client, NOW, "InvalidRecordException");
    refused(two, Coordinator, NOW, "InvalidRecordException");
    let elsewhere = one.with_base_offset(Offset(1)).bytes().clone();
    refused(elsewhere, Client, NOW, "InvalidRecordException");
    let mut flipped = one.bytes().to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    refused(flipped.into(), Client, NOW, "CorruptRecordException");
    let mut short = one.bytes().to_vec();
    short[11] = 3;
    refused(short.into(), Client, NOW, "CorruptRecordException");
    let emptied = RecordBatch::empty_header(one.header()).bytes().clone();
    refused(emptied, Client, NOW, "InvalidRecordException");
    let without_sequence = batch("CM5.0", Offset(0)).bytes().clone();
    refused(without_sequence, Client, NOW, "InvalidRecordException");
    // Codec 5 is none; the checksum is right.
    let mut codec = one.bytes().to_vec();
    codec[22] |= 5;
    let crc = crc32c::crc32c(&codec[21..]);
    codec[17..21].copy_from_slice(&crc.to_be_bytes());
    refused(codec.into(), Client, NOW, "IllegalArgumentException");
    let early = TimestampMs(NOW.get() - 3_600_001);
    refused(one.bytes().clone(), Client, early, "InvalidTimestampException");
}

#[test]
fn size_limits_are_the_configured_ones() {
    let size = batch("5.0#0", Offset(0)).size_in_bytes();
    let with = |max_message_bytes, segment_bytes| LogConfig { max_message_bytes, segment_bytes, ..LogConfig::default() };
    let empty = "LEO 0 HW 0 LSO 0 {}";
    let one = "LEO 1 HW 0 LSO 0 {5:e0[0@0]}";
    check(&with(size, size), &[("client 5.0#0", "0")], one);
    check(&with(size - 1, size), &[("client 5.0#0", "RecordTooLargeException")], empty);
    check(&with(size - 1, size), &[("copy 5.0#0", "0")], one);
    check(&with(size, size - 1), &[("client 5.0#0", "RecordBatchTooLargeException")], empty);
}

#[test]
fn a_batch_that_is_not_whole_is_no_batch() {
    let mut log = PartitionLog::create(MemoryStorage::new(), LogConfig::default(), NOW).unwrap();
    let bytes = batch("5.0#0", Offset(0)).bytes().clone();
    let tv = TransactionVersion::V0;
    let result = log.append_as_leader(bytes.slice(..bytes.len() - 1), AppendOrigin::Client, LeaderEpoch(0), tv, NOW);
    assert_eq!(result.unwrap().first_offset, Offset::UNKNOWN);
    assert_eq!(log.log_end_offset(), Offset(0));
}

#[test]
fn a_failed_append_leaves_its_leader_epoch_behind() {
    let mut log = TestLog::new(&LogConfig::default());
    log.run("client 5.0#0");
    assert_eq!(log.run("client E5/5.0#9"), "OutOfOrderSequenceException");
    let entries: Vec<(i32, i64)> =
        log.log.leader_epochs().entries().iter().map(|e| (e.epoch.get(), e.start_offset.get())).collect();
    assert_eq!(entries, [(0, 0), (5, 1)]);
    assert_eq!(log.run("client E-1/5.0#1"), "IllegalArgumentException");
}

#[test]
fn reads_are_whole_batches_below_their_bound() {
    let mut log = TestLog::new(&LogConfig::default());
    log.run("client -x2");
    log.run("client -x2");
    log.run("client -x2");
    log.run("hw 4");
    let size = batch("-x2", Offset(0)).size_in_bytes();
    let count =
        |from: i64, max: usize| log.log.read(Offset(from), FetchIsolation::HighWatermark, max).map(|bytes| bytes.len() / size);
    for (from, max, expected) in [
        (0, usize::MAX, 2),
        (1, usize::MAX, 2),
        (1, size * 2 - 1, 1),
        (1, 0, 1),
        (3, usize::MAX, 1),
        (4, usize::MAX, 0),
        (6, usize::MAX, 0),
    ] {
        assert_eq!(count(from, max), Ok(expected), "from {from} max {max}");
    }
    for from in [-1, 7] {
        assert_eq!(
            count(from, 0),
            Err(ReadError::OffsetOutOfRange { offset: Offset(from), log_start_offset: Offset(0), log_end_offset: Offset(6) })
        );
    }
    // A bound inside a batch leaves it out.
    for hw in ["hw 2", "hw 3"] {
        log.run(hw);
        let read = log.log.read(Offset(0), FetchIsolation::HighWatermark, usize::MAX);
        assert_eq!(read.unwrap().len(), size, "{hw}");
    }
    let to_the_end = log.log.read(Offset(0), FetchIsolation::LogEnd, usize::MAX);
    assert_eq!(to_the_end.unwrap().len(), size * 3);
}
