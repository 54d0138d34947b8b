//! Liveness, exactly: whether a goal holds from some point on along every weakly fair run of an explored graph (LIVE-3).
//!
//! A run is weakly fair if no fair action is available from some point on without being taken. A run that is for ever in a set of states,
//! strongly connected by the steps inside, is fair if each fair action is unavailable in one of the states or taken by a step inside; a run
//! that ends is one that stays in a state without a fair action. Whatever makes a part of a strongly connected component fair makes the
//! whole component fair, so a goal can be missed for ever exactly if a fair run can stay in a component that has a state that misses it.
//! `model/tests/liveness.rs` compares this with a look at all sets of states.
//!
//! Actions are numbered; [`UNFAIR`] is the number of those that may be neglected.

mod components;
mod lasso;

use components::components;
use lasso::cycle;

/// The label of an action that may be neglected for ever.
pub const UNFAIR: u32 = u32::MAX;

/// A graph of states, numbered from 0, each with its steps.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Where the steps of each state begin.
    starts: Vec<u64>,
    targets: Vec<u32>,
    indices: Vec<u16>,
    labels: Vec<u32>,
    misses: Vec<u8>,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The state that it leads to. One that the graph lacks was not expanded: nothing is known of what follows.
    pub target: u32,
    /// The action's index among the actions of the state.
    pub index: u16,
    /// The action's number.
    pub label: u32,
}

impl Graph {
    /// Adds the next state, with a bit for each goal that it misses.
    pub fn state(&mut self, misses: u8) {
        self.starts.push(self.targets.len() as u64);
        self.misses.push(misses);
    }

    /// Adds a step to the state that was added last.
    pub fn edge(&mut self, target: u32, index: u16, label: u32) {
        self.targets.push(target);
        self.indices.push(index);
        self.labels.push(label);
    }

    /// The number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// What it holds, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.starts.capacity() * 8 + self.targets.capacity() * 10 + self.misses.capacity()
    }

    /// The places of a state's steps in the list of all steps.
    fn range(&self, state: u32) -> (usize, usize) {
        let at = |i: usize| self.starts.get(i).and_then(|s| usize::try_from(*s).ok()).unwrap_or(self.targets.len());
        (at(state as usize), at(state as usize + 1))
    }

    fn at(&self, place: usize) -> Option<Edge> {
        Some(Edge { target: *self.targets.get(place)?, index: *self.indices.get(place)?, label: *self.labels.get(place)? })
    }

    /// The steps of a state.
    pub fn edges(&self, state: u32) -> impl Iterator<Item = Edge> + '_ {
        let (from, to) = self.range(state);
        (from..to).filter_map(|place| self.at(place))
    }

    fn misses(&self, state: u32) -> u8 {
        self.misses.get(state as usize).copied().unwrap_or_default()
    }

    /// The fair actions that are available in a state.
    fn fair(&self, state: u32) -> Vec<u32> {
        self.edges(state).map(|e| e.label).filter(|l| *l != UNFAIR).collect()
    }

    fn offers(&self, state: u32, label: u32) -> bool {
        self.edges(state).any(|e| e.label == label)
    }
}

/// A run that misses a goal again and again: to a state, and then for ever around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasso {
    /// A state that misses the goal: the one with the least number of all in whose component a fair run can stay.
    pub state: u32,
    /// The action indices of a fair way from it back to it; empty if the run can end there.
    pub cycle: Vec<u16>,
}

/// What can go on for ever in a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endless {
    /// For each goal a fair run that misses it for ever, if there is one.
    pub missed: Vec<Option<Lasso>>,
    /// How many components have more than one state. If there are none, every run ends, or stays in a state that its steps do not change.
    pub circles: u64,
}

/// Looks for runs that miss a goal for ever; the goals' bits in [`Graph::state`] are counted from 0, and there are at most eight.
#[must_use]
pub fn endless(graph: &Graph, goals: usize) -> Endless {
    let mut circles = 0;
    let mut worst: Vec<Option<(u32, u32)>> = vec![None; goals.min(8)];
    let of = components(graph, |members, component, of| {
        circles += u64::from(members.len() > 1);
        let missed = members.iter().fold(0, |all, s| all | graph.misses(*s));
        if missed == 0 || !can_stay(graph, members, |s| of.get(s as usize) == Some(&component)) {
            return;
        }
        for (goal, found) in worst.iter_mut().enumerate() {
            let least = members.iter().copied().filter(|s| graph.misses(*s) & (1 << goal) != 0).min();
            if let Some(state) = least.filter(|s| found.is_none_or(|(best, _)| *s < best)) {
                *found = Some((state, component));
            }
        }
    });
    let lasso = |(state, component)| Lasso { state, cycle: cycle(graph, state, |s| of.get(s as usize) == Some(&component)) };
    Endless { missed: worst.into_iter().map(|found| found.map(lasso)).collect(), circles }
}

/// Whether a fair run can stay in a component: none of the fair actions that are available in all of its states always leads out of it.
fn can_stay(graph: &Graph, members: &[u32], inside: impl Fn(u32) -> bool) -> bool {
    let Some((first, others)) = members.split_first() else { return false };
    let mut forced = graph.fair(*first);
    for state in others {
        if forced.is_empty() {
            break;
        }
        forced.retain(|l| graph.offers(*state, *l));
    }
    let taken = |label: u32| members.iter().any(|s| graph.edges(*s).any(|e| e.label == label && inside(e.target)));
    forced.into_iter().all(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_to_a_state_that_was_not_expanded_leaves_the_component() {
        // State 0 misses the goal and can only go where nothing is known of: it is not stuck.
        let mut graph = Graph::default();
        graph.state(1);
        graph.edge(1, 0, 0);
        assert_eq!(endless(&graph, 1).missed, [None]);
        // The same step, if it may be neglected, is neglected.
        let mut graph = Graph::default();
        graph.state(1);
        graph.edge(1, 0, UNFAIR);
        assert_eq!(endless(&graph, 1).missed, [Some(Lasso { state: 0, cycle: Vec::new() })]);
    }
}
