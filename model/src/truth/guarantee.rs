//! What a log guarantees to its readers (LINK-1), as one predicate over logs and one over pairs of logs.
//!
//! The same predicates are assumed of the source of a link and proved of its destination; that is what makes the step inductive.

use super::Writer;
use super::judge::{is_same_batch, log_pid_single_producer};
use crate::batch::{Batch, Kind, Log};
use crate::ids::{CoordinatorEpoch, ProducerEpoch, ProducerId, Sequence};

/// A part of the guarantee that one log shows by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// G3: one real producer an id between barriers.
    OneWriter,
    /// G4: sequences, epochs and markers follow as a leader would have accepted them, and nothing is open at a barrier.
    Order,
    /// G5: leader epochs do not fall.
    Epochs,
}

/// The first part of the guarantee that a log breaks; none if it is good.
#[must_use]
pub fn broken_part(log: &Log) -> Option<Part> {
    let mut order = Order::default();
    if !log_pid_single_producer(log) {
        Some(Part::OneWriter)
    } else if !log.iter().all(|batch| order.follows(batch)) {
        Some(Part::Order)
    } else if log.iter().zip(log.iter().skip(1)).any(|(a, b)| b.leader_epoch < a.leader_epoch) {
        Some(Part::Epochs)
    } else {
        None
    }
}

/// G5 with G1 for a reader's log and the log that it reads: one leader epoch at one offset is one batch, and then all below is the same.
#[must_use]
pub fn epochs_tell(reader: &Log, read: &Log) -> bool {
    let pairs: Vec<(&Batch, &Batch)> = reader.iter().zip(read).collect();
    let one_epoch = |(a, b): &(&Batch, &Batch)| a.leader_epoch == b.leader_epoch;
    let same = |(a, b): &(&Batch, &Batch)| is_same_batch(a, b);
    pairs.iter().rposition(one_epoch).is_none_or(|last| pairs.iter().take(last + 1).all(same))
}

/// What the batches of one id behind the last barrier say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The id.
    pub id: ProducerId,
    /// The epoch of the newest batch.
    pub epoch: ProducerEpoch,
    /// The newest sequence of that epoch.
    pub last: Option<Sequence>,
    /// The epoch of the coordinator that wrote the newest marker.
    pub coordinator: CoordinatorEpoch,
    /// Whether a transaction is open.
    pub open: bool,
    /// Whether the newest batch is a marker.
    pub ended: bool,
    /// Who wrote the newest batch, and its number.
    pub writer: Option<Writer>,
    /// Its number.
    pub serial: u8,
}

/// G4, batch by batch: one small automaton an id, all of them begun anew by a barrier.
#[derive(Clone, Debug, Default)]
pub struct Order {
    known: Vec<Known>,
}

impl Order {
    /// The automata behind the last batch of a log, whether or not it is in order.
    #[must_use]
    pub fn behind(log: &Log) -> Self {
        let mut order = Self::default();
        for batch in log {
            order.follows(batch);
        }
        order
    }

    /// The ids that have batches behind the last barrier.
    #[must_use]
    pub fn known(&self) -> &[Known] {
        &self.known
    }

    /// Takes a batch; false if it does not follow.
    pub fn follows(&mut self, batch: &Batch) -> bool {
        if matches!(batch.kind, Kind::Barrier { .. }) {
            let nothing_open = self.known.iter().all(|k| !k.open);
            self.known.clear();
            return nothing_open;
        }
        if batch.producer_id == ProducerId::NONE {
            return true;
        }
        let at = self.known.iter().position(|k| k.id == batch.producer_id);
        let before = at.and_then(|at| self.known.get(at)).copied();
        let follows = before.map_or_else(|| matches!(batch.kind, Kind::Data { .. }), |k| k.is_followed_by(batch));
        let after = Known::after(before, batch);
        match at.and_then(|at| self.known.get_mut(at)) {
            Some(slot) => *slot = after,
            None => self.known.push(after),
        }
        follows
    }
}

impl Known {
    fn is_followed_by(&self, batch: &Batch) -> bool {
        let newer = batch.producer_epoch > self.epoch;
        match batch.kind {
            // A transaction has one epoch, and all of it is data of a transaction.
            Kind::Data { transactional } if self.open && (newer || !transactional) => false,
            Kind::Data { .. } if newer => batch.sequence == Sequence(0),
            Kind::Data { .. } => {
                let next = self.last.map_or(0, |last| last.0.saturating_add(1));
                batch.producer_epoch == self.epoch && batch.sequence.0 == next
            }
            Kind::Marker { coordinator_epoch, .. } => {
                let own = self.writer == batch.author.0.writer;
                // The next epoch, or, of a stop, the same one; a coordinator may write its marker again.
                let again = self.ended && batch.producer_epoch == self.epoch;
                batch.producer_epoch >= self.epoch && coordinator_epoch >= self.coordinator && own && (self.open || again)
            }
            Kind::Barrier { .. } => true,
        }
    }

    fn after(before: Option<Self>, batch: &Batch) -> Self {
        let kept = before.filter(|k| k.epoch == batch.producer_epoch).and_then(|k| k.last);
        let (last, coordinator, open) = match batch.kind {
            Kind::Data { transactional } => {
                let coordinator = before.map_or(CoordinatorEpoch(-1), |k| k.coordinator);
                (Some(batch.sequence), coordinator, transactional || before.is_some_and(|k| k.open))
            }
            Kind::Marker { coordinator_epoch, .. } => (kept, coordinator_epoch, false),
            Kind::Barrier { .. } => (kept, CoordinatorEpoch(-1), false),
        };
        Self {
            id: batch.producer_id,
            epoch: batch.producer_epoch,
            last,
            coordinator,
            open,
            ended: matches!(batch.kind, Kind::Marker { .. }),
            writer: batch.author.0.writer,
            serial: batch.author.0.serial,
        }
    }
}
