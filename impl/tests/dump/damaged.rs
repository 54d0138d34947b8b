//! Damage, byte by byte as Kafka's tool shows it.

use bytes::{BufMut, Bytes};
use cleanslate_log::dump::DumpOptions;
use cleanslate_log::record::{ATTRIBUTES_POSITION, BatchBuilder, Compression, HEADER_BYTES, MAGIC_POSITION, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::Offset;

use super::support::dump;

const NAMES: [&str; 3] = ["00000000000000000007.log", "00000000000000000007.index", "00000000000000000007.timeindex"];

fn log(bytes: &[u8]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    storage.append(NAMES[0], &Bytes::copy_from_slice(bytes)).unwrap();
    storage
}

fn deep() -> DumpOptions {
    DumpOptions { deep_iteration: true, ..DumpOptions::default() }
}

fn two_records() -> RecordBatch {
    BatchBuilder::new(Offset(7)).record(None, Some(b"a")).record(None, Some(b"b")).build().unwrap()
}

/// Kafka looks the codec up when half of the batch's line is printed.
#[test]
fn a_codec_that_there_is_none_of_ends_the_dump_in_the_middle_of_a_line() {
    let mut bytes = two_records().bytes().to_vec();
    bytes[ATTRIBUTES_POSITION + 1] |= 5;
    let dumped = dump(&log(&bytes), &[NAMES[0]], deep());
    assert!(dumped.out.ends_with("isControl: false deleteHorizonMs: OptionalLong.empty"), "{}", dumped.out);
    assert_eq!(dumped.error.unwrap().kafka_class(), Some("IllegalArgumentException"));
}

/// On file, the magic is not looked at; the CRC does not cover it.
#[test]
fn a_magic_above_2_is_shown_and_read_as_2() {
    let mut bytes = two_records().bytes().to_vec();
    bytes[MAGIC_POSITION] = 3;
    let dumped = dump(&log(&bytes), &[NAMES[0]], deep());
    assert!(dumped.out.contains(" magic: 3 compresscodec: none ") && dumped.out.contains(" isvalid: true\n"), "{}", dumped.out);
    assert_eq!((dumped.out.matches("| offset: ").count(), dumped.error.is_none()), (2, true));
}

/// A record is printed before the next one is read, and the last one is read together with what follows it.
#[test]
fn records_in_front_of_damage_are_printed() {
    let batch = two_records();
    let second = HEADER_BYTES + (batch.size_in_bytes() - HEADER_BYTES) / 2;
    let mut bytes = batch.bytes().to_vec();
    bytes[second] = 0x7e;
    let dumped = dump(&log(&bytes), &[NAMES[0]], deep());
    assert!(dumped.out.contains(" isvalid: false\n| offset: 7 "), "{}", dumped.out);
    assert_eq!(dumped.out.matches("| offset: ").count(), 1);
    assert_eq!(dumped.error.unwrap().kafka_class(), Some("InvalidRecordException"));
    let mut bytes = batch.bytes().to_vec();
    bytes[HEADER_BYTES - 1] = 1;
    let dumped = dump(&log(&bytes), &[NAMES[0]], deep());
    assert_eq!((dumped.out.matches("| offset: ").count(), dumped.error.is_some()), (0, true), "{}", dumped.out);
}

/// All records of a compressed batch are read before the first is printed.
#[test]
fn of_a_damaged_compressed_batch_no_record_is_printed() {
    let batch = BatchBuilder::new(Offset(7)).compression(Compression::Gzip).record(None, Some(b"a")).record(None, Some(b"b"));
    let mut bytes = batch.build().unwrap().bytes().to_vec();
    let shown = |bytes: &[u8]| {
        let dumped = dump(&log(bytes), &[NAMES[0]], deep());
        (dumped.out.matches("| offset: ").count(), dumped.error.is_some())
    };
    assert_eq!(shown(&bytes), (2, false));
    bytes[HEADER_BYTES - 1] = 3;
    assert_eq!(shown(&bytes), (0, true));
}

/// Findings are told by their offset, each offset once: of two batches in place of one offset, the later counts.
#[test]
fn mismatches_are_told_from_the_largest_offset_down() {
    let one = |offset| BatchBuilder::new(Offset(offset)).record(None, Some(b"v")).build().unwrap();
    let size = one(7).size_in_bytes();
    let mut storage = log(&[one(7), one(8), one(9)].map(|batch| batch.bytes().clone()).concat());
    let mut index = Vec::new();
    for (relative, batch) in [(50, 0), (40, 1), (60, 1), (50, 2)] {
        index.put_i32(relative);
        index.put_i32(i32::try_from(batch * size).unwrap());
    }
    storage.append(NAMES[1], &index.into()).unwrap();
    let told = dump(&storage, &[NAMES[1]], DumpOptions::default()).err;
    let expected = [
        "Mismatches in :<root>/00000000000000000007.index",
        "  Index offset: 67, log offset: 8",
        "  Index offset: 57, log offset: 9",
        "  Index offset: 47, log offset: 8",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

/// An entry may point at a batch of a certain size at most.
#[test]
fn a_batch_larger_than_the_bound_is_not_found() {
    let batch = two_records();
    let size = batch.size_in_bytes() as u64;
    let mut storage = log(batch.bytes());
    storage.append(NAMES[1], &Bytes::from_static(&[0, 0, 0, 1, 0, 0, 0, 0])).unwrap();
    let with = |max_message_size| dump(&storage, &[NAMES[1]], DumpOptions { max_message_size, ..DumpOptions::default() });
    assert!(with(size).error.is_none());
    assert_eq!(with(size - 1).error.unwrap().kafka_class(), Some("NoSuchElementException"));
}

/// An index that points at the middle of a batch, behind the end, and below 0.
#[test]
fn positions_that_begin_no_batch_end_the_dump() {
    let batch = BatchBuilder::new(Offset(7)).record(None, Some(&[0; 100])).build().unwrap();
    let entry = |position: i32| [5_i32.to_be_bytes(), position.to_be_bytes()].concat();
    for (position, class) in [
        (1000, "IllegalArgumentException"),
        (-1, "IllegalArgumentException"),
        (i32::try_from(batch.size_in_bytes()).unwrap(), "NoSuchElementException"),
        (70, "CorruptRecordException"),
    ] {
        let mut storage = MemoryStorage::new();
        storage.append(NAMES[0], batch.bytes()).unwrap();
        storage.append(NAMES[1], &entry(position).into()).unwrap();
        let dumped = dump(&storage, &[NAMES[1]], DumpOptions::default());
        assert_eq!(dumped.error.unwrap().kafka_class(), Some(class), "{position}");
        assert_eq!(dumped.out, format!("Dumping {}\n", NAMES[1]));
    }
}

/// Kafka's tool leaves an empty index behind when there was none.
#[test]
fn a_missing_companion_is_an_error_and_is_not_made() {
    let mut storage = MemoryStorage::new();
    storage.append(NAMES[2], &Bytes::from_static(&[0; 12])).unwrap();
    let missing = dump(&storage, &[NAMES[2]], DumpOptions::default());
    assert_eq!(missing.error.unwrap().kafka_class(), Some("NoSuchFileException"));
    storage.append(NAMES[0], &Bytes::new()).unwrap();
    let missing = dump(&storage, &[NAMES[2]], DumpOptions::default());
    assert_eq!(missing.error.unwrap().to_string(), "00000000000000000007.index: no such file");
    assert_eq!(storage.names().unwrap(), [NAMES[0], NAMES[2]]);
}

/// Lengths of keys and values of magic 0 and 1 are printed as they are stored; only who wants the bytes meets that they are not there.
#[test]
fn old_lengths_are_printed_as_they_are_stored() {
    let long = b"\0\0\0\0\0\0\0\0\0\0\0\x0f\xd2\x0c\xbf\xf5\0\0\xff\xff\xff\xff\0\0\x08\x09\x76";
    let below = b"\0\0\0\0\0\0\0\x01\0\0\0\x0f\xd2\x0c\xbf\xf5\0\0\xff\xff\xff\xf9\0\0\0\x01\x76";
    let bytes = [&long[..], &below[..]].concat();
    let dumped = dump(&log(&bytes), &[NAMES[0]], deep());
    let lines: Vec<_> = dumped.out.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(lines.len(), 2, "{}", dumped.out);
    assert!(lines[0].starts_with("| offset: 0 NoTimestampType: -1 keySize: -1 valueSize: 2057 isValid: "), "{}", lines[0]);
    assert!(lines[1].starts_with("| offset: 1 NoTimestampType: -1 keySize: -7 valueSize: 1 isValid: "), "{}", lines[1]);
    assert!(dumped.error.is_none());
    let dumped = dump(&log(&bytes), &[NAMES[0]], DumpOptions { print_data_log: true, ..deep() });
    let line = dumped.out.lines().last().unwrap();
    assert!(line.starts_with("| offset: 0 ") && !line.contains("payload"), "{line}");
    assert!(dumped.error.is_some());
}
