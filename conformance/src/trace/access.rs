//! Small questions to the types of a trace.

use super::format::{MirrorState, Op, ReplicaState};

impl Op {
    /// The replica on which the operation acts.
    #[must_use]
    pub fn replica(&self) -> &str {
        match self {
            Self::Append { replica, .. }
            | Self::Mirror { replica, .. }
            | Self::Truncate { replica, .. }
            | Self::HighWatermark { replica, .. }
            | Self::MirrorState { replica, .. }
            | Self::LearnMirrorState { replica, .. }
            | Self::LastMirroredOffset { replica, .. }
            | Self::Lead { replica }
            | Self::Roll { replica }
            | Self::Crash { replica }
            | Self::Recover { replica, .. } => replica,
        }
    }

    /// The operation's name in the file.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Append { .. } => "append",
            Self::Mirror { .. } => "mirror",
            Self::Truncate { .. } => "truncate",
            Self::HighWatermark { .. } => "high-watermark",
            Self::MirrorState { .. } => "mirror-state",
            Self::LearnMirrorState { .. } => "learn-mirror-state",
            Self::LastMirroredOffset { .. } => "last-mirrored-offset",
            Self::Lead { .. } => "lead",
            Self::Roll { .. } => "roll",
            Self::Crash { .. } => "crash",
            Self::Recover { .. } => "recover",
        }
    }
}

impl MirrorState {
    /// The state's name in the file.
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
}

impl ReplicaState {
    /// The state of a replica at the start of a trace: an empty log, writable unless it mirrors.
    #[must_use]
    pub const fn initial(mirrors: bool) -> Self {
        Self {
            up: true,
            mirror_state: if mirrors { MirrorState::Mirroring } else { MirrorState::Stopped },
            log_start_offset: 0,
            log_end_offset: 0,
            high_watermark: 0,
            last_stable_offset: 0,
            log: Vec::new(),
            producers: Vec::new(),
            open_transactions: Vec::new(),
            aborted_transactions: None,
        }
    }
}
