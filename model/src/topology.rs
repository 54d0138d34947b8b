//! Topologies: which cluster mirrors which at the start, and what the operator may do.

use crate::ids::Cluster;

/// What the operator tells a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Stop mirroring and become writable (failover).
    Stop,
    /// Start to mirror this cluster, becoming read-only (failback).
    Start(Cluster),
}

/// One line of the operator's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLine {
    /// The cluster that is told.
    pub at: Cluster,
    /// What it is told.
    pub command: Command,
    /// The line that must be finished before, by index; none if the operator may act at any time.
    pub after: Option<u8>,
}

/// A topology.
#[derive(Clone, Copy, Debug)]
pub struct Topology {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is, one sentence.
    pub about: &'static str,
    /// The clusters, each with the one that it mirrors at the start.
    pub clusters: &'static [(Cluster, Option<Cluster>)],
    /// The operator's script.
    pub script: &'static [ScriptLine],
    /// Two letters that stand for two partitions of one cluster: they share its coordinator, hence its producer ids.
    pub one_cluster: Option<(Cluster, Cluster)>,
    /// The cluster that is none: in its place is a log that may do whatever a good source may (LINK-2).
    pub environment: Option<Cluster>,
}

impl PartialEq for Topology {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const fn stop(at: Cluster, after: Option<u8>) -> ScriptLine {
    ScriptLine { at, command: Command::Stop, after }
}

const fn start(at: Cluster, source: Cluster, after: Option<u8>) -> ScriptLine {
    ScriptLine { at, command: Command::Start(source), after }
}

use Cluster::{A, B, C, D};

/// One link of a chain of any length. It stands apart from the topologies, which are made of clusters alone.
pub const LINK: &Topology = &Topology {
    name: "link",
    about: "A to B to C, where A is any source whose log is good; B and C are stopped at any time, in any order",
    clusters: &[(A, None), (B, Some(A)), (C, Some(B))],
    script: &[stop(B, None), stop(C, None)],
    one_cluster: None,
    environment: Some(A),
};

/// All topologies of clusters.
pub const TOPOLOGIES: &[Topology] = &[
    Topology {
        name: "active-passive",
        about: "A to B; B is stopped at any time",
        clusters: &[(A, None), (B, Some(A))],
        script: &[stop(B, None)],
        one_cluster: None,
        environment: None,
    },
    Topology {
        name: "failback",
        about: "A to B; B is stopped; B to A; A is stopped; A to B again; B is stopped again",
        clusters: &[(A, None), (B, Some(A))],
        script: &[stop(B, None), start(A, B, Some(0)), stop(A, Some(1)), start(B, A, Some(2)), stop(B, Some(3))],
        one_cluster: None,
        environment: None,
    },
    Topology {
        name: "chain",
        about: "A to B to C; B and C are stopped at any time, in any order",
        clusters: &[(A, None), (B, Some(A)), (C, Some(B))],
        script: &[stop(B, None), stop(C, None)],
        one_cluster: None,
        environment: None,
    },
    Topology {
        name: "chain-4",
        about: "A to B to C to D; B and C are stopped at any time, in any order; D keeps mirroring",
        clusters: &[(A, None), (B, Some(A)), (C, Some(B)), (D, Some(C))],
        script: &[stop(B, None), stop(C, None)],
        one_cluster: None,
        environment: None,
    },
    Topology {
        name: "fan-out",
        about: "A to B and A to C; each is stopped at any time",
        clusters: &[(A, None), (B, Some(A)), (C, Some(A))],
        script: &[stop(B, None), stop(C, None)],
        one_cluster: None,
        environment: None,
    },
    Topology {
        name: "fan-in",
        about: "A to C and B to C, into two partitions of C; D is the letter of the second one; each is stopped at any time",
        clusters: &[(A, None), (B, None), (C, Some(A)), (D, Some(B))],
        script: &[stop(C, None), stop(D, None)],
        one_cluster: Some((C, D)),
        environment: None,
    },
    Topology {
        name: "retarget",
        about: "A to B and A to C; B is stopped; C is stopped and mirrors B from then on; C is stopped again",
        clusters: &[(A, None), (B, Some(A)), (C, Some(A))],
        script: &[stop(B, None), stop(C, Some(0)), start(C, B, Some(1)), stop(C, Some(2))],
        one_cluster: None,
        environment: None,
    },
];

impl Topology {
    /// The topology of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        TOPOLOGIES.iter().chain([LINK]).find(|t| t.name == name)
    }

    /// The clusters that can be writable at some time: the original sources, and those that the script stops.
    pub fn writable_clusters(&self) -> impl Iterator<Item = Cluster> + '_ {
        self.clusters
            .iter()
            .filter(|(c, _)| self.environment != Some(*c))
            .filter(|(c, mirrors)| mirrors.is_none() || self.script.iter().any(|l| l.at == *c && l.command == Command::Stop))
            .map(|(c, _)| *c)
    }

    /// The letter whose coordinator hands out ids and writes markers for this one.
    #[must_use]
    pub fn coordinator_of(&self, cluster: Cluster) -> Cluster {
        self.one_cluster.filter(|(_, second)| *second == cluster).map_or(cluster, |(first, _)| first)
    }

    /// The clusters in the order in which bounds give them a follower: mirrors before sources.
    pub fn clusters_by_need(&self) -> impl Iterator<Item = Cluster> + '_ {
        let mirrors = self.clusters.iter().filter(|(_, m)| m.is_some());
        let sources = self.clusters.iter().filter(|(c, m)| m.is_none() && self.environment != Some(*c));
        mirrors.chain(sources).map(|(c, _)| *c)
    }

    /// Whether a barrier written by one cluster can reach another's log.
    #[must_use]
    pub fn propagates(&self) -> bool {
        self.script.iter().any(|l| matches!(l.command, Command::Start(_)))
            || self.clusters.iter().any(|(_, m)| m.is_some_and(|s| self.script.iter().any(|l| l.at == s)))
    }
}
