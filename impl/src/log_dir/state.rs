//! How the logs of a directory are to be opened, and what is left behind when they were closed (Kafka: `LogManager`).

use super::clean_shutdown::{CLEAN_SHUTDOWN_FILE, CleanShutdown};
use super::directory_name::TopicPartition;
use super::offset_checkpoint::{CheckpointError, CheckpointFile, OffsetCheckpoint};
use crate::log::{LogError, OpenOptions, PartitionLog, Recovery};
use crate::storage::{Storage, StorageError};
use crate::types::{BrokerEpoch, Offset};

/// What a log directory says of its partitions when a broker starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogDirState {
    /// The mark of an orderly stop; `None` after a crash.
    pub clean_shutdown: Option<CleanShutdown>,
    /// Recovery points.
    pub recovery_points: OffsetCheckpoint,
    /// Log start offsets.
    pub log_start_offsets: OffsetCheckpoint,
}

/// A checkpoint that cannot be read. The start goes on as if it were empty: logs are recovered from their beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The file.
    pub file: CheckpointFile,
    /// What is wrong with it.
    pub error: CheckpointError,
}

impl LogDirState {
    /// Reads a log directory at the start of a broker, and removes the mark of an orderly stop before any log is opened: a
    /// crash from here on is one (Kafka: `LogManager.loadLogs`). Checkpoints that cannot be read are returned.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn start(storage: &mut impl Storage) -> Result<(Self, Vec<Unreadable>), StorageError> {
        let mark = storage.read_all(CLEAN_SHUTDOWN_FILE)?;
        storage.remove(CLEAN_SHUTDOWN_FILE)?;
        let mut unreadable = Vec::new();
        let mut load = |file| match OffsetCheckpoint::load(storage, file) {
            Ok(checkpoint) => Ok(checkpoint),
            Err(CheckpointError::Storage(error)) => Err(error),
            Err(error) => {
                unreadable.push(Unreadable { file, error });
                Ok(OffsetCheckpoint::default())
            }
        };
        let recovery_points = load(CheckpointFile::RecoveryPoint)?;
        let log_start_offsets = load(CheckpointFile::LogStartOffset)?;
        let clean_shutdown = mark.map(|file| CleanShutdown::decode(&file));
        Ok((Self { clean_shutdown, recovery_points, log_start_offsets }, unreadable))
    }

    /// How the log of a partition is to be opened; a partition without an entry is recovered, and starts, from offset 0.
    #[must_use]
    pub fn open_options(&self, partition: &TopicPartition) -> OpenOptions {
        let offset_in = |checkpoint: &OffsetCheckpoint| checkpoint.get(partition).unwrap_or(Offset(0));
        OpenOptions {
            recovery: if self.clean_shutdown.is_some() { Recovery::Clean } else { Recovery::Unclean },
            recovery_point: offset_in(&self.recovery_points),
            log_start_offset: offset_in(&self.log_start_offsets),
        }
    }
}

/// What a log directory keeps of a log that was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedLog {
    /// The partition.
    pub partition: TopicPartition,
    /// Everything below is durable.
    pub recovery_point: Offset,
    /// The log start offset, if it lies behind the base offset of the first segment: otherwise that tells it.
    pub log_start_offset: Option<Offset>,
}

impl ClosedLog {
    /// What is to be kept of a log.
    pub fn of(partition: TopicPartition, log: &PartitionLog<impl Storage>) -> Self {
        let first_base = log.segments().next().map_or(Offset(0), |(base, _)| base);
        let log_start_offset = Some(log.log_start_offset()).filter(|offset| *offset > first_base);
        Self { partition, recovery_point: log.recovery_point(), log_start_offset }
    }

    /// Writes the checkpoints of recovery points and log start offsets, as a broker does every minute
    /// (Kafka: `LogManager.checkpointRecoveryOffsetsInDir`, `checkpointLogStartOffsetsInDir`).
    ///
    /// # Errors
    /// When the storage fails.
    pub fn checkpoint(storage: &mut impl Storage, logs: &[Self]) -> Result<(), StorageError> {
        let recovery_points = logs.iter().map(|log| (log.partition.clone(), log.recovery_point));
        OffsetCheckpoint::new(recovery_points).store(storage, CheckpointFile::RecoveryPoint)?;
        let log_start_offsets = logs.iter().filter_map(|log| Some((log.partition.clone(), log.log_start_offset?)));
        OffsetCheckpoint::new(log_start_offsets).store(storage, CheckpointFile::LogStartOffset)
    }

    /// Makes all logs of a directory durable and closes them; if that works for each, writes the checkpoints and the mark of an
    /// orderly stop (Kafka: `LogManager.shutdown`). If not, it goes on with the others, but leaves the directory's own files as
    /// they are, so that the next start recovers the logs. A caller that has not all logs of the directory, as they are not
    /// open yet, must not ask for this.
    ///
    /// # Errors
    /// [`LogError`] of the first log that could not be closed; or when the directory's storage fails.
    pub fn stop_all<'a, T: Storage + 'a>(
        storage: &mut impl Storage,
        logs: impl IntoIterator<Item = (TopicPartition, &'a mut PartitionLog<T>)>,
        broker_epoch: BrokerEpoch,
    ) -> Result<(), LogError> {
        let mut closed = Vec::new();
        let mut failed = None;
        for (partition, log) in logs {
            match log.flush_with_active().and_then(|()| log.close_clean()) {
                Ok(()) => closed.push(Self::of(partition, log)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(Self::stop(storage, &closed, broker_epoch)?),
        }
    }

    /// Writes the checkpoints of recovery points and log start offsets, then the mark of an orderly stop
    /// (Kafka: `LogManager.shutdown`). All logs of the directory must have been closed without an error; see [`Self::stop_all`].
    ///
    /// # Errors
    /// When the storage fails; then there is no mark, and the next start recovers the logs.
    pub fn stop(storage: &mut impl Storage, logs: &[Self], broker_epoch: BrokerEpoch) -> Result<(), StorageError> {
        Self::checkpoint(storage, logs)?;
        storage.replace(CLEAN_SHUTDOWN_FILE, &CleanShutdown::encode(broker_epoch))
    }
}
