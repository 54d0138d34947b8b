//! Snappy in the framing of xerial's `SnappyOutputStream`, which is not the official one.

use super::{Failure, Output};

/// Begins a stream: 0x82, "SNAPPY", 0.
const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// The magic, the version and the oldest version that can read it.
const HEADER_BYTES: usize = 16;
/// What Kafka's writers put in both version fields, and the least that its readers accept.
const VERSION: i32 = 1;
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

/// Java: `SnappyInputStream`. Input without the header is one raw block, and a header may stand between chunks, where
/// streams were concatenated.
pub(super) fn decompress(bytes: &[u8], out: &mut Output) -> Result<(), Failure> {
    if bytes.is_empty() {
        return Err(Failure::Corrupt("it is empty"));
    }
    let Some(mut rest) = after_header(bytes)? else {
        return block(bytes, out);
    };
    // Fewer bytes than a chunk's length end the stream, and so does what begins like a header but is none.
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        if MAGIC.starts_with(length) {
            let Some(after) = after_header(rest)? else { break };
            rest = after;
            continue;
        }
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let (chunk, after) = after.split_at_checked(length).ok_or(Failure::Corrupt("a chunk is cut"))?;
        block(chunk, out)?;
        rest = after;
    }
    Ok(())
}

/// What follows a header; `None` when the bytes do not begin with one.
fn after_header(bytes: &[u8]) -> Result<Option<&[u8]>, Failure> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let Some(versions) = header.strip_prefix(&MAGIC) else {
        return Ok(None);
    };
    let version = versions.first_chunk::<4>().map_or(0, |version| i32::from_be_bytes(*version));
    if version < VERSION { Err(Failure::Corrupt("its version is below 1")) } else { Ok(Some(rest)) }
}

fn block(bytes: &[u8], out: &mut Output) -> Result<(), Failure> {
    let length = snap::raw::decompress_len(bytes).map_err(|_| Failure::Corrupt("a block does not say its length"))?;
    // The library writes the length that the block declares, or fails.
    out.fill(length, |space| snap::raw::Decoder::new().decompress(bytes, space))?
        .map_err(|_| Failure::Corrupt("a block is damaged"))
}
