//! The offset index (Kafka: `DumpLogSegments.dumpIndex`).

use bytes::Buf as _;
use serde_json::json;

use super::entries::Entries;
use super::findings::{Findings, Kind};
use super::{DumpError, DumpFile, Dumper, len_of};
use crate::log::scan::Scanner;
use crate::log::{IndexError, OFFSET_INDEX_ENTRY_BYTES};
use crate::storage::Storage;
use crate::types::Offset;

/// Entries at the end that Kafka searches first.
const WARM_ENTRIES: u64 = 8192 / OFFSET_INDEX_ENTRY_BYTES as u64;

/// An entry as stored: the position is a signed number, below 0 in a damaged index only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) offset: Offset,
    pub(super) position: i32,
}

/// An offset index on file.
pub(super) struct IndexFile<'a, S> {
    base_offset: Offset,
    entries: Entries<'a, S>,
}

impl<'a, S: Storage> IndexFile<'a, S> {
    pub(super) fn open(storage: &'a S, name: &'a str, base_offset: Offset) -> Result<Self, DumpError> {
        Ok(Self { base_offset, entries: Entries::open(storage, name, OFFSET_INDEX_ENTRY_BYTES)? })
    }

    fn get(&mut self, index: u64) -> Result<Option<IndexEntry>, DumpError> {
        let entry = self.entries.get(index)?;
        Ok(entry.map(|mut entry| {
            let offset = Offset(self.base_offset.get().wrapping_add(i64::from(entry.get_i32())));
            IndexEntry { offset, position: entry.get_i32() }
        }))
    }

    /// Kafka: `OffsetIndex.sanityCheck`.
    fn check(&mut self) -> Result<(), DumpError> {
        let last = self.get(self.entries.count().saturating_sub(1))?.map(|last| last.offset);
        check_end(self.base_offset, last, self.entries.len(), OFFSET_INDEX_ENTRY_BYTES)
    }

    /// The position of the last entry at or below an offset; 0 in front of the first. The search is Kafka's
    /// (`AbstractIndex.indexSlotRangeFor`): which of the zeros behind the last entry it meets decides what it finds.
    pub(super) fn lookup(&mut self, offset: Offset) -> Result<i64, DumpError> {
        let Some(last) = self.entries.count().checked_sub(1) else { return Ok(0) };
        let first_hot = last.saturating_sub(WARM_ENTRIES);
        let at = |found: Option<IndexEntry>| found.map_or(Offset(0), |entry| entry.offset);
        let (mut low, mut high) = if at(self.get(first_hot)?) < offset {
            (first_hot, last)
        } else if at(self.get(0)?) > offset {
            return Ok(0);
        } else {
            (0, first_hot)
        };
        while low < high {
            let middle = low.saturating_add(high).div_ceil(2);
            match at(self.get(middle)?).cmp(&offset) {
                std::cmp::Ordering::Greater => high = middle.saturating_sub(1),
                std::cmp::Ordering::Less => low = middle,
                std::cmp::Ordering::Equal => {
                    low = middle;
                    break;
                }
            }
        }
        Ok(self.get(low)?.map_or(0, |entry| i64::from(entry.position)))
    }
}

/// The checks that both indexes have.
pub(super) fn check_end(base_offset: Offset, last: Option<Offset>, len: u64, entry_bytes: usize) -> Result<(), DumpError> {
    if let Some(offset) = last.filter(|last| *last < base_offset) {
        return Err(IndexError::BelowBase { offset, base_offset }.into());
    }
    if len.is_multiple_of(entry_bytes as u64) {
        return Ok(());
    }
    Err(IndexError::NotWhole { len: usize::try_from(len).unwrap_or(usize::MAX), entry_bytes }.into())
}

/// The log that an index belongs to.
pub(super) struct LogBeside {
    pub(super) base_offset: Offset,
    pub(super) name: String,
    len: u64,
}

impl LogBeside {
    pub(super) fn of(storage: &impl Storage, index: &DumpFile<'_>) -> Result<Self, DumpError> {
        let base_offset = index.base_offset()?;
        let name = format!("{}.log", index.stem());
        Ok(Self { base_offset, len: len_of(storage, &name)?, name })
    }

    /// Whether an index has an entry in a slot, by the offset in it: the rest of an index that was not closed is zeros.
    pub(super) fn is_entry(&self, slot: u64, offset: Offset) -> bool {
        slot == 0 || offset != self.base_offset
    }

    /// A position in the log that an index entry tells.
    pub(super) fn position(&self, position: i64) -> Result<u64, DumpError> {
        let beyond = DumpError::BeyondEnd { position, len: self.len };
        u64::try_from(position).ok().filter(|position| *position <= self.len).ok_or(beyond)
    }
}

impl Dumper<'_> {
    pub(super) fn offset_index<S: Storage>(
        &mut self,
        storage: &S,
        file: &DumpFile<'_>,
        findings: &mut Findings,
    ) -> Result<(), DumpError> {
        let log = LogBeside::of(storage, file)?;
        let base_offset = log.base_offset;
        let mut index = IndexFile::open(storage, file.name, base_offset)?;
        let count = index.entries.count();
        if count == 0 {
            return self.index_verdict(file, "empty", "is empty.");
        }
        if self.options.index_sanity_check {
            index.check()?;
            return self.index_verdict(file, "sane", "passed sanity check.");
        }
        let mut scanner = Scanner::new(storage, &log.name, 0)?;
        for slot in 0..count {
            let Some(entry) = index.get(slot)?.filter(|entry| log.is_entry(slot, entry.offset)) else { break };
            let position = log.position(i64::from(entry.position))?;
            scanner.seek(position, position.saturating_add(self.options.max_message_size))?;
            let head = scanner.next_head().map_err(|error| super::log::scan_error(position, error))?;
            let head = head.ok_or(DumpError::NoBatch { position: i64::from(entry.position) })?;
            let last_offset = head.batch.last_offset();
            if last_offset != entry.offset {
                findings.put(Kind::IndexMismatch, entry.offset.get(), last_offset.get());
            }
            if !self.options.verify_index_only {
                self.offset_index_entry(file, entry)?;
            }
        }
        Ok(())
    }

    fn offset_index_entry(&mut self, file: &DumpFile<'_>, entry: IndexEntry) -> Result<(), DumpError> {
        let IndexEntry { offset, position } = entry;
        match self.options.json {
            true => self.line(file, "offset-index-entry", json!({ "offset": offset.get(), "position": position })),
            false => Ok(writeln!(self.out, "offset: {offset} position: {position}")?),
        }
    }

    /// The only thing that is said of an index.
    pub(super) fn index_verdict(&mut self, file: &DumpFile<'_>, verdict: &'static str, text: &str) -> Result<(), DumpError> {
        match self.options.json {
            true => self.line(file, "index-verdict", json!({ "verdict": verdict })),
            false => Ok(writeln!(self.out, "{} {text}", file.path)?),
        }
    }
}
