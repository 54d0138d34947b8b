//! Sequences as files: version 1 of the format of `specs/sequence.schema.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::local::Local;
use crate::adapter::message::Operation;
use crate::adapter::reply::Reply;
use crate::shape::array_for_object;
use crate::trace::format::FORMAT as TRACE_FORMAT;
use crate::trace::locate::line_and_column;

/// The name of the format.
pub const FORMAT: &str = "cleanslate-sequence";
/// Its version.
pub const VERSION: u32 = 1;
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// A sequence of requests of the adapter protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceFile {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// What the sequence shows, in prose.
    pub about: String,
    /// The requests, in order.
    pub steps: Vec<Operation>,
}

/// Why a file holds no sequence.
#[derive(Debug, Error)]
pub enum SequenceFileError {
    /// It cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is no sequence.
    #[error("{path}: {why}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong, and where.
        why: String,
    },
}

impl SequenceFile {
    /// A sequence of these requests.
    #[must_use]
    pub fn new(about: String, steps: Vec<Operation>) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, about, steps }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or is no sequence of this version; the text names line and column.
    pub fn read(path: &Path) -> Result<Self, SequenceFileError> {
        let shown = path.display().to_string();
        let io = |source| SequenceFileError::Io { path: shown.clone(), source };
        let malformed = |why: String| SequenceFileError::Malformed { path: shown.clone(), why };
        let len = std::fs::metadata(path).map_err(io)?.len();
        if len > MAX_BYTES {
            return Err(malformed(format!("{len} bytes, expected at most {MAX_BYTES}")));
        }
        let text = std::fs::read_to_string(path).map_err(io)?;
        #[derive(Deserialize)]
        struct Named {
            format: String,
        }
        if serde_json::from_str::<Named>(&text).is_ok_and(|named| named.format == TRACE_FORMAT) {
            return Err(malformed(
                "this is a trace, not a sequence; traces are run by `conform --traces` and `trace replay`".to_owned(),
            ));
        }
        let file: Self = serde_json::from_str(&text).map_err(|e| malformed(e.to_string()))?;
        if let Some(place) = array_for_object(&file, &text) {
            let (line, column) = line_and_column(&text, &place);
            let place = if place.0.is_empty() { "file".to_owned() } else { place.to_string() };
            return Err(malformed(format!("{place}: expected an object, found an array at line {line} column {column}")));
        }
        if file.format != FORMAT || file.version != VERSION {
            return Err(malformed(format!(
                "format {} of version {}, expected {FORMAT} of version {VERSION}",
                file.format, file.version
            )));
        }
        Ok(file)
    }

    /// Writes a file, one request a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), SequenceFileError> {
        let io = |source| SequenceFileError::Io { path: path.display().to_string(), source };
        std::fs::write(path, self.to_text().map_err(|e| io(std::io::Error::other(e)))?).map_err(io)
    }

    /// The text of the file.
    ///
    /// # Errors
    /// Never, unless a request were made of something that is no JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let steps: Result<Vec<String>, _> = self.steps.iter().map(serde_json::to_string).collect();
        let about = serde_json::to_string(&self.about)?;
        let head = format!("{{\"format\": \"{FORMAT}\", \"version\": {VERSION}, \"about\": {about}, \"steps\": [\n");
        Ok(format!("{head}{}\n]}}\n", steps?.join(",\n")))
    }

    /// The requests, with what comes of them on the log of this project.
    #[must_use]
    pub fn run(&self) -> Vec<(Operation, Reply)> {
        let mut local = Local::default();
        let steps = self.steps.iter();
        steps.map(|step| (step.clone(), local.call(step, true))).collect()
    }
}
