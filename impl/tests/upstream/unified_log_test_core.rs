//! Kafka's UnifiedLogTest of the core module.

mod logs;
pub(crate) mod script;
mod transactions;
mod verification;
