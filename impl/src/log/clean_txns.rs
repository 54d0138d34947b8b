//! Transactions as a cleaning round meets them (Kafka: `CleanedTransactionMetadata`).

use std::collections::{BTreeMap, BTreeSet};

use super::error::LogError;
use super::txn_index::AbortedTxn;
use crate::barrier::BarrierRetention;
use crate::record::{ControlRecordType, RecordBatch};
use crate::types::{Offset, ProducerId};

/// Which transactions are being read, and whether a batch of them was seen.
#[derive(Debug, Default)]
pub(super) struct CleanedTransactions {
    /// Aborted transactions that are ahead, ascending by first offset.
    ahead: Vec<AbortedTxn>,
    /// Aborted ones that have begun, and whether a batch of theirs is still there.
    aborted: BTreeMap<ProducerId, (AbortedTxn, bool)>,
    /// Producers of committed ones, of which a batch is still there.
    committed: BTreeSet<ProducerId>,
    /// Whether barriers may go.
    barriers: BarrierRetention,
    /// Whether a batch of a producer was kept so far.
    producer_kept: bool,
    /// Offset of the last barrier that went.
    pub(super) removed_barrier: Option<Offset>,
}

impl CleanedTransactions {
    pub(super) fn new(barriers: BarrierRetention) -> Self {
        Self { barriers, ..Self::default() }
    }

    /// A batch of a producer is kept.
    pub(super) fn note_kept_producer(&mut self) {
        self.producer_kept = true;
    }

    /// A barrier clears nothing of a log without producers in front of it.
    fn barrier_may_go(&self) -> bool {
        match self.barriers {
            BarrierRetention::Forever => false,
            BarrierRetention::WhileItProtects => !self.producer_kept,
            BarrierRetention::LikeMarker => true,
        }
    }

    pub(super) fn add_aborted(&mut self, aborted: &[AbortedTxn]) {
        self.ahead.extend_from_slice(aborted);
        self.ahead.sort_by_key(|aborted| aborted.first_offset);
    }

    fn advance_to(&mut self, offset: Offset) {
        let begun = self.ahead.partition_point(|aborted| aborted.first_offset <= offset);
        for aborted in self.ahead.drain(..begun) {
            self.aborted.entry(aborted.producer_id).or_insert((aborted, false));
        }
    }

    /// Whether a control batch may go. An ABORT marker stays as long as a batch of its transaction was seen, and is then
    /// noted in `index`; a COMMIT marker likewise. An emptied one may go. A barrier does what the design says. Any other stays
    /// for ever. `position` is the byte of
    /// the segment where the batch begins.
    ///
    /// # Errors
    /// When the key of its first record is none.
    pub(super) fn on_control_batch(
        &mut self,
        batch: &RecordBatch,
        position: u64,
        index: Option<&mut Vec<AbortedTxn>>,
    ) -> Result<bool, LogError> {
        self.advance_to(batch.last_offset());
        let control_type = batch.control_type().map_err(|source| LogError::CorruptRecord { position, source })?;
        Ok(match control_type {
            None => true,
            Some(ControlRecordType::Abort) => match self.aborted.remove(&batch.producer_id()) {
                Some((aborted, true)) => {
                    index.into_iter().for_each(|index| index.push(aborted));
                    false
                }
                _ => true,
            },
            Some(ControlRecordType::Commit) => !self.committed.remove(&batch.producer_id()),
            Some(ControlRecordType::MirrorPidReset) => self.barrier_may_go(),
            Some(_) => false,
        })
    }

    /// Whether a data batch belongs to an aborted transaction, and may go.
    pub(super) fn on_data_batch(&mut self, batch: &RecordBatch) -> bool {
        self.advance_to(batch.last_offset());
        if !batch.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&batch.producer_id()) {
            Some((_, seen)) => {
                *seen = true;
                true
            }
            None => {
                self.committed.insert(batch.producer_id());
                false
            }
        }
    }
}
