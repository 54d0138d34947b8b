//! Deleting files in two steps (Kafka: `LocalLog.deleteSegmentFiles`, `UnifiedLog.deleteProducerSnapshots`).
//!
//! A reader may still be sending what a segment held when the segment goes. So Kafka only renames its files at first, and
//! removes them `file.delete.delay.ms` later. What a crash leaves of renamed files is removed by the next start.

use super::error::LogError;
use super::files::{DELETED, SegmentFile};
use super::partition_log::PartitionLog;
use super::segment::Segment;
use crate::psm::{ProducerStateManager, snapshot_file_name};
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, TimestampMs};

/// How files are deleted, and which still wait for that.
#[derive(Clone, Debug, Default)]
pub(super) struct DeletedFiles {
    /// How long they wait, in milliseconds; `None` for not at all.
    delay_ms: Option<i64>,
    /// In the order in which they were renamed, each with the time from which on it may be removed.
    waiting: Vec<(TimestampMs, String)>,
}

impl DeletedFiles {
    pub(super) fn new(delay_ms: Option<i64>) -> Self {
        Self { delay_ms, waiting: Vec::new() }
    }

    /// For what is deleted from now on.
    pub(super) fn set_delay(&mut self, delay_ms: Option<i64>) {
        self.delay_ms = delay_ms;
    }

    /// Deletes the files of a segment.
    pub(super) fn delete_segment(
        &mut self,
        storage: &mut impl Storage,
        segment: &Segment,
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        let Some(due) = self.due(now) else { return segment.remove_files(storage) };
        for file in SegmentFile::ALL {
            let name = segment.name(file);
            if storage.len(&name)?.is_some() {
                let deleted = format!("{name}{DELETED}");
                storage.rename(&name, &deleted)?;
                self.waiting.push((due, deleted));
            }
        }
        Ok(())
    }

    /// Deletes the snapshot at the base of a segment that is gone, if there is one.
    pub(super) fn delete_snapshot(
        &mut self,
        storage: &mut impl Storage,
        base: Offset,
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        let Some(due) = self.due(now) else { return storage.remove(&snapshot_file_name(base)) };
        let marked = ProducerStateManager::mark_snapshot_for_deletion(storage, base)?;
        self.waiting.extend(marked.map(|file| (due, file.name)));
        Ok(())
    }

    fn due(&self, now: TimestampMs) -> Option<TimestampMs> {
        self.delay_ms.map(|delay_ms| TimestampMs(now.get().saturating_add(delay_ms)))
    }
}

impl<S: Storage> PartitionLog<S> {
    /// The files that were renamed to be deleted and still wait, each with the time from which on it may be removed, in the order
    /// in which they were renamed.
    pub fn deleted_files(&self) -> impl Iterator<Item = (&str, TimestampMs)> {
        self.deleted.waiting.iter().map(|(due, name)| (name.as_str(), *due))
    }

    /// Removes the files whose time has come ([`super::LogConfig::file_delete_delay_ms`]); returns how many waited for it. `now` is
    /// the clock in milliseconds.
    ///
    /// # Errors
    /// When the log is offline or the storage fails; what could not be removed waits on.
    pub fn remove_deleted_files(&mut self, now: TimestampMs) -> Result<usize, LogError> {
        self.check_online()?;
        let mut removed: usize = 0;
        while let Some(index) = self.deleted.waiting.iter().position(|(due, _)| *due <= now) {
            let name = self.deleted.waiting.get(index).map(|(_, name)| name.clone()).unwrap_or_default();
            let result = self.storage.remove(&name);
            self.or_offline(result)?;
            self.deleted.waiting.remove(index);
            removed = removed.saturating_add(1);
        }
        Ok(removed)
    }
}
