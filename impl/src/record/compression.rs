//! The codecs of record payloads: written as Kafka's clients read them, and read within a bound.
//!
//! The containers are those of Kafka's `org.apache.kafka.common.compress` classes. What is written need not be the same
//! bytes as Kafka's, as every implementation of a codec makes its own choices; it is the same container.

mod lz4;
mod snappy;

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use zstd::zstd_safe;

use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::header::Compression;
pub(super) use lz4::DescriptorChecksum;

/// What may come out of one batch where a caller names no bound, in bytes: 64 MiB.
///
/// That is 64 times what a broker lets a batch have by default (`max.message.bytes`), headers and all. Kafka itself
/// decompresses record by record, without a bound.
pub const DEFAULT_MAX_DECOMPRESSED_BYTES: usize = 64 * 1024 * 1024;

/// How many bytes of a gzip stream are inflated at a time.
const GZIP_CHUNK_BYTES: usize = 8 * 1024;
/// How a gzip member begins that can follow another: magic and method.
const GZIP_MEMBER_START: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Kafka's default (`CompressionType.ZSTD`).
const ZSTD_LEVEL: i32 = 3;
/// The first guess at the output of a zstd frame that does not say its size, in bytes.
const ZSTD_FIRST_GUESS_BYTES: usize = 64 * 1024;
/// `ZSTD_error_dstSize_tooSmall`, one of the codes whose numbers zstd promises to keep.
const ZSTD_OUTPUT_TOO_SMALL: usize = 70;

/// Why nothing comes out of a stream; becomes a [`DecodeError`] with the codec and the bound.
enum Failure {
    /// The bytes are no stream of the codec.
    Corrupt(&'static str),
    /// The output would exceed the bound.
    TooLarge,
}

/// What has come out so far, which never takes more than the bound.
struct Output {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Output {
    fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), max_bytes }
    }

    /// Bytes that may still come.
    fn room(&self) -> usize {
        self.max_bytes.saturating_sub(self.bytes.len())
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
        Compression::Gzip => gzip(bytes).map(Bytes::from).map_err(|_| failed),
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
/// member are ignored.
///
/// # Errors
/// [`DecodeError::CorruptCompression`] when the bytes are no stream of the codec, [`DecodeError::DecompressedTooLarge`]
/// when more than `max_bytes` come out. Positions are 0, the beginning of the stream.
pub fn decompress(codec: Compression, bytes: &[u8], max_bytes: usize) -> Result<Bytes, DecodeError> {
    decompress_checking(codec, bytes, max_bytes, DescriptorChecksum::Verify)
}

/// As [`decompress`], with a say in whether the checksum of an LZ4 frame's descriptor counts: in sets of magic 0 it was
/// computed over the wrong bytes (Kafka: `Lz4Compression.wrapForInput`).
pub(super) fn decompress_checking(
    codec: Compression,
    bytes: &[u8],
    max_bytes: usize,
    checksum: DescriptorChecksum,
) -> Result<Bytes, DecodeError> {
    let mut out = Output::new(max_bytes);
    let result = match codec {
        Compression::None => out.push(bytes),
        Compression::Gzip => gunzip(bytes, &mut out),
        Compression::Snappy => snappy::decompress(bytes, &mut out),
        Compression::Lz4 => lz4::decompress(bytes, &mut out, checksum),
        Compression::Zstd => unzstd(bytes, &mut out),
    };
    match result {
        Ok(()) => Ok(Bytes::from(out.bytes)),
        Err(Failure::Corrupt(why)) => Err(DecodeError::CorruptCompression { position: 0, codec, why }),
        Err(Failure::TooLarge) => Err(DecodeError::DecompressedTooLarge { position: 0, codec, max_bytes }),
    }
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Members one after the other are one stream, and what follows a member without being one is ignored (Java:
/// `GZIPInputStream`).
fn gunzip(bytes: &[u8], out: &mut Output) -> Result<(), Failure> {
    let mut rest = bytes;
    let mut chunk = [0; GZIP_CHUNK_BYTES];
    loop {
        let mut member = GzDecoder::new(&mut rest);
        loop {
            let read = member.read(&mut chunk).map_err(|_| Failure::Corrupt("the gzip member is damaged or cut"))?;
            if read == 0 {
                break;
            }
            out.push(chunk.get(..read).unwrap_or_default())?;
        }
        if !rest.starts_with(&GZIP_MEMBER_START) {
            return Ok(());
        }
    }
}

/// Decodes in one go, where the output is the window: a frame's window size then costs no memory. Tries again with twice
/// the output where a frame does not say its size.
fn unzstd(bytes: &[u8], out: &mut Output) -> Result<(), Failure> {
    let declared = zstd_safe::get_frame_content_size(bytes).ok().flatten().and_then(|size| usize::try_from(size).ok());
    let mut capacity = declared.unwrap_or(ZSTD_FIRST_GUESS_BYTES).min(out.max_bytes);
    let mut context = zstd_safe::DCtx::try_create().ok_or(Failure::Corrupt("no memory for a zstd decoder"))?;
    loop {
        // Dropped first, so that the old and the new output are never there at once.
        out.bytes = Vec::new();
        out.bytes.reserve_exact(capacity);
        match context.decompress(&mut out.bytes, bytes) {
            Ok(_) if out.bytes.len() > out.max_bytes => return Err(Failure::TooLarge),
            Ok(_) => return Ok(()),
            Err(code) if code.wrapping_neg() != ZSTD_OUTPUT_TOO_SMALL => {
                return Err(Failure::Corrupt("a zstd frame is damaged or cut"));
            }
            Err(_) if capacity >= out.max_bytes => return Err(Failure::TooLarge),
            Err(_) => capacity = capacity.saturating_mul(2).clamp(ZSTD_FIRST_GUESS_BYTES, usize::MAX).min(out.max_bytes),
        }
    }
}
