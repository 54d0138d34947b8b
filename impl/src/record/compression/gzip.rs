//! Gzip (Java: `GZIPInputStream`).
//!
//! The members are not read by a library: Java takes flags that the format reserves, and ends the stream where a further member
//! would be too short or has a header that it cannot read.

use std::io::Write as _;

use bytes::{Buf as _, Bytes};
use crc32fast::Hasher;
use flate2::write::GzEncoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::{Failure, Output};

/// How many bytes of a stream are inflated at a time.
const CHUNK_BYTES: usize = 8 * 1024;
/// How a member begins: magic and method.
const MEMBER_START: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Up to the fields that the flags announce.
const HEADER_BYTES: usize = 10;
/// Checksum and length of what was compressed.
const TRAILER_BYTES: usize = 8;
/// Position of the flags in a header.
const FLAGS_POSITION: usize = 3;
const HEADER_CHECKSUM: u8 = 2;
const EXTRA_FIELD: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;

pub(super) fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Members one after the other, which are one stream. What follows a member without being one is ignored.
pub(super) struct Members {
    rest: Bytes,
    at: At,
    inflate: Decompress,
    checksum: Hasher,
}

/// Where in the stream the next bytes are.
enum At {
    Start,
    Member,
    End,
}

impl Members {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, at: At::Start, inflate: Decompress::new(false), checksum: Hasher::new() }
    }

    /// Inflates some bytes; false at the end.
    pub(super) fn step(&mut self, out: &mut Output) -> Result<bool, Failure> {
        loop {
            match self.at {
                At::Start => {
                    let length = header_length(&self.rest).ok_or(Failure::Corrupt("it does not begin with a gzip header"))?;
                    self.begin(length);
                }
                At::Member => {
                    if self.inflate_chunk(out)? {
                        return Ok(true);
                    }
                }
                At::End => return Ok(false),
            }
        }
    }

    fn begin(&mut self, header_length: usize) {
        self.rest.advance(header_length);
        self.inflate.reset(false);
        self.checksum.reset();
        self.at = At::Member;
    }

    /// Inflates some bytes of a member, and goes behind it where it ends; false when no bytes came out.
    fn inflate_chunk(&mut self, out: &mut Output) -> Result<bool, Failure> {
        let mut chunk = [0; CHUNK_BYTES];
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(&self.rest, &mut chunk, FlushDecompress::None);
        let status = status.map_err(|_| Failure::Corrupt("a gzip member is damaged"))?;
        let count = |now: u64, before: u64| usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX);
        let (read, written) = (count(self.inflate.total_in(), read), count(self.inflate.total_out(), written));
        self.rest.advance(read.min(self.rest.len()));
        let inflated = chunk.get(..written).unwrap_or_default();
        self.checksum.update(inflated);
        out.push(inflated)?;
        match status {
            Status::StreamEnd => self.end_of_member()?,
            Status::Ok | Status::BufError if read == 0 && written == 0 => return Err(Failure::Corrupt("a gzip member is cut")),
            Status::Ok | Status::BufError => {}
        }
        Ok(written > 0)
    }

    fn end_of_member(&mut self) -> Result<(), Failure> {
        let trailer = self.rest.first_chunk::<TRAILER_BYTES>().ok_or(Failure::Corrupt("a gzip member is cut"))?;
        let [checksum, length] = [0, 4].map(|at| {
            let bytes = trailer.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        });
        if checksum != self.checksum.clone().finalize() || u64::from(length) != self.inflate.total_out() & u64::from(u32::MAX) {
            return Err(Failure::Corrupt("the trailer of a gzip member is wrong"));
        }
        self.rest.advance(TRAILER_BYTES);
        // Java looks for another member only where there is room for the least that it can be.
        let has_room = self.rest.len() > HEADER_BYTES + TRAILER_BYTES;
        match header_length(&self.rest).filter(|_| has_room) {
            Some(length) => self.begin(length),
            None => self.at = At::End,
        }
        Ok(())
    }
}

/// The length of a member's header in bytes; `None` where there is none that Java can read.
fn header_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_BYTES)?;
    let flags = *header.get(FLAGS_POSITION)?;
    if !header.starts_with(&MEMBER_START) {
        return None;
    }
    let mut end = HEADER_BYTES;
    if flags & EXTRA_FIELD != 0 {
        let length = bytes.get(end..)?.first_chunk::<2>()?;
        end += 2 + usize::from(u16::from_le_bytes(*length));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            end += bytes.get(end..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    let covered = bytes.get(..end)?;
    if flags & HEADER_CHECKSUM != 0 {
        let checksum = bytes.get(end..)?.first_chunk::<2>()?;
        if u32::from(u16::from_le_bytes(*checksum)) != crc32fast::hash(covered) & 0xffff {
            return None;
        }
        end += 2;
    }
    Some(end)
}
