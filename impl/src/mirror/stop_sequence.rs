//! The stop sequence as a pure machine: which step comes next, what it waits for, what a failure does (STOP-1).
//!
//! [`StopSequence::command`] says what to do; the caller does it and tells what came of it. The sequence is not durable: a
//! leader that starts again, or another leader, begins a new one at the first step (MIR-5).

use super::design::{Acknowledgement, StepFailure, StopRules, StopStep};
use crate::types::Offset;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopCommand {
    /// Carry out this step, then tell [`StopSequence::done`] or [`StopSequence::failed`].
    Run(StopStep),
    /// Carry out this step again after a while.
    RunLater(StopStep),
    /// Wait until the high watermark is at this offset or above, then tell [`StopSequence::high_watermark`].
    AwaitHighWatermark(Offset),
    /// Nothing: a step has failed, and the design has no answer. The mirror stays in STOPPING.
    Halted,
    /// Nothing: the sequence has come to its end.
    Done,
}

/// How far a stop sequence has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopSequence {
    rules: StopRules,
    /// Index of the step that is next or under way.
    next: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    AtStep,
    Waiting(Offset),
    Retrying,
    Halted,
}

impl StopSequence {
    /// Begins with the first step.
    #[must_use]
    pub fn new(rules: StopRules) -> Self {
        Self { rules, next: 0, place: Place::AtStep }
    }

    /// What to do next.
    #[must_use]
    pub fn command(&self) -> StopCommand {
        let Some(step) = self.rules.order.get(self.next).copied() else { return StopCommand::Done };
        match self.place {
            Place::AtStep => StopCommand::Run(step),
            Place::Retrying => StopCommand::RunLater(step),
            Place::Waiting(offset) => StopCommand::AwaitHighWatermark(offset),
            Place::Halted => StopCommand::Halted,
        }
    }

    /// The step is done; `appended` is the offset behind what it appended, if it did.
    pub fn done(&mut self, appended: Option<Offset>) {
        if !matches!(self.place, Place::AtStep | Place::Retrying) {
            return;
        }
        match (appended, self.rules.acknowledgement) {
            (Some(end), Acknowledgement::InSyncReplicas) => self.place = Place::Waiting(end),
            _ => self.advance(),
        }
    }

    /// The step failed.
    pub fn failed(&mut self) {
        let Some(step) = self.rules.order.get(self.next) else { return };
        let answer = match step {
            StopStep::AbortOpenTransactions => self.rules.abort_failure,
            _ => self.rules.step_failure,
        };
        match answer {
            StepFailure::Ignore => self.advance(),
            StepFailure::Halt => self.place = Place::Halted,
            StepFailure::Retry => self.place = Place::Retrying,
        }
    }

    /// The high watermark has moved.
    pub fn high_watermark(&mut self, high_watermark: Offset) {
        if matches!(self.place, Place::Waiting(end) if high_watermark >= end) {
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.next = self.next.saturating_add(1);
        self.place = Place::AtStep;
    }
}
