//! Reading a log file batch by batch (Kafka: `FileLogInputStream`).

use bytes::Bytes;

use crate::record::{AnyBatch, DecodeError, LOG_OVERHEAD_BYTES, MAGIC_POSITION, MAGIC_V2, MIN_BATCH_LENGTH, RecordBatch};
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
        let left = self.len.saturating_sub(self.position);
        if left < MIN_BYTES {
            return Ok(None);
        }
        let head = self.bytes(MAGIC_POSITION + 1)?;
        let length = head.get(8..LOG_OVERHEAD_BYTES).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes);
        // A length that no batch can have is for the decoder to refuse.
        let size = match usize::try_from(length.max(MIN_BATCH_LENGTH)) {
            Ok(length) => length.saturating_add(LOG_OVERHEAD_BYTES),
            Err(_) => usize::MAX,
        };
        if size as u64 > left && length >= MIN_BATCH_LENGTH {
            return Ok(None);
        }
        let magic = head.get(MAGIC_POSITION).copied().map_or(0, u8::cast_signed);
        let bytes = self.bytes(size)?;
        // The magic lies in front of what the CRC covers: Kafka takes any above 2 for 2, and keeps the batch.
        let batch = match magic > MAGIC_V2 && length >= MIN_BATCH_LENGTH {
            true => AnyBatch::V2(RecordBatch::decode_on_file(&bytes)?),
            false => AnyBatch::decode(&bytes, 0)?.0,
        };
        self.position = self.position.saturating_add(batch.size_in_bytes() as u64);
        Ok(Some(batch))
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
            self.window = self.storage.read(self.name, self.position, max)?;
            self.window_at = self.position;
            return Ok(self.window.slice(..wanted.min(self.window.len())));
        }
        Ok(self.window.slice(skip..skip.saturating_add(wanted)))
    }
}
