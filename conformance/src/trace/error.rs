//! What can be wrong with a trace file, each in one line.

use std::path::PathBuf;

use thiserror::Error;

/// Why a trace could not be read or written. The text is always one line and starts with the file's name.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be opened or read.
    #[error("{}: cannot read the trace: {source}", one_line(&path.display().to_string()))]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The file could not be written.
    #[error("{}: cannot write the trace: {source}", one_line(&path.display().to_string()))]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The file is larger than any trace may be.
    #[error("{}: expected at most {limit_bytes} bytes in a trace", one_line(name))]
    TooLarge {
        /// The file's name.
        name: String,
        /// The largest size that is read.
        limit_bytes: u64,
    },
    /// The text is not JSON, or not JSON of the trace format.
    #[error("{}:{line}:{column}: {}", one_line(name), one_line(message))]
    Syntax {
        /// The file's name.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// The fields are well formed, but they contradict each other.
    #[error("{}:{line}:{column}: {}: {}", one_line(name), one_line(place), one_line(message))]
    Meaning {
        /// The file's name.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The field, e.g. `steps[3].ops[0].replica (step 4)`.
        place: String,
        /// What was found and what was expected.
        message: String,
    },
}

/// Names and messages may quote a hostile file: control characters are written as escapes, so that an error stays on one line.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}
