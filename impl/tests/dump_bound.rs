//! No file makes a dump allocate more than the documentation of `dump` says.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

use std::fs::File;
use std::io::Write as _;

use bytes::{BufMut, Bytes};
use cleanslate_log::dump::{DUMP_FIXED_BYTES, DumpFile, DumpOptions, Dumper};
use cleanslate_log::record::{
    ATTRIBUTES_POSITION, BatchBuilder, Compression, HEADER_BYTES, LEGACY_CRC_POSITION, MAGIC_POSITION, RECORD_COUNT_POSITION,
    compress, varint,
};
use cleanslate_log::storage::FileStorage;
use cleanslate_log::types::Offset;

const STEM: &str = "00000000000000000000";
const MIB: usize = 1 << 20;
/// What may come out of a batch in these tests, in bytes.
const BOUND: usize = 4 * MIB;
const CODECS: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// A directory with one file of each kind.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// Writes the first bytes of a file; the rest is zeros, which take no room on disk.
    fn put(&self, suffix: &str, bytes: &[u8], len: usize) {
        let mut file = File::create(self.dir.path().join(format!("{STEM}.{suffix}"))).unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(u64::try_from(len.max(bytes.len())).unwrap()).unwrap();
    }

    /// The most bytes that a dump of a file had allocated at once, and the lines that it printed.
    fn peak(&self, suffix: &str, options: &DumpOptions) -> (usize, usize) {
        let name = format!("{STEM}.{suffix}");
        let storage = FileStorage::existing(self.dir.path());
        let (mut out, mut err) = (Lines(0), Lines(0));
        let used = allocation_counter::measure(|| {
            let mut dumper = Dumper::new(options.clone(), &mut out, &mut err);
            // Whether it can be read to its end is not the question here.
            let _ = dumper.file(&storage, &DumpFile { path: &name, absolute_path: &name, name: &name });
            dumper.finish().unwrap();
        });
        (usize::try_from(used.bytes_max).unwrap(), out.0)
    }
}

/// Counts lines and keeps nothing.
struct Lines(usize);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.iter().filter(|byte| **byte == b'\n').count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Plain; with records; with records in JSON.
fn ways() -> [DumpOptions; 3] {
    let plain = DumpOptions { max_decompressed_bytes: BOUND, ..DumpOptions::default() };
    let deep = DumpOptions { deep_iteration: true, ..plain.clone() };
    let json = DumpOptions { json: true, print_data_log: true, ..plain.clone() };
    [plain, deep, json]
}

/// A batch of magic 2 that claims a count and a size around some bytes.
fn framed(attributes: u8, count: i32, body: &[u8], size: usize) -> Vec<u8> {
    let one = BatchBuilder::new(Offset(0)).record(None, None).build().unwrap();
    let mut bytes = one.bytes()[..HEADER_BYTES].to_vec();
    bytes.extend_from_slice(body);
    let length = i32::try_from(size.max(bytes.len()) - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[ATTRIBUTES_POSITION + 1] = attributes;
    bytes[RECORD_COUNT_POSITION..HEADER_BYTES].copy_from_slice(&count.to_be_bytes());
    bytes
}

/// An entry of magic 1.
fn legacy(attributes: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_i64(1 << 30);
    bytes.put_i32(i32::try_from(22 + value.len()).unwrap());
    bytes.put_u32(0);
    bytes.put_u8(1);
    bytes.put_u8(attributes);
    bytes.put_i64(5);
    bytes.put_i32(-1);
    bytes.put_i32(i32::try_from(value.len()).unwrap());
    bytes.extend_from_slice(value);
    let crc = crc32fast::hash(&bytes[MAGIC_POSITION..]);
    bytes[LEGACY_CRC_POSITION..LEGACY_CRC_POSITION + 4].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// One record of headers without anything, and how many records there are.
fn record_of_headers(len: usize) -> Bytes {
    let mut body = vec![0, 0, 0, 1, 1];
    varint::write_varint(&mut body, i32::try_from(len / 2).unwrap());
    body.resize(body.len() + len / 2 * 2, 1);
    for pair in body.rchunks_exact_mut(2).take(len / 2) {
        pair[0] = 0;
    }
    let mut record = Vec::new();
    varint::write_varint(&mut record, i32::try_from(body.len()).unwrap());
    record.extend_from_slice(&body);
    record.into()
}

#[test]
fn a_batch_is_not_held_for_its_header_and_its_checksum() {
    let files = Files::new();
    let len = 96 * MIB;
    let [plain, deep, _] = ways();
    for magic in [1_u8, 2] {
        let mut bytes = framed(0, 1_000_000_000, &[], len);
        bytes[MAGIC_POSITION] = magic;
        files.put("log", &bytes, len);
        let (used, lines) = files.peak("log", &plain);
        assert!(used <= DUMP_FIXED_BYTES && lines >= 3, "magic {magic}: {used} bytes, {lines} lines");
        let (used, _) = files.peak("log", &deep);
        assert!(used <= len + DUMP_FIXED_BYTES, "magic {magic} with records: {used} bytes");
    }
}

#[test]
fn what_comes_out_of_a_batch_is_not_held_at_once() {
    let files = Files::new();
    let many = [12, 0, 0, 0, 1, 1, 0].repeat(BOUND / 7);
    let count = i32::try_from(BOUND / 7).unwrap();
    let headers = record_of_headers(BOUND - 100);
    let zeros = vec![0; 4 * BOUND];
    let entries = legacy(0, &[]).repeat(BOUND / 40);
    for codec in CODECS {
        let bodies = [(count, compress(codec, &many)), (1, compress(codec, &headers)), (1, compress(codec, &zeros))];
        let mut logs: Vec<_> = bodies.map(|(count, body)| framed(codec.id(), count, &body.unwrap(), 0)).to_vec();
        if codec != Compression::Zstd {
            logs.push(legacy(codec.id(), &compress(codec, &entries).unwrap()));
        }
        for (index, log) in logs.iter().enumerate() {
            files.put("log", log, 0);
            for options in ways() {
                let (used, _) = files.peak("log", &options);
                assert!(used <= log.len() + 2 * BOUND + DUMP_FIXED_BYTES, "{codec:?} {index} {options:?}: {used} bytes");
            }
        }
        // All the records were shown.
        files.put("log", &logs[0], 0);
        assert_eq!(files.peak("log", &ways()[1]).1, BOUND / 7 + 3);
    }
}

#[test]
fn records_that_are_not_compressed_take_no_more_than_their_batch() {
    let files = Files::new();
    let many = [12, 0, 0, 0, 1, 1, 0].repeat(2 * MIB / 7);
    let headers = record_of_headers(2 * MIB);
    let mut value = vec![0, 0, 0, 1];
    varint::write_varint(&mut value, i32::try_from(2 * MIB).unwrap());
    value.resize(value.len() + 2 * MIB, 0xff);
    value.push(0);
    let mut binary = Vec::new();
    varint::write_varint(&mut binary, i32::try_from(value.len()).unwrap());
    binary.extend_from_slice(&value);
    for (count, body) in [(i32::try_from(2 * MIB / 7).unwrap(), &many[..]), (1, &headers), (1, &binary)] {
        let log = framed(0, count, body, 0);
        files.put("log", &log, 0);
        for options in ways() {
            let (used, lines) = files.peak("log", &options);
            assert!(used <= log.len() + DUMP_FIXED_BYTES, "{options:?}: {used} bytes");
            let heads = if options.json { 2 } else { 3 };
            let shown = if options.deep_iteration || options.print_data_log { usize::try_from(count).unwrap() } else { 0 };
            // Findings may follow.
            assert!(lines >= heads + shown, "{options:?}: {lines} lines");
        }
    }
}

#[test]
fn other_files_are_read_page_by_page() {
    let files = Files::new();
    files.put("log", BatchBuilder::new(Offset(0)).record(None, None).build().unwrap().bytes(), 0);
    // A snapshot with a header that counts what is there.
    let entries = 24 * MIB / 46;
    let body = [&i32::try_from(entries).unwrap().to_be_bytes()[..], &vec![0; entries * 46]].concat();
    let snapshot = [&[0, 1][..], &crc32c::crc32c(&body).to_be_bytes(), &body].concat();
    files.put("snapshot", &snapshot, 0);
    let (used, lines) = files.peak("snapshot", &ways()[0]);
    assert!(used <= DUMP_FIXED_BYTES && lines == entries + 1, "{used} bytes, {lines} lines");
    // And one whose checksum is wrong.
    files.put("snapshot", &[0, 1], 200 * MIB);
    let sanity = DumpOptions { index_sanity_check: true, ..DumpOptions::default() };
    for suffix in ["index", "timeindex", "txnindex"] {
        files.put(suffix, &[], if suffix == "txnindex" { 24 * MIB } else { 200 * MIB });
    }
    for suffix in ["snapshot", "index", "timeindex", "txnindex", "checkpoint"] {
        for options in ways().iter().chain([&sanity]) {
            let (used, _) = files.peak(suffix, options);
            assert!(used <= DUMP_FIXED_BYTES, "{suffix} {options:?}: {used} bytes");
        }
    }
}
