//! Mirror state and the producer id mapping of the mirror leader.

use crate::design::PidMapping;
use crate::ids::{Cluster, ProducerId};

/// The durable state of a mirror partition (KIP-1279).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorState {
    /// PREPARING: the log is being aligned with the source's; read-only.
    LogAlignment,
    /// Batches are fetched from the source; read-only.
    Mirroring,
    /// The stop sequence is running; read-only.
    Stopping,
    /// Writable: the mirror has ended, or there never was one.
    Stopped,
    /// Replication was refused by the log; read-only.
    Failed,
}

impl MirrorState {
    /// The name as KIP-1279 writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogAlignment => "LOG_ALIGNMENT",
            Self::Mirroring => "MIRRORING",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Failed => "FAILED",
        }
    }
}

/// A mirror partition's metadata, which survives a crash (KIP-1279: `__mirror_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MirrorMeta {
    /// The state.
    pub state: MirrorState,
    /// The cluster that is mirrored, or was mirrored last.
    pub source: Option<Cluster>,
    /// The line of the operator's script that is being carried out.
    pub command: Option<u8>,
}

impl PidMapping {
    /// The id under which the mirror leader stores a batch (MAP-1, MAP-2): -(p + 2), which keeps -1 and never yields 0 from 0.
    #[must_use]
    pub const fn apply(self, id: ProducerId) -> ProducerId {
        match self {
            Self::NegateEveryHop => ProducerId(-(id.0 + 2)),
            Self::NegateNonNegative if id.0 >= 0 => ProducerId(-(id.0 + 2)),
            Self::None | Self::NegateNonNegative => id,
        }
    }
}
