//! Batches and logs as the model sees them: one record a batch, so that offsets are indexes.

use crate::ids::{Cluster, CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::truth::{Author, Ghost};

/// What a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Data, inside a transaction or not.
    Data {
        /// The transactional attribute.
        transactional: bool,
    },
    /// An end-transaction marker.
    Marker {
        /// COMMIT rather than ABORT.
        commit: bool,
        /// The epoch of the coordinator that wrote it.
        coordinator_epoch: CoordinatorEpoch,
    },
    /// A MIRROR_PID_RESET control batch.
    Barrier {
        /// The cluster from which the data before it was mirrored (`SourceClusterId`).
        source: Cluster,
    },
}

/// A batch of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Batch {
    /// The producer id as stored or sent.
    pub producer_id: ProducerId,
    /// The producer epoch; a marker of transaction version 2 carries the producer's next epoch.
    pub producer_epoch: ProducerEpoch,
    /// The sequence; -1 for markers, barriers and plain batches.
    pub sequence: Sequence,
    /// What it is.
    pub kind: Kind,
    /// The epoch of the leader that appended it, assigned with its offset; 0 as sent.
    pub leader_epoch: LeaderEpoch,
    /// Who really wrote it. No rule of the protocol can read this.
    pub author: Ghost<Author>,
}

impl Batch {
    /// The barrier of a stop, written by `author`'s cluster for data that came from `source`.
    #[must_use]
    pub fn barrier(source: Cluster, author: Ghost<Author>) -> Self {
        Self {
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch(-1),
            sequence: Sequence(-1),
            kind: Kind::Barrier { source },
            leader_epoch: LeaderEpoch::default(),
            author,
        }
    }

    /// The ABORT marker with which a stop ends a transaction that its mirror can no longer follow. Its author is the producer whose
    /// transaction it is.
    #[must_use]
    pub fn abort(id: ProducerId, epoch: ProducerEpoch, known: CoordinatorEpoch, author: Ghost<Author>) -> Self {
        Self {
            producer_id: id,
            producer_epoch: epoch,
            sequence: Sequence(-1),
            // A producer that never had a marker has no coordinator epoch; the marker then carries 0.
            kind: Kind::Marker { commit: false, coordinator_epoch: known.max(CoordinatorEpoch(0)) },
            leader_epoch: LeaderEpoch::default(),
            author,
        }
    }

    /// Whether this is data of a transaction, or a marker: what Kafka's transactional attribute says.
    #[must_use]
    pub const fn is_transactional(&self) -> bool {
        matches!(self.kind, Kind::Data { transactional: true } | Kind::Marker { .. })
    }
}

/// A log: batches in offset order from offset 0.
pub type Log = Vec<Batch>;

/// The log end offset.
#[must_use]
pub fn log_end(log: &Log) -> Offset {
    Offset::end_of(log.len())
}
