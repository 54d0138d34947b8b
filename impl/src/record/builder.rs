//! Building batches, under the constraints of Kafka's `MemoryRecordsBuilder`.

use bytes::{Bytes, BytesMut};

use super::batch::RecordBatch;
use super::compression::compress;
use super::control::{ControlRecord, ControlRecordType};
use super::encode_error::EncodeError;
use super::header::{Attributes, BatchHeader, Compression, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC_V2, TimestampType};
use super::record_body::{Record, length};
use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// Collects what a batch is to contain; [`BatchBuilder::build`] checks it.
///
/// Without further calls, the batch is not compressed, has no leader epoch, no producer and no timestamp, and is neither transactional nor
/// a control batch.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    pub(super) base_offset: Offset,
    leader_epoch: LeaderEpoch,
    pub(super) producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    base_sequence: Sequence,
    pub(super) transactional: bool,
    pub(super) control: bool,
    timestamp: TimestampMs,
    pub(super) log_append_time: Option<TimestampMs>,
    pub(super) delete_horizon: Option<TimestampMs>,
    pub(super) compression: Compression,
    last_offset: Option<Offset>,
    pub(super) records: Vec<Pending>,
}

/// A record as it was added; a control record is encoded by `build`, which may fail.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Plain(Record),
    Control(ControlRecord, Offset, TimestampMs),
}

impl Pending {
    pub(super) fn offset(&self) -> Offset {
        match self {
            Self::Plain(record) => record.offset,
            Self::Control(_, offset, _) => *offset,
        }
    }

    fn timestamp(&self) -> TimestampMs {
        match self {
            Self::Plain(record) => record.timestamp,
            Self::Control(_, _, timestamp) => *timestamp,
        }
    }
}

impl BatchBuilder {
    /// A builder of a batch at this base offset.
    #[must_use]
    pub fn new(base_offset: Offset) -> Self {
        Self {
            base_offset,
            leader_epoch: LeaderEpoch(-1),
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: Sequence::NONE,
            transactional: false,
            control: false,
            timestamp: TimestampMs::NONE,
            log_append_time: None,
            delete_horizon: None,
            compression: Compression::None,
            last_offset: None,
            records: Vec::new(),
        }
    }

    /// Sets the epoch of the leader.
    #[must_use]
    pub fn leader_epoch(mut self, leader_epoch: LeaderEpoch) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    /// Sets the producer, its epoch and the sequence of the first record.
    #[must_use]
    pub fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: Sequence) -> Self {
        self.producer_id = id;
        self.producer_epoch = epoch;
        self.base_sequence = base_sequence;
        self
    }

    /// Marks the batch as part of a transaction, or not.
    #[must_use]
    pub fn transactional(mut self, transactional: bool) -> Self {
        self.transactional = transactional;
        self
    }

    /// Marks the batch as a control batch, or not. All records of a control batch need a control record key.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.control = control;
        self
    }

    /// Sets the timestamp of the records that are added by key and value from here on, in milliseconds.
    #[must_use]
    pub fn timestamp(mut self, timestamp: TimestampMs) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// Gives the batch append time: all records will be read with this timestamp, in milliseconds.
    #[must_use]
    pub fn log_append_time(mut self, timestamp: TimestampMs) -> Self {
        self.log_append_time = Some(timestamp);
        self
    }

    /// Gives the batch a delete horizon, in milliseconds and 0 or more, which becomes the base timestamp.
    #[must_use]
    pub fn delete_horizon(mut self, horizon: TimestampMs) -> Self {
        self.delete_horizon = Some(horizon);
        self
    }

    /// Sets the codec of the records.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the last offset where it is not that of the last record: compaction keeps a batch's range. What it is set to is not held
    /// against the records (Kafka: `MemoryRecordsBuilder.overrideLastOffset`).
    #[must_use]
    pub fn last_offset(mut self, last_offset: Offset) -> Self {
        self.last_offset = Some(last_offset);
        self
    }

    /// Adds a record at the next offset with the builder's timestamp.
    #[must_use]
    pub fn record(self, key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        let record = Record {
            offset: self.next_offset(),
            timestamp: self.timestamp,
            key: key.map(Bytes::copy_from_slice),
            value: value.map(Bytes::copy_from_slice),
            headers: Vec::new(),
        };
        self.append(record)
    }

    /// Adds a record with its own offset and timestamp.
    #[must_use]
    pub fn append(mut self, record: Record) -> Self {
        self.records.push(Pending::Plain(record));
        self
    }

    /// Adds records with their own offsets and timestamps.
    #[must_use]
    pub fn records(mut self, records: impl IntoIterator<Item = Record>) -> Self {
        self.records.extend(records.into_iter().map(Pending::Plain));
        self
    }

    /// Adds a control record at the next offset with the builder's timestamp.
    #[must_use]
    pub fn control_record(mut self, record: ControlRecord) -> Self {
        let pending = Pending::Control(record, self.next_offset(), self.timestamp);
        self.records.push(pending);
        self
    }

    /// The offset of a record that is added without one.
    pub(super) fn next_offset(&self) -> Offset {
        self.records.last().map_or(self.base_offset, |last| last.offset().plus(1))
    }

    /// Checks everything and encodes the batch.
    ///
    /// # Errors
    /// When there are no records, or a constraint of Kafka's builder does not hold; see [`EncodeError`].
    pub fn build(self) -> Result<RecordBatch, EncodeError> {
        self.encoded()
    }

    /// As [`BatchBuilder::build`], of a builder that stays.
    pub(super) fn encoded(&self) -> Result<RecordBatch, EncodeError> {
        self.check_producer()?;
        check_timestamp(self.log_append_time.unwrap_or_default(), TimestampMs::NONE)?;
        check_timestamp(self.delete_horizon.unwrap_or_default(), TimestampMs(0))?;
        let first_timestamp = self.records.first().ok_or(EncodeError::NoRecords)?.timestamp();
        let base_timestamp = self.base_timestamp(first_timestamp);
        let (body, max_timestamp) = self.encoded_records(base_timestamp)?;
        let attributes = Attributes::default()
            .with_compression(self.compression)
            .with_timestamp_type(self.timestamp_type())
            .with_transactional(self.transactional)
            .with_control(self.control)
            .with_delete_horizon(self.delete_horizon.is_some());
        let header = BatchHeader {
            base_offset: self.base_offset,
            batch_length: length(HEADER_BYTES - LOG_OVERHEAD_BYTES + body.len(), "batch")?,
            partition_leader_epoch: self.leader_epoch,
            magic: MAGIC_V2,
            crc: 0,
            attributes,
            last_offset_delta: self.last_offset_delta()?,
            base_timestamp,
            max_timestamp: self.log_append_time.unwrap_or(max_timestamp),
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            record_count: length(self.records.len(), "records")?,
        };
        Ok(RecordBatch::assemble_with_crc(header, &body))
    }

    fn base_timestamp(&self, first_timestamp: TimestampMs) -> TimestampMs {
        self.delete_horizon.unwrap_or(first_timestamp)
    }

    /// The size that the batch has without compression, in bytes (Kafka: `DefaultRecordBatch.sizeInBytes`). Without records it is
    /// that of the header.
    ///
    /// # Errors
    /// When a record cannot be in the batch.
    pub fn uncompressed_size_in_bytes(&self) -> Result<usize, EncodeError> {
        let mut size = HEADER_BYTES;
        let mut previous = None;
        for pending in &self.records {
            let record = self.checked_record(pending, previous)?;
            size = size.saturating_add(self.size_of(&record)?);
            previous = Some(record.offset);
        }
        Ok(size)
    }

    /// What a record adds to the batch, in bytes; it may be the first one, or one that is not there yet.
    pub(super) fn size_of(&self, record: &Record) -> Result<usize, EncodeError> {
        let first_timestamp = self.records.first().map_or(record.timestamp, Pending::timestamp);
        let timestamp_delta = record.timestamp.get().wrapping_sub(self.base_timestamp(first_timestamp).get());
        Ok(record.encoded_bytes(timestamp_delta, self.offset_delta(record.offset)?))
    }

    /// The records' bytes, compressed when asked for, and the largest of their timestamps.
    fn encoded_records(&self, base_timestamp: TimestampMs) -> Result<(Bytes, TimestampMs), EncodeError> {
        let mut body = BytesMut::new();
        let mut previous = None;
        let mut max_timestamp = TimestampMs::NONE;
        for pending in &self.records {
            let record = self.checked_record(pending, previous)?;
            let timestamp_delta = record.timestamp.get().wrapping_sub(base_timestamp.get());
            record.encode(&mut body, timestamp_delta, self.offset_delta(record.offset)?)?;
            previous = Some(record.offset);
            max_timestamp = max_timestamp.max(record.timestamp);
        }
        let body = body.freeze();
        let body = if self.compression == Compression::None { body } else { compress(self.compression, &body)? };
        Ok((body, max_timestamp))
    }

    /// Kafka: `MemoryRecordsBuilder.validateProducerState`. Ids below -1 pass, as they do there.
    pub(super) fn check_producer(&self) -> Result<(), EncodeError> {
        if self.producer_id == ProducerId::NONE {
            return if self.transactional { Err(EncodeError::TransactionalWithoutProducerId) } else { Ok(()) };
        }
        if self.producer_epoch == ProducerEpoch::NONE {
            return Err(EncodeError::ProducerIdWithoutEpoch { producer_id: self.producer_id.get() });
        }
        let base_sequence = self.base_sequence.get();
        if base_sequence < 0 && !self.control {
            return Err(EncodeError::NegativeSequence { base_sequence });
        }
        Ok(())
    }

    /// The record as it is written, if it may follow the offset before it.
    pub(super) fn checked_record(&self, pending: &Pending, previous: Option<Offset>) -> Result<Record, EncodeError> {
        let (offset, timestamp) = (pending.offset(), pending.timestamp());
        if offset < self.base_offset || previous.is_some_and(|previous| offset <= previous) {
            let minimum = previous.map_or(self.base_offset, |previous| previous.plus(1)).get();
            return Err(EncodeError::OffsetOutOfOrder { offset: offset.get(), minimum });
        }
        check_timestamp(timestamp, TimestampMs::NONE)?;
        match pending {
            Pending::Plain(record) => {
                let key = record.key.as_ref().map(ControlRecordType::decode_key);
                if self.control && !matches!(key, Some(Ok(_))) {
                    return Err(EncodeError::DataRecordInControlBatch);
                }
                Ok(record.clone())
            }
            Pending::Control(control, ..) => {
                self.check_control(control)?;
                let value = Some(control.encode_value()?);
                Ok(Record { offset, timestamp, key: Some(control.record_type().key()), value, headers: Vec::new() })
            }
        }
    }

    fn check_control(&self, control: &ControlRecord) -> Result<(), EncodeError> {
        if !self.control {
            return Err(EncodeError::ControlRecordInDataBatch);
        }
        match control {
            ControlRecord::EndTxnMarker(_) if self.producer_id == ProducerId::NONE => Err(EncodeError::MarkerWithoutProducerId),
            ControlRecord::EndTxnMarker(_) if !self.transactional => Err(EncodeError::MarkerNotTransactional),
            ControlRecord::LeaderChange(_) if self.leader_epoch == LeaderEpoch(-1) => {
                Err(EncodeError::LeaderChangeWithoutLeaderEpoch)
            }
            _ => Ok(()),
        }
    }

    fn timestamp_type(&self) -> TimestampType {
        if self.log_append_time.is_some() { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    /// The last offset: what was set for it, or that of the last record.
    pub(super) fn last(&self) -> Option<Offset> {
        self.last_offset.or_else(|| self.records.last().map(Pending::offset))
    }

    fn last_offset_delta(&self) -> Result<i32, EncodeError> {
        let Offset(last) = self.last().unwrap_or(self.base_offset);
        let delta = last.checked_sub(self.base_offset.get()).and_then(|delta| i32::try_from(delta).ok());
        delta.ok_or(EncodeError::OffsetDeltaTooLarge { offset: last, base_offset: self.base_offset.get() })
    }

    pub(super) fn offset_delta(&self, offset: Offset) -> Result<i32, EncodeError> {
        let (offset, base_offset) = (offset.get(), self.base_offset.get());
        let delta = offset.checked_sub(base_offset).and_then(|delta| i32::try_from(delta).ok());
        delta.filter(|delta| *delta >= 0).ok_or(EncodeError::OffsetDeltaTooLarge { offset, base_offset })
    }
}

fn check_timestamp(timestamp: TimestampMs, minimum: TimestampMs) -> Result<(), EncodeError> {
    if timestamp < minimum {
        return Err(EncodeError::InvalidTimestamp { timestamp: timestamp.get() });
    }
    Ok(())
}
