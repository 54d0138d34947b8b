//! What a search tells.

/// The end of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Every reachable state was expanded.
    #[default]
    Complete,
    /// A limit was hit; which, and how far the search got.
    Cut(String),
}

/// One discovery: the action indices that lead to the state, in the order of [`stateright::Model::actions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The property's name.
    pub property: &'static str,
    /// The path.
    pub actions: Vec<u16>,
    /// What may be done for ever from there, back to the same state each time; empty if the run ends there, or if a single state tells all.
    pub cycle: Vec<u16>,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Different states.
    pub states: u64,
    /// Transitions taken, those to known states included.
    pub transitions: u64,
    /// Transitions by the kind of their action, the most frequent first.
    pub kinds: Vec<(&'static str, u64)>,
    /// New states for each number of steps.
    pub growth: Vec<u64>,
    /// The largest number of states that waited to be expanded.
    pub frontier_peak: u64,
    /// What the search's own tables hold at the end, in bytes: fingerprints, parents, parts of states, the graph. Not the frontier.
    pub table_bytes: u64,
    /// How many strongly connected components of the expanded states have more than one state; none if the steps were not recorded.
    pub circles: Option<u64>,
    /// Whether it is the whole space.
    pub ending: Ending,
    /// The first, hence shortest, violation of each `always` property, the first example of each `sometimes` property, and a run that misses
    /// each goal that can be missed for ever.
    pub discoveries: Vec<Discovery>,
}

impl Report {
    /// The discovery for a property.
    #[must_use]
    pub fn discovery(&self, property: &str) -> Option<&Discovery> {
        self.discoveries.iter().find(|d| d.property == property)
    }

    /// The largest number of steps.
    #[must_use]
    pub fn depth(&self) -> u32 {
        u32::try_from(self.growth.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// What a state costs in the search's own tables, in bytes, rounded up.
    #[must_use]
    pub fn bytes_per_state(&self) -> u64 {
        self.table_bytes.div_ceil(self.states.max(1))
    }
}
