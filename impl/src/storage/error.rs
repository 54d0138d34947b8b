//! Why a storage could not do what it was asked to.

use std::fmt;
use std::io;

/// What a storage was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// List, measure or read.
    Read,
    /// Append.
    Append,
    /// Make longer than what is in it.
    Reserve,
    /// Cut.
    Truncate,
    /// Replace.
    Replace,
    /// Remove.
    Remove,
    /// Give another name.
    Rename,
    /// Make durable.
    Sync,
    /// Open the storage itself.
    Open,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Append => "append to",
            Self::Reserve => "reserve bytes for",
            Self::Truncate => "truncate",
            Self::Replace => "replace",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Sync => "sync",
            Self::Open => "open",
        })
    }
}

/// Why a storage could not do what it was asked to (Kafka: `KafkaStorageException`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// There is no file of this name.
    #[error("cannot {operation} {name}: there is no such file")]
    NotFound {
        /// What was asked for.
        operation: Operation,
        /// The file.
        name: String,
    },
    /// A file name may hold letters, digits, `.`, `-` and `_`, and begin with a dot only in front of a letter.
    #[error("file name {name:?} is not allowed")]
    InvalidName {
        /// The name, cut to the longest one that is allowed.
        name: String,
    },
    /// A file can be cut only to a length that it has.
    #[error("cannot truncate {name} to {requested} bytes: it has {len}")]
    TruncateBeyondEnd {
        /// The file.
        name: String,
        /// The length asked for, in bytes.
        requested: u64,
        /// The length of the file, in bytes.
        len: u64,
    },
    /// The operating system refused.
    #[error("cannot {operation} {name}: {message}")]
    Io {
        /// What was asked for.
        operation: Operation,
        /// The file or directory.
        name: String,
        /// The kind of refusal.
        kind: io::ErrorKind,
        /// The system's text.
        message: String,
    },
}

impl StorageError {
    pub(super) fn io(operation: Operation, name: &str, error: &io::Error) -> Self {
        Self::Io { operation, name: name.to_owned(), kind: error.kind(), message: error.to_string() }
    }
}
