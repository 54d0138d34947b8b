//! Producer state from snapshot and replay (Kafka: `UnifiedLog.rebuildProducerState`, `loadProducersFromRecords`).

use super::error::LogError;
use super::files::LOG_FILE;
use super::partition_log::PartitionLog;
use super::scan::{ScanError, Scanner};
use crate::barrier::{BarrierRules, Place};
use crate::psm::{AppendOrigin, BatchFacts, PendingAppend, ProducerStateManager, TransactionVersion, snapshot_files};
use crate::storage::Storage;
use crate::types::{Offset, TimestampMs};

impl<S: Storage> PartitionLog<S> {
    /// Brings producer state to `last_offset`, which is the end of the log, and writes a snapshot there. Returns how
    /// many batches were replayed.
    ///
    /// * After a clean stop without any snapshot there is nothing to know: the state is empty.
    /// * A state that is empty and reaches `last_offset` or beyond stays empty, whatever the log holds.
    /// * The replay is one call: there is one append info for each producer id in it.
    pub(super) fn rebuild_producer_state(
        &mut self,
        last_offset: Offset,
        now: TimestampMs,
        after_clean_stop: bool,
    ) -> Result<usize, LogError> {
        let mut replayed = 0;
        if after_clean_stop && snapshot_files(&self.storage)?.is_empty() {
            self.psm.set_map_end_offset(Offset(0));
            self.psm.take_snapshot(&mut self.storage)?;
        } else {
            let was_empty = self.psm.is_empty() && self.psm.map_end_offset() >= last_offset;
            let log_start = self.log_start_offset;
            self.psm.truncate_and_reload(&mut self.storage, log_start, last_offset, now)?;
            if last_offset > self.psm.map_end_offset() && !was_empty {
                let start = self.psm.map_end_offset().max(log_start);
                self.psm.set_map_end_offset(start);
                replayed = self.replay_from(start)?;
            }
        }
        self.psm.set_map_end_offset(last_offset);
        self.psm.take_snapshot(&mut self.storage)?;
        Ok(replayed)
    }

    fn replay_from(&mut self, start: Offset) -> Result<usize, LogError> {
        let slots = self.slots_from(start);
        let count = slots.len();
        let position = slots.first().map_or(self.valid_bytes, |slot| slot.position);
        let mut scanner = Scanner::new(&self.storage, LOG_FILE, position)?;
        let mut replay =
            Replay::new(BarrierRules { policy: self.config.barrier, mirror_source: self.mirror_source.as_deref() }, Place::Reload);
        for _ in 0..count {
            let position = scanner.position();
            let batch = scanner.next().map_err(|error| scan_failed(error, position))?;
            let Some(batch) = batch else { break };
            replay.meet(&mut self.psm, &BatchFacts::from(&batch))?;
        }
        replay.pending.commit(&mut self.psm)?;
        Ok(count)
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
