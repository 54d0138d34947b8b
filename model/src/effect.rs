//! What a transition did to a log, so that it can be told in prose and replayed on a concrete log.

use crate::batch::Batch;
use crate::ids::{Cluster, Offset};
use crate::mirror::MirrorState;
use crate::psm::{Origin, Rejection};
use crate::truth::Anomaly;

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The batch lies at this offset.
    Appended(Offset),
    /// It was taken for a resend of the batch at this offset.
    Duplicate(Offset),
    /// It was refused.
    Rejected(Rejection),
}

/// One effect on one replica's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// A batch was mirrored.
    Mirror {
        /// The cluster from which it was read.
        from: Cluster,
        /// Where it lay there; the same offset here.
        offset: Offset,
        /// The batch as it lay there.
        sent: Batch,
        /// The batch as stored here.
        stored: Batch,
        /// The result.
        outcome: Outcome,
    },
    /// The log was cut.
    Truncate {
        /// The new log end offset.
        to: Offset,
        /// Why.
        why: TruncateWhy,
    },
    /// The durable mirror state changed.
    MirrorState {
        /// The new state.
        to: MirrorState,
        /// The source, where a mirror starts.
        source: Option<Cluster>,
    },
    /// The last mirrored offset was stored.
    LastMirroredOffset(Offset),
    /// The broker died.
    Crash,
    /// The broker came back and replayed its log.
    Recover {
        /// The log end offset that it found.
        log_end: Offset,
    },
    /// Something happened that must not.
    Anomaly(Anomaly),
}

/// Why a log was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TruncateWhy {
    /// A stopping mirror drops what is not stable.
    StopToLso,
    /// A starting mirror aligns with its source.
    Alignment,
    /// The source's log is shorter than the mirror's.
    SourceShorter,
}
