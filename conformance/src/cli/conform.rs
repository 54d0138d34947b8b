//! `cleanslate conform`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use super::args::TargetArg;
use super::kafka::start;
use super::output::print;
use super::{CliError, ConformArgs, EXIT_EXPECTED, EXIT_FAILED, EXIT_INCONCLUSIVE};
use crate::conform::{Conformance, Outcome, read_traces};
use crate::target::in_process::InProcess;
use crate::target::over_adapter::OverAdapter;

/// Runs `cleanslate conform`.
///
/// # Errors
/// [`CliError`] for unknown bounds and unreadable traces.
pub fn run(args: &ConformArgs) -> Result<ExitCode, CliError> {
    let another = args.adapter.is_some() || matches!(args.target, TargetArg::Kafka);
    let idle = args.given_for_sequences();
    if !idle.is_empty() && (!another || args.traces.is_some() || args.transitions) {
        let what = idle.join(", ");
        return Err(CliError::Usage(format!(
            "{what}: only for sequences, with --target kafka or --adapter, without --traces or --transitions"
        )));
    }
    if args.kafka.is_given() && (!another || args.adapter.is_some()) {
        return Err(CliError::Usage("--kafka-version and --kafka-jars need --target kafka".to_owned()));
    }
    if args.transitions && !another {
        return Err(CliError::Usage("--transitions needs --target kafka or --adapter".to_owned()));
    }
    if args.transitions {
        return super::transitions::run(args);
    }
    if args.failures.is_some() && (!another || args.traces.is_some()) {
        return Err(CliError::Usage("--failures: only with --target kafka or --adapter, without --traces".to_owned()));
    }
    if another && args.traces.is_none() {
        if args.bounds.is_some() {
            return Err(CliError::Usage("--bounds: another implementation is held against the model by --transitions".to_owned()));
        }
        return super::sequences::run(args);
    }
    let mut conformance = Conformance::default();
    let mut rate = String::new();
    match &args.traces {
        None => conformance.lockstep(args.bounds()).map_err(CliError::Usage)?,
        Some(dir) => match run_traces(args, dir, another, &mut conformance)? {
            Some(told) => rate = told,
            None => return Ok(ExitCode::from(EXIT_INCONCLUSIVE)),
        },
    }
    let target = if args.adapter.is_some() {
        "adapter"
    } else if another {
        "kafka"
    } else {
        "impl"
    };
    let text = if args.json { format!("{}\n", conformance.summary(target)) } else { report(&conformance) + &rate };
    print(&text)?;
    Ok(ExitCode::from(match (conformance.failed(), conformance.passed()) {
        (1.., _) => EXIT_FAILED,
        (0, 0) => EXIT_INCONCLUSIVE,
        _ => EXIT_EXPECTED,
    }))
}

/// Runs the traces of a directory; tells how many a second. None if the other implementation cannot be had here.
fn run_traces(args: &ConformArgs, dir: &Path, another: bool, conformance: &mut Conformance) -> Result<Option<String>, CliError> {
    let traces = read_traces(dir)?;
    if traces.is_empty() {
        return Err(CliError::Usage("--traces: the directory holds no *.json file".to_owned()));
    }
    let begin;
    let mut on = String::new();
    if another {
        let Some(mut adapter) = start(args.adapter.as_deref(), &args.kafka)? else { return Ok(None) };
        on = format!(" on {} {}", adapter.greeting().name, adapter.greeting().version);
        begin = Instant::now();
        let name = if args.adapter.is_some() { "adapter" } else { "kafka" };
        conformance.traces(&traces, &mut OverAdapter::new(&mut adapter, name), true, args.repeat);
        on = format!("{on}, {} requests,", adapter.requests());
        adapter.finish()?;
    } else {
        begin = Instant::now();
        conformance.traces(&traces, &mut InProcess::default(), false, args.repeat);
    }
    let (runs, seconds) = (traces.len() as f64 * args.repeat as f64, begin.elapsed().as_secs_f64());
    Ok(Some(format!("{runs} runs{on} in {seconds:.1} s, {:.0} a second\n", runs / seconds.max(0.001))))
}

fn report(conformance: &Conformance) -> String {
    let mut out = String::new();
    for case in &conformance.cases {
        let _ = match &case.outcome {
            Outcome::Passed(None) => writeln!(out, "ok      {}", case.name),
            Outcome::Passed(Some(seen)) => writeln!(out, "ok      {}\n        {seen}", case.name),
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
