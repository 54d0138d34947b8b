//! `cleanslate check`.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::output::print;
use super::{CheckArgs, CliError, EXIT_EXPECTED, EXIT_FAILED, EXIT_INCONCLUSIVE, Engine};
use crate::check::{
    Caps, CounterexampleError, ExpectedTable, Job, JobReport, Means, Plan, Verdict, bounds_of, json_summary, json_verdict, largest,
    resident_bytes, run_job, story_of, table, tsv,
};

use crate::parallel;

type JobResult = Result<JobReport, CounterexampleError>;

/// Runs `cleanslate check`.
///
/// # Errors
/// [`CliError`] for unknown names, and for counterexamples on which model, log and file do not agree.
pub fn run(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let plan =
        Plan::new(&args.designs, &args.topologies, &args.bounds, &args.properties).map_err(|e| CliError::Usage(e.to_string()))?;
    let caps = caps(args)?;
    let dir = args.trace_dir.clone().unwrap_or_else(|| PathBuf::from("target/traces"));
    std::fs::create_dir_all(&dir).map_err(|e| CliError::Usage(format!("--trace-dir {}: cannot create it: {e}", dir.display())))?;
    if let Some(path) = &args.write_expected {
        return write_expected(args, path, &caps, &dir);
    }
    let started = Instant::now();
    let rows = run_plan(plan, args.engine, &caps, &dir)?;
    let expected = ExpectedTable::load().map_err(|e| CliError::Usage(e.to_string()))?;
    conclude(args, &rows, &expected, started.elapsed())
}

fn run_plan(plan: Plan, engine: Engine, caps: &Caps, dir: &Path) -> Result<Vec<(Job, JobReport)>, CliError> {
    let results = run_all(&plan.jobs, engine, caps, dir);
    let rows = plan.jobs.into_iter().zip(results);
    rows.map(|(job, result)| Ok((job, result.map_err(Box::new)?))).collect()
}

fn caps(args: &CheckArgs) -> Result<Caps, CliError> {
    let time = args.timeout.map(Duration::from_secs);
    let caps = Caps { states: args.max_states, memory: args.max_memory, depth: args.max_depth, time };
    let capped = caps.states.is_some() || caps.memory.is_some() || caps.depth.is_some() || caps.time.is_some();
    if args.engine == Engine::Stateright && capped {
        let why =
            "--engine stateright cannot tell a search that a cap has cut from one that is complete; use --engine bfs with caps";
        return Err(CliError::Usage(why.to_owned()));
    }
    if caps.memory.is_some() && resident_bytes().is_none() {
        return Err(CliError::Usage("--max-memory: this system does not tell how much memory a process holds".to_owned()));
    }
    Ok(caps)
}

/// Runs the jobs on all cores, telling a person who waits how far they are.
fn run_all(jobs: &[Job], engine: Engine, caps: &Caps, dir: &Path) -> Vec<JobResult> {
    let watched = std::io::stderr().is_terminal();
    let finished = |count: usize, job: &Job| {
        if watched {
            // A closed stderr must not stop the work.
            let _ = writeln!(std::io::stderr(), "[{count}/{}] {} in {}", jobs.len(), job.design, job.topology.name);
        }
    };
    // With fewer jobs than cores, each has several.
    let means = Means { caps: *caps, threads: (parallel::cores() / jobs.len().max(1)).max(1) };
    parallel::map(jobs, |job| run_job(job, engine, &means, dir), finished)
}

fn write_expected(args: &CheckArgs, path: &Path, caps: &Caps, dir: &Path) -> Result<ExitCode, CliError> {
    let mut text = String::from(
        "# Expected verdicts. Made by: cargo run --release -- check --write-expected specs/verdicts.tsv\n\
         # bounds\tdesign\ttopology\tgroup\tverdict\tproperty that breaks first\tsteps of its shortest trace\tstates\n",
    );
    for bounds in ["small", "ci"] {
        let plan = Plan::new(&[], &[], bounds, &[]).map_err(|e| CliError::Usage(e.to_string()))?;
        for (job, report) in run_plan(plan, args.engine, caps, dir)? {
            report.groups.iter().for_each(|result| text.push_str(&tsv(&job, &report, result)));
        }
    }
    std::fs::write(path, text)?;
    Ok(ExitCode::from(EXIT_EXPECTED))
}

fn conclude(
    args: &CheckArgs,
    rows: &[(Job, JobReport)],
    expected: &ExpectedTable,
    elapsed: Duration,
) -> Result<ExitCode, CliError> {
    let by_table = args.designs.is_empty() || args.expect;
    let mut verdicts = Vec::new();
    let mut unexpected = Vec::new();
    let mut out = String::new();
    for (job, report) in rows {
        for result in &report.groups {
            verdicts.push(result.verdict);
            let line = expected.of(job, result.group.id());
            let whole_group = cleanslate_model::property::PROPERTIES
                .iter()
                .filter(|p| p.group == result.group)
                .all(|p| job.properties.iter().any(|q| q.id == p.id));
            let difference = match line {
                Some(line) => line.difference(report, result, whole_group),
                None if args.expect => {
                    Some("nothing is expected of it: the table has the named designs at small and ci bounds".to_owned())
                }
                None => None,
            };
            let name = format!("{} in {}, {}", job.design, job.topology.name, result.group.id());
            unexpected.extend(difference.map(|d| format!("{name}: {d}")));
            if args.json {
                out.push_str(&format!("{}\n", json_verdict(job, report, result, line)));
            } else if !args.no_stories {
                out.extend(story_of(job, result).map(|s| s + "\n"));
            }
        }
    }
    let states = rows.iter().map(|(_, r)| r.states).sum();
    if args.json {
        out.push_str(&format!("{}\n", json_summary(&verdicts, unexpected.len(), states, elapsed.as_secs_f64())));
    } else {
        out.push_str(&table(rows));
        out.push('\n');
        out.push_str(&bounds_of(rows, &args.bounds));
        out.push_str(&closing(rows, &verdicts, by_table.then_some(&unexpected), states, elapsed));
    }
    print(&out)?;
    Ok(ExitCode::from(exit_code(&verdicts, by_table, &unexpected, expected_covers(rows, expected))))
}

fn expected_covers(rows: &[(Job, JobReport)], expected: &ExpectedTable) -> bool {
    rows.iter().all(|(job, report)| report.groups.iter().all(|g| expected.of(job, g.group.id()).is_some()))
}

fn closing(
    rows: &[(Job, JobReport)],
    verdicts: &[Verdict],
    unexpected: Option<&Vec<String>>,
    states: u64,
    elapsed: Duration,
) -> String {
    let count = |v: Verdict| verdicts.iter().filter(|x| **x == v).count();
    let mut out = format!(
        "{} verdicts: {} hold, {} violated, {} inconclusive; {states} states in {:.1} s\n",
        verdicts.len(),
        count(Verdict::Holds),
        count(Verdict::Violated),
        count(Verdict::Inconclusive),
        elapsed.as_secs_f64(),
    );
    out.push_str(&largest(rows));
    for (job, report) in rows {
        for result in &report.groups {
            if let Some(why) = &result.why {
                out.push_str(&format!("inconclusive: {} in {}, {}: {why}\n", job.design, job.topology.name, result.group.id()));
            }
        }
    }
    match unexpected {
        Some(list) if list.is_empty() => out.push_str("no verdict differs from the table of expected verdicts\n"),
        Some(list) => list.iter().for_each(|line| out.push_str(&format!("unexpected: {line}\n"))),
        None => {}
    }
    out
}

fn exit_code(verdicts: &[Verdict], by_table: bool, unexpected: &[String], covered: bool) -> u8 {
    let inconclusive = verdicts.contains(&Verdict::Inconclusive);
    if by_table && covered {
        let only_inconclusive = inconclusive && unexpected.iter().all(|u| u.ends_with("found inconclusive"));
        return match (unexpected.is_empty(), only_inconclusive) {
            (true, _) => EXIT_EXPECTED,
            (false, true) => EXIT_INCONCLUSIVE,
            (false, false) => EXIT_FAILED,
        };
    }
    if verdicts.contains(&Verdict::Violated) || (by_table && !unexpected.is_empty()) {
        EXIT_FAILED
    } else if inconclusive {
        EXIT_INCONCLUSIVE
    } else {
        EXIT_EXPECTED
    }
}
