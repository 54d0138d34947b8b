//! Hash tables that hold numbers only: what is numbered lies elsewhere, in the order of the numbers.

const FREE: u32 = u32::MAX;

/// Finds the number of a value by its hash. Values are numbered from 0 without a gap; all but `u32::MAX` can be numbered.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The hash of each value.
    hashes: Vec<u64>,
    /// Numbers at the place of their hash or behind it; a power of two of them, at most three quarters in use.
    slots: Vec<u32>,
}

impl Table {
    /// The hash of a value.
    pub(super) fn hash(&self, id: u32) -> u64 {
        self.hashes.get(id as usize).copied().unwrap_or_default()
    }

    /// The number of the value with this hash that `is` accepts.
    pub(super) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut slot = self.place(hash)?;
        loop {
            match self.slots.get(slot).copied() {
                None | Some(FREE) => return None,
                Some(id) if self.hash(id) == hash && is(id) => return Some(id),
                Some(_) => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Numbers a value that was not found; none if there is no number left.
    pub(super) fn add(&mut self, hash: u64) -> Option<u32> {
        let id = u32::try_from(self.hashes.len()).ok().filter(|id| *id != FREE)?;
        self.hashes.push(hash);
        if self.hashes.len() * 4 > self.slots.len() * 3 {
            self.grow();
        } else {
            self.put(id);
        }
        Some(id)
    }

    /// What it holds, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.hashes.capacity() * 8 + self.slots.capacity() * 4
    }

    fn place(&self, hash: u64) -> Option<usize> {
        // The upper half: the hashers mix it best, and the table has never more places than that.
        let mask = self.slots.len().checked_sub(1)?;
        Some((hash >> 32) as usize & mask)
    }

    fn grow(&mut self) {
        let wanted = (self.slots.len() * 2).max(16);
        self.slots.clear();
        self.slots.resize(wanted, FREE);
        (0..self.hashes.len()).filter_map(|id| u32::try_from(id).ok()).for_each(|id| self.put(id));
    }

    fn put(&mut self, id: u32) {
        let Some(mut slot) = self.place(self.hash(id)) else { return };
        while self.slots.get(slot).is_some_and(|s| *s != FREE) {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        if let Some(free) = self.slots.get_mut(slot) {
            *free = id;
        }
    }
}

/// The states by their fingerprints, each with its parent for the way back.
#[derive(Debug, Default)]
pub(super) struct Visited {
    known: Table,
    parents: Vec<u32>,
    actions: Vec<u16>,
}

/// The parent of an initial state, and the number of a state that could not be numbered.
pub(super) const NO_STATE: u32 = u32::MAX;

impl Visited {
    /// The number of a known state.
    pub(super) fn find(&self, fingerprint: u64) -> Option<u32> {
        self.known.find(fingerprint, |_| true)
    }

    /// The number of a state, and whether it is new; [`NO_STATE`] if there is no number left.
    pub(super) fn insert(&mut self, fingerprint: u64, parent: u32, action: u16) -> (u32, bool) {
        if let Some(id) = self.find(fingerprint) {
            return (id, false);
        }
        let Some(id) = self.known.add(fingerprint) else { return (NO_STATE, false) };
        self.parents.push(parent);
        self.actions.push(action);
        (id, true)
    }

    /// The action indices that lead to a state.
    pub(super) fn path_to(&self, mut id: u32) -> Vec<u16> {
        let mut path = Vec::new();
        while let (Some(parent), Some(action)) = (self.parents.get(id as usize), self.actions.get(id as usize)) {
            if *parent == NO_STATE {
                break;
            }
            path.push(*action);
            id = *parent;
        }
        path.reverse();
        path
    }

    /// What it holds, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.known.bytes() + self.parents.capacity() * 4 + self.actions.capacity() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_are_told_apart() {
        let mut table = Table::default();
        let names = ["a", "b", "c"];
        for _ in names {
            table.add(7 << 32);
        }
        for (id, name) in names.iter().enumerate() {
            assert_eq!(table.find(7 << 32, |i| names[i as usize] == *name), Some(id as u32));
        }
        assert_eq!(table.find(7 << 32, |_| false), None);
        assert_eq!(table.find(8 << 32, |_| true), None);
    }

    #[test]
    fn every_state_is_found_again_after_growth_and_around_the_end() {
        let mut visited = Visited::default();
        let fingerprint = |i: u32| (u64::MAX - u64::from(i % 5)) ^ u64::from(i);
        let all: std::collections::BTreeSet<_> = (0..10_000).map(fingerprint).collect();
        for f in &all {
            assert_eq!(visited.find(*f), None);
            assert!(visited.insert(*f, NO_STATE, 0).1);
        }
        for (i, f) in all.iter().enumerate() {
            assert_eq!(visited.insert(*f, NO_STATE, 0), (i as u32, false));
        }
    }
}
