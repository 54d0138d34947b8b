//! The directory of a log gets another name, or goes (Kafka: `UnifiedLog.renameDir`, `delete`).

use super::error::LogError;
use super::partition_log::PartitionLog;
use crate::storage::{FileStorage, Storage, StorageError};

impl PartitionLog<FileStorage> {
    /// Gives the directory another name beside its old one, for instance that of one that waits for its deletion
    /// ([`crate::log_dir::DirectoryName::name_of`]), or the usual one when a copy takes the place of a log; tells whether it had not that
    /// name before. The log goes on in it as it is. The id of the topic is written before.
    ///
    /// # Errors
    /// When the name is none, something other than an empty directory has it, the log is offline or the storage fails.
    pub fn rename_dir(&mut self, name: &str) -> Result<bool, LogError> {
        self.flush_topic_id()?;
        match self.storage.rename_dir(name) {
            // The storage was not asked for anything.
            Err(error @ StorageError::InvalidName { .. }) => Err(error.into()),
            renamed => Ok(self.or_offline(renamed)?),
        }
    }
}

impl<S: Storage> PartitionLog<S> {
    /// Removes the log: all files of the storage, at once, whatever `file.delete.delay.ms` says. Returns the empty storage; see
    /// [`FileStorage::remove_dir`]. A broker renames the directory first, so that a crash in between leaves no half of a log.
    ///
    /// # Errors
    /// When the log is offline or the storage fails.
    pub fn delete(mut self) -> Result<S, LogError> {
        self.check_online()?;
        // From the end on: whenever this stops, what is left has no hole.
        for segment in self.segments.iter().rev() {
            segment.remove_files(&mut self.storage)?;
        }
        for name in self.storage.names()? {
            self.storage.remove(&name)?;
        }
        Ok(self.storage)
    }
}
