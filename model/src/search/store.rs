//! How states wait to be expanded: as they are, or taken apart so that equal parts are held once.

use std::hash::Hash;

use ahash::RandomState;

use super::table::Table;

/// Keeps the states that wait to be expanded.
pub trait Store<S>: Sync {
    /// A state as it is kept.
    type Packed: Send + Sync;
    /// What the fingerprint was made of, so that a new state need not be looked at a second time.
    type Digest: Send;

    /// A state's fingerprint: equal for equal states, the same in every run. `from` is the state that a step led from to this one, if
    /// any, as the store gave it, so that what the two share need not be looked at.
    fn digest(&self, state: &S, from: Option<(&Self::Packed, &S)>) -> (u64, Self::Digest);

    /// Takes a state in; none if there is no room for more parts.
    fn pack(&mut self, state: S, digest: &Self::Digest) -> Option<Self::Packed>;

    /// Gives a state back for a while; none if it is not from this store.
    fn with<R>(&self, packed: &Self::Packed, then: impl FnOnce(&S) -> R) -> Option<R>;

    /// What the parts take, in bytes, roughly.
    fn bytes(&self) -> usize;
}

/// A hasher with fixed keys: state counts and paths are the same in every run.
#[must_use]
pub fn fixed_hasher() -> RandomState {
    RandomState::with_seeds(0x636c_6561, 0x6e73_6c61, 0x7465, 1279)
}

/// Keeps states as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl<S: Hash + Send + Sync> Store<S> for Plain {
    type Packed = S;
    type Digest = ();

    fn digest(&self, state: &S, _from: Option<(&S, &S)>) -> (u64, ()) {
        (fixed_hasher().hash_one(state), ())
    }

    fn pack(&mut self, state: S, _digest: &()) -> Option<S> {
        Some(state)
    }

    fn with<R>(&self, packed: &S, then: impl FnOnce(&S) -> R) -> Option<R> {
        Some(then(packed))
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Holds each of equal values once and numbers them.
#[derive(Debug)]
pub struct Intern<T> {
    values: Vec<T>,
    table: Table,
}

impl<T> Default for Intern<T> {
    fn default() -> Self {
        Self { values: Vec::new(), table: Table::default() }
    }
}

impl<T: Eq> Intern<T> {
    /// The number of a value; none if there is no number left. `hash` must be equal for equal values; `keep` copies a new one.
    pub fn intern(&mut self, hash: u64, value: &T, keep: impl FnOnce(&T) -> T) -> Option<u32> {
        if let Some(id) = self.table.find(hash, |id| self.get(id) == Some(value)) {
            return Some(id);
        }
        let id = self.table.add(hash)?;
        self.values.push(keep(value));
        Some(id)
    }

    /// The value with this number.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&T> {
        self.values.get(id as usize)
    }

    /// The hash that a value was given with.
    #[must_use]
    pub fn hash(&self, id: u32) -> u64 {
        self.table.hash(id)
    }

    /// How many different values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What it holds, in bytes, without what the values point to.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.table.bytes()
    }
}
