//! What may be done, what must be done, and what is counted.

use stateright::actor::{ActorModelAction, Id};

use super::{Action, History, Reduction, Scenario, State, replica_of};
use crate::message::{FetchRequest, FetchResponse, Msg};
use crate::node::{NodeState, Role, Timer};
use crate::replica::Ask;
use crate::source::{Source, SourceConfig};

impl Scenario {
    pub(super) fn may_take(&self, state: &State, action: &Action) -> bool {
        let (bounds, history) = (&self.bounds, &state.history);
        match action {
            ActorModelAction::Crash(id) => self.is_replica(usize::from(*id)) && history.crashes < bounds.crashes,
            ActorModelAction::Timeout(id, timer) => match timer {
                Timer::NextStep => match self.inner.actors.get(usize::from(*id)).map(|n| &n.role) {
                    Some(Role::Replica(config)) => replica_of(state, usize::from(*id)).is_some_and(|r| config.step_is_ready(r)),
                    _ => false,
                },
                Timer::EndTransaction { .. } | Timer::Source(_) => true,
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

    /// Whether what happens to a source now can be seen at all (RED-3): someone reads it, and has read all that there is. What happens
    /// before a reader fetches the next batch happens as well behind it.
    fn can_be_seen(&self, state: &State, actor: usize, config: &SourceConfig, source: &Source) -> bool {
        let here = state.network.iter_deliverable().filter(|e| usize::from(e.dst) == actor);
        let requests: Vec<_> = here.filter_map(|e| if let Msg::Fetch(request) = e.msg { Some(request) } else { None }).collect();
        let batches = |asks: Vec<Ask>| asks.iter().any(|ask| matches!(ask, Ask::Respond(FetchResponse::Batches { .. })));
        let behind = |request: &&FetchRequest| config.replica.serve_mirror(&source.replica, request).is_some_and(batches);
        !requests.is_empty() && (self.bounds.bulk > 0 || !requests.iter().any(behind))
    }

    fn is_replica(&self, actor: usize) -> bool {
        self.inner.actors.get(actor).is_some_and(|n| matches!(n.role, Role::Replica(_)))
    }

    /// What may happen to the log of an arbitrary source. It is no timer that someone sets: it depends on the log alone.
    pub(super) fn source_actions(&self, state: &State) -> Vec<Action> {
        let nodes = self.inner.actors.iter().zip(&state.actor_states).enumerate();
        let source = nodes.filter_map(|(actor, (node, state))| match (&node.role, &**state) {
            (Role::Source(config), NodeState::Source(source)) => Some((actor, config, source)),
            _ => None,
        });
        source
            .filter(|(actor, config, source)| self.reduction == Reduction::None || self.can_be_seen(state, *actor, config, source))
            .flat_map(|(actor, config, source)| {
                let possible = config.acts(source).into_iter().filter(|act| config.apply(source, *act).is_some());
                possible.map(move |act| ActorModelAction::Timeout(Id::from(actor), Timer::Source(act)))
            })
            .collect()
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
            Timer::NextStep | Timer::EndTransaction { .. } | Timer::Source(_) => return,
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
