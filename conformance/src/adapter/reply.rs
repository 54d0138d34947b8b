//! Replies as types, read strictly.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::hex::Hex;
use super::state::State;
use super::strict::{
    CODES, Object, count, digest, features, line, lines, objects, offset, offset_or_none, operations, optional_count, optional_id,
    optional_objects, optional_offset, present, present_line, present_object, required, size,
};

/// A reply: what came out, and the state if it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The answer, or why there is none.
    pub outcome: Result<Answer, Failure>,
    /// The state of the log after the operation.
    pub state: Option<State>,
}

/// What an operation has to tell. Written as the protocol has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
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
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        #[serde(deserialize_with = "line")]
        name: String,
        /// Its version.
        #[serde(deserialize_with = "line")]
        version: String,
        /// Its build, e.g. a commit.
        #[serde(default, deserialize_with = "present_line", skip_serializing_if = "Option::is_none")]
        build: Option<String>,
        /// The operations that it knows.
        #[serde(deserialize_with = "operations")]
        operations: Vec<String>,
        /// The parts that are real.
        #[serde(deserialize_with = "features")]
        features: Vec<String>,
    }
    /// What was read.
    Read {
        /// Whole batches, or the beginning of one.
        records: Hex,
        /// The aborted transactions of a read of committed records.
        #[serde(deserialize_with = "optional_objects")]
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
        #[serde(deserialize_with = "optional_count")]
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
        #[serde(deserialize_with = "count")]
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
        #[serde(deserialize_with = "count")]
        guard: u32,
    }
    /// The tasks that were run.
    Tasks {
        /// Their names.
        #[serde(deserialize_with = "lines")]
        tasks: Vec<String>,
    }
    /// The files of a log.
    Files {
        /// In order of name.
        #[serde(deserialize_with = "objects")]
        files: Vec<FileEntry>,
    }
    /// A file of a log.
    FileEntry {
        /// Its plain name.
        name: String,
        /// Its size in bytes.
        #[serde(deserialize_with = "size")]
        size: u64,
        /// The digest of its content.
        #[serde(deserialize_with = "digest")]
        sha256: String,
        /// Its content, if that was asked for.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        content: Option<Hex>,
    }
    /// Nothing to tell.
    Done {}
}

/// What an append did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Append {
    /// The log is longer.
    Appended {
        /// The first offset of what was appended; -1 if the first batch is of magic 0 or 1, which does not tell.
        #[serde(deserialize_with = "offset_or_none")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyLine<'a> {
    /// The request that is answered; none if its line could not be read.
    #[serde(deserialize_with = "optional_id")]
    pub id: Option<u64>,
    /// The operation of that request.
    #[serde(deserialize_with = "required")]
    pub op: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    ok: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present_object")]
    error: Option<Failure>,
    #[serde(default, deserialize_with = "present_object")]
    state: Option<State>,
}

impl<'a> ReplyLine<'a> {
    /// Reads a line as far as it is the same for all operations.
    ///
    /// # Errors
    /// For what is not a reply.
    pub fn parse(line: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|e| e.to_string())?;
        let Object(reply): Object<Self> = serde_json::from_str(text).map_err(|e| e.to_string())?;
        Ok(reply)
    }

    /// Reads the rest.
    ///
    /// # Errors
    /// When the answer is not one to the operation.
    pub fn read(self) -> Result<Reply, String> {
        let outcome = match (self.id, self.op, self.ok, self.error) {
            (Some(_), Some(operation), Some(ok), None) => {
                if self.state.is_some() && ["hello", "reset", "bye"].contains(&operation.as_str()) {
                    return Err(format!("{operation} has no state to tell"));
                }
                Ok(Answer::read(&operation, ok.get())?)
            }
            (_, _, None, Some(failure)) => Err(failure.check()?),
            _ => return Err("expected either ok or error".to_owned()),
        };
        Ok(Reply { outcome, state: self.state })
    }
}

impl Failure {
    fn check(self) -> Result<Self, String> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let good = match self.kind {
            FailureKind::Exception => self.name.chars().all(word) && self.name.starts_with(|c: char| !c.is_ascii_digit()),
            FailureKind::Protocol => CODES.contains(&self.name.as_str()),
            FailureKind::Internal => true,
        };
        if good { Ok(self) } else { Err(format!("there is no error {:?} of this kind", self.name)) }
    }
}

impl Answer {
    /// Reads the answer to an operation of this name.
    fn read(operation: &str, text: &str) -> Result<Self, String> {
        fn object<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, String> {
            serde_json::from_str(text).map(|Object(value)| value).map_err(|e| e.to_string())
        }
        Ok(match operation {
            "hello" => Self::Hello(object(text)?),
            "append-leader" | "append-follower" => Self::Append(object(text)?),
            "read" => Self::Read(object(text)?),
            "truncate" | "log-start" => Self::Changed(object(text)?),
            "high-watermark" => Self::HighWatermark(object(text)?),
            "end-offset-for-epoch" => {
                let end: EpochEnd = object(text)?;
                if end.leader_epoch.is_some() != end.end_offset.is_some() {
                    return Err("expected an epoch and its end, or neither".to_owned());
                }
                Self::EpochEnd(end)
            }
            "roll" => Self::Rolled(object(text)?),
            "snapshot" => Self::Snapshot(object(text)?),
            "retention" => Self::Retention(object(text)?),
            "compact" => Self::Compacted(object(text)?),
            "start-verification" => Self::Guard(object(text)?),
            "run-tasks" => Self::Tasks(object(text)?),
            "files" => Self::Files(object(text)?),
            "create" | "truncate-fully" | "become-leader" | "flush" | "delete-snapshots" | "expire" | "set-time" | "close"
            | "crash" | "open" | "state" | "put-file" | "drop" | "reset" | "bye" => Self::Done(object(text)?),
            _ => return Err(format!("there is no operation {operation:?}")),
        })
    }
}
