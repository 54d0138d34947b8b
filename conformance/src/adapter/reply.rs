//! Replies as types, read strictly.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::hex::Hex;
use super::state::{State, offset, optional_offset, required};

/// A reply: what came out, and the state if it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The answer, or why there is none.
    pub outcome: Result<Answer, Failure>,
    /// The state of the log after the operation.
    pub state: Option<State>,
}

/// What an operation has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To `hello`.
    Hello(Greeting),
    /// To an append.
    Append(Append),
    /// To `read`.
    Read(Read),
    /// To `truncate` and `log-start`.
    Changed(Changed),
    /// To `high-watermark`.
    HighWatermark(HighWatermark),
    /// To `end-offset-for-epoch`.
    EpochEnd(EpochEnd),
    /// To `roll`.
    Rolled(Rolled),
    /// To `snapshot`.
    Snapshot(LatestSnapshot),
    /// To `retention`.
    Retention(Retention),
    /// To `compact`.
    Compacted(Compacted),
    /// To `start-verification`.
    Guard(Guard),
    /// To `run-tasks`.
    Tasks(Tasks),
    /// To `files`.
    Files(Files),
    /// To all other operations.
    Done(Done),
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$attribute])* pub $field: $type),* }
    )*};
}

answers! {
    /// Who the adapter is and what it knows.
    Greeting {
        /// The version of the protocol.
        protocol: u32,
        /// The implementation.
        name: String,
        /// Its version.
        version: String,
        /// Its build, e.g. a commit.
        #[serde(default)]
        build: Option<String>,
        /// The operations that it knows.
        operations: Vec<String>,
        /// The parts that are real.
        features: Vec<String>,
    }
    /// What was read.
    Read {
        /// Whole batches, or the beginning of one.
        records: Hex,
        /// The aborted transactions of a read of committed records.
        #[serde(deserialize_with = "required")]
        aborted: Option<Vec<Aborted>>,
    }
    /// An aborted transaction, as a consumer is told of it.
    Aborted {
        /// The producer id.
        producer_id: i64,
        /// Where it begins.
        #[serde(deserialize_with = "offset")]
        first_offset: i64,
    }
    /// Whether anything changed.
    Changed {
        /// True if something did.
        changed: bool,
    }
    /// Where the high watermark is now.
    HighWatermark {
        /// The high watermark.
        #[serde(deserialize_with = "offset")]
        high_watermark: i64,
    }
    /// An epoch and its end.
    EpochEnd {
        /// The largest known epoch that is not above the one asked for.
        #[serde(deserialize_with = "required")]
        leader_epoch: Option<u32>,
        /// The offset after its last record.
        #[serde(deserialize_with = "optional_offset")]
        end_offset: Option<i64>,
    }
    /// The new segment.
    Rolled {
        /// Its base offset.
        #[serde(deserialize_with = "offset")]
        base_offset: i64,
    }
    /// The newest snapshot.
    LatestSnapshot {
        /// Its offset.
        #[serde(deserialize_with = "optional_offset")]
        latest: Option<i64>,
    }
    /// What retention did.
    Retention {
        /// The number of deleted segments.
        segments: u32,
    }
    /// What a cleaning round did.
    Compacted {
        /// Where the next round begins.
        #[serde(deserialize_with = "offset")]
        next_dirty: i64,
    }
    /// A guard.
    Guard {
        /// Its number; 0 if none is needed.
        guard: u32,
    }
    /// The tasks that were run.
    Tasks {
        /// Their names.
        tasks: Vec<String>,
    }
    /// The files of a log.
    Files {
        /// In order of name.
        files: Vec<FileEntry>,
    }
    /// A file of a log.
    FileEntry {
        /// Its plain name.
        name: String,
        /// Its size in bytes.
        size: u64,
        /// The digest of its content.
        sha256: String,
        /// Its content, if that was asked for.
        #[serde(default)]
        content: Option<Hex>,
    }
    /// Nothing to tell.
    Done {}
}

/// What an append did.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Append {
    /// The log is longer.
    Appended {
        /// The first offset of what was appended.
        #[serde(deserialize_with = "offset")]
        base_offset: i64,
        /// The last offset.
        #[serde(deserialize_with = "offset")]
        last_offset: i64,
    },
    /// The batch was taken for a resend of the one at these offsets.
    Duplicate {
        /// The first offset of that batch.
        #[serde(deserialize_with = "offset")]
        base_offset: i64,
        /// Its last offset.
        #[serde(deserialize_with = "offset")]
        last_offset: i64,
    },
    /// Everything was left out without an error.
    Nothing {},
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Who failed.
    pub kind: FailureKind,
    /// The simple name of Kafka's exception, or a code of the protocol.
    pub name: String,
    /// For people.
    pub message: String,
}

/// Who failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The implementation refused or failed.
    Exception,
    /// The request could not be carried out as a request.
    Protocol,
    /// The adapter cannot tell what happened.
    Internal,
}

/// A reply line, before the answer is read: its type depends on the operation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyLine<'a> {
    #[serde(deserialize_with = "required")]
    pub(super) id: Option<u64>,
    #[serde(deserialize_with = "required")]
    pub(super) op: Option<String>,
    #[serde(borrow, default)]
    pub(super) ok: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) error: Option<Failure>,
    #[serde(default)]
    pub(super) state: Option<State>,
}

impl Answer {
    /// Reads the answer to an operation of this name.
    pub(super) fn read(operation: &str, text: &str) -> Result<Self, serde_json::Error> {
        Ok(match operation {
            "hello" => Self::Hello(serde_json::from_str(text)?),
            "append-leader" | "append-follower" => Self::Append(serde_json::from_str(text)?),
            "read" => Self::Read(serde_json::from_str(text)?),
            "truncate" | "log-start" => Self::Changed(serde_json::from_str(text)?),
            "high-watermark" => Self::HighWatermark(serde_json::from_str(text)?),
            "end-offset-for-epoch" => Self::EpochEnd(serde_json::from_str(text)?),
            "roll" => Self::Rolled(serde_json::from_str(text)?),
            "snapshot" => Self::Snapshot(serde_json::from_str(text)?),
            "retention" => Self::Retention(serde_json::from_str(text)?),
            "compact" => Self::Compacted(serde_json::from_str(text)?),
            "start-verification" => Self::Guard(serde_json::from_str(text)?),
            "run-tasks" => Self::Tasks(serde_json::from_str(text)?),
            "files" => Self::Files(serde_json::from_str(text)?),
            _ => Self::Done(serde_json::from_str(text)?),
        })
    }
}
