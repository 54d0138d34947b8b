//! The states of a mirror, and what may be done to the partition in each.

use std::fmt;
use std::str::FromStr;

/// The durable state of a mirror. A partition that was never a mirror is [`MirrorState::Stopped`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorState {
    /// The log is being aligned with the source's; read-only. Called PREPARING or LOG_TRUNCATION in earlier texts.
    LogAlignment,
    /// The leader epoch is being raised above the source's; read-only.
    EpochFencing,
    /// After an unclean election of the source, all replicas have to come back; read-only. Called ULE_LOG_TRUNCATION once.
    UleRecovery,
    /// Batches are fetched from the source; read-only.
    Mirroring,
    /// The fetcher is being removed; read-only.
    Pausing,
    /// Nothing is fetched, and may be again; read-only.
    Paused,
    /// The stop sequence is running; read-only but for barriers and ABORT markers.
    Stopping,
    /// Writable.
    #[default]
    Stopped,
    /// Something went wrong; read-only.
    Failed,
}

/// Which states a design has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateForm {
    /// Six, those of the first texts: a pause is immediate, leader epochs are not compared, FAILED can be stopped.
    #[default]
    Six,
    /// Nine, those of the latest text: also EPOCH_FENCING, ULE_RECOVERY and PAUSING; FAILED has to be left before a stop.
    Nine,
}

impl StateForm {
    /// Whether the form has the state.
    #[must_use]
    pub const fn has(self, state: MirrorState) -> bool {
        match state {
            MirrorState::EpochFencing | MirrorState::UleRecovery | MirrorState::Pausing => matches!(self, Self::Nine),
            _ => true,
        }
    }
}

/// What may be done to a partition in a state (MIR-11). Consumers read in every state, up to the bound of their isolation,
/// and so do followers and mirrors of this mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permissions {
    /// Clients append, and the coordinator its markers.
    pub appends: bool,
    /// The broker's own barriers and ABORT markers may be appended.
    pub stop_appends: bool,
    /// The leader fetches from the source.
    pub mirror_fetches: bool,
}

/// A name that is none of a mirror state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected LOG_ALIGNMENT, EPOCH_FENCING, ULE_RECOVERY, MIRRORING, PAUSING, PAUSED, STOPPING, STOPPED or FAILED, or an \
     earlier name of one"
)]
pub struct UnknownMirrorState;

impl MirrorState {
    /// All states.
    pub const ALL: [Self; 9] = [
        Self::LogAlignment,
        Self::EpochFencing,
        Self::UleRecovery,
        Self::Mirroring,
        Self::Pausing,
        Self::Paused,
        Self::Stopping,
        Self::Stopped,
        Self::Failed,
    ];

    /// The name as KIP-1279 writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogAlignment => "LOG_ALIGNMENT",
            Self::EpochFencing => "EPOCH_FENCING",
            Self::UleRecovery => "ULE_RECOVERY",
            Self::Mirroring => "MIRRORING",
            Self::Pausing => "PAUSING",
            Self::Paused => "PAUSED",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Failed => "FAILED",
        }
    }

    /// What may be done in this state.
    #[must_use]
    pub const fn permissions(self) -> Permissions {
        Permissions {
            appends: matches!(self, Self::Stopped),
            stop_appends: matches!(self, Self::Stopping | Self::Stopped),
            mirror_fetches: matches!(self, Self::Mirroring),
        }
    }
}

impl fmt::Display for MirrorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MirrorState {
    type Err = UnknownMirrorState;

    /// Reads a name as it is displayed, or as an earlier text had it.
    fn from_str(name: &str) -> Result<Self, UnknownMirrorState> {
        match name {
            "PREPARING" | "LOG_TRUNCATION" => Ok(Self::LogAlignment),
            "ULE_LOG_TRUNCATION" => Ok(Self::UleRecovery),
            _ => Self::ALL.into_iter().find(|state| state.name() == name).ok_or(UnknownMirrorState),
        }
    }
}
