//! Compaction: one cleaning round (Kafka: `Cleaner.doClean`, `cleanSegments`).
//!
//! A round reads the dirty part of the log and notes the last offset of each key; then it rewrites all segments in front
//! of the end of what it has read, and leaves out what a later record of the same key replaces, tombstones and markers
//! whose time is over, and what belongs to aborted transactions.
//!
//! To Kafka a barrier is a control batch of a type that the cleaner does not know: it is kept for ever, at its offset. Which
//! batches of the producers in front of it survive is another matter, so a barrier must not depend on them. Keeping it is
//! sound; what else may be done is a choice ([`BarrierRetention`], BAR-15).

use bytes::{Bytes, BytesMut};

use super::clean_filter::{CleanFilter, Kept};
use super::clean_txns::CleanedTransactions;
use super::cleaner::{Cleaner, CleanerStats, OffsetMap};
use super::error::LogError;
use super::files::SegmentFile;
use super::partition_log::PartitionLog;
use super::rebuild::scan_failed;
use super::replace::{Built, replace_files};
use super::scan::Scanner;
use super::segment::Segment;
use super::split::is_near;
use super::txn_index::AbortedTxn;
use crate::barrier::BarrierRetention;
use crate::record::AnyBatch;
use crate::storage::{MemoryStorage, Storage};
use crate::types::{Offset, TimestampMs};

/// What a cleaning round is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanOptions {
    /// Where the last round ended; the log start offset before the first.
    pub first_dirty: Offset,
    /// Nothing from here on is cleaned, nor the segment that holds it, nor the active one. It is for the caller to stay
    /// at or below the last stable offset: undecided data must not be cleaned.
    pub first_uncleanable: Offset,
    /// The clock, in milliseconds.
    pub now: TimestampMs,
    /// How many keys may be remembered; a round ends early when there are more.
    pub max_keys: usize,
}

/// Whether a round is to go on.
type GoesOn<'a> = &'a mut dyn FnMut() -> bool;

impl<S: Storage> PartitionLog<S> {
    /// One cleaning round; returns the offset at which the next one begins.
    ///
    /// # Errors
    /// [`LogError::CleaningAborted`] when a segment had to be split; when the range is none, a batch cannot be read, the log
    /// is offline or the storage fails.
    pub fn compact(&mut self, options: &CleanOptions) -> Result<Offset, LogError> {
        self.compact_while(options, || true)
    }

    /// As [`Self::compact`]; in front of each batch that it reads it asks whether to go on. Segments that were being rewritten
    /// stay as they were, those that are done are done.
    ///
    /// # Errors
    /// As [`Self::compact`]; [`LogError::CleaningStopped`] when it was told to stop.
    pub fn compact_while(&mut self, options: &CleanOptions, goes_on: impl FnMut() -> bool) -> Result<Offset, LogError> {
        self.compact_with(&mut Cleaner::new(), options, goes_on).map(|(end, _)| end)
    }

    /// As [`Self::compact_while`], by a cleaner that may have cleaned before; tells what it did, too.
    ///
    /// # Errors
    /// As [`Self::compact_while`].
    pub fn compact_with(
        &mut self,
        cleaner: &mut Cleaner,
        options: &CleanOptions,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<(Offset, CleanerStats), LogError> {
        self.check_online()?;
        let cleaned = self.clean(&mut cleaner.map, options, &mut goes_on);
        self.or_offline(cleaned)
    }

    fn clean(
        &mut self,
        map: &mut OffsetMap,
        options: &CleanOptions,
        goes_on: GoesOn<'_>,
    ) -> Result<(Offset, CleanerStats), LogError> {
        let bound = self.clean_bound(options.first_uncleanable);
        if bound < options.first_dirty {
            return Err(LogError::CleanRange { first_dirty: options.first_dirty, bound });
        }
        map.clear(options.max_keys);
        self.build_offset_map(map, options, bound, goes_on)?;
        let end = map.latest.plus(1);
        let mut stats = CleanerStats { map_utilization: map.utilization(), ..CleanerStats::default() };
        let mut txns = CleanedTransactions::new(self.config.barrier.retention);
        for group in self.group_segments(end) {
            self.clean_group(&group, map, (&mut txns, &mut stats), (options, bound), goes_on)?;
        }
        Ok((end, stats))
    }

    /// Base offset of the first segment that is not cleaned (Kafka: `LogCleanerManager.calculateCleanableBytes`).
    fn clean_bound(&self, first_uncleanable: Offset) -> Offset {
        let active = self.segments.len().saturating_sub(1);
        let index = self.floor_segment(first_uncleanable).unwrap_or(0).min(active);
        self.segments.get(index).map_or(Offset(0), |segment| segment.base_offset)
    }

    /// Indexes of the segments that hold offsets from `from` up to, not including, `to`.
    pub(super) fn segments_between(&self, from: Offset, to: Offset) -> std::ops::Range<usize> {
        let end = self.segments.partition_point(|segment| segment.base_offset < to);
        let start = self.floor_segment(from).unwrap_or(0);
        if from >= to { 0..0 } else { start.min(end)..end }
    }

    /// Aborted transactions that matter for a range: those that end below the log start offset are no longer known
    /// (Kafka: `LocalLog.collectAbortedTransactions`).
    fn aborted_to_clean(&self, from: Offset, to: Offset) -> Vec<AbortedTxn> {
        self.collect_from_segment(self.floor_segment(from).unwrap_or(0), self.log_start_offset, to)
    }

    /// Kafka: `Cleaner.buildOffsetMap`.
    fn build_offset_map(
        &self,
        map: &mut OffsetMap,
        options: &CleanOptions,
        bound: Offset,
        goes_on: GoesOn<'_>,
    ) -> Result<(), LogError> {
        let mut txns = CleanedTransactions::default();
        txns.add_aborted(&self.aborted_to_clean(options.first_dirty, bound));
        let dirty = self.segments_between(options.first_dirty, bound);
        for index in dirty.clone() {
            let Some(segment) = self.segments.get(index) else { break };
            let next = index.saturating_add(1);
            let next_base = if next < dirty.end { self.segments.get(next).map(|next| next.base_offset) } else { None };
            if self.map_segment(segment, map, &mut txns, options, goes_on)? {
                break;
            }
            // Offsets behind the last batch are as good as read.
            map.latest = map.latest.max(next_base.unwrap_or(bound).plus(-1));
        }
        Ok(())
    }

    /// Notes the keys of a segment; tells whether the map is full.
    fn map_segment(
        &self,
        segment: &Segment,
        map: &mut OffsetMap,
        txns: &mut CleanedTransactions,
        options: &CleanOptions,
        goes_on: GoesOn<'_>,
    ) -> Result<bool, LogError> {
        let from = segment.offset_index.lookup(options.first_dirty);
        self.for_each_batch(segment, from, goes_on, |batch, position| {
            let wanted = match batch {
                AnyBatch::V2(batch) if batch.is_control() => {
                    txns.on_control_batch(batch, position, None)?;
                    false
                }
                AnyBatch::V2(batch) => !txns.on_data_batch(batch),
                AnyBatch::Legacy(_) => true,
            };
            if wanted {
                for record in batch.records().map_err(|source| LogError::CorruptRecord { position, source })? {
                    let Some(key) = record.key.filter(|_| record.offset >= options.first_dirty) else { continue };
                    if !map.put(key, record.offset) {
                        return Ok(true);
                    }
                }
            }
            if batch.last_offset() >= options.first_dirty {
                map.latest = map.latest.max(batch.last_offset());
            }
            Ok(false)
        })
    }

    /// Reads batches, each with its position in bytes, until one says that it is enough; tells whether one did.
    fn for_each_batch(
        &self,
        segment: &Segment,
        from: u64,
        goes_on: GoesOn<'_>,
        mut each: impl FnMut(&AnyBatch, u64) -> Result<bool, LogError>,
    ) -> Result<bool, LogError> {
        let name = segment.name(SegmentFile::Log);
        let mut scanner = Scanner::new(&self.storage, &name, from)?;
        loop {
            let position = scanner.position();
            if !goes_on() {
                return Err(LogError::CleaningStopped { base_offset: segment.base_offset });
            }
            let Some(batch) = scanner.next_known().map_err(|error| scan_failed(error, position))? else { return Ok(false) };
            if each(&batch, position)? {
                return Ok(true);
            }
        }
    }

    /// Base offsets of the segments that become one each, in groups that are not larger than a segment and its indexes
    /// may be (Kafka: `groupSegmentsBySize`).
    fn group_segments(&self, end: Offset) -> Vec<Vec<Offset>> {
        let mut groups: Vec<Vec<Offset>> = Vec::new();
        let mut sizes = (0, 0, 0);
        for index in self.segments_between(Offset(0), end) {
            let Some(segment) = self.segments.get(index) else { break };
            let (log, offset_index, time_index) = segment.sizes();
            let larger = (sizes.0 + log, sizes.1 + offset_index, sizes.2 + time_index);
            let max_index = self.config.segment_index_bytes as u64;
            let fits = larger.0 <= self.config.max_segment_bytes() as u64 && larger.1 <= max_index && larger.2 <= max_index;
            match groups.last_mut() {
                Some(group) if fits && group.first().is_some_and(|first| segment.is_near(*first)) => {
                    group.push(segment.base_offset);
                    sizes = larger;
                }
                _ => {
                    groups.push(vec![segment.base_offset]);
                    sizes = (log, offset_index, time_index);
                }
            }
        }
        groups
    }

    /// Rewrites some segments as one.
    fn clean_group(
        &mut self,
        group: &[Offset],
        map: &OffsetMap,
        (txns, stats): (&mut CleanedTransactions, &mut CleanerStats),
        (options, bound): (&CleanOptions, Offset),
        goes_on: GoesOn<'_>,
    ) -> Result<(), LogError> {
        let base_offset = group.first().copied().unwrap_or_default();
        let first = self.floor_segment(base_offset).unwrap_or(0);
        let mut filter = CleanFilter {
            map,
            txns,
            stats,
            producers: &self.psm,
            delete_retention_ms: self.config.delete_retention_ms,
            now: options.now,
            bound,
            aborted: Vec::new(),
        };
        let mut kept = BytesMut::new();
        let mut batches = Vec::new();
        for index in first..first.saturating_add(group.len()) {
            let Some(segment) = self.segments.get(index) else { break };
            let is_last = index.saturating_add(1) == first.saturating_add(group.len());
            let next_base = self.segments.get(index.saturating_add(1)).filter(|_| !is_last).map(|next| next.base_offset);
            let to = next_base.unwrap_or_else(|| segment.next_offset());
            filter.txns.add_aborted(&self.aborted_to_clean(segment.base_offset, to));
            let overflows = self.for_each_batch(segment, 0, goes_on, |original, position| {
                match filter.filter(original, position)? {
                    Kept::Nothing => filter.note_removed(original),
                    Kept::Batch(batch) if !is_near(base_offset, batch.last_offset()) => return Ok(true),
                    Kept::Batch(batch) => {
                        filter.note_kept(original, &batch);
                        kept.extend_from_slice(batch.bytes());
                        batches.push(AnyBatch::V2(*batch));
                    }
                }
                Ok(false)
            })?;
            if overflows {
                let base_offset = segment.base_offset;
                self.split_overflowed_segment(base_offset, options.now)?;
                return Err(LogError::CleaningAborted { base_offset });
            }
        }
        let aborted = filter.aborted;
        if let Some(barrier) = txns.removed_barrier.filter(|_| self.config.barrier.retention == BarrierRetention::WhileItProtects) {
            // They hold what the barrier cleared, and nothing would clear it again.
            self.delete_snapshots_before(barrier.plus(1))?;
        }
        let replaced = self.replace_segments(first, group, &batches, &kept.freeze(), &aborted, options.now);
        self.or_offline(replaced)?;
        Ok(())
    }

    /// The new segment takes the place of the group.
    fn replace_segments(
        &mut self,
        first: usize,
        group: &[Offset],
        batches: &[AnyBatch],
        bytes: &Bytes,
        aborted: &[AbortedTxn],
        now: TimestampMs,
    ) -> Result<(), LogError> {
        let mut files = MemoryStorage::new();
        let mut segment = Segment::new(group.first().copied().unwrap_or_default(), now);
        files.replace(&segment.name(SegmentFile::Log), &Bytes::new())?;
        if !batches.is_empty() {
            segment.append(&mut files, &self.config, batches, bytes)?;
        }
        for aborted in aborted {
            segment.append_aborted(&mut files, *aborted)?;
        }
        segment.become_inactive(&mut files)?;
        let end = first.saturating_add(group.len()).min(self.segments.len());
        let old: Vec<Segment> = self.segments.splice(first..end, [segment.clone()]).collect();
        Ok(replace_files(&mut self.storage, &mut self.deleted, &[Built { segment, files }], &old, now)?)
    }
}

#[cfg(test)]
mod tests;
