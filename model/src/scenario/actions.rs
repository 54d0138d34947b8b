//! What may be done, what must be done, and what is counted.

use stateright::actor::ActorModelAction;

use super::{Action, History, Scenario, State, replica_of};
use crate::node::{Role, Timer};

impl Scenario {
    pub(super) fn may_take(&self, state: &State, action: &Action) -> bool {
        let (bounds, history) = (&self.bounds, &state.history);
        match action {
            ActorModelAction::Crash(id) => self.directory.broker(usize::from(*id)).is_some() && history.crashes < bounds.crashes,
            ActorModelAction::Timeout(id, timer) => match timer {
                Timer::NextStep => match self.inner.actors.get(usize::from(*id)).map(|n| &n.role) {
                    Some(Role::Replica(config)) => replica_of(state, usize::from(*id)).is_some_and(|r| config.step_is_ready(r)),
                    _ => false,
                },
                Timer::EndTransaction { .. } => true,
                Timer::Retry => history.retries < bounds.retries,
                Timer::GiveUp => history.bumps < bounds.bumps,
                Timer::Roll => history.rolls < bounds.rolls,
                Timer::Restart => history.restarts < bounds.restarts,
                Timer::Elect { unclean: false } => history.elections < bounds.elections,
                Timer::Elect { unclean: true } => history.unclean < bounds.unclean,
            },
            _ => true,
        }
    }
}

/// Whether a step must come if it can be taken for ever (weak fairness, LIVE-3).
#[must_use]
pub const fn is_fair(action: &Action) -> bool {
    matches!(
        action,
        ActorModelAction::Deliver { .. }
            | ActorModelAction::Recover(_)
            | ActorModelAction::Timeout(_, Timer::NextStep | Timer::EndTransaction { .. })
    )
}

/// The actor that an action moves.
#[must_use]
pub fn actor_of(action: &Action) -> usize {
    usize::from(match action {
        ActorModelAction::Deliver { dst, .. } => *dst,
        ActorModelAction::Drop(envelope) => envelope.dst,
        ActorModelAction::Timeout(id, _) | ActorModelAction::Crash(id) | ActorModelAction::Recover(id) => *id,
        ActorModelAction::SelectRandom { actor, .. } => *actor,
    })
}

/// Counts what the bounds limit.
pub(super) fn count(history: &mut History, action: &Action) {
    let counter = match action {
        ActorModelAction::Crash(_) => &mut history.crashes,
        ActorModelAction::Timeout(_, timer) => match timer {
            Timer::NextStep | Timer::EndTransaction { .. } => return,
            Timer::Retry => &mut history.retries,
            Timer::GiveUp => &mut history.bumps,
            Timer::Roll => &mut history.rolls,
            Timer::Restart => &mut history.restarts,
            Timer::Elect { unclean: false } => &mut history.elections,
            Timer::Elect { unclean: true } => &mut history.unclean,
        },
        _ => return,
    };
    *counter = counter.saturating_add(1);
}
