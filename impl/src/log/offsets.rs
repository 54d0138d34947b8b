//! Where a log stands: high watermark, last stable offset, log start offset (Kafka: `UnifiedLog`).

use super::error::LogError;
use super::partition_log::PartitionLog;
use crate::storage::Storage;
use crate::types::{Offset, TimestampMs};

impl<S: Storage> PartitionLog<S> {
    /// Sets the high watermark, clamped to the range of the log; it may go down. Returns what it is now
    /// (Kafka: `updateHighWatermark`).
    pub fn update_high_watermark(&mut self, offset: Offset) -> Offset {
        let clamped = offset.max(self.log_start_offset).min(self.log_end_offset);
        // The log end is a known place, but not if it is the log start too and that was what raised the offset.
        self.set_high_watermark(clamped, offset >= clamped && clamped == self.log_end_offset)
    }

    fn set_high_watermark(&mut self, offset: Offset, located: bool) -> Offset {
        self.high_watermark = offset;
        self.high_watermark_located = located;
        self.high_watermark_was_set = true;
        self.psm.on_high_watermark_updated(offset);
        self.refresh_first_unstable_offset();
        offset
    }

    /// The high watermark, if it was set since this was last asked, be it to what it was; after opening, what it began with. Who follows
    /// the high watermark asks after each call, since a truncation sets it, too (Kafka: `LogOffsetsListener`).
    pub fn take_high_watermark_update(&mut self) -> Option<Offset> {
        std::mem::take(&mut self.high_watermark_was_set).then_some(self.high_watermark)
    }

    /// A reader or the leader wants to know where in the file the high watermark lies. One within a batch goes down to
    /// the beginning of that batch for this (Kafka: `fetchHighWatermarkMetadata`).
    pub(super) fn locate_high_watermark(&mut self) {
        if !self.high_watermark_located {
            self.look_for(self.high_watermark);
            self.set_high_watermark(self.metadata_at(self.high_watermark).offset, true);
        }
    }

    /// Kafka makes the offset index of each segment in which it looks for an offset, if there is none yet. A failure takes
    /// the log offline; what is asked for does not depend on it.
    pub(super) fn look_for(&mut self, offset: Offset) {
        let first = self.floor_segment(offset).unwrap_or(0);
        if offset >= self.log_end_offset {
            return;
        }
        for segment in self.segments.iter_mut().skip(first) {
            if let Err(error) = segment.touch_offset_index(&mut self.storage) {
                self.take_offline(error);
                return;
            }
            if !segment.slots_from(offset).is_empty() {
                return;
            }
        }
    }

    /// Sets the high watermark as a follower learns it; tells whether that changed it
    /// (Kafka: `maybeUpdateHighWatermark`).
    pub fn maybe_update_high_watermark(&mut self, offset: Offset) -> bool {
        let before = self.high_watermark;
        self.update_high_watermark(offset) != before
    }

    /// Raises the high watermark as a leader does; tells whether that changed it (Kafka: `maybeIncrementHighWatermark`).
    ///
    /// # Errors
    /// [`LogError::BeyondLogEnd`] when the offset lies behind the log end offset.
    pub fn maybe_increment_high_watermark(&mut self, offset: Offset) -> Result<bool, LogError> {
        if offset > self.log_end_offset {
            return Err(LogError::BeyondLogEnd { offset, log_end_offset: self.log_end_offset });
        }
        self.locate_high_watermark();
        let raises = offset > self.high_watermark;
        if raises {
            self.set_high_watermark(offset, true);
        }
        Ok(raises)
    }

    /// After a change that left the log shorter or its end elsewhere.
    pub(super) fn follow_log_end(&mut self) {
        if self.high_watermark >= self.log_end_offset {
            self.update_high_watermark(self.log_end_offset);
        }
    }

    /// Asks the producer state which offset is the first that is not both decided and replicated
    /// (Kafka: `maybeIncrementFirstUnstableOffset`).
    pub(super) fn refresh_first_unstable_offset(&mut self) {
        let first = self.psm.first_unstable_offset_metadata();
        if first.is_some_and(|first| first.offset < self.log_start_offset) {
            self.look_for(self.log_start_offset);
        }
        self.first_unstable_offset = first.map(|first| match first.position {
            Some(_) if first.offset >= self.log_start_offset => first,
            _ => self.metadata_at(first.offset.max(self.log_start_offset)),
        });
    }

    /// Gives up the records below an offset; tells whether that changed anything
    /// (Kafka: `maybeIncrementLogStartOffset`). Producers are kept.
    ///
    /// # Errors
    /// [`LogError::BeyondHighWatermark`]; or when the log is offline or the storage fails.
    pub fn maybe_increment_log_start_offset(&mut self, offset: Offset) -> Result<bool, LogError> {
        if offset > self.high_watermark {
            return Err(LogError::BeyondHighWatermark { offset, high_watermark: self.high_watermark });
        }
        self.check_online()?;
        if offset <= self.log_start_offset {
            return Ok(false);
        }
        self.log_start_offset = offset;
        self.recovery_point = self.recovery_point.max(offset);
        if self.epochs.truncate_from_start(offset) {
            self.write_epochs()?;
        }
        let followed = self.psm.follow_log_start(&self.storage, offset);
        self.or_offline(followed)?;
        self.refresh_first_unstable_offset();
        Ok(true)
    }

    /// Removes producers and pending verifications that were idle too long; see
    /// [`crate::psm::ProducerStateManager::remove_expired_producers`].
    pub fn remove_expired_producers(&mut self, now: TimestampMs) {
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

    /// Deletes the snapshots below an offset (Kafka: `deleteSnapshotsBefore`).
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn delete_snapshots_before(&mut self, offset: Offset) -> Result<(), LogError> {
        self.check_online()?;
        for file in crate::psm::snapshot_files(&self.storage)? {
            if file.offset < offset {
                let removed = self.storage.remove(&file.name);
                self.or_offline(removed)?;
            }
        }
        Ok(())
    }
}
