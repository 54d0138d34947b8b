//! A storage in memory whose clones share what they have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::{MAX_RESERVED_BYTES, Operation, Storage, StorageError, check_name};

/// What reserved bytes are made of.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Files in memory. A clone costs one reference count; the first write to a clone copies the table of files, and the
/// first append to a file the list of its chunks, but never the bytes. So a clone serves as the image that a crash
/// leaves; what a process finds that opens it anew is [`MemoryStorage::reopened`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStorage {
    files: Arc<BTreeMap<String, Arc<Chunks>>>,
}

/// The content of a file: no chunk is empty.
#[derive(Clone, Debug, Default)]
struct Chunks {
    /// Each with the position of its first byte.
    chunks: Vec<(u64, Bytes)>,
    len: u64,
    /// Length of the file itself where that was made longer, in bytes.
    reserved: u64,
}

impl PartialEq for Chunks {
    /// Equal bytes, however they were appended, and whatever is reserved behind them.
    fn eq(&self, other: &Self) -> bool {
        let max = usize::try_from(self.len).unwrap_or(usize::MAX);
        self.len == other.len && self.read(0, max) == other.read(0, max)
    }
}

impl Eq for Chunks {}

impl Chunks {
    fn of(bytes: &Bytes) -> Self {
        let mut chunks = Self::default();
        chunks.append(bytes);
        chunks
    }

    fn append(&mut self, bytes: &Bytes) {
        if !bytes.is_empty() {
            self.chunks.push((self.len, bytes.clone()));
            self.len = self.len.saturating_add(bytes.len() as u64);
        }
    }

    /// As many zeros as make it `len` bytes long.
    fn pad(&mut self, len: u64) {
        while self.len < len {
            let count = usize::try_from(len - self.len).unwrap_or(usize::MAX).min(ZEROS.len());
            self.append(&Bytes::from_static(ZEROS.get(..count).unwrap_or(&ZEROS)));
        }
    }

    /// `len` is at most the present length.
    fn truncate(&mut self, len: u64) {
        self.chunks.retain(|(at, _)| *at < len);
        if let Some((at, last)) = self.chunks.last_mut() {
            last.truncate(usize::try_from(len - *at).unwrap_or(usize::MAX));
        }
        self.len = len;
        self.reserved = 0;
    }

    fn read(&self, at: u64, max: usize) -> Bytes {
        let end = self.len.min(at.saturating_add(max as u64));
        // The chunk that holds `at` is the last one that begins at or before it.
        let first = self.chunks.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        let parts = self.chunks.iter().skip(first);
        let mut parts = parts.take_while(|(start, _)| *start < end).filter_map(|(start, chunk)| {
            let from = usize::try_from(at.saturating_sub(*start)).ok()?;
            let to = usize::try_from(end - start).ok()?.min(chunk.len());
            (from < to).then(|| chunk.slice(from..to))
        });
        let Some(first) = parts.next() else {
            return Bytes::new();
        };
        let Some(second) = parts.next() else {
            return first;
        };
        let mut joined = BytesMut::from(first);
        joined.extend_from_slice(&second);
        parts.for_each(|part| joined.extend_from_slice(&part));
        joined.freeze()
    }
}

impl MemoryStorage {
    /// A storage without files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What a process finds that opens these files anew: zeros where bytes were reserved.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use cleanslate_log::storage::{MemoryStorage, Storage};
    ///
    /// let mut storage = MemoryStorage::new();
    /// storage.reserve("a.log", 5)?;
    /// storage.append("a.log", &Bytes::from_static(b"abc"))?;
    /// assert_eq!(storage.read_all("a.log")?.as_deref(), Some(&b"abc"[..]));
    /// assert_eq!(storage.reopened().read_all("a.log")?.as_deref(), Some(&b"abc\0\0"[..]));
    /// # Ok::<(), cleanslate_log::storage::StorageError>(())
    /// ```
    #[must_use]
    pub fn reopened(&self) -> Self {
        let mut left = self.clone();
        let reserved: Vec<_> = self.files.keys().filter_map(|name| self.reserved(name).map(|len| (name, len))).collect();
        for (name, len) in reserved {
            left.change(name, |file| {
                file.pad(len);
                file.reserved = 0;
            });
        }
        left
    }

    /// Length of the file itself, in bytes, where that was made longer than what is in it.
    pub(super) fn reserved(&self, name: &str) -> Option<u64> {
        self.files.get(name).map(|file| file.reserved).filter(|len| *len > 0)
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Chunks)) {
        if let Some(file) = Arc::make_mut(&mut self.files).get_mut(name) {
            change(Arc::make_mut(file));
        }
    }

    fn get(&self, operation: Operation, name: &str) -> Result<&Chunks, StorageError> {
        check_name(name)?;
        let file = self.files.get(name).map(Arc::as_ref);
        file.ok_or_else(|| StorageError::NotFound { operation, name: name.to_owned() })
    }
}

impl Storage for MemoryStorage {
    fn names(&self) -> Result<Vec<String>, StorageError> {
        Ok(self.files.keys().cloned().collect())
    }

    fn len(&self, name: &str) -> Result<Option<u64>, StorageError> {
        check_name(name)?;
        Ok(self.files.get(name).map(|file| file.len))
    }

    fn read(&self, name: &str, at: u64, max: usize) -> Result<Bytes, StorageError> {
        Ok(self.get(Operation::Read, name)?.read(at, max))
    }

    fn append(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        check_name(name)?;
        let files = Arc::make_mut(&mut self.files);
        match files.get_mut(name) {
            Some(file) => Arc::make_mut(file).append(bytes),
            None => {
                files.insert(name.to_owned(), Arc::new(Chunks::of(bytes)));
            }
        }
        Ok(())
    }

    fn reserve(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        check_name(name)?;
        let file = Arc::make_mut(&mut self.files).entry(name.to_owned()).or_default();
        let len = len.min(MAX_RESERVED_BYTES).max(file.reserved);
        if len > file.len {
            Arc::make_mut(file).reserved = len;
        }
        Ok(())
    }

    fn trim(&mut self, name: &str) -> Result<(), StorageError> {
        check_name(name)?;
        if self.reserved(name).is_some() {
            self.change(name, |file| file.reserved = 0);
        }
        Ok(())
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        let found = self.get(Operation::Truncate, name)?.len;
        if len > found {
            return Err(StorageError::TruncateBeyondEnd { name: name.to_owned(), requested: len, len: found });
        }
        self.change(name, |file| file.truncate(len));
        Ok(())
    }

    fn replace(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        check_name(name)?;
        let file = Arc::new(Chunks::of(bytes));
        Arc::make_mut(&mut self.files).insert(name.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        check_name(name)?;
        if self.files.contains_key(name) {
            Arc::make_mut(&mut self.files).remove(name);
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        check_name(to)?;
        self.get(Operation::Rename, from)?;
        let files = Arc::make_mut(&mut self.files);
        if let Some(file) = files.remove(from) {
            files.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> Result<(), StorageError> {
        self.get(Operation::Sync, name).map(|_| ())
    }
}
