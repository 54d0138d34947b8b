//! Exhaustive breadth-first search over a stateright model, with honest endings.
//!
//! stateright's own checkers report a run that a cap cut short as done, keep the last discovery of a property rather than the shortest,
//! and clone the whole path with every queued state. This search keeps a parent for each state, finds the shortest path to the first
//! violation of every property in one pass, and says whether the space was explored to its end. A test holds it against stateright's.
//!
//! `run` is the search, `table` and `store` its memory; what it records of the graph is judged by [`crate::liveness`].

mod minimise;
mod report;
mod run;
mod store;
mod table;

use stateright::Model;

pub use minimise::minimise;
pub use report::{Discovery, Ending, Report};
pub use store::{Intern, Plain, Store, fixed_hasher};

use run::Run;

/// Limits of a search. None means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// The number of states.
    pub states: Option<u64>,
    /// The number of steps from the initial state.
    pub depth: Option<u32>,
}

/// How a search is done. Neither threads nor the graph change what is found of the properties of single states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its limits.
    pub caps: Caps,
    /// How many threads take steps; at least one. The result is the same for every number.
    pub threads: usize,
    /// Whether the steps are recorded and the goals judged on the graph: about 11 bytes more for each transition, 15 for each state.
    pub goals: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { caps: Caps::default(), threads: 1, goals: false }
    }
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Different states found so far.
    pub states: u64,
    /// Steps from the initial state.
    pub depth: u32,
    /// States found but not yet expanded.
    pub frontier: u64,
}

/// Something that must hold from some point on, along every weakly fair run.
pub struct Goal<M: Model> {
    /// The property's name.
    pub name: &'static str,
    /// Whether a state reaches it.
    pub condition: fn(&M, &M::State) -> bool,
}

/// A model that can be searched.
pub trait Explorable: Model<State: Send + Sync> + Sync + Sized {
    /// How it keeps the states that are not yet expanded.
    type Store: Store<Self::State>;

    /// An empty store.
    fn store(&self) -> Self::Store;

    /// The goals, at most eight.
    fn goals(&self) -> Vec<Goal<Self>> {
        Vec::new()
    }

    /// The fingerprint of a fair action: one that is not available for ever without being taken. None for the others. Actions with one
    /// fingerprint are one to fairness, in whatever state they are available.
    fn fair(&self, _action: &Self::Action) -> Option<u64> {
        None
    }

    /// What kind of step an action is, for the statistics.
    fn kind(&self, _action: &Self::Action) -> &'static str {
        "step"
    }
}

/// Explores the model breadth first. `interrupt` is asked now and then; a reason ends the search.
pub fn search<M: Explorable>(model: &M, caps: Caps, interrupt: impl FnMut(&Progress) -> Option<String>) -> Report {
    search_with(model, Options { caps, ..Options::default() }, interrupt)
}

/// Explores the model breadth first, with all options.
pub fn search_with<M: Explorable>(model: &M, options: Options, interrupt: impl FnMut(&Progress) -> Option<String>) -> Report {
    Run::new(model, options, interrupt).explore()
}

/// The actions of a discovery, found again by walking from the initial state: those that lead to the state, then those of the cycle.
#[must_use]
pub fn actions_of<M>(model: &M, discovery: &Discovery) -> Option<Vec<M::Action>>
where
    M: Model,
    M::Action: Clone,
{
    let mut state = model.init_states().into_iter().next()?;
    let mut path = Vec::new();
    for index in discovery.actions.iter().chain(&discovery.cycle) {
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        let action = actions.get(usize::from(*index))?.clone();
        state = model.next_state(&state, action.clone())?;
        path.push(action);
    }
    Some(path)
}
