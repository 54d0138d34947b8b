//! The id of the topic that a log belongs to (Kafka: `UnifiedLog.assignTopicId`, `initializeTopicId`, `maybeFlushMetadataFile`).

use super::error::{AppendError, LogError};
use super::partition_log::PartitionLog;
use crate::log_dir::{PartitionMetadata, PartitionMetadataError, Uuid};
use crate::storage::Storage;

/// The id, and whether the file that tells it is still to be written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopicId {
    id: Option<Uuid>,
    unwritten: bool,
}

impl<S: Storage> PartitionLog<S> {
    /// The id of the topic, if the log was told one or its directory has it.
    #[must_use]
    pub fn topic_id(&self) -> Option<Uuid> {
        self.topic_id.id
    }

    /// Tells the log the id of its topic. The file that keeps it is written in front of the next append, by
    /// [`Self::flush_topic_id`] or by an orderly stop: what is appended from now on is never there without it.
    ///
    /// # Errors
    /// [`PartitionMetadataError::InconsistentTopicId`] when the log has another id, and [`PartitionMetadataError::ZeroTopicId`].
    pub fn assign_topic_id(&mut self, topic_id: Uuid) -> Result<(), PartitionMetadataError> {
        if topic_id == Uuid::ZERO {
            return Err(PartitionMetadataError::ZeroTopicId);
        }
        match self.topic_id.id {
            Some(recorded) if recorded != topic_id => {
                return Err(PartitionMetadataError::InconsistentTopicId { recorded, asked: topic_id });
            }
            Some(_) => {}
            None => self.topic_id = TopicId { id: Some(topic_id), unwritten: true },
        }
        Ok(())
    }

    /// Writes the id of the topic if it was assigned and is not in the directory yet.
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn flush_topic_id(&mut self) -> Result<(), LogError> {
        self.check_online()?;
        if let TopicId { id: Some(id), unwritten: true } = self.topic_id {
            let recorded = PartitionMetadata::record(&mut self.storage, id).map_err(LogError::from);
            self.or_offline(recorded)?;
            self.topic_id.unwritten = false;
        }
        Ok(())
    }

    /// Whatever is appended can be told from records of another topic of that name from the first byte on.
    pub(super) fn topic_id_before_data(&mut self) -> Result<(), AppendError> {
        Ok(self.flush_topic_id()?)
    }

    /// What the directory of a log that is being opened says.
    pub(super) fn load_topic_id(&mut self) -> Result<(), LogError> {
        let id = PartitionMetadata::load(&self.storage)?.map(|metadata| metadata.topic_id);
        self.topic_id = TopicId { id, unwritten: false };
        Ok(())
    }
}
