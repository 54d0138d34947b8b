//! `cleanslate conform --target kafka` and `--adapter`: sequences of log operations on the log of this project and on another.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

use super::kafka::start;
use super::output::{print, progress};
use super::{CliError, ConformArgs, EXIT_EXPECTED, EXIT_FAILED, EXIT_INCONCLUSIVE};
use crate::adapter::Adapter;
use crate::adapter::message::Operation;
use crate::replay::shell_word;
use crate::sequence::compare::{Difference, compare};
use crate::sequence::file::SequenceFile;
use crate::sequence::known::Masks;
use crate::sequence::needs::{Names, missing, worded};
use crate::sequence::random::{Failing, Random};

/// What a run has found.
#[derive(Debug, Default)]
struct Found {
    /// Those that were compared.
    stored: u64,
    random: u64,
    /// Stored ones that need what the adapter lacks.
    skipped: u64,
    requests: u64,
    /// What stored ones need and the adapter lacks.
    missing: Names,
    /// The same of what was left out of random ones.
    left_out: Names,
    /// File and text of each difference.
    differences: Vec<(PathBuf, String)>,
    /// What the other side is known to do otherwise.
    masks: Masks,
    /// The run has ended before its last sequence.
    is_cut: bool,
}

impl Found {
    /// All stored sequences of the project were compared. Only then must each known difference have occurred.
    fn is_whole(&self, args: &ConformArgs) -> bool {
        args.sequences.is_none() && self.stored > 0 && self.skipped == 0 && !self.is_cut
    }

    fn exit_code(&self, args: &ConformArgs) -> u8 {
        if !self.is_good(args) {
            EXIT_FAILED
        } else if self.stored + self.random == 0 {
            EXIT_INCONCLUSIVE
        } else {
            EXIT_EXPECTED
        }
    }

    /// Nothing differs, and what is known to differ does. The stored sequences of the project meet each known difference.
    fn is_good(&self, args: &ConformArgs) -> bool {
        self.differences.is_empty() && (!self.is_whole(args) || self.masks.counts().all(|(_, count)| count > 0))
    }
}

/// Runs the sequences.
///
/// # Errors
/// When there is no adapter, it misbehaves, or a file cannot be read or written.
pub fn run(args: &ConformArgs) -> Result<ExitCode, CliError> {
    let files = sequence_files(args)?;
    let stored: Vec<(PathBuf, SequenceFile)> =
        files.into_iter().map(|file| SequenceFile::read(&file).map(|sequence| (file, sequence))).collect::<Result<_, _>>()?;
    let Some(mut adapter) = start(args.adapter.as_deref(), &args.kafka)? else { return Ok(ExitCode::from(EXIT_INCONCLUSIVE)) };
    let name = format!("{} {}", adapter.greeting().name, adapter.greeting().version);
    let masks = Masks::of(&adapter.greeting().name, &adapter.greeting().version);
    let mut found = Found { masks, ..Found::default() };
    let begin = Instant::now();
    directed(&mut adapter, args, stored, &mut found)?;
    random(&mut adapter, args, &mut found)?;
    adapter.finish()?;
    let seconds = begin.elapsed().as_secs_f64();
    report(args, &name, &found, seconds)?;
    Ok(ExitCode::from(found.exit_code(args)))
}

/// The sequences that are stored.
fn directed(
    adapter: &mut Adapter,
    args: &ConformArgs,
    stored: Vec<(PathBuf, SequenceFile)>,
    found: &mut Found,
) -> Result<(), CliError> {
    for (file, sequence) in stored {
        if found.is_cut {
            break;
        }
        let requests = worded(sequence.run(), adapter.abilities());
        let missing = missing(&requests, adapter.abilities());
        if !missing.is_empty() {
            found.skipped += 1;
            found.missing.extend(missing);
            continue;
        }
        found.stored += 1;
        found.requests += requests.len() as u64;
        if let Some(difference) = compare(adapter, &requests, &mut found.masks)? {
            let steps: Vec<Operation> = requests.into_iter().map(|(operation, _)| operation).collect();
            found.differences.push((file, describe(&steps, &difference)));
            found.is_cut = found.differences.len() >= max_differences(args);
        }
    }
    Ok(())
}

/// The files of the stored sequences, in order of name. The project's own may be absent, where the command was moved to another machine.
fn sequence_files(args: &ConformArgs) -> Result<Vec<PathBuf>, CliError> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("sequences");
    let path = args.sequences.as_ref().unwrap_or(&own);
    if path.is_file() {
        return Ok(vec![path.clone()]);
    }
    let mut files: Vec<PathBuf> = match std::fs::read_dir(path) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
        Err(_) if args.sequences.is_none() => Vec::new(),
        Err(e) => return Err(CliError::Usage(format!("--sequences {}: {e}", path.display()))),
    };
    files.retain(|file| file.extension().is_some_and(|e| e == "json"));
    if files.is_empty() && args.sequences.is_some() {
        return Err(CliError::Usage("--sequences: the directory holds no *.json file".to_owned()));
    }
    files.sort();
    Ok(files)
}

fn max_differences(args: &ConformArgs) -> usize {
    args.max_differences.map_or(5, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

fn seed(args: &ConformArgs) -> u64 {
    args.seed.unwrap_or(1)
}

fn random(adapter: &mut Adapter, args: &ConformArgs, found: &mut Found) -> Result<(), CliError> {
    if found.is_cut {
        return Ok(());
    }
    let count = args.random.unwrap_or(500);
    let mut random = Random::new(seed(args), usize::from(args.length.unwrap_or(30)), adapter.abilities().clone());
    for number in 0..count {
        if number % 500 == 0 {
            progress(&format!("random sequences: {number} of {count}"));
        }
        let result = random.next(adapter, &mut found.masks)?;
        take_in(args, found, u64::from(number > 0), result)?;
        found.left_out.clone_from(&random.left_out);
        if found.differences.len() >= max_differences(args) {
            found.is_cut = true;
            return Ok(());
        }
    }
    let result = random.finish(adapter, &mut found.masks)?;
    take_in(args, found, u64::from(count > 0), result)
}

/// Counts a sequence; stores it if it shows a difference.
fn take_in(
    args: &ConformArgs,
    found: &mut Found,
    sequences: u64,
    (requests, failing): (usize, Option<Box<Failing>>),
) -> Result<(), CliError> {
    found.random += sequences;
    found.requests += requests as u64;
    let Some(failing) = failing else { return Ok(()) };
    let steps: Vec<Operation> = failing.requests.iter().take(failing.difference.step + 1).map(|(o, _)| o.clone()).collect();
    let text = describe(&steps, &failing.difference);
    let (seed, number, failures) = (seed(args), failing.number, args.failures());
    let path = failures.join(format!("seed-{seed}-{number}.json"));
    std::fs::create_dir_all(&failures)?;
    let about = format!("The two sides part at the last step. Random sequence {number} of seed {seed}, made smaller.");
    SequenceFile::new(about, steps).write(&path)?;
    found.differences.push((path, text));
    Ok(())
}

fn describe(steps: &[Operation], difference: &Difference) -> String {
    let mut out = String::new();
    for (number, step) in steps.iter().enumerate().take(difference.step + 1) {
        let text = serde_json::to_string(step).unwrap_or_default();
        let _ = writeln!(out, "  {number:>3} {text}");
    }
    for (part, here, there) in &difference.parts {
        let (here, there) = (or_nothing(here), or_nothing(there));
        let _ = writeln!(out, "  step {}, {part}:\n    here  {here}\n    there {there}", difference.step);
    }
    out
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "(nothing)" } else { text }
}

/// The options that name the other side once more.
fn other_side(args: &ConformArgs) -> String {
    let path = |path: &PathBuf| shell_word(&path.display().to_string());
    match (&args.adapter, &args.kafka.version) {
        (Some(command), _) => format!("--adapter {}", shell_word(command)),
        (None, Some(version)) => format!("--target kafka --kafka-version {}", shell_word(version)),
        (None, None) => {
            let jars = args.kafka.jars.iter().map(|dir| format!(" --kafka-jars {}", path(dir)));
            format!("--target kafka{}", jars.collect::<String>())
        }
    }
}

fn list(names: &Names) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

fn report(args: &ConformArgs, name: &str, found: &Found, seconds: f64) -> Result<(), CliError> {
    let sequences = found.stored + found.random;
    let per_second = sequences as f64 / seconds.max(0.001);
    // One that has not occurred tells something only where all that meet it were run.
    let known = || found.masks.counts().filter(|(_, count)| *count > 0 || found.is_whole(args));
    if args.json {
        let known: BTreeMap<_, _> = known().map(|(known, count)| (known.name.to_owned(), count)).collect();
        let line = json!({
            "format": "cleanslate-conformance", "version": 1, "target": name, "sequences": sequences, "requests": found.requests,
            "skipped": found.skipped, "missing": found.missing, "left_out_of_random": found.left_out,
            "differences": found.differences.iter().map(|(path, _)| path.display().to_string()).collect::<Vec<_>>(),
            "known": known,
            "seed": seed(args), "seconds": seconds, "sequences_per_second": per_second,
        });
        return Ok(print(&format!("{line}\n"))?);
    }
    let mut out = String::new();
    for (path, text) in &found.differences {
        let file = shell_word(&path.display().to_string());
        // Without random sequences: the one that is shown is meant.
        let again = format!("cargo run --release -- conform {} --random 0 --sequences {file}", other_side(args));
        let _ = writeln!(out, "DIFFERENT  {}\n{text}  reproduce: {again}\n", path.display());
    }
    for (known, count) in known() {
        let _ = match count {
            0 => writeln!(out, "STALE      {}: never occurred ({})", known.name, known.reason),
            _ => writeln!(out, "known      {}, {count} times: {}", known.name, known.reason),
        };
    }
    if found.skipped > 0 {
        let _ = writeln!(
            out,
            "skipped {} of {} stored sequences: they need {}",
            found.skipped,
            found.stored + found.skipped,
            list(&found.missing)
        );
    }
    if !found.left_out.is_empty() {
        let _ = writeln!(out, "left out of the random sequences: what needs {}", list(&found.left_out));
    }
    if sequences == 0 {
        out.push_str("nothing was compared\n");
    }
    let _ = writeln!(
        out,
        "{name}: {} stored and {} random sequences, {} requests, {} differences \
         (seed {}, {seconds:.1} s, {per_second:.0} sequences a second)",
        found.stored,
        found.random,
        found.requests,
        found.differences.len(),
        seed(args)
    );
    Ok(print(&out)?)
}

impl From<crate::sequence::file::SequenceFileError> for CliError {
    fn from(error: crate::sequence::file::SequenceFileError) -> Self {
        Self::Usage(error.to_string())
    }
}
