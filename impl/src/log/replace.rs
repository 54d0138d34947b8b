//! Segments take the place of others (Kafka: `LocalLog.replaceSegments`).

use bytes::Bytes;

use super::deleted::DeletedFiles;
use super::files::{CLEANED, SWAP};
use super::segment::Segment;
use crate::storage::{MemoryStorage, Storage, StorageError};
use crate::types::TimestampMs;

/// A segment with its files, which are not in the log's storage yet.
pub(super) struct Built {
    pub(super) segment: Segment,
    pub(super) files: MemoryStorage,
}

/// All new segments are complete before an old one is touched: a crash leaves either the old ones or, to be put in place by
/// the next start, the new ones. The last comes first, because a start gives up finished segments behind an unfinished
/// one. Snapshots at the bases of old segments that are gone are removed.
pub(super) fn replace_files(
    storage: &mut impl Storage,
    deleted: &mut DeletedFiles,
    new: &[Built],
    old: &[Segment],
    now: TimestampMs,
) -> Result<(), StorageError> {
    for built in new {
        for (name, content) in built.content()? {
            storage.replace(&format!("{name}{CLEANED}"), &content)?;
        }
    }
    for built in new.iter().rev() {
        let content = built.content()?;
        for (name, content) in &content {
            storage.replace(&format!("{name}{SWAP}"), content)?;
        }
        for (name, _) in &content {
            storage.remove(&format!("{name}{CLEANED}"))?;
        }
    }
    for old in old {
        deleted.delete_segment(storage, old, now)?;
        if new.iter().all(|new| new.segment.base_offset != old.base_offset) {
            deleted.delete_snapshot(storage, old.base_offset, now)?;
        }
    }
    for built in new {
        for (name, content) in built.content()? {
            storage.replace(&name, &content)?;
            storage.remove(&format!("{name}{SWAP}"))?;
        }
    }
    Ok(())
}

impl Built {
    /// The files with their names.
    fn content(&self) -> Result<Vec<(String, Bytes)>, StorageError> {
        let with_content = |name: String| {
            let content = self.files.read_all(&name)?.unwrap_or_default();
            Ok((name, content))
        };
        self.files.names()?.into_iter().map(with_content).collect()
    }
}
