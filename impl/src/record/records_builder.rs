//! A builder that takes records one by one, up to a size (Kafka: `MemoryRecordsBuilder`).

use bytes::{Bytes, BytesMut};

use super::builder::{BatchBuilder, Pending};
use super::compression::{compress, compress_for_magic_0};
use super::control::ControlRecord;
use super::encode_error::EncodeError;
use super::header::{Attributes, Compression, HEADER_BYTES, MAGIC_V2, TimestampType};
use super::legacy_entry::LegacyEntry;
use super::record_body::Record;
use crate::types::{Offset, ProducerId, TimestampMs};

/// What a guess at the size of compressed records is multiplied with, to be on the safe side.
const ESTIMATION_FACTOR: f32 = 1.05;

/// A format of record batches, by the magic byte of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Magic {
    /// Entries without timestamps.
    V0,
    /// Entries with timestamps.
    V1,
    /// Batches with a header of their own.
    V2,
}

impl Magic {
    /// The magic byte.
    #[must_use]
    pub fn get(self) -> i8 {
        match self {
            Self::V0 => 0,
            Self::V1 => 1,
            Self::V2 => MAGIC_V2,
        }
    }
}

/// Where the largest timestamp of the records is (Kafka: `MemoryRecordsBuilder.RecordsInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxTimestamp {
    /// The largest timestamp of the records, or the time of the append; -1 in magic 0.
    pub timestamp: TimestampMs,
    /// The last offset of the batch that has it; `None` where there is no timestamp.
    pub offset: Option<Offset>,
}

#[derive(Clone, Debug)]
enum State {
    Open,
    Closed(Bytes),
    Aborted,
}

/// Takes records of one batch until it is full, in any format; without compression, every record of magic 0 and 1 is an entry
/// of its own.
///
/// The limit is one for callers that ask: [`RecordsBuilder::has_room_for`] says whether a record fits, and
/// [`RecordsBuilder::append`] takes it in any case. The first one always fits, so that a batch is never empty for its sake.
///
/// ```
/// use cleanslate_log::record::{BatchBuilder, Magic, Record, RecordsBuilder};
/// use cleanslate_log::types::Offset;
///
/// # fn main() -> Result<(), cleanslate_log::record::EncodeError> {
/// let mut records = RecordsBuilder::new(Magic::V2, BatchBuilder::new(Offset(0)), 100)?;
/// let record = Record { value: Some("value".into()), ..Record::default() };
/// while records.has_room_for(&record) {
///     records.append_next(record.clone())?;
/// }
/// assert_eq!(records.record_count(), 3);
/// assert_eq!(records.estimated_size_in_bytes(), records.build()?.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RecordsBuilder {
    magic: Magic,
    /// The settings, and the records so far.
    batch: BatchBuilder,
    write_limit: usize,
    estimated_ratio: f32,
    /// Before compression, without the header.
    records_bytes: usize,
    max_timestamp: TimestampMs,
    offset_of_max_timestamp: Option<Offset>,
    state: State,
}

impl RecordsBuilder {
    /// A builder with the settings of a batch, whose records are taken over, and a limit on its size in bytes.
    ///
    /// # Errors
    /// When the format has no such batch: before magic 2 there are no transactions, no control records, no zstd and no delete
    /// horizon. Or when a record of the batch is refused.
    pub fn new(magic: Magic, mut settings: BatchBuilder, write_limit: usize) -> Result<Self, EncodeError> {
        if magic < Magic::V2 {
            let unknown = [
                (settings.transactional, "transactions"),
                (settings.control, "control records"),
                (settings.compression == Compression::Zstd, "zstd"),
                (settings.delete_horizon.is_some(), "delete horizon"),
            ];
            if let Some((_, what)) = unknown.into_iter().find(|(asked, _)| *asked) {
                return Err(EncodeError::NotInMagic { what, magic: magic.get() });
            }
        }
        let records = std::mem::take(&mut settings.records);
        let mut builder = Self {
            magic,
            batch: settings,
            write_limit,
            estimated_ratio: 1.0,
            records_bytes: 0,
            max_timestamp: TimestampMs::NONE,
            offset_of_max_timestamp: None,
            state: State::Open,
        };
        records.into_iter().try_for_each(|record| builder.push(record))?;
        Ok(builder)
    }

    /// Tells what to expect of the compression: bytes that come out for each that goes in. 1 without this.
    pub fn set_estimated_compression_ratio(&mut self, ratio: f32) {
        self.estimated_ratio = ratio;
    }

    /// Adds a record with its own offset. To a control batch, it is a control record (Kafka: `append(Record)`).
    ///
    /// # Errors
    /// When the builder is not open, or the record cannot be in the batch; the builder is as before then.
    pub fn append(&mut self, record: Record) -> Result<(), EncodeError> {
        self.push(Pending::Plain(record))
    }

    /// Adds a record at the offset that follows the last. It is none of a control batch, whatever its key.
    ///
    /// # Errors
    /// As [`RecordsBuilder::append`].
    pub fn append_next(&mut self, record: Record) -> Result<(), EncodeError> {
        if self.batch.control {
            return Err(EncodeError::DataRecordInControlBatch);
        }
        self.append(Record { offset: self.batch.next_offset(), ..record })
    }

    /// Adds a control record at the offset that follows the last.
    ///
    /// # Errors
    /// As [`RecordsBuilder::append`].
    pub fn append_control(&mut self, timestamp: TimestampMs, record: ControlRecord) -> Result<(), EncodeError> {
        self.push(Pending::Control(record, self.batch.next_offset(), timestamp))
    }

    fn push(&mut self, pending: Pending) -> Result<(), EncodeError> {
        match self.state {
            State::Open => {}
            State::Closed(_) => return Err(EncodeError::BuilderClosed),
            State::Aborted => return Err(EncodeError::BuilderAborted),
        }
        let record = self.batch.checked_record(&pending, self.batch.records.last().map(Pending::offset))?;
        if self.magic < Magic::V2 && !record.headers.is_empty() {
            return Err(EncodeError::NotInMagic { what: "record headers", magic: self.magic.get() });
        }
        self.batch.offset_delta(record.offset)?;
        self.records_bytes = self.records_bytes.saturating_add(self.size_of(&record)?);
        if self.magic > Magic::V0 && record.timestamp > self.max_timestamp {
            (self.max_timestamp, self.offset_of_max_timestamp) = (record.timestamp, Some(record.offset));
        }
        self.batch.records.push(pending);
        Ok(())
    }

    /// What a record adds before compression, in bytes.
    fn size_of(&self, record: &Record) -> Result<usize, EncodeError> {
        if self.magic == Magic::V2 {
            return self.batch.size_of(record);
        }
        Ok(self.entry(record).size_in_bytes())
    }

    /// Whether a record at the next offset fits, whatever its own says. Compression is guessed for the records before it, and is
    /// not counted on for this one.
    #[must_use]
    pub fn has_room_for(&self, record: &Record) -> bool {
        if self.is_full() {
            return false;
        }
        if self.batch.records.is_empty() {
            return true;
        }
        let next = Record { offset: self.batch.next_offset(), ..record.clone() };
        self.size_of(&next).is_ok_and(|size| self.estimated_size_in_bytes().saturating_add(size) <= self.write_limit)
    }

    /// Whether no further record is to be added: the limit is reached, or the builder is not open.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let open = matches!(self.state, State::Open);
        !open || (!self.batch.records.is_empty() && self.write_limit <= self.estimated_size_in_bytes())
    }

    /// The size of what is built, in bytes: exact without compression and once the builder is closed.
    #[must_use]
    pub fn estimated_size_in_bytes(&self) -> usize {
        match &self.state {
            State::Closed(built) => built.len(),
            State::Aborted => 0,
            State::Open if self.batch.compression == Compression::None => self.uncompressed_bytes(),
            State::Open => {
                // Kafka guesses in the same arithmetic.
                let guess = self.records_bytes as f32 * self.estimated_ratio * ESTIMATION_FACTOR;
                self.header_bytes().saturating_add(guess as usize)
            }
        }
    }

    /// The header and the records before compression, in bytes.
    #[must_use]
    pub fn uncompressed_bytes(&self) -> usize {
        self.header_bytes().saturating_add(self.records_bytes)
    }

    /// How many records there are.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.batch.records.len()
    }

    /// The largest timestamp, and the batch that has it.
    #[must_use]
    pub fn max_timestamp(&self) -> MaxTimestamp {
        let own_entries = self.magic < Magic::V2 && self.batch.compression == Compression::None;
        let last = self.batch.last();
        match self.batch.log_append_time {
            Some(timestamp) => MaxTimestamp { timestamp, offset: if own_entries { Some(self.batch.base_offset) } else { last } },
            None if self.max_timestamp == TimestampMs::NONE => MaxTimestamp { timestamp: TimestampMs::NONE, offset: None },
            None => MaxTimestamp {
                timestamp: self.max_timestamp,
                offset: if own_entries { self.offset_of_max_timestamp } else { last },
            },
        }
    }

    /// Closes the builder and returns what it built, which is nothing where there are no records. Once more gives the same.
    ///
    /// # Errors
    /// When the builder was aborted, or the batch breaks a rule of [`BatchBuilder::build`].
    pub fn build(&mut self) -> Result<Bytes, EncodeError> {
        let built = match &self.state {
            State::Closed(built) => return Ok(built.clone()),
            State::Aborted => return Err(EncodeError::BuilderAborted),
            State::Open => self.encoded()?,
        };
        self.state = State::Closed(built.clone());
        Ok(built)
    }

    /// As [`RecordsBuilder::build`], behind what a buffer holds. An error leaves the buffer as it is.
    ///
    /// # Errors
    /// As [`RecordsBuilder::build`].
    pub fn build_into(&mut self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.extend_from_slice(&self.build()?);
        Ok(())
    }

    /// Closes the builder.
    ///
    /// # Errors
    /// As [`RecordsBuilder::build`].
    pub fn close(&mut self) -> Result<(), EncodeError> {
        self.build().map(drop)
    }

    /// Gives the records up. Nothing is built any more.
    pub fn abort(&mut self) {
        self.batch.records.clear();
        self.records_bytes = 0;
        self.state = State::Aborted;
    }

    /// Bytes in front of the first record (Kafka: `AbstractRecords.recordBatchHeaderSizeInBytes`).
    fn header_bytes(&self) -> usize {
        match (self.magic, self.batch.compression) {
            (Magic::V2, _) => HEADER_BYTES,
            (_, Compression::None) => 0,
            _ => self.wrapper(&[], Offset(0)).size_in_bytes(),
        }
    }

    fn encoded(&self) -> Result<Bytes, EncodeError> {
        self.batch.check_producer()?;
        if self.magic < Magic::V2 && self.batch.producer_id != ProducerId::NONE {
            return Err(EncodeError::NotInMagic { what: "producer ids", magic: self.magic.get() });
        }
        let Some(last) = self.batch.last().filter(|_| !self.batch.records.is_empty()) else { return Ok(Bytes::new()) };
        if self.magic == Magic::V2 {
            return self.batch.encoded().map(|batch| batch.bytes().clone());
        }
        let mut entries = BytesMut::with_capacity(self.records_bytes);
        for pending in &self.batch.records {
            if let Pending::Plain(record) = pending {
                self.entry(record).encode(&mut entries)?;
            }
        }
        let set = match (self.magic, self.batch.compression) {
            (_, Compression::None) => return Ok(entries.freeze()),
            (Magic::V0, codec) => compress_for_magic_0(codec, &entries)?,
            (_, codec) => compress(codec, &entries)?,
        };
        self.wrapper(&set, last).to_bytes()
    }

    fn attributes(&self) -> Attributes {
        match self.magic {
            Magic::V0 => Attributes::default(),
            _ => Attributes::default().with_timestamp_type(match self.batch.log_append_time {
                Some(_) => TimestampType::LogAppendTime,
                None => TimestampType::CreateTime,
            }),
        }
    }

    /// A record as an entry. Within a set of magic 1, offsets count from the batch's base.
    fn entry<'a>(&self, record: &'a Record) -> LegacyEntry<'a> {
        let relative = self.magic == Magic::V1 && self.batch.compression != Compression::None;
        let base = if relative { self.batch.base_offset.get() } else { 0 };
        LegacyEntry {
            offset: Offset(record.offset.get().wrapping_sub(base)),
            attributes: self.attributes(),
            timestamp: (self.magic > Magic::V0).then_some(self.batch.log_append_time.unwrap_or(record.timestamp)),
            key: record.key.as_deref(),
            value: record.value.as_deref(),
        }
    }

    fn wrapper<'a>(&self, set: &'a [u8], last_offset: Offset) -> LegacyEntry<'a> {
        LegacyEntry {
            offset: last_offset,
            attributes: self.attributes().with_compression(self.batch.compression),
            timestamp: (self.magic > Magic::V0).then_some(self.max_timestamp().timestamp),
            key: None,
            value: Some(set),
        }
    }
}
