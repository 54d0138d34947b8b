//! Segments come and go: roll, flush, stop, retention, a fresh start (Kafka: `UnifiedLog.roll`, `deleteOldSegments`,
//! `truncateFullyAndStartAt`; `LocalLog`).

use super::error::{LogError, RollError};
use super::files::SegmentFile;
use super::partition_log::PartitionLog;
use super::segment::{Incoming, Segment};
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, TimestampMs};

impl<S: Storage> PartitionLog<S> {
    /// Begins a new segment at the log end offset; returns its base offset. `now` is the clock in milliseconds.
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn roll(&mut self, now: TimestampMs) -> Result<Offset, LogError> {
        self.check_online()?;
        Ok(self.roll_or_offline(Offset(0), now)?)
    }

    /// Begins a new segment if the active one cannot take an append.
    pub(super) fn maybe_roll(&mut self, incoming: &Incoming, now: TimestampMs) -> Result<(), RollError> {
        let Some(active) = self.segments.last_mut() else { return Ok(()) };
        let rolls = active.should_roll(&self.config, incoming, now);
        // Kafka has looked at the indexes by now, unless the size of the segment decided before.
        if !rolls || active.file_bytes == 0 {
            let touched = active.touch_indexes(&mut self.storage);
            self.or_offline(touched)?;
        }
        if rolls { self.roll_or_offline(incoming.expected_offset(), now).map(|_| ()) } else { Ok(()) }
    }

    fn roll_or_offline(&mut self, expected: Offset, now: TimestampMs) -> Result<Offset, RollError> {
        let rolled = self.roll_at(expected, now);
        self.or_offline(rolled)
    }

    /// The new segment begins at the log end offset or at the offset that is expected next, whichever is larger. What is
    /// below it is made durable.
    fn roll_at(&mut self, expected: Offset, now: TimestampMs) -> Result<Offset, RollError> {
        let base_offset = expected.max(self.log_end_offset);
        let active = self.segments.last_mut();
        let replaces = active.as_ref().is_some_and(|active| active.base_offset == base_offset);
        if let Some(active) =
            active.as_ref().filter(|active| active.base_offset > base_offset || (replaces && active.file_bytes > 0))
        {
            return Err(RollError::BelowActive { offset: base_offset, active: active.base_offset });
        }
        if let Some(active) = active {
            if replaces {
                self.deleted.delete_segment(&mut self.storage, active, now)?;
                self.segments.pop();
            } else {
                active.become_inactive(&mut self.storage)?;
            }
        }
        self.add_segment(base_offset, now)?;
        self.psm.set_map_end_offset(base_offset);
        self.psm.take_snapshot(&mut self.storage)?;
        self.follow_log_end();
        self.flush_below(base_offset, base_offset)?;
        Ok(base_offset)
    }

    /// Deletes a segment's files and the snapshot at its base.
    pub(super) fn delete_with_snapshot(&mut self, segment: &Segment, now: TimestampMs) -> Result<(), StorageError> {
        self.deleted.delete_segment(&mut self.storage, segment, now)?;
        self.deleted.delete_snapshot(&mut self.storage, segment.base_offset, now)
    }

    pub(super) fn add_segment(&mut self, base_offset: Offset, now: TimestampMs) -> Result<(), StorageError> {
        let segment = Segment::new(base_offset, now);
        segment.remove_files(&mut self.storage)?;
        let log = segment.name(SegmentFile::Log);
        self.storage.replace(&log, &bytes::Bytes::new())?;
        if let Some(len) = self.config.init_file_size() {
            self.storage.reserve(&log, len)?;
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Makes the segments durable that begin below an offset. What is below the recovery point is; that is another one then.
    fn flush_below(&mut self, offset: Offset, recovery_point: Offset) -> Result<(), StorageError> {
        if offset <= self.recovery_point {
            return Ok(());
        }
        let range = self.segments_between(self.recovery_point, offset);
        for segment in self.segments.get_mut(range).unwrap_or_default() {
            segment.flush(&mut self.storage)?;
        }
        self.recovery_point = self.recovery_point.max(recovery_point);
        Ok(())
    }

    /// Index of the segment that holds an offset: the last whose base offset is not above it.
    pub(super) fn floor_segment(&self, offset: Offset) -> Option<usize> {
        self.segments.partition_point(|segment| segment.base_offset <= offset).checked_sub(1)
    }

    /// Makes everything durable that was appended.
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.check_online()?;
        let flushed = self.flush_below(self.log_end_offset, self.log_end_offset);
        Ok(self.or_offline(flushed)?)
    }

    /// As [`Self::flush`], and also an active segment to which nothing was appended: its indexes have files afterwards
    /// (Kafka: `flush(true)`, as before a stop).
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn flush_with_active(&mut self) -> Result<(), LogError> {
        self.check_online()?;
        let flushed = self.flush_below(self.log_end_offset.plus(1), self.log_end_offset);
        Ok(self.or_offline(flushed)?)
    }

    /// An orderly stop: makes everything durable and writes a snapshot at the log end offset. Afterwards the storage may
    /// be opened with [`super::Recovery::Clean`].
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn close_clean(&mut self) -> Result<(), LogError> {
        self.check_online()?;
        let flushed = self.flush_topic_id();
        self.or_offline(flushed)?;
        self.take_snapshot()?;
        for index in 0..self.segments.len() {
            let Some(segment) = self.segments.get_mut(index) else { break };
            let closed = segment.close(&mut self.storage).and_then(|()| segment.sync(&mut self.storage));
            self.or_offline(closed)?;
        }
        Ok(())
    }

    /// Empties the log, which goes on at an offset (Kafka: `truncateFullyAndStartAt`). `now` is the clock in milliseconds.
    ///
    /// # Errors
    /// When the offset is negative, the log is offline or the storage fails.
    pub fn truncate_fully_and_start_at(&mut self, offset: Offset, now: TimestampMs) -> Result<(), LogError> {
        self.truncate_fully_below_start(offset, offset, now)
    }

    /// As [`Self::truncate_fully_and_start_at`], for a log whose first records are elsewhere: it starts at `log_start`, but what it
    /// holds begins at `offset`, and it refuses to read below that. `log_start` is at most `offset`, or counts as that.
    ///
    /// # Errors
    /// As [`Self::truncate_fully_and_start_at`].
    pub fn truncate_fully_below_start(&mut self, offset: Offset, log_start: Offset, now: TimestampMs) -> Result<(), LogError> {
        self.check_online()?;
        if offset < Offset(0) || log_start < Offset(0) {
            return Err(LogError::NegativeOffset(offset.min(log_start)));
        }
        let emptied = self.start_over(offset, now);
        self.or_offline(emptied)?;
        self.log_start_offset = log_start.min(offset);
        self.rebuild_producer_state(offset, now, false)?;
        self.update_high_watermark(offset);
        Ok(())
    }

    fn start_over(&mut self, offset: Offset, now: TimestampMs) -> Result<(), StorageError> {
        // From the end on: whenever this stops, what is left has no hole.
        for segment in std::mem::take(&mut self.segments).into_iter().rev() {
            self.deleted.delete_segment(&mut self.storage, &segment, now)?;
        }
        self.add_segment(offset, now)?;
        self.log_end_offset = offset;
        self.recovery_point = self.recovery_point.min(offset);
        self.epochs = super::LeaderEpochCache::default();
        let checkpoint = self.epochs.encode();
        self.storage.replace(super::LEADER_EPOCH_CHECKPOINT, &checkpoint)?;
        self.psm.truncate_fully_and_start_at(&mut self.storage, offset)
    }

    /// Deletes the segments that the settings allow: below the log start offset, above the size, above the age. Never
    /// one that reaches beyond the high watermark. Returns how many (Kafka: `deleteOldSegments`). `now` is the clock in
    /// milliseconds.
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn delete_old_segments(&mut self, now: TimestampMs) -> Result<usize, LogError> {
        self.check_online()?;
        let start = self.log_start_offset;
        let mut deleted = self.delete_while(now, |_, next| next.is_some_and(|next| next <= start))?;
        if self.config.delete {
            deleted = deleted.saturating_add(self.delete_by_size(now)?);
            let retention_ms = self.config.retention_ms;
            if retention_ms >= 0 {
                let is_old =
                    |segment: &Segment| now.get().saturating_sub(segment.largest_timestamp().timestamp.get()) > retention_ms;
                deleted = deleted.saturating_add(self.delete_while(now, |segment, _| is_old(segment))?);
            }
        }
        Ok(deleted)
    }

    fn delete_by_size(&mut self, now: TimestampMs) -> Result<usize, LogError> {
        let Ok(retention_bytes) = u64::try_from(self.config.retention_bytes) else { return Ok(0) };
        let Some(mut excess) = self.size_in_bytes().checked_sub(retention_bytes) else { return Ok(0) };
        self.delete_while(now, |segment, _| match excess.checked_sub(segment.file_bytes) {
            Some(left) => {
                excess = left;
                true
            }
            None => false,
        })
    }

    /// How many segments, from the oldest on, may be deleted and are chosen, each by itself and the base offset of the next
    /// (Kafka: `deletableSegments`).
    fn deletable_segments(&mut self, mut chosen: impl FnMut(&mut Segment, Option<Offset>) -> bool) -> usize {
        let mut count = 0;
        for index in 0..self.segments.len() {
            let next = self.segments.get(index.saturating_add(1)).map(|next| next.base_offset);
            let Some(segment) = self.segments.get_mut(index) else { break };
            let is_last_and_empty = next.is_none() && segment.file_bytes == 0;
            let replicated = self.high_watermark >= next.unwrap_or(self.log_end_offset);
            if !replicated || is_last_and_empty || !chosen(segment, next) {
                break;
            }
            count = index.saturating_add(1);
        }
        count
    }

    /// Deletes segments from the oldest on as long as they are chosen.
    fn delete_while(
        &mut self,
        now: TimestampMs,
        chosen: impl FnMut(&mut Segment, Option<Offset>) -> bool,
    ) -> Result<usize, LogError> {
        let count = self.deletable_segments(chosen);
        if count == 0 {
            return Ok(0);
        }
        if count == self.segments.len() {
            self.roll(now)?;
        }
        let Some(start) = self.segments.get(count).map(|next| next.base_offset) else { return Ok(0) };
        self.maybe_increment_log_start_offset(start)?;
        for segment in self.segments.drain(..count).collect::<Vec<_>>() {
            let deleted = self.delete_with_snapshot(&segment, now);
            self.or_offline(deleted)?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
