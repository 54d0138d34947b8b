//! `cleanslate conform --transitions`: everything that the model does to a single log, on another implementation.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

use super::kafka::start;
use super::output::{print, progress};
use super::{CliError, ConformArgs, EXIT_EXPECTED, EXIT_FAILED, EXIT_INCONCLUSIVE};
use crate::sequence::file::SequenceFile;
use crate::sequence::needs::lacking;
use crate::transitions::collect::{CollectError, Collection, collect};
use crate::transitions::take::{Parting, Taken, take};

/// Collects the transitions and takes them.
///
/// # Errors
/// When there is no adapter, it misbehaves, the bounds are none, or model and log of this project part already.
pub(super) fn run(args: &ConformArgs) -> Result<ExitCode, CliError> {
    let Some(mut adapter) = start(args.adapter.as_deref(), &args.kafka)? else { return Ok(ExitCode::from(EXIT_INCONCLUSIVE)) };
    progress("collecting what the model does to single logs");
    let begin = Instant::now();
    let collection = collect(args.bounds())?;
    let collected = begin.elapsed().as_secs_f64();
    let missing = lacking(collection.graph.needs(), adapter.abilities());
    if !missing.is_empty() {
        adapter.finish()?;
        let needs = missing.into_iter().collect::<Vec<_>>().join(", ");
        print(&format!(
            "skipped: the transitions at {} need {needs}, which the adapter lacks; nothing was compared\n",
            args.bounds()
        ))?;
        return Ok(ExitCode::from(EXIT_INCONCLUSIVE));
    }
    progress(&format!("taking {} transitions", collection.graph.transitions.len()));
    let taken = take(&collection.graph, &mut adapter).map_err(|e| CliError::Adapter(e.to_string()))?;
    let seconds = (collected, begin.elapsed().as_secs_f64());
    let name = format!("{} {}", adapter.greeting().name, adapter.greeting().version);
    let requests = adapter.requests();
    adapter.finish()?;
    let stored = taken.parting.as_ref().map(|parting| store(args, parting)).transpose()?;
    report(args, &name, &collection, &taken, requests, seconds, stored.as_deref())?;
    Ok(ExitCode::from(if is_good(&collection, &taken) { EXIT_EXPECTED } else { EXIT_FAILED }))
}

impl From<CollectError> for CliError {
    fn from(error: CollectError) -> Self {
        match error {
            CollectError::Bounds(error) => Self::Usage(error.to_string()),
            CollectError::Parting { .. } => Self::Parting(error.to_string()),
        }
    }
}

fn is_good(collection: &Collection, taken: &Taken) -> bool {
    taken.parting.is_none() && taken.transitions == collection.graph.transitions.len()
}

/// Writes a way to a difference as a sequence.
fn store(args: &ConformArgs, parting: &Parting) -> Result<String, CliError> {
    let failures = args.failures();
    std::fs::create_dir_all(&failures)?;
    let path = failures.join("transition.json");
    SequenceFile::new(format!("A transition of the model: {}.", parting.op), parting.requests.clone()).write(&path)?;
    Ok(path.display().to_string())
}

fn report(
    args: &ConformArgs,
    name: &str,
    collection: &Collection,
    taken: &Taken,
    requests: u64,
    (collected, seconds): (f64, f64),
    stored: Option<&str>,
) -> Result<(), CliError> {
    let all = collection.graph.transitions.len();
    if args.json {
        let line = json!({
            "format": "cleanslate-conformance", "version": 1, "target": name, "bounds": args.bounds(), "models": collection.scenarios.len(),
            "edges": collection.edges, "transitions": all, "taken": taken.transitions, "walks": taken.walks, "requests": requests,
            "difference": stored, "seconds": seconds,
        });
        return Ok(print(&format!("{line}\n"))?);
    }
    let mut out = String::new();
    if let (Some(parting), Some(path)) = (&taken.parting, stored) {
        let scenario = collection.scenarios.get(parting.met.scenario).map_or("", String::as_str);
        let _ = writeln!(out, "DIFFERENT  {path} ({scenario}, after {} steps)\n{parting}", parting.met.depth);
    }
    let models = collection.scenarios.len();
    let _ = writeln!(
        out,
        "log-level transitions taken on {name}: {} of {all}, distinct ones of {} transitions of {models} models at {}\n\
         {} walks, {requests} requests; {seconds:.1} s, of which {collected:.1} s to collect them",
        taken.transitions,
        collection.edges,
        args.bounds(),
        taken.walks
    );
    Ok(print(&out)?)
}
