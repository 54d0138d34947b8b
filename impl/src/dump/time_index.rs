//! The time index (Kafka: `DumpLogSegments.dumpTimeIndex`).

use bytes::Buf as _;

use super::entries::Entries;
use super::findings::Findings;
use super::index::{IndexFile, check_end, position_in};
use super::json::Line;
use super::log::scan_error;
use super::{DumpError, DumpFile, Dumper, len_of};
use crate::log::scan::Scanner;
use crate::log::{IndexError, TIME_INDEX_ENTRY_BYTES};
use crate::storage::Storage;
use crate::types::{Offset, TimestampMs};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeEntry {
    timestamp: TimestampMs,
    offset: Offset,
}

/// A time index on file.
struct TimeIndexFile<'a, S> {
    base_offset: Offset,
    entries: Entries<'a, S>,
}

impl<S: Storage> TimeIndexFile<'_, S> {
    fn get(&mut self, index: u64) -> Result<Option<TimeEntry>, DumpError> {
        let entry = self.entries.get(index)?;
        Ok(entry.map(|mut entry| {
            let timestamp = TimestampMs(entry.get_i64());
            TimeEntry { timestamp, offset: Offset(self.base_offset.get().wrapping_add(i64::from(entry.get_i32()))) }
        }))
    }

    /// Kafka: `TimeIndex.sanityCheck`.
    fn check(&mut self) -> Result<(), DumpError> {
        let first = self.get(0)?;
        let last = self.get(self.entries.count().saturating_sub(1))?;
        if let (Some(first), Some(last)) = (first, last)
            && last.timestamp < first.timestamp
        {
            return Err(IndexError::TimeGoesBack { first: first.timestamp, last: last.timestamp }.into());
        }
        check_end(self.base_offset, last.map(|last| last.offset), self.entries.len(), TIME_INDEX_ENTRY_BYTES)
    }
}

/// Knows from where a log can be read to its end, batch by batch. For each entry, Kafka 4.3 lists all batches from its position to
/// the end, and so dies of a batch that it cannot read wherever that lies behind the first entry's position. The list for an entry
/// whose position begins a batch of the first list is the end of that, which is why reading once is enough.
struct Framing<'a, S> {
    start: u64,
    /// Reads all again from a position.
    reader: Scanner<'a, S>,
    /// Goes from batch to batch as far as was asked.
    walker: Scanner<'a, S>,
}

impl<'a, S: Storage> Framing<'a, S> {
    fn from(storage: &'a S, log: &'a str, start: u64) -> Result<Self, DumpError> {
        let mut framing = Self { start, reader: Scanner::new(storage, log, start)?, walker: Scanner::new(storage, log, start)? };
        framing.read_to_end(start)?;
        Ok(framing)
    }

    /// An error if a batch at or behind a position cannot be read.
    fn check(&mut self, position: u64) -> Result<(), DumpError> {
        if position == self.start {
            return Ok(());
        }
        while self.walker.position() < position && step(&mut self.walker)? {}
        if self.walker.position() == position { Ok(()) } else { self.read_to_end(position) }
    }

    fn read_to_end(&mut self, position: u64) -> Result<(), DumpError> {
        self.reader.seek(position, u64::MAX)?;
        while step(&mut self.reader)? {}
        Ok(())
    }
}

/// Reads a batch; false at the end.
fn step<S: Storage>(scanner: &mut Scanner<'_, S>) -> Result<bool, DumpError> {
    let position = scanner.position();
    Ok(scanner.next().map_err(|error| scan_error(position, error))?.is_some())
}

impl Dumper<'_> {
    pub(super) fn time_index<S: Storage>(
        &mut self,
        storage: &S,
        file: &DumpFile<'_>,
        findings: &mut Findings,
    ) -> Result<(), DumpError> {
        let base_offset = file.base_offset()?;
        let (log, offsets) = (format!("{}.log", file.stem()), format!("{}.index", file.stem()));
        let log_len = len_of(storage, &log)?;
        let mut offsets = IndexFile::open(storage, &offsets, base_offset)?;
        let mut index = TimeIndexFile { base_offset, entries: Entries::open(storage, file.name, TIME_INDEX_ENTRY_BYTES)? };
        if self.options.index_sanity_check {
            index.check()?;
            return self.index_verdict(file, "sane", "passed sanity check.");
        }
        let mut scanner = Scanner::new(storage, &log, 0)?;
        let mut framing = None;
        let mut previous = TimestampMs::NONE;
        for slot in 0..index.entries.count() {
            // The rest of an index that was not closed is zeros.
            let Some(entry) = index.get(slot)?.filter(|entry| entry.offset != base_offset || slot == 0) else { break };
            let position = position_in(offsets.lookup(entry.offset)?, log_len)?;
            match &mut framing {
                Some(framing) => Framing::check(framing, position)?,
                None => framing = Some(Framing::from(storage, &log, position)?),
            }
            scanner.seek(position, u64::MAX)?;
            self.compare(&mut scanner, entry, previous, findings)?;
            if !self.options.verify_index_only {
                self.time_index_entry(file, entry)?;
            }
            previous = entry.timestamp;
        }
        Ok(())
    }

    /// Holds an entry against the batch that it means, which lies at or behind the scanner's position.
    fn compare<S: Storage>(
        &self,
        scanner: &mut Scanner<'_, S>,
        entry: TimeEntry,
        previous: TimestampMs,
        findings: &mut Findings,
    ) -> Result<(), DumpError> {
        let (batch, position) = loop {
            let position = scanner.position();
            match scanner.next().map_err(|error| scan_error(position, error))? {
                Some(batch) if batch.last_offset() < entry.offset => {}
                found => break (found, position),
            }
        };
        let Some(batch) = batch else {
            findings.offsets_not_found.add(entry.offset.get(), -1);
            return Ok(());
        };
        if batch.last_offset() != entry.offset {
            findings.offsets_not_found.add(entry.offset.get(), batch.last_offset().get());
            return Ok(());
        }
        let records = batch.records_within(self.options.max_decompressed_bytes);
        let records = records.map_err(|source| DumpError::Batch { position, source })?;
        let largest = records.iter().map(|record| record.timestamp).max().unwrap_or(TimestampMs::NONE).max(TimestampMs::NONE);
        if largest != entry.timestamp {
            findings.timestamp_mismatches.add(entry.timestamp.get(), largest.get());
        }
        if previous >= entry.timestamp {
            findings.timestamps_out_of_order.add(entry.timestamp.get(), previous.get());
        }
        Ok(())
    }

    fn time_index_entry(&mut self, file: &DumpFile<'_>, entry: TimeEntry) -> Result<(), DumpError> {
        let TimeEntry { timestamp, offset } = entry;
        match self.options.json {
            true => self.line(&Line::TimeIndexEntry { file: file.path, timestamp: timestamp.get(), offset: offset.get() }),
            false => Ok(writeln!(self.out, "timestamp: {timestamp} offset: {offset}")?),
        }
    }
}
