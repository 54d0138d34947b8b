//! Snapshots of producer state in a storage: taking, finding, loading and removing them
//! (Kafka: `ProducerStateManager.takeSnapshot`, `truncateAndReload`, `removeStraySnapshots`).

use super::manager::ProducerStateManager;
use super::snapshot::ProducerSnapshot;
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, TimestampMs};

/// The end of the name of a file that is to be deleted (Kafka: `LogFileUtils.DELETED_FILE_SUFFIX`).
pub(crate) const DELETED: &str = ".deleted";

const SUFFIX: &str = ".snapshot";

/// A snapshot file: it covers the log below `offset`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotFile {
    /// The offset in the name.
    pub offset: Offset,
    /// The name of the file.
    pub name: String,
}

/// The name of the snapshot at an offset: 20 digits and `.snapshot`.
#[must_use]
pub fn snapshot_file_name(offset: Offset) -> String {
    format!("{offset:0>20}{SUFFIX}")
}

/// The snapshot files of a storage, ascending by offset.
///
/// # Errors
/// When the storage cannot be read.
pub fn snapshot_files(storage: &impl Storage) -> Result<Vec<SnapshotFile>, StorageError> {
    let names = storage.names()?.into_iter();
    let mut files: Vec<SnapshotFile> = names
        .filter_map(|name| {
            let offset = name.strip_suffix(SUFFIX)?.parse::<i64>().ok()?;
            let offset = Offset(offset);
            (snapshot_file_name(offset) == name).then_some(SnapshotFile { offset, name })
        })
        .collect();
    files.sort();
    Ok(files)
}

impl ProducerStateManager {
    /// Writes a snapshot at the map end offset, if that has moved since the last one was written or loaded; tells
    /// whether it did.
    ///
    /// # Errors
    /// When the storage cannot be written.
    pub fn take_snapshot(&mut self, storage: &mut impl Storage) -> Result<bool, StorageError> {
        let offset = self.map_end_offset();
        if offset <= self.last_snapshot_offset {
            return Ok(false);
        }
        storage.replace(&snapshot_file_name(offset), &self.snapshot().encode())?;
        self.last_snapshot_offset = offset;
        Ok(true)
    }

    /// Brings the state to what the newest snapshot says that lies in a log from `log_start` to `log_end`; all others
    /// outside that range are removed, and those that are corrupt. Nothing is loaded when the state ends at `log_end`
    /// already. Expired entries, by `now` in milliseconds, are not loaded.
    ///
    /// Afterwards the map end offset is that of the snapshot, or `log_start`; the caller replays the log from there.
    ///
    /// # Errors
    /// When the storage cannot be read or written.
    pub fn truncate_and_reload(
        &mut self,
        storage: &mut impl Storage,
        log_start: Offset,
        log_end: Offset,
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        let mut files = snapshot_files(storage)?;
        for file in files.extract_if(.., |file| file.offset > log_end || file.offset <= log_start) {
            storage.remove(&file.name)?;
        }
        if log_end == self.map_end_offset() {
            return self.follow_log_start(storage, log_start);
        }
        self.clear();
        self.load_newest(storage, &files, log_start, now)
    }

    /// Follows a log whose beginning was cut (Kafka: `onLogStartOffsetIncremented`): ended transactions below it are
    /// forgotten, producers are kept.
    pub(crate) fn follow_log_start(&mut self, storage: &impl Storage, log_start: Offset) -> Result<(), StorageError> {
        self.on_log_start_incremented(log_start);
        self.last_snapshot_offset = snapshot_files(storage)?.last().map_or(log_start, |file| file.offset);
        Ok(())
    }

    fn load_newest(
        &mut self,
        storage: &mut impl Storage,
        files: &[SnapshotFile],
        log_start: Offset,
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        for file in files.iter().rev() {
            let bytes = storage.read_all(&file.name)?.unwrap_or_default();
            if let Ok(snapshot) = ProducerSnapshot::decode(&bytes) {
                self.load(&snapshot, now);
                self.last_snapshot_offset = file.offset;
                self.set_map_end_offset(file.offset);
                return Ok(());
            }
            storage.remove(&file.name)?;
        }
        self.last_snapshot_offset = log_start;
        self.set_map_end_offset(log_start);
        Ok(())
    }

    /// Forgets everything, removes all snapshots and goes on at `offset` (Kafka: `truncateFullyAndStartAt`).
    ///
    /// # Errors
    /// When the storage cannot be read or written.
    pub fn truncate_fully_and_start_at(&mut self, storage: &mut impl Storage, offset: Offset) -> Result<(), StorageError> {
        for file in snapshot_files(storage)? {
            storage.remove(&file.name)?;
        }
        self.clear();
        self.last_snapshot_offset = Offset(0);
        self.set_map_end_offset(offset);
        Ok(())
    }

    /// Renames the snapshot at an offset, so that it counts no more; the caller removes it later. Returns the file under its new
    /// name, or nothing when it is gone already (Kafka: `removeAndMarkSnapshotForDeletion`).
    ///
    /// # Errors
    /// When the storage cannot be read or written.
    pub fn mark_snapshot_for_deletion(storage: &mut impl Storage, offset: Offset) -> Result<Option<SnapshotFile>, StorageError> {
        let name = snapshot_file_name(offset);
        if storage.len(&name)?.is_none() {
            return Ok(None);
        }
        let deleted = format!("{name}{DELETED}");
        storage.rename(&name, &deleted)?;
        Ok(Some(SnapshotFile { offset, name: deleted }))
    }

    /// Removes snapshots that belong to no segment, except the one that a clean stop may have left behind the last
    /// segment's base; `bases` are the base offsets of the segments.
    ///
    /// # Errors
    /// When the storage cannot be read or written.
    pub fn remove_stray_snapshots(storage: &mut impl Storage, bases: &[Offset]) -> Result<(), StorageError> {
        let files = snapshot_files(storage)?;
        let mut strays: Vec<&SnapshotFile> = files.iter().filter(|file| !bases.contains(&file.offset)).collect();
        let last_base = bases.iter().max();
        if strays.last().is_some_and(|largest| last_base.is_none_or(|base| largest.offset > *base)) {
            strays.pop();
        }
        for stray in strays {
            storage.remove(&stray.name)?;
        }
        Ok(())
    }
}
