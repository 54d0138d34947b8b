//! What is to be checked: the designs, topologies, bounds and properties that the command line names.

use std::collections::BTreeSet;

use cleanslate_model::bounds::{Bounds, BoundsError};
use cleanslate_model::design::{Design, DesignError, NAMED};
use cleanslate_model::ids::Cluster;
use cleanslate_model::property::{self, GUARANTEE, Group, PROPERTIES, PropertySpec};
use cleanslate_model::scenario::Scenario;
use cleanslate_model::topology::{LINK, TOPOLOGIES, Topology};
use thiserror::Error;

/// Why a plan cannot be made.
#[derive(Debug, Error)]
pub enum PlanError {
    /// No such design, axis or choice.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// No such bound.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// No such topology.
    #[error("unknown topology '{name}'; topologies are {}", TOPOLOGIES.iter().chain([LINK]).map(|t| t.name).collect::<Vec<_>>().join(", "))]
    Topology {
        /// The name.
        name: String,
    },
    /// No such property or group.
    #[error(
        "unknown property '{name}'; groups are {}; properties are {}; append @A, @B, @C or @D for one cluster's replica",
        groups(),
        properties()
    )]
    Property {
        /// The name.
        name: String,
    },
    /// Several clusters after @.
    #[error("--property: one run looks at one replica or at all; found both {first} and {second}")]
    Focus {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// The topology lacks the cluster after @.
    #[error("--property: topology '{topology}' has no cluster {cluster}")]
    NoSuchCluster {
        /// The topology.
        topology: &'static str,
        /// The cluster.
        cluster: Cluster,
    },
}

fn groups() -> String {
    Group::ALL.map(Group::id).join(", ")
}

fn properties() -> String {
    PROPERTIES.iter().map(|p| p.id).collect::<Vec<_>>().join(", ")
}

/// One design on one topology.
#[derive(Clone, Debug)]
pub struct Job {
    /// The design as the user wrote it.
    pub design: String,
    /// The design.
    pub rules: Design,
    /// The topology.
    pub topology: &'static Topology,
    /// The bounds.
    pub bounds: Bounds,
    /// `small` or `ci`, if these are such bounds.
    pub bounds_name: Option<&'static str>,
    /// The properties.
    pub properties: Vec<&'static PropertySpec>,
    /// The only cluster whose replica is judged.
    pub focus: Option<Cluster>,
}

impl Job {
    /// The scenario of this job.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::new(self.rules, self.topology, self.bounds);
        scenario.properties.clone_from(&self.properties);
        scenario.focus = self.focus;
        scenario
    }
}

/// All jobs of one run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The jobs, topology by topology.
    pub jobs: Vec<Job>,
}

impl Plan {
    /// The plan for these names; an empty list means all. What is named twice is checked once.
    ///
    /// # Errors
    /// [`PlanError`] names the valid choices.
    pub fn new(designs: &[String], topologies: &[String], bounds: &str, properties: &[String]) -> Result<Self, PlanError> {
        let all_designs: Vec<String> = NAMED.iter().map(|d| d.name.to_owned()).collect();
        let designs = if designs.is_empty() { &all_designs } else { designs };
        let topologies: Vec<&'static Topology> = if topologies.is_empty() {
            TOPOLOGIES.iter().collect()
        } else {
            let by_name = |n: &String| Topology::by_name(n).ok_or_else(|| PlanError::Topology { name: n.clone() });
            topologies.iter().map(by_name).collect::<Result<_, _>>()?
        };
        let topologies = each_once(topologies, |topology| topology.name);
        let designs = each_once(designs.iter().collect(), |design| design.as_str());
        let all_properties = properties.is_empty();
        let (properties, focus) = select(properties)?;
        let mut jobs = Vec::new();
        for topology in topologies {
            let parsed = Bounds::parse(bounds, topology)?;
            if let Some(cluster) = focus.filter(|f| !topology.clusters.iter().any(|(c, _)| c == f)) {
                return Err(PlanError::NoSuchCluster { topology: topology.name, cluster });
            }
            // What a link passes on is checked with the promises.
            let of_link = GUARANTEE.iter().filter(|_| all_properties && topology.environment.is_some());
            let properties: Vec<_> = properties.iter().copied().chain(of_link).collect();
            for design in &designs {
                jobs.push(Job {
                    design: (*design).to_owned(),
                    rules: Design::parse(design)?,
                    topology,
                    bounds: parsed,
                    bounds_name: bounds_name(parsed, topology),
                    properties: properties.clone(),
                    focus,
                });
            }
        }
        Ok(Self { jobs })
    }
}

/// The first of those of each name.
fn each_once<'n, T: Copy>(all: Vec<T>, name: impl Fn(T) -> &'n str) -> Vec<T> {
    let mut names = BTreeSet::new();
    all.into_iter().filter(|one| names.insert(name(*one))).collect()
}

fn bounds_name(bounds: Bounds, topology: &Topology) -> Option<&'static str> {
    if bounds == Bounds::ci(topology) {
        Some("ci")
    } else if bounds == Bounds::SMALL {
        Some("small")
    } else {
        None
    }
}

type Selection = (Vec<&'static PropertySpec>, Option<Cluster>);

fn select(names: &[String]) -> Result<Selection, PlanError> {
    if names.is_empty() {
        return Ok((PROPERTIES.iter().collect(), None));
    }
    let mut chosen: Vec<&'static PropertySpec> = Vec::new();
    let mut focus: Option<(Option<Cluster>, &String)> = None;
    for name in names {
        let unknown = || PlanError::Property { name: name.clone() };
        let (id, cluster) = match name.split_once('@') {
            Some((id, letter)) => (id, Some(Cluster::ALL.into_iter().find(|c| c.name() == letter).ok_or_else(unknown)?)),
            None => (name.as_str(), None),
        };
        match focus {
            Some((earlier, first)) if earlier != cluster => {
                return Err(PlanError::Focus { first: first.clone(), second: name.clone() });
            }
            _ => focus = Some((cluster, name)),
        }
        let found = property::select(id);
        if found.is_empty() {
            return Err(unknown());
        }
        chosen.extend(found);
    }
    // In the order of the table, each once.
    let chosen = PROPERTIES.iter().chain(&GUARANTEE).filter(|p| chosen.iter().any(|c| c.id == p.id)).collect();
    Ok((chosen, focus.and_then(|(cluster, _)| cluster)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_twice_is_checked_once() {
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let plan = Plan::new(&names(&["raw", "negate", "raw"]), &names(&["chain", "chain"]), "small", &[]);
        let jobs: Vec<_> =
            plan.map(|plan| plan.jobs.into_iter().map(|job| (job.design, job.topology.name)).collect()).unwrap_or_default();
        assert_eq!(jobs, [("raw".to_owned(), "chain"), ("negate".to_owned(), "chain")]);
    }
}
