//! No input makes a decoder allocate more than the documentation of `record` says.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

use bytes::{BufMut, Bytes};
use cleanslate_log::log::{LEADER_EPOCH_CHECKPOINT, LeaderEpochCache, LogConfig, PartitionLog, Recovery};
use cleanslate_log::mirror::MirrorMetadata;
use cleanslate_log::psm::ProducerSnapshot;
use cleanslate_log::record::{
    ATTRIBUTES_POSITION, AnyBatch, AnyBatchReader, BatchReader, CRC_POSITION, Compression, ControlRecord,
    DEFAULT_MAX_DECOMPRESSED_BYTES, HEADER_BYTES, LEGACY_CRC_POSITION, MAGIC_POSITION, MEMORY_FIXED_BYTES, MEMORY_PER_BYTE,
    MirrorPidResetRecord, RECORD_COUNT_POSITION, compress, decompress, varint,
};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::TimestampMs;
use proptest::prelude::*;

const CODECS: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
/// What may come out of a batch in these tests, in bytes.
const BOUND: usize = 64 * 1024;
const MIB: usize = 1 << 20;

/// Runs something; the most bytes that it had allocated at once. What it returns is dropped.
fn peak<T>(run: impl FnOnce() -> T) -> usize {
    let info = allocation_counter::measure(|| drop(run()));
    usize::try_from(info.bytes_max).unwrap()
}

/// The formula of the documentation.
fn allowed(input: usize, decompressed: usize, bound: usize) -> usize {
    MEMORY_PER_BYTE * (input + decompressed) + 2 * bound + MEMORY_FIXED_BYTES
}

#[track_caller]
fn check<T>(input: usize, run: impl FnOnce() -> T) {
    let peak = peak(run);
    assert!(peak <= allowed(input, 0, 0), "{peak} bytes for {input}");
}

#[track_caller]
fn check_compressed<T>(input: usize, bound: usize, run: impl FnOnce() -> T) {
    let peak = peak(run);
    assert!(peak <= allowed(input, bound, bound), "{peak} bytes for {input} and {bound}");
}

/// A batch of magic 2 with valid length and CRC around any attributes, count and body.
fn framed(attributes: u8, count: i32, body: &[u8]) -> Bytes {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.extend_from_slice(body);
    let length = i32::try_from(bytes.len() - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[MAGIC_POSITION] = 2;
    bytes[ATTRIBUTES_POSITION + 1] = attributes;
    bytes[RECORD_COUNT_POSITION..HEADER_BYTES].copy_from_slice(&count.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[ATTRIBUTES_POSITION..]);
    bytes[CRC_POSITION..CRC_POSITION + 4].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(bytes)
}

fn compressed(codec: Compression, count: i32, body: &[u8]) -> Bytes {
    framed(codec.id(), count, &compress(codec, body).unwrap())
}

/// An entry of magic 1 with valid length and CRC.
fn legacy(offset: i64, attributes: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_i64(offset);
    bytes.put_i32(i32::try_from(22 + value.len()).unwrap());
    bytes.put_u32(0);
    bytes.put_i8(1);
    bytes.put_u8(attributes);
    bytes.put_i64(NOW.get());
    bytes.put_i32(-1);
    bytes.put_i32(i32::try_from(value.len()).unwrap());
    bytes.extend_from_slice(value);
    let crc = crc32fast::hash(&bytes[MAGIC_POSITION..]);
    bytes[LEGACY_CRC_POSITION..LEGACY_CRC_POSITION + 4].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// A record without anything but so many headers without anything.
fn record_of_headers(count: usize) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 1, 1];
    varint::write_varint(&mut body, i32::try_from(count).unwrap());
    body.extend(std::iter::repeat_n([0, 1], count).flatten());
    let mut record = Vec::new();
    varint::write_varint(&mut record, i32::try_from(body.len()).unwrap());
    record.extend_from_slice(&body);
    record
}

/// Records of the fewest bytes there can be, whose deltas are all 0.
fn smallest_records(count: usize) -> Vec<u8> {
    [12, 0, 0, 0, 1, 1, 0].repeat(count)
}

fn varint_of(value: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::write_varint(&mut bytes, value);
    bytes
}

#[test]
fn what_is_dense_takes_what_the_formula_says() {
    // A check of the measurement too: half a header a byte is what is really used.
    // One more than a power of two, where a list that grows by doubling is at its worst.
    let headers = MIB / 2 + 1;
    let many = record_of_headers(headers);
    let batch = BatchReader::new(framed(0, 1, &many)).next().unwrap().unwrap();
    assert_eq!(batch.records().unwrap()[0].headers.len(), headers);
    let used = peak(|| batch.records());
    assert!(used >= 32 * MIB && used <= allowed(batch.size_in_bytes(), 0, 0), "{used}");
    let count = MIB / 7;
    let batch = BatchReader::new(framed(0, i32::try_from(count).unwrap(), &smallest_records(count))).next().unwrap().unwrap();
    assert_eq!(batch.records().unwrap().len(), count);
    check(batch.size_in_bytes(), || batch.records());
    for codec in CODECS {
        for dense in [compressed(codec, 1, &many), compressed(codec, i32::try_from(count).unwrap(), &smallest_records(count))] {
            let batch = BatchReader::new(dense).next().unwrap().unwrap();
            assert!(batch.records_within(2 * MIB).is_ok());
            check_compressed(batch.size_in_bytes(), 2 * MIB, || batch.records_within(2 * MIB));
        }
    }
}

#[test]
fn a_bomb_stops_at_the_bound() {
    let zeros = vec![0; 16 * MIB];
    for codec in CODECS {
        let bomb = compress(codec, &zeros).unwrap();
        for bound in [0, BOUND, MIB] {
            assert_eq!(decompress(codec, &bomb, bound).unwrap_err().kafka_class(), "RecordTooLargeException");
            let used = peak(|| decompress(codec, &bomb, bound));
            assert!(used <= 2 * bound + MEMORY_FIXED_BYTES, "{codec:?}: {used} bytes for a bound of {bound}");
        }
        let batch = BatchReader::new(framed(codec.id(), i32::MAX, &bomb)).next().unwrap().unwrap();
        check_compressed(batch.size_in_bytes(), MIB, || batch.records_within(MIB));
    }
}

/// A snappy block says how much comes out of it, and a zstd frame may.
#[test]
fn a_size_that_a_stream_declares_is_not_believed_beyond_the_bound() {
    let mut snappy = Vec::new();
    varint::write_unsigned_varint(&mut snappy, u32::MAX);
    snappy.put_u8(0);
    // Magic, a frame header with a content size of 8 bytes and a single segment, and that size.
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    zstd.extend_from_slice(&(1_u64 << 40).to_le_bytes());
    zstd.extend_from_slice(&[1, 0, 0]);
    for (codec, stream) in [(Compression::Snappy, Bytes::from(snappy)), (Compression::Zstd, Bytes::from(zstd))] {
        let used = peak(|| decompress(codec, &stream, BOUND));
        assert!(decompress(codec, &stream, BOUND).is_err());
        assert!(used <= 2 * BOUND + MEMORY_FIXED_BYTES, "{codec:?}: {used}");
    }
}

#[test]
fn counts_and_lengths_of_two_billion_are_not_believed() {
    let max = varint_of(i32::MAX);
    let header_count = [&[0, 0, 0, 1, 1][..], &max].concat();
    let record = [&varint_of(i32::try_from(header_count.len()).unwrap())[..], &header_count].concat();
    let length = [&max[..], &[0; 40]].concat();
    let key_length = [&varint_of(20)[..], &[0, 0, 0], &max, &[0; 40]].concat();
    for body in [&record[..], &length, &key_length, &[]] {
        for count in [1, i32::MAX] {
            for bytes in [framed(0, count, body), compressed(Compression::Lz4, count, body)] {
                let batch = BatchReader::new(bytes).next().unwrap().unwrap();
                assert!(batch.records_within(BOUND).is_err());
                check_compressed(batch.size_in_bytes(), body.len(), || batch.records_within(BOUND));
                check(batch.size_in_bytes() + body.len(), || batch.control_record());
            }
        }
    }
    // A batch whose length is two billion is not whole.
    let mut bytes = framed(0, 1, &[]).to_vec();
    bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    let bytes = Bytes::from(bytes);
    check(bytes.len(), || AnyBatch::decode(&bytes, 0));
    let mut snapshot = vec![0, 1, 0, 0, 0, 0];
    snapshot.put_i32(i32::MAX);
    snapshot.extend_from_slice(&[0; 46]);
    let crc = crc32c::crc32c(&snapshot[6..]);
    snapshot[2..6].copy_from_slice(&crc.to_be_bytes());
    let snapshot = Bytes::from(snapshot);
    assert!(ProducerSnapshot::decode(&snapshot).is_err());
    check(snapshot.len(), || ProducerSnapshot::decode(&snapshot));
    let checkpoint = Bytes::from_static(b"0\n2147483647\n0 0\n");
    assert!(LeaderEpochCache::decode(&checkpoint).is_err());
    check(checkpoint.len(), || LeaderEpochCache::decode(&checkpoint));
}

/// Bytes that are often small, so that lengths and counts read from them are, too.
fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![6 => 0_u8..16, 1 => any::<u8>()];
    prop_oneof![
        prop::collection::vec(byte, 0..max),
        (0..max / 4).prop_map(record_of_headers),
        (0..max / 7).prop_map(smallest_records),
    ]
}

/// A batch of any kind in a sound frame.
fn any_batch() -> impl Strategy<Value = Vec<u8>> {
    let count = prop_oneof![Just(1), 0..400_i32, any::<i32>()];
    prop_oneof![
        (any::<u8>(), count.clone(), bytes(1500)).prop_map(|(attributes, count, body)| framed(attributes, count, &body).to_vec()),
        (prop::sample::select(&CODECS[..]), any::<u8>(), count, bytes(1500)).prop_map(|(codec, flags, count, body)| {
            framed(flags & 0xf8 | codec.id(), count, &compress(codec, &body).unwrap()).to_vec()
        }),
        (0..50_i64, bytes(300)).prop_map(|(offset, value)| legacy(offset, 0, &value)),
        (prop::sample::select(&CODECS[..3]), 0..50_i64, 0..300_usize).prop_map(|(codec, offset, count)| {
            legacy(offset, codec.id(), &compress(codec, &legacy(0, 0, &[]).repeat(count)).unwrap())
        }),
    ]
}

/// The bytes of a file that is read when a log is opened: mostly batches, or not.
fn any_segment() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any_batch(), 0..6), bytes(40)).prop_map(|(batches, tail)| [batches.concat(), tail].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn batches_of_any_bytes(bytes in prop_oneof![any_segment(), bytes(200)]) {
        let input = bytes.len();
        let bytes = Bytes::from(bytes);
        check(input, || BatchReader::new(bytes.clone()).collect::<Vec<_>>());
        check(input, || AnyBatchReader::new(bytes.clone()).collect::<Vec<_>>());
        for batch in AnyBatchReader::new(bytes).map_while(Result::ok) {
            check_compressed(batch.size_in_bytes(), BOUND, || batch.records_within(BOUND));
            if let AnyBatch::V2(batch) = &batch {
                check_compressed(batch.size_in_bytes(), 8 * 1500, || batch.control_record());
            }
        }
    }

    #[test]
    fn streams_of_any_bytes(stream in bytes(500), valid in any::<bool>()) {
        for codec in CODECS {
            let stream = if valid { compress(codec, &stream).unwrap() } else { Bytes::from(stream.clone()) };
            for bound in [0, 100, BOUND] {
                let used = peak(|| decompress(codec, &stream, bound));
                prop_assert!(used <= 2 * bound + MEMORY_FIXED_BYTES, "{:?} {}", codec, used);
            }
        }
    }

    #[test]
    fn control_records_of_any_bytes(type_id in -1..9_i16, value in bytes(800)) {
        let mut key = vec![0, 0];
        key.put_i16(type_id);
        let (key, value) = (Bytes::from(key), Bytes::from(value));
        check(value.len(), || ControlRecord::decode(Some(&key), Some(&value)));
        check(value.len(), || MirrorPidResetRecord::decode(&value));
    }

    #[test]
    fn snapshots_and_checkpoints_of_any_bytes(body in bytes(1000), entries in prop::collection::vec((0..50_i32, 0..50_i64), 0..60)) {
        let mut snapshot = vec![0, 1, 0, 0, 0, 0];
        snapshot.put_i32(i32::try_from(body.len() / 46).unwrap());
        snapshot.extend_from_slice(&body[..body.len() / 46 * 46]);
        let crc = crc32c::crc32c(&snapshot[6..]);
        snapshot[2..6].copy_from_slice(&crc.to_be_bytes());
        let lines: String = entries.iter().map(|(epoch, start)| format!("{epoch} {start}\n")).collect();
        let checkpoint = Bytes::from(format!("0\n{}\n{lines}", entries.len()));
        for file in [Bytes::from(snapshot), Bytes::from(body), checkpoint] {
            check(file.len(), || ProducerSnapshot::decode(&file));
            check(file.len(), || LeaderEpochCache::decode(&file));
            check(file.len(), || MirrorMetadata::decode(&file));
        }
    }

    #[test]
    fn a_log_of_any_files(
        segments in prop::collection::vec(any_segment(), 1..3),
        sidecars in prop::collection::vec(prop::option::of(bytes(600)), 5),
        clean in any::<bool>(),
    ) {
        let mut storage = MemoryStorage::new();
        for (index, segment) in segments.iter().enumerate() {
            storage.replace(&format!("{:0>20}.log", index * 20), &Bytes::from(segment.clone())).unwrap();
        }
        let snapshot = "00000000000000000001.snapshot";
        let of_segment = ["index", "timeindex", "txnindex"].map(|suffix| format!("{:0>20}.{suffix}", 0));
        let names = of_segment.iter().map(String::as_str).chain([snapshot, LEADER_EPOCH_CHECKPOINT]);
        for (name, content) in names.zip(&sidecars) {
            if let Some(content) = content {
                storage.replace(name, &Bytes::from(content.clone())).unwrap();
            }
        }
        let names = storage.names().unwrap();
        let input: u64 = names.iter().map(|name| storage.len(name).unwrap().unwrap()).sum();
        let recovery = if clean { Recovery::Clean } else { Recovery::Unclean };
        let config = LogConfig { max_decompressed_bytes: BOUND, ..LogConfig::default() };
        check_compressed(usize::try_from(input).unwrap(), BOUND, || PartitionLog::open(storage, config, recovery, NOW));
    }
}

/// A set of an old format is decompressed when a log is opened, to learn where it begins; a control batch for its type.
#[test]
fn a_bomb_in_a_log_stops_at_the_bound() {
    let zeros = vec![0; 4 * MIB];
    let config = LogConfig { max_decompressed_bytes: BOUND, ..LogConfig::default() };
    let open = |segment: &[u8]| {
        let mut storage = MemoryStorage::new();
        storage.replace("00000000000000000000.log", &Bytes::copy_from_slice(segment)).unwrap();
        PartitionLog::open(storage, config.clone(), Recovery::Unclean, NOW)
    };
    for codec in &CODECS[..3] {
        let bomb = legacy(0, codec.id(), &compress(*codec, &zeros).unwrap());
        assert_eq!(open(&bomb).unwrap().0.log_end_offset().get(), 1);
        check_compressed(bomb.len(), BOUND, || open(&bomb));
    }
    let control = framed(0x20 | Compression::Zstd.id(), 1, &compress(Compression::Zstd, &zeros).unwrap());
    assert_eq!(open(&control).unwrap_err().kafka_class(), "InvalidRecordException");
    let used = peak(|| open(&control));
    assert!(used <= allowed(control.len(), 0, DEFAULT_MAX_DECOMPRESSED_BYTES), "{used}");
}
