//! Offsets with their places in the files (Kafka: `LogOffsetMetadata`, `LogOffsetSnapshot`).

use super::error::ReadError;
use super::partition_log::PartitionLog;
use crate::storage::Storage;
use crate::types::{Offset, OffsetMetadata, SegmentPosition};

/// Where a log stands, all at one moment (Kafka: `LogOffsetSnapshot`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetSnapshot {
    /// The log start offset.
    pub log_start_offset: Offset,
    /// The log end offset: behind the last batch.
    pub log_end_offset: OffsetMetadata,
    /// The high watermark.
    pub high_watermark: OffsetMetadata,
    /// The last stable offset.
    pub last_stable_offset: OffsetMetadata,
}

impl<S: Storage> PartitionLog<S> {
    /// The batch that holds or follows an offset: its first offset and its place. The log end offset lies behind the last batch
    /// (Kafka: `convertToOffsetMetadataOrThrow`).
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`] below the log start offset and above the log end offset; or when the log is offline or the
    /// storage fails.
    pub fn convert_to_offset_metadata(&mut self, offset: Offset) -> Result<OffsetMetadata, ReadError> {
        self.check_online()?;
        self.check_range(offset)?;
        self.look_for(offset);
        self.check_online()?;
        Ok(self.metadata_at(offset))
    }

    /// As [`Self::convert_to_offset_metadata`]; an offset that is out of range has no place (Kafka: `maybeConvertToOffsetMetadata`).
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn maybe_convert_to_offset_metadata(&mut self, offset: Offset) -> Result<OffsetMetadata, ReadError> {
        match self.convert_to_offset_metadata(offset) {
            Err(ReadError::OffsetOutOfRange { .. }) => Ok(OffsetMetadata::offset_only(offset)),
            converted => converted,
        }
    }

    /// Where the log stands. A high watermark within a batch goes down to the beginning of that batch (Kafka: `fetchOffsetSnapshot`).
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn fetch_offset_snapshot(&mut self) -> Result<OffsetSnapshot, ReadError> {
        self.check_online()?;
        self.locate_high_watermark();
        self.check_online()?;
        let high_watermark = self.metadata_at(self.high_watermark);
        let unstable = self.first_unstable_offset.filter(|first| first.offset < self.high_watermark);
        Ok(OffsetSnapshot {
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset_metadata(),
            high_watermark,
            last_stable_offset: unstable.unwrap_or(high_watermark),
        })
    }

    /// As [`Self::first_unstable_offset`], with its place.
    #[must_use]
    pub fn first_unstable_offset_metadata(&self) -> Option<OffsetMetadata> {
        self.first_unstable_offset
    }

    /// The log end offset with its place: behind the last byte of the active segment.
    #[must_use]
    pub fn log_end_offset_metadata(&self) -> OffsetMetadata {
        OffsetMetadata { offset: self.log_end_offset, position: Some(self.file_end()) }
    }

    fn file_end(&self) -> SegmentPosition {
        let end = |base, position| SegmentPosition { segment_base: base, position };
        self.segments.last().map_or_else(|| end(Offset(0), 0), |active| end(active.base_offset, active.file_bytes))
    }

    /// Where the next batch goes: bytes behind the last whole one are cut off before.
    pub(super) fn end_position(&self) -> SegmentPosition {
        let valid = self.segments.last().map_or(0, |active| active.valid_bytes);
        SegmentPosition { position: valid, ..self.file_end() }
    }

    /// The batch that holds or follows an offset; the log end offset if there is none.
    pub(super) fn metadata_at(&self, offset: Offset) -> OffsetMetadata {
        let end = self.log_end_offset_metadata();
        if offset >= self.log_end_offset {
            return end;
        }
        let first = self.floor_segment(offset).unwrap_or(0);
        let found = self.segments.iter().skip(first).find_map(|segment| {
            let slot = segment.slots_from(offset).first()?;
            Some(OffsetMetadata::at(slot.base_offset, segment.base_offset, slot.position))
        });
        found.unwrap_or(end)
    }

    /// Where an offset lies: in front of the batch that holds or follows it; for the log end offset, behind the last.
    pub(super) fn place_of(&self, offset: Offset) -> SegmentPosition {
        self.metadata_at(offset).position.unwrap_or_else(|| self.file_end())
    }
}
