//! Exhaustive breadth-first search over a stateright model, with honest endings.
//!
//! stateright's own checkers report a run that a cap cut short as done, keep the last discovery of a property rather than the shortest,
//! and clone the whole path with every queued state. This search keeps a parent for each state, finds the shortest path to the first
//! violation of every property in one pass, and says whether the space was explored to its end. A test holds it against stateright's.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use ahash::RandomState;
use stateright::{Expectation, Model, Property};

/// Limits of a search. None means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// The number of states.
    pub states: Option<u64>,
    /// The number of steps from the initial state.
    pub depth: Option<u32>,
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

/// The end of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every reachable state was expanded.
    Complete,
    /// A limit was hit; which, and how far the search got.
    Cut(String),
}

/// One discovery: the action indices that lead to the state, in the order of [`Model::actions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The property's name.
    pub property: &'static str,
    /// The path.
    pub actions: Vec<u16>,
}

/// What a search found.
#[derive(Clone, Debug)]
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
    /// What the search's own tables hold at the end, in bytes: fingerprints and parents. Not the frontier.
    pub table_bytes: u64,
    /// Whether it is the whole space.
    pub ending: Ending,
    /// The first, hence shortest, violation of each `always` property and the first example of each `sometimes` property.
    pub discoveries: Vec<Discovery>,
}

impl Report {
    const EMPTY: Self = Self {
        states: 0,
        transitions: 0,
        kinds: Vec::new(),
        growth: Vec::new(),
        frontier_peak: 0,
        table_bytes: 0,
        ending: Ending::Complete,
        discoveries: Vec::new(),
    };

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

/// A model that can be searched.
pub trait Explorable: Model {
    /// What kind of step an action is, for the statistics.
    fn kind(&self, _action: &Self::Action) -> &'static str {
        "step"
    }
}

const NO_PARENT: u32 = u32::MAX;

/// The search's memory: a fingerprint for each state, and its parent for the way back.
struct Visited {
    hasher: RandomState,
    known: std::collections::HashSet<u64, PassThrough>,
    parents: Vec<(u32, u16)>,
    /// A state could not be numbered: what follows it is unknown.
    full: bool,
}

/// Fingerprints are hashes already.
#[derive(Clone, Default)]
struct PassThrough(u64);

impl BuildHasher for PassThrough {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl std::hash::Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(w, c)| *w = *c);
            self.0 ^= u64::from_le_bytes(word);
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

impl Visited {
    fn new() -> Self {
        // Fixed keys: state counts and paths are the same in every run.
        let hasher = RandomState::with_seeds(0x636c_6561, 0x6e73_6c61, 0x7465, 1279);
        Self { hasher, known: std::collections::HashSet::default(), parents: Vec::new(), full: false }
    }

    fn insert<S: Hash>(&mut self, state: &S, parent: u32, action: u16) -> Option<u32> {
        if !self.known.insert(self.hasher.hash_one(state)) {
            return None;
        }
        let Some(id) = u32::try_from(self.parents.len()).ok().filter(|id| *id != NO_PARENT) else {
            self.full = true;
            return None;
        };
        self.parents.push((parent, action));
        Some(id)
    }

    fn bytes(&self) -> u64 {
        // A hash set keeps a control byte beside each slot, and has more slots than entries.
        let slots = self.known.capacity().saturating_mul(8) / 7;
        slots.saturating_mul(9).saturating_add(self.parents.capacity().saturating_mul(size_of::<(u32, u16)>())) as u64
    }

    fn path_to(&self, mut id: u32) -> Vec<u16> {
        let mut path = Vec::new();
        while let Some((parent, action)) = self.parents.get(id as usize).copied() {
            if parent == NO_PARENT {
                break;
            }
            path.push(action);
            id = parent;
        }
        path.reverse();
        path
    }
}

/// Explores the model breadth first. `interrupt` is asked now and then; a reason ends the search.
pub fn search<M>(model: &M, caps: Caps, interrupt: impl FnMut(&Progress) -> Option<String>) -> Report
where
    M: Explorable,
    M::State: Hash,
{
    let mut run = Run {
        model,
        caps,
        interrupt,
        properties: model.properties(),
        open: Vec::new(),
        visited: Visited::new(),
        report: Report::EMPTY,
    };
    run.open = (0..run.properties.len()).collect();
    let mut level: Level<M::State> = VecDeque::new();
    for state in model.init_states() {
        if let Some(id) = run.visited.insert(&state, NO_PARENT, 0) {
            level.push_back((id, state));
        }
    }
    let mut depth = 0;
    while !level.is_empty() {
        run.report.growth.push(level.len() as u64);
        run.report.states += level.len() as u64;
        level.iter().for_each(|(id, state)| run.judge(*id, state));
        if caps.depth.is_some_and(|d| depth >= d) {
            run.report.ending =
                Ending::Cut(format!("depth cap of {depth} hit after {} states, {} not expanded", run.report.states, level.len()));
            break;
        }
        match run.expand(level, depth) {
            Some(next) => level = next,
            None => break,
        }
        depth += 1;
    }
    run.report.kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    run.report.table_bytes = run.visited.bytes();
    run.report
}

type Level<S> = VecDeque<(u32, S)>;

struct Run<'m, M: Model, I> {
    model: &'m M,
    caps: Caps,
    interrupt: I,
    properties: Vec<Property<M>>,
    /// The properties without a discovery, by index.
    open: Vec<usize>,
    visited: Visited,
    report: Report,
}

impl<M, I> Run<'_, M, I>
where
    M: Explorable,
    M::State: Hash,
    I: FnMut(&Progress) -> Option<String>,
{
    fn judge(&mut self, id: u32, state: &M::State) {
        let Self { model, properties, open, visited, report, .. } = self;
        open.retain(|&i| {
            let Some(property) = properties.get(i) else { return false };
            let holds = (property.condition)(model, state);
            let discovered = match property.expectation {
                Expectation::Always => !holds,
                Expectation::Sometimes => holds,
                Expectation::Eventually => false,
            };
            if discovered {
                report.discoveries.push(Discovery { property: property.name, actions: visited.path_to(id) });
            }
            !discovered
        });
    }

    /// The states one step behind a level that were not known; none if the search was cut.
    fn expand(&mut self, mut level: Level<M::State>, depth: u32) -> Option<Level<M::State>> {
        let mut next_level = VecDeque::new();
        let mut actions = Vec::new();
        let mut expanded = 0_u64;
        while let Some((id, state)) = level.pop_front() {
            let states = self.report.states + next_level.len() as u64;
            let progress = Progress { states, depth, frontier: (level.len() + 1 + next_level.len()) as u64 };
            if let Some(why) = self.reason_to_stop(&progress, expanded) {
                self.report.ending =
                    Ending::Cut(format!("{why} at depth {depth} after {states} states, {} not expanded", progress.frontier));
                self.report.states = states;
                return None;
            }
            self.report.frontier_peak = self.report.frontier_peak.max(progress.frontier);
            expanded += 1;
            self.model.actions(&state, &mut actions);
            for (index, action) in actions.drain(..).enumerate() {
                let kind = self.model.kind(&action);
                let next = self.model.next_state(&state, action).filter(|next| self.model.within_boundary(next));
                let (Some(next), Ok(index)) = (next, u16::try_from(index)) else { continue };
                self.report.transitions += 1;
                self.count(kind);
                if let Some(next_id) = self.visited.insert(&next, id, index) {
                    next_level.push_back((next_id, next));
                }
            }
        }
        Some(next_level)
    }

    fn count(&mut self, kind: &'static str) {
        match self.report.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.report.kinds.push((kind, 1)),
        }
    }

    fn reason_to_stop(&mut self, progress: &Progress, expanded: u64) -> Option<String> {
        if self.visited.full {
            return Some("the search cannot number more states".to_owned());
        }
        if let Some(max) = self.caps.states.filter(|max| progress.states >= *max) {
            return Some(format!("cap of {max} states hit"));
        }
        // Asking the clock and the system for every state would cost more than the states do.
        if expanded.is_multiple_of(512) { (self.interrupt)(progress) } else { None }
    }
}

/// The actions of a discovery, found again by walking from the initial state.
#[must_use]
pub fn actions_of<M>(model: &M, discovery: &Discovery) -> Option<Vec<M::Action>>
where
    M: Model,
    M::Action: Clone,
{
    let mut state = model.init_states().into_iter().next()?;
    let mut path = Vec::new();
    for index in &discovery.actions {
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        let action = actions.get(usize::from(*index))?.clone();
        state = model.next_state(&state, action.clone())?;
        path.push(action);
    }
    Some(path)
}
