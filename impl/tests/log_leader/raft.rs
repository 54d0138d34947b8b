//! Appends of the raft leader. What is expected is what Apache Kafka 4.3.1 answers to the same appends.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

use cleanslate_log::log::{LogConfig, PartitionLog};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::log_support::{NOW, batches, show_producers};

type Log = PartitionLog<MemoryStorage>;

fn new_log(config: LogConfig) -> Log {
    PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap()
}

/// The leader of epoch 5 appends batches that lie one behind the other; the offsets that it reports, or the exception.
fn raft(log: &mut Log, offset: i64, specs: &str, tv: TransactionVersion) -> Result<(i64, i64), &'static str> {
    let bytes = batches(specs, Offset(offset));
    let result = log.append_as_leader(bytes, AppendOrigin::RaftLeader, LeaderEpoch(5), tv, NOW);
    result.map(|result| (result.first_offset.get(), result.last_offset.get())).map_err(|error| error.kafka_class())
}

#[test]
fn batches_keep_their_offsets_and_have_to_have_the_leaders_epoch() {
    let mut log = new_log(LogConfig { max_message_bytes: 200, ..LogConfig::default() });
    for (offset, specs, expected) in [
        (0, "E5/-x3", Ok((0, 2))),
        (1, "E5/-x3", Err("UnexpectedAppendOffsetException")),
        (3, "E5/-x3", Ok((3, 5))),
        (6, "E4/-", Err("InvalidRecordException")),
        (6, "E6/-", Err("InvalidRecordException")),
        (6, "E5/- E6/-", Err("InvalidRecordException")),
        (8, "E5/- E5/-x2", Ok((8, 10))),
        (11, "E5/-x30", Err("RecordTooLargeException")),
        // Far in the future, which a client may not be.
        (11, "E5/-@4000000000000", Ok((11, 11))),
        (12, "", Ok((-1, -1))),
    ] {
        assert_eq!(raft(&mut log, offset, specs, TransactionVersion::Unknown), expected, "{offset} {specs}");
    }
    let behind = [batches("E5/-", Offset(13)), batches("E5/-", Offset(12))].concat();
    let result = log.append_as_leader(behind.into(), AppendOrigin::RaftLeader, LeaderEpoch(5), TransactionVersion::Unknown, NOW);
    assert_eq!(result.map_err(|error| error.kafka_class()), Err("OffsetsOutOfOrderException"));
    assert_eq!(log.log_end_offset(), Offset(12));
    assert_eq!(log.leader_epochs().entries().iter().map(|entry| entry.start_offset.get()).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_gap_begins_a_segment_where_the_batch_begins() {
    let mut log = new_log(LogConfig { segment_bytes: 100, ..LogConfig::default() });
    raft(&mut log, 0, "E5/-", TransactionVersion::Unknown).unwrap();
    assert_eq!(raft(&mut log, 5, "E5/-", TransactionVersion::Unknown), Ok((5, 5)));
    assert_eq!(log.segments().map(|(base, _)| base.get()).collect::<Vec<_>>(), [0, 5]);
}

#[test]
fn producers_are_checked_for_their_epochs_only() {
    let mut log = new_log(LogConfig { transaction_verification: true, ..LogConfig::default() });
    let (unknown, v0) = (TransactionVersion::Unknown, TransactionVersion::V0);
    for (offset, specs, tv, expected) in [
        (12, "E5/7.3#50", unknown, Ok((12, 12))),
        (13, "E5/7.3#50", unknown, Ok((13, 13))),
        (14, "E5/7.3#99", unknown, Ok((14, 14))),
        (15, "E5/7.2#100", unknown, Err("InvalidProducerEpochException")),
        // The transaction was not verified.
        (15, "E5/t7.3#0", unknown, Ok((15, 15))),
        (16, "E5/7.3#1", unknown, Err("InvalidTxnStateException")),
        (16, "E5/CM7.3c9", unknown, Err("IllegalArgumentException")),
        (16, "E5/CM7.3c9", v0, Ok((16, 16))),
        (17, "E5/CM7.3c8", v0, Err("TransactionCoordinatorFencedException")),
        (17, "E5/t7.2#0", unknown, Err("InvalidProducerEpochException")),
        (17, "E5/CM7.2c9", v0, Err("InvalidProducerEpochException")),
    ] {
        assert_eq!(raft(&mut log, offset, specs, tv), expected, "{offset} {specs}");
    }
    assert_eq!(log.log_end_offset(), Offset(17));
    assert_eq!(show_producers(log.producer_state()), "{7:e3[50@12,50@13,99@14,0@15]c9}");
}
