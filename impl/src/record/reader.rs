//! Batches one after the other in a buffer (Kafka: `ByteBufferLogInputStream`).

use bytes::Bytes;

use super::batch::RecordBatch;
use super::cursor::Cursor;
use super::error::DecodeError;
use super::header::{LOG_OVERHEAD_BYTES, MAGIC_POSITION, MAGIC_V2, MIN_BATCH_LENGTH};

/// Iterates over the batches of a buffer.
///
/// A batch that the buffer holds only in part ends the iteration without an error, as a fetch response may end in the
/// middle of a batch. An error ends the iteration too, because nothing tells where a next batch would begin.
#[derive(Clone, Debug)]
pub struct BatchReader {
    frames: Frames,
}

impl BatchReader {
    /// Reads from the beginning of the buffer.
    #[must_use]
    pub fn new(buf: Bytes) -> Self {
        Self { frames: Frames::new(buf) }
    }

    /// Byte position in the buffer where the next batch begins, or where reading ended.
    #[must_use]
    pub fn position(&self) -> usize {
        self.frames.position
    }
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frames.next_with(RecordBatch::decode_sized)
    }
}

impl std::iter::FusedIterator for BatchReader {}

/// The batches of a buffer by their sizes alone.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    buf: Bytes,
    pub(super) position: usize,
    failed: bool,
}

impl Frames {
    pub(super) fn new(buf: Bytes) -> Self {
        Self { buf, position: 0, failed: false }
    }

    /// The next whole batch, read by a function of the buffer, a position and a size that also tells the position behind it.
    pub(super) fn next_with<T>(
        &mut self,
        read: impl FnOnce(&Bytes, usize, usize) -> Result<(T, usize), DecodeError>,
    ) -> Option<Result<T, DecodeError>> {
        if self.failed {
            return None;
        }
        let result = match frame_at(&self.buf, self.position) {
            Ok(Frame::Partial { .. }) => return None,
            Ok(Frame::Complete { size }) => read(&self.buf, self.position, size),
            Err(error) => Err(error),
        };
        Some(match result {
            Ok((batch, next)) => {
                self.position = next;
                Ok(batch)
            }
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        })
    }
}

/// The size of the batch that begins at byte `at`.
///
/// # Errors
/// As [`frame_at`]; and when the buffer holds the batch in part only.
pub(super) fn size_at(buf: &Bytes, at: usize) -> Result<usize, DecodeError> {
    match frame_at(buf, at)? {
        Frame::Complete { size } => Ok(size),
        Frame::Partial { needed } => {
            let position = at.min(buf.len());
            Err(DecodeError::UnexpectedEnd { position, what: "batch", needed, available: buf.len() - position })
        }
    }
}

/// What a buffer holds at some position.
enum Frame {
    /// A whole batch of `size` bytes.
    Complete { size: usize },
    /// The beginning of a batch, of which at least `needed` bytes should be there.
    Partial { needed: usize },
}

/// Finds the batch that begins at byte `at`, by its size and its magic alone.
///
/// # Errors
/// When the size or the magic is none that a batch can have. The order of the checks is Kafka's: a size is judged once
/// 12 bytes are there, a magic once 17 are.
fn frame_at(buf: &Bytes, at: usize) -> Result<Frame, DecodeError> {
    let mut cursor = Cursor::starting_at(buf, at);
    let available = cursor.remaining();
    if available < LOG_OVERHEAD_BYTES {
        return Ok(Frame::Partial { needed: LOG_OVERHEAD_BYTES });
    }
    cursor.i64("base offset")?;
    let position = cursor.position();
    let length = cursor.i32("batch length")?;
    if length < MIN_BATCH_LENGTH {
        return Err(DecodeError::BatchLengthTooSmall { position, length, minimum: MIN_BATCH_LENGTH });
    }
    if available <= MAGIC_POSITION {
        return Ok(Frame::Partial { needed: MAGIC_POSITION + 1 });
    }
    cursor.i32("partition leader epoch")?;
    let position = cursor.position();
    let magic = cursor.i8("magic")?;
    if !(0..=MAGIC_V2).contains(&magic) {
        return Err(DecodeError::UnknownMagic { position, magic });
    }
    // The length is positive here; where it exceeds the address space, so does what is needed.
    let size = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(LOG_OVERHEAD_BYTES);
    if size > available { Ok(Frame::Partial { needed: size }) } else { Ok(Frame::Complete { size }) }
}
