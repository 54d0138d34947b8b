//! Records that are not what the header or their own lengths say.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{Attributes, BatchHeader, Compression, DecodeError, HEADER_BYTES, MAGIC_V2, Record, RecordBatch};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// A batch with this many records by its header, and these bytes as records. Its CRC is wrong.
fn batch(attributes: i16, record_count: i32, records: &[u8]) -> RecordBatch {
    let header = BatchHeader {
        base_offset: Offset(1000),
        batch_length: i32::try_from(HEADER_BYTES - 12 + records.len()).unwrap(),
        partition_leader_epoch: LeaderEpoch(0),
        magic: MAGIC_V2,
        crc: 0,
        attributes: Attributes(attributes),
        last_offset_delta: 0,
        base_timestamp: TimestampMs(50),
        max_timestamp: TimestampMs(90),
        producer_id: ProducerId(1),
        producer_epoch: ProducerEpoch(0),
        base_sequence: Sequence(i32::MAX),
        record_count,
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    bytes.extend_from_slice(records);
    RecordBatch::decode(&Bytes::from(bytes), 0).unwrap().0
}

/// A record without key, value and headers.
const NULLS: [u8; 7] = [12, 0, 2, 2, 1, 1, 0];

#[test]
fn the_record_count_is_kept_to() {
    let expected = Record { offset: Offset(1001), timestamp: TimestampMs(51), ..Record::default() };
    assert_eq!(batch(0, 1, &NULLS).records(), Ok(vec![expected]));
    assert_eq!(batch(0, 0, &NULLS).records(), Ok(vec![]), "records that do not count are not looked at");
    let error = DecodeError::TrailingBytes { position: 68, what: "the last record", remaining: 7 };
    assert_eq!(batch(0, 1, &[NULLS, NULLS].concat()).records(), Err(error));
    let error = batch(0, i32::MAX, &NULLS).records().unwrap_err();
    assert!(matches!(error, DecodeError::UnexpectedEnd { position: 68, what: "record length", .. }), "{error}");
    let error = DecodeError::NegativeRecordCount { position: 57, count: -1 };
    assert_eq!(batch(0, -1, &NULLS).records(), Err(error));
}

#[test]
fn append_time_overrides_the_deltas() {
    assert_eq!(batch(0x08, 1, &NULLS).records().unwrap()[0].timestamp, TimestampMs(90));
}

#[test]
fn sequences_wrap_to_0() {
    let wrapping = batch(0, 1, &NULLS);
    assert_eq!(wrapping.last_sequence(), Sequence(i32::MAX));
    assert_eq!(wrapping.sequence_of(Offset(1001)), Sequence(0));
}

#[test]
fn records_have_to_be_what_the_codec_says() {
    for (id, codec) in [(1, Compression::Gzip), (2, Compression::Snappy), (3, Compression::Lz4), (4, Compression::Zstd)] {
        let is_corrupt = |error| matches!(error, DecodeError::CorruptCompression { position: 61, codec: of, .. } if of == codec);
        assert!(is_corrupt(batch(id, 1, &NULLS).records().unwrap_err()));
        assert_eq!(batch(id, 0, &NULLS).records(), Ok(vec![]));
        let error = Err(DecodeError::CompressionUnsupported { position: 21, codec });
        assert_eq!(batch(id | 0x20, 1, &NULLS).control_type(), error);
    }
    for codec in 5..=7 {
        let error = Err(DecodeError::UnknownCompression { position: 21, codec });
        assert_eq!(batch(i16::from(codec), 1, &NULLS).records(), error);
        assert_eq!(batch(i16::from(codec), 0, &NULLS).records(), Ok(vec![]), "looked up with the first record only");
    }
}

fn check_record(record: &[u8], matches: impl Fn(&DecodeError) -> bool) {
    let error = batch(0, 1, record).records().unwrap_err();
    assert!(matches(&error), "{error:?}");
}

#[test]
fn malformed_records_are_errors() {
    use DecodeError as E;
    // length | attributes | timestamp delta | offset delta | key length | value length | header count
    check_record(&[13, 0, 0, 0, 1, 1, 0], |e| matches!(e, E::NegativeLength { position: 61, length: -7, .. }));
    check_record(&[14, 0, 0, 0, 1, 1, 0], |e| matches!(e, E::UnexpectedEnd { position: 62, needed: 7, available: 6, .. }));
    check_record(&[10, 0, 0, 0, 1, 1, 0], |e| matches!(e, E::UnexpectedEnd { position: 67, what: "header count", .. }));
    check_record(&[14, 0, 0, 0, 1, 1, 0, 9], |e| matches!(e, E::RecordLengthMismatch { position: 62, declared: 7, consumed: 6 }));
    check_record(&[12, 0, 0, 0, 4, 1, 0], |e| matches!(e, E::UnexpectedEnd { position: 68, what: "record value", .. }));
    check_record(&[12, 0, 0, 0, 1, 1, 1], |e| matches!(e, E::NegativeLength { what: "header count", length: -1, .. }));
    check_record(&[12, 0, 0, 0, 1, 1, 2], |e| matches!(e, E::CountExceedsBytes { position: 67, count: 1, available: 0, .. }));
    check_record(&[16, 0, 0, 0, 1, 1, 2, 1, 1], |e| matches!(e, E::NegativeLength { position: 68, what: "header key length", .. }));
    check_record(&[0x80, 0x80, 0x80, 0x80, 0x80, 0], |e| matches!(e, E::VarintTooLong { position: 61, max_bytes: 5, .. }));
    check_record(&[24, 0, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0], |e| {
        matches!(e, E::VarintTooLong { position: 63, max_bytes: 10, .. })
    });
}

#[test]
fn odd_records_that_kafka_accepts_are_read() {
    // Attributes that mean nothing, over-long integers, and a null that is not -1.
    let record = [24, 0x7f, 0x80, 0x80, 0x00, 0x80, 0x80, 0x80, 0x80, 0x00, 3, 3, 0];
    let expected = Record { offset: Offset(1000), timestamp: TimestampMs(50), ..Record::default() };
    assert_eq!(batch(0, 1, &record).records(), Ok(vec![expected]));
    // A header whose name is not UTF-8.
    let record = [18, 0, 0, 0, 1, 1, 2, 2, 0xff, 1];
    let records = batch(0, 1, &record).records().unwrap();
    assert_eq!(records[0].headers[0].key_utf8(), "\u{fffd}");
}

#[test]
fn a_control_batch_is_known_by_its_first_record() {
    // A COMMIT of coordinator epoch 9: key version and type, value version and epoch.
    let marker = [32, 0, 0, 0, 8, 0, 0, 0, 1, 12, 0, 0, 0, 0, 0, 9, 0];
    let and_more = [&marker[..], &[0xff; 9]].concat();
    assert!(batch(0x30, 2, &and_more).control_record().is_ok_and(|record| record.is_some()));
    let error = batch(0x30, 1, &and_more).control_record().unwrap_err();
    assert!(matches!(error, DecodeError::TrailingBytes { position: 78, .. }), "{error}");
    assert_eq!(batch(0x10, 1, &marker).control_record(), Ok(None), "not marked as control");
}

#[test]
fn malformed_control_records_are_errors() {
    let no_key = batch(0x20, 1, &NULLS);
    assert_eq!(no_key.control_type(), Err(DecodeError::Null { position: 62, what: "control record key" }));
    let short_key = batch(0x20, 1, &[18, 0, 0, 0, 6, 0, 0, 0, 1, 0]);
    let error = short_key.control_type().unwrap_err();
    assert!(matches!(error, DecodeError::UnexpectedEnd { position: 66, needed: 4, available: 3, .. }), "{error}");
    let bad_version = batch(0x20, 1, &[20, 0, 0, 0, 8, 0xff, 0xff, 0, 7, 1, 0]);
    let error = bad_version.control_type().unwrap_err();
    assert!(matches!(error, DecodeError::NegativeVersion { position: 66, version: -1, .. }), "{error}");
    let no_value = batch(0x20, 1, &[20, 0, 0, 0, 8, 0, 0, 0, 1, 1, 0]);
    assert!(no_value.control_type().is_ok());
    let error = DecodeError::Null { position: 62, what: "control record value" };
    assert_eq!(no_value.control_record(), Err(error));
}
