//! Pictures and the transitions between them, each once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::op::LogOp;
use super::picture::Picture;
use crate::sequence::needs::Names;
use crate::target::Observed;

/// One log-level transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The number of the picture before it.
    pub from: usize,
    /// What happens.
    pub op: LogOp,
    /// What comes of it.
    pub result: Observed,
    /// The number of the picture after it.
    pub to: usize,
    /// Where the model takes it.
    pub met: Met,
}

/// A place in the model where a transition is taken: the first of those with the fewest steps in the first scenario that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Met {
    /// The number of the scenario.
    pub scenario: usize,
    /// The steps before it.
    pub depth: u32,
}

/// The same picture and operation have led elsewhere before: a picture lacks something that decides what a log does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op} leads from one picture to two ({first} and {second}), {what} differs: the picture of a log is not whole")]
pub struct TwoWays {
    /// The operation.
    pub op: String,
    /// The result at first.
    pub first: String,
    /// The result now.
    pub second: String,
    /// The result or the picture.
    pub what: &'static str,
}

#[derive(Clone, Debug)]
struct Taken {
    result: Observed,
    to: usize,
    met: Met,
}

/// A graph that is being collected. It holds every distinct picture once.
#[derive(Debug)]
pub struct Collected {
    pictures: Vec<Arc<Picture>>,
    numbers: HashMap<Arc<Picture>, usize>,
    taken: HashMap<(usize, LogOp), Taken>,
}

impl Collected {
    /// A graph of nothing but the empty log.
    #[must_use]
    pub fn new(empty: Picture) -> Self {
        let mut collected = Self { pictures: Vec::new(), numbers: HashMap::new(), taken: HashMap::new() };
        collected.number(empty);
        collected
    }

    /// The number of a picture, which is new or known.
    pub fn number(&mut self, picture: Picture) -> usize {
        if let Some(number) = self.numbers.get(&picture) {
            return *number;
        }
        let (number, picture) = (self.pictures.len(), Arc::new(picture));
        self.pictures.push(Arc::clone(&picture));
        self.numbers.insert(picture, number);
        number
    }

    /// Adds a transition.
    ///
    /// # Errors
    /// [`TwoWays`] if it has led elsewhere before.
    pub fn add(&mut self, transition: Transition) -> Result<(), TwoWays> {
        let Transition { from, op, result, to, met } = transition;
        let two = |op: &LogOp, first: &Taken, what| {
            let show = |observed: &Observed| format!("{observed:?}");
            Err(TwoWays { op: op.to_string(), first: show(&first.result), second: show(&result), what })
        };
        match self.taken.get_mut(&(from, op.clone())) {
            Some(first) if first.result != result => two(&op, first, "the result"),
            Some(first) if first.to != to => two(&op, first, "the picture"),
            Some(first) => {
                first.met = first.met.min(met);
                Ok(())
            }
            None => {
                self.taken.insert((from, op), Taken { result, to, met });
                Ok(())
            }
        }
    }

    /// Adds everything that another graph has.
    ///
    /// # Errors
    /// [`TwoWays`] if a transition leads elsewhere there.
    pub fn absorb(&mut self, other: Self) -> Result<(), TwoWays> {
        let numbers: Vec<usize> = other.pictures.into_iter().map(|picture| self.number(picture.as_ref().clone())).collect();
        let here = |number: usize| numbers.get(number).copied().unwrap_or(0);
        for ((from, op), Taken { result, to, met }) in other.taken {
            self.add(Transition { from: here(from), op, result, to: here(to), met })?;
        }
        Ok(())
    }

    /// The graph, in an order that does not depend on the order of collection: breadth-first from the empty log, by operation.
    #[must_use]
    pub fn into_graph(self) -> Graph {
        let mut out: HashMap<usize, BTreeMap<LogOp, Taken>> = HashMap::new();
        for ((from, op), taken) in self.taken {
            out.entry(from).or_default().insert(op, taken);
        }
        let (mut graph, mut renumbered, mut open) = (Graph::default(), HashMap::from([(0, 0)]), VecDeque::from([0]));
        graph.pictures.extend(self.pictures.first().cloned());
        while let Some(old) = open.pop_front() {
            let from = renumbered.get(&old).copied().unwrap_or(0);
            for (op, Taken { result, to: old_to, met }) in out.remove(&old).unwrap_or_default() {
                let next = graph.pictures.len();
                let to = *renumbered.entry(old_to).or_insert(next);
                if to == next {
                    graph.pictures.extend(self.pictures.get(old_to).cloned());
                    open.push_back(old_to);
                }
                graph.transitions.push(Transition { from, op, result, to, met });
            }
        }
        graph
    }
}

/// Pictures and transitions. The first picture is the empty log, from which all others are reached.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The pictures.
    pub pictures: Vec<Arc<Picture>>,
    /// The transitions, in order of their first picture.
    pub transitions: Vec<Transition>,
}

impl Graph {
    /// What an adapter needs to take the transitions, beside what every adapter has: a new segment leaves a snapshot, and so does a start.
    #[must_use]
    pub fn needs(&self) -> Names {
        let mut needs = Names::new();
        for transition in &self.transitions {
            match transition.op {
                LogOp::Roll => needs.extend(["roll", "flush", "snapshots"]),
                LogOp::Restart { .. } => needs.extend(["snapshots"]),
                _ => {}
            }
        }
        needs
    }
}
