//! The offset index and the time index of a segment (Kafka: `OffsetIndex`, `TimeIndex`).
//!
//! ```text
//! .index:     entries of 8 bytes:  i32 offset less base offset | i32 position of the batch
//! .timeindex: entries of 12 bytes: i64 timestamp | i32 offset less base offset
//! ```
//!
//! Kafka allocates the files of an active segment at their largest size, filled with zeros, and cuts them when the
//! segment becomes inactive. Here they always end behind the last entry.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::types::{Offset, TimestampMs};

/// The size of an entry of an offset index, in bytes.
pub const OFFSET_INDEX_ENTRY_BYTES: usize = 8;
/// The size of an entry of a time index, in bytes.
pub const TIME_INDEX_ENTRY_BYTES: usize = 12;

/// Entries at the end of an offset index that Kafka searches first, as they are likely in memory.
const WARM_ENTRIES: usize = 8192 / OFFSET_INDEX_ENTRY_BYTES;

/// Where a batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OffsetIndexEntry {
    /// The last offset of the batch.
    pub(super) offset: Offset,
    /// The byte in the segment where the batch begins.
    pub(super) position: u32,
}

/// The largest timestamp so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TimeIndexEntry {
    /// The timestamp, in milliseconds.
    pub(super) timestamp: TimestampMs,
    /// The last offset of the batch that has it.
    pub(super) offset: Offset,
}

/// What was added to an index, as bytes of its file.
pub(super) type Added = Option<Bytes>;

/// An offset index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OffsetIndex {
    base_offset: Offset,
    entries: Vec<OffsetIndexEntry>,
}

impl OffsetIndex {
    pub(super) fn new(base_offset: Offset) -> Self {
        Self { base_offset, entries: Vec::new() }
    }

    /// Reads a file; what follows the last whole entry is ignored.
    pub(super) fn decode(base_offset: Offset, mut file: Bytes) -> Self {
        let mut entries = Vec::with_capacity(file.len() / OFFSET_INDEX_ENTRY_BYTES);
        while file.len() >= OFFSET_INDEX_ENTRY_BYTES {
            let offset = base_offset.plus(i64::from(file.get_i32()));
            entries.push(OffsetIndexEntry { offset, position: file.get_u32() });
        }
        Self { base_offset, entries }
    }

    /// The size of the entries, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.entries.len() * OFFSET_INDEX_ENTRY_BYTES) as u64
    }

    pub(super) fn is_full(&self, max_bytes: usize) -> bool {
        self.entries.len() >= max_bytes / OFFSET_INDEX_ENTRY_BYTES
    }

    /// Adds an entry; one that does not ascend is left out.
    pub(super) fn append(&mut self, offset: Offset, position: u32) -> Added {
        if self.entries.last().is_some_and(|last| offset <= last.offset) {
            return None;
        }
        self.entries.push(OffsetIndexEntry { offset, position });
        let mut bytes = BytesMut::with_capacity(OFFSET_INDEX_ENTRY_BYTES);
        bytes.put_i32(relative(self.base_offset, offset));
        bytes.put_u32(position);
        Some(bytes.freeze())
    }

    /// Drops the entries at or behind an offset; tells the length of the file if that dropped any.
    pub(super) fn truncate_to(&mut self, offset: Offset) -> Option<u64> {
        let keep = self.entries.partition_point(|entry| entry.offset < offset);
        let dropped = keep < self.entries.len();
        self.entries.truncate(keep);
        dropped.then_some((keep * OFFSET_INDEX_ENTRY_BYTES) as u64)
    }

    /// The position that the last entry at or below an offset tells; 0 before the first (Kafka: `lookup`).
    pub(super) fn lookup(&self, offset: Offset) -> u64 {
        let index = self.entries.partition_point(|entry| entry.offset <= offset);
        index.checked_sub(1).and_then(|index| self.entries.get(index)).map_or(0, |entry| u64::from(entry.position))
    }

    /// The offset of an entry whose position is at least this one (Kafka: `fetchUpperBoundOffset`): the first such, or the
    /// one behind it. The search is Kafka's, which overlooks an exact match where its two ends meet.
    pub(super) fn upper_bound(&self, position: u64) -> Option<Offset> {
        let at = |index: usize| self.entries.get(index).map(|entry| u64::from(entry.position));
        let last = self.entries.len().checked_sub(1)?;
        let first_hot = last.saturating_sub(WARM_ENTRIES);
        let (mut low, mut high) = if at(first_hot)? < position { (first_hot, last) } else { (0, first_hot) };
        if at(0)? > position {
            return self.entries.first().map(|entry| entry.offset);
        }
        while low < high {
            let middle = low.saturating_add(high).div_ceil(2);
            match at(middle)?.cmp(&position) {
                std::cmp::Ordering::Greater => high = middle.saturating_sub(1),
                std::cmp::Ordering::Less => low = middle,
                std::cmp::Ordering::Equal => return self.entries.get(middle).map(|entry| entry.offset),
            }
        }
        self.entries.get(low.saturating_add(1)).map(|entry| entry.offset)
    }
}

/// A time index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeIndex {
    base_offset: Offset,
    entries: Vec<TimeIndexEntry>,
}

impl TimeIndex {
    pub(super) fn new(base_offset: Offset) -> Self {
        Self { base_offset, entries: Vec::new() }
    }

    /// Reads a file; what follows the last whole entry is ignored.
    pub(super) fn decode(base_offset: Offset, mut file: Bytes) -> Self {
        let mut entries = Vec::with_capacity(file.len() / TIME_INDEX_ENTRY_BYTES);
        while file.len() >= TIME_INDEX_ENTRY_BYTES {
            let timestamp = TimestampMs(file.get_i64());
            entries.push(TimeIndexEntry { timestamp, offset: base_offset.plus(i64::from(file.get_i32())) });
        }
        Self { base_offset, entries }
    }

    /// The size of the entries, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.entries.len() * TIME_INDEX_ENTRY_BYTES) as u64
    }

    /// One entry early: the last is for when the segment becomes inactive.
    pub(super) fn is_full(&self, max_bytes: usize) -> bool {
        self.entries.len().saturating_add(1) >= max_bytes / TIME_INDEX_ENTRY_BYTES
    }

    /// The newest entry; before the first, no timestamp at the base offset.
    pub(super) fn last_entry(&self) -> TimeIndexEntry {
        let none = TimeIndexEntry { timestamp: TimestampMs::NONE, offset: self.base_offset };
        self.entries.last().copied().unwrap_or(none)
    }

    /// The last entry at or below a timestamp; before the first, no timestamp at the base offset.
    pub(super) fn lookup(&self, timestamp: TimestampMs) -> TimeIndexEntry {
        let none = TimeIndexEntry { timestamp: TimestampMs::NONE, offset: self.base_offset };
        let index = self.entries.partition_point(|entry| entry.timestamp <= timestamp);
        index.checked_sub(1).and_then(|index| self.entries.get(index)).copied().unwrap_or(none)
    }

    /// Adds an entry if its timestamp is above that of the newest.
    pub(super) fn maybe_append(&mut self, entry: TimeIndexEntry) -> Added {
        if entry.timestamp <= self.last_entry().timestamp {
            return None;
        }
        self.entries.push(entry);
        let mut bytes = BytesMut::with_capacity(TIME_INDEX_ENTRY_BYTES);
        bytes.put_i64(entry.timestamp.get());
        bytes.put_i32(relative(self.base_offset, entry.offset));
        Some(bytes.freeze())
    }

    /// Drops the entries at or behind an offset; tells the length of the file if that dropped any.
    pub(super) fn truncate_to(&mut self, offset: Offset) -> Option<u64> {
        let keep = self.entries.partition_point(|entry| entry.offset < offset);
        let dropped = keep < self.entries.len();
        self.entries.truncate(keep);
        dropped.then_some((keep * TIME_INDEX_ENTRY_BYTES) as u64)
    }
}

/// Why the file of an index is damaged (Kafka: `CorruptIndexException`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The file does not end with a whole entry.
    #[error("index of {len} bytes, expected a multiple of {entry_bytes}")]
    NotWhole {
        /// The length of the file.
        len: usize,
        /// The length of an entry.
        entry_bytes: usize,
    },
    /// The last offset lies in front of the segment.
    #[error("the last offset is {offset}, expected at least the base offset {base_offset}")]
    BelowBase {
        /// The last offset.
        offset: Offset,
        /// The base offset of the segment.
        base_offset: Offset,
    },
    /// The last timestamp lies in front of the first.
    #[error("the last timestamp is {last}, expected at least the first, {first}")]
    TimeGoesBack {
        /// The first timestamp, in milliseconds.
        first: TimestampMs,
        /// The last, in milliseconds.
        last: TimestampMs,
    },
}

impl IndexError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        "CorruptIndexException"
    }
}

/// What can be told of the file of an offset index without its segment (Kafka: `OffsetIndex.sanityCheck`). A log does not ask: it
/// builds the indexes of what may not be durable anew.
///
/// # Errors
/// When the file is damaged.
pub fn check_offset_index(base_offset: Offset, file: &Bytes) -> Result<(), IndexError> {
    let index = OffsetIndex::decode(base_offset, file.clone());
    check_file(base_offset, index.entries.last().map(|last| last.offset), file.len(), OFFSET_INDEX_ENTRY_BYTES)
}

/// As [`check_offset_index`], for a time index (Kafka: `TimeIndex.sanityCheck`).
///
/// # Errors
/// When the file is damaged.
pub fn check_time_index(base_offset: Offset, file: &Bytes) -> Result<(), IndexError> {
    let index = TimeIndex::decode(base_offset, file.clone());
    if let (Some(first), Some(last)) = (index.entries.first(), index.entries.last())
        && last.timestamp < first.timestamp
    {
        return Err(IndexError::TimeGoesBack { first: first.timestamp, last: last.timestamp });
    }
    check_file(base_offset, index.entries.last().map(|last| last.offset), file.len(), TIME_INDEX_ENTRY_BYTES)
}

fn check_file(base_offset: Offset, last: Option<Offset>, len: usize, entry_bytes: usize) -> Result<(), IndexError> {
    if let Some(offset) = last.filter(|last| *last < base_offset) {
        return Err(IndexError::BelowBase { offset, base_offset });
    }
    if len.is_multiple_of(entry_bytes) { Ok(()) } else { Err(IndexError::NotWhole { len, entry_bytes }) }
}

/// A segment rolls before an offset is too far from its base.
fn relative(base_offset: Offset, offset: Offset) -> i32 {
    i32::try_from(offset.get().saturating_sub(base_offset.get())).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
