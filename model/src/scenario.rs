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
use crate::controller::Controller;
use crate::design::{Design, UnansweredAtStart};
use crate::effect::{Effect, TruncateWhy};
use crate::ids::{Broker, Cluster};
use crate::message::{Msg, Request};
use crate::mirror::MirrorState;
use crate::node::{Chances, Directory, Node, NodeState, Role, Timer};
use crate::property::{self, PropertySpec, WitnessSpec};
use crate::replica::{Replica, ReplicaConfig};
use crate::search::Explorable;
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
    /// The scenario with all properties, reduced.
    #[must_use]
    pub fn new(design: Design, topology: &'static Topology, bounds: Bounds) -> Self {
        Self::with_reduction(design, topology, bounds, Reduction::Urgent)
    }

    /// The scenario with all properties.
    #[must_use]
    pub fn with_reduction(design: Design, topology: &'static Topology, bounds: Bounds, reduction: Reduction) -> Self {
        let producers = producers(topology, &bounds);
        let directory = Arc::new(directory(topology, &bounds));
        let chances = Chances {
            aborts: bounds.aborts > 0,
            retries: bounds.retries > 0,
            bumps: bounds.bumps > 0,
            rolls: bounds.rolls > 0,
            restarts: bounds.restarts > 0,
            elections: bounds.elections > 0,
            unclean: bounds.unclean > 0,
        };
        let node = |role| Node { role, directory: Arc::clone(&directory), chances };
        let mirrors = |cluster: Cluster| topology.clusters.iter().find(|(c, _)| *c == cluster).and_then(|(_, m)| *m);
        let has_peer = |cluster: Cluster| directory.replica(Broker { cluster, number: 1 }).is_some();
        let replicas = directory.brokers.iter().map(|broker| {
            let cluster = broker.cluster;
            let config = ReplicaConfig {
                design,
                broker: *broker,
                has_peer: has_peer(cluster),
                bulk: bounds.bulk > 0,
                mirrors: mirrors(cluster),
            };
            node(Role::Replica(Box::new(config)))
        });
        let own = topology.clusters.iter().filter(|(c, _)| topology.coordinator_of(*c) == *c);
        let coordinators = own.map(|(cluster, _)| node(Role::Coordinator(*cluster)));
        let controllers = topology.clusters.iter().map(|(cluster, mirrors)| {
            node(Role::Controller { cluster: *cluster, has_follower: has_peer(*cluster), mirrors: *mirrors, design })
        });
        let script = topology.script.iter().take(usize::from(bounds.commands)).copied().collect();
        let operator = node(Role::Operator(script));
        let clients = producers.iter().map(|config| node(Role::Producer(*config)));
        let inner = ActorModel::new((), History::default())
            .actors(replicas)
            .actors(coordinators)
            .actors(controllers)
            .actor(operator)
            .actors(clients)
            .init_network(Network::UnorderedNonDuplicating(HashableHashMap::default()))
            .max_crashes(directory.brokers.len());
        Self {
            design,
            topology,
            bounds,
            reduction,
            producers,
            directory: Arc::clone(&directory),
            inner,
            focus: None,
            keep_going: false,
            properties: property::PROPERTIES.iter().collect(),
        }
    }

    /// The replicas, the first broker of each cluster before the second ones.
    pub fn replicas<'s>(&self, state: &'s State) -> impl Iterator<Item = (Broker, &'s Replica)> + use<'s, '_> {
        self.directory.brokers.iter().zip(&state.actor_states).filter_map(|(broker, s)| match &**s {
            NodeState::Replica(replica) => Some((*broker, &**replica)),
            _ => None,
        })
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
        self.replicas(state).filter(|(broker, _)| self.focus.is_none_or(|f| f == broker.cluster))
    }

    /// Whether the properties look at this replica.
    #[must_use]
    pub fn is_judged(&self, broker: Broker) -> bool {
        self.focus.is_none_or(|f| f == broker.cluster)
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
        self.close(&mut next, &mut steps);
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

    /// A crashed replica is nothing but its durable state, so that equal crashes are equal states.
    fn canonical_crash(&self, state: &mut State, actor: usize) {
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

    /// What waited for an answer of a leader that is none any more is sent again by its client.
    fn redirect_waiting(&self, before: &State, after: &mut State, actor: usize) {
        let (Some(was), Some(is)) = (replica_of(before, actor), replica_of(after, actor)) else { return };
        if was.waiting.is_empty() || (is.up && is.role == was.role && is.role == crate::replica::Role::Leader) {
            return;
        }
        let Network::UnorderedNonDuplicating(messages) = &mut after.network else { return };
        for waiting in &was.waiting {
            let request = Request { resent: true, ..waiting.request };
            let (src, msg) = if waiting.marker {
                let cluster = self.directory.broker(actor).map(|b| self.topology.coordinator_of(b.cluster));
                let coordinator = cluster.and_then(|c| self.directory.coordinators.get(c.index()).copied().flatten());
                (coordinator.unwrap_or_default(), Msg::WriteMarker(request))
            } else {
                (usize::from(waiting.request.producer), Msg::Produce(request))
            };
            *messages.entry(Envelope { src: Id::from(src), dst: Id::from(actor), msg }).or_insert(0) += 1;
        }
    }

    /// A partition that becomes a mirror closes the connections of its clients: what is on its way dies, and its clients are told (ALI-4).
    fn close_connections(&self, state: &mut State, cluster: Cluster) {
        if self.design.unanswered_at_start == UnansweredAtStart::Kept {
            return;
        }
        let Network::UnorderedNonDuplicating(messages) = &mut state.network else { return };
        let here = |actor: Id| self.directory.broker(usize::from(actor)).is_some_and(|b| b.cluster == cluster);
        let requests = messages.keys().filter(|e| matches!(e.msg, Msg::Produce(_) | Msg::WriteMarker(_)) && here(e.dst));
        let dying: Vec<_> = requests.cloned().collect();
        for envelope in dying {
            messages.remove(&envelope);
            if let Msg::Produce(request) | Msg::WriteMarker(request) = envelope.msg {
                let (dst, msg) = (Id::from(usize::from(request.producer)), Msg::Lost { correlation: request.correlation });
                messages.insert(Envelope { src: envelope.dst, dst, msg }, 1);
            }
        }
        let coordinator = self.directory.coordinators.get(cluster.index()).copied().flatten().map_or(Id::from(0), Id::from);
        for producer in self.producers.iter().filter(|p| p.cluster == cluster && p.kind == ProducerKind::Transactional) {
            let dst = Id::from(self.directory.operator + 1 + usize::from(producer.writer.0));
            messages.insert(Envelope { src: coordinator, dst, msg: Msg::Fenced }, 1);
        }
    }

    /// Requests follow the leadership, and those of a fetcher that has gone go with it.
    fn tidy_network(&self, state: &mut State) {
        let stale = |e: &Envelope<&Msg>| self.tidied(state, e) != Some(usize::from(e.dst));
        let stale: Vec<Envelope<Msg>> = state.network.iter_deliverable().filter(stale).map(|e| e.to_cloned_msg()).collect();
        if let Network::UnorderedNonDuplicating(messages) = &mut state.network {
            // A reader asks for one thing at a time.
            messages
                .iter_mut()
                .filter(|(e, count)| **count > 1 && matches!(e.msg, Msg::Fetch(_)))
                .for_each(|(_, count)| *count = 1);
        }
        if stale.is_empty() {
            return;
        }
        let moved: Vec<_> = stale
            .into_iter()
            .map(|e| {
                let to = self.tidied(state, &Envelope { src: e.src, dst: e.dst, msg: &e.msg });
                (e, to)
            })
            .collect();
        let Network::UnorderedNonDuplicating(messages) = &mut state.network else { return };
        for (envelope, to) in moved {
            let count = messages.remove(&envelope).unwrap_or(0);
            if let (Msg::Produce(request) | Msg::WriteMarker(request), None) = (&envelope.msg, to) {
                // Its client is told that it has gone.
                let lost = Msg::Lost { correlation: request.correlation };
                let dst = Id::from(usize::from(request.producer));
                messages.insert(Envelope { src: envelope.dst, dst, msg: lost }, 1);
            }
            if let Some(to) = to {
                *messages.entry(Envelope { dst: Id::from(to), ..envelope }).or_insert(0) += count;
            }
        }
    }

    /// Where a message on its way goes now; none if no one sends or awaits it any more.
    fn tidied(&self, state: &State, envelope: &Envelope<&Msg>) -> Option<usize> {
        let (src, dst) = (usize::from(envelope.src), usize::from(envelope.dst));
        let config = |actor: usize| match self.inner.actors.get(actor).map(|n| &n.role) {
            Some(Role::Replica(config)) => Some(config),
            _ => None,
        };
        let leads = |r: &Replica| r.up && r.role == crate::replica::Role::Leader;
        let is = |actor: usize, what: &dyn Fn(&Replica) -> bool| replica_of(state, actor).is_some_and(what);
        // What a reader that is still there reads now: an answer of another source, or to a fetcher that was removed, reaches no one.
        let reads = |actor: usize| replica_of(state, actor).and_then(|r| config(actor)?.current_fetch(r, false)).map(|(c, _)| c);
        let from = self.directory.broker(src).map(|b| b.cluster);
        let alive = match envelope.msg {
            Msg::Fetch(request) => {
                let current = replica_of(state, src).and_then(|r| config(src)?.current_fetch(r, request.bulk));
                let asked = self.directory.broker(dst).map(|b| b.cluster);
                current.is_some_and(|(cluster, now)| now == *request && Some(cluster) == asked)
            }
            Msg::Produce(request) | Msg::WriteMarker(request) => !self.is_refused(state, dst, request),
            Msg::Fetched(_) => from.is_some() && reads(dst) == from,
            Msg::DescribeMirror => is(src, &leads),
            Msg::LastMirroredIs(_) => is(dst, &leads),
            _ => true,
        };
        if !alive {
            return None;
        }
        // A follower asks the other replica, whoever leads.
        let one_cluster = self.directory.broker(src).map(|b| b.cluster) == self.directory.broker(dst).map(|b| b.cluster);
        match self.directory.broker(dst).filter(|_| envelope.msg.is_for_leader() && !one_cluster) {
            Some(broker) => {
                let number = self.controller(state, broker.cluster).map_or(broker.number, |c| c.leader);
                self.directory.replica(Broker { number, ..broker })
            }
            None => Some(dst),
        }
    }

    /// Whether a request that was sent before is refused for good, because its partition has become a mirror since (ALI-4).
    fn is_refused(&self, state: &State, actor: usize, request: &Request) -> bool {
        let refuses = self.design.unanswered_at_start == UnansweredAtStart::Refused && request.resent;
        refuses && {
            let controller = self.directory.broker(actor).and_then(|b| self.controller(state, b.cluster));
            controller.is_some_and(|c| c.mirror.starts > 0 && c.mirror.state != MirrorState::Stopped)
        }
    }

    fn may_take(&self, state: &State, action: &Action) -> bool {
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

    /// The witnesses that this scenario must reach, so that a model in which nothing happens cannot pass.
    pub fn witnesses(&self) -> impl Iterator<Item = &'static WitnessSpec> + '_ {
        property::WITNESSES.iter().filter(|w| (w.applies)(self))
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

fn replica_of(state: &State, actor: usize) -> Option<&Replica> {
    match &**state.actor_states.get(actor)? {
        NodeState::Replica(replica) => Some(replica),
        _ => None,
    }
}

/// Counts what the bounds limit.
fn count(history: &mut History, action: &Action) {
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

/// Replicas first, the leaders before the followers; then coordinators, controllers, the operator, and the producers after it.
fn directory(topology: &Topology, bounds: &Bounds) -> Directory {
    let mut brokers: Vec<Broker> = topology.clusters.iter().map(|(cluster, _)| Broker { cluster: *cluster, number: 0 }).collect();
    let followed = topology.clusters_by_need().take(usize::from(bounds.followers));
    brokers.extend(followed.map(|cluster| Broker { cluster, number: 1 }));
    let mut directory = Directory { brokers, ..Directory::default() };
    let mut next = directory.brokers.len();
    for (cluster, _) in topology.clusters.iter().filter(|(c, _)| topology.coordinator_of(*c) == *c) {
        if let Some(slot) = directory.coordinators.get_mut(cluster.index()) {
            *slot = Some(next);
            next += 1;
        }
    }
    for (cluster, _) in topology.clusters {
        let own = directory.coordinators.get(topology.coordinator_of(*cluster).index()).copied().flatten();
        if let Some(slot) = directory.coordinators.get_mut(cluster.index()) {
            *slot = own;
        }
        if let Some(slot) = directory.controllers.get_mut(cluster.index()) {
            *slot = Some(next);
            next += 1;
        }
    }
    directory.operator = next;
    directory
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

impl Explorable for Scenario {
    fn kind(&self, action: &Action) -> &'static str {
        match action {
            ActorModelAction::Deliver { msg, .. } => match msg {
                Msg::InitProducerId => "id",
                Msg::Produce(_) => "produce",
                Msg::WriteMarker(_) => "marker",
                Msg::Fetch(_) => "fetch",
                Msg::Stop(_) | Msg::Start { .. } => "command",
                Msg::StepDown => "step-down",
                _ => "message",
            },
            ActorModelAction::Timeout(_, timer) => match timer {
                Timer::NextStep => "next-step",
                Timer::EndTransaction { .. } => "end-transaction",
                Timer::Retry => "retry",
                Timer::GiveUp => "give-up",
                Timer::Roll => "roll",
                Timer::Restart => "restart",
                Timer::Elect { .. } => "elect",
            },
            ActorModelAction::Crash(_) => "crash",
            ActorModelAction::Recover(_) => "recover",
            _ => "other",
        }
    }
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
