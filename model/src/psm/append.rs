//! The checks of one append call (Kafka: `ProducerAppendInfo` and `UnifiedLog.analyzeAndValidateProducerState`).
//!
//! A call collects one pending info per producer id; nothing is visible in the ProducerStateManager until the call is applied.

use super::entry::{Cached, Entry, Window};
use super::{AbortedTxn, CompletedTxn, Ongoing, Psm};
use crate::batch::{Batch, Kind};
use crate::design::Fault;
use crate::ids::{CoordinatorEpoch, Offset, ProducerEpoch, Sequence};
use crate::truth::{Anomaly, Contributors, Ghost};

/// Who appends (Kafka: `AppendOrigin`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A producer's request.
    Client,
    /// A coordinator's marker, of transaction version 2.
    Coordinator,
    /// What a stopping mirror writes: ABORT markers with the producer's own epoch, as before transaction version 2, and the barrier.
    StoppingMirror,
    /// A follower, a mirror, or a replay.
    Replication,
}

/// Why an append is refused, by the simple name of Kafka's exception class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rejection {
    /// `OutOfOrderSequenceException`
    OutOfOrderSequence,
    /// `InvalidProducerEpochException`
    InvalidProducerEpoch,
    /// `TransactionCoordinatorFencedException`
    TransactionCoordinatorFenced,
    /// `InvalidTxnStateException`
    InvalidTxnState,
}

impl Rejection {
    /// The simple name of Kafka's exception class.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::OutOfOrderSequence => "OutOfOrderSequenceException",
            Self::InvalidProducerEpoch => "InvalidProducerEpochException",
            Self::TransactionCoordinatorFenced => "TransactionCoordinatorFencedException",
            Self::InvalidTxnState => "InvalidTxnStateException",
        }
    }
}

/// The pending info of one id in one call.
#[derive(Clone, Copy, Debug)]
struct Info {
    /// The live entry when the id was first met in this call.
    current: Option<Entry>,
    /// What the call makes of it; its window holds only this call's batches.
    updated: Entry,
}

/// Everything that one append call has collected so far.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    infos: Vec<Info>,
    started: Vec<Ongoing>,
    completed: Vec<CompletedTxn>,
    /// Transactions that the part of the call before a barrier aborted.
    aborted: Vec<AbortedTxn>,
}

/// What the analysis of one batch found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finding {
    /// The first offset of the transaction that a marker ends.
    pub ends_transaction_at: Option<Offset>,
    /// A tolerated irregularity of replicated data.
    pub tolerated: Option<Anomaly>,
}

impl Pending {
    /// Checks one batch that will lie at `offset` and adds it to the call (PSM-4 to PSM-7).
    ///
    /// # Errors
    /// [`Rejection`]: the whole call must be given up.
    pub fn analyse(
        &mut self,
        psm: &Psm,
        batch: &Batch,
        offset: Offset,
        origin: Origin,
        fault: Fault,
    ) -> Result<Finding, Rejection> {
        let leader = origin != Origin::Replication;
        if leader && batch.is_transactional() && !psm.has_ongoing(batch.producer_id, batch.producer_epoch) {
            let stale = psm.entry(batch.producer_id).is_some_and(|e| batch.producer_epoch < e.epoch);
            if stale && fault != Fault::EpochUnchecked {
                return Err(Rejection::InvalidProducerEpoch);
            }
        }
        let started = &mut self.started;
        let completed = &mut self.completed;
        let info = match self.infos.iter().position(|i| i.updated.id == batch.producer_id) {
            Some(at) => self.infos.get_mut(at),
            None => {
                self.infos.push(Info::new(psm, batch, offset));
                self.infos.last_mut()
            }
        };
        let Some(info) = info else { return Ok(Finding::default()) };
        info.updated.contributors = info.updated.contributors.with(Ghost::first(&batch.author, offset));
        match batch.kind {
            Kind::Data { transactional } => info.data(batch, transactional, offset, origin, started, fault),
            Kind::Marker { commit, coordinator_epoch } => {
                let finding = info.marker(batch, coordinator_epoch, origin, fault)?;
                completed.extend(finding.ends_transaction_at.map(|first_offset| CompletedTxn {
                    id: batch.producer_id,
                    first_offset,
                    last_offset: offset,
                    committed: commit,
                }));
                Ok(finding)
            }
            Kind::Barrier { .. } => Ok(Finding::default()),
        }
    }

    /// Makes the call visible (Kafka: `ProducerStateManager.update` and `completeTxn`) and tells which transactions it aborted.
    pub fn apply(self, psm: &mut Psm) -> Vec<AbortedTxn> {
        for info in &self.infos {
            psm.merge(&info.updated);
        }
        for txn in self.started {
            psm.start(txn);
        }
        let mut aborted = self.aborted;
        for txn in self.completed {
            if !txn.committed {
                aborted.push(AbortedTxn { id: txn.id, first_offset: txn.first_offset, last_offset: txn.last_offset });
            }
            psm.complete(txn);
        }
        aborted
    }

    /// What was collected so far takes effect in the middle of the call: a barrier acts at its position (BAR-5).
    pub fn take_effect(&mut self, psm: &mut Psm) {
        self.aborted = std::mem::take(self).apply(psm);
    }

    /// Drops what was collected for each producer and the transactions that it began or ended.
    pub fn forget_infos(&mut self) {
        *self = Self { aborted: std::mem::take(&mut self.aborted), ..Self::default() };
    }
}

impl Info {
    fn new(psm: &Psm, batch: &Batch, offset: Offset) -> Self {
        let current = psm.entry(batch.producer_id).copied();
        let contributors: Ghost<Contributors> = Ghost::first(&batch.author, offset);
        let empty = Entry {
            id: batch.producer_id,
            epoch: ProducerEpoch(-1),
            coordinator_epoch: CoordinatorEpoch(-1),
            window: Window::default(),
            txn_first_offset: None,
            contributors,
        };
        let updated = current.map_or(empty, |c| Entry { window: Window::default(), contributors, ..c });
        Self { current, updated }
    }

    fn data(
        &mut self,
        batch: &Batch,
        transactional: bool,
        offset: Offset,
        origin: Origin,
        started: &mut Vec<Ongoing>,
        fault: Fault,
    ) -> Result<Finding, Rejection> {
        let mut finding = Finding::default();
        if batch.producer_epoch < self.updated.epoch {
            if origin == Origin::Replication {
                finding.tolerated = Some(Anomaly::LowerEpochAccepted);
            } else if fault != Fault::EpochUnchecked {
                return Err(Rejection::InvalidProducerEpoch);
            }
        }
        match origin {
            Origin::Client if fault == Fault::SequenceUnchecked => {}
            Origin::Client => self.check_sequence(batch)?,
            Origin::Replication if self.breaks_sequence(batch) => finding.tolerated = Some(Anomaly::SequenceBreakAccepted),
            Origin::Replication | Origin::Coordinator | Origin::StoppingMirror => {}
        }
        if batch.producer_epoch != self.updated.epoch {
            self.updated.epoch = batch.producer_epoch;
            self.updated.window = Window::default();
        }
        self.updated.window.push(Cached { sequence: batch.sequence, offset });
        match (self.updated.txn_first_offset, transactional) {
            // Not only for clients: a non-transactional batch in an open transaction stops replication and replay as well (PSM-7).
            (Some(_), false) => return Err(Rejection::InvalidTxnState),
            (None, true) => {
                self.updated.txn_first_offset = Some(offset);
                started.push(Ongoing { first_offset: offset, id: batch.producer_id });
            }
            _ => {}
        }
        Ok(finding)
    }

    /// The newest sequence of the known epoch: a marker earlier in this call may have raised it above that of the live entry.
    fn last_sequence(&self) -> Sequence {
        let live = self.current.filter(|c| c.epoch == self.updated.epoch);
        let newest = self.updated.window.last().or_else(|| live.and_then(|c| c.window.last()));
        newest.map_or(Sequence(-1), |c| c.sequence)
    }

    /// PSM-5 (Kafka: `ProducerAppendInfo.checkSequence`).
    fn check_sequence(&self, batch: &Batch) -> Result<(), Rejection> {
        let known_epoch = self.updated.epoch;
        let fits = if batch.producer_epoch != known_epoch {
            batch.sequence == Sequence(0) || known_epoch == ProducerEpoch(-1)
        } else {
            let no_prior_state = self.current.is_none_or(|c| c.epoch == ProducerEpoch(-1));
            no_prior_state || batch.sequence.0 == self.last_sequence().0 + 1
        };
        if fits { Ok(()) } else { Err(Rejection::OutOfOrderSequence) }
    }

    fn breaks_sequence(&self, batch: &Batch) -> bool {
        let last = self.last_sequence();
        batch.producer_epoch == self.updated.epoch && last != Sequence(-1) && batch.sequence.0 != last.0 + 1
    }

    /// PSM-6 (Kafka: `ProducerAppendInfo.appendEndTxnMarker`, transaction version 2).
    fn marker(
        &mut self,
        batch: &Batch,
        coordinator_epoch: CoordinatorEpoch,
        origin: Origin,
        fault: Fault,
    ) -> Result<Finding, Rejection> {
        let mut finding = Finding::default();
        let entry = &mut self.updated;
        // Replication reads markers with an unknown transaction version, which counts as 0: there an equal epoch is in order.
        let stale = if origin == Origin::Coordinator {
            let retry = batch.producer_epoch == entry.epoch && entry.txn_first_offset.is_none();
            batch.producer_epoch <= entry.epoch && !retry
        } else {
            batch.producer_epoch < entry.epoch
        };
        if stale && origin == Origin::Replication {
            finding.tolerated = Some(Anomaly::LowerEpochAccepted);
        } else if stale && fault != Fault::MarkerEpochUnchecked {
            return Err(Rejection::InvalidProducerEpoch);
        }
        if entry.coordinator_epoch > coordinator_epoch && origin != Origin::Replication {
            return Err(Rejection::TransactionCoordinatorFenced);
        }
        if fault == Fault::MarkerEndsNothing {
            // The transaction stays open.
        } else if let Some(first_offset) = entry.txn_first_offset.take() {
            finding.ends_transaction_at = Some(first_offset);
        }
        if batch.producer_epoch != entry.epoch {
            entry.epoch = batch.producer_epoch;
            entry.window = Window::default();
        }
        entry.coordinator_epoch = coordinator_epoch;
        Ok(finding)
    }
}
