//! A scenario: a design on a topology within bounds, as a stateright model.
//!
//! It is an [`ActorModel`] with three things added: crashes are counted in total and leave a canonical state; the effects of each step
//! are drained from the actors into the history; and messages that only move their receiver along are delivered at once (RED-1).

use std::sync::Arc;

use stateright::actor::{ActorModel, ActorModelAction, ActorModelState, Envelope, Id, Network};
use stateright::util::HashableHashMap;
use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::client::{Producer, ProducerConfig, ProducerKind};
use crate::design::Design;
use crate::effect::Effect;
use crate::ids::Cluster;
use crate::message::Msg;
use crate::mirror::MirrorState;
use crate::node::{Directory, Node, NodeState, Role, Timer};
use crate::property::{self, PropertySpec, WitnessSpec};
use crate::replica::{Replica, ReplicaConfig};
use crate::topology::Topology;
use crate::truth::{Anomalies, Writer};

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
    /// The scenario with all properties, reduced.
    #[must_use]
    pub fn new(design: Design, topology: &'static Topology, bounds: Bounds) -> Self {
        Self::with_reduction(design, topology, bounds, Reduction::Urgent)
    }

    /// The scenario with all properties.
    #[must_use]
    pub fn with_reduction(design: Design, topology: &'static Topology, bounds: Bounds, reduction: Reduction) -> Self {
        let producers = producers(topology, &bounds);
        let clusters = topology.clusters;
        let mut directory = Directory { operator: 2 * clusters.len(), ..Directory::default() };
        for (i, (cluster, _)) in clusters.iter().enumerate() {
            if let (Some(r), Some(c)) =
                (directory.replicas.get_mut(cluster.index()), directory.coordinators.get_mut(cluster.index()))
            {
                *r = Some(i);
                *c = Some(clusters.len() + i);
            }
        }
        let directory = Arc::new(directory);
        let node = |role| Node { role, directory: Arc::clone(&directory) };
        let replicas = clusters.iter().map(|(cluster, mirrors)| {
            node(Role::Replica(Box::new(ReplicaConfig { design, cluster: *cluster, mirrors: *mirrors })))
        });
        let coordinators = clusters.iter().map(|(cluster, _)| node(Role::Coordinator(*cluster)));
        let script = topology.script.iter().take(usize::from(bounds.commands)).copied().collect();
        let operator = node(Role::Operator(script));
        let clients = producers.iter().map(|config| node(Role::Producer { config: *config, aborts: bounds.aborts > 0 }));
        let inner = ActorModel::new((), History::default())
            .actors(replicas)
            .actors(coordinators)
            .actor(operator)
            .actors(clients)
            .init_network(Network::UnorderedNonDuplicating(HashableHashMap::default()))
            .max_crashes(clusters.len());
        Self {
            design,
            topology,
            bounds,
            reduction,
            producers,
            directory,
            inner,
            focus: None,
            keep_going: false,
            properties: property::PROPERTIES.iter().collect(),
        }
    }

    /// The replicas in order of cluster.
    pub fn replicas<'s>(&self, state: &'s State) -> impl Iterator<Item = (Cluster, &'s Replica)> + use<'s, '_> {
        self.topology.clusters.iter().zip(&state.actor_states).filter_map(|((cluster, _), s)| match &**s {
            NodeState::Replica(replica) => Some((*cluster, &**replica)),
            _ => None,
        })
    }

    /// The replicas that the properties look at.
    pub fn judged<'s>(&self, state: &'s State) -> impl Iterator<Item = (Cluster, &'s Replica)> + use<'s, '_> {
        self.replicas(state).filter(|(cluster, _)| self.focus.is_none_or(|f| f == *cluster))
    }

    /// The producer with this number.
    #[must_use]
    pub fn producer<'s>(&self, state: &'s State, writer: Writer) -> Option<&'s Producer> {
        match &**state.actor_states.get(self.directory.operator + 1 + usize::from(writer.0))? {
            NodeState::Producer(producer) => Some(producer),
            _ => None,
        }
    }

    /// The name of a real producer in stories: its cluster's letter in lower case and a number.
    #[must_use]
    pub fn writer_name(&self, writer: Writer) -> String {
        let Some(config) = self.producers.get(usize::from(writer.0)) else { return "?".to_owned() };
        let earlier = self.producers.iter().take(usize::from(writer.0)).filter(|p| p.cluster == config.cluster).count();
        format!("{}{}", config.cluster.name().to_lowercase(), earlier + 1)
    }

    /// Takes one action and tells every part of it.
    #[must_use]
    pub fn explain(&self, state: &State, action: &Action) -> Option<(Vec<MicroStep>, State)> {
        let mut steps = Vec::new();
        let next = self.macro_step(state, action, Some(&mut steps))?;
        Some((steps, next))
    }

    fn macro_step(&self, state: &State, action: &Action, mut steps: Option<&mut Vec<MicroStep>>) -> Option<State> {
        let mut next = self.micro_step(state, action, &mut steps)?;
        if self.reduction == Reduction::Urgent {
            self.close(&mut next, &mut steps);
        }
        Some(next)
    }

    /// Takes urgent steps until there is none. Each consumes a message or a crash, so this ends.
    fn close(&self, state: &mut State, steps: &mut Option<&mut Vec<MicroStep>>) {
        while let Some(action) = self.urgent(state) {
            match self.micro_step(state, &action, steps) {
                Some(next) => *state = next,
                None => return,
            }
        }
    }

    fn urgent(&self, state: &State) -> Option<Action> {
        if let Some(crashed) = state.crashed.iter().position(|c| *c) {
            return Some(ActorModelAction::Recover(Id::from(crashed)));
        }
        // With one producer left to ask, the order of handing out ids is settled (RED-2).
        let asking = |at: Id| state.network.iter_deliverable().filter(|e| e.dst == at && *e.msg == Msg::InitProducerId).count();
        let urgent = |e: &Envelope<&Msg>| e.msg.is_urgent() || (*e.msg == Msg::InitProducerId && asking(e.dst) == 1);
        let envelope = state.network.iter_deliverable().filter(urgent).min()?;
        Some(ActorModelAction::Deliver { src: envelope.src, dst: envelope.dst, msg: *envelope.msg })
    }

    fn micro_step(&self, state: &State, action: &Action, steps: &mut Option<&mut Vec<MicroStep>>) -> Option<State> {
        let mut next = self.inner.next_state(state, action.clone())?;
        let actor = actor_of(action);
        if matches!(action, ActorModelAction::Crash(_)) {
            self.canonical_crash(&mut next, actor);
        }
        let effects = self.drain_journal(&mut next, actor);
        for effect in &effects {
            if let (Effect::Anomaly(anomaly), Some((cluster, _))) = (effect, self.topology.clusters.get(actor)) {
                next.history.anomalies.insert(*anomaly, *cluster);
            }
        }
        self.close_dead_connection(&mut next, actor);
        if let Some(steps) = steps {
            steps.push(MicroStep { action: action.clone(), actor, effects });
        }
        Some(next)
    }

    /// A crashed replica is nothing but its durable state, so that equal crashes are equal states.
    fn canonical_crash(&self, state: &mut State, actor: usize) {
        state.history.crashes = state.history.crashes.saturating_add(1);
        let Some(Role::Replica(config)) = self.inner.actors.get(actor).map(|n| &n.role) else { return };
        let Some(durable) = state.actor_storages.get(actor).and_then(Option::as_ref) else { return };
        let crashed = config.crashed(&durable.0);
        if let Some(slot) = state.actor_states.get_mut(actor) {
            *slot = Arc::new(NodeState::Replica(Box::new(crashed)));
        }
    }

    fn drain_journal(&self, state: &mut State, actor: usize) -> Vec<Effect> {
        match state.actor_states.get_mut(actor) {
            Some(slot) => match &**slot {
                NodeState::Replica(replica) if !replica.journal.is_empty() => match Arc::make_mut(slot) {
                    NodeState::Replica(replica) => std::mem::take(&mut replica.journal),
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            },
            None => Vec::new(),
        }
    }

    /// A fetcher that has gone takes its requests and the answers to them along.
    fn close_dead_connection(&self, state: &mut State, actor: usize) {
        let fetching = match state.actor_states.get(actor).map(|s| &**s) {
            Some(NodeState::Replica(r)) => r.up && r.durable.mirror.state == MirrorState::Mirroring,
            _ => return,
        };
        if fetching {
            return;
        }
        let up = !state.crashed.get(actor).copied().unwrap_or(false);
        let id = Id::from(actor);
        let belongs = |e: &Envelope<Msg>| {
            let fetch = e.msg.is_fetch() && if matches!(e.msg, Msg::Fetch(_)) { e.src == id } else { e.dst == id };
            let asked =
                matches!(e.msg, Msg::DescribeMirror) && e.src == id || matches!(e.msg, Msg::LastMirroredOffsetIs(_)) && e.dst == id;
            fetch || (asked && !up)
        };
        if let Network::UnorderedNonDuplicating(messages) = &mut state.network {
            messages.retain(|e, _| !belongs(e));
        }
    }

    fn may_take(&self, state: &State, action: &Action) -> bool {
        match action {
            ActorModelAction::Crash(id) => {
                let is_replica = usize::from(*id) < self.topology.clusters.len();
                is_replica && state.history.crashes < self.bounds.crashes
            }
            _ => true,
        }
    }

    /// The witnesses that this scenario must reach, so that a model in which nothing happens cannot pass.
    pub fn witnesses(&self) -> impl Iterator<Item = &'static WitnessSpec> + '_ {
        property::WITNESSES.iter().filter(|w| (w.applies)(self))
    }
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

fn producers(topology: &Topology, bounds: &Bounds) -> Vec<ProducerConfig> {
    let kinds = [
        (ProducerKind::Plain, bounds.plain, bounds.batches),
        (ProducerKind::Idempotent, bounds.idempotent, bounds.batches),
        (ProducerKind::Transactional, bounds.transactional, bounds.transactions),
    ];
    let mut producers = Vec::new();
    for cluster in topology.writable_clusters() {
        for (kind, count, quota) in kinds {
            for _ in 0..count {
                let writer = Writer(u8::try_from(producers.len()).unwrap_or(u8::MAX));
                producers.push(ProducerConfig { writer, cluster, kind, quota });
            }
        }
    }
    producers
}

impl Model for Scenario {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut states = self.inner.init_states();
        if self.reduction == Reduction::Urgent {
            states.iter_mut().for_each(|s| self.close(s, &mut None));
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.inner.actions(state, actions);
        actions.retain(|a| self.may_take(state, a));
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
