//! The log itself: what it holds, and where it stands.

use super::config::LogConfig;
use super::config::OpenOptions;
use super::deleted::DeletedFiles;
use super::epoch_cache::LeaderEpochCache;
use super::error::{LogError, MayBeStorage};
use super::files::{LEADER_EPOCH_CHECKPOINT, SegmentFile};
use super::segment::Segment;
use super::topic_id::TopicId;
use super::txn_index::AbortedTxn;
use crate::mirror::MirrorMetadata;
use crate::psm::ProducerStateManager;
use crate::storage::{Storage, StorageError};
use crate::types::{LeaderEpoch, Offset, OffsetMetadata, TimestampMs};

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
    /// Ascending by base offset; the last is the active one. Never empty in a log that is open.
    pub(super) segments: Vec<Segment>,
    pub(super) log_start_offset: Offset,
    pub(super) log_end_offset: Offset,
    pub(super) high_watermark: Offset,
    /// Whether it is known where in the file the high watermark lies.
    pub(super) high_watermark_located: bool,
    /// Whether the high watermark was set since that was last asked.
    pub(super) high_watermark_was_set: bool,
    /// Everything below is durable.
    pub(super) recovery_point: Offset,
    /// What the producer state said when it was last asked: Kafka does not ask after every change.
    pub(super) first_unstable_offset: Option<OffsetMetadata>,
    pub(super) mirror_source: Option<String>,
    pub(super) deleted: DeletedFiles,
    pub(super) topic_id: TopicId,
    failed: Option<StorageError>,
}

impl<S: Storage> PartitionLog<S> {
    /// Makes a log without batches in a storage that holds none. `now` is the clock in milliseconds.
    ///
    /// # Errors
    /// [`LogError::AlreadyExists`]; or when the storage fails.
    pub fn create(storage: S, config: LogConfig, now: TimestampMs) -> Result<Self, LogError> {
        if storage.names()?.iter().any(|name| matches!(SegmentFile::parse(name), Some((_, SegmentFile::Log)))) {
            return Err(LogError::AlreadyExists);
        }
        Self::open(storage, config, OpenOptions::new(super::Recovery::Clean), now).map(|(log, _)| log)
    }

    /// A log that knows its metadata, but no batches yet.
    pub(super) fn load_metadata(storage: S, config: LogConfig) -> Result<Self, LogError> {
        let checkpoint = storage.read_all(LEADER_EPOCH_CHECKPOINT)?;
        let is_new = checkpoint.is_none();
        let epochs = LeaderEpochCache::decode(&checkpoint.unwrap_or_default())?;
        let mirror_source = MirrorMetadata::load(&storage)?.source_cluster;
        let mut log = Self {
            psm: config.new_producer_state(),
            deleted: DeletedFiles::new(config.file_delete_delay_ms),
            storage,
            config,
            epochs,
            segments: Vec::new(),
            log_start_offset: Offset(0),
            log_end_offset: Offset(0),
            high_watermark: Offset(0),
            high_watermark_located: false,
            high_watermark_was_set: false,
            recovery_point: Offset(0),
            first_unstable_offset: None,
            mirror_source,
            topic_id: TopicId::default(),
            failed: None,
        };
        if is_new {
            log.storage.replace(LEADER_EPOCH_CHECKPOINT, &bytes::Bytes::new())?;
        }
        Ok(log)
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Gives the log other settings, as when those of its topic are changed; returns the ones that it had
    /// (Kafka: `updateConfig`). They count from the next operation on, and for files that wait for their deletion not at all.
    /// Which producer ids state is kept for ([`LogConfig::ids`]) was decided when the log was opened, and stays.
    pub fn update_config(&mut self, config: LogConfig) -> LogConfig {
        let config = LogConfig { ids: self.config.ids, ..config };
        self.deleted.set_delay(config.file_delete_delay_ms);
        self.psm.set_expiration(config.producer_id_expiration_ms);
        std::mem::replace(&mut self.config, config)
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

    /// The first offset that is not both decided and replicated, as the log knows since its last append, change of the
    /// high watermark or of the log start offset.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        self.first_unstable_offset.map(|first| first.offset)
    }

    /// Everything below this offset is durable.
    #[must_use]
    pub fn recovery_point(&self) -> Offset {
        self.recovery_point
    }

    /// The size of all segments, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.file_bytes).fold(0, u64::saturating_add)
    }

    /// Base offset and size in bytes of each segment, ascending.
    pub fn segments(&self) -> impl Iterator<Item = (Offset, u64)> {
        self.segments.iter().map(|segment| (segment.base_offset, segment.file_bytes))
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
    pub fn aborted_transactions(&self) -> impl Iterator<Item = &AbortedTxn> {
        self.segments.iter().flat_map(|segment| &segment.aborted)
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

    /// The error that took the log offline, if one did.
    pub(super) fn check_online(&self) -> Result<(), StorageError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// A storage that fails, in writing or in reading, takes the log offline (Kafka: `LocalLog.maybeHandleIOException`). Other errors
    /// do not.
    pub(super) fn or_offline<T, E: MayBeStorage>(&mut self, result: Result<T, E>) -> Result<T, E> {
        if let Some(error) = result.as_ref().err().and_then(MayBeStorage::storage_error) {
            self.failed = Some(error.clone());
        }
        result
    }

    pub(super) fn take_offline(&mut self, error: StorageError) {
        self.failed = Some(error);
    }

    pub(super) fn write_epochs(&mut self) -> Result<(), StorageError> {
        let checkpoint = self.epochs.encode();
        let written = self.storage.replace(LEADER_EPOCH_CHECKPOINT, &checkpoint);
        self.or_offline(written)
    }
}

#[cfg(test)]
mod tests;
