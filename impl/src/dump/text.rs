//! The lines of batches and records, in the words of Kafka's tool.

use std::fmt;
use std::io::{self, Write};

use crate::record::{AnyBatch, Compression, DecodeError, MAGIC_POSITION, Record, TimestampType};
use crate::types::{Offset, Sequence};

/// A record with what else is shown of it.
pub(super) struct Shown {
    pub(super) record: Record,
    pub(super) more: More,
}

/// What a record has besides by its format.
pub(super) enum More {
    /// Magic 2.
    V2 { sequence: Sequence },
    /// Magic 0 and 1: the stored CRC, and whether it is that of the bytes.
    Legacy { crc: u32, is_valid: bool },
}

impl Shown {
    /// The records of a batch in front of an error, and that error.
    pub(super) fn of_batch(batch: &AnyBatch, max_decompressed_bytes: usize) -> (Vec<Self>, Option<DecodeError>) {
        match batch {
            AnyBatch::V2(batch) => {
                let (records, error) = batch.records_and_error(max_decompressed_bytes);
                let shown = |record: Record| Self { more: More::V2 { sequence: batch.sequence_of(record.offset) }, record };
                (records.into_iter().map(shown).collect(), error)
            }
            AnyBatch::Legacy(batch) => match batch.records_within(max_decompressed_bytes) {
                Ok(records) => {
                    let shown = records.into_iter().map(|record| {
                        let more = More::Legacy { crc: record.stored_crc, is_valid: record.stored_crc == record.computed_crc };
                        Self { more, record: record.into_record() }
                    });
                    (shown.collect(), None)
                }
                Err(error) => (Vec::new(), Some(error)),
            },
        }
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
    let attributes = match batch {
        AnyBatch::V2(batch) => batch.attributes(),
        AnyBatch::Legacy(batch) => batch.attributes(),
    };
    match attributes.compression() {
        Some(Compression::None) => Ok("none"),
        Some(Compression::Gzip) => Ok("gzip"),
        Some(Compression::Snappy) => Ok("snappy"),
        Some(Compression::Lz4) => Ok("lz4"),
        Some(Compression::Zstd) => Ok("zstd"),
        None => Err(DecodeError::UnknownCompression { position: MAGIC_POSITION, codec: attributes.codec_id() }),
    }
}

pub(super) fn crc(batch: &AnyBatch) -> u32 {
    match batch {
        AnyBatch::V2(batch) => batch.stored_crc(),
        AnyBatch::Legacy(batch) => batch.stored_crc(),
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

pub(super) fn batch_tail(out: &mut dyn Write, batch: &AnyBatch, position: u64, codec: &str) -> io::Result<()> {
    writeln!(
        out,
        " position: {position} {}: {} size: {} magic: {} compresscodec: {codec} crc: {} isvalid: {}",
        timestamp_type(batch),
        batch.max_timestamp(),
        batch.size_in_bytes(),
        magic(batch),
        crc(batch),
        batch.ensure_valid().is_ok(),
    )
}

/// The part of a record's line in front of control text, key and payload.
pub(super) fn record_metadata(out: &mut dyn Write, batch: &AnyBatch, shown: &Shown) -> io::Result<()> {
    let Record { offset, timestamp, key, value, headers } = &shown.record;
    let size = |part: &Option<bytes::Bytes>| part.as_ref().map_or(-1, |part| i64::try_from(part.len()).unwrap_or(i64::MAX));
    let (key_size, value_size) = (size(key), size(value));
    let Offset(offset) = offset;
    write!(out, "| offset: {offset} {}: {timestamp} keySize: {key_size} valueSize: {value_size}", timestamp_type(batch),)?;
    match shown.more {
        More::V2 { sequence } => {
            let keys: Vec<_> = headers.iter().map(|header| header.key_utf8()).collect();
            write!(out, " sequence: {sequence} headerKeys: [{}]", keys.join(","))
        }
        More::Legacy { crc, is_valid } => write!(out, " isValid: {is_valid} crc: {crc}"),
    }
}

/// Key and value as text, where they are not null. The first is behind `prefix`.
pub(super) fn record_data(out: &mut dyn Write, prefix: &str, record: &Record) -> io::Result<()> {
    let mut prefix = prefix;
    for (what, bytes) in [("key", &record.key), ("payload", &record.value)] {
        if let Some(bytes) = bytes {
            write!(out, "{prefix}{what}: {}", String::from_utf8_lossy(bytes))?;
            prefix = " ";
        }
    }
    Ok(())
}
