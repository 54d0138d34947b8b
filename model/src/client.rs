//! Producers and coordinators: the clients' side of the protocol.

use crate::batch::{Batch, Kind};
use crate::effect::Outcome;
use crate::ids::{Cluster, ProducerEpoch, ProducerId, Sequence};
use crate::truth::{Author, Ghost, Writer};

/// What kind of client a producer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProducerKind {
    /// No producer id.
    Plain,
    /// A producer id, epoch and sequences.
    Idempotent,
    /// As idempotent, with all data in transactions.
    Transactional,
}

/// One real producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerConfig {
    /// Its number in the scenario.
    pub writer: Writer,
    /// The cluster that it writes to.
    pub cluster: Cluster,
    /// What it is.
    pub kind: ProducerKind,
    /// How many batches (or transactions of one batch) it sends.
    pub quota: u8,
}

/// What a producer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Waits for its id.
    NeedsId,
    /// A batch is on its way.
    InFlight,
    /// Its transaction has data and can be ended.
    InTransaction,
    /// The end of its transaction is on its way.
    Ending,
    /// All batches are acknowledged.
    Done,
    /// A batch or marker was refused: the client gives up.
    Refused,
}

/// A producer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Producer {
    /// What it is doing.
    pub phase: Phase,
    /// Its id, -1 before it has one.
    pub id: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Its next sequence.
    pub sequence: Sequence,
    /// How many batches and markers it has sent.
    pub sent: u8,
    /// How many batches or transactions are left.
    pub left: u8,
}

impl ProducerConfig {
    /// The producer before its first step.
    #[must_use]
    pub const fn initial(&self) -> Producer {
        Producer {
            phase: Phase::NeedsId,
            id: ProducerId::NONE,
            epoch: ProducerEpoch(-1),
            sequence: Sequence(-1),
            sent: 0,
            left: self.quota,
        }
    }

    fn author(&self, producer: &mut Producer) -> Ghost<Author> {
        let author = Author { writer: Some(self.writer), cluster: self.cluster, serial: producer.sent };
        producer.sent += 1;
        Ghost::new(author)
    }

    /// The next batch, if any is left.
    pub fn next_batch(&self, producer: &mut Producer) -> Option<Batch> {
        if producer.left == 0 {
            producer.phase = Phase::Done;
            return None;
        }
        producer.phase = Phase::InFlight;
        let transactional = self.kind == ProducerKind::Transactional;
        Some(Batch {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            sequence: producer.sequence,
            kind: Kind::Data { transactional },
            author: self.author(producer),
        })
    }

    /// The producer gets its id, with epoch 0 and sequence 0.
    pub const fn got_id(&self, producer: &mut Producer, id: ProducerId) {
        producer.id = id;
        producer.epoch = ProducerEpoch(0);
        producer.sequence = Sequence(0);
    }

    /// The leader has answered. True if another batch can follow at once. A duplicate is an acknowledgement to the client.
    pub fn got_result(&self, producer: &mut Producer, outcome: Outcome) -> bool {
        if matches!(outcome, Outcome::Rejected(_)) {
            producer.phase = Phase::Refused;
            return false;
        }
        if self.kind != ProducerKind::Plain {
            producer.sequence = Sequence(producer.sequence.0.saturating_add(1));
        }
        if self.kind == ProducerKind::Transactional {
            producer.phase = Phase::InTransaction;
            return false;
        }
        producer.left = producer.left.saturating_sub(1);
        true
    }

    /// The producer ends its transaction: the epoch of the marker, and its author.
    pub fn end_transaction(&self, producer: &mut Producer) -> (ProducerEpoch, Ghost<Author>) {
        producer.phase = Phase::Ending;
        (ProducerEpoch(producer.epoch.0.saturating_add(1)), self.author(producer))
    }

    /// The transaction has ended, or its end was refused. True if another batch can follow at once.
    pub fn transaction_ended(&self, producer: &mut Producer, ended: bool) -> bool {
        if !ended {
            producer.phase = Phase::Refused;
            return false;
        }
        // Transaction version 2: each transaction has an epoch of its own, and sequences start again.
        producer.epoch = ProducerEpoch(producer.epoch.0.saturating_add(1));
        producer.sequence = Sequence(0);
        producer.left = producer.left.saturating_sub(1);
        true
    }
}

/// A coordinator's state: the next id that it hands out (PID-1: each cluster counts for itself, from the same number).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinator {
    /// The next id.
    pub next_id: ProducerId,
}

impl Coordinator {
    /// The coordinator before its first step.
    pub const INITIAL: Self = Self { next_id: ProducerId::FIRST };

    /// A new id.
    pub const fn hand_out(&mut self) -> ProducerId {
        let id = self.next_id;
        self.next_id = ProducerId(id.0 + 1);
        id
    }
}

/// The marker that ends a transaction.
#[must_use]
pub const fn marker(commit: bool, id: ProducerId, epoch: ProducerEpoch, cluster: Cluster, author: Ghost<Author>) -> Batch {
    Batch {
        producer_id: id,
        producer_epoch: epoch,
        sequence: Sequence(-1),
        kind: Kind::Marker { commit, coordinator_epoch: cluster.coordinator_epoch() },
        author,
    }
}
