//! The transaction index and the producer snapshot (Kafka: `DumpLogSegments.dumpTxnIndex`, `dumpProducerIdSnapshot`).

use bytes::Buf as _;
use serde_json::json;

use super::entries::Entries;
use super::json;
use super::text::OptionalLong;
use super::{DumpError, DumpFile, Dumper, len_of};
use crate::log::TXN_INDEX_ENTRY_BYTES;
use crate::psm::{
    ProducerSnapshot, ProducerStateEntry, SNAPSHOT_CRC_END, SNAPSHOT_ENTRY_BYTES, SNAPSHOT_HEADER_BYTES, SnapshotEntry,
    SnapshotError,
};
use crate::storage::{Storage, StorageError};

/// So much of a file is read at once, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

impl Dumper<'_> {
    pub(super) fn txn_index<S: Storage>(&mut self, storage: &S, file: &DumpFile<'_>) -> Result<(), DumpError> {
        file.base_offset()?;
        let mut entries = Entries::open(storage, file.name, TXN_INDEX_ENTRY_BYTES)?;
        // Kafka reads all entries before it prints the first.
        for index in 0..entries.count() {
            // Kafka 4.3 reads one of the two bytes of the version.
            let version = entries.get(index)?.and_then(|entry| entry.first().copied()).map_or(0, u8::cast_signed);
            if version > 0 {
                return Err(DumpError::TxnVersion { index, version });
            }
        }
        for index in 0..entries.count() {
            let Some(mut entry) = entries.get(index)? else { break };
            let [version, _] = entry.get_i16().to_be_bytes();
            let line = json::AbortedTxnLine {
                version: version.cast_signed(),
                producer_id: entry.get_i64(),
                first_offset: entry.get_i64(),
                last_offset: entry.get_i64(),
                last_stable_offset: entry.get_i64(),
            };
            if self.options.json {
                self.line(file, "aborted-txn", line)?;
                continue;
            }
            let json::AbortedTxnLine { version, producer_id, first_offset, last_offset, last_stable_offset } = line;
            writeln!(
                self.out,
                "version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset} \
                 lastStableOffset: {last_stable_offset}"
            )?;
        }
        Ok(())
    }

    pub(super) fn producer_snapshot<S: Storage>(&mut self, storage: &S, file: &DumpFile<'_>) -> Result<(), DumpError> {
        match check_snapshot(storage, file.name) {
            Ok(()) => {}
            Err(Unreadable::Files(error)) => return Err(error),
            Err(Unreadable::Corrupt(error)) if self.options.json => {
                return self.line(file, "corrupt-snapshot", json!({ "why": corruption(error) }));
            }
            Err(Unreadable::Corrupt(error)) => return Ok(writeln!(self.err, "{}", corruption(error))?),
        }
        let mut entries = Entries::open_behind(storage, file.name, SNAPSHOT_HEADER_BYTES as u64, SNAPSHOT_ENTRY_BYTES)?;
        for index in 0..entries.count() {
            let Some(entry) = entries.get(index)? else { break };
            let entry = ProducerStateEntry::from(&SnapshotEntry::decode(entry));
            match self.options.json {
                true => self.line(file, "producer", json::producer_line(&entry))?,
                false => self.producer(&entry)?,
            }
        }
        Ok(())
    }

    fn producer(&mut self, entry: &ProducerStateEntry) -> Result<(), DumpError> {
        write!(
            self.out,
            "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {} lastTimestamp: {}",
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            OptionalLong(entry.current_txn_first_offset.map(|offset| offset.get())),
            entry.last_timestamp,
        )?;
        if let Some(batch) = entry.last_batch() {
            write!(
                self.out,
                " firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
                batch.first_sequence(),
                batch.last_sequence,
                batch.last_offset,
                batch.offset_delta,
                batch.timestamp,
            )?;
        }
        Ok(writeln!(self.out)?)
    }
}

/// Why the producers of a snapshot are not printed.
enum Unreadable {
    Corrupt(SnapshotError),
    Files(DumpError),
}

impl From<SnapshotError> for Unreadable {
    fn from(error: SnapshotError) -> Self {
        Self::Corrupt(error)
    }
}

impl From<StorageError> for Unreadable {
    fn from(error: StorageError) -> Self {
        Self::Files(error.into())
    }
}

/// The checks of a snapshot as a whole, with the checksum over pieces.
fn check_snapshot(storage: &impl Storage, name: &str) -> Result<(), Unreadable> {
    let len = len_of(storage, name).map_err(Unreadable::Files)?;
    let header = storage.read(name, 0, SNAPSHOT_HEADER_BYTES)?;
    ProducerSnapshot::check(&header, len, || {
        let (mut at, mut crc) = (SNAPSHOT_CRC_END as u64, 0);
        loop {
            let piece = storage.read(name, at, PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(crc);
            }
            crc = crc32c::crc32c_append(crc, &piece);
            at = at.saturating_add(piece.len() as u64);
        }
    })
}

/// The message of Kafka's exception.
fn corruption(error: SnapshotError) -> String {
    let schema = "Snapshot failed schema validation:";
    match error {
        SnapshotError::Version { found } => format!("{schema} Snapshot contained an unknown file version {found}"),
        SnapshotError::Crc { stored, computed } => {
            format!("Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}")
        }
        SnapshotError::Count { found, available } if found >= 0 => {
            format!("{schema} Tried to allocate a collection of size {found}, but there are only {available} bytes remaining.")
        }
        SnapshotError::Count { .. } => format!("{schema} non-nullable field producerEntries was serialized as null"),
        SnapshotError::Length { .. } => format!("{schema} null"),
    }
}
