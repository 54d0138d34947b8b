//! The directory of a log that is open.

use super::error::LogError;
use super::partition_log::PartitionLog;
use crate::storage::FileStorage;

impl PartitionLog<FileStorage> {
    /// Gives the log's directory another name beside the one that it has; the log goes on there (Kafka: `UnifiedLog.renameDir`).
    ///
    /// # Errors
    /// When the name is that of no directory or of one with files in it, the log is offline or the storage fails.
    pub fn rename_dir(&mut self, name: &str) -> Result<(), LogError> {
        self.check_online()?;
        let renamed = self.storage.rename_dir(name);
        Ok(self.or_offline(renamed)?)
    }
}
