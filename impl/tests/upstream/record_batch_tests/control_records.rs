#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's ControlRecordTypeTest, EndTransactionMarkerTest and ControlRecordUtilsTest.

use bytes::{BufMut, Bytes, BytesMut};
use cleanslate_log::record::{
    ControlRecord, ControlRecordType, EndTxnMarker, KRaftVersion, KRaftVoters, LeaderChange, MirrorPidResetRecord, RecordBatch,
    SnapshotFooter, SnapshotHeader, Voter,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

fn key(version: i16, type_id: i16, more: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(version);
    out.put_i16(type_id);
    out.extend_from_slice(more);
    out.freeze()
}

#[test]
fn test_parse_unknown_type() {
    assert_eq!(ControlRecordType::decode_key(&key(0, 337, &[])), Ok(ControlRecordType::Unknown(337)));
}

#[test]
fn test_parse_unknown_version() {
    assert_eq!(ControlRecordType::decode_key(&key(5, 0, &[0, 0, 0, 0])), Ok(ControlRecordType::Abort));
}

#[test]
fn test_round_trip() {
    for id in 0..7 {
        let kind = ControlRecordType::from_id(id);
        assert_eq!(ControlRecordType::decode_key(&kind.key()), Ok(kind));
    }
}

#[test]
fn test_value_control_record_key_size() {
    assert_eq!(ControlRecordType::Commit.key().len(), 4);
}

fn marker(version: i16, more: &[u8]) -> Result<ControlRecord, &'static str> {
    let mut value = BytesMut::new();
    value.put_i16(version);
    value.put_i32(79);
    value.extend_from_slice(more);
    let decoded = ControlRecord::decode(Some(&ControlRecordType::Commit.key()), Some(&value.freeze()));
    decoded.map_err(|error| error.kafka_class())
}

const COMMIT: ControlRecord = ControlRecord::EndTxnMarker(EndTxnMarker { commit: true, coordinator_epoch: CoordinatorEpoch(79) });

#[test]
fn test_illegal_version() {
    assert_eq!(marker(-1, &[]), Err("InvalidRecordException"));
}

#[test]
fn test_serde() {
    assert_eq!(marker(0, &[]), Ok(COMMIT));
    let value = COMMIT.encode_value().unwrap();
    assert_eq!(ControlRecord::decode(Some(&ControlRecordType::Commit.key()), Some(&value)), Ok(COMMIT));
}

/// The value of each type takes six bytes, of which the version is the first two, and tells the type and the epoch again.
#[test]
fn test_serialize_and_deserialize() {
    for (record_type, commit) in [(ControlRecordType::Commit, true), (ControlRecordType::Abort, false)] {
        let marker = ControlRecord::EndTxnMarker(EndTxnMarker { commit, coordinator_epoch: CoordinatorEpoch(10) });
        let value = marker.encode_value().unwrap();
        assert_eq!(value[..], [0, 0, 0, 0, 0, 10]);
        assert_eq!(ControlRecord::decode(Some(&record_type.key()), Some(&value)), Ok(marker));
    }
}

/// In a batch of version 2: length, attributes, two deltas, key of four bytes, value of six, no headers.
#[test]
fn test_end_txn_marker_value_size() {
    for commit in [true, false] {
        let (id, epoch) = (ProducerId(1), ProducerEpoch(0));
        let none = TimestampMs(0);
        let batch = RecordBatch::end_txn_marker(Offset(0), LeaderEpoch(0), none, id, epoch, commit, CoordinatorEpoch(1)).unwrap();
        assert_eq!(batch.size_in_bytes() - 61, 1 + 1 + 1 + 1 + 1 + 4 + 1 + 6 + 1);
    }
}

#[test]
fn test_deserialize_newer_version() {
    assert_eq!(marker(5, &[0, 0]), Ok(COMMIT));
}

#[test]
fn test_unknown_control_type_not_allowed() {
    let (unknown, epoch) = (ControlRecordType::Unknown(-1), CoordinatorEpoch(24));
    assert_eq!(EndTxnMarker::of_type(unknown, epoch).unwrap_err().kafka_class(), "IllegalArgumentException");
    assert_eq!(EndTxnMarker::decode_value(unknown, &Bytes::new()).unwrap_err().kafka_class(), "IllegalArgumentException");
    // The two types that there are.
    for (record_type, commit) in [(ControlRecordType::Commit, true), (ControlRecordType::Abort, false)] {
        let marker = EndTxnMarker { commit, coordinator_epoch: epoch };
        assert_eq!(EndTxnMarker::of_type(record_type, epoch), Ok(marker));
        let value = ControlRecord::EndTxnMarker(marker).encode_value().unwrap();
        assert_eq!(EndTxnMarker::decode_value(record_type, &value), Ok(marker));
    }
}

/// The current version of every type is 0, which is what values begin with.
#[test]
fn test_current_versions() {
    for record in [
        COMMIT,
        ControlRecord::LeaderChange(LeaderChange::default()),
        ControlRecord::SnapshotHeader(SnapshotHeader::default()),
        ControlRecord::SnapshotFooter(SnapshotFooter::default()),
        ControlRecord::KRaftVersion(KRaftVersion::default()),
        ControlRecord::KRaftVoters(KRaftVoters::default()),
        ControlRecord::MirrorPidReset(MirrorPidResetRecord::default()),
    ] {
        let version = record.record_type().current_version();
        assert_eq!(version, Some(0), "{record:?}");
        assert_eq!(record.encode_value().unwrap()[..2], version.unwrap().to_be_bytes(), "{record:?}");
    }
    assert_eq!(ControlRecordType::Unknown(337).current_version(), None);
}

/// Voters that are asked for, with a key of some type.
fn voters_with_key(of: ControlRecordType) -> Result<ControlRecord, String> {
    let value = voters().encode_value().unwrap();
    let decoded = ControlRecord::decode_as(ControlRecordType::KRaftVoters, Some(&of.key()), Some(&value));
    decoded.map_err(|error| format!("{}: {error}", error.kafka_class()))
}

fn voters() -> ControlRecord {
    ControlRecord::KRaftVoters(KRaftVoters { voters: vec![Voter::default()], ..KRaftVoters::default() })
}

#[test]
fn test_invalid_control_record_type() {
    let expected = "IllegalArgumentException: byte 0: control record of type COMMIT (1), expected KRAFT_VOTERS";
    assert_eq!(voters_with_key(ControlRecordType::Commit), Err(expected.to_owned()));
}

#[test]
fn test_deserialize_byte_data() {
    assert_eq!(voters_with_key(ControlRecordType::KRaftVoters), Ok(voters()));
}
