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

/// How many bytes of a stream Java's reader takes at a time.
const INPUT_BYTES: usize = 8 * 1024;
/// How many bytes come out at a time, at most.
const CHUNK_BYTES: usize = 16 * 1024;
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
    /// How many bytes of it Java's reader has taken.
    taken: usize,
    at: At,
    inflate: Decompress,
    checksum: Hasher,
}

/// Where in the stream the next bytes are.
#[derive(Clone, Copy)]
enum At {
    Start,
    Member,
    Trailer,
    End,
}

impl Members {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, taken: 0, at: At::Start, inflate: Decompress::new(false), checksum: Hasher::new() }
    }

    /// Reads the first header.
    pub(super) fn open(&mut self) -> Result<(), Failure> {
        if let At::Start = self.at {
            let length = header_length(&self.rest).ok_or(Failure::Corrupt("it does not begin with a gzip header"))?;
            self.begin(length, 0);
        }
        Ok(())
    }

    /// Inflates up to so many bytes as Java does it in one go: what Java's inflater makes of the input that it has. False at the end.
    pub(super) fn read(&mut self, length: usize, out: &mut Output) -> Result<bool, Failure> {
        self.open()?;
        loop {
            match self.at {
                At::Trailer => self.end_of_member()?,
                At::Start | At::End => return Ok(false),
                At::Member if self.taken == 0 => {
                    self.taken = self.rest.len().min(INPUT_BYTES);
                    if self.taken == 0 {
                        return Err(Failure::Corrupt("a gzip member is cut"));
                    }
                }
                At::Member => {
                    if self.inflate(length, out)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn begin(&mut self, header_length: usize, taken: usize) {
        self.rest.advance(header_length);
        self.taken = taken;
        self.inflate.reset(false);
        self.checksum.reset();
        self.at = At::Member;
    }

    /// Inflates of a member what the input that was taken gives; false when no bytes came out.
    fn inflate(&mut self, length: usize, out: &mut Output) -> Result<bool, Failure> {
        let mut chunk = [0; CHUNK_BYTES];
        let mut inflated = 0;
        while inflated < length {
            let space = chunk.get_mut(..CHUNK_BYTES.min(length - inflated)).unwrap_or_default();
            let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
            let input = self.rest.get(..self.taken).unwrap_or_default();
            let status = self.inflate.decompress(input, space, FlushDecompress::None);
            let status = status.map_err(|_| Failure::Corrupt("a gzip member is damaged"))?;
            let count = |now: u64, before: u64| usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX);
            let (read, written) = (count(self.inflate.total_in(), read), count(self.inflate.total_out(), written));
            let (read, room) = (read.min(self.taken), space.len());
            self.rest.advance(read);
            self.taken -= read;
            let bytes = space.get(..written).unwrap_or_default();
            self.checksum.update(bytes);
            out.push(bytes)?;
            inflated += bytes.len();
            match status {
                Status::StreamEnd => {
                    self.at = At::Trailer;
                    break;
                }
                Status::Ok | Status::BufError if read == 0 && written == 0 && self.taken > 0 => {
                    return Err(Failure::Corrupt("a gzip member is damaged"));
                }
                Status::Ok | Status::BufError if written < room => break,
                Status::Ok | Status::BufError => {}
            }
        }
        Ok(inflated > 0)
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
        // Java looks for another member where it has room for the least that it can be, and where it has not taken all input yet.
        let taken = self.taken.saturating_sub(TRAILER_BYTES);
        let has_room = taken > HEADER_BYTES + TRAILER_BYTES || self.rest.len() > taken;
        match header_length(&self.rest).filter(|_| has_room) {
            Some(length) => self.begin(length, taken.saturating_sub(length)),
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
