#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's ByteBufferLogInputStreamTest, SimpleLegacyRecordTest, LegacyRecordTest and AbstractLegacyRecordBatchTest, as far as they read.

use bytes::Bytes;
use cleanslate_log::record::{
    AnyBatchReader, Attributes, BatchBuilder, BatchReader, Compression, DecodeError, LegacyBatch, LegacyEntry, MAGIC_POSITION,
    Magic, RecordsBuilder, TimestampType, compress,
};
use cleanslate_log::types::{Offset, TimestampMs};

const CORRUPT: &str = "CorruptRecordException";
const INVALID: &str = "InvalidRecordException";

/// Where the length of a batch stands.
const LENGTH_POSITION: usize = 8;

/// Two batches of two records each, and where the second begins.
fn two_batches() -> (Vec<u8>, usize) {
    let batch = |base: i64, records: [(i64, &str); 2]| {
        let builder = BatchBuilder::new(Offset(base));
        let add = |builder: BatchBuilder, (at, value): (i64, &str)| {
            builder.timestamp(TimestampMs(at)).record(Some(value.as_bytes()), Some(value.as_bytes()))
        };
        records.into_iter().fold(builder, add).build().unwrap().bytes().to_vec()
    };
    let first = batch(0, [(15, "a"), (20, "b")]);
    let second = first.len();
    ([first, batch(2, [(30, "c"), (40, "d")])].concat(), second)
}

/// Last offsets of the batches, as far as they go, and the error that ends them.
fn read(bytes: Vec<u8>) -> (Vec<i64>, Option<&'static str>) {
    let mut found = Vec::new();
    for batch in BatchReader::new(bytes.into()) {
        match batch {
            Ok(batch) => found.push(batch.last_offset().get()),
            Err(error) => return (found, Some(error.kafka_class())),
        }
    }
    (found, None)
}

#[test]
fn iterator_ignores_incomplete_entries() {
    let (mut bytes, _) = two_batches();
    assert_eq!(read(bytes.clone()), (vec![1, 3], None));
    bytes.truncate(bytes.len() - 5);
    assert_eq!(read(bytes), (vec![1], None));
}

#[test]
fn iterator_raises_on_too_small_records() {
    let (mut bytes, second) = two_batches();
    bytes[second + LENGTH_POSITION..][..4].copy_from_slice(&9_i32.to_be_bytes());
    assert_eq!(read(bytes), (vec![1], Some(CORRUPT)));
}

#[test]
fn iterator_raises_on_invalid_magic() {
    let (mut bytes, second) = two_batches();
    bytes[second + MAGIC_POSITION] = 37;
    let batches: Vec<_> = AnyBatchReader::new(bytes.into()).map(|batch| batch.map(|_| ()).map_err(|e| e.kafka_class())).collect();
    assert_eq!(batches, [Ok(()), Err(CORRUPT)]);
}

/// An entry of magic 1, or without a timestamp of magic 0.
fn entry(offset: i64, timestamp: Option<i64>, codec: Compression, key: Option<&[u8]>, value: Option<&[u8]>) -> Bytes {
    let attributes = Attributes::default().with_compression(codec);
    let timestamp = timestamp.map(TimestampMs);
    LegacyEntry { offset: Offset(offset), attributes, timestamp, key, value }.to_bytes().unwrap()
}

fn decode(bytes: &Bytes) -> Result<LegacyBatch, DecodeError> {
    LegacyBatch::decode(bytes, 0).map(|(batch, _)| batch)
}

/// Offsets and timestamps of the records.
fn records(bytes: &Bytes) -> Result<Vec<(i64, i64)>, &'static str> {
    let records = decode(bytes).and_then(|batch| batch.records());
    let tell = |records: Vec<_>| {
        records.iter().map(|r: &cleanslate_log::record::LegacyRecord| (r.offset.get(), r.timestamp.get())).collect()
    };
    records.map(tell).map_err(|error| error.kafka_class())
}

#[test]
fn test_compressed_iteration_with_null_value() {
    assert_eq!(records(&entry(0, Some(1), Compression::Gzip, None, None)), Err(INVALID));
}

#[test]
fn test_compressed_iteration_with_empty_records() {
    let empty = compress(Compression::Gzip, &[]).unwrap();
    assert_eq!(records(&entry(0, Some(1), Compression::Gzip, None, Some(&empty))), Err(INVALID));
}

/// Kafka asks a record of two bytes; in a log it is an entry that says that its record has two.
#[test]
fn test_is_valid_with_too_small_buffer() {
    for follows in [&[0; 2][..], &[0; 20]] {
        let bytes = Bytes::from([&[0; 8][..], &2_i32.to_be_bytes(), follows].concat());
        let read: Vec<_> = AnyBatchReader::new(bytes).map(|batch| batch.map(|_| ()).map_err(|e| e.kafka_class())).collect();
        assert_eq!(read, [Err(CORRUPT)]);
    }
}

#[test]
fn test_is_valid_with_checksum_mismatch() {
    let mut bytes = entry(0, Some(1), Compression::None, None, Some(b"value")).to_vec();
    bytes[12..16].copy_from_slice(&2_i32.to_be_bytes());
    assert_eq!(decode(&bytes.into()).unwrap().ensure_valid().unwrap_err().kafka_class(), CORRUPT);
}

/// Timestamps, keys and values of LegacyRecordTest, in both formats; a timestamp that there is not is of magic 0.
fn for_each_record(mut check: impl FnMut(Option<i64>, Option<&[u8]>, Option<&[u8]>, Bytes)) {
    let payload = [1; 1000];
    let contents: [Option<&[u8]>; 4] = [None, Some(b""), Some(b"key"), Some(&payload)];
    for timestamp in [None, Some(-1), Some(0), Some(1)] {
        for key in contents {
            for value in contents {
                check(timestamp, key, value, entry(0, timestamp, Compression::None, key, value));
            }
        }
    }
}

#[test]
fn test_fields() {
    let mut checked = 0;
    for_each_record(|timestamp, key, value, bytes| {
        let batch = decode(&bytes).unwrap();
        let record = batch.records().unwrap().remove(0);
        assert_eq!((record.key.as_deref(), record.value.as_deref()), (key, value));
        assert_eq!((record.magic, batch.magic()), (i8::from(timestamp.is_some()), i8::from(timestamp.is_some())));
        assert_eq!((record.timestamp, batch.max_timestamp()), (TimestampMs(timestamp.unwrap_or(-1)), record.timestamp));
        assert_eq!(record.timestamp_type, timestamp.map(|_| TimestampType::CreateTime));
        assert_eq!(batch.compression(), Some(Compression::None));
        checked += 1;
    });
    assert_eq!(checked, 64);
}

#[test]
fn test_checksum() {
    for_each_record(|_, _, _, bytes| {
        let batch = decode(&bytes).unwrap();
        assert_eq!(batch.stored_crc(), batch.computed_crc());
        assert_eq!(batch.ensure_valid(), Ok(()));
        // The checksum covers everything behind it. A byte may be 69 by chance, and one that says another format or size is refused.
        for at in (16..bytes.len()).filter(|at| bytes[*at] != 69) {
            let mut damaged = bytes.to_vec();
            damaged[at] = 69;
            let valid = decode(&damaged.into()).and_then(|batch| batch.ensure_valid());
            assert_eq!(valid.unwrap_err().kafka_class(), CORRUPT, "{at}");
        }
    });
}

/// A set of three records at 1, 2 and 3 ms, whose wrapper has an offset.
fn set(magic: i8, wrapper: i64) -> Bytes {
    let timestamp = |at: i64| (magic == 1).then_some(at);
    let inner = |(at, offset): (i64, i64)| entry(offset, timestamp(at), Compression::None, Some(b"a"), Some(b"1"));
    let inner: Vec<u8> = [(1, 0), (2, 1), (3, 2)].into_iter().flat_map(inner).collect();
    entry(wrapper, timestamp(3), Compression::Gzip, None, Some(&compress(Compression::Gzip, &inner).unwrap()))
}

#[test]
fn test_set_last_offset_compressed() {
    let bytes = set(1, 500);
    let batch = decode(&bytes).unwrap();
    assert_eq!((batch.last_offset(), batch.ensure_valid()), (Offset(500), Ok(())));
    assert_eq!(records(&bytes), Ok(vec![(498, 1), (499, 2), (500, 3)]));
}

/// Some clients left the offset of a wrapper 0.
#[test]
fn test_iterate_compressed_record_with_wrapper_offset_zero() {
    for magic in [0, 1] {
        let offsets = records(&set(magic, 0)).map(|records| records.into_iter().map(|(offset, _)| offset).collect());
        assert_eq!(offsets, Ok(vec![0, 1, 2]), "{magic}");
    }
}

#[test]
fn test_invalid_wrapper_offset_v1() {
    assert_eq!(records(&set(1, 1)), Err(INVALID));
}

#[test]
fn test_zstd_compression_type_with_v0_or_v1() {
    for magic in [Magic::V0, Magic::V1] {
        let settings = BatchBuilder::new(Offset(0)).compression(Compression::Zstd).record(Some(b"a"), Some(b"1"));
        let refused = RecordsBuilder::new(magic, settings, 0).and_then(|mut builder| builder.build());
        assert_eq!(refused.unwrap_err().kafka_class(), "IllegalArgumentException");
    }
}
