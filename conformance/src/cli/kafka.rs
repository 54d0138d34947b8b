//! Another implementation for a command: the adapter around Kafka's own classes, or one that is named.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::CliError;
use super::args::KafkaArgs;
use super::output::progress;
use crate::adapter::{Adapter, AdapterError, Launch, Trouble};

/// How long the adapter may take for one reply. A JVM on a busy machine starts slowly.
const TIME_OUT: Duration = Duration::from_secs(120);
/// What `ci/kafka-adapter` exits with when there is no such Kafka.
const EXIT_WRONG: i32 = 2;
/// What it exits with when it cannot build the adapter on this machine.
const EXIT_CANNOT: i32 = 77;

/// Starts the adapter of this command, or the one around Kafka's classes. None if that cannot be built here, which is said.
///
/// # Errors
/// When the adapter cannot be built for another reason, does not start, or misbehaves.
pub(super) fn start(command: Option<&str>, kafka: &KafkaArgs) -> Result<Option<Adapter>, CliError> {
    let command = match command {
        Some(command) => command.to_owned(),
        None => match command_for_kafka(kafka)? {
            Some(command) => command,
            None => return Ok(None),
        },
    };
    Ok(Some(Adapter::start(&Launch::parse(&command, TIME_OUT)?)?))
}

/// Builds the adapter around Kafka's classes; returns the command that starts it. None if it cannot be built here, which is said.
fn command_for_kafka(args: &KafkaArgs) -> Result<Option<String>, CliError> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/kafka-adapter");
    let mut build = Command::new(&script);
    match (&args.version, &args.jars) {
        (_, jars) if !jars.is_empty() => drop(build.arg("--kafka-jars").args(jars)),
        (Some(version), _) => drop(build.args(["--kafka-version", version])),
        (None, _) => {}
    }
    progress("building the adapter around Kafka's classes, which takes about half a minute for the first time");
    let output = build.stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.map_err(|e| CliError::Usage(format!("{}: {e}", script.display())))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(EXIT_CANNOT) {
        let _ = writeln!(std::io::stderr(), "{}", said.trim_end());
        let line = "skipped: the adapter around Kafka's classes cannot be built here, so nothing was compared";
        let _ = writeln!(std::io::stderr(), "{line}");
        return Ok(None);
    }
    let lines: Vec<&str> = said.lines().map(|line| line.strip_prefix("kafka-adapter: ").unwrap_or(line)).collect();
    match output.status.code() {
        Some(0) => {}
        Some(EXIT_WRONG) => return Err(CliError::Usage(lines.join(" "))),
        _ => return Err(CliError::Adapter(format!("{} failed: {}", script.display(), lines.join(" ")))),
    }
    Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

impl From<AdapterError> for CliError {
    fn from(error: AdapterError) -> Self {
        match *error.trouble {
            // No adapter has misbehaved: what was asked for is none.
            Trouble::Command { .. } | Trouble::Start { .. } => Self::Usage(format!("--adapter: {}", error.trouble)),
            _ => Self::Adapter(error.to_string()),
        }
    }
}
