//! Reading (Kafka: `UnifiedLog.read`, `collectAbortedTransactions`).

use bytes::Bytes;

use super::config::FetchIsolation;
use super::error::ReadError;
use super::files::LOG_FILE;
use super::partition_log::{BatchSlot, PartitionLog};
use super::txn_index::AbortedTxn;
use crate::record::{BatchReader, RecordBatch};
use crate::storage::Storage;
use crate::types::Offset;

impl<S: Storage> PartitionLog<S> {
    /// Whole batches from the one that holds `from`, which may begin below it, up to the bound of the isolation: as many
    /// as fit `max_bytes`, but the first in any case. Empty at and above the bound.
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`] below the log start offset and above the log end offset; or when the log is
    /// offline or the storage fails.
    pub fn read(&self, from: Offset, isolation: FetchIsolation, max_bytes: usize) -> Result<Bytes, ReadError> {
        self.check_online()?;
        if from < self.log_start_offset || from > self.log_end_offset {
            return Err(ReadError::OffsetOutOfRange {
                offset: from,
                log_start_offset: self.log_start_offset,
                log_end_offset: self.log_end_offset,
            });
        }
        let bound = match isolation {
            FetchIsolation::LogEnd => self.log_end_offset,
            FetchIsolation::HighWatermark => self.high_watermark,
            FetchIsolation::TxnCommitted => self.last_stable_offset(),
        };
        let mut slots = self.slots_from(from).iter().take_while(|slot| from < bound && slot.last_offset < bound);
        let Some(first) = slots.next() else {
            return Ok(Bytes::new());
        };
        let mut size = first.size;
        for slot in slots {
            match size.checked_add(slot.size) {
                Some(larger) if larger <= max_bytes => size = larger,
                _ => break,
            }
        }
        Ok(self.storage.read(LOG_FILE, first.position, size)?)
    }

    /// All batches of the log.
    ///
    /// # Errors
    /// When the log is offline, the storage fails, or a batch can no longer be read.
    pub fn batches(&self) -> Result<Vec<RecordBatch>, ReadError> {
        self.check_online()?;
        let len = usize::try_from(self.valid_bytes).unwrap_or(usize::MAX);
        let mut reader = BatchReader::new(self.storage.read(LOG_FILE, 0, len)?);
        let mut batches = Vec::with_capacity(self.slots.len());
        loop {
            let position = reader.position() as u64;
            match reader.next() {
                None => return Ok(batches),
                Some(Ok(batch)) => batches.push(batch),
                Some(Err(source)) => return Err(ReadError::CorruptRecord { position, source }),
            }
        }
    }

    /// The aborted transactions that a read-committed reader of offsets from `from` up to, not including, `to` has to
    /// know.
    #[must_use]
    pub fn collect_aborted_transactions(&self, from: Offset, to: Offset) -> Vec<AbortedTxn> {
        let mut found = Vec::new();
        for aborted in &self.aborted {
            if aborted.last_offset >= from && aborted.first_offset < to {
                found.push(*aborted);
            }
            if aborted.last_stable_offset >= to {
                break;
            }
        }
        found
    }

    /// The batches from the one that holds or follows an offset.
    pub(super) fn slots_from(&self, offset: Offset) -> &[BatchSlot] {
        let index = self.slots.partition_point(|slot| slot.last_offset < offset);
        self.slots.get(index..).unwrap_or_default()
    }
}
