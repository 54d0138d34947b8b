//! `cleanslate conform`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::ConformTargetArg;
use super::output::print;
use super::{CliError, ConformArgs, EXIT_EXPECTED, EXIT_FAILED};
use crate::conform::{Conformance, Outcome};
use crate::target::in_process::InProcess;

/// Runs `cleanslate conform`.
///
/// # Errors
/// [`CliError`] for unknown bounds and unreadable traces.
pub fn run(args: &ConformArgs) -> Result<ExitCode, CliError> {
    if args.adapter.is_some() || matches!(args.target, ConformTargetArg::Kafka) {
        if args.traces.is_some() {
            return Err(CliError::Usage("--traces: trace files are run on the target impl only".to_owned()));
        }
        return super::sequences::run(args);
    }
    if args.sequences.is_some() || args.kafka_version.is_some() || !args.kafka_jars.is_empty() {
        let what = "--sequences, --kafka-version and --kafka-jars";
        return Err(CliError::Usage(format!("{what} need --target kafka or --adapter")));
    }
    let mut conformance = Conformance::default();
    match &args.traces {
        Some(dir) => conformance.traces(dir, &mut InProcess::default())?,
        None => conformance.lockstep(&args.bounds).map_err(CliError::Usage)?,
    }
    if conformance.cases.is_empty() {
        return Err(CliError::Usage("--traces: the directory holds no *.json file".to_owned()));
    }
    let text = if args.json { format!("{}\n", conformance.summary("impl")) } else { report(&conformance) };
    print(&text)?;
    Ok(ExitCode::from(if conformance.failed() == 0 { EXIT_EXPECTED } else { EXIT_FAILED }))
}

fn report(conformance: &Conformance) -> String {
    let mut out = String::new();
    for case in &conformance.cases {
        let _ = match &case.outcome {
            Outcome::Passed => writeln!(out, "ok      {}", case.name),
            Outcome::Failed(why) => writeln!(out, "FAILED  {}\n        {}", case.name, why.replace('\n', "\n        ")),
            Outcome::Skipped(why) => writeln!(out, "skipped {}: {why}", case.name),
        };
    }
    if conformance.edges_reachable > 0 {
        let _ = writeln!(out, "\nedges covered / edges reachable: {} / {}", conformance.edges_covered, conformance.edges_reachable);
    }
    let (passed, failed, skipped) = (conformance.passed(), conformance.failed(), conformance.skipped());
    let _ = writeln!(out, "{passed} passed, {failed} failed, {skipped} skipped");
    out
}
