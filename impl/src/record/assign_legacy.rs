//! What a leader makes of records where it is to store them in some format (Kafka: `LogValidator` with its `toMagic`).
//!
//! Kafka's own log asks for magic 2 ever since it stores nothing else; the class still converts from each magic to each.

use bytes::{BufMut, Bytes, BytesMut};

use super::any_batch::AnyBatch;
use super::assign::{AssignRules, Checked, assign_offsets, check, offset_after};
use super::assign_error::AssignError;
use super::builder::BatchBuilder;
use super::header::{Attributes, Compression, MAGIC_POSITION, TimestampType};
use super::legacy::{LEGACY_CRC_POSITION, LegacyBatch};
use super::record_body::Record;
use super::records_builder::{Magic, RecordsBuilder};
use crate::types::{Offset, TimestampMs};

/// What is to be appended, in whatever format (Kafka: `LogValidator.ValidationResult`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedRecords {
    /// The batches; without bytes where nothing is left.
    pub bytes: Bytes,
    /// The largest timestamp of the records, or the append time; in milliseconds, -1 for none.
    pub max_timestamp: TimestampMs,
    /// The offset that follows the last record.
    pub next_offset: Offset,
    /// Whether they were built anew, so that their size may be another (Kafka: `messageSizeMaybeChanged`).
    pub rebuilt: bool,
}

/// As [`assign_offsets`], for a leader that stores records of this magic.
///
/// What has magic 0 or 1 and keeps it stays as it is but for offsets and, in magic 1, timestamps, if it is not compressed; if it
/// is, in magic 1 only, and if the offsets in it count up from 0. Otherwise it is built anew.
///
/// # Errors
/// See [`AssignError`].
///
/// ```
/// use cleanslate_log::record::{AnyBatchReader, AssignRules, LegacyEntry, Magic, assign_offsets_in};
/// use cleanslate_log::types::Offset;
///
/// let sent = LegacyEntry { value: Some(b"hello"), ..LegacyEntry::default() }.to_bytes()?;
/// let rules = AssignRules { next_offset: Offset(7), ..AssignRules::default() };
/// let assigned = assign_offsets_in(Magic::V0, &sent, &rules)?;
/// let stored: Vec<_> = AnyBatchReader::new(assigned.bytes).collect::<Result<_, _>>()?;
/// assert_eq!((stored[0].magic(), stored[0].last_offset()), (0, Offset(7)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn assign_offsets_in(magic: Magic, bytes: &Bytes, rules: &AssignRules) -> Result<AssignedRecords, AssignError> {
    if magic == Magic::V2 {
        let assigned = assign_offsets(bytes, rules)?;
        let bytes = assigned.batch.map(|batch| batch.bytes().clone()).unwrap_or_default();
        let (max_timestamp, next_offset, rebuilt) = (assigned.max_timestamp, assigned.next_offset, assigned.rebuilt);
        return Ok(AssignedRecords { bytes, max_timestamp, next_offset, rebuilt });
    }
    let Checked { batches, records, source, target } = check(bytes, magic, rules)?;
    let kept: Option<Vec<&LegacyBatch>> = batches.iter().map(|batch| same_format(batch, magic)).collect();
    let plain = source == Compression::None && target == Compression::None;
    let counts_up = records.iter().zip(0..).all(|(record, index)| record.offset == Offset(index));
    match kept {
        Some(kept) if plain => Ok(singles(&kept, magic, rules)),
        Some(kept) if magic == Magic::V1 && source == target && counts_up => Ok(set(&kept, &records, rules)),
        _ => rebuild(magic, records, target, rules),
    }
}

fn same_format(batch: &AnyBatch, magic: Magic) -> Option<&LegacyBatch> {
    match batch {
        AnyBatch::Legacy(batch) if batch.magic() == magic.get() => Some(batch),
        _ => None,
    }
}

/// Entries of one record each (Kafka: `assignOffsetsNonCompressed`).
fn singles(entries: &[&LegacyBatch], magic: Magic, rules: &AssignRules) -> AssignedRecords {
    let mut out = BytesMut::with_capacity(entries.iter().map(|entry| entry.size_in_bytes()).sum());
    let (mut next_offset, mut max_timestamp) = (rules.next_offset, TimestampMs::NONE);
    for entry in entries {
        let timestamp = if magic == Magic::V0 { TimestampMs::NONE } else { entry.max_timestamp().max(TimestampMs::NONE) };
        max_timestamp = max_timestamp.max(timestamp);
        put(&mut out, entry, next_offset, stored_time(magic, timestamp, rules));
        next_offset = Offset(next_offset.get().wrapping_add(1));
    }
    if rules.timestamp_type == TimestampType::LogAppendTime && magic > Magic::V0 {
        max_timestamp = rules.now;
    }
    AssignedRecords { bytes: out.freeze(), max_timestamp, next_offset, rebuilt: false }
}

/// A compressed set of magic 1: the offset of its entry is that of the last record.
fn set(entries: &[&LegacyBatch], records: &[Record], rules: &AssignRules) -> AssignedRecords {
    let next_offset = offset_after(rules.next_offset, records);
    let largest = records.iter().map(|record| record.timestamp).max().unwrap_or(TimestampMs::NONE).max(TimestampMs::NONE);
    let max_timestamp = if rules.timestamp_type == TimestampType::LogAppendTime { rules.now } else { largest };
    let mut out = BytesMut::new();
    for entry in entries {
        let last = Offset(next_offset.get().wrapping_sub(1));
        put(&mut out, entry, last, stored_time(Magic::V1, max_timestamp, rules));
    }
    AssignedRecords { bytes: out.freeze(), max_timestamp, next_offset, rebuilt: false }
}

fn stored_time(magic: Magic, timestamp: TimestampMs, rules: &AssignRules) -> Option<(TimestampType, TimestampMs)> {
    let append_time = rules.timestamp_type == TimestampType::LogAppendTime;
    (magic == Magic::V1).then_some((rules.timestamp_type, if append_time { rules.now } else { timestamp }))
}

/// Writes an entry with another offset, and with another time if there is news (Kafka:
/// `ByteBufferLegacyRecordBatch.setMaxTimestamp`): then with the CRC that belongs to it, and without the bits that have no meaning.
fn put(out: &mut BytesMut, entry: &LegacyBatch, offset: Offset, time: Option<(TimestampType, TimestampMs)>) {
    const OFFSET_BYTES: usize = 8;
    const TIMESTAMP_POSITION: usize = MAGIC_POSITION + 2;
    let bytes = entry.bytes();
    let tail = |from: usize| bytes.get(from..).unwrap_or_default();
    out.put_i64(offset.get());
    let Some((timestamp_type, timestamp)) = time.filter(|(timestamp_type, timestamp)| {
        entry.timestamp_type() != Some(*timestamp_type) || entry.max_timestamp() != *timestamp
    }) else {
        out.extend_from_slice(tail(OFFSET_BYTES));
        return;
    };
    let codec = entry.compression().unwrap_or(Compression::None);
    let attributes = Attributes::default().with_compression(codec).with_timestamp_type(timestamp_type);
    let [_, attributes] = attributes.0.to_be_bytes();
    let mut covered = Vec::with_capacity(bytes.len());
    covered.extend_from_slice(bytes.get(MAGIC_POSITION..=MAGIC_POSITION).unwrap_or_default());
    covered.put_u8(attributes);
    covered.put_i64(timestamp.get());
    covered.extend_from_slice(tail(TIMESTAMP_POSITION + 8));
    out.extend_from_slice(bytes.get(OFFSET_BYTES..LEGACY_CRC_POSITION).unwrap_or_default());
    out.put_u32(crc32fast::hash(&covered));
    out.extend_from_slice(&covered);
}

fn rebuild(magic: Magic, records: Vec<Record>, target: Compression, rules: &AssignRules) -> Result<AssignedRecords, AssignError> {
    let next_offset = offset_after(rules.next_offset, &records);
    let mut settings = BatchBuilder::new(rules.next_offset).compression(target);
    if rules.timestamp_type == TimestampType::LogAppendTime {
        settings = settings.log_append_time(rules.now);
    }
    let mut builder = RecordsBuilder::new(magic, settings, 0)?;
    for (record, index) in records.into_iter().zip(0..) {
        builder.append(Record { offset: Offset(rules.next_offset.get().wrapping_add(index)), ..record })?;
    }
    let max_timestamp = builder.max_timestamp().timestamp;
    Ok(AssignedRecords { bytes: builder.build()?, max_timestamp, next_offset, rebuilt: true })
}
