//! The names of partition directories (Kafka: `LocalLog.parseTopicPartitionName`).

use std::fmt;

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

impl DirectoryName {
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
