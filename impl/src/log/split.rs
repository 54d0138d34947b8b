//! Splitting a segment whose offsets lie too far from its base (Kafka: `LocalLog.splitOverflowedSegment`,
//! `LogLoader.retryOnOffsetOverflow`).
//!
//! An index tells offsets relative to the base of its segment, in 31 bits. Old versions of Kafka could write a segment
//! with offsets beyond that. It is found when it is recovered, or compacted, and replaced by as many as it takes.

use super::error::LogError;
use super::files::SegmentFile;
use super::partition_log::PartitionLog;
use super::rebuild::scan_failed;
use super::replace::{Built, replace_files};
use super::scan::Scanner;
use super::segment::{BatchSlot, Segment};
use crate::storage::{MemoryStorage, Storage};
use crate::types::{Offset, TimestampMs};

impl<S: Storage> PartitionLog<S> {
    /// Splits the segment with this base offset; returns the base offsets of the segments that take its place. As in Kafka
    /// they have no transaction indexes until they are recovered. `now` is the clock in milliseconds.
    ///
    /// # Errors
    /// [`LogError::NoOverflow`] when there is no such segment or all its offsets can be told relative to its base; when it
    /// cannot be read to its end, the log is offline or the storage fails.
    pub fn split_overflowed_segment(&mut self, base_offset: Offset, now: TimestampMs) -> Result<Vec<Offset>, LogError> {
        self.check_online()?;
        let index = self.segments.iter().position(|segment| segment.base_offset == base_offset);
        let split = index.map_or(Err(LogError::NoOverflow { base_offset }), |index| self.split_segment(index, now));
        self.or_offline(split)
    }

    /// As [`Self::split_overflowed_segment`]; a failure is for the caller to note.
    pub(super) fn split_segment(&mut self, index: usize, now: TimestampMs) -> Result<Vec<Offset>, LogError> {
        let Some(old) = self.segments.get(index) else { return Ok(Vec::new()) };
        let parts = self.split_files(&old.clone(), now)?;
        let bases = parts.iter().map(|part| part.base_offset).collect();
        self.segments.splice(index..=index, parts);
        Ok(bases)
    }

    /// Splits a segment that the log need not know.
    pub(super) fn split_files(&mut self, old: &Segment, now: TimestampMs) -> Result<Vec<Segment>, LogError> {
        let slots = all_slots(&self.storage, old, self.config.max_decompressed_bytes)?;
        let mut parts = Vec::new();
        let mut rest = slots.as_slice();
        while let Some(first) = rest.first() {
            let fits = |slot: &&BatchSlot| is_near(first.base_offset, slot.last_offset);
            // A batch is never too far from its own base: its offsets are told in the same 31 bits.
            let count = rest.iter().take_while(fits).count().max(1);
            let (part, behind) = rest.split_at(count);
            parts.push(self.build_part(old, part, now)?);
            rest = behind;
        }
        replace_files(&mut self.storage, &mut self.deleted, &parts, std::slice::from_ref(old), now)?;
        Ok(parts.into_iter().map(|part| part.segment).collect())
    }

    fn build_part(&self, old: &Segment, slots: &[BatchSlot], now: TimestampMs) -> Result<Built, LogError> {
        let first = slots.first().map_or((Offset(0), 0), |slot| (slot.base_offset, slot.position));
        let end = slots.last().map_or(0, |slot| slot.position.saturating_add(slot.size as u64));
        let len = usize::try_from(end.saturating_sub(first.1)).unwrap_or(usize::MAX);
        let bytes = self.storage.read(&old.name(SegmentFile::Log), first.1, len)?;
        let moved = slots.iter().map(|slot| BatchSlot { position: slot.position.saturating_sub(first.1), ..*slot });
        let mut files = MemoryStorage::new();
        let mut segment = Segment::new(first.0, now);
        segment.append_slots(&mut files, &self.config, moved, &bytes)?;
        segment.become_inactive(&mut files)?;
        Ok(Built { segment, files })
    }
}

/// Whether an offset can be told relative to a base offset.
pub(super) fn is_near(base_offset: Offset, offset: Offset) -> bool {
    offset.get().checked_sub(base_offset.get()).is_some_and(|distance| (0..=i64::from(i32::MAX)).contains(&distance))
}

/// The batches of a segment that is to be split: its last offset is too far from its base, and nothing follows them.
fn all_slots(storage: &impl Storage, segment: &Segment, bound: usize) -> Result<Vec<BatchSlot>, LogError> {
    let name = segment.name(SegmentFile::Log);
    let mut scanner = Scanner::new(storage, &name, 0)?;
    let mut slots: Vec<BatchSlot> = Vec::new();
    loop {
        let position = scanner.position();
        let Some(batch) = scanner.next().map_err(|error| scan_failed(error, position))? else { break };
        slots.push(BatchSlot::new(&batch, position, bound));
    }
    let base_offset = segment.base_offset;
    let last = slots.last().map(|slot| slot.last_offset).filter(|last| *last >= base_offset);
    if last.is_none_or(|last| is_near(base_offset, last)) {
        return Err(LogError::NoOverflow { base_offset });
    }
    let (position, len) = (scanner.position(), storage.len(&name)?.unwrap_or(0));
    if position == len { Ok(slots) } else { Err(LogError::SplitTrailingBytes { position, len }) }
}
