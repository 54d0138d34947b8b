//! What a cleaning round keeps of a batch (Kafka: the filter of `Cleaner.cleanInto`, `MemoryRecords.filterTo`).

use super::clean_txns::CleanedTransactions;
use super::cleaner::{CleanerStats, OffsetMap};
use super::error::LogError;
use super::txn_index::AbortedTxn;
use crate::psm::ProducerStateManager;
use crate::record::{
    AnyBatch, BatchBuilder, Compression, ControlRecordType, LegacyBatch, LegacyRecord, Record, RecordBatch, TimestampType,
};
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// The filter of the segments that become one.
pub(super) struct CleanFilter<'a> {
    pub(super) map: &'a OffsetMap,
    pub(super) txns: &'a mut CleanedTransactions,
    pub(super) stats: &'a mut CleanerStats,
    /// The last batch of a producer that is known now is kept, if only as a header.
    pub(super) producers: &'a ProducerStateManager,
    pub(super) delete_retention_ms: i64,
    pub(super) now: TimestampMs,
    /// Where the round ends: the batch in front of it is kept, if only as a header.
    pub(super) bound: Offset,
    /// The aborted transactions whose markers are kept.
    pub(super) aborted: Vec<AbortedTxn>,
}

/// What is left of a batch.
pub(super) enum Kept {
    Nothing,
    Batch(Box<RecordBatch>),
}

impl CleanFilter<'_> {
    /// What is left of a batch, which begins at this byte of its segment.
    ///
    /// # Errors
    /// When the batch cannot be read or built anew.
    pub(super) fn filter(&mut self, batch: &AnyBatch, position: u64) -> Result<Kept, LogError> {
        self.stats.bytes_read = self.stats.bytes_read.saturating_add(batch.size_in_bytes() as u64);
        match batch {
            AnyBatch::V2(batch) => self.filter_v2(batch, position),
            AnyBatch::Legacy(batch) => self.filter_legacy(batch, position),
        }
    }

    /// What is left of a batch of magic 0 or 1 becomes one of magic 2, which begins and ends where its records do.
    ///
    /// Kafka drops a tombstone here if its segment was written long enough before the last that is clean already; segments have no
    /// times here, so that it is kept until the horizon which it is given now.
    fn filter_legacy(&mut self, batch: &LegacyBatch, position: u64) -> Result<Kept, LogError> {
        let all = batch.records().map_err(|source| LogError::CorruptRecord { position, source })?;
        self.note_read(all.len());
        let kept = all.into_iter().map(LegacyRecord::into_record);
        let kept: Vec<Record> = kept.filter(|record| self.is_wanted(record)).collect();
        let Some(first) = kept.first() else {
            // There are no headers of this format, so that Kafka cannot keep the batch in front of the end.
            let is_last = batch.last_offset().plus(1) == self.bound;
            return if is_last { Err(LogError::EmptyLegacyBatch { position }) } else { Ok(Kept::Nothing) };
        };
        let mut builder = BatchBuilder::new(first.offset)
            .leader_epoch(LeaderEpoch::NONE)
            .compression(batch.compression().unwrap_or(Compression::None));
        if batch.timestamp_type() == Some(TimestampType::LogAppendTime) {
            builder = builder.log_append_time(batch.max_timestamp());
        }
        if kept.iter().any(|record| record.value.is_none()) {
            builder = builder.delete_horizon(self.next_horizon());
        }
        let built = builder.records(kept).build().map_err(LogError::Clean)?;
        Ok(Kept::Batch(Box::new(built)))
    }

    fn note_read(&mut self, records: usize) {
        self.stats.records_read = self.stats.records_read.saturating_add(records as u64);
    }

    fn next_horizon(&self) -> TimestampMs {
        TimestampMs(self.now.get().saturating_add(self.delete_retention_ms))
    }

    fn filter_v2(&mut self, batch: &RecordBatch, position: u64) -> Result<Kept, LogError> {
        let can_discard = if batch.is_control() {
            self.txns.on_control_batch(batch, position, Some(&mut self.aborted))?
        } else {
            self.txns.on_data_batch(batch)
        };
        let horizon_passed = batch.delete_horizon().is_some_and(|horizon| horizon <= self.now);
        let discards_records = can_discard && (!batch.is_control() || horizon_passed);
        let keeps_header = self.is_last_of_producer(batch) || batch.next_offset() == self.bound;
        if discards_records && !keeps_header {
            return Ok(Kept::Nothing);
        }
        let all = batch.records().map_err(|source| LogError::CorruptRecord { position, source })?;
        let count = all.len();
        self.note_read(count);
        let kept: Vec<Record> = all.into_iter().filter(|record| !discards_records && self.keeps(batch, record)).collect();
        if kept.is_empty() {
            let header = || Kept::Batch(Box::new(RecordBatch::empty_header(batch.header())));
            return Ok(if keeps_header { header() } else { Kept::Nothing });
        }
        let has_tombstone = kept.iter().any(|record| record.value.is_none());
        let ends_empty_txn = can_discard && batch.is_control();
        let needs_horizon = (has_tombstone || ends_empty_txn) && batch.delete_horizon().is_none();
        if kept.len() == count && !needs_horizon {
            return Ok(Kept::Batch(Box::new(batch.clone())));
        }
        let horizon = if needs_horizon { Some(self.next_horizon()) } else { batch.delete_horizon() };
        rebuild(batch, kept, horizon).map(|batch| Kept::Batch(Box::new(batch)))
    }

    /// A batch stays, if only as a header; a header is no barrier.
    pub(super) fn note_kept(&mut self, batch: &AnyBatch, kept: &RecordBatch) {
        let records = u64::try_from(kept.record_count()).unwrap_or(0);
        self.stats.records_written = self.stats.records_written.saturating_add(records);
        self.stats.bytes_written = self.stats.bytes_written.saturating_add(kept.size_in_bytes() as u64);
        if self.producers.ids().sees(kept.producer_id()) {
            self.txns.note_kept_producer();
        }
        if kept.record_count() == 0 {
            self.note_removed(batch);
        }
    }

    /// The records of a batch go.
    pub(super) fn note_removed(&mut self, batch: &AnyBatch) {
        let Some(batch) = batch.as_v2() else { return };
        if matches!(batch.control_type(), Ok(Some(ControlRecordType::MirrorPidReset))) {
            self.txns.removed_barrier = Some(batch.base_offset());
        }
    }

    fn keeps(&self, batch: &RecordBatch, record: &Record) -> bool {
        if batch.is_control() || record.offset > self.map.latest {
            return true;
        }
        let has_time = batch.delete_horizon().is_none_or(|horizon| self.now < horizon);
        self.is_wanted(record) && (record.value.is_some() || has_time)
    }

    /// Whether the record is the last of its key, as far as that was looked at.
    fn is_wanted(&self, record: &Record) -> bool {
        let is_latest = |key| self.map.is_latest(key, record.offset);
        record.offset > self.map.latest || record.key.as_ref().is_some_and(is_latest)
    }

    /// The batch that a producer's state needs: the one with its last sequence, else a marker of its epoch.
    fn is_last_of_producer(&self, batch: &RecordBatch) -> bool {
        let entry = self.producers.last_entry(batch.producer_id()).filter(|_| batch.has_producer_id());
        entry.is_some_and(|entry| match entry.last_data_offset() {
            Offset::UNKNOWN => batch.is_control() && entry.producer_epoch == batch.producer_epoch(),
            last_data_offset => batch.last_offset() == last_data_offset,
        })
    }
}

fn rebuild(batch: &RecordBatch, kept: Vec<Record>, horizon: Option<TimestampMs>) -> Result<RecordBatch, LogError> {
    let mut builder = BatchBuilder::new(batch.base_offset())
        .leader_epoch(batch.leader_epoch())
        .producer(batch.producer_id(), batch.producer_epoch(), batch.base_sequence())
        .transactional(batch.is_transactional())
        .control(batch.is_control())
        .compression(batch.attributes().compression().unwrap_or(Compression::None))
        .last_offset(batch.last_offset())
        .records(kept);
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        builder = builder.log_append_time(batch.max_timestamp());
    }
    if let Some(horizon) = horizon {
        builder = builder.delete_horizon(horizon);
    }
    builder.build().map_err(LogError::Clean)
}
