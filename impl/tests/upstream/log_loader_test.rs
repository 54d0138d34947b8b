//! Kafka's LogLoaderTest.

mod directory;
mod files;
mod producers;
mod reads;
mod splits;
mod transactions;
