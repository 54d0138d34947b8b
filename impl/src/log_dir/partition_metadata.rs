//! The id of the topic in a partition's directory (Kafka: `PartitionMetadataFile`).
//!
//! ```text
//! version: 0
//! topic_id: 8h1ZOXEPQ1udjd9otWWi_Q
//! ```

use bytes::Bytes;

use super::uuid::{Uuid, UuidError};
use crate::java;
use crate::storage::{Storage, StorageError};

/// The file.
pub const PARTITION_METADATA_FILE: &str = "partition.metadata";

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionMetadata {
    /// The version of the file; Kafka writes 0, and reads all from 0 on in the same way.
    pub version: i32,
    /// The id of the topic.
    pub topic_id: Uuid,
}

/// Why partition metadata cannot be read or recorded. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionMetadataError {
    /// The bytes are not UTF-8.
    #[error("byte {position} is not UTF-8")]
    NotText {
        /// The first byte that is not.
        position: usize,
    },
    /// A line is not there.
    #[error("line {line} is not there, expected {expected}")]
    Missing {
        /// The line.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// A line is not of the form that it should have.
    #[error("line {line}: expected {expected}")]
    Line {
        /// The line.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// The version is negative.
    #[error("line 1: version {found}, expected 0 or above")]
    Version {
        /// The version.
        found: i32,
    },
    /// The topic id is none.
    #[error("line 2: {0}")]
    TopicId(#[from] UuidError),
    /// The topic id is that of no topic.
    #[error("the topic id is zero")]
    ZeroTopicId,
    /// The directory belongs to another topic.
    #[error("topic id {asked}, but the directory is that of topic id {recorded}")]
    InconsistentTopicId {
        /// The id in the file.
        recorded: Uuid,
        /// The id that should be recorded.
        asked: Uuid,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl PartitionMetadataError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "NullPointerException",
            Self::TopicId(_) => "IllegalArgumentException",
            Self::InconsistentTopicId { .. } => "InconsistentTopicIdException",
            Self::NotText { .. } | Self::Line { .. } | Self::Version { .. } | Self::ZeroTopicId | Self::Storage(_) => {
                "KafkaStorageException"
            }
        }
    }
}

impl PartitionMetadata {
    /// The file of a topic, in the version that Kafka writes.
    #[must_use]
    pub fn new(topic_id: Uuid) -> Self {
        Self { version: 0, topic_id }
    }

    /// Reads the file of a partition's directory; `None` when there is none.
    ///
    /// # Errors
    /// As [`Self::decode`]; or when the storage fails.
    pub fn load(storage: &impl Storage) -> Result<Option<Self>, PartitionMetadataError> {
        storage.read_all(PARTITION_METADATA_FILE)?.map(|file| Self::decode(&file)).transpose()
    }

    /// Notes the topic of a partition's directory, durably and all at once, unless that is noted already
    /// (Kafka: `UnifiedLog.assignTopicId`).
    ///
    /// # Errors
    /// [`PartitionMetadataError::ZeroTopicId`], which no file could be read with;
    /// [`PartitionMetadataError::InconsistentTopicId`] when the directory is that of another topic; when the file is there
    /// and cannot be read; or when the storage fails.
    pub fn record(storage: &mut impl Storage, topic_id: Uuid) -> Result<(), PartitionMetadataError> {
        if topic_id == Uuid::ZERO {
            return Err(PartitionMetadataError::ZeroTopicId);
        }
        match Self::load(storage)? {
            Some(found) if found.topic_id == topic_id => Ok(()),
            Some(found) => Err(PartitionMetadataError::InconsistentTopicId { recorded: found.topic_id, asked: topic_id }),
            None => Ok(storage.replace(PARTITION_METADATA_FILE, &Self::new(topic_id).encode())?),
        }
    }

    /// The bytes of the file: the last line ends without a line feed.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        Bytes::from(format!("version: {}\ntopic_id: {}", self.version, self.topic_id))
    }

    /// Reads the bytes of a file. What stands in front of the colons is not looked at, nor what follows the second line.
    ///
    /// # Errors
    /// When a line is missing or malformed, the version is negative, or the topic id is none or zero.
    pub fn decode(file: &Bytes) -> Result<Self, PartitionMetadataError> {
        let text = std::str::from_utf8(file).map_err(|error| PartitionMetadataError::NotText { position: error.valid_up_to() })?;
        let mut lines = java::lines(text);
        let mut value = |line, expected| {
            let text = lines.next().ok_or(PartitionMetadataError::Missing { line, expected })?;
            value_of(text).ok_or(PartitionMetadataError::Line { line, expected })
        };
        let version_line = "`version: ` and a number";
        let version = value(1, version_line)?;
        let version = version.parse().map_err(|_| PartitionMetadataError::Line { line: 1, expected: version_line })?;
        if version < 0 {
            return Err(PartitionMetadataError::Version { found: version });
        }
        let topic_id = value(2, "`topic_id: ` and an id")?.parse()?;
        if topic_id == Uuid::ZERO {
            return Err(PartitionMetadataError::ZeroTopicId);
        }
        Ok(Self { version, topic_id })
    }
}

/// What follows the only colon with white space behind it. What is empty at the end of the line counts for nothing.
fn value_of(line: &str) -> Option<&str> {
    let mut rest = line;
    let mut parts = Vec::new();
    while let Some((part, behind)) = split_at_colon(rest) {
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);
    while parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    if let [_, value] = parts[..] { Some(value) } else { None }
}

/// What stands in front of the first colon with white space behind it, and what behind the white space.
fn split_at_colon(text: &str) -> Option<(&str, &str)> {
    text.match_indices(':').find_map(|(at, _)| {
        let behind = text.get(at.saturating_add(1)..)?;
        let value = behind.trim_start_matches(java::is_space);
        (value.len() < behind.len()).then_some((text.get(..at)?, value))
    })
}
