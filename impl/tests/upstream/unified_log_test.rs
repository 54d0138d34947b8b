//! Kafka's UnifiedLogTest of the storage module.

mod offsets;
mod producers;
mod reads;
mod retention;
mod rolling;
mod timestamps;
mod topic_id;
