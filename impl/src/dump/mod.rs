//! What Kafka's dump tool prints of the files of a partition (Kafka: `DumpLogSegments`), as text and as NDJSON.
//!
//! The text is that of Kafka 4.3.1, byte for byte; `specs/dump.md` has the form of the lines of JSON. What is odd about a file is
//! noted and told at the end, with at most [`MAX_FINDINGS`] entries for a file and a kind.
//!
//! # Memory
//!
//! Files are read as they are needed: a log batch by batch, of which only headers are held unless records are shown; an index page by
//! page. Whatever a file says, dumping it allocates at most this many bytes at once, apart from the findings:
//!
//! ```text
//! bytes of one batch as stored + 2 * max_decompressed_bytes + DUMP_FIXED_BYTES
//! ```
//!
//! The batch and the bound on what comes out of it count where records are read: with `deep_iteration` or `print_data_log`, and for a
//! time index. A control record that is shown takes what [`record`](crate::record#memory) says besides.

mod control;
mod entries;
mod error;
mod findings;
mod index;
mod json;
mod log;
mod small;
mod text;
mod time_index;

use std::io::Write;

use serde::Serialize;

use crate::record::DEFAULT_MAX_DECOMPRESSED_BYTES;
use crate::storage::Storage;
use crate::types::Offset;

pub use error::DumpError;
pub use findings::MAX_FINDINGS;

use findings::Findings;

/// What a dump allocates whatever is dumped, in bytes: see [the module](self#memory).
pub const DUMP_FIXED_BYTES: usize = 8 * 1024 * 1024;

/// What is printed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Lines of JSON instead of text.
    pub json: bool,
    /// The records, not only their batches.
    pub deep_iteration: bool,
    /// The records with keys and values.
    pub print_data_log: bool,
    /// In the text form, nothing of a record but what `print_data_log` adds.
    pub skip_record_metadata: bool,
    /// Read only so many bytes of a log.
    pub max_bytes: Option<u64>,
    /// Of indexes, only check what can be told without the log.
    pub index_sanity_check: bool,
    /// Hold indexes against the log without printing their entries.
    pub verify_index_only: bool,
    /// An index entry may point at a batch of at most so many bytes.
    pub max_message_size: u64,
    /// The most bytes that come out of a compressed batch.
    pub max_decompressed_bytes: usize,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self {
            json: false,
            deep_iteration: false,
            print_data_log: false,
            skip_record_metadata: false,
            max_bytes: None,
            index_sanity_check: false,
            verify_index_only: false,
            max_message_size: 5 * 1024 * 1024,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
        }
    }
}

/// A file to dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpFile<'a> {
    /// The path as it is printed in the results.
    pub path: &'a str,
    /// The path as it is printed where something is odd.
    pub absolute_path: &'a str,
    /// The name in the storage.
    pub name: &'a str,
}

impl DumpFile<'_> {
    /// What stands in front of the first dot.
    fn stem(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    fn base_offset(&self) -> Result<Offset, DumpError> {
        let stem = self.stem();
        let wrong = |_| DumpError::Name { found: stem.to_owned(), expected: "the base offset" };
        stem.parse().map(Offset).map_err(wrong)
    }
}

/// Dumps files one after the other.
pub struct Dumper<'w> {
    options: DumpOptions,
    out: &'w mut dyn Write,
    err: &'w mut dyn Write,
    findings: Vec<(String, Findings)>,
}

impl<'w> Dumper<'w> {
    /// Results go to `out`; in the text form, what is odd goes to `err`.
    pub fn new(options: DumpOptions, out: &'w mut dyn Write, err: &'w mut dyn Write) -> Self {
        Self { options, out, err, findings: Vec::new() }
    }

    /// Dumps a file by the suffix of its name. A file of another suffix is named and left alone, whether it is there or not.
    ///
    /// # Errors
    /// When the file cannot be read to its end; what came in front of that is printed.
    pub fn file(&mut self, storage: &impl Storage, file: &DumpFile<'_>) -> Result<(), DumpError> {
        if !self.options.json {
            writeln!(self.out, "Dumping {}", file.path)?;
        }
        let mut findings = Findings::default();
        let suffix = file.name.rfind('.').and_then(|at| file.name.get(at..)).unwrap_or_default();
        match suffix {
            ".log" | ".checkpoint" => self.log(storage, file, &mut findings),
            ".index" => self.offset_index(storage, file, &mut findings),
            ".timeindex" => self.time_index(storage, file, &mut findings),
            ".txnindex" => self.txn_index(storage, file),
            ".snapshot" => self.producer_snapshot(storage, file),
            _ => self.ignored(file),
        }
        .map_err(|error| not_found_first(storage, file, error))?;
        if !findings.is_empty() {
            let path = if self.options.json { file.path } else { file.absolute_path };
            self.findings.push((path.to_owned(), findings));
        }
        Ok(())
    }

    /// Tells what was odd about the files. To be called once all are dumped; Kafka's tool tells nothing when it dies of an error.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn finish(self) -> Result<(), DumpError> {
        match self.options.json {
            true => findings::print_json(&self.findings, self.out)?,
            false => findings::print_text(&self.findings, self.err)?,
        }
        self.out.flush()?;
        self.err.flush()?;
        Ok(())
    }

    /// Prints a line of JSON.
    fn line(&mut self, file: &DumpFile<'_>, kind: &'static str, fields: impl Serialize) -> Result<(), DumpError> {
        Ok(json::write_line(self.out, kind, file.path, fields)?)
    }

    /// Kafka's tool does not look whether there is such a file.
    fn ignored(&mut self, file: &DumpFile<'_>) -> Result<(), DumpError> {
        match self.options.json {
            true => self.line(file, "ignored", serde_json::json!({})),
            false => Ok(writeln!(self.err, "Ignoring unknown file {}", file.path)?),
        }
    }
}

/// The length of a file that must be there.
fn len_of(storage: &impl Storage, name: &str) -> Result<u64, DumpError> {
    storage.len(name)?.ok_or_else(|| DumpError::NotFound { name: name.to_owned() })
}

/// That a file is not there says more than what is wrong with its name.
fn not_found_first(storage: &impl Storage, file: &DumpFile<'_>, error: DumpError) -> DumpError {
    match error {
        DumpError::Name { .. } => len_of(storage, file.name).err().unwrap_or(error),
        error => error,
    }
}
