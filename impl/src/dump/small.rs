//! The transaction index and the producer snapshot (Kafka: `DumpLogSegments.dumpTxnIndex`, `dumpProducerIdSnapshot`).

use bytes::Buf as _;

use super::entries::Entries;
use super::json::{self, Line};
use super::text::OptionalLong;
use super::{DumpError, DumpFile, Dumper};
use crate::log::TXN_INDEX_ENTRY_BYTES;
use crate::psm::{ProducerSnapshot, ProducerStateEntry, SnapshotError};
use crate::storage::Storage;

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
                file: file.path,
                version: version.cast_signed(),
                producer_id: entry.get_i64(),
                first_offset: entry.get_i64(),
                last_offset: entry.get_i64(),
                last_stable_offset: entry.get_i64(),
            };
            if self.options.json {
                self.line(&Line::AbortedTxn(line))?;
                continue;
            }
            let json::AbortedTxnLine { version, producer_id, first_offset, last_offset, last_stable_offset, .. } = line;
            writeln!(
                self.out,
                "version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset} \
                 lastStableOffset: {last_stable_offset}"
            )?;
        }
        Ok(())
    }

    pub(super) fn producer_snapshot<S: Storage>(&mut self, storage: &S, file: &DumpFile<'_>) -> Result<(), DumpError> {
        let bytes = storage.read_all(file.name)?.ok_or_else(|| DumpError::NotFound { name: file.name.to_owned() })?;
        let snapshot = match ProducerSnapshot::decode(&bytes) {
            Ok(snapshot) => snapshot,
            Err(error) if self.options.json => {
                return self.line(&Line::CorruptSnapshot { file: file.path, why: corruption(error) });
            }
            Err(error) => return Ok(writeln!(self.err, "{}", corruption(error))?),
        };
        for entry in &snapshot.entries {
            let entry = ProducerStateEntry::from(entry);
            match self.options.json {
                true => json::write_line(self.out, &json::producer_line(file.path, &entry))?,
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

/// The message of Kafka's exception.
fn corruption(error: SnapshotError) -> String {
    let schema = "Snapshot failed schema validation:";
    match error {
        SnapshotError::Version { found } => format!("{schema} Snapshot contained an unknown file version {found}"),
        SnapshotError::Crc { stored, computed } => {
            format!("Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}")
        }
        SnapshotError::Count { .. } => format!("{schema} non-nullable field producerEntries was serialized as null"),
        SnapshotError::Length { .. } => format!("{schema} null"),
    }
}
