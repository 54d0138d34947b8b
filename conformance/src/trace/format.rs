//! The trace file, version 1: the steps of one behaviour as neutral JSON (`specs/trace-format.md`, `specs/trace.schema.json`).
//!
//! A trace names replica logs and log-level operations, each with the result and the observable state that must follow. It holds no
//! type of this code base and no fingerprint of the model, so that any implementation of a partition log can be held against it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The value of [`Trace::format`].
pub const FORMAT: &str = "cleanslate-trace";
/// The topology of a trace that was made by hand for a log alone; every other topology is one of the model's.
pub const BY_HAND: &str = "by-hand";
/// The newest value of [`Trace::version`] that this code reads and the one it writes.
pub const VERSION: u32 = 1;

/// One behaviour: where it starts, its steps, and what goes wrong at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Always [`FORMAT`].
    pub format: String,
    /// The version of this format.
    pub version: u32,
    /// One sentence: what this trace shows.
    pub title: String,
    /// The design, topology and bounds under which the model produced the trace.
    pub scenario: ScenarioRef,
    /// The id of the property that the last step violates, or none for a trace of allowed behaviour.
    pub property: Option<String>,
    /// The violation in one sentence, or none.
    pub violation: Option<String>,
    /// The replica logs, each empty at the start.
    pub replicas: Vec<ReplicaDecl>,
    /// The real producers. No replica knows these names: they are the ground truth that the properties are judged by.
    pub producers: Vec<ProducerDecl>,
    /// The steps, in order, numbered from 1.
    pub steps: Vec<Step>,
}

/// The design, topology and bounds of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRef {
    /// The design's name, e.g. `raw-barrier`, or a variant such as `raw-barrier+propagated=inert`.
    pub design: String,
    /// Every axis of the design with the choice made, so that a reader needs no table of designs.
    pub axes: BTreeMap<String, String>,
    /// The topology's name, e.g. `chain`.
    pub topology: String,
    /// The bounds, by key.
    pub bounds: BTreeMap<String, u32>,
}

/// One replica log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaDecl {
    /// The name that operations use.
    pub name: String,
    /// The cluster to which the replica belongs; also its cluster id in barriers.
    pub cluster: String,
    /// The cluster whose partition this replica mirrors at the start, or none if it starts writable.
    pub mirrors: Option<String>,
}

/// One real producer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProducerDecl {
    /// The name that operations use in `by`.
    pub name: String,
    /// The cluster whose coordinator gives this producer its id.
    pub cluster: String,
    /// What kind of client it is.
    pub kind: ProducerKind,
}

/// The kinds of producers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProducerKind {
    /// No producer id: batches carry -1.
    Plain,
    /// A producer id, epoch and sequences.
    Idempotent,
    /// As idempotent, and all data lies in transactions.
    Transactional,
}

/// One step: what happens, in prose and as operations, and what must be seen after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The step's number, from 1.
    pub n: u32,
    /// The step in prose, one line.
    pub say: String,
    /// The operations of the step in order. A step that touches no log has none.
    pub ops: Vec<Op>,
    /// The observable state after the step of every replica that the operations name.
    pub state: BTreeMap<String, ReplicaState>,
}

/// One log-level operation with its expected result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Op {
    /// One batch is appended by the partition's leader.
    Append {
        /// The replica that appends.
        replica: String,
        /// Whose append this is.
        origin: Origin,
        /// The real producer whose batch or marker this is; none for a barrier.
        by: Option<String>,
        /// The batch as sent: its offset is assigned by the leader.
        batch: Batch,
        /// What must come back.
        expect: Expect,
    },
    /// Whole batches are read from another replica's log and appended with replication origin, after the design's producer id mapping.
    Mirror {
        /// The replica that appends.
        replica: String,
        /// The replica that is read.
        from: String,
        /// The first offset that is read; it equals the log end offset of `replica`.
        offset: i64,
        /// How many batches are read and appended in one call.
        batches: u32,
        /// What must come back.
        expect: Expect,
    },
    /// The log is cut so that its end is `offset`.
    Truncate {
        /// The replica that truncates.
        replica: String,
        /// The new log end offset.
        offset: i64,
    },
    /// The high watermark becomes `offset`.
    HighWatermark {
        /// The replica.
        replica: String,
        /// The new high watermark.
        offset: i64,
    },
    /// The partition's durable mirror state changes.
    MirrorState {
        /// The replica.
        replica: String,
        /// The new state.
        to: MirrorState,
        /// The cluster that is mirrored, where a mirror starts.
        source: Option<String>,
    },
    /// The broker learns the partition's mirror state from the metadata of its cluster: no transition of its own (STATE-2).
    LearnMirrorState {
        /// The replica.
        replica: String,
        /// The state.
        to: MirrorState,
        /// The cluster that is mirrored, or was mirrored last.
        source: Option<String>,
    },
    /// The replica leads its partition from now on, for the cluster's metadata; the one that led before may not know it yet.
    Lead {
        /// The replica.
        replica: String,
    },
    /// A new segment begins at the log end offset, and a producer snapshot is taken there (LOG-4).
    Roll {
        /// The replica.
        replica: String,
    },
    /// The last mirrored offset is stored durably, for a later failback.
    LastMirroredOffset {
        /// The replica.
        replica: String,
        /// The offset of the next batch that would have been mirrored.
        offset: i64,
    },
    /// The broker dies: whatever is not durable is lost.
    Crash {
        /// The replica.
        replica: String,
    },
    /// The broker starts again and builds its state from what survived.
    Recover {
        /// The replica.
        replica: String,
        /// True after a clean stop, false after a crash (segment recovery).
        clean: bool,
    },
}

/// Who appends (Kafka: `AppendOrigin`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A producer's request.
    Client,
    /// A transaction coordinator's marker, of transaction version 2.
    Coordinator,
    /// What a stopping mirror writes: the barrier, and ABORT markers with the producer's present epoch.
    StoppingMirror,
}

/// A batch in the abstract. Its bytes follow from these fields by `specs/wire-format.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// -1 for none.
    pub producer_id: i64,
    /// -1 for none.
    pub producer_epoch: i16,
    /// -1 for none.
    pub base_sequence: i32,
    /// The number of records; offsets and sequences advance by it.
    pub records: u32,
    /// The transactional attribute.
    pub transactional: bool,
    /// The control record, or none for data.
    pub control: Option<Control>,
}

/// The control records that matter to producer state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", deny_unknown_fields)]
pub enum Control {
    /// Ends a transaction: its records count.
    Commit {
        /// The epoch of the coordinator that wrote the marker.
        coordinator_epoch: i32,
    },
    /// Ends a transaction: its records do not count.
    Abort {
        /// The epoch of the coordinator that wrote the marker.
        coordinator_epoch: i32,
    },
    /// The barrier.
    MirrorPidReset {
        /// The id of the cluster from which the data before the barrier was mirrored.
        source_cluster: String,
    },
}

/// The result that an append must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Expect {
    /// The batches lie in the log at these offsets.
    Appended {
        /// The first offset.
        base_offset: i64,
        /// The last offset.
        last_offset: i64,
    },
    /// The batch was taken for a resend of one that lies at these offsets; nothing was appended.
    Duplicate {
        /// The first offset of the batch that it was taken for.
        base_offset: i64,
        /// The last offset of that batch.
        last_offset: i64,
    },
    /// The append failed with this error, named by the simple name of Kafka's exception class.
    Error(String),
}

/// The states of a mirror partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MirrorState {
    /// PREPARING: the log is being aligned with the source's.
    LogAlignment,
    /// The leader epoch is being raised above the source's; read-only.
    EpochFencing,
    /// After an unclean election of the source, all replicas have to come back; read-only.
    UleRecovery,
    /// Batches are being fetched from the source; read-only.
    Mirroring,
    /// The fetcher is being removed; read-only.
    Pausing,
    /// No fetching for now; read-only.
    Paused,
    /// The stop sequence is running; read-only.
    Stopping,
    /// Writable: the mirror has ended, or there never was one.
    Stopped,
    /// An error that needs an operator; read-only.
    Failed,
}

/// What can be seen of one replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaState {
    /// False between a crash and the recovery; the other fields then tell what is durable, with no producers.
    pub up: bool,
    /// The durable mirror state.
    pub mirror_state: MirrorState,
    /// The first offset of the log.
    pub log_start_offset: i64,
    /// The offset of the next batch.
    pub log_end_offset: i64,
    /// The high watermark.
    pub high_watermark: i64,
    /// The last stable offset.
    pub last_stable_offset: i64,
    /// The batches in offset order.
    pub log: Vec<LogEntry>,
    /// The ProducerStateManager's entries in order of producer id.
    pub producers: Vec<ProducerEntry>,
    /// The open transactions in order of first offset.
    pub open_transactions: Vec<OpenTransaction>,
    /// The transaction index in order of its entries; none where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
}

/// A batch in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// The batch's first offset.
    pub offset: i64,
    /// The real producer that wrote it (ground truth, not in any log); none for a barrier.
    pub by: Option<String>,
    /// The batch as stored.
    pub batch: Batch,
}

/// One entry of the ProducerStateManager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProducerEntry {
    /// The id as stored.
    pub producer_id: i64,
    /// The last epoch seen.
    pub producer_epoch: i16,
    /// The last coordinator epoch seen in a marker, -1 for none.
    pub coordinator_epoch: i32,
    /// The cached batches, oldest first.
    pub batches: Vec<CachedBatch>,
    /// The first offset of the open transaction, or none.
    pub txn_first_offset: Option<i64>,
}

/// One cached batch of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachedBatch {
    /// The first sequence.
    pub base_sequence: i32,
    /// The last sequence.
    pub last_sequence: i32,
    /// The first offset.
    pub base_offset: i64,
    /// The last offset.
    pub last_offset: i64,
}

/// An open transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenTransaction {
    /// The producer id that owns it.
    pub producer_id: i64,
    /// The offset of its first batch.
    pub first_offset: i64,
}

/// An entry of the transaction index: what a read-committed reader leaves out (TXN-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AbortedTransaction {
    /// The producer id that owned it.
    pub producer_id: i64,
    /// The offset of its first batch.
    pub first_offset: i64,
    /// The offset of its ABORT marker.
    pub last_offset: i64,
}
