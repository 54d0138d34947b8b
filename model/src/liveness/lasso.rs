//! A fair way around in a component, from a state back to it.

use std::collections::{BTreeMap, VecDeque};

use super::{Edge, Graph};

/// The action indices of a way from a state back to it that stays inside and neglects no fair action; empty if the state offers none.
/// The component must be one that a fair run can stay in.
pub(super) fn cycle(graph: &Graph, start: u32, inside: impl Fn(u32) -> bool) -> Vec<u16> {
    // An action that is not available at the start is not neglected by a run that comes back there again and again.
    let mut owed = graph.fair(start);
    let (mut way, mut here) = (Vec::new(), start);
    while let Some(label) = owed.first().copied() {
        let pays = |edge: &Edge| edge.label == label || !graph.offers(edge.target, label);
        let part = shortest(graph, here, &inside, pays).unwrap_or_default();
        for edge in &part {
            owed.retain(|l| *l != edge.label && graph.offers(edge.target, *l));
            way.push(edge.index);
            here = edge.target;
        }
        owed.retain(|l| *l != label);
    }
    if here != start {
        let back = shortest(graph, here, &inside, |edge| edge.target == start).unwrap_or_default();
        way.extend(back.iter().map(|e| e.index));
    }
    way
}

/// The shortest way from a state, inside, whose last step is one that is wanted.
fn shortest(graph: &Graph, from: u32, inside: impl Fn(u32) -> bool, wanted: impl Fn(&Edge) -> bool) -> Option<Vec<Edge>> {
    let mut came: BTreeMap<u32, Option<(u32, Edge)>> = BTreeMap::from([(from, None)]);
    let mut open = VecDeque::from([from]);
    while let Some(state) = open.pop_front() {
        for edge in graph.edges(state).filter(|e| inside(e.target)) {
            if wanted(&edge) {
                let (mut way, mut at) = (vec![edge], state);
                while let Some(Some((before, edge))) = came.get(&at) {
                    way.push(*edge);
                    at = *before;
                }
                way.reverse();
                return Some(way);
            }
            came.entry(edge.target).or_insert_with(|| {
                open.push_back(edge.target);
                Some((state, edge))
            });
        }
    }
    None
}
