//! Messages between actors. Each is read by a rule; nothing else is sent.

use crate::batch::Batch;
use crate::effect::Outcome;
use crate::ids::{Cluster, Offset, ProducerEpoch, ProducerId};

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Msg {
    /// Producer to coordinator: give me an id.
    InitProducerId,
    /// Coordinator to producer: this is your id, with epoch 0.
    ProducerIdIs(ProducerId),
    /// Producer to leader: append this.
    Produce(Batch),
    /// Leader to producer.
    ProduceResult(Outcome),
    /// Producer to coordinator: end my transaction with this marker (the coordinator adds its epoch).
    EndTxn {
        /// COMMIT rather than ABORT.
        commit: bool,
        /// The producer's id.
        id: ProducerId,
        /// The producer's epoch after the transaction (transaction version 2).
        next_epoch: ProducerEpoch,
        /// The marker's number among the producer's batches; ground truth.
        author: crate::truth::Ghost<crate::truth::Author>,
    },
    /// Coordinator to leader: append this marker. The reply goes to the coordinator, for the producer with this actor number.
    WriteMarker {
        /// The marker.
        marker: Batch,
        /// The producer's actor number.
        producer: u8,
    },
    /// Leader to coordinator, about the marker for the producer with this actor number.
    MarkerResult {
        /// The result.
        outcome: Outcome,
        /// The producer's actor number.
        producer: u8,
    },
    /// Coordinator to producer: the transaction has ended, or its end was refused.
    TxnEnded {
        /// Whether the marker lies in the log.
        ended: bool,
    },
    /// Operator to replica: become writable, for this line of the script.
    Stop(u8),
    /// Operator to replica: mirror this cluster, for this line of the script.
    Start {
        /// The cluster to mirror.
        source: Cluster,
        /// The script line.
        line: u8,
    },
    /// Replica to operator: this line of the script is done.
    Done(u8),
    /// Mirror to source: what is your last mirrored offset?
    DescribeMirror,
    /// Source to mirror.
    LastMirroredOffsetIs(Option<Offset>),
    /// Mirror to source: the next batch from here on. Waits at the source until there is one (long poll).
    Fetch(Offset),
    /// Source to mirror: the batch at this offset.
    Fetched(Offset, Batch),
    /// Source to mirror: the log ends before the offset that was asked for.
    FetchOutOfRange(Offset),
}

impl Msg {
    /// Whether the delivery of this message only moves its receiver along and commutes with every other step: a reply that the receiver
    /// alone is waiting for. Such messages can be delivered at once without losing a behaviour that any property can see (RED-1).
    #[must_use]
    pub const fn is_urgent(&self) -> bool {
        match self {
            Self::ProducerIdIs(_)
            | Self::ProduceResult(_)
            | Self::EndTxn { .. }
            | Self::MarkerResult { .. }
            | Self::TxnEnded { .. }
            | Self::Done(_)
            | Self::DescribeMirror
            | Self::LastMirroredOffsetIs(_)
            | Self::Fetched(..)
            | Self::FetchOutOfRange(_) => true,
            Self::InitProducerId
            | Self::Produce(_)
            | Self::WriteMarker { .. }
            | Self::Stop(_)
            | Self::Start { .. }
            | Self::Fetch(_) => false,
        }
    }

    /// Whether this message belongs to the connection of a mirror fetcher and dies with it.
    #[must_use]
    pub const fn is_fetch(&self) -> bool {
        matches!(self, Self::Fetch(_) | Self::Fetched(..) | Self::FetchOutOfRange(_))
    }
}
