//! Kafka's UnifiedLogTest of the core module.

mod failures;
mod logs;
pub(crate) mod script;
mod transactions;
mod verification;
