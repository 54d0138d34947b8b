//! What an adapter can do, by its own account.

use std::collections::BTreeSet;

use super::message::{OPTIONAL, REQUIRED};
use super::strict::FEATURES;

/// The operations and features that an adapter lists. What is not listed is never asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    operations: BTreeSet<String>,
    features: BTreeSet<String>,
}

impl Abilities {
    /// These operations and features.
    #[must_use]
    pub fn new(operations: &[String], features: &[String]) -> Self {
        Self { operations: operations.iter().cloned().collect(), features: features.iter().cloned().collect() }
    }

    /// Everything that the protocol has.
    #[must_use]
    pub fn all() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Self::new(&[names(&REQUIRED), names(&OPTIONAL)].concat(), &names(&FEATURES))
    }

    /// What every adapter has: the required operations, and no feature.
    #[must_use]
    pub fn required() -> Self {
        Self::new(&REQUIRED.map(ToOwned::to_owned), &[])
    }

    /// True if nothing of the protocol is missing.
    #[must_use]
    pub fn is_all(&self) -> bool {
        REQUIRED.iter().chain(&OPTIONAL).all(|operation| self.knows(operation)) && FEATURES.iter().all(|feature| self.has(feature))
    }

    /// True if the operation of this name is listed.
    #[must_use]
    pub fn knows(&self, operation: &str) -> bool {
        self.operations.contains(operation)
    }

    /// True if the feature is listed.
    #[must_use]
    pub fn has(&self, feature: &str) -> bool {
        self.features.contains(feature)
    }
}
