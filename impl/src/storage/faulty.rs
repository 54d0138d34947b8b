//! A storage in memory that fails when it is told to, and forgets what was not made durable.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;

use super::{MemoryStorage, Operation, Storage, StorageError, check_name};

/// Which calls count, and fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FaultyCalls {
    /// Those that change something: append, reserve, trim, truncate, replace, remove, rename, sync.
    #[default]
    Changes,
    /// These, and names, len and read too.
    All,
}

/// What a power failure leaves of the bytes that were appended since a file was last made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unsynced {
    /// All: the process died, the system did not.
    Kept,
    /// Nothing.
    Lost,
    /// So many bytes of each file, or all if there are fewer: a torn write.
    Torn(u64),
}

/// Files in memory, for tests of what becomes of a log when its storage fails or its machine stops.
///
/// There are two sets of files: what the process sees, and what is durable. An append or a cut reaches the second one with
/// [`Storage::sync`], a replacement, a removal, reserved bytes or a new name at once, which is what [`super::FileStorage`] promises.
/// [`FaultyStorage::after_power_failure`] tells what is left.
///
/// ```
/// use bytes::Bytes;
/// use cleanslate_log::storage::{FaultyStorage, Storage, Unsynced};
///
/// let mut storage = FaultyStorage::new();
/// storage.append("a.log", &Bytes::from_static(b"durable"))?;
/// storage.sync("a.log")?;
/// storage.append("a.log", &Bytes::from_static(b" or not"))?;
/// storage.fail_after(0);
/// assert!(storage.sync("a.log").is_err());
/// let left = |unsynced| storage.after_power_failure(unsynced).read_all("a.log");
/// assert_eq!(left(Unsynced::Kept)?.as_deref(), Some(&b"durable or not"[..]));
/// assert_eq!(left(Unsynced::Lost)?.as_deref(), Some(&b"durable"[..]));
/// assert_eq!(left(Unsynced::Torn(3))?.as_deref(), Some(&b"durable or"[..]));
/// # Ok::<(), cleanslate_log::storage::StorageError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FaultyStorage {
    visible: MemoryStorage,
    /// What is durable of the files that are not durable as they are.
    durable: BTreeMap<String, Durable>,
    calls: FaultyCalls,
    /// How many calls there were.
    count: Cell<u64>,
    /// How many calls succeed; `None` for all.
    limit: Option<u64>,
    /// The end of the names that cannot be appended to nor replaced.
    refused: Option<String>,
}

impl FaultyStorage {
    /// A storage without files that does not fail.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A storage with these files, all of them durable, that does not fail.
    #[must_use]
    pub fn over(files: MemoryStorage) -> Self {
        Self { visible: files, ..Self::default() }
    }

    /// Says which calls count and may fail.
    #[must_use]
    pub fn counting(mut self, calls: FaultyCalls) -> Self {
        self.calls = calls;
        self
    }

    /// From now on so many calls succeed, and all after them fail. An append that fails first writes half of its bytes.
    pub fn fail_after(&mut self, calls: u64) {
        self.count.set(0);
        self.limit = Some(calls);
    }

    /// From now on files whose name ends like this can neither be appended to nor replaced.
    pub fn refuse_files(&mut self, suffix: impl Into<String>) {
        self.refused = Some(suffix.into());
    }

    /// How many calls there were since the storage was made, or since [`FaultyStorage::fail_after`].
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.count.get()
    }

    /// What the process sees.
    #[must_use]
    pub fn visible(&self) -> &MemoryStorage {
        &self.visible
    }

    /// What a later process finds. A cut that was not made durable is undone where the bytes behind it are lost, too. Where bytes
    /// were reserved, what is lost leaves zeros.
    #[must_use]
    pub fn after_power_failure(&self, unsynced: Unsynced) -> MemoryStorage {
        let mut left = self.visible.reopened();
        let keep = match unsynced {
            Unsynced::Kept => return left,
            Unsynced::Lost => 0,
            Unsynced::Torn(bytes) => bytes,
        };
        for (name, durable) in &self.durable {
            let Ok(Some(visible)) = self.visible.read_all(name) else { continue };
            let found = torn(&durable.content, &visible, keep);
            // The name is that of a file that is there.
            let _ = left.replace(name, &found).and_then(|()| left.reserve(name, durable.reserved));
        }
        left.reopened()
    }

    /// Counts a call; an error when it is to fail.
    fn call(&self, operation: Operation, name: &str, is_change: bool) -> Result<(), StorageError> {
        if !is_change && self.calls == FaultyCalls::Changes {
            return Ok(());
        }
        let before = self.count.get();
        self.count.set(before.saturating_add(1));
        if self.limit.is_some_and(|limit| before >= limit) { Err(failed(operation, name)) } else { Ok(()) }
    }

    fn check_refused(&self, operation: Operation, name: &str) -> Result<(), StorageError> {
        if self.refused.as_deref().is_some_and(|suffix| name.ends_with(suffix)) { Err(failed(operation, name)) } else { Ok(()) }
    }

    /// Notes what is durable of a file that is about to change.
    fn will_change(&mut self, name: &str) -> Result<(), StorageError> {
        if !self.durable.contains_key(name) {
            let content = self.visible.read_all(name)?.unwrap_or_default();
            let reserved = self.visible.reserved(name).unwrap_or(0);
            self.durable.insert(name.to_owned(), Durable { content, reserved });
        }
        Ok(())
    }
}

/// What is durable of a file.
#[derive(Clone, Debug)]
struct Durable {
    content: Bytes,
    /// Length of the file itself where that was made longer, in bytes.
    reserved: u64,
}

/// What is left of a file that was durable as `durable`, with `keep` bytes of what came after.
fn torn(durable: &Bytes, visible: &Bytes, keep: u64) -> Bytes {
    if !visible.starts_with(durable) && keep == 0 {
        return durable.clone();
    }
    let same = durable.iter().zip(visible).take_while(|(old, new)| old == new).count();
    let end = same.saturating_add(usize::try_from(keep).unwrap_or(usize::MAX)).min(visible.len());
    visible.slice(..end)
}

fn failed(operation: Operation, name: &str) -> StorageError {
    let (kind, message) = (io::ErrorKind::StorageFull, "the storage was told to fail".to_owned());
    StorageError::Io { operation, name: name.to_owned(), kind, message }
}

impl Storage for FaultyStorage {
    fn names(&self) -> Result<Vec<String>, StorageError> {
        self.call(Operation::Read, "names", false)?;
        self.visible.names()
    }

    fn len(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.call(Operation::Read, name, false)?;
        self.visible.len(name)
    }

    fn read(&self, name: &str, at: u64, max: usize) -> Result<Bytes, StorageError> {
        self.call(Operation::Read, name, false)?;
        self.visible.read(name, at, max)
    }

    fn append(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        check_name(name)?;
        let called = self.call(Operation::Append, name, true).and_then(|()| self.check_refused(Operation::Append, name));
        let half = if called.is_ok() { bytes.clone() } else { bytes.slice(..bytes.len() / 2) };
        if called.is_ok() || !half.is_empty() {
            self.will_change(name)?;
            self.visible.append(name, &half)?;
        }
        called
    }

    fn reserve(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        check_name(name)?;
        self.call(Operation::Reserve, name, true).and_then(|()| self.check_refused(Operation::Reserve, name))?;
        self.visible.reserve(name, len)?;
        let reserved = self.visible.reserved(name).unwrap_or(0);
        if let Some(durable) = self.durable.get_mut(name) {
            durable.reserved = reserved;
        }
        Ok(())
    }

    fn trim(&mut self, name: &str) -> Result<(), StorageError> {
        check_name(name)?;
        if self.visible.reserved(name).is_some() {
            self.call(Operation::Truncate, name, true)?;
            self.visible.trim(name)?;
            self.durable.remove(name);
        }
        Ok(())
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        self.call(Operation::Truncate, name, true)?;
        if self.visible.len(name)?.is_some_and(|found| len <= found) {
            self.will_change(name)?;
        }
        self.visible.truncate(name, len)
    }

    fn replace(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        check_name(name)?;
        self.call(Operation::Replace, name, true)?;
        self.check_refused(Operation::Replace, name)?;
        self.visible.replace(name, bytes)?;
        self.durable.remove(name);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        self.call(Operation::Remove, name, true)?;
        self.visible.remove(name)?;
        self.durable.remove(name);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        self.call(Operation::Rename, from, true)?;
        self.visible.rename(from, to)?;
        // The name is durable at once, the bytes are as durable as they were.
        let durable = self.durable.remove(from);
        self.durable.remove(to);
        self.durable.extend(durable.filter(|_| from != to).map(|durable| (to.to_owned(), durable)));
        Ok(())
    }

    fn sync(&mut self, name: &str) -> Result<(), StorageError> {
        self.call(Operation::Sync, name, true)?;
        self.visible.sync(name)?;
        self.durable.remove(name);
        Ok(())
    }
}
