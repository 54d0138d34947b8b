//! Partition directories that Apache Kafka wrote, held against what Kafka says of them (`corpus/README.md`).
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

#[path = "corpus/batches.rs"]
mod batches;
#[path = "corpus/files.rs"]
mod files;
#[path = "corpus/loads.rs"]
mod loads;
#[path = "corpus/log_dir.rs"]
mod log_dir;
#[path = "corpus/manifest.rs"]
mod manifest;
#[path = "corpus/sidecars.rs"]
mod sidecars;
