//! Checkpoints of offsets (Kafka: `OffsetCheckpointFile`, `CheckpointFile`).
//!
//! ```text
//! 0                    version
//! 2                    number of entries
//! codecs 0 43          topic, partition, offset
//! txn-mix 0 69
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;

use super::directory_name::TopicPartition;
use crate::java;
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, PartitionId};

/// The version that is written, and the only one that is read.
const VERSION: i32 = 0;

/// The checkpoints of a log directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckpointFile {
    /// Recovery points: everything below is durable.
    RecoveryPoint,
    /// Log start offsets, of logs that begin behind the base offset of their first segment.
    LogStartOffset,
    /// High watermarks.
    HighWatermark,
    /// Where the next cleaning round begins.
    Cleaner,
}

impl CheckpointFile {
    /// The name of the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RecoveryPoint => "recovery-point-offset-checkpoint",
            Self::LogStartOffset => "log-start-offset-checkpoint",
            Self::HighWatermark => "replication-offset-checkpoint",
            Self::Cleaner => "cleaner-offset-checkpoint",
        }
    }
}

/// Why a checkpoint cannot be read. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The bytes are not UTF-8.
    #[error("byte {position} is not UTF-8")]
    NotText {
        /// The first byte that is not.
        position: usize,
    },
    /// The version is not 0.
    #[error("line 1: version {found}, expected 0")]
    Version {
        /// The version.
        found: i32,
    },
    /// A line is not of the form that it should have.
    #[error("line {line}: expected {expected}")]
    Line {
        /// The line.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// A line has the form that it should have, but one of its numbers is none.
    #[error("line {line}: {what} is no number")]
    Number {
        /// The line.
        line: usize,
        /// Which of its numbers.
        what: &'static str,
    },
    /// The number of entries is negative.
    #[error("line 2: {found} entries, expected 0 or more")]
    NegativeCount {
        /// The number.
        found: i32,
    },
    /// There are more or fewer entries than the second line says.
    #[error("{found} entries, expected {expected}")]
    Count {
        /// The number in the second line.
        expected: usize,
        /// The entries that are there.
        found: usize,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CheckpointError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::Number { .. } => "NumberFormatException",
            Self::NegativeCount { .. } => "IllegalArgumentException",
            Self::NotText { .. } | Self::Version { .. } | Self::Line { .. } | Self::Count { .. } | Self::Storage(_) => {
                "KafkaStorageException"
            }
        }
    }
}

/// A checkpoint: an offset for each of some partitions. The order is that of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCheckpoint {
    entries: Vec<(TopicPartition, Offset)>,
}

impl OffsetCheckpoint {
    /// A checkpoint with one entry for each partition, in the order in which Kafka writes those of a Java `HashMap`: by
    /// bucket, and within a bucket as they came. The later entry of a partition counts.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = (TopicPartition, Offset)>) -> Self {
        let mut entries = last_of_each(entries);
        let hashes: Vec<u32> = entries.iter().map(|(partition, _)| partition.java_hash()).collect();
        let capacity = java::capacity_of(&hashes);
        entries.sort_by_key(|(partition, _)| java::bucket(partition.java_hash(), capacity));
        Self { entries }
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[(TopicPartition, Offset)] {
        &self.entries
    }

    /// The offset of a partition.
    #[must_use]
    pub fn get(&self, partition: &TopicPartition) -> Option<Offset> {
        self.entries.iter().find(|(known, _)| known == partition).map(|(_, offset)| *offset)
    }

    /// Reads a checkpoint of a log directory; an empty one when there is no such file.
    ///
    /// # Errors
    /// As [`Self::decode`]; or when the storage fails.
    pub fn load(storage: &impl Storage, file: CheckpointFile) -> Result<Self, CheckpointError> {
        storage.read_all(file.name())?.map_or_else(|| Ok(Self::default()), |bytes| Self::decode(&bytes))
    }

    /// Writes a checkpoint into a log directory, durably and all at once.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn store(&self, storage: &mut impl Storage, file: CheckpointFile) -> Result<(), StorageError> {
        storage.replace(file.name(), &self.encode())
    }

    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut text = format!("{VERSION}\n{}\n", self.entries.len());
        for (TopicPartition { topic, partition }, offset) in &self.entries {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{topic} {partition} {offset}");
        }
        Bytes::from(text)
    }

    /// Reads the bytes of a file. One that is empty, or ends behind the version, has no entries. The later entry of a
    /// partition counts, but each is counted. Negative partitions and offsets are read, as Kafka does.
    ///
    /// # Errors
    /// When the version is not 0, a line is malformed, or the number of entries is not that of the second line.
    pub fn decode(file: &Bytes) -> Result<Self, CheckpointError> {
        let text = std::str::from_utf8(file).map_err(|error| CheckpointError::NotText { position: error.valid_up_to() })?;
        let mut lines = (1..).zip(java::lines(text));
        let Some((line, version)) = lines.next() else { return Ok(Self::default()) };
        let found = version.parse().map_err(|_| CheckpointError::Line { line, expected: "a version" })?;
        if found != VERSION {
            return Err(CheckpointError::Version { found });
        }
        let Some((line, count)) = lines.next() else { return Ok(Self::default()) };
        let found: i32 = count.parse().map_err(|_| CheckpointError::Line { line, expected: "the number of entries" })?;
        let expected = usize::try_from(found).map_err(|_| CheckpointError::NegativeCount { found })?;
        let entries = lines.map(|(line, text)| decode_entry(line, text)).collect::<Result<Vec<_>, _>>()?;
        if entries.len() != expected {
            return Err(CheckpointError::Count { expected, found: entries.len() });
        }
        Ok(Self { entries: last_of_each(entries) })
    }
}

fn decode_entry(line: usize, text: &str) -> Result<(TopicPartition, Offset), CheckpointError> {
    let [topic, partition, offset] = java::words(text)[..] else {
        return Err(CheckpointError::Line { line, expected: "topic, partition and offset" });
    };
    let partition = partition.parse().map_err(|_| CheckpointError::Number { line, what: "the partition" })?;
    let offset = offset.parse().map_err(|_| CheckpointError::Number { line, what: "the offset" })?;
    Ok((TopicPartition::new(topic, PartitionId(partition)), Offset(offset)))
}

/// One entry for each partition, at the place of its first, with the offset of its last.
fn last_of_each(entries: impl IntoIterator<Item = (TopicPartition, Offset)>) -> Vec<(TopicPartition, Offset)> {
    let mut places: BTreeMap<TopicPartition, usize> = BTreeMap::new();
    let mut kept: Vec<(TopicPartition, Offset)> = Vec::new();
    for (partition, offset) in entries {
        match places.get(&partition).and_then(|place| kept.get_mut(*place)) {
            Some((_, known)) => *known = offset,
            None => {
                places.insert(partition.clone(), kept.len());
                kept.push((partition, offset));
            }
        }
    }
    kept
}
