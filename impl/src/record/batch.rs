//! One record batch: its bytes and what they say (Kafka: `DefaultRecordBatch`).

use bytes::{Bytes, BytesMut};

use super::compression::DEFAULT_MAX_DECOMPRESSED_BYTES;
use super::control::{self, ControlRecord, ControlRecordType};
use super::cursor::Cursor;
use super::error::DecodeError;
use super::header::{ATTRIBUTES_POSITION, Attributes, BatchHeader, CRC_POSITION, Compression, HEADER_BYTES, TimestampType};
use super::reader::size_at;
use super::record_body::{RawRecord, Record, RecordOutline};
use super::records::{Lengths, RecordReader};
use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// Exactly one batch of magic 2.
///
/// The size and the magic are checked when it is made, the CRC by [`RecordBatch::ensure_valid`], the records by
/// [`RecordBatch::records`]. Cloning shares the bytes. Positions in errors count from the batch's first byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordBatch {
    bytes: Bytes,
    header: BatchHeader,
}

impl RecordBatch {
    /// Reads the batch that begins at byte `at` of a buffer; returns it and the position behind it.
    ///
    /// # Errors
    /// When the buffer does not hold the whole batch, the size is too small, or the magic is not 2.
    pub fn decode(buf: &Bytes, at: usize) -> Result<(Self, usize), DecodeError> {
        Self::decode_sized(buf, at, size_at(buf, at)?)
    }

    /// Reads the batch of `size` bytes that begins at byte `at`.
    pub(super) fn decode_sized(buf: &Bytes, at: usize, size: usize) -> Result<(Self, usize), DecodeError> {
        let mut cursor = Cursor::starting_at(buf, at);
        let start = cursor.position();
        let bytes = cursor.take(size, "batch")?;
        let header = BatchHeader::decode(&bytes, 0).map_err(|error| error.shifted_by(start))?;
        Ok((Self { bytes, header }, cursor.position()))
    }

    /// Reads the bytes of one batch as they are on file, where a magic above 2 is taken for 2 (Kafka: `FileLogInputStream`).
    pub(crate) fn decode_on_file(bytes: &Bytes) -> Result<Self, DecodeError> {
        let header = BatchHeader::decode_checking(bytes, 0, |_, _| Ok(()))?;
        Ok(Self { bytes: bytes.clone(), header })
    }

    /// Puts a header before encoded records; the CRC is the header's, not computed.
    pub(super) fn assemble(header: BatchHeader, records: &[u8]) -> Self {
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + records.len());
        header.encode(&mut bytes);
        bytes.extend_from_slice(records);
        Self { bytes: bytes.freeze(), header }
    }

    /// Puts a header before encoded records, with the CRC of both.
    pub(super) fn assemble_with_crc(mut header: BatchHeader, records: &[u8]) -> Self {
        let mut head = Vec::with_capacity(HEADER_BYTES);
        header.encode(&mut head);
        let covered = head.get(ATTRIBUTES_POSITION..).unwrap_or_default();
        header.crc = crc32c::crc32c_append(crc32c::crc32c(covered), records);
        Self::assemble(header, records)
    }

    /// The header as stored.
    #[must_use]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Size of the batch in bytes, header included.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Offset of the first record that the batch had when it was first appended.
    #[must_use]
    pub fn base_offset(&self) -> Offset {
        self.header.base_offset
    }

    /// Offset of the last record that the batch had when it was first appended.
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        self.header.base_offset.plus(i64::from(self.header.last_offset_delta))
    }

    /// The offset that follows the batch.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    /// Last offset less base offset, in records.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        self.header.last_offset_delta
    }

    /// Epoch of the leader that appended the batch; -1 from a producer.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.header.partition_leader_epoch
    }

    /// The attributes as stored.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        self.header.attributes
    }

    /// The producer; -1 for none.
    #[must_use]
    pub fn producer_id(&self) -> ProducerId {
        self.header.producer_id
    }

    /// Whether Kafka's producer state looks at the batch: the producer id is 0 or above.
    #[must_use]
    pub fn has_producer_id(&self) -> bool {
        self.header.producer_id > ProducerId::NONE
    }

    /// The producer's epoch; -1 for none.
    #[must_use]
    pub fn producer_epoch(&self) -> ProducerEpoch {
        self.header.producer_epoch
    }

    /// Sequence of the first record; -1 for none.
    #[must_use]
    pub fn base_sequence(&self) -> Sequence {
        self.header.base_sequence
    }

    /// Sequence of the last record; -1 when there is no base sequence.
    #[must_use]
    pub fn last_sequence(&self) -> Sequence {
        match self.header.base_sequence {
            Sequence::NONE => Sequence::NONE,
            base => sequence_plus(base, self.header.last_offset_delta),
        }
    }

    /// Sequence of the record with this offset; -1 when the batch has no sequences (Kafka: `DefaultRecord.readFrom`).
    #[must_use]
    pub fn sequence_of(&self, offset: Offset) -> Sequence {
        let delta = i32::try_from(offset.get().saturating_sub(self.header.base_offset.get()));
        match delta {
            Ok(delta) if self.header.base_sequence.get() >= 0 => sequence_plus(self.header.base_sequence, delta),
            _ => Sequence::NONE,
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.header.attributes.is_transactional()
    }

    /// Whether the batch holds control records.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.header.attributes.is_control()
    }

    /// What the timestamps mean.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        self.header.attributes.timestamp_type()
    }

    /// The largest timestamp of the records, or the time of the append; in milliseconds.
    #[must_use]
    pub fn max_timestamp(&self) -> TimestampMs {
        self.header.max_timestamp
    }

    /// When compaction may remove the batch's tombstones or marker, in milliseconds; `None` when not yet decided.
    #[must_use]
    pub fn delete_horizon(&self) -> Option<TimestampMs> {
        self.header.attributes.has_delete_horizon().then_some(self.header.base_timestamp)
    }

    /// Records that the header says are in the batch; below 0 in a corrupt batch only.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    /// The CRC-32C in the header.
    #[must_use]
    pub fn stored_crc(&self) -> u32 {
        self.header.crc
    }

    /// The CRC-32C of the bytes from the attributes to the end.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        crc32c::crc32c(self.bytes.get(ATTRIBUTES_POSITION..).unwrap_or_default())
    }

    /// Checks the CRC (Kafka: `DefaultRecordBatch.ensureValid`; the size was checked when the batch was made).
    ///
    /// # Errors
    /// [`DecodeError::CrcMismatch`] when the stored CRC is not the computed one.
    pub fn ensure_valid(&self) -> Result<(), DecodeError> {
        let (stored, computed) = (self.stored_crc(), self.computed_crc());
        if stored == computed {
            return Ok(());
        }
        Err(DecodeError::CrcMismatch { position: CRC_POSITION, stored, computed })
    }

    /// All records. Keys, values and headers share the batch's bytes, or those that it was decompressed to, of which
    /// there are at most [`DEFAULT_MAX_DECOMPRESSED_BYTES`].
    ///
    /// # Errors
    /// When the records do not decompress within the bound, are not what the header's count says, or are malformed.
    pub fn records(&self) -> Result<Vec<Record>, DecodeError> {
        self.records_within(DEFAULT_MAX_DECOMPRESSED_BYTES)
    }

    /// As [`RecordBatch::records`], with a bound on what a compressed batch is decompressed to, in bytes.
    ///
    /// # Errors
    /// As [`RecordBatch::records`].
    pub fn records_within(&self, max_decompressed_bytes: usize) -> Result<Vec<Record>, DecodeError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        self.record_reader(max_decompressed_bytes).read_all()
    }

    /// Whether it has no records by its count. Kafka reads such a batch without a look at its stream (`iterator`), unless it
    /// streams it (`streamingIterator`).
    pub(crate) fn is_empty(&self) -> bool {
        self.header.record_count == 0
    }

    /// The records one by one, decompressed as they are read: see [`RecordReader`]. A compressed batch has to have the beginning of a
    /// stream also where it has no records, as in Kafka.
    #[must_use]
    pub fn record_reader(&self, max_decompressed_bytes: usize) -> RecordReader {
        RecordReader::new(self, max_decompressed_bytes, Lengths::Checked)
    }

    /// What is known of the records without their keys, values and headers, one by one. All else is as with
    /// [`RecordBatch::record_reader`].
    pub fn outlines(&self, max_decompressed_bytes: usize) -> impl Iterator<Item = Result<RecordOutline, DecodeError>> + use<> {
        let mut reader = (!self.is_empty()).then(|| self.record_reader(max_decompressed_bytes));
        std::iter::from_fn(move || reader.as_mut()?.next_with(|record, header| record.outline(header)))
    }

    /// As [`RecordBatch::records_within`], but of compressed records, the length fields are not held against the fields
    /// (Kafka: `DefaultRecordBatch.skipKeyValueIterator`).
    pub(super) fn skimmed_records(&self, max_decompressed_bytes: usize) -> Result<Vec<Record>, DecodeError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let compressed = self.attributes().compression() != Some(Compression::None);
        let lengths = if compressed { Lengths::Ignored } else { Lengths::Checked };
        RecordReader::new(self, max_decompressed_bytes, lengths).read_all()
    }

    /// Reads the first record of a control batch; `None` for a data batch and for a batch that has no records.
    ///
    /// Only the first record counts (Kafka: `ProducerAppendInfo.append`); what is behind it in a batch that is not compressed is
    /// looked at only when it is the only one.
    fn read_first_control_record<T>(
        &self,
        read: impl FnOnce(RawRecord<'_>) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        if !self.is_control() || self.is_empty() {
            return Ok(None);
        }
        let mut reader = self.record_reader(DEFAULT_MAX_DECOMPRESSED_BYTES);
        let Some(first) = reader.next_with(|record, _| read(record)) else {
            return Ok(None);
        };
        let first = first.map_err(unreadable_control)?;
        if self.attributes().compression() != Some(Compression::None) {
            // Kafka reads all records of a compressed batch before it hands out the first.
            while let Some(record) = reader.next_with(|_, _| ()) {
                record.map_err(unreadable_control)?;
            }
        }
        first.map(Some).map_err(|error| reader.located(error))
    }

    /// The type of the first record of a control batch, from its key alone; `None` for a data batch and for a batch
    /// that has no records.
    ///
    /// # Errors
    /// When the first record or its key is malformed.
    pub fn control_type(&self) -> Result<Option<ControlRecordType>, DecodeError> {
        self.read_first_control_record(|record| control::decode_key(record.key, record.position))
    }

    /// The first record of a control batch; `None` for a data batch and for a batch that has no records.
    ///
    /// # Errors
    /// When the first record, its key or its value is malformed. A value of an unknown type is not looked at.
    pub fn control_record(&self) -> Result<Option<ControlRecord>, DecodeError> {
        self.read_first_control_record(|record| ControlRecord::decode_parts(record.key, record.value, record.position))
    }

    /// The encoded records: everything behind the header.
    pub(super) fn records_bytes(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }
}

/// A control batch that does not decompress has an error of its own: Kafka's `KafkaException` is none of those at which
/// recovery cuts a log, unlike that of a malformed record.
fn unreadable_control(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::CorruptCompression { codec, .. } | DecodeError::DecompressedTooLarge { codec, .. } => {
            DecodeError::CompressionUnsupported { position: ATTRIBUTES_POSITION, codec }
        }
        other => other,
    }
}

/// Kafka's `DefaultRecordBatch.incrementSequence` for any stored numbers, in the wrapping arithmetic of Java: a corrupt
/// batch may have a negative delta, for which [`Sequence::plus`] is not made.
fn sequence_plus(sequence: Sequence, delta: i32) -> Sequence {
    let from = sequence.get();
    if from > i32::MAX.wrapping_sub(delta) {
        Sequence(delta.wrapping_sub(i32::MAX.wrapping_sub(from)).wrapping_sub(1))
    } else {
        Sequence(from.wrapping_add(delta))
    }
}
