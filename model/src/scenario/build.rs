//! How a scenario is made: which actors there are, and where.

use std::sync::Arc;

use stateright::actor::{ActorModel, Network};
use stateright::util::HashableHashMap;

use super::{History, Reduction, Scenario};
use crate::bounds::Bounds;
use crate::client::{ProducerConfig, ProducerKind};
use crate::design::Design;
use crate::ids::{Broker, Cluster};
use crate::node::{Chances, Directory, Node, Role};
use crate::property;
use crate::replica::ReplicaConfig;
use crate::source::{Dropped, SourceConfig};
use crate::topology::{LINK, Topology};
use crate::truth::Writer;

impl Scenario {
    /// The scenario with all properties, reduced.
    #[must_use]
    pub fn new(design: Design, topology: &'static Topology, bounds: Bounds) -> Self {
        Self::with_reduction(design, topology, bounds, Reduction::Urgent)
    }

    /// The scenario with all properties.
    #[must_use]
    pub fn with_reduction(design: Design, topology: &'static Topology, bounds: Bounds, reduction: Reduction) -> Self {
        Self::build(design, topology, bounds, reduction, None)
    }

    /// One link behind an arbitrary source (LINK-2), with the guarantee's own properties; the source keeps all assumptions but one, if
    /// one is dropped.
    #[must_use]
    pub fn link(design: Design, bounds: Bounds, reduction: Reduction, dropped: Option<Dropped>) -> Self {
        let mut scenario = Self::build(design, LINK, bounds, reduction, dropped);
        scenario.properties.extend(&property::GUARANTEE);
        scenario
    }

    fn build(design: Design, topology: &'static Topology, bounds: Bounds, reduction: Reduction, dropped: Option<Dropped>) -> Self {
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
            if topology.environment == Some(cluster) {
                let first = Writer(u8::try_from(producers.len()).unwrap_or(u8::MAX));
                return node(Role::Source(Box::new(SourceConfig::new(design, cluster, bounds, first, dropped))));
            }
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
