//! How a scenario is searched: its states are taken apart, since a step changes one or two actors and most of the others' states are known.

use std::sync::Arc;

use ahash::RandomState;
use stateright::actor::{ActorModelAction, Envelope, Network, RandomChoices, Timers};
use stateright::util::HashableHashMap;

use super::{Action, History, Scenario, State, is_fair};
use crate::message::Msg;
use crate::node::{NodeState, Saved, Timer};
use crate::search::{Explorable, Goal, Intern, Store, fixed_hasher};

/// What is neither an actor's own state nor a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rest {
    timers_set: Vec<Timers<Timer>>,
    crashed: Vec<bool>,
    history: History,
}

/// The parts of states, each held once.
///
/// A state's storages are not kept: each replica's state holds the same log as its storage (see [`Saved`]). There are no random choices.
#[derive(Debug)]
pub struct Parts {
    hasher: RandomState,
    actors: Intern<Arc<NodeState>>,
    messages: Intern<Envelope<Msg>>,
    rests: Intern<Rest>,
    random_choices: Vec<RandomChoices<()>>,
}

/// A state by the numbers of its parts.
#[derive(Debug)]
pub struct Packed {
    /// The actors' states, then each message as often as it is on its way.
    parts: Box<[u32]>,
    actors: u8,
    rest: u32,
}

impl Packed {
    fn actors(&self) -> &[u32] {
        self.parts.get(..usize::from(self.actors)).unwrap_or_default()
    }

    fn messages(&self) -> &[u32] {
        self.parts.get(usize::from(self.actors)..).unwrap_or_default()
    }
}

/// The hashes of a state's parts, and the numbers of those that are known.
#[derive(Debug)]
pub struct Digest {
    actors: Vec<(u64, Option<u32>)>,
    /// In the order in which the network tells its messages.
    messages: Vec<u64>,
    rest: u64,
}

impl Parts {
    fn new(actors: usize) -> Self {
        Self {
            hasher: fixed_hasher(),
            actors: Intern::default(),
            messages: Intern::default(),
            rests: Intern::default(),
            random_choices: vec![RandomChoices::default(); actors],
        }
    }

    fn unpack(&self, packed: &Packed) -> Option<State> {
        let rest = self.rests.get(packed.rest)?;
        let actor_states: Vec<_> = packed.actors().iter().map(|id| self.actors.get(*id).cloned()).collect::<Option<_>>()?;
        let saved = |actor: &Arc<NodeState>| match &**actor {
            NodeState::Replica(replica) => Some(Saved(Arc::clone(&replica.durable))),
            _ => None,
        };
        let mut messages = HashableHashMap::with_capacity(packed.messages().len() + 2);
        for id in packed.messages() {
            *messages.entry(self.messages.get(*id)?.clone()).or_insert(0) += 1;
        }
        Some(State {
            actor_storages: actor_states.iter().map(saved).collect(),
            actor_states,
            network: Network::UnorderedNonDuplicating(messages),
            timers_set: rest.timers_set.clone(),
            random_choices: self.random_choices.clone(),
            crashed: rest.crashed.clone(),
            history: rest.history,
        })
    }
}

fn messages(state: &State) -> impl Iterator<Item = (&Envelope<Msg>, usize)> {
    let messages = match &state.network {
        Network::UnorderedNonDuplicating(messages) => Some(messages),
        _ => None,
    };
    messages.into_iter().flat_map(|m| m.iter().map(|(e, count)| (e, *count)))
}

impl Store<State> for Parts {
    type Packed = Packed;
    type Digest = Digest;

    fn digest(&self, state: &State, from: Option<(&Packed, &State)>) -> (u64, Digest) {
        let unchanged = |at: usize, actor: &Arc<NodeState>| {
            let (packed, before) = from?;
            before.actor_states.get(at).filter(|b| Arc::ptr_eq(b, actor)).and_then(|_| packed.actors().get(at).copied())
        };
        let digest_of = |(at, actor): (usize, &Arc<NodeState>)| match unchanged(at, actor) {
            Some(id) => (self.actors.hash(id), Some(id)),
            None => (self.hasher.hash_one(actor), None),
        };
        let actors: Vec<_> = state.actor_states.iter().enumerate().map(digest_of).collect();
        let hashes: Vec<_> = messages(state).map(|(envelope, count)| (self.hasher.hash_one(envelope), count)).collect();
        // A sum, since messages have no order.
        let network = hashes.iter().fold(0_u64, |sum, (hash, count)| sum.wrapping_add(hash.wrapping_mul(*count as u64)));
        let rest = self.hasher.hash_one((&state.timers_set, &state.crashed, &state.history));
        let all: Vec<u64> = actors.iter().map(|(hash, _)| *hash).chain([network, rest]).collect();
        (self.hasher.hash_one(&all), Digest { actors, messages: hashes.into_iter().map(|(hash, _)| hash).collect(), rest })
    }

    fn pack(&mut self, state: State, digest: &Digest) -> Option<Packed> {
        let sent = messages(&state).map(|(_, count)| count).sum::<usize>();
        let mut parts = Vec::with_capacity(state.actor_states.len() + sent);
        for (actor, (hash, known)) in state.actor_states.iter().zip(&digest.actors) {
            parts.push(match known {
                Some(id) => *id,
                None => self.actors.intern(*hash, actor, Arc::clone)?,
            });
        }
        for ((envelope, count), hash) in messages(&state).zip(&digest.messages) {
            let id = self.messages.intern(*hash, envelope, Clone::clone)?;
            parts.extend(std::iter::repeat_n(id, count));
        }
        let rest = Rest { timers_set: state.timers_set, crashed: state.crashed, history: state.history };
        let rest = self.rests.intern(digest.rest, &rest, Clone::clone)?;
        Some(Packed { parts: parts.into(), actors: u8::try_from(state.actor_states.len()).ok()?, rest })
    }

    fn with<R>(&self, packed: &Packed, then: impl FnOnce(&State) -> R) -> Option<R> {
        self.unpack(packed).map(|state| then(&state))
    }

    fn bytes(&self) -> usize {
        // What a replica points to is its log and what was derived from it: some hundred bytes.
        self.actors.bytes() + self.actors.len() * (size_of::<NodeState>() + 600) + self.messages.bytes() + self.rests.bytes()
    }
}

impl Explorable for Scenario {
    type Store = Parts;

    fn store(&self) -> Parts {
        Parts::new(self.inner.actors.len())
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        self.properties.iter().filter_map(|p| Some(Goal { name: p.id, condition: p.goal? })).collect()
    }

    fn fair(&self, action: &Action) -> Option<u64> {
        is_fair(action).then(|| fixed_hasher().hash_one(action))
    }

    fn kind(&self, action: &Action) -> &'static str {
        match action {
            ActorModelAction::Deliver { msg, .. } => msg.kind(),
            ActorModelAction::Timeout(_, timer) => timer.kind(),
            ActorModelAction::Crash(_) => "Crash",
            ActorModelAction::Recover(_) => "Recover",
            ActorModelAction::Drop(_) => "Drop",
            ActorModelAction::SelectRandom { .. } => "SelectRandom",
        }
    }
}
