//! The traps of Kafka 4.3.1's log: what is easily done otherwise. One test a trap, in the order of the list that they come
//! from; `k07_...` is the seventh. Each was seen on Kafka's own classes.
//!
//! `loading` has no numbers: it is what becomes of each file when a log is opened.
//!
//! Trap 40 is about the lines that Kafka's dump tool prints, which is none of a log's business.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

mod compaction;
mod files;
mod loading;
#[path = "../log_support/mod.rs"]
mod log_support;
mod producers;
mod records;
mod replication;
mod snapshots;
mod support;
