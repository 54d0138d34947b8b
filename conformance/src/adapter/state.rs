//! Everything that can be seen of an open log.

use serde::{Deserialize, Serialize};

use super::strict::{coordinator_epoch, count, leader_epoch, objects, offset, optional_objects, optional_offset, producer_epoch};

/// The observable state of a log. An array is `None` where the adapter lacks the feature that fills it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The first offset of the log.
    #[serde(deserialize_with = "offset")]
    pub log_start_offset: i64,
    /// The offset of the next batch.
    #[serde(deserialize_with = "offset")]
    pub log_end_offset: i64,
    /// The high watermark.
    #[serde(deserialize_with = "offset")]
    pub high_watermark: i64,
    /// The last stable offset.
    #[serde(deserialize_with = "offset")]
    pub last_stable_offset: i64,
    /// The first offset that is undecided, or decided above the high watermark.
    #[serde(deserialize_with = "optional_offset")]
    pub first_unstable_offset: Option<i64>,
    /// Everything below is durable.
    #[serde(deserialize_with = "offset")]
    pub recovery_point: i64,
    /// The offset that the producer state covers.
    #[serde(deserialize_with = "offset")]
    pub map_end_offset: i64,
    /// The producer entries in order of id.
    #[serde(deserialize_with = "objects")]
    pub producers: Vec<Producer>,
    /// The undecided transactions in order of first offset.
    #[serde(deserialize_with = "objects")]
    pub ongoing_transactions: Vec<Transaction>,
    /// The transactions whose marker is not below the high watermark, in order of first offset.
    #[serde(deserialize_with = "objects")]
    pub unreplicated_transactions: Vec<Transaction>,
    /// What is being verified before a transaction begins, in order of id.
    #[serde(deserialize_with = "optional_objects")]
    pub verification: Option<Vec<Verification>>,
    /// The producer state snapshots in order of offset.
    #[serde(deserialize_with = "optional_objects")]
    pub snapshots: Option<Vec<Snapshot>>,
    /// The leader-epoch cache.
    #[serde(deserialize_with = "optional_objects")]
    pub leader_epochs: Option<Vec<LeaderEpoch>>,
    /// The transaction index of all segments.
    #[serde(deserialize_with = "optional_objects")]
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// The segments in order of base offset.
    #[serde(deserialize_with = "optional_objects")]
    pub segments: Option<Vec<Segment>>,
}

impl State {
    /// Each array that a feature fills: the feature's name, and whether the array is there.
    #[must_use]
    pub fn featured(&self) -> [(&'static str, bool); 5] {
        [
            ("transaction-verification", self.verification.is_some()),
            ("snapshots", self.snapshots.is_some()),
            ("leader-epochs", self.leader_epochs.is_some()),
            ("transaction-index", self.aborted_transactions.is_some()),
            ("segments", self.segments.is_some()),
        ]
    }
}

/// An entry of the ProducerStateManager.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// The producer id.
    pub producer_id: i64,
    /// Its epoch; -1 if no batch told one.
    #[serde(deserialize_with = "producer_epoch")]
    pub producer_epoch: i16,
    /// The coordinator epoch of the last marker; -1 for none.
    #[serde(deserialize_with = "coordinator_epoch")]
    pub coordinator_epoch: i32,
    /// The timestamp of the last batch or marker, in milliseconds.
    pub last_timestamp: i64,
    /// Where its open transaction begins.
    #[serde(deserialize_with = "optional_offset")]
    pub txn_first_offset: Option<i64>,
    /// The cached batches, oldest first.
    #[serde(deserialize_with = "objects")]
    pub batches: Vec<CachedBatch>,
}

/// A batch that a resend would be recognised by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachedBatch {
    /// The sequence of the first record.
    pub base_sequence: i32,
    /// The sequence of the last record.
    pub last_sequence: i32,
    /// The offset of the first record.
    pub base_offset: i64,
    /// The offset of the last record.
    pub last_offset: i64,
    /// The batch's largest timestamp, in milliseconds.
    pub timestamp: i64,
}

/// A transaction in the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// The producer id.
    pub producer_id: i64,
    /// Where it begins.
    #[serde(deserialize_with = "offset")]
    pub first_offset: i64,
    /// The offset of its marker, if there is one.
    #[serde(deserialize_with = "optional_offset")]
    pub last_offset: Option<i64>,
}

/// A producer whose transaction is being verified.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// The producer id.
    pub producer_id: i64,
    /// Its epoch.
    #[serde(deserialize_with = "producer_epoch")]
    pub producer_epoch: i16,
    /// The smallest sequence that asked for verification.
    pub lowest_sequence: i32,
    /// Whether the client bumps its epoch with every transaction.
    pub epoch_bump: bool,
    /// The number of its guard.
    #[serde(deserialize_with = "count")]
    pub guard: u32,
}

/// A producer state snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The offset that it covers.
    #[serde(deserialize_with = "offset")]
    pub offset: i64,
    /// Its entries in order of id; none if it cannot be read.
    #[serde(deserialize_with = "optional_objects")]
    pub producers: Option<Vec<Producer>>,
}

/// Where a leader's epoch begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaderEpoch {
    /// The leader's epoch.
    #[serde(deserialize_with = "leader_epoch")]
    pub epoch: i32,
    /// Its first offset.
    #[serde(deserialize_with = "offset")]
    pub start_offset: i64,
}

/// An entry of the transaction index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AbortedTransaction {
    /// The producer id.
    pub producer_id: i64,
    /// Where the transaction begins.
    #[serde(deserialize_with = "offset")]
    pub first_offset: i64,
    /// The offset of its marker.
    #[serde(deserialize_with = "offset")]
    pub last_offset: i64,
    /// The last stable offset when the marker was written; depends on how batches were grouped.
    #[serde(deserialize_with = "offset")]
    pub last_stable_offset: i64,
}

/// A segment of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Its base offset.
    #[serde(deserialize_with = "offset")]
    pub base_offset: i64,
    /// Its size in bytes.
    #[serde(deserialize_with = "count")]
    pub size: u32,
}
