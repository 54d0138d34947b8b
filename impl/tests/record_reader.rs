//! Records one by one, held against reading them all at once.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

use bytes::Bytes;
use cleanslate_log::record::{
    BatchBuilder, Compression, DecodeError, HEADER_BYTES, Header, MEMORY_FIXED_BYTES, RECORD_COUNT_POSITION, Record, RecordBatch,
    compress,
};
use cleanslate_log::types::{Offset, TimestampMs};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const ALL: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const BOUND: usize = 1 << 22;

/// Records whose values are so many bytes that do not compress well.
fn batch(codec: Compression, sizes: &[usize]) -> RecordBatch {
    let records = sizes.iter().zip(0..).map(|(size, index)| Record {
        offset: Offset(index),
        timestamp: TimestampMs(index),
        key: (index % 3 != 0).then(|| Bytes::from_static(b"key")),
        value: Some((0..*size).map(|at| u8::try_from((at * at / 7 + at / 251) % 251).unwrap()).collect()),
        headers: (0..index % 4).map(|_| Header { key: Bytes::from_static(b"h"), value: None }).collect(),
    });
    BatchBuilder::new(Offset(0)).compression(codec).records(records).build().unwrap()
}

/// The batch with its records replaced by others, and their count.
fn with_body(codec: Compression, count: i32, body: &[u8]) -> RecordBatch {
    let head = batch(codec, &[1]);
    let mut bytes = head.bytes()[..HEADER_BYTES].to_vec();
    bytes.extend_from_slice(body);
    let length = i32::try_from(bytes.len() - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[RECORD_COUNT_POSITION..HEADER_BYTES].copy_from_slice(&count.to_be_bytes());
    RecordBatch::decode(&bytes.into(), 0).unwrap().0
}

/// The records in front of an error, and that.
fn one_by_one(batch: &RecordBatch, bound: usize) -> (Vec<Record>, Option<DecodeError>) {
    let mut reader = batch.record_reader(bound);
    let mut records = Vec::new();
    let error = loop {
        match reader.next() {
            Some(Ok(record)) => records.push(record),
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    assert_eq!(reader.next(), None, "an error ends the records");
    (records, error)
}

/// Both ways agree, and outlines agree with the records.
fn check(batch: &RecordBatch, bound: usize) {
    let (records, error) = one_by_one(batch, bound);
    match batch.records_within(bound) {
        Ok(all) => assert_eq!((&records, &error), (&all, &None)),
        Err(other) => assert_eq!(error, Some(other)),
    }
    let outlines: Vec<_> = batch.outlines(bound).collect();
    assert_eq!(outlines.len(), records.len() + usize::from(error.is_some()));
    for (outline, record) in outlines.iter().zip(&records) {
        let outline = outline.as_ref().unwrap();
        assert_eq!((outline.offset, outline.timestamp), (record.offset, record.timestamp));
        assert_eq!(
            (outline.key_size, outline.value_size),
            (record.key.as_ref().map(Bytes::len), record.value.as_ref().map(Bytes::len))
        );
        assert_eq!(outline.header_count, record.headers.len());
    }
}

/// As Kafka's reader, which decompresses as it goes.
#[test]
fn records_in_front_of_a_cut_are_there() {
    for codec in ALL {
        let whole = batch(codec, &[5000; 100]);
        let body = &whole.bytes()[HEADER_BYTES..];
        let cut = with_body(codec, 100, &body[..body.len() - 10]);
        let (records, error) = one_by_one(&cut, BOUND);
        // A block of zstd has 128 KiB, and what is cut of one is lost with all of it.
        assert!(records.len() > 60 && records.len() < 100, "{codec:?}: {} records", records.len());
        assert_eq!(records, whole.records().unwrap()[..records.len()]);
        assert!(error.is_some());
        check(&cut, BOUND);
    }
}

/// Bytes behind the last record are met together with it.
#[test]
fn the_last_record_is_not_there_when_bytes_follow() {
    for codec in ALL {
        let records = &batch(Compression::None, &[5, 5]).bytes()[HEADER_BYTES..].to_vec();
        let body = compress(codec, &[&records[..], &[0; 200_000]].concat()).unwrap();
        let (records, error) = one_by_one(&with_body(codec, 2, &body), BOUND);
        assert_eq!(records.len(), 1);
        let error = match error.unwrap() {
            DecodeError::InCompressed { source, .. } => *source,
            error => error,
        };
        // What was decompressed is counted, and no more of it than was needed.
        assert!(matches!(error, DecodeError::TrailingBytes { remaining: 1..=200_000, .. }), "{codec:?}: {error}");
    }
}

/// Of a damaged record and a stream that is damaged or exceeds the bound behind it, the record is told, as in Kafka.
#[test]
fn a_fault_of_a_record_goes_before_one_of_the_stream_behind_it() {
    for codec in &ALL[1..] {
        let stream = compress(*codec, &[&[14, 0, 0, 0, 1, 1, 0, 0][..], &[9; 300_000]].concat()).unwrap();
        let damaged = with_body(*codec, 2, &stream);
        for (bound, is_record) in [(1000, false), (100_000, true), (299_999, true), (BOUND, true)] {
            let error = one_by_one(&damaged, bound).1.unwrap();
            assert_eq!(matches!(error, DecodeError::InCompressed { .. }), is_record, "{codec:?}: {error}");
            assert_eq!(matches!(error, DecodeError::DecompressedTooLarge { .. }), !is_record, "{codec:?}: {error}");
            check(&damaged, bound);
        }
    }
}

/// The formula for reading one by one: nothing is kept of records that were dropped.
#[test]
fn one_record_is_held_at_a_time() {
    let count = 600_000;
    let records = [12, 0, 0, 0, 1, 1, 0].repeat(count);
    for codec in ALL {
        let many = with_body(codec, i32::try_from(count).unwrap(), &compress(codec, &records).unwrap());
        let used = allocation_counter::measure(|| assert_eq!(many.record_reader(BOUND * 2).filter(Result::is_ok).count(), count));
        // Blocks of these writers have 64 KiB at most, so that far less than the bound is held.
        let allowed = u64::try_from(2 * MEMORY_FIXED_BYTES + 64 * 1024).unwrap();
        assert!(used.bytes_max <= allowed, "{codec:?}: {} bytes", used.bytes_max);
    }
}

/// One record that is nothing but headers, which are 32 bytes a byte when they are read.
#[test]
fn an_outline_does_not_hold_headers() {
    let headers = 100_000;
    let mut body = vec![0, 0, 0, 1, 1];
    cleanslate_log::record::varint::write_varint(&mut body, headers);
    body.extend([0, 1].repeat(usize::try_from(headers).unwrap()));
    let mut record = Vec::new();
    cleanslate_log::record::varint::write_varint(&mut record, i32::try_from(body.len()).unwrap());
    record.extend_from_slice(&body);
    for codec in ALL {
        let batch = with_body(codec, 1, &compress(codec, &record).unwrap());
        let bound = record.len();
        let mut found = Vec::with_capacity(1);
        let used = allocation_counter::measure(|| found.extend(batch.outlines(bound).map(Result::unwrap)));
        assert_eq!(found[0].header_count, 100_000);
        let allowed = u64::try_from(2 * bound + MEMORY_FIXED_BYTES).unwrap();
        assert!(used.bytes_max <= allowed, "{codec:?}: {} bytes", used.bytes_max);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_by_one_and_at_once_agree(
        codec in prop::sample::select(&ALL[..]),
        sizes in vec(prop_oneof![6 => 0..60_usize, 1 => 0..70_000_usize], 1..30),
        flips in vec((any::<Index>(), any::<u8>()), 0..3),
        (in_stream, cut, tail) in (any::<bool>(), prop::option::of(any::<Index>()), 0..20_usize),
        count in prop::option::of(-1..40_i32),
        bound in prop_oneof![2 => Just(BOUND), 1 => 0..5000_usize],
    ) {
        let damage = |bytes: &mut Vec<u8>| {
            for (at, flip) in &flips {
                let at = at.index(bytes.len().max(1));
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= flip);
            }
            if let Some(cut) = &cut {
                bytes.truncate(cut.index(bytes.len() + 1));
                bytes.resize(bytes.len() + tail, 3);
            }
        };
        let mut records = batch(Compression::None, &sizes).bytes()[HEADER_BYTES..].to_vec();
        if !in_stream {
            damage(&mut records);
        }
        let mut body = compress(codec, &records).unwrap().to_vec();
        if in_stream {
            damage(&mut body);
        }
        let count = count.unwrap_or(i32::try_from(sizes.len()).unwrap());
        check(&with_body(codec, count, &body), bound);
    }
}
