//! Kafka's UnifiedLogTest of the core module.

mod logs;
mod script;
mod transactions;
mod verification;
