//! Kafka's UnifiedLogTest of the core module.

mod directory;
mod failures;
mod logs;
pub(crate) mod script;
mod splits;
mod transactions;
mod verification;
