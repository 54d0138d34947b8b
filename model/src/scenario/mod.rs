//! A scenario: a design on a topology within bounds, as a stateright model.
//!
//! It is an [`ActorModel`] with three things added: crashes are counted in total and leave a canonical state; the effects of each step
//! are drained from the actors into the history; and messages that only move their receiver along are delivered at once (RED-1).
//!
//! `build` makes it, `step` takes a step, `housekeeping` keeps the network and the actors in a canonical form, `actions` says what may be
//! done, `explore` how its states are kept in a search.

mod actions;
mod build;
mod explore;
mod housekeeping;
mod step;

use std::sync::Arc;

use stateright::actor::{ActorModel, ActorModelAction, ActorModelState};
use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::client::{Producer, ProducerConfig};
use crate::controller::Controller;
use crate::design::Design;
use crate::effect::Effect;
use crate::ids::{Broker, Cluster};
use crate::message::Msg;
use crate::node::{Directory, Node, NodeState, Role, Timer};
use crate::property::{self, PropertySpec, WitnessSpec};
use crate::replica::Replica;
use crate::topology::Topology;
use crate::truth::{Anomalies, Writer};

pub use actions::{actor_of, is_fair};
pub use explore::{Digest, Packed, Parts};

/// A state of a scenario.
pub type State = ActorModelState<Node, History>;
/// An action of a scenario.
pub type Action = ActorModelAction<Msg, Timer, ()>;

/// What has happened that no actor knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct History {
    /// Wrong events so far.
    pub anomalies: Anomalies,
    /// Crashes so far.
    pub crashes: u8,
    /// Elections of an in-sync follower so far.
    pub elections: u8,
    /// Elections of a replica that was not in sync so far.
    pub unclean: u8,
    /// Segment rolls so far.
    pub rolls: u8,
    /// Clean restarts so far.
    pub restarts: u8,
    /// Batches and markers sent again so far.
    pub retries: u8,
    /// Batches given up so far.
    pub bumps: u8,
}

/// Whether steps that commute with all others are taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Every interleaving.
    None,
    /// Urgent messages and recoveries follow at once (RED-1).
    Urgent,
}

/// A part of a step: one action of one actor, and what it did to a log.
#[derive(Clone, Debug)]
pub struct MicroStep {
    /// The action.
    pub action: Action,
    /// The actor that acted.
    pub actor: usize,
    /// The effects on its log, if it is a replica.
    pub effects: Vec<Effect>,
}

/// A design on a topology within bounds.
pub struct Scenario {
    /// The rules.
    pub design: Design,
    /// Who mirrors whom.
    pub topology: &'static Topology,
    /// How much happens.
    pub bounds: Bounds,
    /// Which steps are merged.
    pub reduction: Reduction,
    /// The real producers, by their number.
    pub producers: Vec<ProducerConfig>,
    /// Where the actors are.
    pub directory: Arc<Directory>,
    inner: ActorModel<Node, (), History>,
    /// The only cluster whose replica the properties look at; none for all.
    pub focus: Option<Cluster>,
    /// Adds a witness that no state shows, for checkers that stop when all properties have a discovery.
    pub keep_going: bool,
    /// The properties that are checked.
    pub properties: Vec<&'static PropertySpec>,
}

impl Scenario {
    /// The replicas, the first broker of each cluster before the second ones.
    pub fn replicas<'s>(&self, state: &'s State) -> impl Iterator<Item = (Broker, &'s Replica)> + use<'s, '_> {
        self.directory.brokers.iter().zip(&state.actor_states).filter_map(|(broker, s)| Some((*broker, s.replica()?)))
    }

    /// The controller of a cluster.
    #[must_use]
    pub fn controller<'s>(&self, state: &'s State, cluster: Cluster) -> Option<&'s Controller> {
        let actor = self.directory.controllers.get(cluster.index()).copied().flatten()?;
        match &**state.actor_states.get(actor)? {
            NodeState::Controller(controller) => Some(controller),
            _ => None,
        }
    }

    /// The replica that leads a cluster's partition.
    #[must_use]
    pub fn leader<'s>(&self, state: &'s State, cluster: Cluster) -> Option<(Broker, &'s Replica)> {
        let number = self.controller(state, cluster)?.leader;
        self.replicas(state).find(|(b, _)| b.cluster == cluster && b.number == number)
    }

    /// The replicas that lead their clusters' partitions, in order of cluster.
    pub fn leaders<'s>(&'s self, state: &'s State) -> impl Iterator<Item = (Broker, &'s Replica)> {
        self.topology.clusters.iter().filter_map(|(cluster, _)| self.leader(state, *cluster))
    }

    /// The replicas that the properties look at.
    pub fn judged<'s>(&self, state: &'s State) -> impl Iterator<Item = (Broker, &'s Replica)> + use<'s, '_> {
        self.replicas(state).filter(|(broker, _)| self.is_judged(*broker))
    }

    /// Whether the properties look at this replica. Of an arbitrary source everything is assumed and nothing is proved.
    #[must_use]
    pub fn is_judged(&self, broker: Broker) -> bool {
        self.topology.environment != Some(broker.cluster) && self.focus.is_none_or(|f| f == broker.cluster)
    }

    /// Whether a step can be taken that must come at some time, unless it is prevented: the delivery of a message, a step of a sequence, the
    /// end of a transaction; not a crash, an election, a resend, or what else may just as well never happen (LIVE-3).
    #[must_use]
    pub fn has_fair_step(&self, state: &State) -> bool {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        let changes = |a: Action| self.macro_step(state, &a, None).is_some_and(|next| next != *state);
        actions.into_iter().filter(is_fair).any(changes)
    }

    /// The producer with this number.
    #[must_use]
    pub fn producer<'s>(&self, state: &'s State, writer: Writer) -> Option<&'s Producer> {
        match &**state.actor_states.get(self.directory.operator + 1 + usize::from(writer.0))? {
            NodeState::Producer(producer) => Some(producer),
            _ => None,
        }
    }

    /// The real producers of an arbitrary source, if there is one, with its cluster.
    pub fn source_writers(&self) -> impl Iterator<Item = (Writer, Cluster)> + '_ {
        let sources = self.inner.actors.iter().filter_map(|node| match &node.role {
            Role::Source(config) => Some(config),
            _ => None,
        });
        sources.flat_map(|config| config.writers().map(|writer| (writer, config.replica.broker.cluster)))
    }

    /// The name of a real producer in stories: its cluster's letter in lower case and a number.
    #[must_use]
    pub fn writer_name(&self, writer: Writer) -> String {
        let number = usize::from(writer.0);
        let Some(config) = self.producers.get(number) else {
            // A real producer of an arbitrary source.
            return format!("s{}", number.saturating_sub(self.producers.len()) + 1);
        };
        let earlier = self.producers.iter().take(usize::from(writer.0)).filter(|p| p.cluster == config.cluster).count();
        format!("{}{}", config.cluster.name().to_lowercase(), earlier + 1)
    }

    /// The witnesses that this scenario must reach, so that a model in which nothing happens cannot pass.
    pub fn witnesses(&self) -> impl Iterator<Item = &'static WitnessSpec> + '_ {
        property::WITNESSES.iter().filter(|w| (w.applies)(self))
    }
}

fn replica_of(state: &State, actor: usize) -> Option<&Replica> {
    state.actor_states.get(actor)?.replica()
}

impl Model for Scenario {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut states = self.inner.init_states();
        for state in &mut states {
            self.tidy_network(state);
            self.close(state, &mut None);
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.inner.actions(state, actions);
        actions.retain(|a| self.may_take(state, a));
        actions.extend(self.source_actions(state));
        if self.reduction == Reduction::None {
            return;
        }
        // Ids are handed out first, one cluster after the other: only the order within a cluster can be seen (RED-2).
        let asks_id = |a: &Action| match a {
            ActorModelAction::Deliver { dst, msg: Msg::InitProducerId, .. } => Some(*dst),
            _ => None,
        };
        if let Some(coordinator) = actions.iter().filter_map(asks_id).min() {
            actions.retain(|a| asks_id(a) == Some(coordinator));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.macro_step(state, &action, None)
    }

    fn format_action(&self, action: &Action) -> String {
        crate::story::action_line(self, action)
    }

    fn format_step(&self, state: &State, action: Action) -> Option<String> {
        let (steps, next) = self.explain(state, &action)?;
        Some(format!("{}\n\n{}", crate::story::step_line(self, state, &steps, &next), crate::story::picture(self, &next)))
    }

    fn as_svg(&self, path: stateright::Path<State, Action>) -> Option<String> {
        Some(crate::story::svg(self, path.last_state()))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = self.properties.iter().map(|p| Property::always(p.id, p.condition));
        let sometimes = self.witnesses().map(|w| Property::sometimes(w.id, w.condition));
        let never = self.keep_going.then(|| Property::sometimes("never", |_, _| false));
        always.chain(sometimes).chain(never).collect()
    }
}
