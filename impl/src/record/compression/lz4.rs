//! LZ4 frames as Kafka's `Lz4BlockInputStream` and `Lz4BlockOutputStream` have them.
//!
//! Not those of a library: Kafka refuses linked blocks, does not look at the content's checksum, and wrote wrong
//! checksums of the frame descriptor in sets of magic 0.

use bytes::Bytes;
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use twox_hash::XxHash32;

use super::{Failure, Output, lz4_block};

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
/// Version 1, independent blocks; no checksums, no content size.
const FLAGS: u8 = 0x60;
/// Blocks of 64 KiB.
const BLOCK_DESCRIPTOR: u8 = 0x40;
/// Position of the checksum in a frame without a content size.
const CHECKSUM_POSITION: usize = 6;
/// Input bytes of a block.
const BLOCK_BYTES: usize = 64 * 1024;
/// Ends the frame.
const END_MARK: [u8; 4] = [0; 4];
/// Set in a block's length when the block is stored as it is.
const STORED: u32 = 1 << 31;

const DAMAGED: Failure = Failure::Corrupt("a block is damaged");
const UNDERFLOW: Failure = Failure::Thrown("BufferUnderflowException", "a checksum is cut");

/// Whether the checksum of the frame descriptor has to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) enum DescriptorChecksum {
    /// Yes.
    Verify,
    /// No: a set of magic 0.
    Ignore,
}

/// A frame; `None` when the library finds its output too small, which it was given at its own word.
pub(super) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[FLAGS, BLOCK_DESCRIPTOR, descriptor_checksum(&[FLAGS, BLOCK_DESCRIPTOR])]);
    let mut scratch = vec![0; get_maximum_output_size(BLOCK_BYTES)];
    for block in bytes.chunks(BLOCK_BYTES) {
        let written = compress_into(block, &mut scratch).ok()?;
        let (length_flag, stored) = if written < block.len() { (0, scratch.get(..written)?) } else { (STORED, block) };
        out.extend_from_slice(&(u32::try_from(stored.len()).ok()? | length_flag).to_le_bytes());
        out.extend_from_slice(stored);
    }
    out.extend_from_slice(&END_MARK);
    Some(out)
}

/// As [`compress`], with the checksum that sets of magic 0 have: over the frame's magic too, where the format says over the
/// descriptor alone.
pub(super) fn compress_for_magic_0(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = compress(bytes)?;
    let checksum = descriptor_checksum(out.get(..CHECKSUM_POSITION)?);
    *out.get_mut(CHECKSUM_POSITION)? = checksum;
    Some(out)
}

/// The blocks of one frame; what follows its end mark is not looked at.
pub(super) struct Blocks {
    input: Input,
    checksum: DescriptorChecksum,
    /// Once its header is read.
    frame: Option<Frame>,
}

impl Blocks {
    pub(super) fn new(bytes: Bytes, checksum: DescriptorChecksum) -> Self {
        Self { input: Input(bytes), checksum, frame: None }
    }

    /// Reads the frame's header.
    pub(super) fn open(&mut self) -> Result<Frame, Failure> {
        match self.frame {
            Some(frame) => Ok(frame),
            None => Ok(*self.frame.insert(Frame::read(&mut self.input, self.checksum)?)),
        }
    }

    /// Decodes a block; false at the end mark. Kafka's reader looks for the checksums without a look at what is left.
    pub(super) fn read(&mut self, out: &mut Output) -> Result<bool, Failure> {
        let frame = self.open()?;
        let header = self.input.u32_le()?;
        let length = usize::try_from(header & !STORED).unwrap_or(usize::MAX);
        if length == 0 {
            if frame.content_checksum {
                self.input.u32_le().map_err(|_| UNDERFLOW)?;
            }
            return Ok(false);
        }
        if length > frame.max_block_bytes {
            return Err(Failure::Corrupt("a block exceeds the frame's block size"));
        }
        let block = self.input.take(length)?;
        let some = if header & STORED == 0 {
            // Kafka's reader takes a block of nothing for the end.
            decode_block(&block, frame.max_block_bytes, out)?
        } else {
            out.push(&block)?;
            true
        };
        if frame.block_checksums && self.input.u32_le().map_err(|_| UNDERFLOW)? != XxHash32::oneshot(0, &block) {
            return Err(Failure::Corrupt("a block's checksum is wrong"));
        }
        Ok(some)
    }
}

/// Decodes a block that Kafka's library takes; false when nothing came out of it.
fn decode_block(block: &[u8], max_block_bytes: usize, out: &mut Output) -> Result<bool, Failure> {
    let length = lz4_block::decoded_length(block, max_block_bytes).ok_or(DAMAGED)?;
    match out.fill(length, |space| decompress_into(block, space))? {
        Ok(()) => Ok(length > 0),
        Err(_) => Err(DAMAGED),
    }
}

/// What a frame's header says of its blocks.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    max_block_bytes: usize,
    block_checksums: bool,
    /// Behind the end mark; it has to be there, whatever it says.
    content_checksum: bool,
}

impl Frame {
    fn read(input: &mut Input, checksum: DescriptorChecksum) -> Result<Self, Failure> {
        if *input.take(MAGIC.len())? != MAGIC {
            return Err(Failure::Corrupt("it does not begin with the magic of a frame"));
        }
        let descriptor = input.0.clone();
        let (flags, blocks) = (input.u8()?, input.u8()?);
        check_flags(flags)?;
        let max_block_bytes = max_block_bytes(blocks)?;
        let content_size = if flags & 0x08 == 0 { 0 } else { 8 };
        input.take(content_size)?;
        let covered = descriptor.get(..2 + content_size).unwrap_or_default();
        if input.u8()? != descriptor_checksum(covered) && checksum == DescriptorChecksum::Verify {
            return Err(Failure::Corrupt("the checksum of the frame descriptor is wrong"));
        }
        Ok(Self { max_block_bytes, block_checksums: flags & 0x10 != 0, content_checksum: flags & 0x04 != 0 })
    }
}

fn check_flags(flags: u8) -> Result<(), Failure> {
    if flags & 0x03 != 0 {
        return Err(Failure::Corrupt("reserved flags are set"));
    }
    if flags & 0x20 == 0 {
        return Err(Failure::Corrupt("its blocks depend on each other"));
    }
    if flags >> 6 != 1 {
        return Err(Failure::Corrupt("its version is not 1"));
    }
    Ok(())
}

/// 64 KiB, 256 KiB, 1 MiB or 4 MiB (Kafka: `Lz4BlockOutputStream.BD`).
fn max_block_bytes(descriptor: u8) -> Result<usize, Failure> {
    if descriptor & 0x8f != 0 {
        return Err(Failure::Corrupt("reserved bits of the block descriptor are set"));
    }
    match descriptor >> 4 {
        size @ 4..=7 => Ok(1 << (2 * u32::from(size) + 8)),
        _ => Err(Failure::Corrupt("the block size is none of 4 to 7")),
    }
}

fn descriptor_checksum(descriptor: &[u8]) -> u8 {
    let [_, second, ..] = XxHash32::oneshot(0, descriptor).to_le_bytes();
    second
}

/// What is left of the input.
struct Input(Bytes);

impl Input {
    fn take(&mut self, length: usize) -> Result<Bytes, Failure> {
        if length > self.0.len() {
            return Err(Failure::Corrupt("the frame is cut"));
        }
        Ok(self.0.split_to(length))
    }

    fn u8(&mut self) -> Result<u8, Failure> {
        self.take(1).map(|byte| byte.first().copied().unwrap_or_default())
    }

    fn u32_le(&mut self) -> Result<u32, Failure> {
        let bytes = self.take(4)?;
        Ok(bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }
}
