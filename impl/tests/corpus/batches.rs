//! Every batch is read, checked and built again.

use bytes::Bytes;
use cleanslate_log::record::{
    ATTRIBUTES_POSITION, AnyBatch, AnyBatchReader, BatchBuilder, Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, DecodeError,
    EncodeError, HEADER_BYTES, LegacyBatch, RecordBatch, TimestampType, compress, decompress,
};

use super::manifest::{Case, Damage, Manifest};

/// How many batches went which way.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    logs: usize,
    legacy: usize,
    /// Built again from header and records.
    built: usize,
    /// The same, but for the compression, which need not give the same bytes.
    compressed: usize,
    /// Compaction left the header only.
    emptied: usize,
    /// A control batch whose key is none, which Kafka's tools read but the builder does not make.
    refused: usize,
    records: usize,
}

#[test]
fn every_log_is_read_to_its_end_or_its_damage() {
    let mut seen = Seen::default();
    for (case, directory) in Manifest::load().directories() {
        for (path, file) in directory.files_of(".log").into_iter().chain(directory.files_of(".checkpoint")) {
            read_log(case, &path, &file, &mut seen);
        }
    }
    let expected = Seen { logs: 77, legacy: 13, built: 967, compressed: 428, emptied: 3, refused: 1, records: 4012 };
    assert_eq!(seen, expected);
}

fn read_log(case: &Case, path: &str, file: &Bytes, seen: &mut Seen) {
    let damage = case.damaged.get(path);
    let end = damage.map_or(file.len(), |damage| damage.at);
    let mut reader = AnyBatchReader::new(file.clone());
    let mut position = 0;
    while position < end {
        let batch = reader.next().unwrap().unwrap();
        position += batch.size_in_bytes();
        assert_eq!(reader.position(), position, "{path}");
        batch.ensure_valid().unwrap();
        match &batch {
            AnyBatch::V2(batch) => check_batch(batch, &format!("{path} at {position}"), seen),
            AnyBatch::Legacy(batch) => check_legacy(batch, seen),
        }
    }
    assert_eq!(position, end, "{path}");
    check_end(path, damage, &mut reader);
    seen.logs += 1;
}

fn check_end(path: &str, damage: Option<&Damage>, reader: &mut AnyBatchReader) {
    let next = reader.next();
    match damage.map(|damage| damage.what.as_str()) {
        None | Some("cut") => assert_eq!(next, None, "{path}"),
        Some("size") => assert!(matches!(next, Some(Err(DecodeError::BatchLengthTooSmall { length: 0, .. }))), "{path}: {next:?}"),
        Some("CRC") => {
            let error = next.unwrap().unwrap().ensure_valid().unwrap_err();
            assert!(matches!(error, DecodeError::CrcMismatch { .. }), "{path}: {error}");
        }
        Some(other) => panic!("{path}: unknown damage {other}"),
    }
}

fn check_legacy(batch: &LegacyBatch, seen: &mut Seen) {
    let records = batch.records().unwrap();
    for record in &records {
        record.ensure_valid().unwrap();
    }
    seen.legacy += 1;
    seen.records += records.len();
}

fn check_batch(batch: &RecordBatch, place: &str, seen: &mut Seen) {
    let records = batch.records().unwrap();
    assert_eq!(Ok(records.len()), usize::try_from(batch.record_count()), "{place}");
    seen.records += records.len();
    assert_eq!(&with_new_header(batch), batch.bytes(), "{place}");
    let codec = batch.attributes().compression().unwrap();
    if records.is_empty() {
        seen.emptied += 1;
        return;
    }
    match rebuilt(batch) {
        Ok(built) if codec == Compression::None => {
            assert_eq!(built.bytes(), batch.bytes(), "{place}");
            seen.built += 1;
        }
        Ok(built) => {
            let payload = decompress(codec, &batch.bytes().slice(HEADER_BYTES..), DEFAULT_MAX_DECOMPRESSED_BYTES).unwrap();
            assert_eq!(built.bytes()[HEADER_BYTES..], payload, "{place}");
            let again = decompress(codec, &compress(codec, &payload).unwrap(), DEFAULT_MAX_DECOMPRESSED_BYTES);
            assert_eq!(again, Ok(payload), "{place}");
            seen.compressed += 1;
        }
        Err(error) => {
            assert_eq!(error, EncodeError::DataRecordInControlBatch, "{place}");
            seen.refused += 1;
        }
    }
}

/// The header written again with a computed CRC, before the same records.
fn with_new_header(batch: &RecordBatch) -> Vec<u8> {
    let payload = &batch.bytes()[HEADER_BYTES..];
    let mut header = *batch.header();
    for _ in 0..2 {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        bytes.extend_from_slice(payload);
        header.crc = crc32c::crc32c(&bytes[ATTRIBUTES_POSITION..]);
    }
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// A batch made of the fields and the records of this one, without compression.
fn rebuilt(batch: &RecordBatch) -> Result<RecordBatch, EncodeError> {
    let mut builder = BatchBuilder::new(batch.base_offset())
        .leader_epoch(batch.leader_epoch())
        .producer(batch.producer_id(), batch.producer_epoch(), batch.base_sequence())
        .transactional(batch.is_transactional())
        .control(batch.is_control())
        .last_offset(batch.last_offset())
        .records(records_as_created(batch));
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        builder = builder.log_append_time(batch.max_timestamp());
    }
    if let Some(horizon) = batch.delete_horizon() {
        builder = builder.delete_horizon(horizon);
    }
    builder.build()
}

/// The records with the timestamps that are stored, which those of a batch with append time do not show.
fn records_as_created(batch: &RecordBatch) -> Vec<cleanslate_log::record::Record> {
    let mut bytes = batch.bytes().to_vec();
    let attributes = batch.attributes().with_timestamp_type(TimestampType::CreateTime);
    bytes[ATTRIBUTES_POSITION..][..2].copy_from_slice(&attributes.0.to_be_bytes());
    RecordBatch::decode(&bytes.into(), 0).unwrap().0.records().unwrap()
}
