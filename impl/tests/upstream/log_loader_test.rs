//! Kafka's LogLoaderTest.

mod files;
mod producers;
mod transactions;
