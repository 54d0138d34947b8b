//! A record as the application gets it.

use crate::record::{Header, TimestampType};
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// A record whose key and value were read by deserializers (Kafka: `ConsumerRecord`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerRecord<K, V> {
    /// Position in the partition log.
    pub offset: Offset,
    /// Epoch of the leader that appended the batch; `None` before magic 2 and where the batch has none.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Milliseconds; -1 for none.
    pub timestamp: TimestampMs,
    /// What the timestamp means; `None` in magic 0, which has none.
    pub timestamp_type: Option<TimestampType>,
    /// The key; a null is not handed to a deserializer.
    pub key: Option<K>,
    /// The value; a null is not handed to a deserializer.
    pub value: Option<V>,
    /// The headers, in their order.
    pub headers: Vec<Header>,
}
