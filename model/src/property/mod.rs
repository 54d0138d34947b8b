//! Properties and witnesses: what must never be seen, and what must be seen so that the former means something.

mod guarantee;
mod safety;
mod stuck;
mod witness;

use crate::scenario::{Scenario, State};

pub use guarantee::GUARANTEE;
pub use safety::PROPERTIES;
pub use witness::WITNESSES;

/// The promise that a property belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// A producer id stands for one producer.
    Uniqueness,
    /// A partition becomes writable without anything inherited.
    CleanSlate,
    /// Nothing goes wrong without a signal, and no honest producer is refused.
    SilentCorruption,
    /// Whatever has the same log has the same state.
    Convergence,
    /// What was begun ends.
    Liveness,
    /// A mirror's log is a beginning of its source's.
    Alignment,
    /// What is lost is what the text says.
    Loss,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 7] = [
        Self::Uniqueness,
        Self::CleanSlate,
        Self::SilentCorruption,
        Self::Convergence,
        Self::Liveness,
        Self::Alignment,
        Self::Loss,
    ];

    /// The id.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Uniqueness => "uniqueness",
            Self::CleanSlate => "clean-slate",
            Self::SilentCorruption => "silent-corruption",
            Self::Convergence => "convergence",
            Self::Liveness => "liveness",
            Self::Alignment => "alignment",
            Self::Loss => "loss",
        }
    }
}

/// A property of every reachable state.
#[derive(Debug)]
pub struct PropertySpec {
    /// The id.
    pub id: &'static str,
    /// The requirement that it states.
    pub requirement: &'static str,
    /// The promise that it belongs to.
    pub group: Group,
    /// One sentence.
    pub about: &'static str,
    /// Whether a state keeps it.
    pub condition: fn(&Scenario, &State) -> bool,
    /// What must hold from some point on along every weakly fair run, if the property is about runs (LIVE-3).
    pub goal: Option<fn(&Scenario, &State) -> bool>,
}

/// Something that must be reachable.
#[derive(Debug)]
pub struct WitnessSpec {
    /// The id.
    pub id: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Whether the scenario can reach it at all.
    pub applies: fn(&Scenario) -> bool,
    /// Whether a state shows it.
    pub condition: fn(&Scenario, &State) -> bool,
}

/// The property of this id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static PropertySpec> {
    PROPERTIES.iter().chain(&GUARANTEE).find(|p| p.id == id)
}

/// The properties that a group id or a property id names. The guarantee belongs to a link and to no group of promises.
#[must_use]
pub fn select(name: &str) -> Vec<&'static PropertySpec> {
    let promises = PROPERTIES.iter().filter(|p| p.id == name || p.group.id() == name);
    promises.chain(GUARANTEE.iter().filter(|p| p.id == name)).collect()
}
