//! Strongly connected components, by Tarjan's algorithm without recursion.

use super::Graph;

const NONE: u32 = u32::MAX;

/// A state on the way, and which of its steps are still to be followed, by their places in the list of all steps.
struct Frame {
    state: u32,
    next: usize,
    end: usize,
}

struct Tarjan<'g> {
    graph: &'g Graph,
    /// When a state was seen first.
    seen: Vec<u32>,
    /// The earliest state on the stack that is known to be reached from a state.
    low: Vec<u32>,
    /// The component of each state, once it is complete.
    component: Vec<u32>,
    stack: Vec<u32>,
    way: Vec<Frame>,
    clock: u32,
}

fn get(list: &[u32], state: u32) -> u32 {
    list.get(state as usize).copied().unwrap_or(NONE)
}

fn set(list: &mut [u32], state: u32, value: u32) {
    if let Some(slot) = list.get_mut(state as usize) {
        *slot = value;
    }
}

impl Tarjan<'_> {
    fn enter(&mut self, state: u32) {
        set(&mut self.seen, state, self.clock);
        set(&mut self.low, state, self.clock);
        self.clock += 1;
        self.stack.push(state);
        let (next, end) = self.graph.range(state);
        self.way.push(Frame { state, next, end });
    }

    fn lower(&mut self, state: u32, value: u32) {
        let low = get(&self.low, state).min(value);
        set(&mut self.low, state, low);
    }

    /// Follows steps until a component is complete, and returns its root; none if all that can be reached is done.
    fn walk(&mut self) -> Option<u32> {
        loop {
            let frame = self.way.last_mut()?;
            let state = frame.state;
            if frame.next < frame.end {
                let edge = self.graph.at(frame.next);
                frame.next += 1;
                let Some(target) = edge.map(|e| e.target).filter(|t| (*t as usize) < self.seen.len()) else { continue };
                if get(&self.seen, target) == NONE {
                    self.enter(target);
                } else if get(&self.component, target) == NONE {
                    self.lower(state, get(&self.seen, target));
                }
                continue;
            }
            self.way.pop();
            if let Some(parent) = self.way.last().map(|f| f.state) {
                self.lower(parent, get(&self.low, state));
            }
            if get(&self.low, state) == get(&self.seen, state) {
                return Some(state);
            }
        }
    }
}

/// The number of each state's component. `found` is called when one is complete, with its members, its number, and the numbers so far.
pub(super) fn components(graph: &Graph, mut found: impl FnMut(&[u32], u32, &[u32])) -> Vec<u32> {
    let none = || vec![NONE; graph.len()];
    let (seen, low, component) = (none(), none(), none());
    let mut tarjan = Tarjan { graph, seen, low, component, stack: Vec::new(), way: Vec::new(), clock: 0 };
    let mut number = 0;
    for start in 0..u32::try_from(graph.len()).unwrap_or(NONE) {
        if get(&tarjan.seen, start) != NONE {
            continue;
        }
        tarjan.enter(start);
        while let Some(root) = tarjan.walk() {
            let from = tarjan.stack.iter().rposition(|s| *s == root).unwrap_or_default();
            let members = tarjan.stack.split_off(from);
            members.iter().for_each(|s| set(&mut tarjan.component, *s, number));
            found(&members, number, &tarjan.component);
            number += 1;
        }
    }
    tarjan.component
}
