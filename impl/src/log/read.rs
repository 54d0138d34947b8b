//! Reading (Kafka: `UnifiedLog.read`, `LocalLog.read`, `LogSegment.read`, `collectAbortedTransactions`).

use bytes::Bytes;

use super::config::FetchIsolation;
use super::error::ReadError;
use super::files::SegmentFile;
use super::partition_log::PartitionLog;
use super::txn_index::AbortedTxn;
use crate::record::{AnyBatch, AnyBatchReader, DecodeError, MAGIC_POSITION, RecordBatch};
use crate::storage::Storage;
use crate::types::{Offset, OffsetMetadata};

/// What a read gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchData {
    /// Bytes of one segment from the batch on that holds or follows the offset: whole batches, and the beginning of one
    /// that `max_bytes` cut.
    pub records: Bytes,
    /// For a read of committed records, the aborted transactions that it has to know of, or more; else `None`. `None`
    /// also where no segment holds a batch at or behind the offset.
    pub aborted: Option<Vec<AbortedTxn>>,
    /// The first offset of the batch that the bytes begin with, and its place; where there are no bytes, what was asked for, or the
    /// bound that stopped the read (Kafka: `fetchOffsetMetadata`).
    pub offset: OffsetMetadata,
}

impl<S: Storage> PartitionLog<S> {
    /// Up to `max_bytes` bytes of one segment from the batch that holds or follows `from`, up to the bound of the
    /// isolation. Empty at and above the bound. With `min_one_message` the first batch comes whole in any case. A high
    /// watermark within a batch goes down to the beginning of that batch, unless the read is that of a follower.
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`] below the log start offset and above the log end offset; or when the log is
    /// offline or the storage fails.
    pub fn fetch(
        &mut self,
        from: Offset,
        isolation: FetchIsolation,
        max_bytes: usize,
        min_one_message: bool,
    ) -> Result<FetchData, ReadError> {
        self.check_online()?;
        if isolation != FetchIsolation::LogEnd && from >= self.log_start_offset {
            self.locate_high_watermark();
        }
        if from >= self.log_start_offset {
            self.look_for(from);
        }
        let fetched = self.peek(from, isolation, max_bytes, min_one_message);
        self.or_offline(fetched)
    }

    pub(super) fn check_range(&self, from: Offset) -> Result<(), ReadError> {
        // The log start may lie in front of what is held here.
        let first_held = self.segments.first().map_or(self.log_start_offset, |first| first.base_offset);
        let lowest = self.log_start_offset.max(first_held);
        if from < lowest || from > self.log_end_offset {
            return Err(ReadError::OffsetOutOfRange {
                offset: from,
                log_start_offset: lowest,
                log_end_offset: self.log_end_offset,
            });
        }
        Ok(())
    }

    /// As [`Self::fetch`], but a high watermark within a batch stays where it is.
    fn peek(
        &self,
        from: Offset,
        isolation: FetchIsolation,
        max_bytes: usize,
        min_one_message: bool,
    ) -> Result<FetchData, ReadError> {
        self.check_online()?;
        self.check_range(from)?;
        let bound_offset = match isolation {
            FetchIsolation::LogEnd => self.log_end_offset,
            FetchIsolation::HighWatermark => self.high_watermark,
            FetchIsolation::TxnCommitted => self.last_stable_offset(),
        };
        let with_aborted = isolation == FetchIsolation::TxnCommitted;
        if from >= bound_offset {
            let offset = self.metadata_at(from);
            return Ok(FetchData { records: Bytes::new(), aborted: with_aborted.then(Vec::new), offset });
        }
        let bound = self.place_of(bound_offset);
        let first = self.floor_segment(from).unwrap_or(0);
        for (index, segment) in self.segments.iter().enumerate().skip(first) {
            let Some(slot) = segment.slots_from(from).first() else { continue };
            let end = match segment.base_offset.cmp(&bound.segment_base) {
                std::cmp::Ordering::Less => segment.file_bytes,
                std::cmp::Ordering::Equal => bound.position,
                std::cmp::Ordering::Greater => slot.position,
            };
            let max = if min_one_message { max_bytes.max(slot.size) } else { max_bytes };
            let size = usize::try_from(end.saturating_sub(slot.position)).unwrap_or(usize::MAX).min(max);
            let records = match size {
                0 => Bytes::new(),
                size => self.storage.read(&segment.name(SegmentFile::Log), slot.position, size)?,
            };
            let aborted = with_aborted.then(|| self.aborted_for(index, from, slot.position, records.len()));
            let offset = OffsetMetadata::at(slot.base_offset, segment.base_offset, slot.position);
            return Ok(FetchData { records, aborted, offset });
        }
        Ok(FetchData { records: Bytes::new(), aborted: None, offset: self.log_end_offset_metadata() })
    }

    /// The aborted transactions for a read of so many bytes. How far they reach is told by the offset index, so there may
    /// be more than the records need.
    fn aborted_for(&self, index: usize, from: Offset, position: u64, bytes: usize) -> Vec<AbortedTxn> {
        let next_base = self.segments.get(index.saturating_add(1)).map(|next| next.base_offset);
        let indexed =
            self.segments.get(index).and_then(|segment| segment.offset_index.upper_bound(position.saturating_add(bytes as u64)));
        let to = indexed.or(next_base).unwrap_or(self.log_end_offset);
        self.collect_from_segment(index, from, to)
    }

    /// Whole batches from the one that holds `from` on, up to the bound of the isolation, over all segments.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub fn read(&self, from: Offset, isolation: FetchIsolation, max_bytes: usize) -> Result<Bytes, ReadError> {
        let mut out: Vec<Bytes> = Vec::new();
        let mut size: usize = 0;
        let mut next = from;
        loop {
            let left = max_bytes.saturating_sub(size);
            let data = self.peek(next, isolation, left, size == 0)?.records;
            let mut reader = AnyBatchReader::new(data.clone());
            let last = reader.by_ref().map_while(Result::ok).last();
            let Some(last) = last else { break };
            let whole = data.slice(..reader.position().min(data.len()));
            size = size.saturating_add(whole.len());
            out.push(whole);
            next = last.next_offset();
            if size >= max_bytes || next >= self.log_end_offset {
                break;
            }
        }
        Ok(if let [one] = out.as_slice() { one.clone() } else { Bytes::from(out.concat()) })
    }

    /// All batches of a log without batches of magic 0 and 1, also those below the log start offset.
    ///
    /// # Errors
    /// When the log is offline, the storage fails, a batch can no longer be read or is of magic 0 or 1.
    pub fn batches(&self) -> Result<Vec<RecordBatch>, ReadError> {
        let mut position: u64 = 0;
        let mut batches = Vec::new();
        for batch in self.all_batches()? {
            let (magic, size) = (batch.magic(), batch.size_in_bytes() as u64);
            let AnyBatch::V2(batch) = batch else {
                let source = DecodeError::UnsupportedMagic { position: MAGIC_POSITION, magic };
                return Err(ReadError::CorruptRecord { position, source });
            };
            position = position.saturating_add(size);
            batches.push(batch);
        }
        Ok(batches)
    }

    /// All batches of the log, also those below the log start offset.
    ///
    /// # Errors
    /// When the log is offline, the storage fails, or a batch can no longer be read.
    pub fn all_batches(&self) -> Result<Vec<AnyBatch>, ReadError> {
        self.check_online()?;
        let mut batches = Vec::new();
        for segment in &self.segments {
            let len = usize::try_from(segment.valid_bytes).unwrap_or(usize::MAX);
            let mut reader = AnyBatchReader::new(self.storage.read(&segment.name(SegmentFile::Log), 0, len)?);
            loop {
                let position = reader.position() as u64;
                match reader.next() {
                    None => break,
                    Some(Ok(batch)) => batches.push(batch),
                    Some(Err(source)) => return Err(ReadError::CorruptRecord { position, source }),
                }
            }
        }
        Ok(batches)
    }

    /// The aborted transactions that a read-committed reader of offsets from `from` up to, not including, `to` has to
    /// know.
    #[must_use]
    pub fn collect_aborted_transactions(&self, from: Offset, to: Offset) -> Vec<AbortedTxn> {
        self.collect_from_segment(self.floor_segment(from).unwrap_or(0), from, to)
    }

    pub(super) fn collect_from_segment(&self, first: usize, from: Offset, to: Offset) -> Vec<AbortedTxn> {
        let mut found = Vec::new();
        for aborted in self.segments.iter().skip(first).flat_map(|segment| &segment.aborted) {
            if aborted.last_offset >= from && aborted.first_offset < to {
                found.push(*aborted);
            }
            if aborted.last_stable_offset >= to {
                break;
            }
        }
        found
    }
}
