//! `cleanslate check` as a program: verdicts, exit codes, output for machines, caps, errors of one line.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::process::{Command, Output};

use cleanslate_model::design::NAMED;
use cleanslate_model::property::Group;
use cleanslate_model::topology::TOPOLOGIES;
use serde_json::Value;

fn run(dir: &tempfile::TempDir, args: &[&str]) -> Output {
    let traces = dir.path().to_string_lossy().into_owned();
    Command::new(env!("CARGO_BIN_EXE_cleanslate")).arg("check").args(args).args(["--trace-dir", &traces]).output().unwrap()
}

fn check(args: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&dir, args);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn the_whole_table_at_small_bounds_is_as_expected() {
    let (code, stdout, stderr) = check(&["--bounds", "small", "--json"]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let schema: Value = serde_json::from_str(include_str!("../../specs/check-output.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let lines = lines(&stdout);
    for line in &lines {
        assert!(validator.is_valid(line), "{line}");
    }
    let (summary, verdicts) = lines.split_last().unwrap();
    assert_eq!(verdicts.len(), NAMED.len() * TOPOLOGIES.len() * Group::ALL.len());
    assert_eq!(summary["kind"], "summary");
    assert_eq!(summary["unexpected"], 0);
    assert_eq!(summary["inconclusive"], 0);
    for verdict in verdicts {
        assert_eq!(verdict["verdict"], verdict["expected"], "{verdict}");
        assert_eq!(verdict["verdict"] == "violated", verdict["trace"].is_string(), "{verdict}");
    }
}

#[test]
fn a_design_is_judged_by_its_promises() {
    let (code, stdout, _) = check(&["--design", "raw", "--topology", "active-passive", "--bounds", "small"]);
    assert_eq!(code, 1, "{stdout}");
    assert!(stdout.contains("raw in active-passive breaks silent-corruption: false-duplicate (SILENT-4)"), "{stdout}");
    let (code, stdout, _) = check(&["--design", "raw-barrier", "--topology", "active-passive", "--bounds", "small"]);
    assert_eq!(code, 0, "{stdout}");
    // With --expect the same violated design is a success, because it fails as stated.
    let (code, stdout, _) = check(&["--design", "raw", "--topology", "active-passive", "--bounds", "small", "--expect"]);
    assert_eq!(code, 0, "{stdout}");
    // A variant is not in the table.
    let (code, _, _) = check(&["--design", "raw+timing=analysis", "--topology", "active-passive", "--bounds", "small", "--expect"]);
    assert_eq!(code, 1);
}

#[test]
fn counterexamples_are_files_that_replay() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&dir, &["--design", "negate-once", "--topology", "chain", "--bounds", "small", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let mut replayed = 0;
    for line in lines(&String::from_utf8(output.stdout).unwrap()) {
        let Some(trace) = line["trace"].as_str() else { continue };
        let replay = Command::new(env!("CARGO_BIN_EXE_cleanslate")).args(["trace", "replay", trace]).output().unwrap();
        let text = String::from_utf8(replay.stdout).unwrap();
        assert_eq!(replay.status.code(), Some(0), "{text}");
        assert!(text.contains("is violated in the concrete state"), "{text}");
        assert!(text.contains("are steps of the model, and"), "{text}");
        replayed += 1;
    }
    assert_eq!(replayed, 3);
}

#[test]
fn caps_make_a_verdict_inconclusive_and_say_which() {
    let base = ["--design", "raw-barrier", "--topology", "chain"];
    let caps = [
        ("--max-states", "50", "cap of 50 states hit"),
        ("--max-memory", "1", "memory cap of 1 bytes hit"),
        ("--max-depth", "5", "depth cap of 5 hit"),
        ("--timeout", "1", "time cap of 1 s hit"),
    ];
    for (cap, value, says) in caps {
        // A space that takes hours, so that each cap comes before its end.
        let (code, stdout, _) = check(&[&base[..], &["--bounds", "deep,batches=2", cap, value]].concat());
        assert_eq!(code, 3, "{stdout}");
        assert!(stdout.contains(says), "{stdout}");
        assert!(!stdout.contains("holds"), "{stdout}");
    }
    // By the table too: an inconclusive verdict is not what was expected, and not a failure either.
    let (code, stdout, _) = check(&["--topology", "chain-4", "--max-states", "50"]);
    assert_eq!(code, 3, "{stdout}");
}

#[test]
fn bounds_in_which_nothing_can_happen_prove_nothing() {
    let (code, stdout, _) = check(&["--design", "raw-barrier", "--topology", "chain", "--bounds", "small,batches=0"]);
    assert_eq!(code, 3, "{stdout}");
    assert!(stdout.contains("never reached local-after-stop"), "{stdout}");
}

#[test]
fn both_engines_agree() {
    let args = ["--design", "raw-barrier-inert", "--topology", "chain", "--bounds", "small", "--json"];
    let (ours_code, ours, _) = check(&args);
    let (theirs_code, theirs, _) = check(&[&args[..], &["--engine", "stateright"]].concat());
    assert_eq!((ours_code, theirs_code), (1, 1));
    for (a, b) in lines(&ours).iter().zip(&lines(&theirs)) {
        for field in ["verdict", "states", "group"] {
            assert_eq!(a[field], b[field], "{field}: {a} {b}");
        }
        if b["kind"] == "verdict" {
            assert!(
                ["growth", "actions", "bytes_per_state", "frontier_peak"]
                    .iter()
                    .all(|f| a[f] != Value::Null && b[f] == Value::Null)
            );
        }
    }
}

/// The table names the shortest traces, which the other engine does not look for; what it finds is as expected all the same.
#[test]
fn the_other_engine_is_judged_by_the_table_too() {
    let (code, stdout, _) = check(&["--engine", "stateright", "--topology", "chain", "--bounds", "small", "--no-stories"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("no verdict differs from the table"), "{stdout}");
    assert!(!stdout.contains("frontier"), "{stdout}");
}

#[test]
fn the_bounds_of_a_verdict_are_printed_with_it() {
    let (_, stdout, _) = check(&["--design", "sound", "--topology", "chain", "--bounds", "small,batches=2"]);
    assert!(stdout.contains("bounds: small,batches=2\n  aborts=0 batches=2 bulk=0"), "{stdout}");
    let (_, stdout, _) = check(&["--design", "sound", "--topology", "chain", "--topology", "failback", "--bounds", "small"]);
    assert!(stdout.contains("bounds: small\n14 verdicts"), "{stdout}");
}

#[test]
fn a_new_table_is_of_all_designs_at_the_bounds_of_the_table() {
    for other in [["--design", "raw"], ["--bounds", "small"], ["--max-states", "9"], ["--engine", "bfs"]] {
        let (code, _, stderr) = check(&[&["--write-expected", "target/none.tsv"], &other[..]].concat());
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("cannot be used with"), "{stderr}");
    }
}

#[test]
fn unknown_names_are_errors_of_one_line_that_name_the_choices() {
    for (args, says) in [
        (vec!["--design", "row"], "unknown design 'row'; designs are raw, negate,"),
        (vec!["--design", "raw+colour=red"], "unknown axis 'colour'; axes are pid-mapping,"),
        (vec!["--design", "raw+timing=red"], "axis 'timing' has no choice 'red'; choices are analysis, position"),
        (vec!["--topology", "ring"], "unknown topology 'ring'; topologies are active-passive, failback, chain,"),
        (
            vec!["--property", "beauty"],
            "unknown property 'beauty'; groups are uniqueness, clean-slate, silent-corruption, convergence, liveness, alignment, loss; properties are",
        ),
        (vec!["--property", "uniqueness@Z"], "unknown property 'uniqueness@Z'"),
        (vec!["--topology", "chain", "--property", "uniqueness@D"], "topology 'chain' has no cluster D"),
        (vec!["--property", "uniqueness@A", "--property", "uniqueness@B"], "found both uniqueness@A and uniqueness@B"),
        (vec!["--bounds", "small,"], "a bound is missing in 'small,'; use small, ci, deep or KEY=N"),
        (vec!["--topology", "chain", "--bounds", "small,cuts=1"], "topology 'chain' does not have"),
        (vec!["--max-memory", "0"], "expected at least one byte"),
        (vec!["--max-memory", "99999999999G"], "expected less than 2^64 bytes"),
        (vec!["--bounds", "huge"], "unknown bound 'huge'; use small, ci, deep or KEY=N"),
        (vec!["--bounds", "ci,batches=99"], "bound 'batches' takes a number from 0 to 6, not '99'"),
        (vec!["--engine", "stateright", "--max-states", "5"], "use --engine bfs with caps"),
        (vec!["--engine", "steam"], "invalid value 'steam'"),
        (vec!["--max-states", "0"], "invalid value '0'"),
    ] {
        let (code, stdout, stderr) = check(&args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
}

#[test]
fn lists() {
    for what in ["designs", "topologies", "bounds", "properties", "requirements"] {
        let list = |json: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_cleanslate")).args(["list", what]).args(json).output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        let ids: Vec<_> = lines(&list(&["--json"])).iter().map(|l| l["id"].as_str().unwrap().to_owned()).collect();
        assert!(ids.len() > 4, "{what}: {ids:?}");
        let text = list(&[]);
        assert!(ids.iter().all(|id| text.lines().any(|l| l == id)), "{what}: {text}");
    }
}

/// A leader with a shorter log moves the beginning of the time in which the partition is writable; what longer logs have inherited does not
/// become local by that.
#[test]
fn what_was_inherited_does_not_become_local() {
    for (design, bounds) in [
        ("sound+stop-acks=none", "small,followers=1,crashes=1,elections=1"),
        ("raw-barrier-abort+stop-resume=continue", "small,followers=1,elections=2"),
    ] {
        let args = ["--design", design, "--topology", "active-passive", "--bounds", bounds, "--property", "no-barrier-after-local"];
        let (code, stdout, stderr) = check(&[&args[..], &["--json"]].concat());
        assert_eq!((code, stderr.as_str(), lines(&stdout)[0]["verdict"].as_str()), (0, "", Some("holds")), "{design}");
    }
}
