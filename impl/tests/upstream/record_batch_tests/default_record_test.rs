#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's DefaultRecordTest; the tests of its partial reader are in the same functions, through a compressed batch that
//! a leader need not change.

use bytes::{BufMut, Bytes, BytesMut};
use cleanslate_log::record::varint::{write_varint, write_varlong};
use cleanslate_log::record::{
    AssignRules, BatchBuilder, BatchHeader, Compression, Header, Record, RecordBatch, assign_offsets, compress,
};
use cleanslate_log::types::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const INVALID: &str = "InvalidRecordException";

/// A batch of one record whose bytes are given, with a CRC that is right.
fn holding(records: &[u8], compression: Compression) -> RecordBatch {
    let like = BatchBuilder::new(Offset(0)).timestamp(TimestampMs(0)).record(None, None).build().unwrap();
    let records =
        if compression == Compression::None { Bytes::copy_from_slice(records) } else { compress(compression, records).unwrap() };
    let batch_length = i32::try_from(49 + records.len()).unwrap();
    let header = BatchHeader { batch_length, attributes: like.attributes().with_compression(compression), ..*like.header() };
    let mut bytes = BytesMut::new();
    header.encode(&mut bytes);
    bytes.extend_from_slice(&records);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    RecordBatch::decode(&bytes.freeze(), 0).unwrap().0
}

/// A record of 100 bytes: attributes, timestamp delta 2, offset delta 1, and what follows.
fn of_hundred(rest: &[i32]) -> BytesMut {
    let mut body = BytesMut::new();
    body.put_i8(0);
    write_varlong(&mut body, 2);
    write_varint(&mut body, 1);
    rest.iter().for_each(|number| write_varint(&mut body, *number));
    body.resize(100, 0);
    let mut record = BytesMut::new();
    write_varint(&mut record, 100);
    record.extend_from_slice(&body);
    record
}

#[track_caller]
fn check_refused(record: &[u8]) {
    assert_eq!(holding(record, Compression::None).records().unwrap_err().kafka_class(), INVALID);
    assert_eq!(holding(record, Compression::Gzip).records().unwrap_err().kafka_class(), INVALID);
}

#[track_caller]
fn check_refused_in_part_too(record: &[u8]) {
    check_refused(record);
    let batch = holding(record, Compression::Gzip);
    let error = assign_offsets(batch.bytes(), &AssignRules::default()).unwrap_err();
    assert_eq!(error.kafka_class(), INVALID);
}

fn header(key: &'static str, value: Option<&'static [u8]>) -> Header {
    Header { key: Bytes::from_static(key.as_bytes()), value: value.map(Bytes::from_static) }
}

fn three_headers() -> Vec<Header> {
    vec![header("foo", Some(b"value")), header("bar", None), header("\"A\\u00ea\\u00f1\\u00fcC\"", Some(b"value"))]
}

fn with_base_sequence(base: i32) -> BatchBuilder {
    let builder = BatchBuilder::new(Offset(37));
    if base < 0 { builder } else { builder.producer(ProducerId(1), ProducerEpoch(0), Sequence(base)) }
}

fn record(offset: i64, timestamp: i64, key: Option<&'static [u8]>, value: Option<&'static [u8]>) -> Record {
    Record {
        offset: Offset(offset),
        timestamp: TimestampMs(timestamp),
        key: key.map(Bytes::from_static),
        value: value.map(Bytes::from_static),
        headers: three_headers(),
    }
}

#[test]
fn test_basic_serde() {
    let base = TimestampMs(1_700_000_000_000);
    for (key, value) in [(Some(&b"hi"[..]), Some(&b"there"[..])), (None, Some(b"there")), (Some(b"hi"), None), (None, None)] {
        let first = record(37, base.get(), key, value);
        let second = record(37 + 10, base.get() + 323, key, value);
        let batch = with_base_sequence(723).records([first.clone(), second.clone()]).build().unwrap();
        let (read, _) = RecordBatch::decode(batch.bytes(), 0).unwrap();
        assert_eq!(read.records(), Ok(vec![first, second]));
        assert_eq!(read.sequence_of(Offset(47)), Sequence(733));
    }
}

#[test]
fn test_serde_no_sequence() {
    let batch = with_base_sequence(-1).append(record(47, 323, Some(b"hi"), Some(b"there"))).build().unwrap();
    assert_eq!(batch.sequence_of(Offset(47)), Sequence::NONE);
}

/// A record with three headers and another count of them.
fn counting(headers: i32) -> BytesMut {
    let batch = BatchBuilder::new(Offset(0)).append(record(0, 0, Some(b"hi"), Some(b"there"))).build().unwrap();
    let mut bytes = BytesMut::from(&batch.bytes()[61..]);
    // Length (two bytes here), attributes, two deltas, key and value with their lengths.
    let at = if bytes[0] & 0x80 == 0 { 1 } else { 2 } + 3 + 1 + 2 + 1 + 5;
    assert_eq!(bytes[at], 6);
    bytes[at] = u8::try_from(headers * 2).unwrap();
    bytes
}

#[test]
fn test_basic_serde_invalid_header_count_too_high() {
    check_refused(&counting(4));
}

#[test]
fn test_basic_serde_invalid_header_count_too_low() {
    check_refused(&counting(2));
}

#[test]
fn test_invalid_key_size() {
    check_refused_in_part_too(&of_hundred(&[105]));
}

#[test]
fn test_invalid_value_size() {
    check_refused_in_part_too(&of_hundred(&[-1, 105]));
}

#[test]
fn test_invalid_num_headers() {
    check_refused_in_part_too(&of_hundred(&[-1, -1, -1]));
    check_refused_in_part_too(&of_hundred(&[-1, -1, 105]));
}

#[test]
fn test_invalid_header_key() {
    check_refused_in_part_too(&of_hundred(&[-1, -1, 1, 105]));
}

#[test]
fn test_null_header_key() {
    check_refused_in_part_too(&of_hundred(&[-1, -1, 1, -1]));
}

#[test]
fn test_invalid_header_value() {
    // A key of one byte, which is that of the number 0.
    check_refused_in_part_too(&of_hundred(&[-1, -1, 1, 1, 0, 105]));
}

#[test]
fn test_underflow_reading_timestamp() {
    check_refused(&[2, 0]);
}

#[test]
fn test_underflow_reading_varlong() {
    check_refused(&[4, 0, 0x80]);
}

#[test]
fn test_invalid_varlong() {
    let mut record = vec![22, 0];
    record.extend([0x80; 10]);
    check_refused(&record);
}

#[test]
fn test_invalid_size_of_body_in_bytes() {
    let mut record = BytesMut::new();
    write_varint(&mut record, 10);
    record.extend_from_slice(&[0; 5]);
    check_refused(&record);
}
