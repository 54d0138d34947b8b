//! What of a log can be cleaned, and how much there is to clean (Kafka: `LogCleanerManager.cleanableOffsets`, `LogToClean`).

use super::partition_log::PartitionLog;
use super::segment::Segment;
use crate::storage::Storage;
use crate::types::{Offset, TimestampMs};

/// When a log is cleaned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanRules {
    /// How long a record stays as it is at least, in milliseconds (`min.compaction.lag.ms`).
    pub min_compaction_lag_ms: i64,
    /// How long a record stays dirty at most, in milliseconds (`max.compaction.lag.ms`).
    pub max_compaction_lag_ms: i64,
    /// The share of the log that has to be dirty (`min.cleanable.dirty.ratio`).
    pub min_cleanable_ratio: f64,
}

impl Default for CleanRules {
    fn default() -> Self {
        Self { min_compaction_lag_ms: 0, max_compaction_lag_ms: i64::MAX, min_cleanable_ratio: 0.5 }
    }
}

/// Which part of a log can be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CleanableOffsets {
    /// Where the last round ended.
    pub first_dirty: Offset,
    /// Nothing from here on can be cleaned.
    pub first_uncleanable: Offset,
    /// The checkpoint is not an offset of the log, and has to be replaced by `first_dirty`.
    pub invalid_checkpoint: bool,
}

/// How much of a log can be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogToClean {
    /// Where the last round ended.
    pub first_dirty: Offset,
    /// The base offset of the first segment that cannot be cleaned.
    pub first_uncleanable: Offset,
    /// Bytes of the segments that begin in front of the first dirty offset.
    pub clean_bytes: u64,
    /// Bytes of the segments that can be cleaned.
    pub cleanable_bytes: u64,
    /// A record has been dirty for too long.
    pub is_overdue: bool,
}

impl LogToClean {
    /// Bytes that are clean or can be cleaned.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.clean_bytes.saturating_add(self.cleanable_bytes)
    }

    /// Which share of these can be cleaned; 0 of none.
    #[must_use]
    pub fn cleanable_ratio(&self) -> f64 {
        let total = self.total_bytes();
        if total == 0 { 0.0 } else { self.cleanable_bytes as f64 / total as f64 }
    }

    /// Whether it is time to clean the log.
    #[must_use]
    pub fn is_due(&self, rules: &CleanRules) -> bool {
        (self.is_overdue && self.cleanable_bytes > 0) || self.cleanable_ratio() > rules.min_cleanable_ratio
    }
}

impl<S: Storage> PartitionLog<S> {
    /// Which part of the log can be cleaned, where the last round ended at the `checkpoint`: up to the last stable offset, the active
    /// segment and the first segment with a record that is too young. `now` is the clock in milliseconds. A segment whose records tell
    /// no time is old enough; Kafka takes the time at which its file was written.
    #[must_use]
    pub fn cleanable_offsets(&self, checkpoint: Option<Offset>, rules: &CleanRules, now: TimestampMs) -> CleanableOffsets {
        let in_log = self.log_start_offset..=self.log_end_offset;
        let valid = checkpoint.filter(|checkpoint| in_log.contains(checkpoint));
        let first_dirty = valid.unwrap_or(self.log_start_offset);
        let mut bound = self.last_stable_offset().min(self.active_base());
        if rules.min_compaction_lag_ms > 0 {
            let youngest = now.get().saturating_sub(rules.min_compaction_lag_ms);
            let is_young = |segment: &&Segment| segment.largest_timestamp().timestamp.get() > youngest;
            let young = self.inactive_from(first_dirty).iter().find(is_young);
            bound = young.map_or(bound, |segment| bound.min(segment.base_offset));
        }
        let first_uncleanable = bound.max(first_dirty);
        CleanableOffsets { first_dirty, first_uncleanable, invalid_checkpoint: valid.is_none() && checkpoint.is_some() }
    }

    /// How much there is to clean within these offsets; whole segments are cleaned. `now` is the clock in milliseconds.
    #[must_use]
    pub fn log_to_clean(&self, offsets: &CleanableOffsets, rules: &CleanRules, now: TimestampMs) -> LogToClean {
        let CleanableOffsets { first_dirty, first_uncleanable, .. } = *offsets;
        let bound = self.inactive_from(first_uncleanable).first().map_or(self.active_base(), |segment| segment.base_offset);
        let size = |segments: &[Segment]| segments.iter().map(|segment| segment.file_bytes).fold(0, u64::saturating_add);
        let clean = self.segments.partition_point(|segment| segment.base_offset < first_dirty);
        let dirty = self.segments_between(first_dirty.min(bound), bound);
        LogToClean {
            first_dirty,
            first_uncleanable: bound,
            clean_bytes: size(self.segments.get(..clean).unwrap_or_default()),
            cleanable_bytes: size(self.segments.get(dirty).unwrap_or_default()),
            is_overdue: self.is_overdue(first_dirty, rules, now),
        }
    }

    /// Whether the first batch of a dirty segment is older than a record may be (Kafka: `maxCompactionDelay`).
    fn is_overdue(&self, first_dirty: Offset, rules: &CleanRules, now: TimestampMs) -> bool {
        let oldest = now.get().saturating_sub(rules.max_compaction_lag_ms.max(0));
        let mut first_times = self.inactive_from(first_dirty).iter().filter_map(|segment| segment.slots.first());
        first_times.any(|first| first.max_timestamp > TimestampMs(0) && first.max_timestamp.get() < oldest)
    }

    fn active_base(&self) -> Offset {
        self.segments.last().map_or(Offset(0), |active| active.base_offset)
    }

    /// The segments from the one that holds an offset up to the active one, which is left out.
    pub(super) fn inactive_from(&self, from: Offset) -> &[Segment] {
        self.segments.get(self.segments_between(from, self.active_base())).unwrap_or_default()
    }
}
