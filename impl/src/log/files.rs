//! The names of a log's files, as Kafka has them in a partition directory.

/// The one segment: 20 digits of its base offset, 0.
pub const LOG_FILE: &str = "00000000000000000000.log";

/// The aborted transactions of the segment.
pub const TXN_INDEX_FILE: &str = "00000000000000000000.txnindex";

/// Leader epochs and where they begin.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
