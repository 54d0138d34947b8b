//! The log itself: what it holds, and where it stands.

use super::config::LogConfig;
use super::epoch_cache::LeaderEpochCache;
use super::error::LogError;
use super::files::{LEADER_EPOCH_CHECKPOINT, LOG_FILE};
use super::txn_index::AbortedTxn;
use crate::mirror::MirrorMetadata;
use crate::psm::ProducerStateManager;
use crate::record::RecordBatch;
use crate::storage::{Storage, StorageError};
use crate::types::{LeaderEpoch, Offset};

/// A partition log over a storage.
///
/// It has no clock, no threads and no locks: the caller gives the time and calls one operation after the other. When the
/// storage fails in the middle of a change, the log is offline: every later operation gets the same error, until the
/// log is opened again.
#[derive(Clone, Debug)]
pub struct PartitionLog<S> {
    pub(super) storage: S,
    pub(super) config: LogConfig,
    pub(super) epochs: LeaderEpochCache,
    pub(super) psm: ProducerStateManager,
    pub(super) aborted: Vec<AbortedTxn>,
    pub(super) slots: Vec<BatchSlot>,
    /// Length of the log file up to the end of the last whole batch.
    pub(super) valid_bytes: u64,
    /// The log file is longer than that.
    pub(super) has_trailing_bytes: bool,
    pub(super) log_start_offset: Offset,
    pub(super) log_end_offset: Offset,
    pub(super) high_watermark: Offset,
    pub(super) mirror_source: Option<String>,
    failed: Option<StorageError>,
}

/// Where a batch lies in the log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchSlot {
    pub(super) base_offset: Offset,
    pub(super) last_offset: Offset,
    pub(super) position: u64,
    pub(super) size: usize,
}

impl BatchSlot {
    pub(super) fn new(batch: &RecordBatch, position: u64) -> Self {
        Self { base_offset: batch.base_offset(), last_offset: batch.last_offset(), position, size: batch.size_in_bytes() }
    }
}

impl<S: Storage> PartitionLog<S> {
    /// Makes a log without batches in a storage that holds none.
    ///
    /// # Errors
    /// [`LogError::AlreadyExists`]; or when the storage fails.
    pub fn create(storage: S, config: LogConfig) -> Result<Self, LogError> {
        if storage.len(LOG_FILE)?.is_some() {
            return Err(LogError::AlreadyExists);
        }
        let mut log = Self::load_metadata(storage, config)?;
        log.create_files()?;
        Ok(log)
    }

    pub(super) fn create_files(&mut self) -> Result<(), LogError> {
        self.storage.replace(LOG_FILE, &bytes::Bytes::new())?;
        self.epochs = LeaderEpochCache::default();
        let checkpoint = self.epochs.encode();
        self.storage.replace(LEADER_EPOCH_CHECKPOINT, &checkpoint)?;
        Ok(())
    }

    /// A log that knows its metadata, but no batches yet.
    pub(super) fn load_metadata(storage: S, config: LogConfig) -> Result<Self, LogError> {
        let checkpoint = storage.read_all(LEADER_EPOCH_CHECKPOINT)?;
        let epochs = LeaderEpochCache::decode(&checkpoint.unwrap_or_default())?;
        let mirror_source = MirrorMetadata::load(&storage)?.source_cluster;
        Ok(Self {
            psm: config.new_producer_state(),
            storage,
            config,
            epochs,
            aborted: Vec::new(),
            slots: Vec::new(),
            valid_bytes: 0,
            has_trailing_bytes: false,
            log_start_offset: Offset(0),
            log_end_offset: Offset(0),
            high_watermark: Offset(0),
            mirror_source,
            failed: None,
        })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// The storage.
    #[must_use]
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Gives the storage back. Nothing is written: what is in memory only is lost, as in a crash.
    #[must_use]
    pub fn into_storage(self) -> S {
        self.storage
    }

    /// The offset of the next record.
    #[must_use]
    pub fn log_end_offset(&self) -> Offset {
        self.log_end_offset
    }

    /// The offset of the first record that may be read.
    #[must_use]
    pub fn log_start_offset(&self) -> Offset {
        self.log_start_offset
    }

    /// The offset up to which records are known to be replicated. It is the log start offset after opening, until set.
    #[must_use]
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The offset up to which records are replicated and belong to no undecided transaction.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        self.first_unstable_offset().map_or(self.high_watermark, |offset| offset.min(self.high_watermark))
    }

    /// The first offset that is not both decided and replicated.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        let offset = self.psm.first_unstable_offset();
        offset.map(|offset| offset.max(self.log_start_offset))
    }

    /// Sets the high watermark, clamped to the range of the log; it may go down. Returns what it is now.
    pub fn update_high_watermark(&mut self, offset: Offset) -> Offset {
        self.high_watermark = offset.max(self.log_start_offset).min(self.log_end_offset);
        self.psm.on_high_watermark_updated(self.high_watermark);
        self.high_watermark
    }

    /// What the log remembers about producers.
    #[must_use]
    pub fn producer_state(&self) -> &ProducerStateManager {
        &self.psm
    }

    /// Leader epochs and where they begin.
    #[must_use]
    pub fn leader_epochs(&self) -> &LeaderEpochCache {
        &self.epochs
    }

    /// The aborted transactions, in order of their markers.
    #[must_use]
    pub fn aborted_transactions(&self) -> &[AbortedTxn] {
        &self.aborted
    }

    /// The cluster that this log mirrors, or mirrored last.
    #[must_use]
    pub fn mirror_source(&self) -> Option<&str> {
        self.mirror_source.as_deref()
    }

    /// Notes durably which cluster this log mirrors from now on.
    ///
    /// # Errors
    /// When the id cannot be stored, the log is offline or the storage fails.
    pub fn set_mirror_source(&mut self, source: Option<String>) -> Result<(), LogError> {
        let mut metadata = MirrorMetadata::load(&self.storage)?;
        metadata.source_cluster = source;
        self.store_mirror_metadata(&metadata)
    }

    pub(crate) fn store_mirror_metadata(&mut self, metadata: &MirrorMetadata) -> Result<(), LogError> {
        self.check_online()?;
        metadata.store(&mut self.storage)?;
        self.mirror_source.clone_from(&metadata.source_cluster);
        Ok(())
    }

    /// Begins a leadership at the log end offset, so that followers learn from the first fetch on where logs part.
    ///
    /// # Errors
    /// When the epoch is negative, the log is offline or the storage fails.
    pub fn assign_epoch_start_offset(&mut self, epoch: LeaderEpoch) -> Result<(), LogError> {
        self.check_online()?;
        if self.epochs.assign(epoch, self.log_end_offset)? {
            self.write_epochs()?;
        }
        Ok(())
    }

    /// The largest epoch at or below the one asked for, and where it ends; `None` when nothing is known.
    #[must_use]
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        self.epochs.end_offset_for(epoch, self.log_end_offset)
    }

    /// Removes producers that were idle too long; see [`ProducerStateManager::remove_expired_producers`].
    pub fn remove_expired_producers(&mut self, now: crate::types::TimestampMs) {
        self.psm.remove_expired_producers(now);
    }

    /// Writes a snapshot of producer state at the log end offset; tells whether there was anything new to write.
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn take_snapshot(&mut self) -> Result<bool, LogError> {
        self.check_online()?;
        let taken = self.psm.take_snapshot(&mut self.storage);
        Ok(self.or_offline(taken)?)
    }

    /// Makes everything durable that was appended.
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.check_online()?;
        let synced = self.storage.sync(LOG_FILE);
        self.or_offline(synced)?;
        if !self.aborted.is_empty() {
            let synced = self.storage.sync(super::files::TXN_INDEX_FILE);
            self.or_offline(synced)?;
        }
        Ok(())
    }

    /// An orderly stop: makes everything durable and writes a snapshot at the log end offset. Afterwards the storage may
    /// be opened with [`super::Recovery::Clean`].
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn close_clean(&mut self) -> Result<(), LogError> {
        self.flush()?;
        self.take_snapshot().map(|_| ())
    }

    /// The error that took the log offline, if one did.
    pub(super) fn check_online(&self) -> Result<(), StorageError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// A failure takes the log offline.
    pub(super) fn or_offline<T>(&mut self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    pub(super) fn write_epochs(&mut self) -> Result<(), StorageError> {
        let checkpoint = self.epochs.encode();
        let written = self.storage.replace(LEADER_EPOCH_CHECKPOINT, &checkpoint);
        self.or_offline(written)
    }
}
