//! The scenarios of Apache Kafka's own unit tests of its log, with the same numbers: `specs/upstream-tests.md` says
//! which, and which not and why. A module is an upstream class, a function is an upstream test.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

#[path = "upstream/mod.rs"]
mod upstream;
