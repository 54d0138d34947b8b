//! The search itself: level by level, in batches that any number of threads expand and one merges, in order.

use std::collections::HashMap;

use stateright::{Expectation, Property};

use super::store::Store;
use super::table::{NO_STATE, Visited};
use super::{Discovery, Ending, Explorable, Goal, Options, Progress, Report};
use crate::liveness::{Graph, UNFAIR, endless};

/// How often the clock and the system are asked: for every state that would cost more than the states do.
const ASK_EVERY: u64 = 512;

type Packed<M> = <<M as Explorable>::Store as Store<<M as stateright::Model>::State>>::Packed;
type Digest<M> = <<M as Explorable>::Store as Store<<M as stateright::Model>::State>>::Digest;

/// A step from a state that is being expanded.
struct Step<M: Explorable> {
    index: u16,
    kind: &'static str,
    /// The fingerprint of a fair action.
    fair: Option<u64>,
    fingerprint: u64,
    /// The state that it leads to, unless it was known.
    state: Option<(M::State, Digest<M>)>,
}

/// What a state shows and what follows it.
struct Expanded<M: Explorable> {
    steps: Vec<Step<M>>,
    /// A bit for each goal that the state misses.
    misses: u8,
    /// The open properties that the state decides.
    decided: Vec<usize>,
}

/// The states with the same distance, numbered from `first`.
struct Level<P> {
    first: u32,
    states: Vec<P>,
}

impl<P> Level<P> {
    fn id(&self, position: usize) -> u32 {
        u32::try_from(position).ok().and_then(|p| self.first.checked_add(p)).unwrap_or(NO_STATE)
    }

    fn next(&self) -> Self {
        Self { first: self.id(self.states.len()), states: Vec::new() }
    }
}

pub(super) struct Run<'m, M: Explorable, I> {
    model: &'m M,
    options: Options,
    interrupt: I,
    properties: Vec<Property<M>>,
    /// The properties without a discovery, by index.
    open: Vec<usize>,
    goals: Vec<Goal<M>>,
    visited: Visited,
    store: M::Store,
    graph: Option<Graph>,
    /// The numbers of the fair actions' fingerprints.
    labels: HashMap<u64, u32>,
    /// Something could not be numbered: what follows from it is unknown.
    full: Option<&'static str>,
    report: Report,
}

impl<'m, M, I> Run<'m, M, I>
where
    M: Explorable,
    I: FnMut(&Progress) -> Option<String>,
{
    pub(super) fn new(model: &'m M, options: Options, interrupt: I) -> Self {
        let properties = model.properties();
        let mut goals = if options.goals { model.goals() } else { Vec::new() };
        goals.truncate(8);
        Self {
            model,
            options,
            interrupt,
            open: (0..properties.len()).collect(),
            properties,
            goals,
            visited: Visited::default(),
            store: model.store(),
            graph: options.goals.then(Graph::default),
            labels: HashMap::new(),
            full: None,
            report: Report::default(),
        }
    }

    pub(super) fn explore(mut self) -> Report {
        let mut level = Level { first: 0, states: Vec::new() };
        for state in self.model.init_states() {
            let (fingerprint, digest) = self.store.digest(&state, None);
            self.arrive(fingerprint, Some((state, digest)), (NO_STATE, 0), &mut level);
        }
        let mut depth = 0;
        while !level.states.is_empty() {
            self.report.growth.push(level.states.len() as u64);
            self.report.states += level.states.len() as u64;
            self.report.frontier_peak = self.report.frontier_peak.max(level.states.len() as u64);
            if self.options.caps.depth.is_some_and(|d| depth >= d) {
                self.judge(&level, 0);
                let (states, left) = (self.report.states, level.states.len());
                self.report.ending = Ending::Cut(format!("depth cap of {depth} hit after {states} states, {left} not expanded"));
                break;
            }
            match self.expand(&level, depth) {
                Some(next) => level = next,
                None => break,
            }
            depth += 1;
        }
        self.judge_goals();
        self.report.kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let graph = self.graph.as_ref().map_or(0, Graph::bytes);
        self.report.table_bytes = (self.visited.bytes() + self.store.bytes() + graph + self.labels.capacity() * 16) as u64;
        self.report
    }

    /// How many states are looked at before the results are merged; what comes out does not depend on it. One thread keeps few states at a
    /// time, many threads need enough to do.
    const fn batch(&self) -> usize {
        if self.options.threads <= 1 { 16 } else { 256 * self.options.threads }
    }

    /// Looks for the open properties in the states of a level that will not be expanded, from a position on.
    fn judge(&mut self, level: &Level<Packed<M>>, from: usize) {
        let size = self.batch();
        for (batch, states) in level.states.get(from..).unwrap_or_default().chunks(size).enumerate() {
            let (model, store, properties, open) = (self.model, &self.store, &self.properties, &self.open);
            let judged = in_parallel(self.options.threads, states, |packed| {
                store.with(packed, |state| decided(model, properties, open, state)).unwrap_or_default()
            });
            for (position, decided) in judged.into_iter().enumerate() {
                self.discover(decided, level.id(from + batch * size + position));
            }
        }
    }

    /// Notes the properties that a state decides, unless an earlier state has decided them.
    fn discover(&mut self, decided: Vec<usize>, id: u32) {
        for i in decided {
            let open = self.open.len();
            self.open.retain(|o| *o != i);
            if let Some(property) = self.properties.get(i).filter(|_| self.open.len() < open) {
                let actions = self.visited.path_to(id);
                self.report.discoveries.push(Discovery { property: property.name, actions, cycle: Vec::new() });
            }
        }
    }

    /// The states one step behind a level that were not known; none if the search was cut.
    fn expand(&mut self, level: &Level<Packed<M>>, depth: u32) -> Option<Level<Packed<M>>> {
        let mut next = level.next();
        let mut expanded = 0;
        for states in level.states.chunks(self.batch()) {
            let with_goals = self.graph.is_some();
            let (model, store, visited, goals) = (self.model, &self.store, &self.visited, &self.goals);
            let (properties, open) = (&self.properties, &self.open);
            let results = in_parallel(self.options.threads, states, |packed| {
                store.with(packed, |state| {
                    let misses = goals.iter().enumerate().map(|(i, g)| u8::from(!(g.condition)(model, state)) << i).sum();
                    let decided = decided(model, properties, open, state);
                    let steps = steps(model, store, visited, (packed, state), with_goals)?;
                    Some(Expanded { steps, misses, decided })
                })
            });
            for result in results {
                let found = self.report.states + next.states.len() as u64;
                let frontier = (level.states.len() - expanded + next.states.len()) as u64;
                self.report.frontier_peak = self.report.frontier_peak.max(frontier);
                if self.cut(&Progress { states: found, depth, frontier }, expanded as u64) {
                    self.judge(level, expanded);
                    return None;
                }
                match result.flatten() {
                    Some(mut result) => {
                        self.discover(std::mem::take(&mut result.decided), level.id(expanded));
                        self.merge(result, level.id(expanded), &mut next);
                    }
                    None => self.full = Some("a state has more actions than can be numbered"),
                }
                expanded += 1;
            }
        }
        let progress =
            Progress { states: self.report.states + next.states.len() as u64, depth, frontier: next.states.len() as u64 };
        // What could not be numbered last must not be forgotten either.
        if self.full.is_some() && self.cut(&progress, 1) { None } else { Some(next) }
    }

    fn merge(&mut self, expanded: Expanded<M>, id: u32, next: &mut Level<Packed<M>>) {
        if let Some(graph) = &mut self.graph {
            graph.state(expanded.misses);
        }
        for step in expanded.steps {
            self.report.transitions += 1;
            match self.report.kinds.iter_mut().find(|(kind, _)| *kind == step.kind) {
                Some((_, count)) => *count += 1,
                None => self.report.kinds.push((step.kind, 1)),
            }
            let target = self.arrive(step.fingerprint, step.state, (id, step.index), next);
            if let Some(graph) = &mut self.graph {
                let numbered = u32::try_from(self.labels.len()).unwrap_or(UNFAIR);
                let label = step.fair.map_or(UNFAIR, |fair| *self.labels.entry(fair).or_insert(numbered));
                if label == UNFAIR && step.fair.is_some() {
                    self.full = Some("the search cannot number more actions");
                }
                graph.edge(target, step.index, label);
            }
        }
    }

    /// The number of a state that a step, given by its origin and index, has led to; a new one is put into the level.
    fn arrive(
        &mut self,
        fingerprint: u64,
        state: Option<(M::State, Digest<M>)>,
        (parent, action): (u32, u16),
        level: &mut Level<Packed<M>>,
    ) -> u32 {
        let (id, is_new) = self.visited.insert(fingerprint, parent, action);
        if is_new {
            match state.and_then(|(state, digest)| self.store.pack(state, &digest)) {
                Some(packed) => level.states.push(packed),
                None => self.full = Some("the search cannot number more parts of states"),
            }
        } else if id == NO_STATE {
            self.full = Some("the search cannot number more states");
        }
        id
    }

    /// Whether the search ends here; then it is noted why.
    fn cut(&mut self, progress: &Progress, expanded: u64) -> bool {
        let Some(why) = self.reason_to_stop(progress, expanded) else { return false };
        let Progress { states, depth, frontier } = *progress;
        self.report.ending = Ending::Cut(format!("{why} at depth {depth} after {states} states, {frontier} not expanded"));
        self.report.states = states;
        true
    }

    fn reason_to_stop(&mut self, progress: &Progress, expanded: u64) -> Option<String> {
        if let Some(what) = self.full {
            return Some(what.to_owned());
        }
        if let Some(max) = self.options.caps.states.filter(|max| progress.states >= *max) {
            return Some(format!("cap of {max} states hit"));
        }
        if expanded.is_multiple_of(ASK_EVERY) { (self.interrupt)(progress) } else { None }
    }

    /// Looks for a fair run that misses a goal for ever among the states that were expanded (LIVE-3). A state that tells as much is shorter.
    fn judge_goals(&mut self) {
        let Some(graph) = &self.graph else { return };
        let endless = endless(graph, self.goals.len());
        self.report.circles = Some(endless.circles);
        for (goal, lasso) in self.goals.iter().zip(endless.missed) {
            let Some(lasso) = lasso.filter(|_| self.report.discovery(goal.name).is_none()) else { continue };
            let actions = self.visited.path_to(lasso.state);
            self.report.discoveries.push(Discovery { property: goal.name, actions, cycle: lasso.cycle });
        }
    }
}

/// The properties among the open ones that a state decides.
fn decided<M: Explorable>(model: &M, properties: &[Property<M>], open: &[usize], state: &M::State) -> Vec<usize> {
    open.iter().copied().filter(|i| properties.get(*i).is_some_and(|p| decides(model, p, state))).collect()
}

fn decides<M: Explorable>(model: &M, property: &Property<M>, state: &M::State) -> bool {
    let holds = (property.condition)(model, state);
    match property.expectation {
        Expectation::Always => !holds,
        Expectation::Sometimes => holds,
        Expectation::Eventually => false,
    }
}

/// The steps from a state; none if it has more actions than can be numbered.
fn steps<M: Explorable>(
    model: &M,
    store: &M::Store,
    visited: &Visited,
    (packed, state): (&Packed<M>, &M::State),
    with_goals: bool,
) -> Option<Vec<Step<M>>> {
    let mut actions = Vec::new();
    model.actions(state, &mut actions);
    let mut steps = Vec::with_capacity(actions.len());
    for (index, action) in actions.into_iter().enumerate() {
        let index = u16::try_from(index).ok()?;
        let kind = model.kind(&action);
        let fair = if with_goals { model.fair(&action) } else { None };
        let Some(next) = model.next_state(state, action).filter(|next| model.within_boundary(next)) else { continue };
        let (fingerprint, digest) = store.digest(&next, Some((packed, state)));
        let state = visited.find(fingerprint).is_none().then_some((next, digest));
        steps.push(Step { index, kind, fair, fingerprint, state });
    }
    Some(steps)
}

/// Applies a function to all items, with several threads; the results are in the order of the items.
fn in_parallel<T: Sync, R: Send>(threads: usize, items: &[T], apply: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if threads <= 1 || items.len() < threads {
        return items.iter().map(apply).collect();
    }
    let apply = &apply;
    let mut shares = items.chunks(items.len().div_ceil(threads));
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || share.iter().map(apply).collect::<Vec<_>>())).collect();
        let mut results: Vec<R> = own.iter().map(apply).collect();
        for other in others {
            match other.join() {
                Ok(found) => results.extend(found),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}
