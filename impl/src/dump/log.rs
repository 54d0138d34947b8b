//! A log, or a snapshot of the metadata log (Kafka: `DumpLogSegments.dumpLog`).

use serde_json::json;

use super::findings::{Findings, Kind};
use super::json;
use super::text::{self, Shown};
use super::{DumpError, DumpFile, Dumper, len_of};
use crate::log::scan::{BatchHead, ScanError, Scanner};
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
        let deep = self.options.deep_iteration || self.options.print_data_log;
        while let Some(head) = next_head(&mut scanner, deep)? {
            let is_valid = scanner.is_valid(&head)?;
            self.batch(file, &head, is_valid)?;
            if deep {
                self.records(file, &head, &mut last_offset, findings)?;
            }
        }
        let left = scanner.end().saturating_sub(scanner.position());
        if left > 0 && self.options.max_bytes.is_none() {
            match self.options.json {
                true => self.line(file, "invalid-bytes", json!({ "bytes": left }))?,
                false => writeln!(self.out, "Found {left} invalid bytes at the end of {}", file.name)?,
            }
        }
        Ok(())
    }

    fn head(&mut self, file: &DumpFile<'_>, head: &Head) -> Result<(), DumpError> {
        match (head, self.options.json) {
            (Head::Log { base_offset }, true) => self.line(file, "log", json!({ "base_offset": base_offset.get() })),
            (Head::Snapshot { end_offset, epoch }, true) => {
                self.line(file, "metadata-snapshot", json!({ "end_offset": end_offset, "epoch": epoch }))
            }
            (Head::Bootstrap, true) => self.line(file, "bootstrap-snapshot", json!({})),
            (Head::Log { base_offset }, false) => Ok(writeln!(self.out, "Log starting offset: {base_offset}")?),
            (Head::Snapshot { end_offset, epoch }, false) => {
                Ok(writeln!(self.out, "Snapshot end offset: {end_offset}, epoch: {epoch}")?)
            }
            (Head::Bootstrap, false) => Ok(writeln!(self.out, "KRaft bootstrap snapshot")?),
        }
    }

    fn batch(&mut self, file: &DumpFile<'_>, head: &BatchHead, is_valid: bool) -> Result<(), DumpError> {
        if self.options.json {
            return self.line(file, "batch", json::batch_line(head, is_valid));
        }
        text::batch_head(self.out, &head.batch)?;
        // Kafka looks the codec up in the middle of the line, and dies there of one that it does not know.
        let codec = text::codec(&head.batch).map_err(|source| DumpError::Batch { position: head.position, source })?;
        Ok(text::batch_tail(self.out, head, is_valid, codec)?)
    }

    fn records(
        &mut self,
        file: &DumpFile<'_>,
        head: &BatchHead,
        last_offset: &mut i64,
        findings: &mut Findings,
    ) -> Result<(), DumpError> {
        let (batch, position) = (&head.batch, head.position);
        Shown::each(batch, position, self.options.max_decompressed_bytes, |shown| {
            let offset = shown.record.offset.get();
            if offset != last_offset.wrapping_add(1) {
                findings.put(Kind::NonConsecutive, *last_offset, offset);
            }
            *last_offset = offset;
            match self.options.json {
                true => self.record_line(file, head, shown),
                false => self.record_text(head, shown),
            }
        })
    }

    fn record_line(&mut self, file: &DumpFile<'_>, head: &BatchHead, shown: &Shown) -> Result<(), DumpError> {
        let line = json::record_line(&head.batch, shown, self.options.print_data_log);
        let line = line.map_err(|source| DumpError::Batch { position: head.position, source })?;
        self.line(file, "record", line)
    }

    fn record_text(&mut self, head: &BatchHead, shown: &Shown) -> Result<(), DumpError> {
        let is_control = text::is_control(&head.batch);
        let mut prefix = "| ";
        if !self.options.skip_record_metadata {
            text::record_metadata(self.out, &head.batch, shown)?;
            if is_control {
                let control = super::control::text(&shown.record);
                let control = control.map_err(|source| DumpError::Batch { position: head.position, source })?;
                write!(self.out, " {control}")?;
            }
            prefix = " ";
        }
        if self.options.print_data_log && !is_control {
            // Kafka's tool dies here, in the midst of the line.
            shown.check_data().map_err(|source| DumpError::Batch { position: head.position, source })?;
            text::record_data(self.out, prefix, &shown.record)?;
        }
        Ok(writeln!(self.out)?)
    }
}

/// The next batch; its records are only read where they are shown.
fn next_head<S: Storage>(scanner: &mut Scanner<'_, S>, deep: bool) -> Result<Option<BatchHead>, DumpError> {
    let position = scanner.position();
    let head = match deep {
        true => scanner.next().map(|batch| batch.map(|batch| BatchHead::whole(batch, position))),
        false => scanner.next_head(),
    };
    head.map_err(|error| scan_error(position, error))
}
