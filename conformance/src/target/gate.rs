//! The gate of a mirror in front of a log that has none: which appends the mirror state allows.
//!
//! Stock Kafka has no mirror states. For an implementation that is only a log, they are kept here, by the rules of
//! [`cleanslate_log::mirror::Machine`], and the gate is that of [`cleanslate_log::mirror::MirrorPartition`].

use cleanslate_log::mirror::{Machine, MirrorDesign, MirrorEvent, MirrorState as State, MirrorStatus};

use super::in_process::log_state;
use crate::trace::format::{Batch, Control, MirrorState, Origin};

/// What Kafka would answer to a turn that no mirror takes, and to a mirror that appends without a fetcher.
pub(crate) const ILLEGAL_STATE: &str = "IllegalStateException";
/// What a client is told of a partition that is read-only.
pub(crate) const READ_ONLY: &str = "ReadOnlyTopicException";

/// The durable mirror state of a replica, and whether its fetcher runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    machine: Machine,
    state: State,
    /// The state that a failed mirror may return to.
    failed_from: Option<State>,
    fetching: bool,
}

impl Gate {
    /// The gate of a replica that mirrors from the start, or is writable.
    pub(super) fn new(design: &MirrorDesign, mirrors: bool) -> Self {
        let state = if mirrors { State::Mirroring } else { State::Stopped };
        Self { machine: Machine::from(design), state, failed_from: None, fetching: mirrors }
    }

    /// The state.
    pub(super) fn state(self) -> State {
        self.state
    }

    /// Whether the mirror's leader may append what it has fetched.
    pub(super) fn is_fetching(self) -> bool {
        self.fetching
    }

    /// Takes a turn; false if no mirror takes it. One with a source is a start.
    pub(super) fn turn(&mut self, to: MirrorState, source: Option<&str>) -> bool {
        let to = log_state(to);
        let starts = to == State::LogAlignment && source.is_some();
        let status = MirrorStatus { state: self.state, failed_from: self.failed_from, ..MirrorStatus::default() };
        let taken = if starts {
            self.machine.next(&status, MirrorEvent::Start).is_ok()
        } else {
            self.machine.may_become(self.state, to) || self.failed_from == Some(to)
        };
        if !taken {
            return false;
        }
        if to != self.state {
            self.failed_from = (to == State::Failed).then_some(self.state);
            self.state = to;
        }
        self.fetching = match to {
            State::Mirroring => true,
            State::Pausing => self.fetching,
            // Removing the fetcher is the first step of every stop sequence, and no operation of its own in a trace.
            _ => false,
        };
        true
    }

    /// Takes over the state that the cluster's metadata name, whatever it was before.
    pub(super) fn learn(&mut self, state: MirrorState) {
        self.state = log_state(state);
        self.failed_from = None;
        self.fetching = self.state.permissions().mirror_fetches;
    }

    /// The broker starts again: a mirror goes on fetching.
    pub(super) fn reopen(&mut self) {
        self.fetching = self.state.permissions().mirror_fetches;
    }

    /// Whether the leader may append a batch (MIR-11).
    pub(super) fn lets_pass(self, origin: Origin, batch: &Batch) -> bool {
        let by_a_stop = matches!(batch.control, Some(Control::MirrorPidReset { .. } | Control::Abort { .. }));
        let allowed = self.state.permissions();
        allowed.appends || allowed.stop_appends && origin != Origin::Client && by_a_stop
    }
}
