//! Looking for offsets by time (Kafka: `UnifiedLog.fetchOffsetByTimestamp`, `LogSegment.findOffsetByTimestamp`).

use super::error::ReadError;
use super::files::SegmentFile;
use super::partition_log::PartitionLog;
use super::segment::{BatchSlot, Segment};
use crate::record::AnyBatch;
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// Which offset is looked for (Kafka: the special timestamps of `ListOffsetsRequest`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffsetSpec {
    /// The log end offset. How far a client may see is for the caller to bound it by.
    Latest,
    /// The log start offset.
    Earliest,
    /// The first record with the largest timestamp.
    MaxTimestamp,
    /// The first offset that this replica has on its own disk: without remote storage the log start offset.
    EarliestLocal,
    /// The last offset in remote storage, which there is not.
    LatestTiered,
    /// The first offset that is still to be copied to remote storage, which there is not.
    EarliestPendingUpload,
    /// The first record at or behind the log start offset whose timestamp is not below this one.
    Timestamp(TimestampMs),
}

impl From<i64> for OffsetSpec {
    /// From the number in a request: a timestamp in milliseconds, or one of the special ones, -1 to -6.
    fn from(timestamp: i64) -> Self {
        match timestamp {
            -1 => Self::Latest,
            -2 => Self::Earliest,
            -3 => Self::MaxTimestamp,
            -4 => Self::EarliestLocal,
            -5 => Self::LatestTiered,
            -6 => Self::EarliestPendingUpload,
            other => Self::Timestamp(TimestampMs(other)),
        }
    }
}

/// An offset that was found (Kafka: `FileRecords.TimestampAndOffset`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimestampAndOffset {
    /// The timestamp of the record, in milliseconds; -1 where no record was looked for.
    pub timestamp: TimestampMs,
    /// The offset; -1 for one in remote storage.
    pub offset: Offset,
    /// The leader epoch at the offset, where one is known; -1 for remote storage.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl<S: Storage> PartitionLog<S> {
    /// Looks for an offset; `None` when there is no such record. As in Kafka the first segment whose largest timestamp is
    /// not below the one asked for is searched, and no other. Where the largest timestamp is not known, as after a
    /// truncation behind a clean start, the batches are asked; Kafka takes the time at which the file was written.
    ///
    /// # Errors
    /// When a batch cannot be read, the log is offline or the storage fails.
    pub fn fetch_offset_by_timestamp(&mut self, spec: OffsetSpec) -> Result<Option<TimestampAndOffset>, ReadError> {
        self.check_online()?;
        let unread = |offset, leader_epoch| Ok(Some(TimestampAndOffset { timestamp: TimestampMs::NONE, offset, leader_epoch }));
        match spec {
            OffsetSpec::Latest => unread(self.log_end_offset, self.epochs.latest_epoch()),
            OffsetSpec::Earliest | OffsetSpec::EarliestLocal => {
                let earliest = self.epochs.entries().first();
                let epoch = earliest.filter(|entry| entry.start_offset <= self.log_start_offset).map(|entry| entry.epoch);
                unread(self.log_start_offset, epoch)
            }
            OffsetSpec::LatestTiered | OffsetSpec::EarliestPendingUpload => unread(Offset::UNKNOWN, Some(LeaderEpoch::NONE)),
            OffsetSpec::MaxTimestamp => {
                let found = self.first_of_max_timestamp();
                self.or_offline(found)
            }
            OffsetSpec::Timestamp(timestamp) => {
                let found = self.first_at_or_after(timestamp);
                self.or_offline(found)
            }
        }
    }

    fn first_of_max_timestamp(&mut self) -> Result<Option<TimestampAndOffset>, ReadError> {
        let mut largest = None;
        for index in 0..self.segments.len() {
            let entry = self.largest_timestamp_of(index)?;
            if largest.is_none_or(|(_, known): (usize, TimestampMs)| entry.timestamp > known) {
                largest = Some((index, entry.timestamp));
            }
        }
        let Some((index, timestamp)) = largest else { return Ok(None) };
        self.touch_offset_index_of(index)?;
        let Some(segment) = self.segments.get(index) else { return Ok(None) };
        let from = segment.offset_index.lookup(segment.largest_timestamp().offset);
        let slot = segment.slots.iter().find(|slot| slot.position >= from && slot.max_timestamp == timestamp);
        let Some(slot) = slot else { return Ok(None) };
        self.first_in(segment, slot, |of_record, _| of_record == timestamp)
    }

    fn first_at_or_after(&mut self, timestamp: TimestampMs) -> Result<Option<TimestampAndOffset>, ReadError> {
        let mut found = None;
        for index in 0..self.segments.len() {
            let largest = self.largest_timestamp_of(index)?.timestamp;
            let unknown = largest == TimestampMs::NONE;
            let holds = |segment: &Segment| segment.slots.iter().any(|slot| slot.max_timestamp >= timestamp);
            if largest >= timestamp || (unknown && self.segments.get(index).is_some_and(holds)) {
                found = Some(index);
                break;
            }
        }
        let Some(index) = found else { return Ok(None) };
        self.touch_offset_index_of(index)?;
        let Some(segment) = self.segments.get(index) else { return Ok(None) };
        let start = self.log_start_offset;
        let from = segment.offset_index.lookup(segment.time_index.lookup(timestamp).offset.max(start));
        for slot in segment.slots.iter().filter(|slot| slot.position >= from && slot.max_timestamp >= timestamp) {
            let first = self.first_in(segment, slot, |of_record, offset| of_record >= timestamp && offset >= start)?;
            if first.is_some() {
                return Ok(first);
            }
        }
        Ok(None)
    }

    /// The largest timestamp of a segment. Kafka makes the file of the time index when it looks there.
    fn largest_timestamp_of(&mut self, index: usize) -> Result<super::index::TimeIndexEntry, ReadError> {
        let Some(segment) = self.segments.get_mut(index) else { return Ok(super::index::TimeIndex::default().last_entry()) };
        let touched = segment.touch_time_index(&mut self.storage);
        let largest = segment.look_up_largest_timestamp();
        self.or_offline(touched)?;
        Ok(largest)
    }

    fn touch_offset_index_of(&mut self, index: usize) -> Result<(), ReadError> {
        let touched = match self.segments.get_mut(index) {
            Some(segment) => segment.touch_offset_index(&mut self.storage),
            None => Ok(()),
        };
        Ok(self.or_offline(touched)?)
    }

    /// The first record of a batch that is wanted.
    fn first_in(
        &self,
        segment: &Segment,
        slot: &BatchSlot,
        wanted: impl Fn(TimestampMs, Offset) -> bool,
    ) -> Result<Option<TimestampAndOffset>, ReadError> {
        let bytes = self.storage.read(&segment.name(SegmentFile::Log), slot.position, slot.size)?;
        let corrupt = |source| ReadError::CorruptRecord { position: slot.position, source };
        let (batch, _) = AnyBatch::decode(&bytes, 0).map_err(corrupt)?;
        let records = batch.records_within(self.config.max_decompressed_bytes).map_err(corrupt)?;
        let leader_epoch = Some(batch.leader_epoch()).filter(|epoch| *epoch >= LeaderEpoch(0));
        let record = records.into_iter().find(|record| wanted(record.timestamp, record.offset));
        Ok(record.map(|record| TimestampAndOffset { timestamp: record.timestamp, offset: record.offset, leader_epoch }))
    }
}
