//! Kafka's LogLoaderTest.

mod files;
mod producers;
mod splits;
mod transactions;
