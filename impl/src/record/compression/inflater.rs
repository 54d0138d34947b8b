//! A compressed stream, read from its beginning a piece at a time.

use std::fmt;

use bytes::Bytes;

use super::{DescriptorChecksum, Failure, Output, gzip, lz4, snappy, unzstd};
use crate::record::error::DecodeError;
use crate::record::header::Compression;

/// What comes out of a stream. It holds what was not taken, and the piece that a codec decodes at a time: 4 MiB of LZ4 at most, one
/// block of Snappy, and 16 KiB or less of the others. All that comes out, taken or not, is within the bound.
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

    /// Decodes a piece; false at the end of the stream. Positions in errors are 0, the beginning of the stream.
    pub(in crate::record) fn step(&mut self) -> Result<bool, DecodeError> {
        if self.ended {
            return Ok(false);
        }
        let stepped = match &mut self.stream {
            Stream::Gzip(members) => members.step(&mut self.out),
            Stream::Snappy(blocks) => blocks.step(&mut self.out),
            Stream::Lz4(blocks) => blocks.step(&mut self.out),
            Stream::Zstd(frames) => frames.step(&mut self.out),
            Stream::Plain(bytes) => self.out.push(&std::mem::take(bytes)).map(|()| false),
        };
        let (codec, max_bytes) = (self.codec, self.out.max_bytes);
        self.ended = !matches!(stepped, Ok(true));
        stepped.map_err(|failure| match failure {
            Failure::Corrupt(why) => DecodeError::CorruptCompression { position: 0, codec, why },
            Failure::TooLarge => DecodeError::DecompressedTooLarge { position: 0, codec, max_bytes },
        })
    }

    /// Decodes all that is left.
    pub(in crate::record) fn run_to_end(&mut self) -> Result<(), DecodeError> {
        while self.step()? {}
        Ok(())
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

    /// Drops what came out and was not taken; returns how many bytes it was.
    pub(in crate::record) fn drop_taken(&mut self) -> usize {
        let dropped = self.out.bytes.len();
        self.out.taken = self.out.taken.saturating_add(dropped);
        self.out.bytes.clear();
        dropped
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").field("codec", &self.codec).field("taken", &self.out.taken).finish_non_exhaustive()
    }
}
