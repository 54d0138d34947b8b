//! Compressed payloads and batches: Kafka's bytes, round trips, damage and bounds.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{
    BatchBuilder, Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, DecodeError, Header, Record, RecordBatch, compress,
};
use cleanslate_log::types::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

#[path = "data/record/compressed.rs"]
mod compressed;
#[path = "data/record/hex.rs"]
mod hex;
use hex::hex;

const T: i64 = 1_700_000_000_000;
const CODECS: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const ALL: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// Bytes that come from anywhere.
fn decompress(codec: Compression, stream: &[u8], max_bytes: usize) -> Result<Bytes, DecodeError> {
    cleanslate_log::record::decompress(codec, &Bytes::copy_from_slice(stream), max_bytes)
}

fn golden_batch(text: &str) -> RecordBatch {
    let bytes = hex(text);
    let (batch, end) = RecordBatch::decode(&bytes, 0).unwrap();
    assert_eq!(end, bytes.len());
    batch
}

fn record(offset: i64, key: &[u8], value: &[u8]) -> Record {
    Record {
        offset: Offset(offset),
        timestamp: TimestampMs(T),
        key: Some(Bytes::copy_from_slice(key)),
        value: Some(Bytes::copy_from_slice(value)),
        headers: Vec::new(),
    }
}

#[test]
fn batches_that_kafka_compressed() {
    for (codec, text) in compressed::BATCHES {
        let batch = golden_batch(text);
        assert_eq!(batch.ensure_valid(), Ok(()), "{codec:?}");
        assert_eq!(batch.attributes().compression(), Some(codec));
        assert_eq!(batch.records(), Ok(vec![record(0, b"k", &[b'v'; 40])]), "{codec:?}");
        // The 48 bytes of the record fit a bound of 48.
        assert_eq!(batch.records_within(48).map(|records| records.len()), Ok(1), "{codec:?}");
        let bounded = batch.records_within(47);
        match codec {
            Compression::None => assert_eq!(bounded, batch.records(), "nothing to decompress, nothing to bound"),
            _ => assert_eq!(bounded, Err(DecodeError::DecompressedTooLarge { position: 61, codec, max_bytes: 47 })),
        }
    }
}

#[test]
fn containers_are_those_of_kafka() {
    let payload = b"payload";
    assert!(compress(Compression::Gzip, payload).unwrap().starts_with(&hex("1f8b08000000000000ff")));
    let snappy = compress(Compression::Snappy, payload).unwrap();
    assert!(snappy.starts_with(&hex("82534e4150505900 00000001 00000001 00000009")));
    // Seven bytes do not get smaller, so the block is stored as it is.
    let lz4 = compress(Compression::Lz4, payload).unwrap();
    assert_eq!(lz4, hex("04224d18 6040 82 07000080 7061796c6f6164 00000000"));
    assert!(compress(Compression::Zstd, payload).unwrap().starts_with(&hex("28b52ffd")));
    assert_eq!(compress(Compression::None, payload).unwrap(), &payload[..]);
}

#[test]
fn snappy_blocks_are_of_32_kib_of_input() {
    let bytes = vec![7; 2 * 32 * 1024 + 1];
    let stream = compress(Compression::Snappy, &bytes).unwrap();
    let mut blocks = Vec::new();
    let mut rest = stream.slice(16..);
    while !rest.is_empty() {
        let length = u32::from_be_bytes(*rest.first_chunk().unwrap()) as usize;
        blocks.push(snap::raw::decompress_len(&rest[4..4 + length]).unwrap());
        rest = rest.slice(4 + length..);
    }
    assert_eq!(blocks, [32 * 1024, 32 * 1024, 1]);
    assert_eq!(decompress(Compression::Snappy, &stream, bytes.len()).unwrap(), bytes);
}

#[test]
fn what_kafka_takes_for_a_stream() {
    let seven = Bytes::from_static(b"payload");
    let ok = |codec, stream: &[u8], expected: &[u8]| {
        assert_eq!(decompress(codec, stream, 100), Ok(Bytes::copy_from_slice(expected)), "{codec:?} {stream:02x?}");
    };
    let gzip = compress(Compression::Gzip, &seven).unwrap();
    ok(Compression::Gzip, &[&gzip[..], &gzip[..]].concat(), b"payloadpayload");
    ok(Compression::Gzip, &[&gzip[..], b"junk"].concat(), b"payload");
    let snappy = compress(Compression::Snappy, &seven).unwrap();
    ok(Compression::Snappy, &[&snappy[..], &snappy[..]].concat(), b"payloadpayload");
    ok(Compression::Snappy, &snappy[20..], b"payload"); // one raw block without the framing
    ok(Compression::Snappy, &snappy[..16], b"");
    ok(Compression::Snappy, &[&snappy[..], &[0; 3]].concat(), b"payload"); // no length of a chunk
    // Sixteen bytes between chunks that begin like a header, and at the beginning a header of any version.
    ok(Compression::Snappy, &[&snappy[..], &hex("82534e41"), &[0x51; 12], &snappy[16..]].concat(), b"payloadpayload");
    ok(Compression::Snappy, &[&hex("82534e4150505900 00000000 00000001")[..], &snappy[16..]].concat(), b"payload");
    let lz4 = compress(Compression::Lz4, &seven).unwrap();
    ok(Compression::Lz4, &[&lz4[..], b"junk"].concat(), b"payload");
    // A content size, a block checksum, and a content checksum that is not looked at.
    let descriptor = hex("7c40 0700000000000000");
    let checksum = twox_hash::XxHash32::oneshot(0, &descriptor).to_le_bytes()[1];
    let block_checksum = twox_hash::XxHash32::oneshot(0, b"payload").to_le_bytes();
    let magic = hex("04224d18");
    let mut frame = [&magic[..], &descriptor, &[checksum], &hex("07000080"), b"payload", &block_checksum, &[0; 8]].concat();
    ok(Compression::Lz4, &frame, b"payload");
    frame[27] ^= 1;
    assert!(matches!(decompress(Compression::Lz4, &frame, 100), Err(DecodeError::CorruptCompression { .. })));
    let zstd = compress(Compression::Zstd, &seven).unwrap();
    ok(Compression::Zstd, &[&zstd[..], &zstd[..]].concat(), b"payloadpayload");
}

/// What Java's reader makes of members and of what follows them.
#[test]
fn members_of_a_gzip_stream() {
    let member = compress(Compression::Gzip, b"payload").unwrap();
    let with = |flags: u8, fields: &[u8]| {
        let mut header = member[..10].to_vec();
        header[3] = flags;
        [&header[..], fields, &member[10..]].concat()
    };
    let of = |stream: &[u8]| decompress(Compression::Gzip, stream, 100).ok();
    let (one, two) = (Some(Bytes::from_static(b"payload")), Some(Bytes::from_static(b"payloadpayload")));
    for flags in [0x20, 0x40, 0x80, 0xe1] {
        assert_eq!(of(&with(flags, b"")), one, "{flags:02x}: reserved");
    }
    assert_eq!(of(&with(4, b"\x02\0ab")), one, "an extra field");
    assert_eq!(of(&with(0x18, b"name\0comment\0")), one);
    let mut header = member[..10].to_vec();
    header[3] = 2;
    let checksum = u16::try_from(crc32fast::hash(&header) & 0xffff).unwrap().to_le_bytes();
    assert_eq!(of(&with(2, &checksum)), one);
    assert_eq!(of(&with(2, &[checksum[0] ^ 1, checksum[1]])), None);
    assert_eq!(of(&with(8, b"name")[..14]), None, "a name without an end");
    let then = |tail: &[u8]| of(&[&member[..], tail].concat());
    assert_eq!(then(&member), two);
    assert_eq!(then(&with(8, b"n\0")), two);
    for ignored in [&member[..3], &member[..18], &with(2, &[0; 2]), &[0; 30], &[0x1f; 30]] {
        assert_eq!(then(ignored), one, "{ignored:02x?}");
    }
    assert_eq!(then(&member[..19]), None, "a member that is cut");
    let mut wrong = member.to_vec();
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    assert_eq!((of(&wrong), of(&member[..last])), (None, None), "its length is wrong or cut");
}

#[test]
fn what_kafka_refuses_as_a_stream() {
    let refused_with = |codec, text: &str, class| {
        let result = decompress(codec, &hex(text), 1 << 20);
        assert!(matches!(result, Err(DecodeError::CorruptCompression { position: 0, .. })), "{codec:?} {text}: {result:?}");
        assert_eq!(result.unwrap_err().kafka_class(), class, "{codec:?} {text}");
    };
    let refused = |codec, text: &str| refused_with(codec, text, "KafkaException");
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        refused(codec, "");
    }
    refused(Compression::Gzip, "1f8b08000000000000ff 8b63606060ca0e2823123000002b7c8aa2300000"); // cut
    refused(Compression::Gzip, "1f8b08000000000000ff 8b63606060ca0e2823123000002b7c8aa330000000"); // wrong CRC
    refused(Compression::Snappy, "82534e4150505900 00000001 00000001 82534e4150505900 00000000 00000001"); // version 0 between chunks
    refused(Compression::Snappy, "82534e4150505900 00000001 00000001 82534e4150505900 00000001 000000"); // a header between chunks is cut
    let long = "SnappyError";
    refused_with(Compression::Snappy, "82534e4150505900 00000001 00000001 ffffffff 00", long); // a negative length
    refused_with(Compression::Snappy, "82534e4150505900 00000001 00000001 20000001 00", long); // more than 512 MiB
    refused(Compression::Snappy, "82534e4150505900 00000001 00000001 20000000 00"); // a chunk is cut
    refused(Compression::Snappy, "82534e4150505900 00000001 00000001 00000002 05 00"); // a damaged block
    refused(Compression::Gzip, "1f8b08000000000000ff 4b044a0000 7a4fdea2 04000000"); // reaches in front of its beginning
    let cut = "BufferUnderflowException";
    refused_with(Compression::Lz4, "04224d18 6440 a7 00000000 000000", cut); // the content's checksum is cut
    refused_with(Compression::Lz4, "04224d18 7040 ad 01000080 61 cfc8d6", cut); // a block's checksum is cut
    refused(Compression::Lz4, "04224d18 7040 ad 01000080 61 cfc8d6a5"); // a block's checksum is wrong
    refused(Compression::Lz4, "04224d18 6040 82"); // no end mark
    refused(Compression::Lz4, "04224d18 6040 83 00000000"); // a wrong checksum of the descriptor
    refused(Compression::Lz4, "04224d19 6040 82 00000000"); // another magic
    refused(Compression::Lz4, "04224d18 4040 c0 00000000"); // linked blocks
    refused(Compression::Lz4, "04224d18 6040 82 01000100 00"); // a block of more than 64 KiB
    refused(Compression::Lz4, "04224d18 6030 00 00000000"); // an unknown block size
    refused(Compression::Zstd, "28b52ffd");
    refused(Compression::Zstd, "28b52ffd00587c0000485e000000026b50760001004ac00501"); // cut
    refused(Compression::Zstd, "00");
}

/// Streams of little size from which 1 GiB of zeros comes, or as much as the codec can say in little space.
fn bomb(codec: Compression) -> (Bytes, usize) {
    let zeros = vec![0; 16 << 20];
    let one = compress(codec, &zeros).unwrap();
    match codec {
        // One frame only is read, so the bomb is no larger than its zeros.
        Compression::Lz4 => (one, zeros.len()),
        _ => (Bytes::from(one.repeat(64)), 64 * zeros.len()),
    }
}

#[test]
fn bombs_are_stopped_at_the_bound() {
    for codec in CODECS {
        let (stream, size) = bomb(codec);
        for max_bytes in [0, 1, 1 << 20, 15_000_000] {
            let error = DecodeError::DecompressedTooLarge { position: 0, codec, max_bytes };
            assert_eq!(decompress(codec, &stream, max_bytes), Err(error), "{codec:?} of {size} bytes");
        }
    }
    let bomb = compress(Compression::Zstd, &vec![0; DEFAULT_MAX_DECOMPRESSED_BYTES + 1]).unwrap();
    assert!(decompress(Compression::Zstd, &bomb, DEFAULT_MAX_DECOMPRESSED_BYTES).is_err());
}

#[test]
fn a_false_declared_size_does_not_pass_the_bound() {
    // A zstd frame that declares 2^40 bytes and holds one.
    let frame = hex("28b52ffd e0 0000000000010000 090000 61");
    let result = decompress(Compression::Zstd, &frame, 1000);
    assert!(result.is_err(), "{result:?}");
    // A snappy block that declares 4 GiB.
    let block = hex("ffffffff0f 00");
    let error = DecodeError::DecompressedTooLarge { position: 0, codec: Compression::Snappy, max_bytes: 1000 };
    assert_eq!(decompress(Compression::Snappy, &block, 1000), Err(error));
}

#[test]
fn malformed_records_in_a_compressed_batch() {
    let check = |count: i32, payload: &[u8], class: &str, matches: &dyn Fn(&DecodeError) -> bool| {
        let template = BatchBuilder::new(Offset(0)).record(None, None).build().unwrap();
        for codec in CODECS {
            let mut header = *template.header();
            let stream = compress(codec, payload).unwrap();
            header.attributes = header.attributes.with_compression(codec);
            header.record_count = count;
            header.batch_length = i32::try_from(49 + stream.len()).unwrap();
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            bytes.extend_from_slice(&stream);
            let error = RecordBatch::decode(&Bytes::from(bytes), 0).unwrap().0.records().unwrap_err();
            assert!(matches(&error), "{codec:?}: {error:?}");
            assert_eq!(error.kafka_class(), class);
        }
    };
    let null = [12, 0, 2, 2, 1, 1, 0];
    let inner = |of: &'static str| {
        move |error: &DecodeError| match error {
            DecodeError::InCompressed { position: 61, source } => match **source {
                DecodeError::UnexpectedEnd { position: 7, what, .. } => what == of,
                DecodeError::TrailingBytes { position: 7, what, remaining: 7 } => what == of,
                _ => false,
            },
            _ => false,
        }
    };
    check(2, &null, "InvalidRecordException", &inner("record length"));
    check(1, &[null, null].concat(), "InvalidRecordException", &inner("the last record"));
    check(-1, &null, "InvalidRecordException", &|error| matches!(error, DecodeError::NegativeRecordCount { .. }));
}

#[test]
fn compressed_control_batches_are_read() {
    let builder = BatchBuilder::new(Offset(3)).producer(ProducerId(1), ProducerEpoch(0), Sequence::NONE);
    let key = [0, 0, 0, 1];
    let batch = builder
        .transactional(true)
        .control(true)
        .compression(Compression::Gzip)
        .record(Some(&key), Some(&[0, 0, 0, 0, 0, 9]))
        .build()
        .unwrap();
    assert!(batch.control_record().unwrap().is_some());
    assert_eq!(batch.control_type().unwrap().map(|kind| kind.id()), Some(1));
}

fn some_records() -> impl Strategy<Value = Vec<Record>> {
    let bytes = || vec(prop_oneof![Just(b'a'), any::<u8>()], 0..300).prop_map(Bytes::from);
    let header = (bytes(), proptest::option::of(bytes())).prop_map(|(key, value)| Header { key, value });
    let parts = (proptest::option::of(bytes()), proptest::option::of(bytes()), vec(header, 0..3), 0..=T);
    vec(parts, 1..20).prop_map(|parts| {
        let place = |(index, (key, value, headers, timestamp))| Record {
            offset: Offset(index),
            timestamp: TimestampMs(timestamp),
            key,
            value,
            headers,
        };
        (0..).zip(parts).map(place).collect()
    })
}

/// Bytes that compress somewhat, of a size around those of blocks.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    (vec(any::<u8>(), 1..40), 0..6_usize, 0..40_000_usize, any::<bool>()).prop_map(|(piece, blocks, extra, noise)| {
        let size = blocks * 32 * 1024 + extra;
        let byte = |index: usize| {
            let noise = if noise { (index.wrapping_mul(2_654_435_761) >> 7) as u8 } else { 0 };
            piece[index % piece.len()] ^ noise
        };
        (0..size).map(byte).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn payloads_round_trip(bytes in payload()) {
        for codec in ALL {
            let stream = compress(codec, &bytes).unwrap();
            prop_assert_eq!(&decompress(codec, &stream, bytes.len()).unwrap()[..], &bytes[..]);
            if let Some(less) = bytes.len().checked_sub(1) {
                let error = DecodeError::DecompressedTooLarge { position: 0, codec, max_bytes: less };
                prop_assert_eq!(decompress(codec, &stream, less), Err(error));
            }
        }
    }

    #[test]
    fn batches_round_trip(records in some_records()) {
        let plain = BatchBuilder::new(Offset(0)).records(records.clone()).build().unwrap();
        for codec in ALL {
            let batch = BatchBuilder::new(Offset(0)).compression(codec).records(records.clone()).build().unwrap();
            prop_assert_eq!(batch.ensure_valid(), Ok(()));
            prop_assert_eq!(batch.attributes().compression(), Some(codec));
            prop_assert_eq!(batch.max_timestamp(), plain.max_timestamp());
            prop_assert_eq!(batch.records().unwrap(), records.clone());
        }
    }

    #[test]
    fn damaged_streams_do_no_harm(bytes in payload(), at in any::<Index>(), flip in 1..=255_u8, cut in any::<Index>()) {
        let bytes = &bytes[..bytes.len().min(5000)];
        for codec in CODECS {
            let mut stream = compress(codec, bytes).unwrap().to_vec();
            let position = at.index(stream.len());
            stream[position] ^= flip;
            for stream in [&stream[..], &stream[..cut.index(stream.len())]] {
                match decompress(codec, stream, 10_000) {
                    Ok(out) => prop_assert!(out.len() <= 10_000),
                    Err(error) => prop_assert!(!error.to_string().is_empty()),
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(start in 0..6_usize, bytes in vec(any::<u8>(), 0..200)) {
        let starts = ["", "1f8b080000000000", "82534e41505059000000000100000001", "04224d18604082", "28b52ffd", "82534e4150505900"];
        let stream = [&hex(starts[start])[..], &bytes].concat();
        for codec in ALL {
            if let Ok(out) = decompress(codec, &stream, 1000) {
                prop_assert!(out.len() <= 1000);
            }
        }
    }
}
