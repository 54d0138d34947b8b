//! The entries of an index file, read page by page.

use bytes::Bytes;

use super::{DumpError, len_of};
use crate::storage::Storage;

/// So many entries are read at once.
const PAGE_ENTRIES: u64 = 1024;

/// The entries of a file, all of the same size; what follows the last whole one is not read.
pub(super) struct Entries<'a, S> {
    storage: &'a S,
    name: &'a str,
    /// Where the first entry begins.
    from: u64,
    entry_bytes: usize,
    len: u64,
    count: u64,
    page: Bytes,
    /// The first entry of the page.
    first: u64,
}

impl<'a, S: Storage> Entries<'a, S> {
    pub(super) fn open(storage: &'a S, name: &'a str, entry_bytes: usize) -> Result<Self, DumpError> {
        Self::open_behind(storage, name, 0, entry_bytes)
    }

    /// The entries behind a header.
    pub(super) fn open_behind(storage: &'a S, name: &'a str, header_bytes: u64, entry_bytes: usize) -> Result<Self, DumpError> {
        let len = len_of(storage, name)?;
        let count = len.saturating_sub(header_bytes).checked_div(entry_bytes as u64).unwrap_or(0);
        Ok(Self { storage, name, from: header_bytes, entry_bytes, len, count, page: Bytes::new(), first: 0 })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The length of the file, in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// An entry; `None` where there is none.
    pub(super) fn get(&mut self, index: u64) -> Result<Option<Bytes>, DumpError> {
        if index >= self.count {
            return Ok(None);
        }
        if let Some(entry) = self.in_page(index) {
            return Ok(Some(entry));
        }
        self.first = index - index % PAGE_ENTRIES;
        let page_bytes = usize::try_from(PAGE_ENTRIES).unwrap_or(1).saturating_mul(self.entry_bytes);
        let at = self.first.saturating_mul(self.entry_bytes as u64).saturating_add(self.from);
        self.page = self.storage.read(self.name, at, page_bytes)?;
        Ok(self.in_page(index))
    }

    fn in_page(&self, index: u64) -> Option<Bytes> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?.checked_mul(self.entry_bytes)?;
        let end = at.checked_add(self.entry_bytes)?;
        (end <= self.page.len()).then(|| self.page.slice(at..end))
    }
}
