//! A compressed stream, read from its beginning a piece at a time.

use std::fmt;

use bytes::Bytes;

use super::{DescriptorChecksum, Failure, Output, gzip, lz4, snappy, unzstd};
use crate::record::error::DecodeError;
use crate::record::header::Compression;

/// The buffer of Kafka's readers of gzip and zstd (`Compression.decompressionOutputSize`).
const LONG_BUFFER_BYTES: usize = 16 * 1024;
/// The buffer of Kafka's readers of Snappy and LZ4.
const SHORT_BUFFER_BYTES: usize = 2 * 1024;

/// How Kafka reads what it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) enum Portions {
    /// As many bytes as its buffer has, each time.
    Buffers,
    /// What is wanted at once, where that is more.
    Wanted,
}

/// What comes out of a stream. It holds what was not taken, and the piece that a codec decodes at a time: 4 MiB of LZ4 at most, one
/// block of Snappy, and 16 KiB or less of the others. All that comes out, taken or not, is within the bound.
///
/// A stream is read in the portions in which Kafka's `ChunkedBytesStream` reads it. So what comes out in front of an error is what Kafka's
/// readers see in front of it: those bytes of a portion that a decoder had before it failed are lost.
pub(in crate::record) struct Inflater {
    codec: Compression,
    stream: Stream,
    out: Output,
    ended: bool,
}

enum Stream {
    Gzip(gzip::Members),
    Snappy(snappy::Blocks),
    Lz4(lz4::Blocks),
    Zstd(unzstd::Frames),
    /// Not compressed.
    Plain(Bytes),
}

impl Inflater {
    pub(in crate::record) fn new(codec: Compression, bytes: Bytes, max_bytes: usize, checksum: DescriptorChecksum) -> Self {
        let stream = match codec {
            Compression::None => Stream::Plain(bytes),
            Compression::Gzip => Stream::Gzip(gzip::Members::new(bytes)),
            Compression::Snappy => Stream::Snappy(snappy::Blocks::new(bytes)),
            Compression::Lz4 => Stream::Lz4(lz4::Blocks::new(bytes, checksum)),
            Compression::Zstd => Stream::Zstd(unzstd::Frames::new(bytes)),
        };
        Self { codec, stream, out: Output::new(max_bytes), ended: false }
    }

    /// How many bytes came out that were not taken.
    pub(in crate::record) fn len(&self) -> usize {
        self.out.bytes.len()
    }

    /// Reads what stands in front of all pieces. Kafka does so when it makes a reader, and an error is a `KafkaException` whatever it is.
    pub(in crate::record) fn open(&mut self) -> Result<(), DecodeError> {
        let opened = match &mut self.stream {
            Stream::Gzip(members) => members.open(),
            Stream::Snappy(blocks) => blocks.open(self.out.room()),
            Stream::Lz4(blocks) => blocks.open().map(|_| ()),
            Stream::Zstd(_) | Stream::Plain(_) => Ok(()),
        };
        opened.map_err(|failure| self.failed(failure))
    }

    /// Decodes a piece, for a reader that lacks so many bytes; false at the end of the stream. Positions in errors are 0, the
    /// beginning of the stream.
    pub(in crate::record) fn step(&mut self, lacking: usize) -> Result<bool, DecodeError> {
        if self.ended {
            return Ok(false);
        }
        let before = self.out.bytes.len();
        let out = &mut self.out;
        // Kafka reads past its buffer what is longer.
        let stepped = match &mut self.stream {
            Stream::Gzip(members) => members.read(lacking.max(LONG_BUFFER_BYTES), out),
            Stream::Snappy(blocks) => blocks.read(lacking.max(SHORT_BUFFER_BYTES), out),
            Stream::Lz4(blocks) => blocks.read(out),
            Stream::Zstd(frames) => frames.read(lacking.max(LONG_BUFFER_BYTES), out),
            Stream::Plain(bytes) => out.push(&std::mem::take(bytes)).map(|()| false),
        };
        self.ended = !matches!(stepped, Ok(true));
        stepped.map_err(|failure| {
            self.out.bytes.truncate(before);
            self.failed(failure)
        })
    }

    fn failed(&self, failure: Failure) -> DecodeError {
        let (position, codec, max_bytes) = (0, self.codec, self.out.max_bytes);
        match failure {
            Failure::Corrupt(why) => DecodeError::CorruptCompression { position, codec, why, class: "KafkaException" },
            Failure::Thrown(class, why) => DecodeError::CorruptCompression { position, codec, why, class },
            Failure::TooLarge => DecodeError::DecompressedTooLarge { position, codec, max_bytes },
        }
    }

    /// Decodes all that is left.
    pub(in crate::record) fn run_to_end(&mut self) -> Result<(), DecodeError> {
        while self.step(1)? {}
        Ok(())
    }

    /// Decodes until so many bytes are there that were not taken; false where the stream ends before that.
    pub(in crate::record) fn require(&mut self, bytes: usize, portions: Portions) -> Result<bool, DecodeError> {
        while self.len() < bytes {
            let lacking = if portions == Portions::Wanted { bytes - self.len() } else { 1 };
            if !self.step(lacking)? {
                break;
            }
        }
        Ok(self.len() >= bytes)
    }

    /// What came out and was not taken.
    pub(in crate::record) fn peek(&self) -> &[u8] {
        &self.out.bytes
    }

    /// Puts bytes that were taken in front again; there must be none.
    pub(in crate::record) fn put_back(&mut self, bytes: &[u8]) {
        self.out.taken = self.out.taken.saturating_sub(bytes.len());
        // What was taken is within the bound, so it has room.
        let _ = self.out.push(bytes);
    }

    /// What came out and was not taken.
    pub(in crate::record) fn take(&mut self) -> Bytes {
        self.out.taken = self.out.taken.saturating_add(self.out.bytes.len());
        Bytes::from(std::mem::take(&mut self.out.bytes))
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").field("codec", &self.codec).field("taken", &self.out.taken).finish_non_exhaustive()
    }
}
