//! One append call, or one replay, before it counts (Kafka: `UnifiedLog.analyzeAndValidateProducerState` and what
//! follows the write).

use std::collections::BTreeMap;

use super::append_info::ProducerAppendInfo;
use super::entry::BatchMetadata;
use super::error::ProducerStateError;
use super::facts::{AppendOrigin, BatchFacts, TransactionVersion};
use super::manager::ProducerStateManager;
use super::table_order::TableOrder;
use super::txn::CompletedTxn;
use super::verification::Verification;
use crate::barrier::{BarrierRules, Place};
use crate::types::{Offset, ProducerId};

/// What the batches of one call would change. There is one [`ProducerAppendInfo`] for each producer id in the call, so
/// how batches are grouped into calls can matter.
///
/// Meet all batches with [`PendingAppend::meet`], write them, then [`PendingAppend::commit`]. Dropping it changes
/// nothing, except for what a barrier did to the live state at once, where the design has it so.
#[derive(Clone, Debug)]
pub struct PendingAppend {
    origin: AppendOrigin,
    verification: Verification,
    infos: BTreeMap<ProducerId, ProducerAppendInfo>,
    /// Producers that are new come into the state in the order of Kafka's table.
    order: TableOrder,
    completed: Vec<CompletedTxn>,
    settled: Vec<Completion>,
    /// The state behind the last barrier that acted at its position.
    staged: Option<ProducerStateManager>,
    /// Whether a barrier has acted.
    barrier_acted: bool,
}

/// A transaction that ended, and the last stable offset at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// The transaction.
    pub txn: CompletedTxn,
    /// See [`ProducerStateManager::last_stable_offset`].
    pub last_stable_offset: Offset,
}

/// What meeting a batch showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Met {
    /// The batch may be appended.
    New,
    /// A client sent the batch again; here is the one that it repeats. Nothing may be appended.
    Duplicate(BatchMetadata),
}

impl PendingAppend {
    /// A call without batches yet.
    #[must_use]
    pub fn new(origin: AppendOrigin) -> Self {
        Self::verified(origin, Verification::default())
    }

    /// A call without batches yet, that comes with a guard.
    #[must_use]
    pub fn verified(origin: AppendOrigin, verification: Verification) -> Self {
        Self {
            origin,
            verification,
            infos: BTreeMap::new(),
            order: TableOrder::default(),
            completed: Vec::new(),
            settled: Vec::new(),
            staged: None,
            barrier_acted: false,
        }
    }

    /// Whether a barrier among the batches has acted.
    #[must_use]
    pub fn barrier_acted(&self) -> bool {
        self.barrier_acted
    }

    pub(crate) fn note_barrier(&mut self) {
        self.barrier_acted = true;
    }

    /// Takes in the next batch of the call.
    ///
    /// # Errors
    /// When producer state refuses the batch: the whole call must be given up.
    pub fn meet(
        &mut self,
        live: &mut ProducerStateManager,
        rules: &BarrierRules<'_>,
        place: Place,
        batch: &BatchFacts,
        tv: TransactionVersion,
    ) -> Result<Met, ProducerStateError> {
        if !live.ids().sees(batch.producer_id) {
            rules.meet(live, self, batch, place)?;
            return Ok(Met::New);
        }
        let state = self.staged.as_ref().unwrap_or(live);
        if self.origin == AppendOrigin::Client
            && let Some(duplicate) = state.find_duplicate(batch)
        {
            return Ok(Met::Duplicate(*duplicate));
        }
        if matches!(self.origin, AppendOrigin::Client | AppendOrigin::Coordinator) && batch.transactional {
            check_stale_epoch(state, batch)?;
            self.check_guard(state, batch)?;
        }
        if !self.infos.contains_key(&batch.producer_id) {
            self.order.insert(batch.producer_id);
        }
        let info = self.infos.entry(batch.producer_id).or_insert_with(|| state.prepare_update(batch.producer_id, self.origin));
        self.completed.extend(info.append(batch, tv)?);
        if batch.transactional {
            let state = self.staged.as_mut().unwrap_or(live);
            end_verification(state, batch);
        }
        Ok(Met::New)
    }

    /// A client's batch that opens a transaction has to come with the guard of its verification.
    fn check_guard(&self, state: &ProducerStateManager, batch: &BatchFacts) -> Result<(), ProducerStateError> {
        let opens = !batch.is_control() && !state.has_ongoing_transaction(batch.producer_id, batch.producer_epoch);
        if !self.verification.required || !opens {
            return Ok(());
        }
        let pending = state.verification(batch.producer_id).map(|entry| entry.guard).unwrap_or_default();
        if pending.verifies(self.verification.guard) {
            return Ok(());
        }
        Err(ProducerStateError::NotVerified { producer_id: batch.producer_id, offset: batch.base_offset })
    }

    /// Makes everything count, after the batches were written; returns the transactions that ended, in order.
    ///
    /// # Errors
    /// When a transaction that ended is not known to be open. As in Kafka the entries are merged by then.
    pub fn commit(self, live: &mut ProducerStateManager) -> Result<Vec<Completion>, ProducerStateError> {
        self.commit_with(live, |_| Ok(()))
    }

    /// As [`Self::commit`]; `note` is told of each transaction that ended before it counts as ended.
    ///
    /// # Errors
    /// As [`Self::commit`], and those of `note`: then the transaction stays open, and so do those behind it.
    pub fn commit_with<E: From<ProducerStateError>>(
        mut self,
        live: &mut ProducerStateManager,
        mut note: impl FnMut(&Completion) -> Result<(), E>,
    ) -> Result<Vec<Completion>, E> {
        self.settled.iter().try_for_each(&mut note)?;
        if let Some(staged) = self.staged.take() {
            *live = staged;
        }
        self.settle(live, note)?;
        Ok(self.settled)
    }

    /// Merges all entries first, then ends transactions in order: so a transaction that began later in the call counts
    /// for the last stable offset of one that ended earlier.
    fn settle<E: From<ProducerStateError>>(
        &mut self,
        state: &mut ProducerStateManager,
        mut note: impl FnMut(&Completion) -> Result<(), E>,
    ) -> Result<(), E> {
        let order = std::mem::take(&mut self.order);
        let mut infos: Vec<ProducerAppendInfo> = std::mem::take(&mut self.infos).into_values().collect();
        infos.sort_by_key(|info| order.position_if_computed(info.producer_id()));
        infos.into_iter().for_each(|info| state.update(info));
        for txn in std::mem::take(&mut self.completed) {
            let completion = Completion { txn, last_stable_offset: state.last_stable_offset(&txn) };
            note(&completion)?;
            state.complete_txn(&txn)?;
            self.settled.push(completion);
        }
        Ok(())
    }

    /// Settles what was met so far on a copy of the live state, which takes its place if the call succeeds; returns the
    /// copy, for a barrier to clear.
    pub(crate) fn settle_up_to_here(
        &mut self,
        live: &ProducerStateManager,
    ) -> Result<&mut ProducerStateManager, ProducerStateError> {
        let mut staged = self.staged.take().unwrap_or_else(|| live.clone());
        self.settle(&mut staged, |_| Ok::<(), ProducerStateError>(()))?;
        Ok(self.staged.insert(staged))
    }

    /// Drops what was collected so far: entries, started transactions, and ended ones, which are gone from the live
    /// state. Those stay known as ended, so that readers can be told of aborted ones.
    pub(crate) fn forget_collected(&mut self) {
        self.infos.clear();
        self.order = TableOrder::default();
        let forgotten = std::mem::take(&mut self.completed);
        self.settled.extend(forgotten.into_iter().map(|txn| Completion { txn, last_stable_offset: txn.last_offset.plus(1) }));
    }
}

/// A transactional batch of a client or the coordinator outside its open transaction may not have an epoch below that
/// of the entry. Kafka checks this before, and apart from, what the append info checks.
fn check_stale_epoch(state: &ProducerStateManager, batch: &BatchFacts) -> Result<(), ProducerStateError> {
    match state.last_entry(batch.producer_id) {
        Some(entry) if batch.producer_epoch < entry.producer_epoch => Err(ProducerStateError::InvalidProducerEpoch {
            producer_id: batch.producer_id,
            offset: batch.base_offset,
            current: entry.producer_epoch,
            found: batch.producer_epoch,
        }),
        _ => Ok(()),
    }
}

/// The transaction has begun, whoever wrote the batch, so its verification is over; but a marker of a client that bumps
/// its epoch ends the transaction before the one that is being verified. Happens at once, also when the call fails later.
fn end_verification(state: &mut ProducerStateManager, batch: &BatchFacts) {
    let is_for_next = state
        .verification(batch.producer_id)
        .is_some_and(|pending| pending.supports_epoch_bump && batch.is_control() && pending.producer_epoch == batch.producer_epoch);
    if !is_for_next {
        state.end_verification(batch.producer_id);
    }
}
