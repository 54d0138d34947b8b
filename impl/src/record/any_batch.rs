//! Batches of any magic, as they may stand one after the other in an old segment.

use bytes::Bytes;

use super::batch::RecordBatch;
use super::compression::DEFAULT_MAX_DECOMPRESSED_BYTES;
use super::error::DecodeError;
use super::header::{Attributes, MAGIC_POSITION, MAGIC_V2};
use super::legacy::{LegacyBatch, LegacyRecord};
use super::reader::{Frames, size_at};
use super::record_body::Record;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// A batch of magic 0, 1 or 2 (Kafka: `RecordBatch`, the interface).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AnyBatch {
    /// Magic 2.
    V2(RecordBatch),
    /// Magic 0 or 1.
    Legacy(LegacyBatch),
}

impl AnyBatch {
    /// Reads the batch that begins at byte `at` of a buffer; returns it and the position behind it.
    ///
    /// # Errors
    /// When the buffer does not hold the whole batch, the size is too small, or the magic is none that there is.
    pub fn decode(buf: &Bytes, at: usize) -> Result<(Self, usize), DecodeError> {
        Self::decode_sized(buf, at, size_at(buf, at)?)
    }

    fn decode_sized(buf: &Bytes, at: usize, size: usize) -> Result<(Self, usize), DecodeError> {
        let magic = buf.get(at.saturating_add(MAGIC_POSITION)).map(|byte| byte.cast_signed());
        if magic == Some(MAGIC_V2) {
            RecordBatch::decode_sized(buf, at, size).map(|(batch, next)| (Self::V2(batch), next))
        } else {
            LegacyBatch::decode_sized(buf, at, size).map(|(batch, next)| (Self::Legacy(batch), next))
        }
    }

    /// Reads a batch of which only the first bytes are there, at least [`HEADER_BYTES`](super::HEADER_BYTES), as they are on file: a magic
    /// above 2 is taken for 2. What the header says is right; the records, the size and the computed CRC are not.
    pub(crate) fn decode_head(bytes: &Bytes) -> Result<Self, DecodeError> {
        match bytes.get(MAGIC_POSITION).map(|byte| byte.cast_signed()) {
            Some(magic) if magic >= MAGIC_V2 => RecordBatch::decode_on_file(bytes).map(Self::V2),
            Some(magic) if magic < 0 => Err(DecodeError::UnknownMagic { position: MAGIC_POSITION, magic }),
            _ => LegacyBatch::decode_sized(bytes, 0, bytes.len()).map(|(batch, _)| Self::Legacy(batch)),
        }
    }

    /// The CRC that is stored with the batch.
    #[must_use]
    pub fn stored_crc(&self) -> u32 {
        match self {
            Self::V2(batch) => batch.stored_crc(),
            Self::Legacy(batch) => batch.stored_crc(),
        }
    }

    /// The attributes as stored.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        match self {
            Self::V2(batch) => batch.attributes(),
            Self::Legacy(batch) => batch.attributes(),
        }
    }

    /// The batch, if it is of magic 2.
    #[must_use]
    pub fn as_v2(&self) -> Option<&RecordBatch> {
        if let Self::V2(batch) = self { Some(batch) } else { None }
    }

    /// 0, 1 or 2.
    #[must_use]
    pub fn magic(&self) -> i8 {
        match self {
            Self::V2(_) => MAGIC_V2,
            Self::Legacy(batch) => batch.magic(),
        }
    }

    /// All bytes of the batch.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::V2(batch) => batch.bytes(),
            Self::Legacy(batch) => batch.bytes(),
        }
    }

    /// Size of the batch in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.bytes().len()
    }

    /// Offset of the first record where the header has it: in magic 2 only.
    #[must_use]
    pub fn base_offset(&self) -> Option<Offset> {
        match self {
            Self::V2(batch) => Some(batch.base_offset()),
            Self::Legacy(_) => None,
        }
    }

    /// Offset of the first record, for which a compressed set of magic 0 or 1 is decompressed (Kafka: `baseOffset`). Where that
    /// cannot be done within the bound in bytes, the last offset.
    #[must_use]
    pub fn first_offset(&self, max_decompressed_bytes: usize) -> Offset {
        let legacy = match self {
            Self::V2(batch) => return batch.base_offset(),
            Self::Legacy(legacy) => legacy,
        };
        let first = legacy.record_reader(max_decompressed_bytes).ok().and_then(|mut records| records.next()?.ok());
        first.map_or(legacy.last_offset(), |record| record.offset)
    }

    /// Offset of the last record.
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        match self {
            Self::V2(batch) => batch.last_offset(),
            Self::Legacy(batch) => batch.last_offset(),
        }
    }

    /// The offset that follows the batch.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    /// Epoch of the leader that appended the batch; -1 in magic 0 and 1.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        match self {
            Self::V2(batch) => batch.leader_epoch(),
            Self::Legacy(_) => LeaderEpoch(-1),
        }
    }

    /// The largest timestamp in milliseconds, or -1.
    #[must_use]
    pub fn max_timestamp(&self) -> TimestampMs {
        match self {
            Self::V2(batch) => batch.max_timestamp(),
            Self::Legacy(batch) => batch.max_timestamp(),
        }
    }

    /// Checks the batch's CRC.
    ///
    /// # Errors
    /// [`DecodeError::CrcMismatch`] when the stored CRC is not the computed one.
    pub fn ensure_valid(&self) -> Result<(), DecodeError> {
        match self {
            Self::V2(batch) => batch.ensure_valid(),
            Self::Legacy(batch) => batch.ensure_valid(),
        }
    }

    /// All records, within [`DEFAULT_MAX_DECOMPRESSED_BYTES`].
    ///
    /// # Errors
    /// As [`RecordBatch::records`] and [`LegacyBatch::records`].
    pub fn records(&self) -> Result<Vec<Record>, DecodeError> {
        self.records_within(DEFAULT_MAX_DECOMPRESSED_BYTES)
    }

    /// All records, with a bound on what a compressed batch is decompressed to, in bytes.
    ///
    /// # Errors
    /// As [`AnyBatch::records`].
    pub fn records_within(&self, max_decompressed_bytes: usize) -> Result<Vec<Record>, DecodeError> {
        match self {
            Self::V2(batch) => batch.records_within(max_decompressed_bytes),
            Self::Legacy(batch) => {
                let records = batch.records_within(max_decompressed_bytes)?;
                Ok(records.into_iter().map(LegacyRecord::into_record).collect())
            }
        }
    }
}

/// Iterates over the batches of a buffer, of any magic (Kafka: `ByteBufferLogInputStream`).
///
/// Ends as [`BatchReader`](super::BatchReader) does: without an error at a batch that the buffer holds only in part, and
/// after an error.
#[derive(Clone, Debug)]
pub struct AnyBatchReader {
    frames: Frames,
}

impl AnyBatchReader {
    /// Reads from the beginning of the buffer.
    #[must_use]
    pub fn new(buf: Bytes) -> Self {
        Self { frames: Frames::new(buf) }
    }

    /// Byte position in the buffer where the next batch begins, or where reading ended.
    #[must_use]
    pub fn position(&self) -> usize {
        self.frames.position
    }
}

impl Iterator for AnyBatchReader {
    type Item = Result<AnyBatch, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frames.next_with(AnyBatch::decode_sized)
    }
}

impl std::iter::FusedIterator for AnyBatchReader {}
