//! Kafka's ProducerStateManagerTest.

mod sequences;
mod snapshots;
mod transactions;
mod verification;
