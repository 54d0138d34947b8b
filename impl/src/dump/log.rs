//! A log, or a snapshot of the metadata log (Kafka: `DumpLogSegments.dumpLog`).

use super::findings::Findings;
use super::json::{self, Line};
use super::text::{self, Shown};
use super::{DumpError, DumpFile, Dumper, len_of};
use crate::log::scan::{ScanError, Scanner};
use crate::record::AnyBatch;
use crate::storage::Storage;
use crate::types::Offset;

/// The digits of the end offset and of the epoch in the name of a snapshot.
const SNAPSHOT_DIGITS: (usize, usize) = (20, 10);

pub(super) fn scan_error(position: u64, error: ScanError) -> DumpError {
    match error {
        ScanError::Corrupt(source) | ScanError::Unsupported(source) => DumpError::Batch { position, source },
        ScanError::Storage(error) => error.into(),
    }
}

/// What the name of a log or of a snapshot says.
enum Head {
    Log { base_offset: Offset },
    Snapshot { end_offset: i64, epoch: i32 },
    Bootstrap,
}

impl Head {
    fn of(file: &DumpFile<'_>) -> Result<Self, DumpError> {
        if file.name.ends_with(".log") {
            return Ok(Self::Log { base_offset: file.base_offset()? });
        }
        if file.name == "bootstrap.checkpoint" {
            return Ok(Self::Bootstrap);
        }
        let (offset_digits, epoch_digits) = SNAPSHOT_DIGITS;
        let epoch_at = offset_digits.saturating_add(1);
        let offset = file.name.get(..offset_digits).and_then(|text| text.parse().ok());
        let epoch = file.name.get(epoch_at..epoch_at.saturating_add(epoch_digits)).and_then(|text| text.parse().ok());
        let (Some(end_offset), Some(epoch)) = (offset, epoch) else {
            return Err(DumpError::Name { found: file.stem().to_owned(), expected: "end offset and epoch of a snapshot" });
        };
        Ok(Self::Snapshot { end_offset, epoch })
    }
}

impl Dumper<'_> {
    pub(super) fn log<S: Storage>(&mut self, storage: &S, file: &DumpFile<'_>, findings: &mut Findings) -> Result<(), DumpError> {
        let head = Head::of(file)?;
        self.head(file, &head)?;
        len_of(storage, file.name)?;
        let mut scanner = Scanner::new(storage, file.name, 0)?;
        scanner.seek(0, self.options.max_bytes.unwrap_or(u64::MAX))?;
        // Kafka 4.3 begins in front of 0, so that a log which begins elsewhere has a gap there.
        let mut last_offset = -1;
        loop {
            let position = scanner.position();
            let Some(batch) = scanner.next().map_err(|error| scan_error(position, error))? else { break };
            self.batch(file, &batch, position)?;
            if self.options.deep_iteration || self.options.print_data_log {
                self.records(file, &batch, position, &mut last_offset, findings)?;
            }
        }
        let left = scanner.end().saturating_sub(scanner.position());
        if left > 0 && self.options.max_bytes.is_none() {
            match self.options.json {
                true => self.line(&Line::InvalidBytes { file: file.path, bytes: left })?,
                false => writeln!(self.out, "Found {left} invalid bytes at the end of {}", file.name)?,
            }
        }
        Ok(())
    }

    fn head(&mut self, file: &DumpFile<'_>, head: &Head) -> Result<(), DumpError> {
        let path = file.path;
        if self.options.json {
            return match head {
                Head::Log { base_offset } => self.line(&Line::Log { file: path, base_offset: base_offset.get() }),
                Head::Snapshot { end_offset, epoch } => {
                    self.line(&Line::MetadataSnapshot { file: path, end_offset: *end_offset, epoch: *epoch })
                }
                Head::Bootstrap => self.line(&Line::BootstrapSnapshot { file: path }),
            };
        }
        match head {
            Head::Log { base_offset } => writeln!(self.out, "Log starting offset: {base_offset}")?,
            Head::Snapshot { end_offset, epoch } => {
                writeln!(self.out, "Snapshot end offset: {end_offset}, epoch: {epoch}")?;
            }
            Head::Bootstrap => writeln!(self.out, "KRaft bootstrap snapshot")?,
        }
        Ok(())
    }

    fn batch(&mut self, file: &DumpFile<'_>, batch: &AnyBatch, position: u64) -> Result<(), DumpError> {
        if self.options.json {
            return Ok(json::write_line(self.out, &json::batch_line(file.path, batch, position))?);
        }
        text::batch_head(self.out, batch)?;
        // Kafka looks the codec up in the middle of the line, and dies there of one that it does not know.
        let codec = text::codec(batch).map_err(|source| DumpError::Batch { position, source })?;
        Ok(text::batch_tail(self.out, batch, position, codec)?)
    }

    fn records(
        &mut self,
        file: &DumpFile<'_>,
        batch: &AnyBatch,
        position: u64,
        last_offset: &mut i64,
        findings: &mut Findings,
    ) -> Result<(), DumpError> {
        let failed = |source| DumpError::Batch { position, source };
        let (records, error) = Shown::of_batch(batch, self.options.max_decompressed_bytes);
        for record in &records {
            let offset = record.record.offset.get();
            if offset != last_offset.wrapping_add(1) {
                findings.non_consecutive.put(*last_offset, offset);
            }
            *last_offset = offset;
            if self.options.json {
                let line = json::record_line(file.path, batch, record, self.options.print_data_log).map_err(failed)?;
                json::write_line(self.out, &line)?;
                continue;
            }
            let mut prefix = "| ";
            if !self.options.skip_record_metadata {
                text::record_metadata(self.out, batch, record)?;
                if text::is_control(batch) {
                    let control = super::control::text(&record.record).map_err(failed)?;
                    write!(self.out, " {control}")?;
                }
                prefix = " ";
            }
            if self.options.print_data_log && !text::is_control(batch) {
                text::record_data(self.out, prefix, &record.record)?;
            }
            writeln!(self.out)?;
        }
        error.map_or(Ok(()), |error| Err(failed(error)))
    }
}
