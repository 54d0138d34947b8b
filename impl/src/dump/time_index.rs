//! The time index (Kafka: `DumpLogSegments.dumpTimeIndex`).

use bytes::Buf as _;
use serde_json::json;

use super::entries::Entries;
use super::findings::{Findings, Kind};
use super::index::{IndexFile, LogBeside, check_end};
use super::log::scan_error;
use super::{DumpError, DumpFile, Dumper};
use crate::log::scan::{BatchHead, Scanner};
use crate::log::{IndexError, TIME_INDEX_ENTRY_BYTES};
use crate::record::{AnyBatch, DecodeError};
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

/// Goes behind a batch; false at the end.
fn step<S: Storage>(scanner: &mut Scanner<'_, S>) -> Result<bool, DumpError> {
    Ok(next_head(scanner)?.is_some())
}

fn next_head<S: Storage>(scanner: &mut Scanner<'_, S>) -> Result<Option<BatchHead>, DumpError> {
    let position = scanner.position();
    scanner.next_head().map_err(|error| scan_error(position, error))
}

/// The largest timestamp of a batch's records, or -1.
fn largest_timestamp(batch: &AnyBatch, max_decompressed_bytes: usize) -> Result<TimestampMs, DecodeError> {
    let none = TimestampMs::NONE;
    match batch {
        AnyBatch::V2(batch) => batch.outlines(max_decompressed_bytes).try_fold(none, |max, record| Ok(max.max(record?.timestamp))),
        AnyBatch::Legacy(batch) => {
            batch.record_reader(max_decompressed_bytes)?.try_fold(none, |max, record| Ok(max.max(record?.timestamp)))
        }
    }
}

impl Dumper<'_> {
    pub(super) fn time_index<S: Storage>(
        &mut self,
        storage: &S,
        file: &DumpFile<'_>,
        findings: &mut Findings,
    ) -> Result<(), DumpError> {
        let log = LogBeside::of(storage, file)?;
        let base_offset = log.base_offset;
        let offsets = format!("{}.index", file.stem());
        let mut offsets = IndexFile::open(storage, &offsets, base_offset)?;
        let mut index = TimeIndexFile { base_offset, entries: Entries::open(storage, file.name, TIME_INDEX_ENTRY_BYTES)? };
        if self.options.index_sanity_check {
            index.check()?;
            return self.index_verdict(file, "sane", "passed sanity check.");
        }
        let mut scanner = Scanner::new(storage, &log.name, 0)?;
        let mut framing = None;
        let mut previous = TimestampMs::NONE;
        for slot in 0..index.entries.count() {
            let Some(entry) = index.get(slot)?.filter(|entry| log.is_entry(slot, entry.offset)) else { break };
            let position = log.position(offsets.lookup(entry.offset)?)?;
            match &mut framing {
                Some(framing) => Framing::check(framing, position)?,
                None => framing = Some(Framing::from(storage, &log.name, position)?),
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
        let head = loop {
            match next_head(scanner)? {
                Some(head) if head.batch.last_offset() < entry.offset => {}
                found => break found,
            }
        };
        let last_offset = head.as_ref().map_or(Offset(-1), |head| head.batch.last_offset());
        let Some(head) = head.filter(|_| last_offset == entry.offset) else {
            findings.add(Kind::OffsetNotFound, entry.offset.get(), last_offset.get());
            return Ok(());
        };
        let position = head.position;
        let batch = scanner.whole(head).map_err(|error| scan_error(position, error))?;
        let largest = largest_timestamp(&batch, self.options.max_decompressed_bytes);
        let largest = largest.map_err(|source| DumpError::Batch { position, source })?;
        if largest != entry.timestamp {
            findings.add(Kind::TimestampMismatch, entry.timestamp.get(), largest.get());
        }
        if previous >= entry.timestamp {
            findings.add(Kind::TimestampOutOfOrder, entry.timestamp.get(), previous.get());
        }
        Ok(())
    }

    fn time_index_entry(&mut self, file: &DumpFile<'_>, entry: TimeEntry) -> Result<(), DumpError> {
        let TimeEntry { timestamp, offset } = entry;
        match self.options.json {
            true => self.line(file, "time-index-entry", json!({ "timestamp": timestamp.get(), "offset": offset.get() })),
            false => Ok(writeln!(self.out, "timestamp: {timestamp} offset: {offset}")?),
        }
    }
}
