//! Snappy in the framing of xerial's `SnappyOutputStream`, which is not the official one.

use bytes::{Buf as _, Bytes};

use super::{Failure, Output};

/// Begins a stream: 0x82, "SNAPPY", 0.
const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// The magic, the version and the oldest version that can read it.
const HEADER_BYTES: usize = 16;
/// What Kafka's writers put in both version fields, and the least that its readers accept between chunks.
const VERSION: i32 = 1;
/// Of the length in front of a block.
const LENGTH_BYTES: usize = 4;
/// Input bytes of a block (Kafka: `SnappyCompression` keeps the default of `SnappyOutputStream`).
const BLOCK_BYTES: usize = 32 * 1024;

/// The header and the blocks; `None` when the library refuses a block, which is below its limit always.
pub(super) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&VERSION.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in bytes.chunks(BLOCK_BYTES) {
        let compressed = encoder.compress_vec(block).ok()?;
        out.extend_from_slice(&u32::try_from(compressed.len()).ok()?.to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    Some(out)
}

/// The blocks of a stream (Java: `SnappyInputStream`). Input without the header is one raw block, and a header may stand
/// between chunks, where streams were concatenated. Only there does its version count.
pub(super) struct Blocks {
    rest: Bytes,
    started: bool,
}

impl Blocks {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, started: false }
    }

    /// Decodes a block; false at the end. Fewer bytes than a chunk's length end the stream. What begins like a header is skipped
    /// as one, whatever follows its first four bytes.
    pub(super) fn step(&mut self, out: &mut Output) -> Result<bool, Failure> {
        if !self.started {
            self.started = true;
            if self.rest.is_empty() {
                return Err(Failure::Corrupt("it is empty"));
            }
            if self.rest.len() < HEADER_BYTES || !self.rest.starts_with(&MAGIC) {
                block(&std::mem::take(&mut self.rest), out)?;
                return Ok(true);
            }
            self.rest.advance(HEADER_BYTES);
        }
        while self.rest.first_chunk::<4>().is_some_and(|length| MAGIC.starts_with(length)) {
            let header = self.rest.first_chunk::<HEADER_BYTES>().ok_or(Failure::Corrupt("a header between chunks is cut"))?;
            check_version(header)?;
            self.rest.advance(HEADER_BYTES);
        }
        let Some((length, after)) = self.rest.split_first_chunk::<4>() else { return Ok(false) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let chunk = after.get(..length).ok_or(Failure::Corrupt("a chunk is cut"))?;
        block(chunk, out)?;
        self.rest.advance(LENGTH_BYTES + length);
        Ok(true)
    }
}

/// The version of a header, if it is one.
fn check_version(header: &[u8; HEADER_BYTES]) -> Result<(), Failure> {
    let version = header.strip_prefix(&MAGIC).and_then(|versions| versions.first_chunk::<4>());
    match version {
        Some(version) if i32::from_be_bytes(*version) < VERSION => Err(Failure::Corrupt("its version is below 1")),
        _ => Ok(()),
    }
}

fn block(bytes: &[u8], out: &mut Output) -> Result<(), Failure> {
    let length = snap::raw::decompress_len(bytes).map_err(|_| Failure::Corrupt("a block does not say its length"))?;
    // The library writes the length that the block declares, or fails.
    out.fill(length, |space| snap::raw::Decoder::new().decompress(bytes, space))?
        .map_err(|_| Failure::Corrupt("a block is damaged"))
}
