//! What a consumer makes of what it fetched (Kafka: `CompletedFetch`).
//!
//! Control batches are for the consumer, not for the application: neither a marker nor a barrier is ever handed out, in either
//! isolation level, and the position goes past them (BAR-17).

mod completed_fetch;
mod error;
mod record;

pub use completed_fetch::CompletedFetch;
pub use error::{ConsumeError, DeserializationError, Origin};
pub use record::ConsumerRecord;
