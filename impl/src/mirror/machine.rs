//! The mirror's state machine: what an event makes of a state, and what is to be done for it. This file is its
//! specification. A pure function; storage, fetchers, the controller and timers are the caller's.
//!
//! | from | event | to |
//! |---|---|---|
//! | STOPPED, FAILED | start | LOG_ALIGNMENT |
//! | LOG_ALIGNMENT | log aligned | MIRRORING; *nine*: EPOCH_FENCING while the source's leader epoch is ahead |
//! | MIRRORING | source epoch ahead | *nine*: EPOCH_FENCING |
//! | EPOCH_FENCING | epoch raised | MIRRORING |
//! | MIRRORING | unclean election of the source | *nine*: ULE_RECOVERY |
//! | ULE_RECOVERY | replicas rejoined | MIRRORING |
//! | MIRRORING | pause | *six*: PAUSED; *nine*: PAUSING |
//! | PAUSING | fetcher removed | PAUSED |
//! | PAUSED | resume | MIRRORING, at the log end offset, without a truncation |
//! | LOG_ALIGNMENT, EPOCH_FENCING, MIRRORING, PAUSING, PAUSED; *six*: FAILED | stop | STOPPING |
//! | STOPPING | stop sequence done | STOPPED |
//! | any | failure | FAILED |
//! | FAILED | retry, if that is not hopeless; recover | the state that failed |
//! | any | leader elected, leader resigned | the same |
//!
//! Everything else is refused (MIR-12). ULE_RECOVERY cannot be stopped: no text has that transition, and there the replicas
//! do not agree on the log that a barrier would have to follow.
//!
//! A new leader does the work of the state from its beginning, so a crash in a state is the same as an election (MIR-5).

use super::design::{ElectedEpoch, MirrorDesign};
use super::error::MirrorError;
use super::state::{MirrorState, StateForm};

/// What happens to a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorEvent {
    /// The operator starts to mirror, or a broker that knows no state finds that it should.
    Start,
    /// The log was truncated as the design aligns it, and the in-sync replicas have followed.
    LogAligned {
        /// Whether the source's leader epoch is above the own one.
        source_epoch_ahead: bool,
    },
    /// A batch of the source has a leader epoch above the own one.
    SourceEpochAhead,
    /// The own leader epoch is above the source's.
    EpochRaised,
    /// The source's log had parted from the own one, which was truncated; the topic follows unclean elections.
    UncleanElection,
    /// All replicas are in sync.
    ReplicasRejoined,
    /// The operator pauses.
    Pause,
    /// No fetcher runs any more.
    FetcherRemoved,
    /// The operator resumes.
    Resume,
    /// The operator stops.
    Stop,
    /// The stop sequence has come to its end.
    StopSequenceDone,
    /// Something went wrong.
    Failure {
        /// Whether another attempt may succeed.
        retryable: bool,
    },
    /// The time for another attempt has come.
    Retry,
    /// The operator says that the trouble is over.
    Recover,
    /// This replica became leader, or is leader and its broker started again.
    LeaderElected,
    /// This replica is leader no longer.
    LeaderResigned,
}

impl MirrorEvent {
    /// All events.
    pub const ALL: [Self; 18] = [
        Self::Start,
        Self::LogAligned { source_epoch_ahead: false },
        Self::LogAligned { source_epoch_ahead: true },
        Self::SourceEpochAhead,
        Self::EpochRaised,
        Self::UncleanElection,
        Self::ReplicasRejoined,
        Self::Pause,
        Self::FetcherRemoved,
        Self::Resume,
        Self::Stop,
        Self::StopSequenceDone,
        Self::Failure { retryable: false },
        Self::Failure { retryable: true },
        Self::Retry,
        Self::Recover,
        Self::LeaderElected,
        Self::LeaderResigned,
    ];
}

/// What the caller has to do, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorEffect {
    /// Make the new status durable; what follows may only be done when it is.
    StoreStatus,
    /// Note the own leader epoch at the log end offset, if it is above the latest there, so that followers and the mirrored
    /// cluster see where logs part.
    AssignLeaderEpoch,
    /// Ask the source what it recorded, truncate, wait for the in-sync replicas; then [`MirrorEvent::LogAligned`].
    AlignLog,
    /// Ask the controller for a leader epoch above the source's; then [`MirrorEvent::EpochRaised`].
    RaiseLeaderEpoch,
    /// Wait until all replicas are in sync; then [`MirrorEvent::ReplicasRejoined`].
    AwaitAllReplicas,
    /// Fetch from the log end offset on.
    StartFetcher,
    /// Stop fetching, and drop what was asked for; while PAUSING, then [`MirrorEvent::FetcherRemoved`].
    RemoveFetcher,
    /// Carry out the stop sequence from its first step; then [`MirrorEvent::StopSequenceDone`].
    RunStopSequence,
    /// Try again later; then [`MirrorEvent::Retry`].
    ScheduleRetry,
}

/// How often a mirror has failed since its last success; -1 when another attempt is hopeless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailedAttempts(pub i32);

impl FailedAttempts {
    /// Another attempt is hopeless.
    pub const NOT_RETRYABLE: Self = Self(-1);

    /// Whether another attempt may be made by itself, of so many.
    #[must_use]
    pub const fn may_retry(self, max_attempts: i32) -> bool {
        self.0 >= 0 && self.0 <= max_attempts
    }
}

/// What the state machine remembers, durably.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MirrorStatus {
    /// The state.
    pub state: MirrorState,
    /// The state that failed, while the state is FAILED.
    pub failed_from: Option<MirrorState>,
    /// How often in a row it has failed.
    pub failed_attempts: FailedAttempts,
}

/// What comes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The status from now on.
    pub status: MirrorStatus,
    /// What is to be done for it.
    pub effects: Vec<MirrorEffect>,
}

/// The rules in one design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Which states there are.
    pub form: StateForm,
    /// How many attempts are made by themselves after a failure.
    pub max_attempts: i32,
    /// Where a new leader notes its epoch.
    pub elected_epoch: ElectedEpoch,
}

impl From<&MirrorDesign> for Machine {
    fn from(design: &MirrorDesign) -> Self {
        Self { form: design.states, max_attempts: design.max_attempts, elected_epoch: design.stop.elected_epoch }
    }
}

impl Machine {
    /// What an event makes of a status.
    ///
    /// # Errors
    /// [`MirrorError::IllegalEvent`] when the event cannot happen in the state; nothing changes then.
    pub fn next(&self, status: &MirrorStatus, event: MirrorEvent) -> Result<Transition, MirrorError> {
        let refused = MirrorError::IllegalEvent { state: status.state, event };
        match event {
            MirrorEvent::LeaderElected => Ok(self.elected(status)),
            MirrorEvent::LeaderResigned => Ok(Transition { status: *status, effects: vec![MirrorEffect::RemoveFetcher] }),
            MirrorEvent::Failure { retryable } => Ok(self.fail(status, retryable)),
            MirrorEvent::Retry | MirrorEvent::Recover => self.resume_failed(status, event).ok_or(refused),
            _ => self.target(status.state, event).map(|to| self.enter(status, to)).ok_or(refused),
        }
    }

    /// Where an event of the ordinary course leads.
    fn target(&self, from: MirrorState, event: MirrorEvent) -> Option<MirrorState> {
        use MirrorState::{EpochFencing, Failed, LogAlignment, Mirroring, Paused, Pausing, Stopped, Stopping, UleRecovery};
        let nine = self.form == StateForm::Nine;
        Some(match (from, event) {
            (Stopped | Failed, MirrorEvent::Start) => LogAlignment,
            (LogAlignment, MirrorEvent::LogAligned { source_epoch_ahead: true }) if nine => EpochFencing,
            (LogAlignment, MirrorEvent::LogAligned { .. }) | (Paused, MirrorEvent::Resume) => Mirroring,
            (EpochFencing, MirrorEvent::EpochRaised) | (UleRecovery, MirrorEvent::ReplicasRejoined) if nine => Mirroring,
            (Mirroring, MirrorEvent::SourceEpochAhead) if nine => EpochFencing,
            (Mirroring, MirrorEvent::UncleanElection) if nine => UleRecovery,
            (Mirroring, MirrorEvent::Pause) => {
                if nine {
                    Pausing
                } else {
                    Paused
                }
            }
            (Pausing, MirrorEvent::FetcherRemoved) if nine => Paused,
            (LogAlignment | Mirroring | Paused, MirrorEvent::Stop) => Stopping,
            (EpochFencing | Pausing, MirrorEvent::Stop) if nine => Stopping,
            (Failed, MirrorEvent::Stop) if !nine => Stopping,
            (Stopping, MirrorEvent::StopSequenceDone) => Stopped,
            _ => return None,
        })
    }

    /// Going on is success: earlier failures no longer count.
    fn enter(&self, before: &MirrorStatus, to: MirrorState) -> Transition {
        let status = MirrorStatus { state: to, failed_from: None, failed_attempts: FailedAttempts(0) };
        self.change(before, status)
    }

    fn change(&self, before: &MirrorStatus, status: MirrorStatus) -> Transition {
        let mut effects = vec![MirrorEffect::StoreStatus];
        // PAUSING and STOPPING remove the fetcher as part of their work, unless they fail before they come to it.
        let may_fetch = |state| matches!(state, MirrorState::Mirroring | MirrorState::Pausing | MirrorState::Stopping);
        let leaves = !may_fetch(status.state) && (before.state == MirrorState::Mirroring || status.state == MirrorState::Failed);
        if may_fetch(before.state) && leaves {
            effects.push(MirrorEffect::RemoveFetcher);
        }
        effects.extend(self.work(&status));
        Transition { status, effects }
    }

    /// The state that failed stays known through further failures, and what is hopeless stays so.
    fn fail(&self, before: &MirrorStatus, retryable: bool) -> Transition {
        let failed_from = if before.state == MirrorState::Failed { before.failed_from } else { Some(before.state) };
        let failed_attempts = if retryable && before.failed_attempts != FailedAttempts::NOT_RETRYABLE {
            FailedAttempts(before.failed_attempts.0.saturating_add(1))
        } else {
            FailedAttempts::NOT_RETRYABLE
        };
        self.change(before, MirrorStatus { state: MirrorState::Failed, failed_from, failed_attempts })
    }

    fn resume_failed(&self, before: &MirrorStatus, event: MirrorEvent) -> Option<Transition> {
        let to = before.failed_from.filter(|_| before.state == MirrorState::Failed)?;
        let failed_attempts = match event {
            MirrorEvent::Retry if !before.failed_attempts.may_retry(self.max_attempts) => return None,
            MirrorEvent::Retry => before.failed_attempts,
            _ => FailedAttempts(0),
        };
        Some(self.change(before, MirrorStatus { state: to, failed_from: None, failed_attempts }))
    }

    /// Only where local batches may follow does a new leader note its epoch: before, the log holds the source's (STOP-15).
    fn elected(&self, status: &MirrorStatus) -> Transition {
        let local = match status.state {
            MirrorState::Stopped => true,
            MirrorState::Stopping => self.elected_epoch == ElectedEpoch::FromStopping,
            _ => false,
        };
        let mut effects = if local { vec![MirrorEffect::AssignLeaderEpoch] } else { Vec::new() };
        effects.extend(self.work(status));
        Transition { status: *status, effects }
    }

    /// What a leader does in a state, from its beginning.
    fn work(&self, status: &MirrorStatus) -> Option<MirrorEffect> {
        match status.state {
            MirrorState::LogAlignment => Some(MirrorEffect::AlignLog),
            MirrorState::EpochFencing => Some(MirrorEffect::RaiseLeaderEpoch),
            MirrorState::UleRecovery => Some(MirrorEffect::AwaitAllReplicas),
            MirrorState::Mirroring => Some(MirrorEffect::StartFetcher),
            MirrorState::Pausing => Some(MirrorEffect::RemoveFetcher),
            MirrorState::Stopping => Some(MirrorEffect::RunStopSequence),
            MirrorState::Failed if status.failed_attempts.may_retry(self.max_attempts) => Some(MirrorEffect::ScheduleRetry),
            MirrorState::Paused | MirrorState::Stopped | MirrorState::Failed => None,
        }
    }

    /// Whether some event leads from one state to another, or it is the same.
    #[must_use]
    pub fn may_become(&self, from: MirrorState, to: MirrorState) -> bool {
        from == to || to == MirrorState::Failed || MirrorEvent::ALL.into_iter().any(|event| self.target(from, event) == Some(to))
    }
}
