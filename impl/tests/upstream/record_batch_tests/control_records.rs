#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's ControlRecordTypeTest and EndTransactionMarkerTest.

use bytes::{BufMut, Bytes, BytesMut};
use cleanslate_log::record::{ControlRecord, ControlRecordType, EndTxnMarker};
use cleanslate_log::types::CoordinatorEpoch;

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

#[test]
fn test_deserialize_newer_version() {
    assert_eq!(marker(5, &[0, 0]), Ok(COMMIT));
}
