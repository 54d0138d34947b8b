//! Zstd, as it is read (Kafka: `ZstdCompression.wrapForInput`).

use bytes::{Buf as _, Bytes};
use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer};

use super::{Failure, Output};

/// How many bytes come out at a time, at most.
const CHUNK_BYTES: usize = 16 * 1024;

/// Frames one after the other, which are one stream. A frame whose window is above the library's limit, 128 MiB, is refused, as
/// it is by Kafka's reader.
pub(super) struct Frames {
    /// `None` until the first bytes are asked for.
    context: Option<DCtx<'static>>,
    rest: Bytes,
    within_frame: bool,
}

impl Frames {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { context: None, rest: bytes, within_frame: false }
    }

    /// Decodes some bytes; false at the end.
    pub(super) fn step(&mut self, out: &mut Output) -> Result<bool, Failure> {
        let damaged = || Failure::Corrupt("a zstd frame is damaged or cut");
        let context = match &mut self.context {
            Some(context) => context,
            None => self.context.insert(DCtx::try_create().ok_or(Failure::Corrupt("no memory for a zstd decoder"))?),
        };
        let mut chunk = [0; CHUNK_BYTES];
        while self.within_frame || !self.rest.is_empty() {
            let mut input = InBuffer::around(&self.rest);
            let mut output = OutBuffer::around(&mut chunk[..]);
            let left = context.decompress_stream(&mut output, &mut input).map_err(|_| damaged())?;
            let (read, written) = (input.pos(), output.pos());
            self.rest.advance(read);
            self.within_frame = left > 0;
            if written > 0 {
                out.push(chunk.get(..written).unwrap_or_default())?;
                return Ok(true);
            }
            if read == 0 && self.within_frame {
                return Err(damaged());
            }
        }
        Ok(false)
    }
}
