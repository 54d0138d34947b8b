//! Producers and coordinators: the clients' side of the protocol.

use crate::batch::{Batch, Kind};
use crate::effect::Outcome;
use crate::ids::{Cluster, LeaderEpoch, ProducerEpoch, ProducerId, Sequence};
use crate::message::EndTxn;
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
    /// Whether the transaction that is being ended commits.
    pub commits: bool,
    /// A bit for each batch that it gave up.
    pub given_up: u8,
}

impl Producer {
    /// Whether the batch or marker with this number is the one that it waits for.
    #[must_use]
    pub const fn waits_for(&self, serial: u8) -> bool {
        matches!(self.phase, Phase::InFlight | Phase::Ending) && serial.saturating_add(1) == self.sent
    }

    /// How many of its batches and markers it was told the result of.
    #[must_use]
    pub const fn answered(&self) -> u8 {
        match self.phase {
            Phase::InFlight | Phase::Ending | Phase::Refused => self.sent.saturating_sub(1),
            Phase::NeedsId | Phase::InTransaction | Phase::Done => self.sent,
        }
    }

    /// Whether it will write nothing more unless something happens to it, and has no transaction open.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Refused)
    }
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
            commits: false,
            given_up: 0,
        }
    }

    fn author(&self, producer: &Producer) -> Ghost<Author> {
        Ghost::new(Author { writer: Some(self.writer), cluster: self.cluster, serial: producer.sent.saturating_sub(1) })
    }

    /// The next batch, if any is left.
    pub fn next_batch(&self, producer: &mut Producer) -> Option<Batch> {
        if producer.left == 0 {
            producer.phase = Phase::Done;
            return None;
        }
        producer.phase = Phase::InFlight;
        producer.sent += 1;
        Some(self.batch_in_flight(producer))
    }

    /// The batch that is on its way, for the first time or again.
    #[must_use]
    pub fn batch_in_flight(&self, producer: &Producer) -> Batch {
        Batch {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            sequence: producer.sequence,
            kind: Kind::Data { transactional: self.kind == ProducerKind::Transactional },
            leader_epoch: LeaderEpoch::default(),
            author: self.author(producer),
        }
    }

    /// A producer gives up the batch in flight and goes on with the next epoch: after a delivery timeout (KIP-360), or because the partition
    /// became a mirror before the batch was answered.
    pub const fn give_up(&self, producer: &mut Producer) {
        producer.given_up |= 1 << (producer.sent.saturating_sub(1) & 7);
        producer.commits = false;
        producer.epoch = ProducerEpoch(producer.epoch.0.saturating_add(1));
        producer.sequence = Sequence(0);
        producer.left = producer.left.saturating_sub(1);
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

    /// The producer ends its transaction.
    pub const fn end_transaction(&self, producer: &mut Producer, commit: bool) {
        producer.phase = Phase::Ending;
        producer.commits = commit;
        producer.sent += 1;
    }

    /// How the transaction that is being ended ends.
    #[must_use]
    pub fn end_of(&self, producer: &Producer) -> EndTxn {
        EndTxn {
            commit: producer.commits,
            partition: self.cluster,
            id: producer.id,
            next_epoch: ProducerEpoch(producer.epoch.0.saturating_add(1)),
            correlation: producer.sent,
            author: self.author(producer),
        }
    }

    /// The transaction has ended, or its end was refused. True if another batch can follow at once.
    pub fn transaction_ended(&self, producer: &mut Producer, ended: bool) -> bool {
        if !ended {
            producer.phase = Phase::Refused;
            return false;
        }
        producer.commits = false;
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

/// The marker that ends a transaction, as the coordinator of `cluster` writes it.
#[must_use]
pub const fn marker(end: &EndTxn, cluster: Cluster) -> Batch {
    Batch {
        producer_id: end.id,
        producer_epoch: end.next_epoch,
        sequence: Sequence(-1),
        kind: Kind::Marker { commit: end.commit, coordinator_epoch: cluster.coordinator_epoch() },
        leader_epoch: LeaderEpoch(0),
        author: end.author,
    }
}
