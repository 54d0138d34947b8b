//! Snappy in the framing of xerial's `SnappyOutputStream`, which is not the official one.

use bytes::{Buf as _, Bytes};

use super::{Failure, Output};

/// Begins a stream: 0x82, "SNAPPY", 0.
const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// The magic, the version and the oldest version that can read it.
const HEADER_BYTES: usize = 16;
/// What Kafka's writers put in both version fields, and the least that its readers accept between chunks.
const VERSION: i32 = 1;
/// The most bytes of a chunk that Kafka's reader takes.
const MAX_CHUNK_BYTES: usize = 512 * 1024 * 1024;
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
    is_open: bool,
    /// What came out of a block and was not read.
    block: Bytes,
}

impl Blocks {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, is_open: false, block: Bytes::new() }
    }

    /// Reads the header, or the raw block that has none, of which so many bytes may come out.
    pub(super) fn open(&mut self, room: usize) -> Result<(), Failure> {
        if self.is_open {
            return Ok(());
        }
        self.is_open = true;
        if self.rest.is_empty() {
            return Err(Failure::Corrupt("it is empty"));
        }
        if self.rest.len() < HEADER_BYTES || !self.rest.starts_with(&MAGIC) {
            self.block = decode(&std::mem::take(&mut self.rest), room)?;
            return Ok(());
        }
        self.rest.advance(HEADER_BYTES);
        Ok(())
    }

    /// Reads so many bytes, or what there is; false at the end.
    pub(super) fn read(&mut self, length: usize, out: &mut Output) -> Result<bool, Failure> {
        self.open(out.room())?;
        let mut left = length;
        while left > 0 {
            if self.block.is_empty() && !self.next_block(out.room())? {
                return Ok(left < length);
            }
            let part = self.block.split_to(left.min(self.block.len()));
            out.push(&part)?;
            left -= part.len();
        }
        Ok(true)
    }

    /// Decodes a block; false at the end. Fewer bytes than a chunk's length end the stream. What begins like a header and is none
    /// ends what is read at once; what follows is read the next time.
    fn next_block(&mut self, room: usize) -> Result<bool, Failure> {
        while self.rest.first_chunk::<4>().is_some_and(|length| MAGIC.starts_with(length)) {
            let header = self.rest.first_chunk::<HEADER_BYTES>().ok_or(Failure::Corrupt("a header between chunks is cut"))?;
            let is_header = is_header(header)?;
            self.rest.advance(HEADER_BYTES);
            if !is_header {
                return Ok(false);
            }
        }
        let Some((length, after)) = self.rest.split_first_chunk::<4>() else { return Ok(false) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_CHUNK_BYTES {
            return Err(Failure::Thrown("SnappyError", "a chunk is longer than 512 MiB"));
        }
        let chunk = after.get(..length).ok_or(Failure::Corrupt("a chunk is cut"))?;
        self.block = decode(chunk, room)?;
        self.rest.advance(LENGTH_BYTES + length);
        Ok(true)
    }
}

/// Whether it is a header; an error if it is one of an unknown version.
fn is_header(header: &[u8; HEADER_BYTES]) -> Result<bool, Failure> {
    let version = header.strip_prefix(&MAGIC).and_then(|versions| versions.first_chunk::<4>());
    match version.map(|version| i32::from_be_bytes(*version)) {
        Some(version) if version < VERSION => Err(Failure::Corrupt("its version is below 1")),
        version => Ok(version.is_some()),
    }
}

fn decode(bytes: &[u8], room: usize) -> Result<Bytes, Failure> {
    let length = snap::raw::decompress_len(bytes).map_err(|_| Failure::Corrupt("a block does not say its length"))?;
    if length > room {
        return Err(Failure::TooLarge);
    }
    let mut block = vec![0; length];
    // The library writes the length that the block declares, or fails.
    match snap::raw::Decoder::new().decompress(bytes, &mut block) {
        Ok(_) => Ok(Bytes::from(block)),
        Err(_) => Err(Failure::Corrupt("a block is damaged")),
    }
}
