//! The command line: arguments, exit codes, errors of one line.

pub mod args;
pub mod check;
pub mod conform;
pub mod dump;
mod dump_args;
pub mod explore;
mod kafka;
pub mod kill;
pub mod list;
pub mod output;
pub mod sequences;
pub mod trace;
mod transitions;

use std::process::ExitCode;

use thiserror::Error;

use cleanslate_log::dump::DumpError;

use crate::check::CounterexampleError;
use crate::replay::ReplayError;
use crate::target::TargetError;
use crate::trace::TraceError;

pub use dump_args::DumpArgs;

pub use args::{CheckArgs, Cli, Command, ConformArgs, Engine, ExploreArgs, KillArgs, ListArgs, Listing, TraceArgs, TraceCommand};

/// Everything is as expected.
pub const EXIT_EXPECTED: u8 = 0;
/// A property is violated, or a run failed.
pub const EXIT_FAILED: u8 = 1;
/// The command line or an input file cannot be understood.
pub const EXIT_USAGE: u8 = 2;
/// A cap was hit before a verdict was reached, or the implementation to be held against cannot be had on this machine.
pub const EXIT_INCONCLUSIVE: u8 = 3;

/// Why a command could not do its work. The text is one line.
#[derive(Debug, Error)]
pub enum CliError {
    /// An argument that clap cannot judge is wrong; the text names the valid choices.
    #[error("{0}")]
    Usage(String),
    /// A trace file cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A trace cannot be run on a target.
    #[error("{file}: {source}")]
    Replay {
        /// The trace's file.
        file: String,
        /// What the target said.
        source: Box<ReplayError>,
    },
    /// An adapter cannot be built, or misbehaves.
    #[error("{0}")]
    Adapter(String),
    /// Writing the results failed.
    #[error("cannot write the results: {0}")]
    Output(#[from] std::io::Error),
    /// Model and the log of this project part already, so that nothing else can be held against them.
    #[error("{0}")]
    Parting(String),
    /// A file cannot be dumped to its end.
    #[error("{file}: {source}")]
    Dump {
        /// The path as it was given.
        file: String,
        /// Why.
        source: Box<DumpError>,
    },
    /// Model, log and trace file do not agree on a counterexample.
    #[error(transparent)]
    Counterexample(#[from] Box<CounterexampleError>),
}

impl CliError {
    /// Input that cannot be understood is 2; an implementation that lacks what it takes is 3; work that went wrong on good input is 1.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if matches!(self, Self::Replay { source, .. } if matches!(source.cause(), TargetError::Lacking(_))) {
            return ExitCode::from(EXIT_INCONCLUSIVE);
        }
        let failed = match self {
            Self::Usage(_) => false,
            Self::Trace(e) => matches!(e, TraceError::Write { .. }),
            // A scenario that the target does not know is input that it cannot read; so is an operation that makes no sense where it stands.
            Self::Replay { source, .. } => matches!(source.cause(), TargetError::Failed(_)),
            // What a file says wrongly is input that cannot be read.
            Self::Dump { source, .. } => matches!(**source, DumpError::Output(_)),
            Self::Output(_) | Self::Counterexample(_) | Self::Adapter(_) | Self::Parting(_) => true,
        };
        ExitCode::from(if failed { EXIT_FAILED } else { EXIT_USAGE })
    }
}

/// Prints what clap has to say: help and version on stdout with exit 0, a usage error as one line on stderr with exit 2.
#[must_use]
pub fn usage_exit(error: &clap::Error) -> ExitCode {
    use std::io::Write as _;
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let code = match error.print() {
            _ if error.use_stderr() => EXIT_USAGE,
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => EXIT_FAILED,
            _ => EXIT_EXPECTED,
        };
        return ExitCode::from(code);
    }
    let text = error.render().to_string();
    let said = text.split("\n\nUsage:").next().unwrap_or_default();
    let words: Vec<&str> = said.split_whitespace().collect();
    let _ = writeln!(std::io::stderr(), "{}", words.join(" "));
    ExitCode::from(EXIT_USAGE)
}
