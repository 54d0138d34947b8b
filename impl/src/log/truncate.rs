//! Cutting a log (Kafka: `UnifiedLog.truncateTo`).

use super::error::LogError;
use super::files::LOG_FILE;
use super::partition_log::PartitionLog;
use crate::storage::Storage;
use crate::types::{Offset, TimestampMs};

impl<S: Storage> PartitionLog<S> {
    /// Cuts the log so that it ends at `target`, and rebuilds producer state; tells whether there was anything to cut.
    /// `now`, in milliseconds, decides which producers of a snapshot have expired.
    ///
    /// A batch that holds `target` is cut as a whole, but the log end offset becomes `target`: what lies between is a
    /// hole. At or above the log end offset only a leader epoch that begins there is forgotten.
    ///
    /// # Errors
    /// When `target` is negative, the log is offline, the storage fails, or the replay of a batch is refused.
    pub fn truncate_to(&mut self, target: Offset, now: TimestampMs) -> Result<bool, LogError> {
        self.check_online()?;
        if target < Offset(0) {
            return Err(LogError::NegativeOffset(target));
        }
        let result = self.truncate(target, now);
        if let Err(LogError::Storage(error)) = &result {
            self.or_offline::<()>(Err(error.clone()))?;
        }
        result
    }

    fn truncate(&mut self, target: Offset, now: TimestampMs) -> Result<bool, LogError> {
        let cuts = target < self.log_end_offset;
        if cuts {
            self.cut_segment(target)?;
        }
        if self.epochs.truncate_from_end(self.log_end_offset) {
            self.write_epochs()?;
        }
        if cuts {
            self.log_start_offset = self.log_start_offset.min(target);
            self.rebuild_producer_state(target, now, false)?;
            self.update_high_watermark(self.high_watermark.min(target));
        }
        Ok(cuts)
    }

    fn cut_segment(&mut self, target: Offset) -> Result<(), LogError> {
        let keep = self.slots.partition_point(|slot| slot.last_offset < target);
        let cut_at = self.slots.get(keep).map(|slot| slot.position);
        if let Some(position) = cut_at {
            self.storage.truncate(LOG_FILE, position)?;
            self.valid_bytes = position;
            self.has_trailing_bytes = false;
            self.slots.truncate(keep);
        }
        self.log_end_offset = target;
        let kept = self.aborted.partition_point(|aborted| aborted.last_offset < target);
        if kept < self.aborted.len() {
            self.aborted.truncate(kept);
            self.write_txn_index()?;
        }
        Ok(())
    }
}
