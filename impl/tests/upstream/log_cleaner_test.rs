#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LogCleanerTest.

mod cleaning;
mod files;
mod old_formats;
mod producers;
mod transactions;
