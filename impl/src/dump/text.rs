//! The lines of batches and records, in the words of Kafka's tool.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use bytes::Bytes;

use super::DumpError;
use crate::log::scan::BatchHead;
use crate::record::{AnyBatch, Compression, DecodeError, MAGIC_POSITION, Record, StoredHeaders, TimestampType};
use crate::types::{Offset, Sequence};

/// A record with what else is shown of it.
pub(super) struct Shown {
    /// Without its headers.
    pub(super) record: Record,
    pub(super) more: More,
}

/// What a record has besides by its format.
pub(super) enum More {
    /// Magic 2.
    V2 { sequence: Sequence, headers: StoredHeaders },
    /// Magic 0 and 1: the stored CRC, whether it is that of the bytes, the lengths of key and value as stored, and why those are not
    /// there.
    Legacy { crc: u32, is_valid: bool, sizes: (i32, i32), damage: Option<DecodeError> },
}

impl Shown {
    /// An error where key and value are not there.
    pub(super) fn check_data(&self) -> Result<(), DecodeError> {
        match &self.more {
            More::Legacy { damage: Some(error), .. } => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Shows the records of a batch one by one, up to an error; those of a compressed batch only when all of them can be read.
    pub(super) fn each(
        batch: &AnyBatch,
        position: u64,
        max_decompressed_bytes: usize,
        mut show: impl FnMut(&Self) -> Result<(), DumpError>,
    ) -> Result<(), DumpError> {
        let failed = |source| DumpError::Batch { position, source };
        match batch {
            AnyBatch::V2(batch) if batch.is_empty() => {}
            AnyBatch::V2(batch) => {
                // Kafka reads all records of a compressed batch before it shows the first.
                if batch.attributes().compression() != Some(Compression::None) {
                    batch.outlines(max_decompressed_bytes).try_for_each(|outline| outline.map(drop)).map_err(failed)?;
                }
                let mut reader = batch.record_reader(max_decompressed_bytes);
                while let Some(read) = reader.next_with(|record, header| record.with_stored_headers(header)) {
                    let (record, headers) = read.map_err(failed)?;
                    show(&Self { more: More::V2 { sequence: batch.sequence_of(record.offset), headers }, record })?;
                }
            }
            AnyBatch::Legacy(batch) => {
                for record in batch.unread_records(max_decompressed_bytes).map_err(failed)? {
                    let unread = record.map_err(failed)?;
                    let sizes = unread.sizes().map_err(failed)?;
                    let (crc, is_valid) = unread.crc();
                    let outline = unread.outline();
                    let (record, damage) = match unread.read() {
                        Ok(record) => (record.into_record(), None),
                        Err(error) => (outline, Some(error)),
                    };
                    show(&Self { more: More::Legacy { crc, is_valid, sizes, damage }, record })?;
                }
            }
        }
        Ok(())
    }
}

/// Text, with U+FFFD in place of what is not UTF-8, written piece by piece.
pub(super) struct Lossy<'a>(pub(super) &'a [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.utf8_chunks().try_for_each(|chunk| {
            f.write_str(chunk.valid())?;
            if chunk.invalid().is_empty() { Ok(()) } else { f.write_char(char::REPLACEMENT_CHARACTER) }
        })
    }
}

/// `java.util.OptionalLong.toString`.
pub(super) struct OptionalLong(pub(super) Option<i64>);

impl fmt::Display for OptionalLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "OptionalLong[{value}]"),
            None => f.write_str("OptionalLong.empty"),
        }
    }
}

pub(super) fn is_control(batch: &AnyBatch) -> bool {
    batch.as_v2().is_some_and(|batch| batch.is_control())
}

pub(super) fn timestamp_type(batch: &AnyBatch) -> &'static str {
    let kind = match batch {
        AnyBatch::V2(batch) => Some(batch.timestamp_type()),
        AnyBatch::Legacy(batch) => batch.timestamp_type(),
    };
    match kind {
        Some(TimestampType::CreateTime) => "CreateTime",
        Some(TimestampType::LogAppendTime) => "LogAppendTime",
        None => "NoTimestampType",
    }
}

/// The magic as stored, which on file may be above 2.
pub(super) fn magic(batch: &AnyBatch) -> i8 {
    match batch {
        AnyBatch::V2(batch) => batch.header().magic,
        AnyBatch::Legacy(batch) => batch.magic(),
    }
}

/// The name of the codec (Kafka: `CompressionType.name`).
pub(super) fn codec(batch: &AnyBatch) -> Result<&'static str, DecodeError> {
    let attributes = batch.attributes();
    match attributes.compression() {
        Some(Compression::None) => Ok("none"),
        Some(Compression::Gzip) => Ok("gzip"),
        Some(Compression::Snappy) => Ok("snappy"),
        Some(Compression::Lz4) => Ok("lz4"),
        Some(Compression::Zstd) => Ok("zstd"),
        None => Err(DecodeError::UnknownCompression { position: MAGIC_POSITION, codec: attributes.codec_id() }),
    }
}

/// The part of a batch's line that differs between the formats.
pub(super) fn batch_head(out: &mut dyn Write, batch: &AnyBatch) -> io::Result<()> {
    let AnyBatch::V2(batch) = batch else {
        return write!(out, "offset: {}", batch.last_offset());
    };
    write!(
        out,
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {}",
        batch.base_offset(),
        batch.last_offset(),
        batch.record_count(),
        batch.base_sequence(),
        batch.last_sequence(),
        batch.producer_id(),
        batch.producer_epoch(),
        batch.leader_epoch(),
        batch.is_transactional(),
        batch.is_control(),
        OptionalLong(batch.delete_horizon().map(|time| time.get())),
    )
}

pub(super) fn batch_tail(out: &mut dyn Write, head: &BatchHead, is_valid: bool, codec: &str) -> io::Result<()> {
    let BatchHead { batch, position, size, .. } = head;
    writeln!(
        out,
        " position: {position} {}: {} size: {size} magic: {} compresscodec: {codec} crc: {} isvalid: {is_valid}",
        timestamp_type(batch),
        batch.max_timestamp(),
        magic(batch),
        batch.stored_crc(),
    )
}

/// The part of a record's line in front of control text, key and payload.
pub(super) fn record_metadata(out: &mut dyn Write, batch: &AnyBatch, shown: &Shown) -> io::Result<()> {
    let Record { offset, timestamp, key, value, .. } = &shown.record;
    let size = |part: &Option<Bytes>| part.as_ref().map_or(-1, |part| i64::try_from(part.len()).unwrap_or(i64::MAX));
    let (key_size, value_size) = match &shown.more {
        More::V2 { .. } => (size(key), size(value)),
        // Kafka shows what is stored.
        More::Legacy { sizes: (key, value), .. } => (i64::from(*key), i64::from(*value)),
    };
    let Offset(offset) = offset;
    write!(out, "| offset: {offset} {}: {timestamp} keySize: {key_size} valueSize: {value_size}", timestamp_type(batch))?;
    match &shown.more {
        More::V2 { sequence, headers } => {
            write!(out, " sequence: {sequence} headerKeys: [")?;
            let mut comma = "";
            for key in headers.keys() {
                write!(out, "{comma}{}", Lossy(key))?;
                comma = ",";
            }
            write!(out, "]")
        }
        More::Legacy { crc, is_valid, .. } => write!(out, " isValid: {is_valid} crc: {crc}"),
    }
}

/// Key and value as text, where they are not null. The first is behind `prefix`.
pub(super) fn record_data(out: &mut dyn Write, prefix: &str, record: &Record) -> io::Result<()> {
    let mut prefix = prefix;
    for (what, bytes) in [("key", &record.key), ("payload", &record.value)] {
        if let Some(bytes) = bytes {
            write!(out, "{prefix}{what}: {}", Lossy(bytes))?;
            prefix = " ";
        }
    }
    Ok(())
}
