//! `cleanslate kill`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::output::print;
use super::{CliError, EXIT_EXPECTED, EXIT_FAILED, KillArgs};
use crate::kill::{Fate, Judged, Outcome, Variant, judge, load};
use crate::parallel;

/// Runs `cleanslate kill`.
///
/// # Errors
/// [`CliError`] for a selection that names nothing, and for traces on which model and file do not agree.
pub fn run(args: &KillArgs) -> Result<ExitCode, CliError> {
    let list = load().map_err(|e| CliError::Usage(e.to_string()))?;
    let chosen: Vec<Variant> = list.into_iter().filter(|v| is_chosen(args, v)).collect();
    if chosen.is_empty() {
        let why = "no variant of the kill list fits; see specs/kill-list.tsv for designs and topologies";
        return Err(CliError::Usage(why.to_owned()));
    }
    let dir = args.trace_dir.clone().unwrap_or_else(|| PathBuf::from("target/kill"));
    std::fs::create_dir_all(&dir).map_err(|e| CliError::Usage(format!("--trace-dir {}: cannot create it: {e}", dir.display())))?;
    let watched = std::io::stderr().is_terminal();
    let results = parallel::map(
        &chosen,
        |variant| judge(variant, &dir),
        |count, variant| {
            if watched {
                // A closed stderr must not stop the work.
                let _ = writeln!(std::io::stderr(), "[{count}/{}] {}", chosen.len(), variant.design);
            }
        },
    );
    let mut rows = Vec::new();
    for (variant, result) in chosen.iter().zip(results) {
        rows.push((variant, result.map_err(|e| CliError::Adapter(e.to_string()))?));
    }
    conclude(args, &rows)
}

/// A design fits if it is the variant's own or begins it, so that `sound` and `sound+fault` choose many.
fn is_chosen(args: &KillArgs, variant: &Variant) -> bool {
    let design = args.designs.is_empty() || args.designs.iter().any(|d| variant.design.starts_with(d.as_str()));
    let topology = args.topologies.is_empty() || args.topologies.iter().any(|t| t == variant.topology.name);
    design && topology
}

fn conclude(args: &KillArgs, rows: &[(&Variant, Judged)]) -> Result<ExitCode, CliError> {
    let count = |of: fn(&Outcome) -> bool| rows.iter().filter(|(_, j)| of(&j.outcome)).count();
    let killed = count(|o| matches!(o, Outcome::Killed { .. }));
    let explained = count(|o| matches!(o, Outcome::Explained));
    let survived = count(|o| matches!(o, Outcome::Unexpected(_)));
    let mut out = String::new();
    for (variant, judged) in rows {
        if args.json {
            let _ = writeln!(out, "{}", json_line(variant, judged));
        } else {
            let _ = writeln!(out, "{}", text_line(variant, judged));
        }
    }
    if args.json {
        let summary =
            json!({"kind": "summary", "variants": rows.len(), "killed": killed, "explained": explained, "survived": survived});
        let _ = writeln!(out, "{summary}");
    } else {
        let _ = writeln!(out, "\n{} variants: {killed} killed, {explained} explained, {survived} not as listed", rows.len());
    }
    print(&out)?;
    Ok(ExitCode::from(if survived == 0 { EXIT_EXPECTED } else { EXIT_FAILED }))
}

fn json_line(variant: &Variant, judged: &Judged) -> serde_json::Value {
    let (outcome, property, length, trace, why) = match (&judged.outcome, &variant.fate) {
        (Outcome::Killed { property, steps, trace }, _) => {
            ("killed", Some(*property), Some(*steps), Some(trace.display().to_string()), None)
        }
        (Outcome::Explained, Fate::Survives(why)) => ("explained", None, None, None, Some(why.clone())),
        (Outcome::Explained, Fate::Killed { .. }) => ("explained", None, None, None, None),
        (Outcome::Unexpected(why), _) => ("survived", None, None, None, Some(why.clone())),
    };
    json!({
        "kind": "variant",
        "design": variant.design,
        "topology": variant.topology.name,
        "bounds": variant.bounds.to_map(),
        "outcome": outcome,
        "property": property,
        "length": length,
        "states": judged.states,
        "trace": trace,
        "why": why,
    })
}

fn text_line(variant: &Variant, judged: &Judged) -> String {
    let what = match (&judged.outcome, &variant.fate) {
        (Outcome::Killed { property, steps, .. }, _) => format!("killed by {property} in {steps} steps"),
        (Outcome::Explained, Fate::Survives(why)) => format!("survives: {why}"),
        (Outcome::Explained, Fate::Killed { .. }) => "survives".to_owned(),
        (Outcome::Unexpected(why), _) => format!("NOT AS LISTED: {why}"),
    };
    format!("{:<64} {:<14} {what}", variant.design, variant.topology.name)
}
