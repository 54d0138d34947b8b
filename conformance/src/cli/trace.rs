//! `cleanslate trace show | replay`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{ReplayArgs, ShowArgs, TargetArg, TraceArgs, TraceCommand};
use super::kafka::start;
use super::output::{pack, print};
use super::{CliError, EXIT_EXPECTED, EXIT_FAILED, EXIT_INCONCLUSIVE};
use crate::conform::stock::{StockReplay, replay_with_stock_rules};
use crate::replay::{ReplayReport, replay};
use crate::target::in_process::InProcess;
use crate::target::over_adapter::OverAdapter;
use crate::trace::draw::draw;
use crate::trace::format::{BY_HAND, Trace};
use crate::trace::read::read_trace;
use crate::trace::write::trace_to_string;
use crate::witness::Judgement;

/// What a run of the trace in the model says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelReplay {
    /// The model allows every step and violates the same property at the end; the text says so in one line.
    Agrees(String),
    /// The model does not; the text says where, in one line.
    Disagrees(String),
    /// The trace was made by hand for the log alone; the text says so in one line.
    NotMeant(String),
    /// The trace's scenario is not one of the model's; the text says why, in one line.
    NotRun(String),
}

/// What `trace replay` does beyond running the trace on a target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hooks {
    /// Runs the trace in the model.
    pub model: Option<fn(&Trace) -> ModelReplay>,
}

/// Runs `cleanslate trace`.
pub fn run(args: &TraceArgs, hooks: &Hooks) -> Result<ExitCode, CliError> {
    match &args.command {
        TraceCommand::Show(args) => show(args),
        TraceCommand::Replay(args) => run_replay(args, hooks),
    }
}

fn show(args: &ShowArgs) -> Result<ExitCode, CliError> {
    let trace = read_trace(&args.file)?;
    if args.json {
        print(&trace_to_string(&trace))?;
        return Ok(ExitCode::from(EXIT_EXPECTED));
    }
    let last = trace.steps.last().map_or(0, |s| s.n);
    let step = args.step.unwrap_or(last);
    if step > last {
        return Err(CliError::Usage(format!("--step: expected 0 to {last} for this trace, found {step}")));
    }
    print(&story(&trace, step))?;
    Ok(ExitCode::from(EXIT_EXPECTED))
}

/// The trace as text: title, scenario, one line a step, the logs after step `drawn`, the violation.
#[must_use]
pub fn story(trace: &Trace, drawn: u32) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", trace.title);
    let scenario = &trace.scenario;
    let _ = writeln!(out, "design    {}", scenario.design);
    let axes: Vec<String> = scenario.axes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    for line in pack(&axes) {
        let _ = writeln!(out, "          {line}");
    }
    let _ = writeln!(out, "topology  {}", scenario.topology);
    let bounds: Vec<String> = scenario.bounds.iter().map(|(k, v)| format!("{k}={v}")).collect();
    for (i, line) in pack(&bounds).iter().enumerate() {
        let _ = writeln!(out, "{:10}{line}", if i == 0 { "bounds" } else { "" });
    }
    out.push('\n');
    let width = trace.steps.len().to_string().len();
    for step in &trace.steps {
        let _ = writeln!(out, "{:>width$}  {}", step.n, step.say);
    }
    let _ = writeln!(out, "\nafter step {drawn}:\n");
    out.push_str(&draw(trace, drawn));
    if let Some(property) = &trace.property {
        let _ = writeln!(out, "\nviolated  {property}");
    }
    if let Some(violation) = &trace.violation {
        let _ = writeln!(out, "          {violation}");
    }
    out
}

fn run_replay(args: &ReplayArgs, hooks: &Hooks) -> Result<ExitCode, CliError> {
    let trace = read_trace(&args.file)?;
    let another = args.adapter.is_some() || args.target == TargetArg::Kafka;
    if (!another || args.adapter.is_some()) && args.kafka.is_given() {
        return Err(CliError::Usage("--kafka-version and --kafka-jars need --target kafka".to_owned()));
    }
    let wrong = |source| CliError::Replay { file: args.file.display().to_string(), source: Box::new(source) };
    let played = if another {
        let Some(mut adapter) = start(args.adapter.as_deref(), &args.kafka)? else { return Ok(ExitCode::from(EXIT_INCONCLUSIVE)) };
        let name = if args.adapter.is_some() { "adapter" } else { "kafka" };
        let played = replay_with_stock_rules(&trace, Some(&args.file), &mut OverAdapter::new(&mut adapter, name)).map_err(wrong)?;
        adapter.finish()?;
        played
    } else {
        let report = replay(&trace, Some(&args.file), &mut InProcess::default()).map_err(wrong)?;
        StockReplay { report, needs: None }
    };
    let model = hooks.model.map(|run| run(&trace));
    let skipped = played.skipped();
    // Whoever writes a trace by hand says in their own words what is wrong.
    let judgement = played.report.judgement.as_ref().filter(|_| trace.scenario.topology != BY_HAND);
    let other = judgement.and_then(|judgement| another_violation(&trace, judgement));
    print(&summary(&trace, &played.report, skipped.as_deref(), other.as_deref(), model.as_ref()))?;
    let failed = !played.report.succeeded() || other.is_some() || matches!(model, Some(ModelReplay::Disagrees(_)));
    let unjudged = match &model {
        Some(ModelReplay::NotRun(_)) => true,
        // Nobody has said whether the property is violated.
        Some(ModelReplay::NotMeant(_)) => played.report.judgement == Some(Judgement::NotJudged),
        _ => false,
    };
    Ok(ExitCode::from(match skipped {
        Some(_) => EXIT_INCONCLUSIVE,
        None if failed => EXIT_FAILED,
        None if unjudged => EXIT_INCONCLUSIVE,
        None => EXIT_EXPECTED,
    }))
}

/// What the trace says is wrong, if the concrete state shows something else.
fn another_violation(trace: &Trace, judgement: &Judgement) -> Option<String> {
    let Judgement::Seen(evidence) = judgement else { return None };
    trace.violation.clone().filter(|said| said != evidence)
}

/// What happened, a line a step, and the answer.
fn summary(
    trace: &Trace,
    report: &ReplayReport,
    skipped: Option<&str>,
    other: Option<&str>,
    model: Option<&ModelReplay>,
) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", trace.title);
    let width = trace.steps.len().to_string().len();
    for (i, step) in trace.steps.iter().enumerate() {
        let tick = match i.cmp(&report.steps_agreed) {
            std::cmp::Ordering::Less => "ok",
            std::cmp::Ordering::Equal if skipped.is_none() => "XX",
            std::cmp::Ordering::Equal => "--",
            std::cmp::Ordering::Greater => "  ",
        };
        let _ = writeln!(out, "{tick}  {:>width$}  {}", step.n, step.say);
    }
    let steps = trace.steps.len();
    let _ = writeln!(out, "\n{}: {} of {steps} steps agree ({} operations)", report.target, report.steps_agreed, report.operations);
    if let Some(why) = skipped {
        let _ = writeln!(out, "{}: skipped: {why}", report.target);
        return out;
    }
    if let Some(divergence) = &report.divergence {
        let _ = writeln!(out, "\nthe target parts from the trace at {divergence}");
        return out;
    }
    if let (Some(property), Some(judgement)) = (&trace.property, &report.judgement) {
        let answer = match judgement {
            Judgement::Seen(evidence) => format!("is violated in the concrete state: {evidence} (step {})", report.steps_agreed),
            Judgement::NotSeen => "is NOT violated in the concrete state".to_owned(),
            Judgement::NotJudged => "cannot be judged on concrete states".to_owned(),
        };
        let _ = writeln!(out, "{}: {property} {answer}", report.target);
    }
    if let Some(said) = other {
        let _ = writeln!(out, "{}: the file says of it: {said}", report.target);
    }
    match model {
        Some(ModelReplay::Agrees(text) | ModelReplay::Disagrees(text) | ModelReplay::NotMeant(text)) => {
            let _ = writeln!(out, "model: {text}");
        }
        Some(ModelReplay::NotRun(text)) => {
            let _ = writeln!(out, "model: no verdict: {text}; a trace that is not of the model has topology '{BY_HAND}'");
        }
        None => {}
    }
    out
}
