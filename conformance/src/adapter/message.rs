//! Requests as types: what is sent is always well-formed.

use serde::{Deserialize, Serialize};

use super::hex::Hex;

/// The version of the protocol that is spoken here.
pub const PROTOCOL: u32 = 1;

/// The longest line, without its line feed.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The operations that every adapter has to list.
pub const REQUIRED: [&str; 14] = [
    "hello",
    "create",
    "append-leader",
    "append-follower",
    "read",
    "truncate",
    "high-watermark",
    "close",
    "crash",
    "open",
    "state",
    "drop",
    "reset",
    "bye",
];

/// The operations that an adapter may do without.
pub const OPTIONAL: [&str; 16] = [
    "truncate-fully",
    "log-start",
    "become-leader",
    "end-offset-for-epoch",
    "roll",
    "flush",
    "snapshot",
    "delete-snapshots",
    "expire",
    "retention",
    "compact",
    "start-verification",
    "set-time",
    "run-tasks",
    "files",
    "put-file",
];

/// What the runner asks for. The fields are those of the protocol; see `specs/adapter-protocol.md` for what happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields carry the names and the meaning that the protocol gives them")]
pub enum Operation {
    /// The handshake.
    Hello { protocol: u32, runner: String },
    /// A new, empty, open log.
    Create { log: String, now_ms: i64, config: Config },
    /// One batch, appended by the leader.
    AppendLeader { log: String, batch: Hex, origin: Origin, leader_epoch: i32, transaction_version: i16, guard: u32 },
    /// Batches with their offsets, in one append.
    AppendFollower { log: String, batches: Hex, leader_epoch: i32 },
    /// Bytes from an offset on.
    Read { log: String, offset: i64, max_bytes: u32, isolation: Isolation, min_one_message: bool },
    /// The log is cut.
    Truncate { log: String, offset: i64 },
    /// The log is emptied and starts elsewhere.
    TruncateFully { log: String, offset: i64 },
    /// The high watermark moves.
    HighWatermark { log: String, offset: i64, rule: HighWatermarkRule },
    /// Records at the start are deleted.
    LogStart { log: String, offset: i64 },
    /// A leader's epoch begins at the log's end.
    BecomeLeader { log: String, leader_epoch: i32 },
    /// Where an epoch ends.
    EndOffsetForEpoch { log: String, leader_epoch: i32 },
    /// A new segment.
    Roll { log: String },
    /// Everything becomes durable.
    Flush { log: String },
    /// A producer state snapshot.
    Snapshot { log: String },
    /// Snapshots below an offset are deleted.
    DeleteSnapshots { log: String, before: i64 },
    /// Expired producers are removed.
    Expire { log: String, now_ms: i64 },
    /// What the retention settings allow is deleted.
    Retention { log: String },
    /// One cleaning round.
    Compact { log: String, first_dirty: i64, first_uncleanable: i64, now_ms: i64 },
    /// A guard for a transaction's first batch.
    StartVerification { log: String, producer_id: i64, producer_epoch: i16, sequence: i32, epoch_bump: bool },
    /// The log's clock moves.
    SetTime { log: String, now_ms: i64 },
    /// Delayed tasks are run.
    RunTasks { log: String },
    /// A clean stop.
    Close { log: String },
    /// The end of the process.
    Crash { log: String, cuts: Vec<Cut>, lost: Vec<String> },
    /// The log is loaded again.
    Open { log: String, clean: bool, recovery_point: i64, log_start: i64, now_ms: Option<i64> },
    /// The state is asked for.
    State { log: String },
    /// The log's files are listed.
    Files { log: String, content: bool },
    /// A file of a closed log is written.
    PutFile { log: String, file: String, content: Hex },
    /// The log is forgotten.
    Drop { log: String },
    /// All logs are forgotten.
    Reset {},
    /// The conversation ends.
    Bye {},
}

impl Operation {
    /// The operation's name in the protocol.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Create { .. } => "create",
            Self::AppendLeader { .. } => "append-leader",
            Self::AppendFollower { .. } => "append-follower",
            Self::Read { .. } => "read",
            Self::Truncate { .. } => "truncate",
            Self::TruncateFully { .. } => "truncate-fully",
            Self::HighWatermark { .. } => "high-watermark",
            Self::LogStart { .. } => "log-start",
            Self::BecomeLeader { .. } => "become-leader",
            Self::EndOffsetForEpoch { .. } => "end-offset-for-epoch",
            Self::Roll { .. } => "roll",
            Self::Flush { .. } => "flush",
            Self::Snapshot { .. } => "snapshot",
            Self::DeleteSnapshots { .. } => "delete-snapshots",
            Self::Expire { .. } => "expire",
            Self::Retention { .. } => "retention",
            Self::Compact { .. } => "compact",
            Self::StartVerification { .. } => "start-verification",
            Self::SetTime { .. } => "set-time",
            Self::RunTasks { .. } => "run-tasks",
            Self::Close { .. } => "close",
            Self::Crash { .. } => "crash",
            Self::Open { .. } => "open",
            Self::State { .. } => "state",
            Self::Files { .. } => "files",
            Self::PutFile { .. } => "put-file",
            Self::Drop { .. } => "drop",
            Self::Reset {} => "reset",
            Self::Bye {} => "bye",
        }
    }

    /// True if a log is open after the operation succeeded, so that its state can be told.
    #[must_use]
    pub(crate) fn leaves_open(&self) -> bool {
        let closed = ["hello", "close", "crash", "drop", "reset", "bye", "files", "put-file", "set-time"];
        !closed.contains(&self.name())
    }

    /// True if the operation is on one log, whose state can be asked for.
    #[must_use]
    pub fn is_on_a_log(&self) -> bool {
        !matches!(self, Self::Hello { .. } | Self::Reset {} | Self::Bye {})
    }

    /// The log that the operation is on.
    #[must_use]
    pub fn log(&self) -> Option<&str> {
        match self {
            Self::Hello { .. } | Self::Reset {} | Self::Bye {} => None,
            Self::Create { log, .. }
            | Self::AppendLeader { log, .. }
            | Self::AppendFollower { log, .. }
            | Self::Read { log, .. }
            | Self::Truncate { log, .. }
            | Self::TruncateFully { log, .. }
            | Self::HighWatermark { log, .. }
            | Self::LogStart { log, .. }
            | Self::BecomeLeader { log, .. }
            | Self::EndOffsetForEpoch { log, .. }
            | Self::Roll { log }
            | Self::Flush { log }
            | Self::Snapshot { log }
            | Self::DeleteSnapshots { log, .. }
            | Self::Expire { log, .. }
            | Self::Retention { log }
            | Self::Compact { log, .. }
            | Self::StartVerification { log, .. }
            | Self::SetTime { log, .. }
            | Self::RunTasks { log }
            | Self::Close { log }
            | Self::Crash { log, .. }
            | Self::Open { log, .. }
            | Self::State { log }
            | Self::Files { log, .. }
            | Self::PutFile { log, .. }
            | Self::Drop { log } => Some(log),
        }
    }

    /// The request as a line, with its line feed. `state` asks for the state of the log.
    ///
    /// # Errors
    /// Never, unless a request were made of something that is no JSON.
    pub fn to_line(&self, id: u64, state: bool) -> Result<Vec<u8>, serde_json::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            id: u64,
            #[serde(flatten)]
            operation: &'a Operation,
            #[serde(skip_serializing_if = "is_false")]
            state: bool,
        }
        let mut line = serde_json::to_vec(&Line { id, operation: self, state })?;
        line.push(b'\n');
        Ok(line)
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Who appends to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A producer.
    Client,
    /// A coordinator, or the broker itself: markers and barriers.
    Coordinator,
    /// Another replica.
    Replication,
}

/// How far a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Everything.
    LogEnd,
    /// What is below the high watermark.
    HighWatermark,
    /// What is below the last stable offset, with the aborted transactions.
    Committed,
}

/// By which of Kafka's rules the high watermark moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HighWatermarkRule {
    /// Set, within the log.
    Set,
    /// As a follower takes it from its leader.
    Follower,
    /// As a leader raises it.
    Leader,
}

/// Bytes that a crash loses from the end of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// The file's plain name.
    pub file: String,
    /// How many bytes.
    pub bytes: u64,
}

/// The configuration of a log; what is `None` is left to the default of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields carry the names and the meaning that the protocol gives them")]
pub struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_bytes: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_bytes: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_interval_bytes: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_message_bytes: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_expiration_ms: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_transaction_timeout_ms: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_retention_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_type: Option<String>,
}
