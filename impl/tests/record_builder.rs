//! What may not be written is refused, as by Kafka's own builder.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{
    BatchBuilder, ControlRecord, ControlRecordType, EncodeError, EndTxnMarker, LeaderChange, MirrorPidResetRecord, Record,
    RecordBatch,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

fn one() -> BatchBuilder {
    BatchBuilder::new(Offset(10)).record(Some(b"k"), Some(b"v"))
}

fn at(offset: i64) -> Record {
    Record { offset: Offset(offset), ..Record::default() }
}

const MARKER: ControlRecord = ControlRecord::EndTxnMarker(EndTxnMarker { commit: true, coordinator_epoch: CoordinatorEpoch(0) });

#[test]
fn no_records_no_batch() {
    assert_eq!(BatchBuilder::new(Offset(0)).build(), Err(EncodeError::NoRecords));
}

#[test]
fn a_producer_is_whole_or_absent() {
    let error = EncodeError::TransactionalWithoutProducerId;
    assert_eq!(one().transactional(true).build(), Err(error));
    let error = EncodeError::ProducerIdWithoutEpoch { producer_id: 3 };
    assert_eq!(one().producer(ProducerId(3), ProducerEpoch::NONE, Sequence(0)).build(), Err(error));
    let error = EncodeError::NegativeSequence { base_sequence: -1 };
    assert_eq!(one().producer(ProducerId(3), ProducerEpoch(0), Sequence::NONE).build(), Err(error));
    // Producer ids below -1, which mappings make, are ids to the builder.
    let mapped = one().producer(ProducerId(-5), ProducerEpoch(0), Sequence(0)).transactional(true).build();
    assert!(mapped.is_ok_and(|batch| !batch.has_producer_id() && batch.is_transactional()));
}

#[test]
fn offsets_increase_within_31_bits_of_the_base() {
    let error = EncodeError::OffsetOutOfOrder { offset: 9, minimum: 10 };
    assert_eq!(BatchBuilder::new(Offset(10)).append(at(9)).build(), Err(error));
    let error = EncodeError::OffsetOutOfOrder { offset: 12, minimum: 13 };
    assert_eq!(BatchBuilder::new(Offset(10)).records([at(12), at(12)]).build(), Err(error));
    let far = 10 + i64::from(i32::MAX);
    let batch = BatchBuilder::new(Offset(10)).records([at(12), at(far)]).build().unwrap();
    assert_eq!((batch.last_offset(), batch.record_count()), (Offset(far), 2));
    let error = EncodeError::OffsetDeltaTooLarge { offset: far + 1, base_offset: 10 };
    assert_eq!(BatchBuilder::new(Offset(10)).append(at(far + 1)).build(), Err(error));
    let error = EncodeError::OffsetDeltaTooLarge { offset: i64::MAX, base_offset: i64::MIN };
    assert_eq!(BatchBuilder::new(Offset(i64::MIN)).append(at(i64::MAX)).build(), Err(error));
    let last = BatchBuilder::new(Offset(i64::MAX)).record(None, None).record(None, None).build();
    assert!(matches!(last, Err(EncodeError::OffsetOutOfOrder { offset: i64::MAX, .. })));
}

#[test]
fn the_last_offset_is_not_held_against_the_records() {
    for (last, delta) in [(14, 4), (9, -1), (i64::from(i32::MIN) + 10, i32::MIN)] {
        assert_eq!(one().last_offset(Offset(last)).build().unwrap().last_offset_delta(), delta);
    }
    for last in [i64::MIN, i64::from(i32::MAX) + 11] {
        let error = EncodeError::OffsetDeltaTooLarge { offset: last, base_offset: 10 };
        assert_eq!(one().last_offset(Offset(last)).build(), Err(error));
    }
}

#[test]
fn timestamps_are_not_negative() {
    let error = EncodeError::InvalidTimestamp { timestamp: -2 };
    let builder = BatchBuilder::new(Offset(0)).timestamp(TimestampMs(-2)).record(None, None);
    assert_eq!(builder.build(), Err(error.clone()));
    assert_eq!(one().log_append_time(TimestampMs(-2)).build(), Err(error));
    let error = EncodeError::InvalidTimestamp { timestamp: -1 };
    assert_eq!(one().delete_horizon(TimestampMs(-1)).build(), Err(error));
    assert_eq!(one().build().unwrap().max_timestamp(), TimestampMs::NONE);
}

#[test]
fn control_records_and_data_do_not_mix() {
    let builder = BatchBuilder::new(Offset(0)).control_record(MARKER);
    assert_eq!(builder.build(), Err(EncodeError::ControlRecordInDataBatch));
    assert_eq!(one().control(true).build(), Err(EncodeError::DataRecordInControlBatch));
    let no_key = BatchBuilder::new(Offset(0)).control(true).record(None, Some(b"v"));
    assert_eq!(no_key.build(), Err(EncodeError::DataRecordInControlBatch));
}

#[test]
fn a_marker_needs_a_transactional_producer() {
    let control = BatchBuilder::new(Offset(0)).control(true).control_record(MARKER);
    assert_eq!(control.clone().build(), Err(EncodeError::MarkerWithoutProducerId));
    let control = control.producer(ProducerId(1), ProducerEpoch(0), Sequence::NONE);
    assert_eq!(control.clone().build(), Err(EncodeError::MarkerNotTransactional));
    assert!(control.transactional(true).build().is_ok());
    let nobody = RecordBatch::end_txn_marker(
        Offset(0),
        LeaderEpoch(0),
        TimestampMs(0),
        ProducerId::NONE,
        ProducerEpoch(0),
        false,
        CoordinatorEpoch(0),
    );
    assert_eq!(nobody, Err(EncodeError::TransactionalWithoutProducerId));
    let generic = RecordBatch::control(Offset(0), LeaderEpoch(0), TimestampMs(0), &MARKER);
    assert_eq!(generic, Err(EncodeError::MarkerWithoutProducerId));
}

#[test]
fn a_leader_change_needs_a_leader_epoch() {
    let message = ControlRecord::LeaderChange(LeaderChange::default());
    let batch = RecordBatch::control(Offset(0), LeaderEpoch(-1), TimestampMs(0), &message);
    assert_eq!(batch, Err(EncodeError::LeaderChangeWithoutLeaderEpoch));
}

#[test]
fn an_unknown_control_type_is_written_as_key_and_value_only() {
    let unknown = ControlRecord::Unknown { type_id: 8, value: Some(Bytes::from_static(b"x")) };
    let batch = RecordBatch::control(Offset(0), LeaderEpoch(0), TimestampMs(0), &unknown);
    assert_eq!(batch, Err(EncodeError::UnknownControlType { type_id: 8 }));
    let key = ControlRecordType::Unknown(8).key();
    let batch = BatchBuilder::new(Offset(0)).control(true).record(Some(&key), Some(b"x")).build().unwrap();
    assert_eq!(batch.control_record(), Ok(Some(unknown)));
}

#[test]
fn a_barrier_value_has_limits() {
    let id = |length| MirrorPidResetRecord { version: 0, source_cluster_id: Some("a".repeat(length)) };
    let longest = id(32_767);
    assert_eq!(MirrorPidResetRecord::decode(&longest.encode().unwrap()), Ok(longest));
    let error = EncodeError::TooLong { what: "source cluster id", length: 32_768, maximum: 32_767 };
    assert_eq!(id(32_768).encode(), Err(error));
    let negative = MirrorPidResetRecord { version: -1, source_cluster_id: None };
    assert!(matches!(negative.encode(), Err(EncodeError::NegativeVersion { version: -1, .. })));
}

#[test]
fn a_control_batch_may_hold_several_records() {
    let batch = BatchBuilder::new(Offset(5))
        .leader_epoch(LeaderEpoch(1))
        .control(true)
        .control_record(ControlRecord::LeaderChange(LeaderChange::default()))
        .control_record(ControlRecord::MirrorPidReset(MirrorPidResetRecord::default()))
        .build()
        .unwrap();
    assert_eq!((batch.record_count(), batch.last_offset()), (2, Offset(6)));
    assert_eq!(batch.control_type(), Ok(Some(ControlRecordType::LeaderChange)));
}
