//! The names of partition directories (Kafka: `LocalLog.parseTopicPartitionName`).

use std::fmt;

use super::uuid::Uuid;
use crate::java;
use crate::types::PartitionId;

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The name of the topic.
    pub topic: String,
    /// The number of the partition.
    pub partition: PartitionId,
}

impl TopicPartition {
    /// A partition of a topic.
    #[must_use]
    pub fn new(topic: impl Into<String>, partition: PartitionId) -> Self {
        Self { topic: topic.into(), partition }
    }

    /// `TopicPartition.hashCode`: decides about the order of checkpoints.
    pub(super) fn java_hash(&self) -> u32 {
        let partition = self.partition.get().cast_unsigned();
        partition.wrapping_add(31).wrapping_mul(31).wrapping_add(java::string_hash(&self.topic))
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What a partition directory is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DirectoryKind {
    /// The partition's log.
    Log,
    /// `-delete`: is going to be deleted.
    Delete,
    /// `-future`: a copy that is to take the place of the log in another log directory.
    Future,
    /// `-stray`: a replica that the broker should not have.
    Stray,
}

impl DirectoryKind {
    /// The kinds that have a suffix.
    const MARKED: [(Self, &str); 3] = [(Self::Delete, "-delete"), (Self::Future, "-future"), (Self::Stray, "-stray")];
}

/// The name of a partition directory: `topic-partition`, or `topic-partition.id-suffix`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryName {
    /// The partition.
    pub partition: TopicPartition,
    /// What the directory is there for.
    pub kind: DirectoryKind,
}

/// The most bytes of a directory's name.
const MAX_NAME_BYTES: usize = 255;

impl DirectoryName {
    /// The name of a partition's directory (Kafka: `LocalLog.logDirName`, `logDeleteDirName`, `logFutureDirName`,
    /// `logStrayDirName`). One with a suffix is told from others of the same partition by `id`, which should be drawn at random. A
    /// topic that would make it longer than a file system allows is cut, but not for [`DirectoryKind::Future`], as a broker looks
    /// for the topic in that.
    #[must_use]
    pub fn name_of(partition: &TopicPartition, kind: DirectoryKind, id: Uuid) -> String {
        let Some((_, mark)) = DirectoryKind::MARKED.into_iter().find(|(marked, _)| *marked == kind) else {
            return partition.to_string();
        };
        let suffix = format!("-{}.{:032x}{mark}", partition.partition, id.0);
        let room = if kind == DirectoryKind::Future { usize::MAX } else { MAX_NAME_BYTES.saturating_sub(suffix.len()) };
        let topic = partition.topic.get(..partition.topic.floor_char_boundary(room)).unwrap_or_default();
        format!("{topic}{suffix}")
    }

    /// Reads a name; `None` when it is that of no partition directory (Kafka: `KafkaException`).
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let marked = DirectoryKind::MARKED.into_iter().find(|(_, suffix)| name.ends_with(suffix));
        let (kind, name) = match marked {
            None => (DirectoryKind::Log, name),
            Some((kind, suffix)) => {
                let (log, id) = name.strip_suffix(suffix)?.rsplit_once('.')?;
                let (topic, partition) = log.rsplit_once('-')?;
                let is_marked = ![topic, partition, id].iter().any(|part| part.is_empty() || part.contains(java::is_space));
                (kind, is_marked.then_some(log)?)
            }
        };
        let (topic, partition) = name.rsplit_once('-')?;
        let partition = PartitionId(partition.parse().ok()?);
        (!topic.is_empty()).then(|| Self { partition: TopicPartition::new(topic, partition), kind })
    }
}
