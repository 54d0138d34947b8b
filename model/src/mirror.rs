//! Mirror state, and what the mirror leader does to a batch before it stores it.

use crate::design::{LeaderEpochs, PidMapping};
use crate::ids::{Cluster, LeaderEpoch, Offset, ProducerId};
use crate::truth::{Ghost, Stint};

/// The state of a mirror partition (KIP-1279).
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

/// What a stop records for a later failback (KIP-1279: last mirrored offset and epoch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LastMirrored {
    /// The log end offset when it was recorded.
    pub offset: Offset,
    /// The newest leader epoch of the log then; none if it was empty.
    pub epoch: Option<LeaderEpoch>,
    /// The cluster that was mirrored.
    pub source: Cluster,
}

/// A mirror partition's metadata (KIP-1279: `__mirror_state`). It belongs to the cluster and outlives every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MirrorMeta {
    /// The state.
    pub state: MirrorState,
    /// The cluster that is mirrored, or was mirrored last.
    pub source: Option<Cluster>,
    /// The line of the operator's script that is being carried out.
    pub command: Option<u8>,
    /// What the last stop recorded.
    pub last_mirrored: Option<LastMirrored>,
    /// Whether it was recorded in this mirror session; kept only by designs that record once.
    pub recorded: bool,
    /// How often a mirror was started here after the first time.
    pub starts: u8,
    /// How many stop steps are done; kept only by designs that go on where they were.
    pub progress: u8,
    /// Ground truth: since which offset the partition is writable.
    pub stint: Ghost<Stint>,
}

impl MirrorMeta {
    /// The metadata of a partition that mirrors `source` from the start, or is writable.
    #[must_use]
    pub fn initial(source: Option<Cluster>) -> Self {
        Self {
            state: if source.is_some() { MirrorState::Mirroring } else { MirrorState::Stopped },
            source,
            command: None,
            last_mirrored: None,
            recorded: false,
            starts: 0,
            progress: 0,
            stint: Ghost::new(if source.is_some() { None } else { Some(Offset(0)) }),
        }
    }
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

impl LeaderEpochs {
    /// The leader epoch under which the mirror leader stores a batch (MIR-6).
    #[must_use]
    pub const fn apply(self, stored_at_source: LeaderEpoch, own: LeaderEpoch) -> LeaderEpoch {
        match self {
            Self::Keep => stored_at_source,
            Self::Rewrite => own,
        }
    }
}
