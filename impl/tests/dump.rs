//! What is dumped of files, held against what Kafka's own tool prints.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

#[path = "dump/arbitrary.rs"]
mod arbitrary;
#[path = "dump/damaged.rs"]
mod damaged;
#[path = "dump/golden.rs"]
mod golden;
#[path = "dump/json.rs"]
mod json;
#[path = "dump/support.rs"]
mod support;
