//! Sequences, epochs, markers, transactions: traps 4 to 12, 20 and 29.

use bytes::Bytes;
use cleanslate_log::log::{AppendError, AppendResult, LogConfig};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard, VerificationRequest};
use cleanslate_log::record::{BatchBuilder, Record, RecordBatch};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::log_support::{NOW, TestLog, batch, check, show};
use crate::support::{Log, after, decoded, follow, ids, stock};

fn verifying() -> LogConfig {
    LogConfig { transaction_verification: true, ..LogConfig::default() }
}

/// A client's batch with a guard.
fn guarded(log: &mut Log, spec: &str, guard: VerificationGuard) -> Result<AppendResult, AppendError> {
    let bytes = batch(spec, Offset(0)).bytes().clone();
    log.append_verified(bytes, AppendOrigin::Client, LeaderEpoch(0), TransactionVersion::V2, guard, NOW)
}

/// The guard of producer 5 for its batch of this sequence.
fn guard(log: &mut Log, sequence: i32, supports_epoch_bump: bool) -> VerificationGuard {
    let (producer_id, producer_epoch, sequence) = (ProducerId(5), ProducerEpoch(0), Sequence(sequence));
    let request = VerificationRequest { producer_id, producer_epoch, sequence, supports_epoch_bump };
    log.maybe_start_transaction_verification(&request, NOW).unwrap()
}

/// A producer of which nothing is known begins anywhere, but at 0 if its verification says that it bumps its epoch with every
/// transaction, and at 0 behind a marker that raised its epoch.
#[test]
fn k04_where_sequences_begin() {
    check(&LogConfig::default(), &[("client 5.0#17", "0")], "LEO 1 HW 0 LSO 0 {5:e0[17@0]}");
    for (supports_epoch_bump, expected) in [(true, Err("OutOfOrderSequenceException")), (false, Ok(0))] {
        let mut log = TestLog::new(&verifying()).log;
        let guard = guard(&mut log, 5, supports_epoch_bump);
        let result = guarded(&mut log, "t5.0#5", guard);
        assert_eq!(result.map(|r| r.first_offset.get()).map_err(|e| e.kafka_class()), expected);
    }
    let lines = [
        ("client t5.0#0", "0"),
        ("coordinator/2 AB5.1", "1"),
        ("client 5.1#1", "OutOfOrderSequenceException"),
        ("client 5.1#0", "2"),
    ];
    check(&LogConfig::default(), &lines, "LEO 3 HW 0 LSO 0 {5:e1[0@2]c0} aborted 5/0/1/2");
}

/// A resend is recognised before anything is asked about its transaction: without a guard, and after the end.
#[test]
fn k05_a_resend_needs_neither_guard_nor_transaction() {
    let mut log = TestLog::new(&verifying());
    let guard = guard(&mut log.log, 0, false);
    guarded(&mut log.log, "t5.0#0", guard).unwrap();
    log.run("coordinator CM5.0");
    assert_eq!(log.run("client t5.0#0"), "duplicate 0");
    assert_eq!(log.run("client t5.0#1"), "InvalidTxnStateException");
}

/// A resend is answered with the time of the first batch as the time of the append.
#[test]
fn k06_a_resend_is_told_the_time_of_the_first_batch() {
    let mut log = stock(&["client 5.0#0@-77"]).log;
    let result = guarded(&mut log, "5.0#0@-5", VerificationGuard::SENTINEL).unwrap();
    assert_eq!((result.duplicate, result.log_append_time), (true, TimestampMs(NOW.get() - 77)));
}

/// A copy may lower the epoch of a producer and that of its coordinator.
#[test]
fn k07_a_copy_lowers_epochs() {
    check(&LogConfig::default(), &[("copy 5.3#0 | 5.1#9", "0 | 1")], "LEO 2 HW 0 LSO 0 {5:e1[9@1]}");
    check(&LogConfig::default(), &[("copy CM5.3c7 | CM5.3c2", "0 | 1")], "LEO 2 HW 0 LSO 0 {5:e3[]c2}");
}

/// Two things even a copy is refused: data outside the transaction that is open, and an unknown control type under a producer.
#[test]
fn k08_what_a_copy_is_refused() {
    let open = ("copy t5.0#0", "0");
    check(&LogConfig::default(), &[open, ("copy 5.0#1", "InvalidTxnStateException")], "LEO 1 HW 0 LSO 0 {5:e0[0@0]txn@0}");
    check(&LogConfig::default(), &[("copy CTL9:5.0", "IllegalArgumentException")], "LEO 0 HW 0 LSO 0 {}");
    check(&LogConfig::default(), &[("copy CTL9", "0")], "LEO 1 HW 0 LSO 0 {}");
}

/// A control batch that compaction has emptied leaves an entry without epoch, which the next sweep removes.
#[test]
fn k09_an_emptied_control_batch_leaves_an_entry_without_epoch() {
    let mut log = stock(&[]);
    let empty = RecordBatch::empty_header(batch("CM5.3c7", Offset(0)).header());
    assert_eq!(follow(&mut log.log, empty.bytes().clone()), Ok(0));
    assert_eq!(show(&log.log), "LEO 1 HW 0 LSO 0 {5:e-1[]}");
    log.run("expire 0");
    assert_eq!(show(&log.log), "LEO 1 HW 0 LSO 0 {}");
}

/// The marker of an unknown producer makes an entry, and ends no transaction.
#[test]
fn k10_a_marker_makes_an_entry() {
    check(&LogConfig::default(), &[("copy AB5.3c7", "0")], "LEO 1 HW 0 LSO 0 {5:e3[]c7}");
}

/// A marker ends the transaction also when its batch is not marked as transactional.
#[test]
fn k11_a_marker_need_not_be_transactional() {
    let mut log = stock(&["copy t5.0#0"]);
    let key = Some(Bytes::from_static(&[0, 0, 0, 1]));
    let value = Some(Bytes::from_static(&[0, 0, 0, 0, 0, 9]));
    let record = Record { offset: Offset(1), timestamp: NOW, key, value, headers: Vec::new() };
    let marker = BatchBuilder::new(Offset(1)).leader_epoch(LeaderEpoch(0)).control(true).append(record);
    let marker = marker.producer(ProducerId(5), ProducerEpoch(0), Sequence::NONE).build().unwrap();
    assert!(!decoded(marker.bytes()).is_transactional());
    assert_eq!(follow(&mut log.log, marker.bytes().clone()), Ok(1));
    log.run("hw 2");
    assert_eq!(show(&log.log), "LEO 2 HW 2 LSO 2 {5:e0[0@0]c9}");
}

/// A transaction that has ended holds the last stable offset until its marker lies below the high watermark.
#[test]
fn k12_an_ended_transaction_waits_for_the_high_watermark() {
    let mut log = stock(&["copy t7.0#0 | t8.0#0"]);
    let mut stable = |line: &str| {
        log.run(line);
        log.log.last_stable_offset().get()
    };
    assert_eq!((stable("hw 2"), stable("copy AB7.0"), stable("hw 3")), (0, 0, 1));
    assert_eq!((stable("copy CM8.0"), stable("hw 4")), (1, 4));
}

/// A producer is forgotten by the time in its records, to the millisecond, and whether a restart forgets it depends on where it
/// comes from: a snapshot that is loaded, as after every unclean stop, leaves it out; records that are replayed bring it back.
#[test]
fn k20_producers_expire_by_the_time_of_their_records() {
    let day = 86_400_000;
    let old = format!("copy 5.0#0@-{day} | 6.0#0@-{}", day - 1);
    let known = |lines: &[&str]| ids(&stock(lines).log);
    assert_eq!(known(&[&old, "expire 0"]), [6]);
    assert_eq!(known(&[&old, "crash 0"]), [6]);
    assert_eq!(known(&["copy -", "snapshot", &old, "reopen"]), [5, 6]);
    assert_eq!(known(&[&old, "copy -", "truncate 2"]), [5, 6]);
    assert_eq!(known(&[&format!("copy t5.0#0@-{day}"), "expire 0"]), [5]);
}

/// The last stable offset in the index of aborted transactions depends on how batches were grouped into appends.
#[test]
fn k29_the_index_of_aborted_transactions_depends_on_grouping() {
    let stable = |lines: &[&str]| {
        let log = after(&LogConfig::default(), lines).log;
        log.aborted_transactions().map(|aborted| aborted.last_stable_offset.get()).collect::<Vec<_>>()
    };
    assert_eq!(stable(&["copy t7.0#0 AB7.0 - t8.0#0"]), [3]);
    assert_eq!(stable(&["copy t7.0#0 | AB7.0 | - | t8.0#0"]), [2]);
    assert_eq!(stable(&["copy t7.0#0 AB7.0 - t8.0#0", "crash 0"]), [2]);
}
