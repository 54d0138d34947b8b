//! Why a dump ends.

use std::io;

use crate::log::IndexError;
use crate::record::DecodeError;
use crate::storage::StorageError;

/// Why a file cannot be dumped to its end. Kafka's tool dies of an exception in these cases.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file, or the log or index that belongs to it, is not there.
    #[error("{name}: no such file")]
    NotFound {
        /// The name of the file.
        name: String,
    },
    /// The name of the file does not say where the file begins.
    #[error("the name begins with {found:?}, expected {expected}")]
    Name {
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// The bytes of a log are no batch, or no record.
    #[error("batch at byte {position}: {source}")]
    Batch {
        /// Where the batch begins in the file.
        position: u64,
        /// What is wrong; it counts from the first byte of the batch, or of the key or value of a control record.
        source: DecodeError,
    },
    /// The sanity check of an index fails.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// An index points behind the end of its log.
    #[error("an entry points at byte {position} of the log, which has {len}")]
    BeyondEnd {
        /// Where the entry points; below 0 in a damaged index only.
        position: i64,
        /// The length of the log.
        len: u64,
    },
    /// An offset index points where the log has no whole batch.
    #[error("an entry points at byte {position} of the log, where no whole batch begins")]
    NoBatch {
        /// Where the entry points.
        position: i64,
    },
    /// A transaction index has an entry of a version that there is none of.
    #[error("entry {index} of the transaction index has version {version}, expected 0")]
    TxnVersion {
        /// Which entry, from 0.
        index: u64,
        /// The version.
        version: i8,
    },
    /// The files cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What was found cannot be written.
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

impl DumpError {
    /// The simple name of the exception class of which Kafka's tool dies, where it would.
    #[must_use]
    pub fn kafka_class(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound { .. } => "NoSuchFileException",
            Self::Name { .. } => "NumberFormatException",
            Self::Batch { source, .. } => source.kafka_class(),
            Self::Index(error) => error.kafka_class(),
            Self::BeyondEnd { .. } => "IllegalArgumentException",
            Self::NoBatch { .. } => "NoSuchElementException",
            Self::TxnVersion { .. } => "KafkaException",
            Self::Storage(_) | Self::Output(_) => return None,
        })
    }
}
