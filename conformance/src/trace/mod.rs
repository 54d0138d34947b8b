//! Trace files: format, reading, writing, drawing.

pub mod draw;
pub mod format;
pub mod read;
pub mod write;

mod access;
mod error;
pub(crate) mod locate;
mod semantics;

pub use error::TraceError;
