//! What is done around a step so that equal situations are equal states, and nothing waits for one who has gone.

use std::sync::Arc;

use stateright::actor::{Envelope, Id, Network};

use super::{Reduction, Scenario, State, replica_of};
use crate::client::ProducerKind;
use crate::controller::Controller;
use crate::design::UnansweredAtStart;
use crate::effect::Effect;
use crate::ids::{Broker, Cluster};
use crate::message::{Msg, Request};
use crate::mirror::MirrorState;
use crate::node::{NodeState, Role};
use crate::replica::Replica;

impl Scenario {
    /// A crashed replica is nothing but its durable state, so that equal crashes are equal states.
    pub(super) fn canonical_crash(&self, state: &mut State, actor: usize) {
        let Some(Role::Replica(config)) = self.inner.actors.get(actor).map(|n| &n.role) else { return };
        let Some(durable) = state.actor_storages.get(actor).and_then(Option::as_ref) else { return };
        let crashed = config.crashed(&durable.0);
        if let Some(slot) = state.actor_states.get_mut(actor) {
            *slot = Arc::new(NodeState::Replica(Box::new(crashed)));
        }
    }

    /// An arbitrary source that no one reads any more, nor ever will, is nothing, so that equal situations are equal states (RED-3).
    pub(super) fn forget_unread_source(&self, state: &mut State) {
        let Some(cluster) = self.topology.environment.filter(|_| self.reduction == Reduction::Urgent) else { return };
        let reads = |c: &Controller| {
            c.mirror.source == Some(cluster) && matches!(c.mirror.state, MirrorState::Mirroring | MirrorState::LogAlignment)
        };
        let is_read = self.topology.clusters.iter().any(|(c, _)| self.controller(state, *c).is_some_and(reads));
        for (actor, node) in self.inner.actors.iter().enumerate() {
            if let Role::Source(config) = &node.role
                && !is_read
                && !state.network.iter_deliverable().any(|e| usize::from(e.dst) == actor)
                && let Some(slot) = state.actor_states.get_mut(actor)
            {
                *slot = Arc::new(NodeState::Source(Box::new(config.initial())));
            }
        }
    }

    pub(super) fn drain_journal(&self, state: &mut State, actor: usize) -> Vec<Effect> {
        match state.actor_states.get_mut(actor) {
            Some(slot) if slot.replica().is_some_and(|r| !r.journal.is_empty()) => {
                Arc::make_mut(slot).replica_mut().map(|r| std::mem::take(&mut r.journal)).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// What waited for an answer of a leader that is none any more is sent again by its client.
    pub(super) fn redirect_waiting(&self, before: &State, after: &mut State, actor: usize) {
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
    pub(super) fn close_connections(&self, state: &mut State, cluster: Cluster) {
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
    pub(super) fn tidy_network(&self, state: &mut State) {
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
        let leads = |r: &Replica| r.up && r.role == crate::replica::Role::Leader;
        let is = |actor: usize, what: &dyn Fn(&Replica) -> bool| replica_of(state, actor).is_some_and(what);
        // An answer belongs to the connection on which it was asked for, so to the cluster that is read now.
        let from = self.directory.broker(src).map(|b| b.cluster);
        let current_fetch = |actor: usize, r: &Replica, bulk: bool| match self.inner.actors.get(actor).map(|n| &n.role) {
            Some(Role::Replica(config)) => config.current_fetch(r, bulk),
            _ => None,
        };
        let reads = |r: &Replica| current_fetch(dst, r, false).map(|(cluster, _)| cluster) == from;
        let alive = match envelope.msg {
            Msg::Fetch(request) => {
                let current = replica_of(state, src).and_then(|r| current_fetch(src, r, request.bulk));
                let asked = self.directory.broker(dst).map(|b| b.cluster);
                current.is_some_and(|(cluster, now)| now == *request && Some(cluster) == asked)
            }
            Msg::Produce(request) | Msg::WriteMarker(request) => !self.is_refused(state, dst, request),
            Msg::Fetched(_) => is(dst, &reads),
            Msg::DescribeMirror => is(src, &leads),
            Msg::LastMirroredIs(_) => is(dst, &|r| leads(r) && r.mirror.source == from),
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
}
