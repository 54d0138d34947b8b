//! Cutting a log (Kafka: `UnifiedLog.truncateTo`).

use super::error::LogError;
use super::partition_log::PartitionLog;
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, TimestampMs};

impl<S: Storage> PartitionLog<S> {
    /// Cuts the log so that it ends at `target`, and rebuilds producer state; tells whether there was anything to cut.
    /// `now`, in milliseconds, decides which producers of a snapshot have expired.
    ///
    /// A batch that holds `target` is cut as a whole, but the log end offset becomes `target`: what lies between is a
    /// hole. At or above the log end offset only a leader epoch that begins there is forgotten. Below the first segment
    /// the log is emptied and starts at `target`.
    ///
    /// # Errors
    /// When `target` is negative, the log is offline, the storage fails, or the replay of a batch is refused.
    pub fn truncate_to(&mut self, target: Offset, now: TimestampMs) -> Result<bool, LogError> {
        self.check_online()?;
        if target < Offset(0) {
            return Err(LogError::NegativeOffset(target));
        }
        let truncated = self.truncate(target, now);
        self.or_offline(truncated)
    }

    fn truncate(&mut self, target: Offset, now: TimestampMs) -> Result<bool, LogError> {
        if target >= self.log_end_offset {
            self.truncate_epochs(self.log_end_offset)?;
            return Ok(false);
        }
        if self.segments.first().is_some_and(|first| first.base_offset > target) {
            self.truncate_fully_and_start_at(target, now)?;
            return Ok(true);
        }
        self.cut_segments(target, now)?;
        self.truncate_epochs(target)?;
        self.log_start_offset = self.log_start_offset.min(target);
        self.rebuild_producer_state(target, now, false)?;
        self.follow_log_end();
        Ok(true)
    }

    fn truncate_epochs(&mut self, target: Offset) -> Result<(), StorageError> {
        if self.epochs.truncate_from_end(target) { self.write_epochs() } else { Ok(()) }
    }

    fn cut_segments(&mut self, target: Offset, now: TimestampMs) -> Result<(), StorageError> {
        let keep = self.segments.partition_point(|segment| segment.base_offset <= target);
        // From the end on, where Kafka begins at the front: whenever this stops, what is left has no hole. Behind a hole, records
        // would meet a producer state that is not theirs, and the log might not open at all.
        for segment in self.segments.split_off(keep.max(1)).into_iter().rev() {
            self.delete_with_snapshot(&segment, now)?;
        }
        if let Some(active) = self.segments.last_mut() {
            active.truncate_to(&mut self.storage, target, now)?;
        }
        self.log_end_offset = target;
        self.recovery_point = self.recovery_point.min(target);
        Ok(())
    }
}
