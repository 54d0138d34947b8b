//! Writing: JSON whose header is spread over lines and whose steps take one line each, so that a diff of two traces reads step by step.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::TraceError;
use super::format::Trace;

/// How many temporary files this process has named.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The trace as text. Equal traces give equal bytes.
pub fn trace_to_string(trace: &Trace) -> String {
    let mut out = Vec::new();
    // Writing to memory cannot fail, and every key of a trace is a string; the text is UTF-8 because serde_json wrote it.
    let written = emit(&mut out, trace);
    debug_assert!(written.is_ok(), "a trace can always be written to memory");
    String::from_utf8(out).unwrap_or_default()
}

/// Writes `trace` to the file `path`. The file appears whole or not at all.
pub fn write_trace(path: &Path, trace: &Trace) -> Result<(), TraceError> {
    let temporary = temporary_beside(path);
    let written = write_and_sync(&temporary, trace).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        TraceError::Write { path: path.to_owned(), source }
    })
}

/// In the same directory, because a rename is atomic only within one file system; each call gives another name.
fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}.{number}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn write_and_sync(path: &Path, trace: &Trace) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(trace_to_string(trace).as_bytes())?;
    file.sync_all()
}

fn emit(out: &mut Vec<u8>, trace: &Trace) -> io::Result<()> {
    let Trace { format, version, title, scenario, property, violation, replicas, producers, steps } = trace;
    out.write_all(b"{\n")?;
    field(out, "format", format)?;
    field(out, "version", version)?;
    field(out, "title", title)?;
    out.write_all(b"  \"scenario\": {\n")?;
    scenario_field(out, "design", &scenario.design, ",")?;
    scenario_field(out, "axes", &scenario.axes, ",")?;
    scenario_field(out, "topology", &scenario.topology, ",")?;
    scenario_field(out, "bounds", &scenario.bounds, "")?;
    out.write_all(b"  },\n")?;
    field(out, "property", property)?;
    field(out, "violation", violation)?;
    list(out, "replicas", replicas, ",")?;
    list(out, "producers", producers, ",")?;
    list(out, "steps", steps, "")?;
    out.write_all(b"}\n")
}

fn field(out: &mut Vec<u8>, name: &str, value: &impl Serialize) -> io::Result<()> {
    write!(out, "  \"{name}\": ")?;
    one_line(out, value)?;
    out.write_all(b",\n")
}

fn scenario_field(out: &mut Vec<u8>, name: &str, value: &impl Serialize, separator: &str) -> io::Result<()> {
    write!(out, "    \"{name}\": ")?;
    one_line(out, value)?;
    writeln!(out, "{separator}")
}

fn list<T: Serialize>(out: &mut Vec<u8>, name: &str, items: &[T], separator: &str) -> io::Result<()> {
    write!(out, "  \"{name}\": [")?;
    for (i, item) in items.iter().enumerate() {
        out.write_all(if i == 0 { b"\n    " } else { b",\n    " })?;
        one_line(out, item)?;
    }
    if !items.is_empty() {
        out.write_all(b"\n  ")?;
    }
    writeln!(out, "]{separator}")
}

fn one_line(out: &mut Vec<u8>, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Spaced)).map_err(io::Error::from)
}

/// JSON on one line with a space after each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
