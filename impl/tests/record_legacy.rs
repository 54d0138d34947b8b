//! Magic 0 and 1: Kafka's bytes, hand-built sets, damage and bounds.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{
    AnyBatch, AnyBatchReader, Attributes, BatchBuilder, BatchReader, Compression, DecodeError, LegacyBatch, LegacyEntry,
    LegacyRecord, Magic, Record, RecordsBuilder, TimestampType, compress,
};
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

#[path = "data/record/hex.rs"]
mod hex;
#[path = "data/record/legacy.rs"]
mod legacy;
use hex::hex;

const T: i64 = 1_700_000_000_000;

fn entry(offset: i64, magic: i8, attributes: i8, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let (offset, attributes) = (Offset(offset), Attributes(attributes.into()));
    let timestamp = (magic == 1).then_some(TimestampMs(timestamp));
    LegacyEntry { offset, attributes, timestamp, key, value }.to_bytes().unwrap().to_vec()
}

/// A compressed set of these entries.
fn set(offset: i64, magic: i8, attributes: i8, entries: &[Vec<u8>]) -> LegacyBatch {
    let codec = Compression::from_id(attributes.cast_unsigned() & 7).unwrap();
    let value = compress(codec, &entries.concat()).unwrap();
    batch(&entry(offset, magic, attributes, T + 50, None, Some(&value)))
}

fn batch(bytes: &[u8]) -> LegacyBatch {
    let bytes = Bytes::copy_from_slice(bytes);
    let (batch, end) = LegacyBatch::decode(&bytes, 0).unwrap();
    assert_eq!(end, bytes.len());
    batch
}

fn offsets_and_times(records: &[LegacyRecord]) -> Vec<(i64, i64)> {
    records.iter().map(|record| (record.offset.get(), record.timestamp.get())).collect()
}

fn refused(batch: &LegacyBatch, expected: &str) {
    let error = batch.records().unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(error.kafka_class(), "InvalidRecordException");
}

#[test]
fn sets_that_kafka_wrote() {
    for (magic, codec, append_time, text) in legacy::SETS {
        let name = format!("magic {magic} {codec:?} append time {append_time}");
        let batches: Result<Vec<AnyBatch>, _> = AnyBatchReader::new(hex(text)).collect();
        let batches = batches.unwrap();
        assert_eq!(batches.len(), if codec == Compression::None { 3 } else { 1 }, "{name}");
        let timestamp = |of: i64| match magic {
            0 => TimestampMs(-1),
            _ if append_time => TimestampMs(T + 99),
            _ => TimestampMs(of),
        };
        let record = |offset: i64, at: i64, key: Option<&'static str>, value: Option<&'static str>| Record {
            offset: Offset(offset),
            timestamp: timestamp(at),
            key: key.map(Bytes::from),
            value: value.map(Bytes::from),
            headers: Vec::new(),
        };
        let expected = vec![
            record(100, T, Some("k1"), Some("v1")),
            record(101, T + 5, None, Some("v2")),
            record(102, T - 3, Some("k3"), None),
        ];
        let mut records = Vec::new();
        for batch in &batches {
            assert_eq!((batch.magic(), batch.ensure_valid()), (magic, Ok(())), "{name}");
            assert_eq!((batch.base_offset(), batch.leader_epoch()), (None, LeaderEpoch(-1)));
            records.extend(batch.records().unwrap());
            let AnyBatch::Legacy(batch) = batch else { panic!("{name}") };
            assert_eq!(batch.compression(), Some(codec));
            for record in batch.records().unwrap() {
                assert_eq!(record.ensure_valid(), Ok(()), "{name}");
                let time = if append_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
                assert_eq!(record.timestamp_type, (magic == 1).then_some(time));
                assert_eq!(record.magic, magic);
            }
        }
        assert_eq!(records, expected, "{name}");
        let last = batches.last().unwrap();
        assert_eq!((last.last_offset(), last.next_offset()), (Offset(102), Offset(103)));
        let largest = if codec == Compression::None { T - 3 } else { T + 5 };
        assert_eq!(last.max_timestamp(), timestamp(largest), "{name}");
    }
}

#[test]
fn entries_of_this_test_are_those_of_kafka() {
    // Held against Kafka's bytes, so that writer and reader are not only held against each other.
    let (_, _, _, text) = legacy::SETS[0];
    let entries = [
        entry(100, 0, 0, T, Some(b"k1"), Some(b"v1")),
        entry(101, 0, 0, T, None, Some(b"v2")),
        entry(102, 0, 0, T, Some(b"k3"), None),
    ];
    assert_eq!(hex(text), entries.concat());
}

/// What the builder makes of the records of which Kafka made the stored sets. The bytes are the same where no codec has a choice, and
/// for LZ4; of the others, what comes out again.
#[test]
fn what_is_built_is_what_kafka_builds() {
    for (magic, codec, append_time, text) in legacy::SETS {
        let name = format!("magic {magic} {codec:?} append time {append_time}");
        let settings = BatchBuilder::new(Offset(100)).compression(codec);
        let settings = if append_time { settings.log_append_time(TimestampMs(T + 99)) } else { settings };
        let magic = if magic == 0 { Magic::V0 } else { Magic::V1 };
        let mut builder = RecordsBuilder::new(magic, settings, 1024).unwrap();
        for (timestamp, key, value) in [(T, Some("k1"), Some("v1")), (T + 5, None, Some("v2")), (T - 3, Some("k3"), None)] {
            let (key, value) = (key.map(Bytes::from), value.map(Bytes::from));
            builder.append_next(Record { timestamp: TimestampMs(timestamp), key, value, ..Record::default() }).unwrap();
        }
        let (built, expected) = (builder.build().unwrap(), hex(text));
        if matches!(codec, Compression::None | Compression::Lz4) {
            assert_eq!(built, expected, "{name}");
            continue;
        }
        let read = |bytes: &Bytes| {
            let batch = LegacyBatch::decode(bytes, 0).unwrap().0;
            (batch.attributes(), batch.max_timestamp(), batch.last_offset(), batch.records().unwrap())
        };
        assert_eq!(read(&built), read(&expected), "{name}");
    }
}

#[test]
fn offsets_of_a_set() {
    let entries = |magic: i8, offsets: &[i64]| -> Vec<Vec<u8>> {
        offsets.iter().map(|offset| entry(*offset, magic, 0, T + offset, None, Some(b"v"))).collect()
    };
    let offsets = |batch: LegacyBatch| {
        let records = batch.records().unwrap();
        records.iter().map(|record| record.offset.get()).collect::<Vec<_>>()
    };
    // Magic 1: relative, so that the last is the wrapper's; compaction leaves gaps.
    assert_eq!(offsets(set(12, 1, 1, &entries(1, &[0, 1, 2]))), [10, 11, 12]);
    assert_eq!(offsets(set(12, 1, 1, &entries(1, &[1, 4]))), [9, 12]);
    // A wrapper at 0 has absolute offsets in it.
    assert_eq!(offsets(set(0, 1, 1, &entries(1, &[0, 1, 2]))), [0, 1, 2]);
    // Magic 0: absolute.
    assert_eq!(offsets(set(12, 0, 1, &entries(0, &[3, 7, 12]))), [3, 7, 12]);
    refused(&set(1, 1, 1, &entries(1, &[0, 1, 2])), "below its last record's");
}

#[test]
fn timestamps_of_a_set() {
    let entries = [entry(0, 1, 0, T, None, None), entry(1, 1, 8, T + 7, None, None)];
    let records = set(5, 1, 2, &entries).records().unwrap();
    assert_eq!(offsets_and_times(&records), [(4, T), (5, T + 7)]);
    assert_eq!(records[1].timestamp_type, Some(TimestampType::CreateTime), "the wrapper decides");
    let records = set(5, 1, 2 | 8, &entries).records().unwrap();
    assert_eq!(offsets_and_times(&records), [(4, T + 50), (5, T + 50)]);
    // Records of magic 0 in a wrapper of magic 1 have no timestamps.
    let records = set(5, 1, 2 | 8, &[entry(0, 0, 0, T, None, None)]).records().unwrap();
    assert_eq!((offsets_and_times(&records), records[0].timestamp_type), (vec![(5, -1)], None));
    // Records of magic 1 in a wrapper of magic 0 keep theirs, of no type.
    let records = set(5, 0, 2 | 8, &[entry(3, 1, 8, T, None, None)]).records().unwrap();
    assert_eq!((offsets_and_times(&records), records[0].timestamp_type), (vec![(3, T)], None));
}

#[test]
fn sets_that_kafka_refuses() {
    refused(&batch(&entry(5, 1, 1, T, None, None)), "null value");
    refused(&set(5, 1, 1, &[]), "no records");
    refused(&set(5, 1, 1, &[entry(0, 1, 1, T, None, Some(b"v"))]), "is compressed");
    refused(&set(5, 1, 4, &[entry(0, 1, 0, T, None, None)]), "zstd is younger");
    let mut inner = entry(0, 1, 0, T, None, None);
    inner[16] = 2;
    refused(&set(5, 1, 1, &[inner]), "magic 2");
    let unknown = batch(&entry(5, 1, 5, T, None, None));
    assert_eq!(unknown.records(), Err(DecodeError::UnknownCompression { position: 17, codec: 5 }));
    assert_eq!(unknown.ensure_valid(), Ok(()), "looked up with the records only");
    let mut short = entry(0, 1, 0, T, None, None);
    short[11] = 13;
    let error = set(5, 1, 1, &[short]).records().unwrap_err();
    assert_eq!(error.kafka_class(), "CorruptRecordException");
}

#[test]
fn a_cut_entry_ends_a_set() {
    let whole = entry(0, 1, 0, T, Some(b"k"), None);
    let cut = whole[..whole.len() - 1].to_vec();
    assert_eq!(offsets_and_times(&set(9, 1, 3, &[whole, cut]).records().unwrap()), [(9, T)]);
}

#[test]
fn checksums() {
    let mut damaged = entry(5, 1, 0, T, Some(b"k"), Some(b"v"));
    damaged[30] ^= 1;
    let damaged_batch = batch(&damaged);
    let error = damaged_batch.ensure_valid().unwrap_err();
    assert!(matches!(error, DecodeError::CrcMismatch { position: 12, .. }));
    assert_eq!(error.kafka_class(), "CorruptRecordException");
    // The CRC of a record in a set is not a condition for reading it.
    let records = set(5, 1, 3, &[damaged]).records().unwrap();
    assert!(records[0].ensure_valid().is_err());
    // The offset is not covered.
    let mut moved = entry(5, 0, 0, T, None, None);
    moved[7] = 6;
    assert_eq!(batch(&moved).ensure_valid(), Ok(()));
}

#[test]
fn the_descriptor_checksum_of_lz4_counts_in_magic_1() {
    let entries = entry(0, 1, 0, T, None, None);
    let mut value = compress(Compression::Lz4, &entries).unwrap().to_vec();
    value[6] ^= 1;
    assert!(batch(&entry(0, 0, 3, T, None, Some(&value))).records().is_ok());
    let error = batch(&entry(0, 1, 3, T, None, Some(&value))).records().unwrap_err();
    assert!(matches!(error, DecodeError::CorruptCompression { position: 34, codec: Compression::Lz4, .. }), "{error:?}");
}

#[test]
fn sets_are_bounded() {
    let entries: Vec<_> = (0..1000).map(|offset| entry(offset, 1, 0, T, None, Some(&[0; 1000]))).collect();
    let size = entries.concat().len();
    for attributes in 1..=3 {
        let set = set(999, 1, attributes, &entries);
        assert!(set.size_in_bytes() < size / 5);
        assert_eq!(set.records_within(size).unwrap().len(), 1000);
        let error = set.records_within(size - 1).unwrap_err();
        assert!(matches!(error, DecodeError::DecompressedTooLarge { .. }), "{error}");
    }
}

#[test]
fn sizes_and_magics() {
    let minimal = entry(5, 0, 0, T, None, None);
    assert_eq!(minimal.len(), 12 + 14);
    let records = batch(&minimal).records().unwrap();
    assert_eq!((records[0].key.as_ref(), records[0].value.as_ref()), (None, None));
    let mut magic_1 = minimal.clone();
    magic_1[16] = 1;
    let error = LegacyBatch::decode(&Bytes::from(magic_1), 0).unwrap_err();
    assert_eq!(error, DecodeError::BatchLengthTooSmall { position: 8, length: 14, minimum: 22 });
    let mut magic_2 = minimal.clone();
    magic_2[16] = 2;
    let error = LegacyBatch::decode(&Bytes::from(magic_2), 0).unwrap_err();
    assert_eq!(error, DecodeError::UnsupportedMagic { position: 16, magic: 2 });
    // A key that is longer than the record.
    let mut long_key = entry(5, 0, 0, T, Some(b"k"), None);
    long_key[21] = 9;
    assert!(batch(&long_key).records().is_err());
    let cut = Bytes::copy_from_slice(&minimal[..20]);
    assert!(matches!(LegacyBatch::decode(&cut, 0), Err(DecodeError::UnexpectedEnd { needed: 26, available: 20, .. })));
}

#[test]
fn batches_of_all_magics_in_one_buffer() {
    let v2 = BatchBuilder::new(Offset(7)).record(None, Some(b"v")).build().unwrap();
    let bytes =
        [&entry(5, 0, 0, T, None, None)[..], &entry(6, 1, 0, T, None, None), v2.bytes(), &entry(8, 1, 0, T, None, None)[..20]]
            .concat();
    let bytes = Bytes::from(bytes);
    let mut reader = AnyBatchReader::new(bytes.clone());
    let batches: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(AnyBatch::magic).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(batches.iter().map(|batch| batch.last_offset().get()).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(batches[2].base_offset(), Some(Offset(7)));
    assert_eq!(reader.position(), bytes.len() - 20);
    let of_magic_2 = BatchReader::new(bytes).next();
    assert!(matches!(of_magic_2, Some(Err(DecodeError::UnsupportedMagic { magic: 0, .. }))));
    let mut corrupt = entry(5, 0, 0, T, None, None);
    corrupt[16] = 3;
    let mut reader = AnyBatchReader::new(Bytes::from(corrupt));
    assert!(matches!(reader.next(), Some(Err(DecodeError::UnknownMagic { magic: 3, .. }))));
    assert_eq!(reader.next(), None);
}

/// Reads everything; errors are fine.
fn exercise(bytes: &Bytes) {
    for batch in AnyBatchReader::new(bytes.clone()) {
        let Ok(batch) = batch else { return };
        let size = batch.size_in_bytes();
        let errors = [batch.ensure_valid().err(), batch.records_within(100_000).err()];
        for error in errors.into_iter().flatten() {
            assert!(error.position() <= size, "{error}");
            assert!(!error.to_string().is_empty() && !error.kafka_class().is_empty());
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(magic in 0..=2_u8, mut bytes in vec(prop_oneof![Just(0), any::<u8>()], 0..200)) {
        exercise(&Bytes::from(bytes.clone()));
        // Once more with a plausible size and magic.
        if bytes.len() > 17 {
            let size = u32::try_from(bytes.len() - 12).unwrap();
            bytes[8..12].copy_from_slice(&size.to_be_bytes());
            bytes[16] = magic;
            exercise(&Bytes::from(bytes));
        }
    }

    #[test]
    fn damaged_sets_do_no_harm(which in any::<Index>(), at in any::<Index>(), flip in 1..=255_u8) {
        let (_, _, _, text) = legacy::SETS[which.index(legacy::SETS.len())];
        let mut bytes = hex(text).to_vec();
        let position = at.index(bytes.len());
        bytes[position] ^= flip;
        exercise(&Bytes::from(bytes));
    }

    #[test]
    fn damage_behind_a_codec_does_no_harm(attributes in 1..=3_i8, magic in 0..=1_i8, at in any::<Index>(), flip in 1..=255_u8) {
        let mut inner = [entry(0, magic, 0, T, Some(b"k"), None), entry(1, magic, 0, T, None, Some(b"v"))];
        let position = at.index(inner[1].len());
        inner[1][position] ^= flip;
        exercise(set(1, magic, attributes, &inner).bytes());
    }
}
