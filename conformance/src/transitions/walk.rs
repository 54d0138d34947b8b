//! Walks through a graph that together take every edge.

use std::collections::{BTreeSet, HashMap, VecDeque};

/// A walk that has become so long ends; the next one begins at the root.
const MAX_EDGES: usize = 400;
/// How many nodes are looked at for a way on from where a walk is stuck.
const MAX_LOOKED_AT: usize = 500;
/// What beginning again costs beside the way from the root, in edges.
const RESTART: usize = 2;

/// A graph of which some edges are still to be taken. Node 0 is the root.
#[derive(Debug)]
pub struct Walks {
    /// The target of each edge.
    to: Vec<usize>,
    /// The edges that leave each node.
    out: Vec<Vec<usize>>,
    /// Those that are still to be taken, the next one last.
    untaken: Vec<Vec<usize>>,
    /// The last edge of the shortest path to each node, and where it begins; none for the root.
    last: Vec<Option<(usize, usize)>>,
    /// The nodes that have untaken edges, with the length of the shortest path to each.
    open: BTreeSet<(usize, usize)>,
    depth: Vec<usize>,
}

impl Walks {
    /// A graph by the ends of its edges. Edges that cannot be reached from the root are never taken.
    #[must_use]
    pub fn new(edges: &[(usize, usize)]) -> Self {
        let nodes = edges.iter().map(|(from, to)| from.max(to) + 1).max().unwrap_or(1);
        let mut out = vec![Vec::new(); nodes];
        for (edge, (from, _)) in edges.iter().enumerate() {
            if let Some(out) = out.get_mut(*from) {
                out.push(edge);
            }
        }
        let to: Vec<usize> = edges.iter().map(|(_, to)| *to).collect();
        let (mut last, mut depth, mut open) = (vec![None; nodes], vec![usize::MAX; nodes], BTreeSet::new());
        let mut queue = VecDeque::from([(0, 0)]);
        depth.iter_mut().take(1).for_each(|root| *root = 0);
        while let Some((node, steps)) = queue.pop_front() {
            let leaving: &[usize] = out.get(node).map_or(&[], Vec::as_slice);
            if !leaving.is_empty() {
                open.insert((steps, node));
            }
            for edge in leaving {
                let next = to.get(*edge).copied().unwrap_or(0);
                if let Some(far) = depth.get_mut(next).filter(|far| **far == usize::MAX) {
                    *far = steps + 1;
                    last.iter_mut().skip(next).take(1).for_each(|last| *last = Some((*edge, node)));
                    queue.push_back((next, steps + 1));
                }
            }
        }
        // What leads back to the same node comes first: it costs nothing on the way.
        let untaken = out.iter().enumerate().map(|(node, leaving)| {
            let loops = |edge: &&usize| to.get(**edge) == Some(&node);
            let (stays, leaves): (Vec<&usize>, Vec<&usize>) = leaving.iter().partition(loops);
            stays.into_iter().chain(leaves).rev().copied().collect()
        });
        Self { untaken: untaken.collect(), to, out, last, open, depth }
    }

    /// The shortest path from the root to a node, as edges.
    #[must_use]
    pub fn path_to(&self, node: usize) -> Vec<usize> {
        let (mut path, mut at) = (Vec::new(), node);
        while let Some((edge, before)) = self.last.get(at).copied().flatten() {
            path.push(edge);
            at = before;
        }
        path.reverse();
        path
    }

    fn target(&self, edge: usize) -> usize {
        self.to.get(edge).copied().unwrap_or(0)
    }

    /// An untaken edge that leaves the node; it is taken now.
    fn take(&mut self, node: usize) -> Option<usize> {
        let untaken = self.untaken.get_mut(node)?;
        let edge = untaken.pop()?;
        if untaken.is_empty() {
            let depth = self.depth.get(node).copied().unwrap_or(0);
            self.open.remove(&(depth, node));
        }
        Some(edge)
    }

    /// A way on from a node without untaken edges to one that has some, if that is shorter than to begin again.
    fn way_on(&self, node: usize) -> Option<Vec<usize>> {
        let limit = self.open.first()?.0 + RESTART;
        let mut came: HashMap<usize, (usize, usize)> = HashMap::new();
        let mut queue = VecDeque::from([(node, 0)]);
        while let Some((at, steps)) = queue.pop_front() {
            if steps >= limit || came.len() > MAX_LOOKED_AT {
                return None;
            }
            for edge in self.out.get(at).map_or(&[][..], Vec::as_slice) {
                let next = self.target(*edge);
                if next == node || came.contains_key(&next) {
                    continue;
                }
                came.insert(next, (*edge, at));
                if self.untaken.get(next).is_some_and(|untaken| !untaken.is_empty()) {
                    let (mut path, mut back) = (Vec::new(), next);
                    while let Some((edge, before)) = came.get(&back) {
                        path.push(*edge);
                        back = *before;
                    }
                    path.reverse();
                    return Some(path);
                }
                queue.push_back((next, steps + 1));
            }
        }
        None
    }
}

/// Each walk begins at the root and takes at least one edge that no walk has taken before.
impl Iterator for Walks {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let (_, nearest) = *self.open.first()?;
        let (mut walk, mut at) = (self.path_to(nearest), nearest);
        loop {
            while let Some(edge) = self.take(at) {
                walk.push(edge);
                at = self.target(edge);
            }
            match self.way_on(at) {
                Some(way) if walk.len() < MAX_EDGES => {
                    at = way.last().map_or(at, |edge| self.target(*edge));
                    walk.extend(way);
                }
                _ => return Some(walk),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MAX_EDGES, Walks};

    /// The walks of a graph, each checked to be a path from the root.
    fn walks(edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let walks: Vec<Vec<usize>> = Walks::new(edges).collect();
        for walk in &walks {
            let mut at = 0;
            for edge in walk {
                assert_eq!(edges[*edge].0, at, "{walk:?}");
                at = edges[*edge].1;
            }
        }
        walks
    }

    fn taken(walks: &[Vec<usize>]) -> BTreeSet<usize> {
        walks.iter().flatten().copied().collect()
    }

    #[test]
    fn every_edge_that_can_be_reached_is_taken() {
        // A loop at the root, a circle, two ends, two edges between the same nodes, and one that cannot be reached.
        let edges = [(0, 1), (0, 0), (1, 2), (2, 0), (1, 3), (2, 4), (2, 4), (5, 1)];
        let walks = walks(&edges);
        assert_eq!(taken(&walks), (0..7).collect());
        // Loops first; from an end there is no way on but to begin again.
        assert_eq!(walks[0], [1, 0, 2, 3, 0, 4]);
        assert_eq!(walks[1..], [vec![0, 2, 5], vec![0, 2, 6]]);
    }

    #[test]
    fn nothing_is_walked_where_there_is_nothing() {
        assert!(walks(&[]).is_empty());
        assert!(walks(&[(1, 0)]).is_empty());
    }

    #[test]
    fn a_way_on_is_taken_unless_a_new_beginning_is_shorter() {
        // Behind the circle 0-1-2-0 node 1 has another edge: from 0 it is one edge away.
        assert_eq!(walks(&[(0, 1), (1, 2), (2, 0), (1, 3)]), [vec![0, 1, 2, 0, 3]]);
        // The way back over a long chain is longer than a new beginning.
        let mut edges: Vec<(usize, usize)> = (0..10).map(|n| (n, n + 1)).collect();
        edges.extend([(10, 0), (0, 11)]);
        let chain: Vec<usize> = (0..11).collect();
        assert_eq!(walks(&edges), [[chain, vec![11]].concat()]);
        edges[10] = (10, 1);
        assert_eq!(walks(&edges).len(), 2);
    }

    #[test]
    fn walks_are_bounded() {
        let edges: Vec<(usize, usize)> = (0..5 * MAX_EDGES).map(|_| (0, 1)).chain([(1, 0)]).collect();
        let walks = walks(&edges);
        assert_eq!(taken(&walks).len(), edges.len());
        assert!(walks.len() > 2 && walks.iter().all(|walk| walk.len() <= MAX_EDGES + 3), "{}", walks.len());
    }
}
