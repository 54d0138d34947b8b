//! The states of a mirror.

use std::fmt;
use std::str::FromStr;

/// The durable state of a mirror. A partition that was never a mirror is [`MirrorState::Stopped`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorState {
    /// The log is being aligned with the source's; read-only. Called PREPARING in earlier texts.
    LogAlignment,
    /// Batches are fetched from the source; read-only.
    Mirroring,
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

/// A name that is none of a mirror state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected LOG_ALIGNMENT, MIRRORING, PAUSED, STOPPING, STOPPED or FAILED")]
pub struct UnknownMirrorState;

impl MirrorState {
    /// All states.
    pub const ALL: [Self; 6] = [Self::LogAlignment, Self::Mirroring, Self::Paused, Self::Stopping, Self::Stopped, Self::Failed];

    /// The name as KIP-1279 writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogAlignment => "LOG_ALIGNMENT",
            Self::Mirroring => "MIRRORING",
            Self::Paused => "PAUSED",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Failed => "FAILED",
        }
    }

    /// Whether a mirror may go from this state to another. To stay is allowed: a new leader carries out again what the
    /// state asks for. Leaving [`MirrorState::Failed`] is allowed into the state that failed, which the caller knows.
    #[must_use]
    pub fn may_become(self, to: Self) -> bool {
        use MirrorState::{Failed, LogAlignment, Mirroring, Paused, Stopped, Stopping};
        self == to
            || to == Failed
            || matches!(
                (self, to),
                (Stopped | Failed, LogAlignment)
                    | (LogAlignment, Mirroring)
                    | (Mirroring, Paused)
                    | (Paused, Mirroring)
                    | (LogAlignment | Mirroring | Paused | Failed, Stopping)
                    | (Stopping, Stopped)
            )
    }
}

impl fmt::Display for MirrorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MirrorState {
    type Err = UnknownMirrorState;

    /// Reads a name as it is displayed; PREPARING is read as LOG_ALIGNMENT.
    fn from_str(name: &str) -> Result<Self, UnknownMirrorState> {
        if name == "PREPARING" {
            return Ok(Self::LogAlignment);
        }
        let state = Self::ALL.into_iter().find(|state| state.name() == name);
        state.ok_or(UnknownMirrorState)
    }
}
