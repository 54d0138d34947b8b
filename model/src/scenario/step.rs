//! How a step is taken: one action, the ground truth's judgement of it, and whatever follows at once.

use stateright::Model as _;
use stateright::actor::{ActorModelAction, Envelope, Id};

use super::actions::{actor_of, count};
use super::{Action, MicroStep, Reduction, Scenario, State, replica_of};
use crate::effect::{Effect, TruncateWhy};
use crate::ids::Broker;
use crate::message::Msg;
use crate::mirror::MirrorState;
use crate::replica::Replica;

impl Scenario {
    /// Takes one action and tells every part of it.
    #[must_use]
    pub fn explain(&self, state: &State, action: &Action) -> Option<(Vec<MicroStep>, State)> {
        let mut steps = Vec::new();
        let next = self.macro_step(state, action, Some(&mut steps))?;
        Some((steps, next))
    }

    pub(super) fn macro_step(&self, state: &State, action: &Action, mut steps: Option<&mut Vec<MicroStep>>) -> Option<State> {
        let mut next = self.micro_step(state, action, &mut steps)?;
        self.close(&mut next, &mut steps);
        self.forget_unread_source(&mut next);
        Some(next)
    }

    /// Takes urgent steps until there is none. Each consumes a message or a crash, so this ends.
    pub(super) fn close(&self, state: &mut State, steps: &mut Option<&mut Vec<MicroStep>>) {
        while let Some(action) = self.urgent(state) {
            match self.micro_step(state, &action, steps) {
                Some(next) => *state = next,
                None => return,
            }
        }
    }

    /// The next step that follows at once: in every search the talk with the controllers, in the reduced one whatever commutes.
    fn urgent(&self, state: &State) -> Option<Action> {
        let reduced = self.reduction == Reduction::Urgent;
        if let Some(crashed) = state.crashed.iter().position(|c| *c).filter(|_| reduced) {
            return Some(ActorModelAction::Recover(Id::from(crashed)));
        }
        // With one producer left to ask, the order of handing out ids is settled (RED-2).
        let asking = |at: Id| state.network.iter_deliverable().filter(|e| e.dst == at && *e.msg == Msg::InitProducerId).count();
        let urgent = |e: &Envelope<&Msg>| {
            e.msg.is_metadata() || (reduced && (e.msg.is_urgent() || (*e.msg == Msg::InitProducerId && asking(e.dst) == 1)))
        };
        let up = |e: &Envelope<&Msg>| !state.crashed.get(usize::from(e.dst)).copied().unwrap_or(false);
        // Metadata first: it says who leads before anyone acts on it.
        let envelope =
            state.network.iter_deliverable().filter(|e| up(e) && urgent(e)).min_by_key(|e| (!e.msg.is_metadata(), *e))?;
        Some(ActorModelAction::Deliver { src: envelope.src, dst: envelope.dst, msg: envelope.msg.clone() })
    }

    fn micro_step(&self, state: &State, action: &Action, steps: &mut Option<&mut Vec<MicroStep>>) -> Option<State> {
        let mut next = self.inner.next_state(state, action.clone())?;
        let actor = actor_of(action);
        count(&mut next.history, action);
        if matches!(action, ActorModelAction::Crash(_)) {
            self.canonical_crash(&mut next, actor);
        }
        let effects = self.drain_journal(&mut next, actor);
        if let Some(broker) = self.directory.broker(actor) {
            for effect in &effects {
                if let Some(anomaly) = self.anomaly(state, effect, broker) {
                    next.history.anomalies.insert(anomaly, broker.cluster);
                }
            }
            self.redirect_waiting(state, &mut next, actor);
            if effects.iter().any(|e| matches!(e, Effect::MirrorState { to: MirrorState::LogAlignment, source: Some(_) })) {
                self.close_connections(&mut next, broker.cluster);
            }
        }
        self.tidy_network(&mut next);
        if let Some(steps) = steps {
            steps.push(MicroStep { action: action.clone(), actor, effects });
        }
        Some(next)
    }

    /// Whether an effect is a wrong event. A refusal is wrong only if the batch is an honest producer's newest and lies nowhere yet.
    #[must_use]
    pub fn anomaly(&self, before: &State, effect: &Effect, broker: Broker) -> Option<crate::truth::Anomaly> {
        match effect {
            Effect::Anomaly(anomaly) => Some(*anomaly),
            Effect::Suspect { anomaly, batch } => {
                let newest = crate::truth::writer_and_serial(&batch.author)
                    .is_none_or(|(writer, serial)| self.producer(before, writer).is_some_and(|p| p.waits_for(serial)));
                let in_log = |r: &Replica| r.durable.log.iter().any(|b| crate::truth::is_same_batch(b, batch));
                let lies = self.replicas(before).any(|(b, r)| b.cluster == broker.cluster && in_log(r));
                (newest && !lies).then_some(*anomaly)
            }
            Effect::Truncate { to, why: TruncateWhy::Alignment } => {
                let replica = self.directory.replica(broker).and_then(|actor| replica_of(before, actor))?;
                let source = self.leader(before, replica.mirror.source?)?.1;
                // Only a failback promises to keep what the two have in common: the source was a mirror of this cluster.
                if source.mirror.source != Some(broker.cluster) {
                    return None;
                }
                let pairs = replica.durable.log.iter().zip(&source.durable.log).skip(to.index());
                let shared = pairs.into_iter().any(|(a, b)| crate::truth::is_same_data(a, b));
                shared.then_some(crate::truth::Anomaly::ThrewAwayShared)
            }
            _ => None,
        }
    }
}
