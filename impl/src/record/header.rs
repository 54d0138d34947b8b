//! The 61-byte header of a record batch, magic 2 (Kafka: `DefaultRecordBatch`).

use bytes::{BufMut, Bytes};

use super::cursor::Cursor;
use super::error::DecodeError;
use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// Bytes before the part that the batch length counts: base offset and the length itself
/// (Kafka: `Records.LOG_OVERHEAD`).
pub const LOG_OVERHEAD_BYTES: usize = 12;
/// The smallest batch length that any magic allows (Kafka: `LegacyRecord.RECORD_OVERHEAD_V0`).
pub const MIN_BATCH_LENGTH: i32 = 14;
/// Position of the magic byte in a batch of any magic.
pub const MAGIC_POSITION: usize = 16;
/// Position of the CRC field.
pub const CRC_POSITION: usize = 17;
/// Position of the attributes, where the part that the CRC covers begins.
pub const ATTRIBUTES_POSITION: usize = 21;
/// Position of the record count.
pub const RECORD_COUNT_POSITION: usize = 57;
/// Size of the header; the records follow.
pub const HEADER_BYTES: usize = 61;
/// The smallest batch length of a batch with magic 2: a header without records.
pub const MIN_BATCH_LENGTH_V2: i32 = 49;
/// The magic of the batches of this module.
pub const MAGIC_V2: i8 = 2;

/// How the records of a batch are compressed (Kafka: `CompressionType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy blocks in xerial framing.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl Compression {
    /// The codec with this id; `None` for an id that names none (Kafka: `CompressionType.forId`).
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The id that stands in the low three bits of a batch's attributes.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }
}

/// What the timestamps of a batch mean (Kafka: `TimestampType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// Every record has the time that its producer gave it.
    CreateTime,
    /// All records have the time of the append, which is the batch's max timestamp.
    LogAppendTime,
}

/// The attributes of a batch: 16 bits, of which Kafka interprets the low 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC_MASK: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// The codec bits, 0 to 7.
    #[must_use]
    pub fn codec_id(self) -> u8 {
        let [_, low] = (self.0 & Self::CODEC_MASK).to_be_bytes();
        low
    }

    /// The codec; `None` for the ids 5 to 7, which name none.
    #[must_use]
    pub fn compression(self) -> Option<Compression> {
        Compression::from_id(self.codec_id())
    }

    /// What the timestamps mean.
    #[must_use]
    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records.
    #[must_use]
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is a delete horizon.
    #[must_use]
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// These attributes with another codec.
    #[must_use]
    pub fn with_compression(self, codec: Compression) -> Self {
        Self((self.0 & !Self::CODEC_MASK) | i16::from(codec.id()))
    }

    /// These attributes with another timestamp type.
    #[must_use]
    pub fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        self.with_bit(Self::LOG_APPEND_TIME, timestamp_type == TimestampType::LogAppendTime)
    }

    /// These attributes with the transactional bit as given.
    #[must_use]
    pub fn with_transactional(self, transactional: bool) -> Self {
        self.with_bit(Self::TRANSACTIONAL, transactional)
    }

    /// These attributes with the control bit as given.
    #[must_use]
    pub fn with_control(self, control: bool) -> Self {
        self.with_bit(Self::CONTROL, control)
    }

    /// These attributes with the delete-horizon bit as given.
    #[must_use]
    pub fn with_delete_horizon(self, present: bool) -> Self {
        self.with_bit(Self::DELETE_HORIZON, present)
    }

    fn with_bit(self, bit: i16, set: bool) -> Self {
        if set { Self(self.0 | bit) } else { Self(self.0 & !bit) }
    }
}

/// The fields of a batch header, as stored. Sums of them are methods of [`RecordBatch`](super::RecordBatch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchHeader {
    /// Offset of the first record that the batch had when it was first appended; compaction keeps it.
    pub base_offset: Offset,
    /// Bytes that follow this field: the batch's size less [`LOG_OVERHEAD_BYTES`].
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch; -1 from a producer. Not covered by the CRC.
    pub partition_leader_epoch: LeaderEpoch,
    /// 2; in a batch that was found on file perhaps above, as Kafka does not look at it there and the CRC does not cover it.
    pub magic: i8,
    /// CRC-32C of the bytes from the attributes to the end of the batch.
    pub crc: u32,
    /// Codec, timestamp type and flags.
    pub attributes: Attributes,
    /// Offset of the last record less the base offset; also the last sequence's distance from the base sequence.
    pub last_offset_delta: i32,
    /// What the records' timestamps are relative to; the delete horizon when the attributes say so.
    pub base_timestamp: TimestampMs,
    /// The largest timestamp of the records, or the time of the append.
    pub max_timestamp: TimestampMs,
    /// The producer; -1 for none.
    pub producer_id: ProducerId,
    /// The producer's epoch; -1 for none.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the first record; -1 for none, and in control batches.
    pub base_sequence: Sequence,
    /// Records that are in the batch; compaction may have removed some or all.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads a header of magic 2 that begins at byte `at`; does not look at the records, nor at the CRC.
    ///
    /// # Errors
    /// When the magic is not 2, the batch length is too small for a header, or fewer than 61 bytes are there.
    pub fn decode(buf: &Bytes, at: usize) -> Result<Self, DecodeError> {
        Self::decode_checking(buf, at, check_magic)
    }

    /// As [`BatchHeader::decode`], with another check of the magic and its position.
    pub(super) fn decode_checking(
        buf: &Bytes,
        at: usize,
        check_magic: impl FnOnce(i8, usize) -> Result<(), DecodeError>,
    ) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::starting_at(buf, at);
        let base_offset = Offset(cursor.i64("base offset")?);
        let length_position = cursor.position();
        let batch_length = cursor.i32("batch length")?;
        let partition_leader_epoch = LeaderEpoch(cursor.i32("partition leader epoch")?);
        let magic_position = cursor.position();
        let magic = cursor.i8("magic")?;
        check_magic(magic, magic_position)?;
        if batch_length < MIN_BATCH_LENGTH_V2 {
            return Err(DecodeError::BatchLengthTooSmall {
                position: length_position,
                length: batch_length,
                minimum: MIN_BATCH_LENGTH_V2,
            });
        }
        Ok(Self {
            base_offset,
            batch_length,
            partition_leader_epoch,
            magic,
            crc: cursor.u32("crc")?,
            attributes: Attributes(cursor.i16("attributes")?),
            last_offset_delta: cursor.i32("last offset delta")?,
            base_timestamp: TimestampMs(cursor.i64("base timestamp")?),
            max_timestamp: TimestampMs(cursor.i64("max timestamp")?),
            producer_id: ProducerId(cursor.i64("producer id")?),
            producer_epoch: ProducerEpoch(cursor.i16("producer epoch")?),
            base_sequence: Sequence(cursor.i32("base sequence")?),
            record_count: cursor.i32("record count")?,
        })
    }

    /// Writes the 61 bytes, with the CRC and the batch length as they stand in the fields.
    pub fn encode(&self, out: &mut impl BufMut) {
        out.put_i64(self.base_offset.get());
        out.put_i32(self.batch_length);
        out.put_i32(self.partition_leader_epoch.get());
        out.put_i8(self.magic);
        out.put_u32(self.crc);
        out.put_i16(self.attributes.0);
        out.put_i32(self.last_offset_delta);
        out.put_i64(self.base_timestamp.get());
        out.put_i64(self.max_timestamp.get());
        out.put_i64(self.producer_id.get());
        out.put_i16(self.producer_epoch.get());
        out.put_i32(self.base_sequence.get());
        out.put_i32(self.record_count);
    }
}

/// An error unless the magic is 2.
pub(super) fn check_magic(magic: i8, position: usize) -> Result<(), DecodeError> {
    match magic {
        MAGIC_V2 => Ok(()),
        0 | 1 => Err(DecodeError::UnsupportedMagic { position, magic }),
        _ => Err(DecodeError::UnknownMagic { position, magic }),
    }
}
