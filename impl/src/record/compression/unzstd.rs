//! Zstd, as it is read (Kafka: `ZstdCompression.wrapForInput`).

use bytes::{Buf as _, Bytes};
use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer};

use super::{Failure, Output};

const DAMAGED: Failure = Failure::Corrupt("a zstd frame is damaged or cut");
/// How many bytes come out at a time, at most.
const CHUNK_BYTES: usize = 16 * 1024;
/// How many error codes the library has room for.
const ERROR_CODES: i32 = 120;
/// How many bytes of a stream Kafka's reader takes at a time: what the library recommends.
const INPUT_BYTES: usize = 128 * 1024 + 3;

/// Frames one after the other, which are one stream. A frame whose window is above the library's limit, 128 MiB, is refused, as
/// it is by Kafka's reader. So is one that is cut, unless Kafka's reader took its beginning together with the end of a whole frame:
/// then the cut is the end.
pub(super) struct Frames {
    /// `None` until the first bytes are asked for.
    context: Option<DCtx<'static>>,
    rest: Bytes,
    /// How many bytes of it were taken.
    taken: usize,
    /// Whether input has to be taken before anything else comes out.
    needs_input: bool,
    /// Whether a frame has ended in the input that was taken.
    frame_ended: bool,
}

/// What one call of the library did.
struct Progress {
    written: usize,
    is_end_of_frame: bool,
}

impl Frames {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { context: None, rest: bytes, taken: 0, needs_input: true, frame_ended: true }
    }

    /// Decodes up to so many bytes as Kafka's reader does it in one go (Java: `ZstdInputStreamNoFinalizer.read`); false at the end.
    pub(super) fn read(&mut self, length: usize, out: &mut Output) -> Result<bool, Failure> {
        loop {
            match self.read_once(length, out)? {
                Some(0) => {}
                Some(_) => return Ok(true),
                None => return Ok(false),
            }
        }
    }

    /// How many bytes came out; `None` at the end.
    fn read_once(&mut self, length: usize, out: &mut Output) -> Result<Option<usize>, Failure> {
        let mut written = 0_usize;
        loop {
            let unread = self.rest.len().saturating_sub(self.taken);
            let took = self.needs_input && (unread > 0 || written == 0);
            if took {
                self.rest.advance(self.taken.min(self.rest.len()));
                self.taken = self.rest.len().min(INPUT_BYTES);
                if self.taken == 0 {
                    return if self.frame_ended { Ok(None) } else { Err(DAMAGED) };
                }
                self.frame_ended = false;
            }
            let progress = self.decode(length.saturating_sub(written), out)?;
            written = written.saturating_add(progress.written);
            if progress.is_end_of_frame {
                self.frame_ended = true;
                self.needs_input = self.taken == 0;
                return Ok(Some(written));
            }
            self.needs_input = written < length;
            if written >= length || progress.written == 0 {
                return Ok(Some(written));
            }
        }
    }

    /// Decodes what the input that was taken gives, within `room`.
    fn decode(&mut self, room: usize, out: &mut Output) -> Result<Progress, Failure> {
        let context = match &mut self.context {
            Some(context) => context,
            None => self.context.insert(DCtx::try_create().ok_or(Failure::Corrupt("no memory for a zstd decoder"))?),
        };
        let mut chunk = [0; CHUNK_BYTES];
        let mut total = 0_usize;
        loop {
            let space = chunk.get_mut(..CHUNK_BYTES.min(room.saturating_sub(total))).unwrap_or_default();
            let size = space.len();
            let mut input = InBuffer::around(self.rest.get(..self.taken).unwrap_or_default());
            let mut output = OutBuffer::around(space);
            let left = context.decompress_stream(&mut output, &mut input).map_err(|_| DAMAGED)?;
            if is_taken_for_error(left) {
                return Err(DAMAGED);
            }
            let (read, written) = (input.pos(), output.pos());
            self.rest.advance(read);
            self.taken = self.taken.saturating_sub(read);
            out.push(chunk.get(..written).unwrap_or_default())?;
            total = total.saturating_add(written);
            if left == 0 || written < size || total >= room {
                return Ok(Progress { written: total, is_end_of_frame: left == 0 });
            }
        }
    }
}

/// Kafka's reader has 32 bits for the number of bytes that the library wants next, of which the highest mean errors. They are wanted
/// of a frame to skip that says it has 4 GiB.
fn is_taken_for_error(wanted: usize) -> bool {
    let [.., a, b, c, d] = wanted.to_be_bytes();
    let wanted = i32::from_be_bytes([a, b, c, d]);
    wanted < 0 && wanted > -ERROR_CODES
}
