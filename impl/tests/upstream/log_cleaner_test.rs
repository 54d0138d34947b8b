#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LogCleanerTest.

mod cleaning;
mod files;
mod producers;
mod transactions;
