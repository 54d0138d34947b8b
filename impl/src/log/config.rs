//! What a log is made with.

use crate::barrier::BarrierPolicy;
use crate::psm::{ProducerIdVisibility, ProducerStateManager};

/// Settings of a log. The default is that of stock Kafka 4.3.1, except that transactions are not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// What a barrier does.
    pub barrier: BarrierPolicy,
    /// Which producer ids state is kept for.
    pub ids: ProducerIdVisibility,
    /// How long a producer is remembered after its last batch, in milliseconds (`producer.id.expiration.ms`).
    pub producer_id_expiration_ms: i64,
    /// Size of the largest batch that a leader appends, in bytes (`max.message.bytes`).
    pub max_message_bytes: usize,
    /// Size of the largest append, in bytes (`segment.bytes`).
    pub segment_bytes: usize,
    /// How far a record's timestamp may be ahead of the clock when a leader appends it, in milliseconds
    /// (`message.timestamp.after.max.ms`).
    pub timestamp_after_max_ms: i64,
    /// How far a record's timestamp may be behind the clock when a leader appends it, in milliseconds
    /// (`message.timestamp.before.max.ms`).
    pub timestamp_before_max_ms: i64,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            barrier: BarrierPolicy::default(),
            ids: ProducerIdVisibility::default(),
            producer_id_expiration_ms: 86_400_000,
            max_message_bytes: 1_048_588,
            segment_bytes: 1 << 30,
            timestamp_after_max_ms: 3_600_000,
            timestamp_before_max_ms: i64::MAX,
        }
    }
}

impl LogConfig {
    /// The state of a log without producers.
    pub(super) fn new_producer_state(&self) -> ProducerStateManager {
        ProducerStateManager::new(self.ids, self.producer_id_expiration_ms)
    }
}

/// How a log is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// After an orderly stop: the bytes are trusted, producer state comes from the newest snapshot and a replay of what
    /// follows it.
    Clean,
    /// After a crash: all batches are checked, the log is cut at the first that is torn or corrupt, and producer state
    /// is rebuilt.
    Unclean,
}

/// Up to where a reader may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchIsolation {
    /// The log end offset: followers.
    LogEnd,
    /// The high watermark: read-uncommitted consumers.
    HighWatermark,
    /// The last stable offset: read-committed consumers.
    TxnCommitted,
}
