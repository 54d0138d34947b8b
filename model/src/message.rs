//! Messages between actors. Each is read by a rule; nothing else is sent.

use crate::batch::Batch;
use crate::effect::Outcome;
use crate::epochs::EpochEnd;
use crate::ids::{Cluster, LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::mirror::{LastMirrored, MirrorMeta};
use crate::truth::{Author, Ghost};

/// A reader's request for batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchRequest {
    /// The log end offset of the reader.
    pub offset: Offset,
    /// The epoch of its last batch, if the design lets it look for divergence and it has one.
    pub last_epoch: Option<LeaderEpoch>,
    /// The high watermark that a follower knows; a mirror does not ask for it.
    pub high_watermark: Option<Offset>,
    /// All batches that there are rather than one.
    pub bulk: bool,
}

/// What a reader gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchResponse {
    /// Batches from the offset that was asked for, perhaps none.
    Batches {
        /// That offset.
        offset: Offset,
        /// The batches.
        batches: Vec<Batch>,
        /// The high watermark of the log that was read.
        high_watermark: Offset,
    },
    /// The log that was read ends here, before the offset that was asked for.
    OutOfRange(Offset),
    /// The logs part: this is the newest epoch that both may know, and where it ends in the log that was read.
    Diverging(EpochEnd),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Msg {
    /// Producer to coordinator: give me an id.
    InitProducerId,
    /// Coordinator to producer: this is your id, with epoch 0.
    ProducerIdIs(ProducerId),
    /// Producer to leader: append this.
    Produce(Request),
    /// Leader to producer.
    ProduceResult {
        /// The result.
        outcome: Outcome,
        /// The number of the request.
        correlation: u8,
    },
    /// Leader to producer: the partition is a mirror now; what became of this request will not be told.
    Lost {
        /// The number of the request.
        correlation: u8,
    },
    /// Coordinator to producer: your partition is a mirror now, and your transaction has been given up.
    Fenced,
    /// Producer to coordinator: end my transaction.
    EndTxn {
        /// The actor number of the producer.
        producer: u8,
        /// How.
        end: EndTxn,
        /// Whether it was asked for before.
        resent: bool,
    },
    /// Coordinator to leader: append this marker.
    WriteMarker(Request),
    /// Coordinator to producer: the transaction has ended, or its end was refused.
    TxnEnded {
        /// Whether the marker lies in the log.
        ended: bool,
        /// The number of the request.
        correlation: u8,
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
    /// Mirror to source: what did your last stop record?
    DescribeMirror,
    /// Source to mirror.
    LastMirroredIs(Option<LastMirrored>),
    /// Reader to leader: batches from here on. Waits at the leader until there is news (long poll).
    Fetch(FetchRequest),
    /// Leader to reader.
    Fetched(FetchResponse),
    /// Replica to controller: I have started.
    Started,
    /// Controller to replica: lead.
    Lead {
        /// Your epoch.
        epoch: LeaderEpoch,
        /// Whether the follower is in sync.
        in_sync: bool,
        /// The mirror's metadata.
        mirror: MirrorMeta,
    },
    /// Controller to replica: follow the other one.
    Follow {
        /// Its epoch.
        epoch: LeaderEpoch,
        /// The mirror's metadata.
        mirror: MirrorMeta,
    },
    /// Controller to a deposed leader that may not know it yet: you no longer lead.
    StepDown,
    /// A deposed leader to the controller: who does?
    WhoLeads,
    /// Leader to controller: the follower has caught up, as of this epoch.
    FollowerInSync(LeaderEpoch),
    /// Controller to leader: the follower has gone.
    FollowerLost,
    /// Leader to controller: the mirror's metadata is this now.
    StoreMirror {
        /// The leader's epoch.
        epoch: LeaderEpoch,
        /// The metadata.
        mirror: MirrorMeta,
        /// The line of the operator's script that is done with this.
        done: Option<u8>,
    },
    /// Controller to follower: the mirror's metadata is this now.
    MirrorIs(MirrorMeta),
    /// Controller to both replicas: the leader's epoch is this now.
    EpochIs {
        /// The number of the replica that leads.
        leader: u8,
        /// The epoch.
        epoch: LeaderEpoch,
    },
    /// Leader to controller: my epoch must be at least this.
    RaiseEpoch {
        /// The leader's epoch so far.
        epoch: LeaderEpoch,
        /// The epoch to raise it to.
        to: LeaderEpoch,
    },
}

/// A batch on its way to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The batch.
    pub batch: Batch,
    /// The actor number of the producer that waits for the result.
    pub producer: u8,
    /// The number of the request, so that an answer to an earlier copy can be told.
    pub correlation: u8,
    /// Whether an earlier copy was sent.
    pub resent: bool,
}

/// The end of a transaction, as the producer asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndTxn {
    /// COMMIT rather than ABORT.
    pub commit: bool,
    /// The partition that took part.
    pub partition: Cluster,
    /// The producer's id.
    pub id: ProducerId,
    /// The producer's epoch after the transaction (transaction version 2).
    pub next_epoch: ProducerEpoch,
    /// The number of the request.
    pub correlation: u8,
    /// The marker's number among the producer's batches; ground truth.
    pub author: Ghost<Author>,
}

impl Msg {
    /// Its name, for statistics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::InitProducerId => "InitProducerId",
            Self::ProducerIdIs(_) => "ProducerIdIs",
            Self::Produce(_) => "Produce",
            Self::ProduceResult { .. } => "ProduceResult",
            Self::Lost { .. } => "Lost",
            Self::Fenced => "Fenced",
            Self::EndTxn { .. } => "EndTxn",
            Self::WriteMarker(_) => "WriteMarker",
            Self::TxnEnded { .. } => "TxnEnded",
            Self::Stop(_) => "Stop",
            Self::Start { .. } => "Start",
            Self::Done(_) => "Done",
            Self::DescribeMirror => "DescribeMirror",
            Self::LastMirroredIs(_) => "LastMirroredIs",
            Self::Fetch(_) => "Fetch",
            Self::Fetched(_) => "Fetched",
            Self::Started => "Started",
            Self::Lead { .. } => "Lead",
            Self::Follow { .. } => "Follow",
            Self::StepDown => "StepDown",
            Self::WhoLeads => "WhoLeads",
            Self::FollowerInSync(_) => "FollowerInSync",
            Self::FollowerLost => "FollowerLost",
            Self::StoreMirror { .. } => "StoreMirror",
            Self::MirrorIs(_) => "MirrorIs",
            Self::EpochIs { .. } => "EpochIs",
            Self::RaiseEpoch { .. } => "RaiseEpoch",
        }
    }

    /// Whether the delivery of this message only moves its receiver along and commutes with every other step: a reply that the receiver
    /// alone is waiting for. Such messages can be delivered at once without losing a behaviour that any property can see (RED-1).
    #[must_use]
    pub const fn is_urgent(&self) -> bool {
        match self {
            Self::InitProducerId
            | Self::Produce(_)
            | Self::WriteMarker(_)
            | Self::Stop(_)
            | Self::Start { .. }
            | Self::Fetch(_)
            // A deposed leader may act for a while before it is told.
            | Self::StepDown => false,
            _ => true,
        }
    }

    /// Whether this is talk with the controller: one durable write of metadata and what follows from it, which nothing comes between
    /// (STATE-2).
    #[must_use]
    pub const fn is_metadata(&self) -> bool {
        matches!(
            self,
            Self::Started
                | Self::WhoLeads
                | Self::Lead { .. }
                | Self::Follow { .. }
                | Self::FollowerInSync(_)
                | Self::FollowerLost
                | Self::StoreMirror { .. }
                | Self::MirrorIs(_)
                | Self::EpochIs { .. }
                | Self::RaiseEpoch { .. }
        )
    }

    /// Whether this is a request to whoever leads the partition: it follows the leadership.
    #[must_use]
    pub const fn is_for_leader(&self) -> bool {
        matches!(
            self,
            Self::Produce(_) | Self::WriteMarker(_) | Self::Stop(_) | Self::Start { .. } | Self::DescribeMirror | Self::Fetch(_)
        )
    }
}
