//! Record sets of the formats before magic 2, for reading (Kafka: `AbstractLegacyRecordBatch`, `LegacyRecord`).
//!
//! An entry is a single record, or a compressed set: a wrapper whose value is a compressed stream of entries.

use bytes::Bytes;

use super::compression::{DEFAULT_MAX_DECOMPRESSED_BYTES, DescriptorChecksum, Inflater, Portions};
use super::cursor::Cursor;
use super::error::DecodeError;
use super::header::{Attributes, Compression, LOG_OVERHEAD_BYTES, MAGIC_POSITION, MIN_BATCH_LENGTH, TimestampType};
use super::reader::size_at;
use super::record_body::Record;
use crate::types::{Offset, TimestampMs};

/// The smallest size field of an entry with magic 1, in bytes (Kafka: `LegacyRecord.RECORD_OVERHEAD_V1`).
pub const MIN_BATCH_LENGTH_V1: i32 = 22;
/// Position of the CRC in an entry; the part that it covers begins at the magic.
pub const LEGACY_CRC_POSITION: usize = 12;

/// Position of the size field in an entry.
const LENGTH_POSITION: usize = 8;
const MAGIC_V0: i8 = 0;
const MAGIC_V1: i8 = 1;

/// Exactly one entry of magic 0 or 1: a record or a compressed set of records.
///
/// The size and the magic are checked when it is made, the CRC by [`LegacyBatch::ensure_valid`], the records by
/// [`LegacyBatch::records`]. It has no producer, no leader epoch, no sequence and no control records. Cloning shares the
/// bytes. Positions in errors count from the entry's first byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LegacyBatch {
    bytes: Bytes,
    offset: Offset,
    stored_crc: u32,
    magic: i8,
    attributes: Attributes,
    timestamp: TimestampMs,
    /// Position of the length of the key, behind the fields above.
    key_position: usize,
}

/// A record of magic 0 or 1 with its offset and timestamp resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LegacyRecord {
    /// Position in the partition log.
    pub offset: Offset,
    /// Milliseconds; -1 in magic 0, and the wrapper's for every record of a set with append time.
    pub timestamp: TimestampMs,
    /// What the timestamp means; `None` in magic 0, which has none.
    pub timestamp_type: Option<TimestampType>,
    /// 0 or 1; a record in a set need not have the magic of its wrapper.
    pub magic: i8,
    /// The key; `None` is null.
    pub key: Option<Bytes>,
    /// The value; `None` is null.
    pub value: Option<Bytes>,
    /// The CRC-32 that is stored with the record.
    pub stored_crc: u32,
    /// The CRC-32 of the record's bytes from the magic to the end.
    pub computed_crc: u32,
}

/// A record of which the offset is resolved, and the key and the value are not looked at yet.
#[derive(Clone, Debug)]
pub(crate) struct UnreadRecord {
    entry: LegacyBatch,
    pub(crate) offset: Offset,
    timestamp: TimestampMs,
    timestamp_type: Option<TimestampType>,
    /// Where its set is, and where it is in what comes out of that.
    in_set: Option<(usize, usize)>,
}

impl UnreadRecord {
    fn of_entry(entry: LegacyBatch) -> Self {
        let (offset, timestamp, timestamp_type) = (entry.offset, entry.timestamp, entry.timestamp_type());
        Self { entry, offset, timestamp, timestamp_type, in_set: None }
    }

    pub(crate) fn ensure_valid(&self) -> Result<(), DecodeError> {
        self.entry.ensure_valid()
    }

    /// The lengths of key and value as stored, whether the entry has so many bytes or not; below 0 they are of a null.
    pub(crate) fn sizes(&self) -> Result<(i32, i32), DecodeError> {
        let key = Cursor::starting_at(&self.entry.bytes, self.entry.key_position).i32("record key")?;
        let key_bytes = usize::try_from(key).unwrap_or(0);
        let value_position = self.entry.key_position.saturating_add(4).saturating_add(key_bytes);
        Ok((key, Cursor::starting_at(&self.entry.bytes, value_position).i32("record value")?))
    }

    /// The stored CRC, and whether it is that of the bytes.
    pub(crate) fn crc(&self) -> (u32, bool) {
        (self.entry.stored_crc, self.ensure_valid().is_ok())
    }

    /// The record without its key and its value.
    pub(crate) fn outline(&self) -> Record {
        Record { offset: self.offset, timestamp: self.timestamp, ..Record::default() }
    }

    /// The record with its key and its value.
    pub(crate) fn read(self) -> Result<LegacyRecord, DecodeError> {
        let (key, value) = self.entry.key_and_value().map_err(|error| match self.in_set {
            Some((position, at)) => DecodeError::InCompressed { position, source: Box::new(error.shifted_by(at)) },
            None => error,
        })?;
        Ok(LegacyRecord {
            offset: self.offset,
            timestamp: self.timestamp,
            timestamp_type: self.timestamp_type,
            magic: self.entry.magic,
            key: key.map(Cursor::into_bytes),
            value: value.map(Cursor::into_bytes),
            stored_crc: self.entry.stored_crc,
            computed_crc: self.entry.computed_crc(),
        })
    }
}

impl LegacyRecord {
    /// Checks the CRC. Kafka reads records of a compressed set without doing so; only `LogValidator` does.
    ///
    /// # Errors
    /// [`DecodeError::CrcMismatch`] when the stored CRC is not the computed one; its position is that in the entry.
    pub fn ensure_valid(&self) -> Result<(), DecodeError> {
        check_crc(self.stored_crc, self.computed_crc)
    }

    /// The record as one of magic 2, without headers.
    #[must_use]
    pub fn into_record(self) -> Record {
        let Self { offset, timestamp, key, value, .. } = self;
        Record { offset, timestamp, key, value, headers: Vec::new() }
    }
}

impl LegacyBatch {
    /// Reads the entry that begins at byte `at` of a buffer; returns it and the position behind it.
    ///
    /// # Errors
    /// When the buffer does not hold the whole entry, the size is too small, or the magic is neither 0 nor 1.
    pub fn decode(buf: &Bytes, at: usize) -> Result<(Self, usize), DecodeError> {
        Self::decode_sized(buf, at, size_at(buf, at)?)
    }

    /// Reads the entry of `size` bytes that begins at byte `at`.
    pub(super) fn decode_sized(buf: &Bytes, at: usize, size: usize) -> Result<(Self, usize), DecodeError> {
        let mut cursor = Cursor::starting_at(buf, at);
        let start = cursor.position();
        let bytes = cursor.take(size, "batch")?;
        let batch = Self::read(bytes).map_err(|error| error.shifted_by(start))?;
        Ok((batch, cursor.position()))
    }

    fn read(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(&bytes);
        let offset = Offset(cursor.i64("offset")?);
        let length_position = cursor.position();
        let length = cursor.i32("record size")?;
        let stored_crc = cursor.u32("crc")?;
        let magic = cursor.i8("magic")?;
        let attributes = Attributes(i16::from(cursor.i8("attributes")?));
        let minimum = match magic {
            MAGIC_V0 => MIN_BATCH_LENGTH,
            MAGIC_V1 => MIN_BATCH_LENGTH_V1,
            _ => return Err(DecodeError::UnsupportedMagic { position: MAGIC_POSITION, magic }),
        };
        if length < minimum {
            return Err(DecodeError::BatchLengthTooSmall { position: length_position, length, minimum });
        }
        let timestamp = if magic == MAGIC_V0 { TimestampMs::NONE } else { TimestampMs(cursor.i64("timestamp")?) };
        let key_position = cursor.position();
        Ok(Self { offset, stored_crc, magic, attributes, timestamp, key_position, bytes })
    }

    /// All bytes of the entry.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Size of the entry in bytes, offset and size field included.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The entry's offset, which is that of the last record.
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        self.offset
    }

    /// 0 or 1.
    #[must_use]
    pub fn magic(&self) -> i8 {
        self.magic
    }

    /// The attributes as stored: codec, and timestamp type in magic 1. The other bits have no meaning.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// The codec; `None` for an id that names none.
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.attributes.compression()
    }

    /// The entry's timestamp in milliseconds, which for a set is the largest of its records'; -1 in magic 0.
    #[must_use]
    pub fn max_timestamp(&self) -> TimestampMs {
        self.timestamp
    }

    /// What the timestamps mean; `None` in magic 0.
    #[must_use]
    pub fn timestamp_type(&self) -> Option<TimestampType> {
        (self.magic == MAGIC_V1).then(|| self.attributes.timestamp_type())
    }

    /// The CRC-32 that is stored with the entry.
    #[must_use]
    pub fn stored_crc(&self) -> u32 {
        self.stored_crc
    }

    /// The CRC-32 (IEEE) of the bytes from the magic to the end.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        crc32fast::hash(self.bytes.get(MAGIC_POSITION..).unwrap_or_default())
    }

    /// Checks the entry's CRC (Kafka: `LegacyRecord.ensureValid`).
    ///
    /// # Errors
    /// [`DecodeError::CrcMismatch`] when the stored CRC is not the computed one.
    pub fn ensure_valid(&self) -> Result<(), DecodeError> {
        check_crc(self.stored_crc, self.computed_crc())
    }

    /// The records: the entry's own, or those of the set, of which at most [`DEFAULT_MAX_DECOMPRESSED_BYTES`] come out.
    ///
    /// # Errors
    /// When the set does not decompress within the bound, has no records, or its entries are malformed or compressed.
    pub fn records(&self) -> Result<Vec<LegacyRecord>, DecodeError> {
        self.records_within(DEFAULT_MAX_DECOMPRESSED_BYTES)
    }

    /// As [`LegacyBatch::records`], with a bound on what a set is decompressed to, in bytes.
    ///
    /// # Errors
    /// As [`LegacyBatch::records`].
    pub fn records_within(&self, max_decompressed_bytes: usize) -> Result<Vec<LegacyRecord>, DecodeError> {
        self.record_reader(max_decompressed_bytes)?.collect()
    }

    /// As [`LegacyBatch::records_within`], with the records one by one. A set is decompressed as a whole before the first record
    /// comes; where a record cannot be read, those in front of it come.
    ///
    /// # Errors
    /// As [`LegacyBatch::records`].
    pub fn record_reader(
        &self,
        max_decompressed_bytes: usize,
    ) -> Result<impl Iterator<Item = Result<LegacyRecord, DecodeError>> + use<>, DecodeError> {
        Ok(self.unread_records(max_decompressed_bytes)?.map(|record| record?.read()))
    }

    /// As [`LegacyBatch::record_reader`], without a look at keys and values.
    pub(crate) fn unread_records(
        &self,
        max_decompressed_bytes: usize,
    ) -> Result<impl Iterator<Item = Result<UnreadRecord, DecodeError>> + use<>, DecodeError> {
        let (own, set) = match self.codec()? {
            Compression::None => (Some(Ok(UnreadRecord::of_entry(self.clone()))), None),
            codec => (None, Some(self.set(codec, max_decompressed_bytes)?)),
        };
        Ok(own.into_iter().chain(set.into_iter().flatten()))
    }

    fn codec(&self) -> Result<Compression, DecodeError> {
        let position = MAGIC_POSITION + 1;
        self.compression().ok_or(DecodeError::UnknownCompression { position, codec: self.attributes.codec_id() })
    }

    /// Key and value. Bytes behind the value are ignored, as in Kafka.
    fn key_and_value(&self) -> Result<(Option<Cursor<'_>>, Option<Cursor<'_>>), DecodeError> {
        let mut cursor = Cursor::starting_at(&self.bytes, self.key_position);
        Ok((sized_part(&mut cursor, "record key")?, sized_part(&mut cursor, "record value")?))
    }

    /// Kafka: `AbstractLegacyRecordBatch.DeepRecordsIterator`.
    fn set(
        &self,
        codec: Compression,
        max_decompressed_bytes: usize,
    ) -> Result<impl Iterator<Item = Result<UnreadRecord, DecodeError>> + use<>, DecodeError> {
        let invalid = |why| DecodeError::InvalidLegacy { position: LOG_OVERHEAD_BYTES, why };
        if codec == Compression::Zstd {
            return Err(invalid("zstd is younger than this format"));
        }
        let (_, value) = self.key_and_value()?;
        let value = value.ok_or_else(|| invalid("a compressed set has a null value"))?;
        let position = value.position();
        let checksum = if self.magic == MAGIC_V0 { DescriptorChecksum::Ignore } else { DescriptorChecksum::Verify };
        let mut inflater = Inflater::new(codec, value.into_bytes(), max_decompressed_bytes, checksum);
        let last_inner = last_of_set(&mut inflater).map_err(|error| match error {
            DecodeError::CorruptCompression { .. } | DecodeError::DecompressedTooLarge { .. } => error.shifted_by(position),
            source => DecodeError::InCompressed { position, source: Box::new(source) },
        })?;
        let entries = InnerEntries { bytes: inflater.take(), position: 0 };
        let last_inner = last_inner.ok_or_else(|| invalid("a compressed set has no records"))?;
        let base = self.base_of_set(last_inner).ok_or_else(|| invalid("the set's offset is below its last record's"))?;
        let (timestamp_type, timestamp) = (self.timestamp_type(), self.timestamp);
        Ok(entries.map(move |entry| {
            let (entry, at) = entry.map_err(|source| DecodeError::InCompressed { position, source: Box::new(source) })?;
            let mut record = UnreadRecord { in_set: Some((position, at)), ..UnreadRecord::of_entry(entry) };
            record.offset = Offset(record.offset.get().wrapping_add(base));
            if record.entry.magic == MAGIC_V1 {
                record.timestamp_type = timestamp_type;
                if timestamp_type == Some(TimestampType::LogAppendTime) {
                    record.timestamp = timestamp;
                }
            }
            Ok(record)
        }))
    }

    /// What to add to the offsets of a set's records: those of magic 0 are absolute, those of magic 1 relative so that
    /// the last is the wrapper's. `None` when that would put them below 0.
    fn base_of_set(&self, last_inner: Offset) -> Option<i64> {
        // An offset of 0 comes from producers that did not set it (Kafka: old versions of librdkafka).
        if self.magic == MAGIC_V0 || self.offset == Offset(0) {
            return Some(0);
        }
        (self.offset >= last_inner).then(|| self.offset.get().wrapping_sub(last_inner.get()))
    }
}

/// Decompresses a set, entry by entry; returns the last one's offset as stored. An entry that the stream holds only in part ends it
/// without an error, and what follows is not looked at (Kafka: `DataLogInputStream`).
fn last_of_set(inflater: &mut Inflater) -> Result<Option<Offset>, DecodeError> {
    let (mut last, mut position) = (None, 0_usize);
    loop {
        let head_end = position.saturating_add(LOG_OVERHEAD_BYTES);
        if !inflater.require(head_end, Portions::Wanted)? {
            return Ok(last);
        }
        let head = Bytes::copy_from_slice(inflater.peek().get(position..head_end).unwrap_or_default());
        let mut cursor = Cursor::new(&head);
        let offset = Offset(cursor.i64("offset")?);
        let length = cursor.i32("record size")?;
        if length < MIN_BATCH_LENGTH {
            let position = position.saturating_add(LENGTH_POSITION);
            return Err(DecodeError::BatchLengthTooSmall { position, length, minimum: MIN_BATCH_LENGTH });
        }
        position = head_end.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        if !inflater.require(position, Portions::Wanted)? {
            return Ok(last);
        }
        last = Some(offset);
    }
}

/// The entries of a set that was decompressed, with their offsets as stored and where they begin.
struct InnerEntries {
    bytes: Bytes,
    position: usize,
}

impl InnerEntries {
    fn entry(&mut self) -> Result<Option<(LegacyBatch, usize)>, DecodeError> {
        let position = self.position;
        let Some(size) = inner_entry_size(&self.bytes, position)? else { return Ok(None) };
        let (entry, next) = LegacyBatch::decode_sized(&self.bytes, position, size)?;
        self.position = next;
        if entry.codec().map_err(|error| error.shifted_by(position))? != Compression::None {
            return Err(DecodeError::InvalidLegacy { position, why: "a record of a compressed set is compressed" });
        }
        Ok(Some((entry, position)))
    }
}

impl Iterator for InnerEntries {
    type Item = Result<(LegacyBatch, usize), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entry().transpose()?;
        if entry.is_err() {
            // Nothing is read behind it.
            self.position = self.bytes.len();
        }
        Some(entry)
    }
}

/// Size of the inner entry at `position`, in bytes; `None` when it is not there whole. Unlike in a log, the magic does not count
/// before that.
fn inner_entry_size(bytes: &Bytes, position: usize) -> Result<Option<usize>, DecodeError> {
    let mut cursor = Cursor::starting_at(bytes, position);
    if cursor.remaining() < LOG_OVERHEAD_BYTES {
        return Ok(None);
    }
    cursor.i64("offset")?;
    let length = cursor.i32("record size")?;
    let size = usize::try_from(length).unwrap_or(usize::MAX);
    Ok((size <= cursor.remaining()).then(|| size.saturating_add(LOG_OVERHEAD_BYTES)))
}

/// A length of 4 bytes and that many bytes; any negative length is null (Kafka: `Utils.sizeDelimited`).
fn sized_part<'a>(cursor: &mut Cursor<'a>, what: &'static str) -> Result<Option<Cursor<'a>>, DecodeError> {
    match usize::try_from(cursor.i32(what)?) {
        Ok(length) => cursor.split(length, what).map(Some),
        Err(_) => Ok(None),
    }
}

fn check_crc(stored: u32, computed: u32) -> Result<(), DecodeError> {
    if stored == computed {
        return Ok(());
    }
    Err(DecodeError::CrcMismatch { position: LEGACY_CRC_POSITION, stored, computed })
}
