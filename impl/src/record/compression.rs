//! The codecs of record payloads: written as Kafka's clients read them, and read within a bound.
//!
//! The containers are those of Kafka's `org.apache.kafka.common.compress` classes. What is written need not be the same
//! bytes as Kafka's, as every implementation of a codec makes its own choices; it is the same container.

mod gzip;
mod inflater;
mod lz4;
mod lz4_block;
mod snappy;
mod unzstd;

use bytes::Bytes;

use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::header::Compression;
pub(super) use inflater::{Inflater, Portions};
pub(super) use lz4::DescriptorChecksum;

/// What may come out of one batch where a caller names no bound, in bytes: 64 MiB.
///
/// That is 64 times what a broker lets a batch have by default (`max.message.bytes`), headers and all. Kafka itself
/// decompresses record by record, without a bound.
pub const DEFAULT_MAX_DECOMPRESSED_BYTES: usize = 64 * 1024 * 1024;

/// Kafka's default (`CompressionType.ZSTD`).
const ZSTD_LEVEL: i32 = 3;
/// Why nothing comes out of a stream; becomes a [`DecodeError`] with the codec and the bound.
enum Failure {
    /// The bytes are no stream of the codec.
    Corrupt(&'static str),
    /// The same, where Kafka's reader throws something else than an `IOException`: the class, and what is wrong.
    Thrown(&'static str, &'static str),
    /// The output would exceed the bound.
    TooLarge,
}

/// What has come out so far and was not taken, which never takes more than the bound.
struct Output {
    bytes: Vec<u8>,
    /// How many bytes were taken.
    taken: usize,
    max_bytes: usize,
}

impl Output {
    fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), taken: 0, max_bytes }
    }

    /// Bytes that may still come.
    fn room(&self) -> usize {
        self.max_bytes.saturating_sub(self.taken).saturating_sub(self.bytes.len())
    }

    /// Makes room for more bytes; grows by doubling, but not beyond the bound.
    fn reserve(&mut self, additional: usize) -> Result<(), Failure> {
        if additional > self.room() {
            return Err(Failure::TooLarge);
        }
        let needed = self.bytes.len().saturating_add(additional);
        if needed > self.bytes.capacity() {
            let wanted = self.bytes.capacity().saturating_mul(2).clamp(needed, self.max_bytes);
            self.bytes.reserve_exact(wanted.saturating_sub(self.bytes.len()));
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends `length` zero bytes, lets `fill` overwrite them, and keeps as many as it says it wrote.
    fn fill<E>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<Result<(), E>, Failure> {
        self.reserve(length)?;
        let start = self.bytes.len();
        self.bytes.resize(start.saturating_add(length), 0);
        let filled = fill(self.bytes.get_mut(start..).unwrap_or_default());
        let written = filled.as_ref().map_or(0, |written| (*written).min(length));
        self.bytes.truncate(start.saturating_add(written));
        Ok(filled.map(|_| ()))
    }
}

/// Compresses records, with the settings that Kafka's producer has by default.
///
/// # Errors
/// [`EncodeError::Compression`] when the codec's library gets no memory.
pub fn compress(codec: Compression, bytes: &[u8]) -> Result<Bytes, EncodeError> {
    let failed = EncodeError::Compression { codec };
    match codec {
        Compression::None => Ok(Bytes::copy_from_slice(bytes)),
        Compression::Gzip => gzip::compress(bytes).map(Bytes::from).map_err(|_| failed),
        Compression::Snappy => snappy::compress(bytes).map(Bytes::from).ok_or(failed),
        Compression::Lz4 => lz4::compress(bytes).map(Bytes::from).ok_or(failed),
        Compression::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL).map(Bytes::from).map_err(|_| failed),
    }
}

/// As [`compress`], for a set of magic 0, whose LZ4 frames have the checksum that readers of that time expect.
pub(super) fn compress_for_magic_0(codec: Compression, bytes: &[u8]) -> Result<Bytes, EncodeError> {
    match codec {
        Compression::Lz4 => lz4::compress_for_magic_0(bytes).map(Bytes::from).ok_or(EncodeError::Compression { codec }),
        _ => compress(codec, bytes),
    }
}

/// Decompresses records. No allocation is larger than `max_bytes` and a small constant, whatever the input says.
///
/// What is not a part of the stream is judged as Kafka's readers do: bytes behind the end of an LZ4 frame or of a gzip
/// member are ignored, and so is a zstd frame that is cut behind a whole one.
///
/// # Errors
/// [`DecodeError::CorruptCompression`] when the bytes are no stream of the codec, [`DecodeError::DecompressedTooLarge`]
/// when more than `max_bytes` come out. Positions are 0, the beginning of the stream.
pub fn decompress(codec: Compression, bytes: &Bytes, max_bytes: usize) -> Result<Bytes, DecodeError> {
    let mut inflater = Inflater::new(codec, bytes.clone(), max_bytes, DescriptorChecksum::Verify);
    inflater.run_to_end()?;
    Ok(inflater.take())
}
