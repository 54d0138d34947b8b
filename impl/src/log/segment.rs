//! A segment of a log: what is known of its files (Kafka: `LogSegment`).

use bytes::{Bytes, BytesMut};

use super::config::LogConfig;
use super::files::SegmentFile;
use super::index::{Added, OffsetIndex, TimeIndex, TimeIndexEntry};
use super::txn_index::{AbortedTxn, TXN_INDEX_ENTRY_BYTES, TxnIndexError};
use crate::record::AnyBatch;
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, TimestampMs};

/// Where a batch lies in the segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchSlot {
    pub(super) base_offset: Offset,
    pub(super) last_offset: Offset,
    pub(super) max_timestamp: TimestampMs,
    pub(super) position: u64,
    pub(super) size: usize,
}

impl BatchSlot {
    /// Of a batch of any magic. An old one does not tell its first offset; that of the first record does, where it can be read
    /// within the bound on decompressed bytes.
    pub(super) fn new(batch: &AnyBatch, position: u64, max_decompressed_bytes: usize) -> Self {
        Self {
            base_offset: batch.first_offset(max_decompressed_bytes),
            last_offset: batch.last_offset(),
            max_timestamp: batch.max_timestamp(),
            position,
            size: batch.size_in_bytes(),
        }
    }
}

/// A segment. Its batches are in its files; where each lies is kept in memory.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) base_offset: Offset,
    pub(super) slots: Vec<BatchSlot>,
    /// Length of the log file up to the end of the last whole batch, in bytes.
    pub(super) valid_bytes: u64,
    /// Length of the log file, in bytes.
    pub(super) file_bytes: u64,
    pub(super) offset_index: OffsetIndex,
    pub(super) time_index: TimeIndex,
    pub(super) aborted: Vec<AbortedTxn>,
    /// The last offset that was added to the transaction index since the segment was opened.
    last_aborted: Option<Offset>,
    /// Kafka makes the file of an index when it first looks at it. A segment without offset index counts as damaged.
    pub(super) has_offset_index: bool,
    pub(super) has_time_index: bool,
    /// The largest timestamp and the batch that has it, as far as the segment has found out.
    largest: Option<TimeIndexEntry>,
    bytes_since_last_index_entry: u64,
    /// When the segment became empty, in milliseconds.
    created: TimestampMs,
}

impl Segment {
    /// A segment without batches, of which no file exists.
    pub(super) fn new(base_offset: Offset, now: TimestampMs) -> Self {
        Self {
            base_offset,
            slots: Vec::new(),
            valid_bytes: 0,
            file_bytes: 0,
            offset_index: OffsetIndex::new(base_offset),
            time_index: TimeIndex::new(base_offset),
            aborted: Vec::new(),
            last_aborted: None,
            has_offset_index: false,
            has_time_index: false,
            largest: None,
            bytes_since_last_index_entry: 0,
            created: now,
        }
    }

    /// When the segment became empty or was opened, in milliseconds.
    pub(super) fn created(&self) -> TimestampMs {
        self.created
    }

    pub(super) fn name(&self, file: SegmentFile) -> String {
        file.name(self.base_offset)
    }

    /// The offset behind the last batch; the base offset when there is none (Kafka: `readNextOffset`).
    pub(super) fn next_offset(&self) -> Offset {
        self.slots.last().map_or(self.base_offset, |slot| slot.last_offset.plus(1))
    }

    /// The batches from the one that holds or follows an offset. A set of an old format may begin within the batch before it: then the one
    /// that begins with the offset counts, or else the last that begins below it (Kafka: `FileRecords.searchForOffsetFromPosition`).
    pub(super) fn slots_from(&self, offset: Offset) -> &[BatchSlot] {
        let holds = self.slots.partition_point(|slot| slot.last_offset < offset);
        let mut from = self.slots.get(holds..).unwrap_or_default();
        while let [first, rest @ ..] = from
            && first.base_offset < offset
            && rest.first().is_some_and(|next| next.base_offset <= offset)
        {
            from = rest;
        }
        from
    }

    /// Sizes of the log, the offset index and the time index, in bytes.
    pub(super) fn sizes(&self) -> (u64, u64, u64) {
        (self.file_bytes, self.offset_index.bytes(), self.time_index.bytes())
    }

    /// Whether this segment's last offset can be told relative to a base offset; an empty one always can.
    pub(super) fn is_near(&self, base_offset: Offset) -> bool {
        let last = self.next_offset().get().saturating_sub(1);
        self.file_bytes == 0 || last.saturating_sub(base_offset.get()) <= i64::from(i32::MAX)
    }

    /// Position of the batch that holds or follows an offset.
    pub(super) fn position_of(&self, offset: Offset) -> Option<u64> {
        self.slots_from(offset).first().map(|slot| slot.position)
    }

    /// The largest timestamp and its batch; unless batches told more since the segment was opened, what the time index
    /// says (Kafka: `maxTimestampSoFar`).
    pub(super) fn largest_timestamp(&self) -> TimeIndexEntry {
        self.largest.unwrap_or_else(|| self.time_index.last_entry())
    }

    /// As [`Self::largest_timestamp`], and remembers it: from then on a truncation looks among the batches, too.
    pub(super) fn look_up_largest_timestamp(&mut self) -> TimeIndexEntry {
        *self.largest.insert(self.largest_timestamp())
    }

    /// What the time index says, unless a batch behind its last entry says more.
    fn find_largest_timestamp(&self) -> TimeIndexEntry {
        let last = self.time_index.last_entry();
        let from = self.offset_index.lookup(last.offset);
        let behind = self.slots.iter().skip_while(|slot| slot.position < from);
        behind.fold(last, |largest, slot| {
            if slot.max_timestamp > largest.timestamp {
                TimeIndexEntry { timestamp: slot.max_timestamp, offset: slot.last_offset }
            } else {
                largest
            }
        })
    }

    /// Whether there has to be a new segment for an append (Kafka: `LogSegment.shouldRoll`).
    pub(super) fn should_roll(&self, config: &LogConfig, incoming: &Incoming, now: TimestampMs) -> bool {
        let size = self.file_bytes;
        let room = (config.max_segment_bytes() as u64).checked_sub(incoming.bytes as u64);
        let waited_ms = match self.slots.first() {
            Some(first) if first.max_timestamp >= TimestampMs(0) => {
                incoming.max_timestamp.get().saturating_sub(first.max_timestamp.get())
            }
            _ => now.get().saturating_sub(self.created.get()),
        };
        let distance = incoming.last_offset.get().saturating_sub(self.base_offset.get());
        room.is_none_or(|room| size > room)
            || (size > 0 && waited_ms > config.segment_ms.saturating_sub(config.roll_jitter_ms(self.base_offset)))
            || self.offset_index.is_full(config.segment_index_bytes)
            || self.time_index.is_full(config.segment_index_bytes)
            || i32::try_from(distance).is_err()
            || distance < 0
    }

    /// Makes sure that the files of both indexes are there.
    pub(super) fn touch_indexes(&mut self, storage: &mut impl Storage) -> Result<(), StorageError> {
        self.touch_offset_index(storage)?;
        self.touch_time_index(storage)
    }

    /// Makes sure that the file of the time index is there, as after any look for a timestamp.
    pub(super) fn touch_time_index(&mut self, storage: &mut impl Storage) -> Result<(), StorageError> {
        if !self.has_time_index {
            create_missing(storage, &self.name(SegmentFile::TimeIndex))?;
            self.has_time_index = true;
        }
        Ok(())
    }

    /// Makes sure that the file of the offset index is there, as after any look for an offset.
    pub(super) fn touch_offset_index(&mut self, storage: &mut impl Storage) -> Result<(), StorageError> {
        if !self.has_offset_index {
            create_missing(storage, &self.name(SegmentFile::OffsetIndex))?;
            self.has_offset_index = true;
        }
        Ok(())
    }

    /// Writes batches behind the last one, and index entries every so many bytes.
    pub(super) fn append(
        &mut self,
        storage: &mut impl Storage,
        config: &LogConfig,
        batches: &[AnyBatch],
        bytes: &Bytes,
    ) -> Result<(), StorageError> {
        let mut position = self.valid_bytes;
        let bound = config.max_decompressed_bytes;
        let slots = batches.iter().map(|batch| {
            let slot = BatchSlot::new(batch, position, bound);
            position = position.saturating_add(slot.size as u64);
            slot
        });
        self.append_slots(storage, config, slots, bytes)
    }

    /// As [`Self::append`], for batches of which is known where they will lie.
    pub(super) fn append_slots(
        &mut self,
        storage: &mut impl Storage,
        config: &LogConfig,
        slots: impl Iterator<Item = BatchSlot>,
        bytes: &Bytes,
    ) -> Result<(), StorageError> {
        self.touch_indexes(storage)?;
        let log = self.name(SegmentFile::Log);
        if self.file_bytes > self.valid_bytes {
            storage.truncate(&log, self.valid_bytes)?;
            self.file_bytes = self.valid_bytes;
        }
        storage.append(&log, bytes)?;
        for slot in slots {
            self.note_timestamp(&slot);
            if self.bytes_since_last_index_entry > config.index_interval_bytes as u64 {
                self.add_index_entries(storage, &slot)?;
                self.bytes_since_last_index_entry = 0;
            }
            self.bytes_since_last_index_entry = self.bytes_since_last_index_entry.saturating_add(slot.size as u64);
            self.take_in(slot);
        }
        self.file_bytes = self.valid_bytes;
        Ok(())
    }

    pub(super) fn note_timestamp(&mut self, slot: &BatchSlot) {
        let largest = self.largest_timestamp();
        let is_larger = slot.max_timestamp > largest.timestamp;
        self.largest =
            Some(if is_larger { TimeIndexEntry { timestamp: slot.max_timestamp, offset: slot.last_offset } } else { largest });
    }

    fn add_index_entries(&mut self, storage: &mut impl Storage, slot: &BatchSlot) -> Result<(), StorageError> {
        self.touch_indexes(storage)?;
        let (in_offset_index, in_time_index) = self.index(slot);
        if let Some(bytes) = in_offset_index {
            storage.append(&self.name(SegmentFile::OffsetIndex), &bytes)?;
        }
        if let Some(bytes) = in_time_index {
            storage.append(&self.name(SegmentFile::TimeIndex), &bytes)?;
        }
        Ok(())
    }

    /// Adds entries to both indexes in memory; returns what has to be added to the files.
    pub(super) fn index(&mut self, slot: &BatchSlot) -> (Added, Added) {
        // A segment is at most as long as an `int` tells.
        let position = u32::try_from(slot.position).unwrap_or(u32::MAX);
        let in_offset_index = self.offset_index.append(slot.last_offset, position);
        (in_offset_index, self.time_index.maybe_append(self.largest_timestamp()))
    }

    /// Notes the largest timestamp so far, if that is news.
    pub(super) fn add_time_index_entry(&mut self, storage: &mut impl Storage) -> Result<(), StorageError> {
        self.touch_indexes(storage)?;
        let largest = self.look_up_largest_timestamp();
        if let Some(bytes) = self.time_index.maybe_append(largest) {
            storage.append(&self.name(SegmentFile::TimeIndex), &bytes)?;
        }
        Ok(())
    }

    pub(super) fn take_in(&mut self, slot: BatchSlot) {
        self.valid_bytes = self.valid_bytes.saturating_add(slot.size as u64);
        self.slots.push(slot);
    }

    /// Adds an entry to the transaction index. What was in its file when the segment was opened is not compared, as in Kafka.
    pub(super) fn append_aborted(&mut self, storage: &mut impl Storage, aborted: AbortedTxn) -> Result<(), TxnIndexError> {
        if let Some(previous) = self.last_aborted.filter(|previous| aborted.last_offset <= *previous) {
            return Err(TxnIndexError::Order { offset: aborted.last_offset, previous });
        }
        storage.append(&self.name(SegmentFile::TxnIndex), &aborted.encode())?;
        self.last_aborted = Some(aborted.last_offset);
        self.aborted.push(aborted);
        Ok(())
    }

    /// Writes the transaction index as it is in memory; without entries the file is empty, if there is one.
    pub(super) fn write_txn_index(&self, storage: &mut impl Storage) -> Result<(), StorageError> {
        let name = self.name(SegmentFile::TxnIndex);
        if self.aborted.is_empty() && storage.len(&name)?.is_none() {
            return Ok(());
        }
        let mut bytes = BytesMut::with_capacity(self.aborted.len() * TXN_INDEX_ENTRY_BYTES);
        self.aborted.iter().for_each(|aborted| bytes.extend_from_slice(&aborted.encode()));
        storage.replace(&name, &bytes.freeze())
    }

    /// Cuts the segment in front of the batch that holds or follows an offset (Kafka: `LogSegment.truncateTo`).
    pub(super) fn truncate_to(&mut self, storage: &mut impl Storage, target: Offset, now: TimestampMs) -> Result<(), StorageError> {
        self.touch_indexes(storage)?;
        if let Some(len) = self.offset_index.truncate_to(target) {
            storage.truncate(&self.name(SegmentFile::OffsetIndex), len)?;
        }
        if let Some(len) = self.time_index.truncate_to(target) {
            storage.truncate(&self.name(SegmentFile::TimeIndex), len)?;
        }
        let kept = self.aborted.partition_point(|aborted| aborted.last_offset < target);
        if kept < self.aborted.len() {
            self.aborted.truncate(kept);
            self.last_aborted = self.aborted.last().map(|aborted| aborted.last_offset);
            storage.truncate(&self.name(SegmentFile::TxnIndex), (kept * TXN_INDEX_ENTRY_BYTES) as u64)?;
        }
        if let Some(position) = self.position_of(target) {
            storage.truncate(&self.name(SegmentFile::Log), position)?;
            // Kafka does not wait for this. But when the next segment begins at the target, which may be the recovery point by
            // then, nothing makes this one durable any more, and what was cut could come back in a crash: records, or an aborted
            // transaction of a marker that is no longer there.
            self.sync(storage)?;
            self.valid_bytes = position;
            self.file_bytes = position;
            self.slots.retain(|slot| slot.position < position);
        }
        if self.file_bytes == 0 {
            self.created = now;
        }
        self.bytes_since_last_index_entry = 0;
        let known = self.largest_timestamp();
        let rescans = known.timestamp >= TimestampMs(0);
        self.largest = Some(if rescans { self.find_largest_timestamp() } else { known });
        Ok(())
    }

    /// The segment will not be appended to any more (Kafka: `onBecomeInactiveSegment`). That its file is as long as what is in it
    /// has to be durable: recovery may never look at it again.
    pub(super) fn become_inactive(&mut self, storage: &mut impl Storage) -> Result<(), StorageError> {
        self.add_time_index_entry(storage)?;
        storage.trim(&self.name(SegmentFile::Log))
    }

    /// An orderly stop, which gives back what was reserved for the segment (Kafka: `LogSegment.close`).
    pub(super) fn close(&mut self, storage: &mut impl Storage) -> Result<(), StorageError> {
        if self.largest.is_some() {
            self.add_time_index_entry(storage)?;
        }
        storage.trim(&self.name(SegmentFile::Log))
    }

    /// Makes the segment durable, with both indexes.
    pub(super) fn flush(&mut self, storage: &mut impl Storage) -> Result<(), StorageError> {
        self.touch_indexes(storage)?;
        self.sync(storage)
    }

    /// Makes durable what there is of the segment's files.
    pub(super) fn sync(&self, storage: &mut impl Storage) -> Result<(), StorageError> {
        for file in SegmentFile::ALL {
            let name = self.name(file);
            if storage.len(&name)?.is_some() {
                storage.sync(&name)?;
            }
        }
        Ok(())
    }

    /// Removes the segment's files.
    pub(super) fn remove_files(&self, storage: &mut impl Storage) -> Result<(), StorageError> {
        SegmentFile::ALL.into_iter().try_for_each(|file| storage.remove(&self.name(file)))
    }
}

fn create_missing(storage: &mut impl Storage, name: &str) -> Result<(), StorageError> {
    if storage.len(name)?.is_none() { storage.replace(name, &Bytes::new()) } else { Ok(()) }
}

/// What an append brings, as far as it decides whether there has to be a new segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) bytes: usize,
    /// `None` where the first batch does not tell.
    pub(super) first_offset: Option<Offset>,
    pub(super) last_offset: Offset,
    pub(super) max_timestamp: TimestampMs,
}

impl Incoming {
    /// The first offset, or one below it: offsets of one append are not farther apart than an index can tell.
    pub(super) fn expected_offset(&self) -> Offset {
        self.first_offset.unwrap_or(self.last_offset.plus(-i64::from(i32::MAX)))
    }
}

#[cfg(test)]
mod tests;
