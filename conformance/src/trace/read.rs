//! Strict reading: every unknown field, undeclared name or wrong number is an error of one line with its place.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;

use super::TraceError;
use super::format::{FORMAT, Trace, VERSION};
use super::locate::{Place, line_and_column, position};
use super::semantics;
use crate::shape::array_for_object;

pub use super::semantics::{MAX_BATCHES_PER_MIRROR, MAX_OPS_PER_STEP, MAX_PRODUCERS, MAX_RECORDS, MAX_REPLICAS, MAX_STEPS};

/// The largest trace file that is read.
pub const MAX_TRACE_BYTES: u64 = 16 * 1024 * 1024;

/// Reads and checks the trace in the file `path`.
pub fn read_trace(path: &Path) -> Result<Trace, TraceError> {
    let fail = |source| TraceError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(fail)?;
    let mut text = Vec::new();
    // One byte more than allowed tells a file that is too large from one that just fits, whatever its metadata claims.
    file.take(MAX_TRACE_BYTES + 1).read_to_end(&mut text).map_err(fail)?;
    parse_trace(&path.display().to_string(), &text)
}

/// Parses and checks a trace; `name` is the file's name in errors.
pub fn parse_trace(name: &str, text: &[u8]) -> Result<Trace, TraceError> {
    if text.len() as u64 > MAX_TRACE_BYTES {
        return Err(TraceError::TooLarge { name: name.to_owned(), limit_bytes: MAX_TRACE_BYTES });
    }
    let text = std::str::from_utf8(text).map_err(|e| {
        let (line, column) = position(text, e.valid_up_to());
        TraceError::Syntax { name: name.to_owned(), line, column, message: "expected UTF-8 text".to_owned() }
    })?;
    check_version(name, text)?;
    let trace: Trace = serde_json::from_str(text).map_err(|e| syntax(name, text, &e))?;
    if let Some(place) = array_for_object(&trace, text) {
        let (line, column) = line_and_column(text, &place);
        let message = "expected an object, found an array".to_owned();
        return Err(TraceError::Meaning { name: name.to_owned(), line, column, place: place.to_string(), message });
    }
    semantics::check(&trace).map_err(|fault| {
        let (line, column) = line_and_column(text, &fault.place);
        let place = match fault.step {
            Some(n) => format!("{} (step {n})", fault.place),
            None => fault.place.to_string(),
        };
        TraceError::Meaning { name: name.to_owned(), line, column, place, message: fault.message }
    })?;
    Ok(trace)
}

/// The two fields that tell whether the others can be understood. Read first, so that a trace of a later version gets the answer
/// "version" and not "unknown field".
#[derive(Deserialize)]
#[serde(expecting = "a JSON object with the fields of a trace")]
struct Preamble {
    format: String,
    version: u32,
}

fn check_version(name: &str, text: &str) -> Result<(), TraceError> {
    let preamble: Preamble = serde_json::from_str(text).map_err(|e| syntax(name, text, &e))?;
    let wrong = |field: &str, message: String| {
        let place = Place::default().key(field);
        let (line, column) = line_and_column(text, &place);
        Err(TraceError::Meaning { name: name.to_owned(), line, column, place: place.to_string(), message })
    };
    if preamble.format == crate::sequence::file::FORMAT {
        return wrong("format", "this is a sequence, not a trace; sequences are run by `conform --sequences`".to_owned());
    }
    if preamble.format != FORMAT {
        return wrong("format", format!("expected {FORMAT:?}, found {:?}", preamble.format));
    }
    if preamble.version != VERSION {
        return wrong("version", format!("expected version {VERSION}, found {}", preamble.version));
    }
    Ok(())
}

fn syntax(name: &str, text: &str, error: &serde_json::Error) -> TraceError {
    let mut message = error.to_string();
    // serde_json appends the position to its message; here it stands in front, where editors look for it.
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    if let Some(plain) = message.strip_suffix(&suffix) {
        message = plain.to_owned();
    }
    let (line, column) = if error.line() == 0 { position(text.as_bytes(), 0) } else { (error.line(), error.column().max(1)) };
    TraceError::Syntax { name: name.to_owned(), line, column, message }
}
