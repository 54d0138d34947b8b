//! The records of a batch, one by one (Kafka: `DefaultRecordBatch.iterator` and `streamingIterator`).

use bytes::Bytes;

use super::batch::RecordBatch;
use super::compression::{DescriptorChecksum, Inflater, Portions};
use super::cursor::Cursor;
use super::error::DecodeError;
use super::header::{ATTRIBUTES_POSITION, BatchHeader, Compression, HEADER_BYTES, RECORD_COUNT_POSITION};
use super::record_body::{RawRecord, Record};

/// Room for so many records is made before the first is read.
const FIRST_RECORDS: usize = 256;

/// Whether the length field of a record is held against its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    Checked,
    Ignored,
}

/// Iterates over the records of a batch.
///
/// A compressed batch is decompressed as far as the next record needs it: what is held of it is one record and a little more,
/// and of headers those of one record. An error ends the iteration. The records in front of it were there; the last record of a
/// batch is not, where bytes follow that the header does not count. Where several things are wrong, the error is the one
/// that is met first: a stream that is damaged behind a malformed record is not read so far.
#[derive(Debug)]
pub struct RecordReader {
    header: BatchHeader,
    lengths: Lengths,
    /// Records that are still to come.
    left: u32,
    source: Source,
    /// Wrong from the beginning.
    unreadable: Option<DecodeError>,
}

impl RecordReader {
    pub(super) fn new(batch: &RecordBatch, max_decompressed_bytes: usize, lengths: Lengths) -> Self {
        let header = *batch.header();
        let (left, source, unreadable) = match start(batch, max_decompressed_bytes) {
            Ok((left, source)) => (left, source, None),
            Err(error) => (0, Source::plain(Bytes::new(), 0), Some(error)),
        };
        Self { header, lengths, left, source, unreadable }
    }

    /// The next record, as something else that is made of it.
    pub(crate) fn next_with<T>(&mut self, make: impl FnOnce(RawRecord<'_>, &BatchHeader) -> T) -> Option<Result<T, DecodeError>> {
        if let Some(error) = self.unreadable.take() {
            return Some(Err(error));
        }
        self.left = self.left.checked_sub(1)?;
        let record = self.source.record(self.lengths).map(|record| make(record, &self.header));
        let record = match (record, self.left) {
            (Ok(record), 0) => self.source.finish().map(|()| record),
            (record, _) => record,
        };
        Some(record.map_err(|error| {
            self.left = 0;
            match error {
                DecodeError::CorruptCompression { .. } | DecodeError::DecompressedTooLarge { .. } => error,
                error => self.source.located(error),
            }
        }))
    }

    /// All records that are left.
    pub(super) fn read_all(self) -> Result<Vec<Record>, DecodeError> {
        let mut records = Vec::new();
        // The count is believed for the first few; the list grows with what is there.
        records.reserve_exact(usize::try_from(self.left).unwrap_or(FIRST_RECORDS).min(FIRST_RECORDS));
        if self.source.inflater.is_none() && self.unreadable.is_none() && self.left > 0 {
            // All bytes are there: the same records and errors, in half the time.
            let mut cursor = Cursor::starting_at(&self.source.window, self.source.position);
            for _ in 0..self.left {
                records.push(RawRecord::decode(&mut cursor)?.into_record(&self.header)?);
            }
            cursor.finish("the last record")?;
            return Ok(records);
        }
        for record in self {
            records.push(record?);
        }
        Ok(records)
    }

    /// An error of a record's content, which says so if its position is none in the batch.
    pub(super) fn located(&self, error: DecodeError) -> DecodeError {
        self.source.located(error)
    }
}

impl Iterator for RecordReader {
    type Item = Result<Record, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.next_with(|record, header| record.into_record(header))?;
        Some(record.and_then(|record| record.map_err(|error| self.located(error))))
    }
}

impl std::iter::FusedIterator for RecordReader {}

/// How many records there are, and where. What is looked at first is as in Kafka, which makes the reader of the stream before it looks
/// at the count.
fn start(batch: &RecordBatch, max_decompressed_bytes: usize) -> Result<(u32, Source), DecodeError> {
    let (count, attributes) = (batch.record_count(), batch.attributes());
    let position = ATTRIBUTES_POSITION;
    let codec = attributes.compression().ok_or(DecodeError::UnknownCompression { position, codec: attributes.codec_id() })?;
    let records = u32::try_from(count).map_err(|_| DecodeError::NegativeRecordCount { position: RECORD_COUNT_POSITION, count });
    if codec == Compression::None {
        return Ok((records?, Source::plain(batch.bytes().clone(), HEADER_BYTES)));
    }
    let stream = batch.bytes().slice(HEADER_BYTES.min(batch.size_in_bytes())..);
    let mut inflater = Inflater::new(codec, stream, max_decompressed_bytes, DescriptorChecksum::Verify);
    inflater.open().map_err(|error| error.shifted_by(HEADER_BYTES))?;
    let source = Source { inflater: Some(inflater), ..Source::plain(Bytes::new(), 0) };
    Ok((records?, source))
}

/// Bytes of records: all of them, or what was decompressed so far.
#[derive(Debug)]
struct Source {
    window: Bytes,
    /// Where the next record begins in the window.
    position: usize,
    /// Where the window begins in the batch, or in what comes out of it.
    window_at: usize,
    /// `None` when the batch is not compressed.
    inflater: Option<Inflater>,
    /// What ends the stream behind the window.
    broken: Option<DecodeError>,
}

impl Source {
    fn plain(window: Bytes, position: usize) -> Self {
        Self { window, position, window_at: 0, inflater: None, broken: None }
    }

    /// Reads a record and goes behind it.
    fn record(&mut self, lengths: Lengths) -> Result<RawRecord<'_>, DecodeError> {
        if self.inflater.is_some() {
            match lengths {
                Lengths::Checked => self.want_record()?,
                Lengths::Ignored => self.want_fields()?,
            }
        }
        let mut cursor = Cursor::starting_at(&self.window, self.position);
        let record = match lengths {
            Lengths::Checked => RawRecord::decode(&mut cursor),
            Lengths::Ignored => RawRecord::skim(&mut cursor),
        };
        self.position = cursor.position();
        record.map_err(|error| error.shifted_by(self.window_at))
    }

    /// Decompresses until the record that its length field tells is there.
    fn want_record(&mut self) -> Result<(), DecodeError> {
        loop {
            let mut cursor = Cursor::starting_at(&self.window, self.position);
            let needed = match cursor.length("record length") {
                Ok(length) => cursor.position().saturating_sub(self.position).saturating_add(length),
                Err(DecodeError::UnexpectedEnd { .. }) => self.remaining().saturating_add(1),
                // Nothing that follows makes it right.
                Err(_) => return Ok(()),
            };
            if self.remaining() >= needed || !self.fill(needed, Portions::Wanted)? {
                return Ok(());
            }
        }
    }

    /// Decompresses until the fields of a record are there, whatever its length field says. What is there is doubled each time,
    /// so that reading again from the beginning costs no more than reading.
    fn want_fields(&mut self) -> Result<(), DecodeError> {
        loop {
            let mut cursor = Cursor::starting_at(&self.window, self.position);
            let is_cut = matches!(
                RawRecord::skim(&mut cursor),
                Err(DecodeError::UnexpectedEnd { .. } | DecodeError::CountExceedsBytes { .. })
            );
            if !is_cut {
                return Ok(());
            }
            let filled = self.fill(self.remaining().saturating_mul(2).saturating_add(1), Portions::Buffers);
            let is_within = Cursor::starting_at(&self.window, self.position).varint("record length").is_ok();
            if !filled.map_err(|error| if is_within { skimmed(error) } else { error })? {
                return Ok(());
            }
        }
    }

    fn remaining(&self) -> usize {
        self.window.len().saturating_sub(self.position)
    }

    /// Decompresses so many bytes from the position on, or what there is; false when nothing was left to decompress.
    fn fill(&mut self, wanted: usize, portions: Portions) -> Result<bool, DecodeError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let Some(inflater) = &mut self.inflater else { return Ok(false) };
        let kept = self.window.split_off(self.position.min(self.window.len()));
        self.window_at = self.window_at.saturating_add(self.position);
        self.position = 0;
        self.window = Bytes::new();
        inflater.put_back(&kept);
        let before = kept.len();
        drop(kept);
        if let Err(error) = inflater.require(wanted, portions) {
            self.broken = Some(error.shifted_by(HEADER_BYTES));
        }
        self.window = inflater.take();
        match &self.broken {
            Some(error) if self.window.len() == before => Err(error.clone()),
            _ => Ok(self.window.len() > before),
        }
    }

    /// An error if a byte follows.
    fn finish(&mut self) -> Result<(), DecodeError> {
        if self.remaining() == 0 && self.inflater.is_some() {
            self.fill(1, Portions::Buffers)?;
        }
        let position = self.window_at.saturating_add(self.position);
        match self.remaining() {
            0 => Ok(()),
            remaining => Err(DecodeError::TrailingBytes { position, what: "the last record", remaining }),
        }
    }

    /// An error in decompressed bytes says so, as its position is none in the batch.
    fn located(&self, error: DecodeError) -> DecodeError {
        match self.inflater {
            Some(_) => DecodeError::InCompressed { position: HEADER_BYTES, source: Box::new(error) },
            None => error,
        }
    }
}

/// What Kafka makes of an error of the stream within the fields of a record that it reads without regard to its length
/// (`DefaultRecord.readPartiallyFrom`).
fn skimmed(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::CorruptCompression { position, codec, why, class: "BufferUnderflowException" } => {
            DecodeError::CorruptCompression { position, codec, why, class: "InvalidRecordException" }
        }
        error => error,
    }
}
