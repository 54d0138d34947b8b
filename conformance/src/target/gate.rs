//! The gate of a mirror in front of a log that has none: which appends the mirror state allows.
//!
//! Stock Kafka has no mirror states. For an implementation that is only a log, they are kept here, by the rules of
//! [`cleanslate_log::mirror::MirrorPartition`].

use cleanslate_log::mirror::MirrorState as State;

use crate::trace::format::{Batch, Control, MirrorState, Origin};

/// What Kafka would answer to a turn that no mirror takes, and to a mirror that appends without a fetcher.
pub(super) const ILLEGAL_STATE: &str = "IllegalStateException";
/// What a client is told of a partition that is read-only.
pub(super) const READ_ONLY: &str = "ReadOnlyTopicException";

/// The durable mirror state of a replica, and whether its fetcher runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    state: State,
    /// The state that a failed mirror may return to.
    failed_from: Option<State>,
    fetching: bool,
}

impl Gate {
    /// The gate of a replica that mirrors from the start, or is writable.
    pub(super) fn new(mirrors: bool) -> Self {
        Self { state: if mirrors { State::Mirroring } else { State::Stopped }, failed_from: None, fetching: mirrors }
    }

    /// The state.
    pub(super) fn state(self) -> State {
        self.state
    }

    /// Whether the mirror's leader may append what it has fetched.
    pub(super) fn is_fetching(self) -> bool {
        self.fetching
    }

    /// Takes a turn; false if no mirror takes it.
    pub(super) fn turn(&mut self, to: MirrorState) -> bool {
        let to = log_state(to);
        if !self.state.may_become(to) && self.failed_from != Some(to) {
            return false;
        }
        if to != self.state {
            self.failed_from = (to == State::Failed).then_some(self.state);
            self.state = to;
        }
        // Removing the fetcher is the first step of every stop sequence, and no operation of its own in a trace.
        self.fetching = to == State::Mirroring;
        true
    }

    /// The broker starts again: a mirror goes on fetching.
    pub(super) fn reopen(&mut self) {
        self.fetching = self.state == State::Mirroring;
    }

    /// Whether the leader may append a batch: anything in STOPPED; in STOPPING what a stop sequence writes; else nothing.
    pub(super) fn lets_pass(self, origin: Origin, batch: &Batch) -> bool {
        let by_a_stop = matches!(batch.control, Some(Control::MirrorPidReset { .. } | Control::Abort { .. }));
        match self.state {
            State::Stopped => true,
            State::Stopping => origin != Origin::Client && by_a_stop,
            _ => false,
        }
    }
}

const fn log_state(state: MirrorState) -> State {
    match state {
        MirrorState::LogAlignment => State::LogAlignment,
        MirrorState::Mirroring => State::Mirroring,
        MirrorState::Paused => State::Paused,
        MirrorState::Stopping => State::Stopping,
        MirrorState::Stopped => State::Stopped,
        MirrorState::Failed => State::Failed,
    }
}
