//! Reading a log file batch by batch (Kafka: `FileLogInputStream`).

use bytes::Bytes;

use crate::record::{
    ATTRIBUTES_POSITION, AnyBatch, DecodeError, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC_POSITION, MAGIC_V2, MIN_BATCH_LENGTH,
    RecordBatch,
};
use crate::storage::{Storage, StorageError};

/// Fewer bytes than this at the end of a file are no batch, whatever they are.
const MIN_BYTES: u64 = 18;

/// How much is read at once, in bytes; more when a batch is larger.
const WINDOW_BYTES: usize = 1 << 20;

/// Reads the batches of a file in order, holding one window of it in memory.
pub(crate) struct Scanner<'a, S> {
    storage: &'a S,
    name: &'a str,
    len: u64,
    position: u64,
    window: Bytes,
    window_at: u64,
}

/// A batch, or only its header.
pub(crate) struct BatchHead {
    /// Without its records, and with another size and computed CRC, unless it is whole.
    pub(crate) batch: AnyBatch,
    pub(crate) position: u64,
    /// In bytes.
    pub(crate) size: u64,
    is_whole: bool,
}

impl BatchHead {
    /// A batch with its records.
    pub(crate) fn whole(batch: AnyBatch, position: u64) -> Self {
        Self { size: batch.size_in_bytes() as u64, batch, position, is_whole: true }
    }
}

fn magic_of(bytes: &[u8]) -> i8 {
    bytes.get(MAGIC_POSITION).copied().map_or(0, u8::cast_signed)
}

/// Why the bytes at the scanner's position are no batch.
#[derive(Debug)]
pub(crate) enum ScanError {
    Corrupt(DecodeError),
    Unsupported(DecodeError),
    Storage(StorageError),
}

impl From<StorageError> for ScanError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<DecodeError> for ScanError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::UnsupportedMagic { .. } => Self::Unsupported(error),
            other => Self::Corrupt(other),
        }
    }
}

impl<'a, S: Storage> Scanner<'a, S> {
    /// Reads from a byte of the file; a file that is not there is empty.
    pub(crate) fn new(storage: &'a S, name: &'a str, from: u64) -> Result<Self, StorageError> {
        Ok(Self { storage, name, len: storage.len(name)?.unwrap_or(0), position: from, window: Bytes::new(), window_at: from })
    }

    /// Goes on at another byte, as if the file ended at `end` where that is in front of its end. What was read is kept if it serves.
    pub(crate) fn seek(&mut self, position: u64, end: u64) -> Result<(), StorageError> {
        self.len = self.storage.len(self.name)?.unwrap_or(0).min(end);
        self.position = position;
        let window_end = self.window_at.saturating_add(self.window.len() as u64);
        if position < self.window_at || position > window_end {
            self.window = Bytes::new();
            self.window_at = position;
        }
        Ok(())
    }

    /// Where the file ends.
    pub(crate) fn end(&self) -> u64 {
        self.len
    }

    /// Where the next batch begins, or where reading ended.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch, not checked beyond its header; `None` at the end and when the last batch is not whole.
    pub(crate) fn next(&mut self) -> Result<Option<AnyBatch>, ScanError> {
        let Some((size, length)) = self.frame()? else { return Ok(None) };
        let bytes = self.bytes(size)?;
        // The magic lies in front of what the CRC covers: Kafka takes any above 2 for 2, and keeps the batch.
        let batch = match magic_of(&bytes) > MAGIC_V2 && length >= MIN_BATCH_LENGTH {
            true => AnyBatch::V2(RecordBatch::decode_on_file(&bytes)?),
            false => AnyBatch::decode(&bytes, 0)?.0,
        };
        self.position = self.position.saturating_add(batch.size_in_bytes() as u64);
        Ok(Some(batch))
    }

    /// As [`Scanner::next`], without the records of a large batch.
    pub(crate) fn next_head(&mut self) -> Result<Option<BatchHead>, ScanError> {
        let position = self.position;
        let Some((size, _)) = self.frame()? else { return Ok(None) };
        if size <= WINDOW_BYTES {
            return Ok(self.next()?.map(|batch| BatchHead::whole(batch, position)));
        }
        let batch = AnyBatch::decode_head(&self.bytes(HEADER_BYTES)?)?;
        self.position = self.position.saturating_add(size as u64);
        Ok(Some(BatchHead { batch, position, size: size as u64, is_whole: false }))
    }

    /// The batch with its records; reading goes on behind it.
    pub(crate) fn whole(&mut self, head: BatchHead) -> Result<AnyBatch, ScanError> {
        if head.is_whole {
            return Ok(head.batch);
        }
        self.position = head.position;
        // It was there a moment ago.
        Ok(self.next()?.unwrap_or(head.batch))
    }

    /// Whether the CRC of a batch is that of its bytes, which are read piece by piece.
    pub(crate) fn is_valid(&self, head: &BatchHead) -> Result<bool, StorageError> {
        if head.is_whole {
            return Ok(head.batch.ensure_valid().is_ok());
        }
        let is_v2 = head.batch.as_v2().is_some();
        let covered = if is_v2 { ATTRIBUTES_POSITION } else { MAGIC_POSITION };
        let (mut at, end) = (head.position.saturating_add(covered as u64), head.position.saturating_add(head.size));
        let (mut v2, mut legacy) = (0, crc32fast::Hasher::new());
        while at < end {
            let wanted = usize::try_from(end - at).unwrap_or(WINDOW_BYTES).min(WINDOW_BYTES);
            let piece = self.storage.read(self.name, at, wanted)?;
            if piece.is_empty() {
                break;
            }
            if is_v2 {
                v2 = crc32c::crc32c_append(v2, &piece)
            } else {
                legacy.update(&piece)
            }
            at = at.saturating_add(piece.len() as u64);
        }
        Ok(head.batch.stored_crc() == if is_v2 { v2 } else { legacy.finalize() })
    }

    /// Size and length field of the next batch, which is there as a whole unless no batch can have the length: that is for the
    /// decoder to refuse.
    fn frame(&mut self) -> Result<Option<(usize, i32)>, ScanError> {
        let left = self.len.saturating_sub(self.position);
        if left < MIN_BYTES {
            return Ok(None);
        }
        let head = self.bytes(MAGIC_POSITION + 1)?;
        let length = head.get(8..LOG_OVERHEAD_BYTES).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes);
        let size = match usize::try_from(length.max(MIN_BATCH_LENGTH)) {
            Ok(length) => length.saturating_add(LOG_OVERHEAD_BYTES),
            Err(_) => usize::MAX,
        };
        Ok((size as u64 <= left || length < MIN_BATCH_LENGTH).then_some((size, length)))
    }

    /// The next batch; one of a magic that there is none of is an error, as where Kafka reads from memory.
    pub(crate) fn next_known(&mut self) -> Result<Option<AnyBatch>, ScanError> {
        let batch = self.next()?;
        match batch.as_ref().and_then(AnyBatch::as_v2).map(|batch| batch.header().magic) {
            Some(magic) if magic != MAGIC_V2 => {
                Err(ScanError::Corrupt(DecodeError::UnknownMagic { position: MAGIC_POSITION, magic }))
            }
            _ => Ok(batch),
        }
    }

    /// `wanted` bytes from the position on, or what the file has of them.
    fn bytes(&mut self, wanted: usize) -> Result<Bytes, StorageError> {
        let skip = usize::try_from(self.position.saturating_sub(self.window_at));
        let skip = skip.unwrap_or(usize::MAX).min(self.window.len());
        if self.window.len() - skip < wanted {
            let max = wanted.max(WINDOW_BYTES);
            // Dropped first, so that the old and the new window are never there at once.
            self.window = Bytes::new();
            self.window = self.storage.read(self.name, self.position, max)?;
            self.window_at = self.position;
            return Ok(self.window.slice(..wanted.min(self.window.len())));
        }
        Ok(self.window.slice(skip..skip.saturating_add(wanted)))
    }
}
