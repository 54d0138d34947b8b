//! The errors of reading.

use super::control::ControlRecordType;
use super::header::Compression;

/// Why bytes are not the thing they were read as.
///
/// `position` is a byte position from the beginning of the buffer that was handed to the decoding function.
/// A method of [`RecordBatch`](super::RecordBatch) counts from the first byte of that batch;
/// [`DecodeError::shifted_by`] turns that into a position in the file or buffer the batch came from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The buffer ends inside a field or a batch.
    #[error("byte {position}: {what} needs {needed} bytes, but {available} are left")]
    UnexpectedEnd {
        /// First byte of the field that does not fit.
        position: usize,
        /// The field or structure being read.
        what: &'static str,
        /// Bytes that the field takes.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// The length field of a batch is below the smallest possible (Kafka: `CorruptRecordException`).
    #[error("byte {position}: batch length {length} is below the minimum of {minimum}")]
    BatchLengthTooSmall {
        /// First byte of the length field.
        position: usize,
        /// The length field: bytes that follow it.
        length: i32,
        /// The smallest length for this magic.
        minimum: i32,
    },
    /// The magic byte is none of 0, 1 and 2 (Kafka: `CorruptRecordException`).
    #[error("byte {position}: magic {magic}, expected 0, 1 or 2")]
    UnknownMagic {
        /// Position of the magic byte.
        position: usize,
        /// The magic byte.
        magic: i8,
    },
    /// A legacy message set entry (magic 0 or 1), which this reader does not decode.
    #[error("byte {position}: magic {magic} is a legacy format that is not supported here, expected 2")]
    UnsupportedMagic {
        /// Position of the magic byte.
        position: usize,
        /// The magic byte: 0 or 1.
        magic: i8,
    },
    /// The stored checksum differs from the computed one (Kafka: `CorruptRecordException`).
    #[error("byte {position}: stored CRC is {stored:08x}, the bytes give {computed:08x}")]
    CrcMismatch {
        /// First byte of the CRC field.
        position: usize,
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The codec bits of the attributes name no codec (Kafka: `IllegalArgumentException` of `CompressionType.forId`).
    #[error("byte {position}: compression codec {codec}, expected 0 to 4")]
    UnknownCompression {
        /// First byte of the attributes.
        position: usize,
        /// The codec bits.
        codec: u8,
    },
    /// The records of a control batch do not decompress, or not within the bound. No writer compresses control records.
    #[error("byte {position}: control records compressed with {codec:?} cannot be read")]
    CompressionUnsupported {
        /// First byte of the attributes.
        position: usize,
        /// The codec.
        codec: Compression,
    },
    /// The record count in the header is negative (Kafka: `InvalidRecordException`).
    #[error("byte {position}: record count {count}, expected 0 or more")]
    NegativeRecordCount {
        /// First byte of the record count.
        position: usize,
        /// The count.
        count: i32,
    },
    /// A record's fields take another number of bytes than its length says (Kafka: `InvalidRecordException`).
    #[error("byte {position}: record declares {declared} bytes, its fields take {consumed}")]
    RecordLengthMismatch {
        /// First byte after the record's length field.
        position: usize,
        /// The length field.
        declared: usize,
        /// Bytes taken by the fields.
        consumed: usize,
    },
    /// Bytes are left after the last thing that was declared (Kafka: `InvalidRecordException` for records).
    #[error("byte {position}: {remaining} bytes are left after {what}, expected none")]
    TrailingBytes {
        /// First byte that is left over.
        position: usize,
        /// What ended here.
        what: &'static str,
        /// Number of bytes left over; of a compressed batch, those that were decompressed so far.
        remaining: usize,
    },
    /// A variable-length integer does not end within its maximum (Kafka: `IllegalArgumentException` of `ByteUtils`).
    #[error("byte {position}: {what} does not end within {max_bytes} bytes")]
    VarintTooLong {
        /// First byte of the integer.
        position: usize,
        /// The field being read.
        what: &'static str,
        /// The most bytes it may take.
        max_bytes: usize,
    },
    /// A length or count that may not be negative is negative (Kafka: `InvalidRecordException`).
    #[error("byte {position}: {what} is {length}, expected 0 or more")]
    NegativeLength {
        /// First byte of the field.
        position: usize,
        /// The field being read.
        what: &'static str,
        /// The value.
        length: i32,
    },
    /// A count is larger than the bytes that are left could hold.
    #[error("byte {position}: {what} is {count}, but {available} bytes are left")]
    CountExceedsBytes {
        /// First byte of the count.
        position: usize,
        /// The field being read.
        what: &'static str,
        /// The declared count.
        count: usize,
        /// Bytes that are left after the count.
        available: usize,
    },
    /// A field that may not be null is null (Kafka: `NullPointerException` or a schema error).
    #[error("byte {position}: {what} is null")]
    Null {
        /// Where the field would be.
        position: usize,
        /// The field.
        what: &'static str,
    },
    /// A control record is of another type than was asked for (Kafka: `IllegalArgumentException` of `ControlRecordUtils`).
    #[error("byte {position}: control record of type {found}, expected {expected}")]
    UnexpectedControlType {
        /// First byte of the key or value.
        position: usize,
        /// The name of the type that was asked for.
        expected: &'static str,
        /// The type in the key.
        found: ControlRecordType,
    },
    /// A version is negative (Kafka: `InvalidRecordException`).
    #[error("byte {position}: {what} is {version}, expected 0 or more")]
    NegativeVersion {
        /// First byte of the version.
        position: usize,
        /// The field.
        what: &'static str,
        /// The version.
        version: i16,
    },
    /// A string is longer than 32767 bytes.
    #[error("byte {position}: {what} has {length} bytes, expected at most 32767")]
    StringTooLong {
        /// First byte of the string's length.
        position: usize,
        /// The field.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
    },
    /// A string is not UTF-8.
    #[error("byte {position}: {what} is not UTF-8")]
    InvalidUtf8 {
        /// First byte that is not UTF-8.
        position: usize,
        /// The field.
        what: &'static str,
    },
    /// A barrier's value, which carries unknown tagged fields, reads both with and without a source cluster id.
    #[error("byte {position}: barrier value reads both with and without a source cluster id")]
    AmbiguousMirrorPidReset {
        /// First byte after the version.
        position: usize,
    },
    /// Compressed bytes are not what their codec writes (Kafka: mostly `KafkaException`, "Failed to decompress record stream").
    #[error("byte {position}: no {codec:?} stream: {why}")]
    CorruptCompression {
        /// First byte of the compressed stream.
        position: usize,
        /// The codec.
        codec: Compression,
        /// What is wrong with the stream.
        why: &'static str,
        /// The simple name of the exception class: `KafkaException`, or what Kafka's readers of LZ4 and Snappy let through.
        class: &'static str,
    },
    /// More bytes come out of a compressed stream than the reader allows. Kafka has no such bound.
    #[error("byte {position}: more than {max_bytes} bytes come out of the {codec:?} stream")]
    DecompressedTooLarge {
        /// First byte of the compressed stream.
        position: usize,
        /// The codec.
        codec: Compression,
        /// The bound, in bytes.
        max_bytes: usize,
    },
    /// What came out of a compressed stream is malformed; the source counts from the first byte that came out.
    #[error("compressed from byte {position}: {source}")]
    InCompressed {
        /// First byte of the compressed stream.
        position: usize,
        /// What is wrong with the decompressed bytes.
        source: Box<DecodeError>,
    },
    /// A compressed set of magic 0 or 1 breaks a rule of its own
    /// (Kafka: `InvalidRecordException` of `AbstractLegacyRecordBatch`).
    #[error("byte {position}: legacy record set: {why}")]
    InvalidLegacy {
        /// First byte of the wrapper or of the inner record.
        position: usize,
        /// The rule that is broken.
        why: &'static str,
    },
}

impl DecodeError {
    /// The byte position at which reading failed; see [`DecodeError`] for what it counts from.
    #[must_use]
    pub fn position(&self) -> usize {
        match self {
            Self::UnexpectedEnd { position, .. }
            | Self::BatchLengthTooSmall { position, .. }
            | Self::UnknownMagic { position, .. }
            | Self::UnsupportedMagic { position, .. }
            | Self::CrcMismatch { position, .. }
            | Self::UnknownCompression { position, .. }
            | Self::CompressionUnsupported { position, .. }
            | Self::NegativeRecordCount { position, .. }
            | Self::RecordLengthMismatch { position, .. }
            | Self::TrailingBytes { position, .. }
            | Self::VarintTooLong { position, .. }
            | Self::NegativeLength { position, .. }
            | Self::CountExceedsBytes { position, .. }
            | Self::Null { position, .. }
            | Self::UnexpectedControlType { position, .. }
            | Self::NegativeVersion { position, .. }
            | Self::StringTooLong { position, .. }
            | Self::InvalidUtf8 { position, .. }
            | Self::CorruptCompression { position, .. }
            | Self::DecompressedTooLarge { position, .. }
            | Self::InCompressed { position, .. }
            | Self::InvalidLegacy { position, .. }
            | Self::AmbiguousMirrorPidReset { position } => *position,
        }
    }

    /// The simple name of the exception class that Kafka throws when it reads such bytes.
    ///
    /// [`DecodeError::DecompressedTooLarge`] has no counterpart and goes by the class of a batch that is too large.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::BatchLengthTooSmall { .. } | Self::UnknownMagic { .. } | Self::CrcMismatch { .. } => "CorruptRecordException",
            Self::UnknownCompression { .. } | Self::UnexpectedControlType { .. } => "IllegalArgumentException",
            Self::CompressionUnsupported { .. } => "UnsupportedCompressionTypeException",
            Self::CorruptCompression { class, .. } => class,
            Self::DecompressedTooLarge { .. } => "RecordTooLargeException",
            Self::Null { .. } => "NullPointerException",
            Self::InCompressed { source, .. } => source.kafka_class(),
            _ => "InvalidRecordException",
        }
    }

    /// The same error with its position moved `bytes` further: from a position in a batch to one in its file.
    #[must_use]
    pub fn shifted_by(mut self, bytes: usize) -> Self {
        let position = self.position_mut();
        *position = position.saturating_add(bytes);
        self
    }

    fn position_mut(&mut self) -> &mut usize {
        match self {
            Self::UnexpectedEnd { position, .. }
            | Self::BatchLengthTooSmall { position, .. }
            | Self::UnknownMagic { position, .. }
            | Self::UnsupportedMagic { position, .. }
            | Self::CrcMismatch { position, .. }
            | Self::UnknownCompression { position, .. }
            | Self::CompressionUnsupported { position, .. }
            | Self::NegativeRecordCount { position, .. }
            | Self::RecordLengthMismatch { position, .. }
            | Self::TrailingBytes { position, .. }
            | Self::VarintTooLong { position, .. }
            | Self::NegativeLength { position, .. }
            | Self::CountExceedsBytes { position, .. }
            | Self::Null { position, .. }
            | Self::UnexpectedControlType { position, .. }
            | Self::NegativeVersion { position, .. }
            | Self::StringTooLong { position, .. }
            | Self::InvalidUtf8 { position, .. }
            | Self::CorruptCompression { position, .. }
            | Self::DecompressedTooLarge { position, .. }
            | Self::InCompressed { position, .. }
            | Self::InvalidLegacy { position, .. }
            | Self::AmbiguousMirrorPidReset { position } => position,
        }
    }
}
