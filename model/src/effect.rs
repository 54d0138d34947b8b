//! What a transition did to a log, so that it can be told in prose and replayed on a concrete log.

use crate::batch::Batch;
use crate::ids::{Broker, Cluster, LeaderEpoch, Offset};
use crate::mirror::{LastMirrored, MirrorState};
use crate::psm::{Origin, Rejection};
use crate::truth::Anomaly;

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The batch lies at this offset; of several, the first.
    Appended(Offset),
    /// It was taken for a resend of the batch at this offset.
    Duplicate(Offset),
    /// It was refused.
    Rejected(Rejection),
}

/// One effect on one replica's log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The leader appended, or refused to.
    Append {
        /// Whose append it was.
        origin: Origin,
        /// The batch as sent.
        batch: Batch,
        /// The result.
        outcome: Outcome,
    },
    /// Batches were copied from another replica's log in one append call.
    Copy {
        /// The replica that was read: the leader of the same cluster, or that of the source.
        from: Broker,
        /// Where the first lay there; the same offset here.
        offset: Offset,
        /// The batches as they lay there.
        sent: Vec<Batch>,
        /// The batches as stored here.
        stored: Vec<Batch>,
        /// The result.
        outcome: Outcome,
    },
    /// The high watermark was set.
    HighWatermark(Offset),
    /// The log was cut.
    Truncate {
        /// The new log end offset.
        to: Offset,
        /// Why.
        why: TruncateWhy,
    },
    /// A new segment began, and a producer snapshot was taken.
    Roll(Offset),
    /// The mirror state changed.
    MirrorState {
        /// The new state.
        to: MirrorState,
        /// The source, where a mirror starts.
        source: Option<Cluster>,
    },
    /// A stop recorded how far it had mirrored.
    LastMirrored(LastMirrored),
    /// The replica leads from now on.
    Lead(LeaderEpoch),
    /// The replica follows from now on.
    Follow(LeaderEpoch),
    /// The leader's epoch was raised without an election.
    RaiseEpoch(LeaderEpoch),
    /// The broker died.
    Crash,
    /// The broker came back and built its state.
    Recover {
        /// It had stopped in good order.
        clean: bool,
    },
    /// Something happened that must not.
    Anomaly(Anomaly),
    /// A batch was refused or taken for a resend; whether that is wrong only the ground truth can tell.
    Suspect {
        /// What it is if the batch is an honest producer's newest.
        anomaly: Anomaly,
        /// The batch.
        batch: Batch,
    },
}

/// Why a log was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TruncateWhy {
    /// A stopping mirror drops what is not stable.
    StopToLso,
    /// A starting mirror aligns with its source.
    Alignment,
    /// The log that is read is shorter than its reader's.
    SourceShorter,
    /// The leader epochs show that the reader's log parts from the one that is read.
    Diverging,
    /// An arbitrary source loses its end.
    SourceCut,
}
