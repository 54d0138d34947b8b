//! Producer state from snapshot and replay (Kafka: `UnifiedLog.rebuildProducerState`, `loadProducersFromRecords`).

use super::error::LogError;
use super::files::SegmentFile;
use super::partition_log::PartitionLog;
use super::scan::{ScanError, Scanner};
use super::segment::Segment;
use crate::barrier::{BarrierRules, Place};
use crate::psm::{AppendOrigin, BatchFacts, PendingAppend, ProducerStateManager, TransactionVersion, snapshot_files};
use crate::record::AnyBatch;
use crate::storage::Storage;
use crate::types::{Offset, TimestampMs};

/// What a rebuild needs to know.
#[derive(Clone, Copy)]
pub(super) struct Rebuild<'a> {
    /// The segments of the log, as far as they are loaded.
    pub(super) segments: &'a [Segment],
    pub(super) rules: BarrierRules<'a>,
    pub(super) log_start: Offset,
    /// Where the state is to end.
    pub(super) last_offset: Offset,
    /// The clock, in milliseconds: decides which producers of a snapshot have expired.
    pub(super) now: TimestampMs,
    pub(super) after_clean_stop: bool,
    /// See [`super::LogConfig::rebuild_empty_state`].
    pub(super) rebuild_empty_state: bool,
}

impl Rebuild<'_> {
    /// Brings producer state to the last offset and writes a snapshot there. Returns how many batches were replayed.
    ///
    /// * After a clean stop without any snapshot there is nothing to know: the state is empty, and so are the snapshots
    ///   that are written at the bases of the last two segments and at the end.
    /// * A state that is empty and reaches the last offset or beyond stays empty, whatever the log holds.
    /// * The replay of a segment is one call: there is one append info for each producer id in it.
    pub(super) fn run(&self, psm: &mut ProducerStateManager, storage: &mut impl Storage) -> Result<usize, LogError> {
        let last_two = self.segments.len().saturating_sub(2);
        let bases: Vec<Offset> = self.segments.iter().skip(last_two).map(|segment| segment.base_offset).collect();
        let mut replayed = 0;
        if self.after_clean_stop && snapshot_files(storage)?.is_empty() {
            for base in bases {
                psm.set_map_end_offset(base);
                psm.take_snapshot(storage)?;
            }
        } else {
            let was_empty = !self.rebuild_empty_state && psm.is_empty() && psm.map_end_offset() >= self.last_offset;
            psm.truncate_and_reload(storage, self.log_start, self.last_offset, self.now)?;
            if self.last_offset > psm.map_end_offset() && !was_empty {
                replayed = self.replay_segments(psm, storage, &bases)?;
            }
        }
        psm.set_map_end_offset(self.last_offset);
        psm.take_snapshot(storage)?;
        Ok(replayed)
    }

    fn replay_segments(
        &self,
        psm: &mut ProducerStateManager,
        storage: &mut impl Storage,
        snapshot_at: &[Offset],
    ) -> Result<usize, LogError> {
        let from = psm.map_end_offset();
        let first = self.segments.partition_point(|segment| segment.base_offset <= from).saturating_sub(1);
        let mut replayed: usize = 0;
        for segment in self.segments.iter().skip(first).take_while(|segment| segment.base_offset < self.last_offset) {
            let start = segment.base_offset.max(psm.map_end_offset()).max(self.log_start);
            psm.set_map_end_offset(start);
            if snapshot_at.contains(&segment.base_offset) {
                psm.take_snapshot(storage)?;
            }
            replayed = replayed.saturating_add(self.replay(psm, storage, segment, start)?);
        }
        Ok(replayed)
    }

    fn replay(
        &self,
        psm: &mut ProducerStateManager,
        storage: &impl Storage,
        segment: &Segment,
        start: Offset,
    ) -> Result<usize, LogError> {
        let slots = segment.slots_from(start);
        let Some(first) = slots.first() else { return Ok(0) };
        // The batch that holds the last offset is not read, nor what follows it.
        let count = slots.partition_point(|slot| slot.last_offset < self.last_offset);
        let name = segment.name(SegmentFile::Log);
        let mut scanner = Scanner::new(storage, &name, first.position)?;
        let mut replay = Replay::new(self.rules, Place::Reload);
        for _ in 0..count {
            let position = scanner.position();
            let batch = scanner.next().map_err(|error| scan_failed(error, position))?;
            let Some(batch) = batch else { break };
            // Batches of the old formats know no producers.
            if let AnyBatch::V2(batch) = batch {
                replay.meet(psm, &BatchFacts::from(&batch))?;
            }
        }
        replay.pending.commit(psm)?;
        Ok(count)
    }
}

impl<S: Storage> PartitionLog<S> {
    /// Brings producer state to `last_offset`, which is the end of the log; see [`Rebuild::run`].
    pub(super) fn rebuild_producer_state(
        &mut self,
        last_offset: Offset,
        now: TimestampMs,
        after_clean_stop: bool,
    ) -> Result<usize, LogError> {
        let rebuild = Rebuild {
            segments: &self.segments,
            rules: BarrierRules { policy: self.config.barrier, mirror_source: self.mirror_source.as_deref() },
            log_start: self.log_start_offset,
            last_offset,
            now,
            after_clean_stop,
            rebuild_empty_state: self.config.rebuild_empty_state,
        };
        rebuild.run(&mut self.psm, &mut self.storage)
    }
}

/// A replay of batches into producer state.
pub(super) struct Replay<'a> {
    rules: BarrierRules<'a>,
    place: Place,
    pub(super) pending: PendingAppend,
}

impl<'a> Replay<'a> {
    pub(super) fn new(rules: BarrierRules<'a>, place: Place) -> Self {
        Self { rules, place, pending: PendingAppend::new(AppendOrigin::Replication) }
    }

    pub(super) fn meet(
        &mut self,
        psm: &mut ProducerStateManager,
        facts: &BatchFacts,
    ) -> Result<(), crate::psm::ProducerStateError> {
        let tv = TransactionVersion::Unknown;
        self.pending.meet(psm, &self.rules, self.place, facts, tv).map(|_| ())
    }
}

/// A batch of the log that was readable before, or is trusted, cannot be read.
pub(super) fn scan_failed(error: ScanError, position: u64) -> LogError {
    match error {
        ScanError::Corrupt(source) => LogError::CorruptRecord { position, source },
        ScanError::Unsupported(source) => LogError::Unsupported { position, source },
        ScanError::Storage(error) => LogError::Storage(error),
    }
}
