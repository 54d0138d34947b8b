//! Opening all logs of a directory (Kafka: `LogManager.loadLogs`).

use super::directory_name::TopicPartition;
use super::state::{LogDirState, Unreadable};
use crate::log::{LogError, OpenOptions};
use crate::storage::{Storage, StorageError};

/// What became of the logs of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedLogs<T> {
    /// All are open.
    Online {
        /// The logs, in the order of their partitions as they were given.
        logs: Vec<(TopicPartition, T)>,
        /// The checkpoints that could not be read.
        unreadable: Vec<Unreadable>,
    },
    /// The storage failed, and nothing of the directory can be used. The broker goes on with its other directories.
    Offline(StorageError),
}

impl<T> LoadedLogs<T> {
    /// Reads what a directory says of its logs, then opens one after the other. The mark of an orderly stop is gone afterwards,
    /// whatever comes of it: after a start that failed, the next one recovers.
    ///
    /// # Errors
    /// When a log cannot be opened for another reason than its storage.
    pub fn load(
        storage: &mut impl Storage,
        partitions: impl IntoIterator<Item = TopicPartition>,
        mut open: impl FnMut(&TopicPartition, OpenOptions) -> Result<T, LogError>,
    ) -> Result<Self, LogError> {
        let (state, unreadable) = match LogDirState::start(storage) {
            Ok(started) => started,
            Err(error) => return Ok(Self::Offline(error)),
        };
        let mut logs = Vec::new();
        for partition in partitions {
            match open(&partition, state.open_options(&partition)) {
                Ok(log) => logs.push((partition, log)),
                Err(LogError::Storage(error)) => return Ok(Self::Offline(error)),
                Err(error) => return Err(error),
            }
        }
        Ok(Self::Online { logs, unreadable })
    }
}
