//! Reports: the table, the stories, and the lines for machines.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cleanslate_model::property::Group;
use serde_json::{Value, json};

use super::expected::Expected;
use super::job::{GroupVerdict, JobReport, Measures, Verdict};
use super::plan::Job;
use crate::cli::output::pack;

/// One line a group: see `specs/check-output.md`.
#[must_use]
pub fn json_verdict(job: &Job, report: &JobReport, result: &GroupVerdict, expected: Option<&Expected>) -> Value {
    let shortest = result.shortest();
    let measures = report.measures.as_ref();
    json!({
        "kind": "verdict",
        "design": job.design,
        "topology": job.topology.name,
        "bounds": job.bounds.to_map(),
        "group": result.group.id(),
        "verdict": result.verdict.name(),
        "expected": expected.map(|e| e.verdict.name()),
        "why": result.why,
        "property": shortest.map(|(p, _)| p.id),
        "length": shortest.map(|(_, c)| c.length),
        "states": report.states,
        "depth": report.depth,
        "growth": measures.map(|m| &m.growth),
        "actions": measures.map(actions),
        "bytes_per_state": measures.map(|m| m.bytes_per_state),
        "frontier_peak": measures.map(|m| m.frontier_peak),
        "states_per_second": report.states_per_second(),
        "seconds": (report.seconds * 100.0).round() / 100.0,
        "trace": shortest.map(|(_, c)| c.path.display().to_string()),
    })
}

fn actions(measures: &Measures) -> Vec<Value> {
    measures.actions.iter().map(|(kind, count)| json!({ "action": kind, "count": count })).collect()
}

/// Where the largest space comes from: its cost, its growth, and what happens most in it; three lines, or none.
#[must_use]
pub fn largest(rows: &[(Job, JobReport)]) -> String {
    let Some((job, report)) = rows.iter().max_by_key(|(_, r)| r.states) else { return String::new() };
    let Some(measures) = &report.measures else { return String::new() };
    let growth: Vec<String> = measures.growth.iter().map(u64::to_string).collect();
    let transitions = report.transitions.max(1);
    let share = |(kind, count): &(&str, u64)| format!("{kind} {} %", count.saturating_mul(100) / transitions);
    let often: Vec<String> = measures.actions.iter().take(6).map(share).collect();
    let mut out = format!(
        "largest: {} in {}, {} states, {} a second, {} bytes each in the tables, at most {} at once in the frontier\n",
        job.design,
        job.topology.name,
        report.states,
        report.states_per_second(),
        measures.bytes_per_state,
        measures.frontier_peak
    );
    let _ = writeln!(out, "  new states by depth: {}", growth.join(" "));
    let _ = writeln!(out, "  of {transitions} transitions: {}", often.join(", "));
    out
}

/// What was explored: the bounds as they were given, and, of a single topology, each bound.
#[must_use]
pub fn bounds_of(rows: &[(Job, JobReport)], given: &str) -> String {
    let mut out = format!("bounds: {given}\n");
    let Some((first, _)) = rows.first() else { return out };
    if rows.iter().all(|(job, _)| job.topology == first.topology) {
        let words: Vec<String> = first.bounds.to_map().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        for line in pack(&words) {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

/// The last line.
#[must_use]
pub fn json_summary(verdicts: &[Verdict], unexpected: usize, states: u64, seconds: f64) -> Value {
    let count = |v: Verdict| verdicts.iter().filter(|x| **x == v).count();
    json!({
        "kind": "summary",
        "holds": count(Verdict::Holds),
        "violated": count(Verdict::Violated),
        "inconclusive": count(Verdict::Inconclusive),
        "unexpected": unexpected,
        "states": states,
        "seconds": (seconds * 100.0).round() / 100.0,
    })
}

/// One line of `specs/verdicts.tsv`.
#[must_use]
pub fn tsv(job: &Job, report: &JobReport, result: &GroupVerdict) -> String {
    let shortest = result.shortest();
    let property = shortest.map_or("-", |(p, _)| p.id);
    let length = shortest.map_or_else(|| "-".to_owned(), |(_, c)| c.length.to_string());
    let (design, topology, group) = (&job.design, job.topology.name, result.group.id());
    let bounds = job.bounds_name.unwrap_or("-");
    format!("{bounds}\t{design}\t{topology}\t{group}\t{}\t{property}\t{length}\t{}\n", result.verdict.name(), report.states)
}

/// The story of a counterexample.
#[must_use]
pub fn story_of(job: &Job, result: &GroupVerdict) -> Option<String> {
    let (spec, counterexample) = result.shortest()?;
    let steps = u32::try_from(counterexample.trace.steps.len()).unwrap_or(u32::MAX);
    let mut out = String::new();
    let _ =
        writeln!(out, "{} in {} breaks {}: {} ({})", job.design, job.topology.name, result.group.id(), spec.id, spec.requirement);
    let _ = writeln!(out, "  promised: {}", spec.about);
    out.push('\n');
    let width = steps.to_string().len();
    for step in &counterexample.trace.steps {
        let _ = writeln!(out, "  {:>width$}  {}", step.n, step.say);
    }
    out.push('\n');
    for line in crate::trace::draw::draw(&counterexample.trace, steps).lines() {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(violation) = &counterexample.trace.violation {
        let _ = writeln!(out, "\n  broken: {violation}");
    }
    let also: Vec<_> = result.counterexamples.iter().skip(1).map(|(p, c)| format!("{} ({} steps)", p.id, c.length)).collect();
    if !also.is_empty() {
        let _ = writeln!(out, "  also broken: {}", also.join(", "));
    }
    let _ = writeln!(out, "  replayed from: {}", counterexample.path.display());
    Some(out)
}

/// The table design x topology.
#[must_use]
pub fn table(rows: &[(Job, JobReport)]) -> String {
    let groups: BTreeSet<Group> = rows.iter().flat_map(|(_, r)| r.groups.iter().map(|g| g.group)).collect();
    let design_width = rows.iter().map(|(j, _)| j.design.len()).max().unwrap_or(0).max("design".len());
    let mut out = String::new();
    let _ = write!(out, "{:<design_width$}  {:<14}", "design", "topology");
    for group in &groups {
        let _ = write!(out, "  {:<18}", group.id());
    }
    let _ = writeln!(out, "  {:>10}  {:>5}  {:>8}  {:>9}", "states", "depth", "seconds", "states/s");
    for (job, report) in rows {
        let _ = write!(out, "{:<design_width$}  {:<14}", job.design, job.topology.name);
        for group in &groups {
            let cell = report.groups.iter().find(|g| g.group == *group).map_or_else(String::new, |g| match g.shortest() {
                Some((_, c)) => format!("violated ({} steps)", c.length),
                None => g.verdict.name().to_owned(),
            });
            let _ = write!(out, "  {cell:<18}");
        }
        let rate = report.states_per_second();
        let _ = writeln!(out, "  {:>10}  {:>5}  {:>8.2}  {:>9}", report.states, report.depth, report.seconds, rate);
    }
    out
}
