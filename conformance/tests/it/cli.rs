//! The command's exit codes and output, run as a process.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{data_dir, expect_file, sample};
use cleanslate_conformance::trace::format::Trace;
use cleanslate_conformance::trace::read::read_trace;
use cleanslate_conformance::trace::write::{trace_to_string, write_trace};

fn cleanslate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cleanslate")).args(args).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("the command ended by itself")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn file(name: &str) -> String {
    data_dir().join(format!("{name}.json")).display().to_string()
}

#[test]
fn show_tells_the_story() {
    let output = cleanslate(&["trace", "show", &file("negate-once-chain")]);
    assert_eq!((code(&output), text(&output.stderr)), (0, String::new()));
    expect_file("drawings/show-negate-once-chain.txt", &text(&output.stdout));
    let early = cleanslate(&["trace", "show", "--step", "1", &file("negate-once-chain")]);
    assert!(text(&early.stdout).contains("after step 1:"));
    let json = cleanslate(&["trace", "show", "--json", &file("negate-once-chain")]);
    assert_eq!(text(&json.stdout), trace_to_string(&sample("negate-once-chain")));
}

#[test]
fn replay_sees_the_corruption_or_the_clean_slate() {
    let bad = cleanslate(&["trace", "replay", &file("raw-false-duplicate")]);
    assert_eq!(code(&bad), 0, "{}", text(&bad.stderr));
    assert!(text(&bad.stdout).contains("impl: false-duplicate is violated in the concrete state: B took a batch of b1"));
    let good = cleanslate(&["trace", "replay", "--target", "impl", &file("raw-barrier-stop")]);
    assert_eq!(code(&good), 0);
    assert!(text(&good.stdout).contains("impl: 12 of 12 steps agree"));
}

#[test]
fn a_divergence_is_exit_1_and_reproducible() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("changed.json");
    let mut trace = sample("raw-barrier-stop");
    trace.steps[2].state.get_mut("B").unwrap().high_watermark = 2;
    write_trace(&path, &trace).unwrap();
    let output = cleanslate(&["trace", "replay", &path.display().to_string()]);
    assert_eq!(code(&output), 1);
    let said = text(&output.stdout);
    assert!(said.contains("step 3: B mirrors all three batches in one call.") && said.contains("state.B.high_watermark"), "{said}");
    assert!(said.contains(&format!("cargo run --release -- trace replay {}", path.display())), "{said}");
}

type Change = fn(&mut Trace);

/// A trace that the model has never heard of gets no verdict from it, and one that says otherwise than it is gets a bad one.
#[test]
fn a_trace_is_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let checked = cleanslate(&[
        "check",
        "--design",
        "raw",
        "--topology",
        "chain",
        "--bounds",
        "small",
        "--trace-dir",
        &dir.path().display().to_string(),
    ]);
    assert_eq!(code(&checked), 1);
    let trace = read_trace(&dir.path().join("raw.chain.false-duplicate.json")).unwrap();
    let replayed = |change: Change| {
        let mut trace = trace.clone();
        change(&mut trace);
        let path = dir.path().join("changed.json");
        write_trace(&path, &trace).unwrap();
        let output = cleanslate(&["trace", "replay", &path.display().to_string()]);
        (code(&output), text(&output.stdout).lines().last().unwrap_or_default().to_owned())
    };
    let cases: [(i32, &str, Change); 9] = [
        (0, "is violated after the last", |_| ()),
        (0, "the topology 'by-hand' is not the model's", |t| t.scenario.topology = "by-hand".to_owned()),
        (3, "no verdict: the model has no topology 'ring'", |t| t.scenario.topology = "ring".to_owned()),
        (3, "no verdict: unknown design 'row'", |t| t.scenario.design = "row".to_owned()),
        (3, "no verdict: unknown bound 'colour=1'", |t| t.scenario.bounds.extend([("colour".to_owned(), 1)])),
        (3, "no verdict: the model has no property 'beauty'", |t| t.property = Some("beauty".to_owned())),
        (1, "the design 'sound' has ", |t| t.scenario.design = "sound".to_owned()),
        (1, "the scenario has the replicas A, B, C, D, the file has others", |t| t.scenario.topology = "chain-4".to_owned()),
        (1, "is violated after the last", |t| t.violation = Some("all is well".to_owned())),
    ];
    for (expected, says, change) in cases {
        let (found, last) = replayed(change);
        assert_eq!(found, expected, "{last}");
        assert!(last.contains(says), "{says}: {last}");
    }
}

#[test]
fn unreadable_input_is_exit_2_with_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broken.json");
    let whole = trace_to_string(&sample("negate-once-chain"));
    let unknown_axis = whole.replace("\"timing\": \"position\"", "\"timing\": \"later\"");
    for broken in ["", "{}", "\u{0}", &whole[..900], &whole.replace("\"n\": 1,", "\"n\": 7,"), &unknown_axis] {
        std::fs::write(&path, broken).unwrap();
        let output = cleanslate(&["trace", "replay", &path.display().to_string()]);
        let said = text(&output.stderr);
        assert_eq!((code(&output), said.lines().count()), (2, 1), "{said}");
        assert!(said.starts_with("error: ") && said.contains("broken.json"), "{said}");
    }
    let missing = cleanslate(&["trace", "show", &dir.path().join("none.json").display().to_string()]);
    assert_eq!(code(&missing), 2);
    assert!(text(&missing.stderr).contains("cannot read the trace"));
}

#[test]
fn usage_errors_are_exit_2_and_name_the_choices() {
    for (args, expected) in [
        (&["trace", "replay", "--target", "kafka3", "x"][..], "possible values: impl"),
        (&["list", "colours"], "possible values: designs, topologies, bounds, properties, requirements"),
        (&["check", "--engine", "dfs"], "possible values: bfs, stateright"),
        (&["check", "--max-states", "0"], "0 is not in 1.."),
        (&["check", "--max-memory", "1T"], "expected a number of bytes"),
        (&["explore", "--design", "raw"], "--topology"),
        (&["explore", "--design", "raw", "--topology", "chain", "--listen", "nowhere"], "invalid socket address"),
        (&["frobnicate"], "unrecognized subcommand 'frobnicate'"),
        (&["trace", "show", "--step", "99", &file("negate-once-chain")], "--step: expected 0 to 8 for this trace, found 99"),
    ] {
        let output = cleanslate(args);
        let said = text(&output.stderr);
        assert_eq!(code(&output), 2, "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(code(&cleanslate(&[])), 2);
    let help = cleanslate(&["--help"]);
    assert_eq!(code(&help), 0);
    assert!(text(&help.stdout).contains("Exit codes: 0 as expected"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cleanslate"))
        .args(["trace", "show", &file("raw-barrier-stop")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_cleanslate"))
        .args(["trace", "show", &file("raw-barrier-stop")])
        .stdout(std::fs::OpenOptions::new().write(true).open(full).unwrap())
        .output()
        .unwrap();
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).starts_with("error: cannot write the results"));
}
