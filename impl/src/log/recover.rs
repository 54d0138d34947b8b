//! Recovering a segment after a crash (Kafka: `LogLoader.recoverSegment`, `LogSegment.recover`).

use bytes::BytesMut;

use super::epoch_cache::LeaderEpochCache;
use super::error::LogError;
use super::files::SegmentFile;
use super::partition_log::PartitionLog;
use super::rebuild::{Rebuild, Replay, scan_failed};
use super::result::RecoveryReport;
use super::scan::{ScanError, Scanner};
use super::segment::{BatchSlot, Segment};
use super::split::is_near;
use super::txn_index::AbortedTxn;
use crate::barrier::{BarrierRules, Place};
use crate::psm::{BatchFacts, ProducerStateError, ProducerStateManager};
use crate::record::{AnyBatch, RecordBatch};
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// What came of recovering a segment.
pub(super) enum Recovered {
    /// The segment, and how many bytes were cut.
    Whole(Segment, u64),
    /// An offset is too far from the base of the segment, which has to be split first.
    Overflows(Segment),
}

/// Why the replay of a segment ended.
enum End {
    /// There are no more whole batches.
    Whole,
    /// A batch is whole but wrong.
    Corrupt(String),
    /// The last offset of a batch is too far from the base of the segment, or in front of it.
    Overflows,
}

impl<S: Storage> PartitionLog<S> {
    /// Checks and replays a segment batch by batch, cuts it at the first bad batch, builds its indexes anew, and writes a
    /// snapshot at its end: so that holds one batch of each producer. Producer state in front of the segment comes from
    /// the snapshots and segments before it; snapshots behind its base are deleted.
    /// `later` are the segments behind it, the last first; `None` while the log does not know this segment yet.
    pub(super) fn recover_segment(
        &mut self,
        mut segment: Segment,
        later: Option<&[Segment]>,
        report: &mut RecoveryReport,
        now: TimestampMs,
    ) -> Result<Recovered, LogError> {
        let mut psm = self.config.new_producer_state();
        let source = self.mirror_source.clone();
        let rules = BarrierRules { policy: self.config.barrier, mirror_source: source.as_deref() };
        // Which snapshots are written on the way depends on the last two segments.
        let mut known = self.segments.clone();
        if let Some(later) = later {
            known.push(segment.clone());
            known.extend(later.iter().rev().cloned());
        }
        let rebuild = Rebuild {
            segments: &known,
            rules,
            log_start: self.log_start_offset,
            last_offset: segment.base_offset,
            now,
            after_clean_stop: false,
        };
        rebuild.run(&mut psm, &mut self.storage)?;
        let corruption = match self.replay_segment(&mut segment, &mut psm, rules)? {
            End::Whole => None,
            End::Corrupt(corruption) => Some(corruption),
            End::Overflows => return Ok(Recovered::Overflows(segment)),
        };
        let cut = segment.file_bytes.saturating_sub(segment.valid_bytes);
        if cut > 0 {
            self.storage.truncate(&segment.name(SegmentFile::Log), segment.valid_bytes)?;
            segment.file_bytes = segment.valid_bytes;
        }
        segment.add_time_index_entry(&mut self.storage)?;
        self.storage.sync(&segment.name(SegmentFile::Log))?;
        psm.take_snapshot(&mut self.storage)?;
        report.truncated_bytes = report.truncated_bytes.saturating_add(cut);
        report.replayed_batches = report.replayed_batches.saturating_add(segment.slots.len());
        report.corruption = report.corruption.take().or(corruption);
        Ok(Recovered::Whole(segment, cut))
    }

    /// Takes in batches up to the first bad one.
    fn replay_segment(
        &mut self,
        segment: &mut Segment,
        psm: &mut ProducerStateManager,
        rules: BarrierRules<'_>,
    ) -> Result<End, LogError> {
        reset(segment, &mut self.storage)?;
        let name = segment.name(SegmentFile::Log);
        let bound = self.config.max_decompressed_bytes;
        let mut recovered = Recovering::new(segment, psm, rules, &mut self.epochs, bound);
        let end = recovered.take_all(&mut Scanner::new(&self.storage, &name, 0)?, self.config.index_interval_bytes as u64)?;
        let epochs_changed = recovered.epochs_changed;
        let (offset_index, time_index) = recovered.indexed;
        if epochs_changed {
            self.write_epochs()?;
        }
        if matches!(end, End::Overflows) {
            return Ok(end);
        }
        for (file, bytes) in [(SegmentFile::OffsetIndex, offset_index), (SegmentFile::TimeIndex, time_index)] {
            self.storage.replace(&segment.name(file), &bytes.freeze())?;
        }
        segment.write_txn_index(&mut self.storage)?;
        Ok(end)
    }
}

/// A segment while it is recovered.
struct Recovering<'a> {
    segment: &'a mut Segment,
    psm: &'a mut ProducerStateManager,
    rules: BarrierRules<'a>,
    epochs: &'a mut LeaderEpochCache,
    /// The files of offset index and time index.
    indexed: (BytesMut, BytesMut),
    last_indexed: u64,
    max_decompressed_bytes: usize,
    epochs_changed: bool,
}

impl<'a> Recovering<'a> {
    fn new(
        segment: &'a mut Segment,
        psm: &'a mut ProducerStateManager,
        rules: BarrierRules<'a>,
        epochs: &'a mut LeaderEpochCache,
        max_decompressed_bytes: usize,
    ) -> Self {
        let indexed = (BytesMut::new(), BytesMut::new());
        Self { segment, psm, rules, epochs, indexed, last_indexed: 0, max_decompressed_bytes, epochs_changed: false }
    }

    fn take_all<S: Storage>(&mut self, scanner: &mut Scanner<'_, S>, interval: u64) -> Result<End, LogError> {
        loop {
            let position = scanner.position();
            let batch = match scanner.next() {
                Ok(None) => return Ok(End::Whole),
                Ok(Some(batch)) => batch,
                Err(ScanError::Corrupt(error)) => return Ok(End::Corrupt(error.to_string())),
                Err(error) => return Err(scan_failed(error, position)),
            };
            if let Err(error) = batch.ensure_valid() {
                return Ok(End::Corrupt(error.to_string()));
            }
            if !is_near(self.segment.base_offset, batch.last_offset()) {
                return Ok(End::Overflows);
            }
            // The first batch may begin below the segment's base, where a refused append over a gap had begun the segment.
            let expected = self.segment.slots.last().map_or(Offset(0), |slot| slot.last_offset.plus(1));
            let slot = BatchSlot::new(&batch, position, self.max_decompressed_bytes);
            if let Err(error) = check_ascends(&batch, &slot, expected) {
                return Ok(End::Corrupt(error.to_string()));
            }
            self.index(slot, interval);
            let AnyBatch::V2(batch) = batch else { continue };
            self.recover_epoch(&batch);
            match self.replay(&batch) {
                Ok(()) => {}
                // Kafka counts the batch as good by now, and cuts behind it.
                Err(error) if error.kafka_class() == "InvalidRecordException" => return Ok(End::Corrupt(error.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn index(&mut self, slot: BatchSlot, interval: u64) {
        self.segment.note_timestamp(&slot);
        if slot.position.saturating_sub(self.last_indexed) > interval {
            let (offset_index, time_index) = self.segment.index(&slot);
            self.indexed.0.extend_from_slice(&offset_index.unwrap_or_default());
            self.indexed.1.extend_from_slice(&time_index.unwrap_or_default());
            self.last_indexed = slot.position;
        }
        self.segment.take_in(slot);
    }

    fn recover_epoch(&mut self, batch: &RecordBatch) {
        let epoch = batch.leader_epoch();
        if epoch >= LeaderEpoch(0) && self.epochs.latest_epoch().is_none_or(|latest| epoch > latest) {
            // Neither is negative: this cannot be refused.
            self.epochs_changed |= self.epochs.assign(epoch, batch.base_offset()).unwrap_or(false);
        }
    }

    fn replay(&mut self, batch: &RecordBatch) -> Result<(), ProducerStateError> {
        let mut replay = Replay::new(self.rules, Place::SegmentRecovery);
        replay.meet(self.psm, &BatchFacts::from(batch))?;
        let completed = replay.pending.commit(self.psm)?;
        self.segment.aborted.extend(completed.iter().filter_map(AbortedTxn::from_completion));
        self.psm.set_map_end_offset(batch.next_offset());
        Ok(())
    }
}

/// Forgets what is known of a segment's batches, so that both indexes are there and empty.
fn reset(segment: &mut Segment, storage: &mut impl Storage) -> Result<(), LogError> {
    let file_bytes = segment.file_bytes;
    *segment = Segment::new(segment.base_offset, segment.created());
    segment.file_bytes = file_bytes;
    Ok(segment.touch_indexes(storage)?)
}

/// Offsets ascend from batch to batch. Where a set of magic 0 or 1 begins is nobody's concern: a copy may begin below the log end.
pub(super) fn check_ascends(batch: &AnyBatch, slot: &BatchSlot, expected: Offset) -> Result<(), LogError> {
    let BatchSlot { last_offset, position, .. } = *slot;
    let base_offset = batch.base_offset().unwrap_or(last_offset);
    if base_offset >= expected && last_offset >= base_offset && last_offset < Offset(i64::MAX) {
        return Ok(());
    }
    Err(LogError::OffsetsOutOfOrder { position, base_offset, last_offset, expected })
}
