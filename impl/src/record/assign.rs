//! What a leader makes of the batch that it is sent (Kafka: `LogValidator.validateMessagesAndAssignOffsets`).

use bytes::Bytes;

use super::any_batch::{AnyBatch, AnyBatchReader};
use super::assign_error::{AssignError, RecordError, RecordFault};
use super::batch::RecordBatch;
use super::builder::BatchBuilder;
use super::compression::DEFAULT_MAX_DECOMPRESSED_BYTES;
use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::header::{ATTRIBUTES_POSITION, Attributes, BatchHeader, Compression, MAGIC_POSITION, MAGIC_V2, TimestampType};
use super::legacy::{LegacyBatch, LegacyRecord};
use super::record_body::{Header, Record};
use super::records_builder::Magic;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// The topic's settings and the leader's state, as far as they decide what is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignRules {
    /// Whether the batch comes from a client (Kafka: `AppendOrigin.CLIENT`), for which more rules hold than for the
    /// leader's own coordinators.
    pub from_client: bool,
    /// The codec of the topic (Kafka: `compression.type`); `None` keeps the batch's own ("producer").
    pub target: Option<Compression>,
    /// What the topic's timestamps mean (Kafka: `message.timestamp.type`).
    pub timestamp_type: TimestampType,
    /// How far a create time may lie before `now`, in milliseconds (Kafka: `message.timestamp.before.max.ms`).
    pub timestamp_before_max_ms: i64,
    /// How far a create time may lie after `now`, in milliseconds (Kafka: `message.timestamp.after.max.ms`).
    pub timestamp_after_max_ms: i64,
    /// The leader's clock, in milliseconds.
    pub now: TimestampMs,
    /// The offset of the first record: the log's end.
    pub next_offset: Offset,
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
    /// Whether the topic is compacted, so that every record needs a key.
    pub compacted: bool,
    /// What a compressed batch may be decompressed to, in bytes. Kafka has no such bound.
    pub max_decompressed_bytes: usize,
}

impl Default for AssignRules {
    /// A client's batch at the beginning of a log with the settings that Kafka has by default.
    fn default() -> Self {
        Self {
            from_client: true,
            target: None,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 60 * 60 * 1000,
            now: TimestampMs(0),
            next_offset: Offset(0),
            leader_epoch: LeaderEpoch(0),
            compacted: false,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
        }
    }
}

/// What a leader appends (Kafka: `LogValidator.ValidationResult`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The batch to append. `None` when a batch without records had to be built anew, of which nothing is left.
    pub batch: Option<RecordBatch>,
    /// The largest timestamp of the records, or the append time; in milliseconds, -1 for none.
    pub max_timestamp: TimestampMs,
    /// The offset that follows the last record.
    pub next_offset: Offset,
    /// Whether the batch was built anew, so that its size may be another (Kafka: `messageSizeMaybeChanged`).
    pub rebuilt: bool,
}

/// Checks what was sent to a leader and gives it offsets, leader epoch and timestamps.
///
/// A batch stays as it is but for these header fields where the codec stays, which for a compressed batch needs offsets
/// that count up from 0, and for a control batch that is not compressed. Its CRC changes only if the timestamp type or
/// the max timestamp does. Otherwise it is built anew, in magic 2, without its control flag. Uncompressed records of magic
/// 0 and 1, of which there may be several, become one batch. What follows the last whole batch is ignored.
///
/// The order of the checks is Kafka's, so that a batch with several faults is refused for the same one. The CRC is
/// checked first, as `UnifiedLog.analyzeAndValidateRecords` does before. A compressed stream is decompressed whole before
/// its records are read, where Kafka stops at the first error, so damage of both is that of the stream here.
///
/// # Errors
/// See [`AssignError`]. An error of a record that cannot be read comes before that of records with a fault.
pub fn assign_offsets(bytes: &Bytes, rules: &AssignRules) -> Result<Assigned, AssignError> {
    let Checked { batches, records, source, target } = check(bytes, Magic::V2, rules)?;
    let first = batches.first().ok_or(AssignError::NoBatch)?;
    let AnyBatch::V2(batch) = first else {
        return rebuild(first, records, target, rules);
    };
    let plain = source == Compression::None && target == Compression::None;
    // Control records are not compressed unless they came so.
    let keeps_codec = source == target || (source == Compression::None && batch.is_control());
    let counts_up = records.iter().zip(0..).all(|(record, index)| record.offset == Offset(index));
    if plain || (keeps_codec && counts_up) {
        return Ok(in_place(batch, &records, rules));
    }
    if source == target {
        return Err(AssignError::OffsetsOfCompressed);
    }
    rebuild(first, records, target, rules)
}

/// What has passed all checks.
pub(super) struct Checked {
    /// At least one.
    pub(super) batches: Vec<AnyBatch>,
    /// The records of all batches; without keys and values where nobody will need them.
    pub(super) records: Vec<Record>,
    pub(super) source: Compression,
    pub(super) target: Compression,
}

pub(super) fn check(bytes: &Bytes, to_magic: Magic, rules: &AssignRules) -> Result<Checked, AssignError> {
    let batches = AnyBatchReader::new(bytes.clone()).collect::<Result<Vec<_>, _>>()?;
    batches.iter().try_for_each(AnyBatch::ensure_valid)?;
    let source = source_codec(&batches)?;
    let target = rules.target.unwrap_or(source);
    let first = batches.first().ok_or(AssignError::NoBatch)?;
    // Records of magic 0 and 1 that are not compressed are batches of their own.
    if batches.len() > 1 && (first.magic() == MAGIC_V2 || source != Compression::None) {
        return Err(AssignError::SeveralBatches);
    }
    let mut records = Vec::new();
    for batch in &batches {
        check_batch(first.magic(), batch, to_magic, rules)?;
        records.append(&mut checked_records(batch, to_magic == Magic::V2 && source == target, rules)?);
    }
    Ok(Checked { batches, records, source, target })
}

/// The codec of the records (Kafka: `UnifiedLog.analyzeAndValidateRecords`): of several batches, the last that has one.
fn source_codec(batches: &[AnyBatch]) -> Result<Compression, DecodeError> {
    let mut source = Compression::None;
    for batch in batches {
        let (attributes, position) = match batch {
            AnyBatch::V2(batch) => (batch.attributes(), ATTRIBUTES_POSITION),
            AnyBatch::Legacy(batch) => (batch.attributes(), MAGIC_POSITION + 1),
        };
        let codec = attributes.compression();
        let codec = codec.ok_or(DecodeError::UnknownCompression { position, codec: attributes.codec_id() })?;
        if codec != Compression::None {
            source = codec;
        }
    }
    Ok(source)
}

/// Kafka: `LogValidator.validateBatch`.
fn check_batch(first_magic: i8, batch: &AnyBatch, to_magic: Magic, rules: &AssignRules) -> Result<(), AssignError> {
    if batch.magic() != first_magic {
        return Err(AssignError::MixedMagic { first: first_magic, magic: batch.magic() });
    }
    let AnyBatch::V2(batch) = batch else { return Ok(()) };
    if rules.from_client {
        check_client_batch(batch)?;
    }
    let unknown = [(batch.is_transactional(), "transactions"), (batch.has_producer_id(), "producer ids")];
    match unknown.into_iter().find(|(found, _)| *found && to_magic < Magic::V2) {
        Some((_, what)) => Err(AssignError::NotInMagic { what, magic: to_magic.get() }),
        None => Ok(()),
    }
}

fn check_client_batch(batch: &RecordBatch) -> Result<(), AssignError> {
    let (count, last_offset_delta) = (batch.record_count(), batch.last_offset_delta());
    if last_offset_delta < 0 {
        return Err(AssignError::OffsetRange { last_offset_delta });
    }
    if count <= 0 || i64::from(count) != i64::from(last_offset_delta) + 1 {
        return Err(AssignError::RecordCount { count, last_offset_delta });
    }
    if batch.is_control() {
        return Err(AssignError::ControlBatch);
    }
    let base_sequence = batch.base_sequence().get();
    if batch.has_producer_id() && base_sequence < 0 {
        return Err(AssignError::BaseSequence { base_sequence, producer_id: batch.producer_id().get() });
    }
    Ok(())
}

/// All records of a batch, or the faults of all that have one.
fn checked_records(batch: &AnyBatch, skims: bool, rules: &AssignRules) -> Result<Vec<Record>, AssignError> {
    let (records, errors) = match batch {
        AnyBatch::V2(batch) => {
            let bound = rules.max_decompressed_bytes;
            let records = if skims { batch.skimmed_records(bound)? } else { batch.records_within(bound)? };
            let append_time = batch.timestamp_type() == TimestampType::LogAppendTime;
            let errors = faults(&records, |record| fault_of(record.key.is_some(), record.timestamp, append_time, rules));
            (records, errors)
        }
        AnyBatch::Legacy(batch) => legacy_records(batch, rules)?,
    };
    if errors.is_empty() { Ok(records) } else { Err(AssignError::Records(errors)) }
}

fn faults<T>(records: &[T], fault_of: impl Fn(&T) -> Option<RecordFault>) -> Vec<RecordError> {
    let faults = records.iter().enumerate();
    faults.filter_map(|(index, record)| Some(RecordError { index, fault: fault_of(record)? })).collect()
}

/// The records of an entry of magic 0 or 1, and the faults of them. In a compressed set, every record has a magic that
/// has to be the entry's and a CRC that counts.
fn legacy_records(batch: &LegacyBatch, rules: &AssignRules) -> Result<(Vec<Record>, Vec<RecordError>), DecodeError> {
    let magic = batch.magic();
    let records = batch.records_within(rules.max_decompressed_bytes)?;
    if batch.compression() != Some(Compression::None) {
        records.iter().filter(|record| record.magic == magic).try_for_each(LegacyRecord::ensure_valid)?;
    }
    let append_time = batch.timestamp_type() == Some(TimestampType::LogAppendTime);
    let errors = faults(&records, |record| {
        if record.magic == magic {
            fault_of(record.key.is_some(), record.timestamp, append_time, rules)
        } else {
            Some(RecordFault::Magic(record.magic))
        }
    });
    Ok((records.into_iter().map(LegacyRecord::into_record).collect(), errors))
}

/// Kafka: `LogValidator.validateKey`, then `validateTimestamp`.
fn fault_of(has_key: bool, timestamp: TimestampMs, append_time: bool, rules: &AssignRules) -> Option<RecordFault> {
    if rules.compacted && !has_key {
        return Some(RecordFault::NoKey);
    }
    if rules.timestamp_type == TimestampType::CreateTime && timestamp != TimestampMs::NONE {
        // In the wrapping arithmetic of Java. A batch with append time passes if that lies in the window.
        let age_ms = rules.now.get().wrapping_sub(timestamp.get());
        let out_of_window = age_ms > rules.timestamp_before_max_ms || age_ms.wrapping_neg() > rules.timestamp_after_max_ms;
        return out_of_window.then_some(RecordFault::Timestamp(timestamp.get()));
    }
    append_time.then_some(RecordFault::AppendTime)
}

/// The batch with other offsets, leader epoch and timestamps.
fn in_place(batch: &RecordBatch, records: &[Record], rules: &AssignRules) -> Assigned {
    let next_offset = offset_after(rules.next_offset, records);
    let base_offset = next_offset.get().wrapping_sub(1).wrapping_sub(i64::from(batch.last_offset_delta()));
    let max_timestamp = match rules.timestamp_type {
        TimestampType::CreateTime => max_timestamp(records),
        TimestampType::LogAppendTime => rules.now,
    };
    let header = BatchHeader {
        base_offset: Offset(base_offset),
        partition_leader_epoch: rules.leader_epoch,
        max_timestamp,
        attributes: batch.attributes().with_timestamp_type(rules.timestamp_type),
        ..*batch.header()
    };
    // Kafka: `DefaultRecordBatch.setMaxTimestamp`, which writes nothing where nothing changes.
    let unchanged = header.attributes == batch.attributes() && max_timestamp == batch.max_timestamp();
    let assigned = if unchanged {
        RecordBatch::assemble(header, batch.records_bytes())
    } else {
        let attributes = known_bits(header.attributes);
        RecordBatch::assemble_with_crc(BatchHeader { attributes, ..header }, batch.records_bytes())
    };
    Assigned { batch: Some(assigned), max_timestamp, next_offset, rebuilt: false }
}

/// The attributes without the bits that have no meaning, which Kafka drops when it writes them.
fn known_bits(attributes: Attributes) -> Attributes {
    Attributes(attributes.0 & 0x7f)
}

/// A new batch of the same records and producer.
fn rebuild(first: &AnyBatch, records: Vec<Record>, target: Compression, rules: &AssignRules) -> Result<Assigned, AssignError> {
    let next_offset = offset_after(rules.next_offset, &records);
    let mut builder = BatchBuilder::new(rules.next_offset).leader_epoch(rules.leader_epoch).compression(target);
    if let AnyBatch::V2(batch) = first {
        builder = builder
            .producer(batch.producer_id(), batch.producer_epoch(), batch.base_sequence())
            .transactional(batch.is_transactional());
    }
    let mut max_timestamp = max_timestamp(&records);
    if rules.timestamp_type == TimestampType::LogAppendTime {
        builder = builder.log_append_time(rules.now);
        max_timestamp = rules.now;
    }
    let numbered = records.into_iter().zip(0..).map(|(record, index)| {
        let offset = Offset(rules.next_offset.get().wrapping_add(index));
        let headers = record.headers.into_iter().map(as_text).collect();
        Record { offset, headers, ..record }
    });
    let batch = match builder.records(numbered).build() {
        Ok(batch) => Some(batch),
        Err(EncodeError::NoRecords) if rules.timestamp_type == TimestampType::LogAppendTime => {
            return Err(AssignError::EmptyWithAppendTime);
        }
        Err(EncodeError::NoRecords) => None,
        Err(error) => return Err(AssignError::Rebuild(error)),
    };
    Ok(Assigned { batch, max_timestamp, next_offset, rebuilt: true })
}

/// Kafka reads names of headers as text and writes that, so that what is no UTF-8 changes.
fn as_text(header: Header) -> Header {
    match std::str::from_utf8(&header.key) {
        Ok(_) => header,
        Err(_) => Header { key: Bytes::from(header.key_utf8().into_owned()), ..header },
    }
}

pub(super) fn offset_after(first: Offset, records: &[Record]) -> Offset {
    let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
    Offset(first.get().wrapping_add(count))
}

/// The largest timestamp of the records themselves, whatever the header says.
fn max_timestamp(records: &[Record]) -> TimestampMs {
    records.iter().map(|record| record.timestamp).max().unwrap_or(TimestampMs::NONE).max(TimestampMs::NONE)
}
