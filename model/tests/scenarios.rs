//! Concrete scenarios, one a file in `scenarios/`: the steps above the line of dashes are taken one by one, and what the model tells of
//! them stands below it. `specs/scenarios.md` lists them with what is not here, and describes the files.
//!
//! `UPDATE=1 cargo test -p cleanslate-model --test scenarios` writes what stands below the dashes again. What is above them is never
//! written: a step that cannot be taken or an outcome that is not the expected one fails in any case.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

#[path = "scenarios/draw.rs"]
mod draw;
#[path = "scenarios/format.rs"]
mod format;
#[path = "scenarios/run.rs"]
mod run;
#[path = "scenarios/table.rs"]
mod table;

use std::path::PathBuf;

use cleanslate_model::design::PidMapping;
use cleanslate_model::ids::ProducerId;
use format::ScenarioFile;

fn files() -> Vec<PathBuf> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    files.sort();
    files
}

#[test]
fn every_scenario_goes_as_it_is_told() {
    let update = std::env::var_os("UPDATE").is_some();
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for path in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with(&only) {
            continue;
        }
        looked_at += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let told = ScenarioFile::parse(&text).and_then(|file| run::told(&file).map(|told| (file, told)));
        match told {
            Err(why) => wrong.push(format!("{name}: {why}")),
            Ok((file, told)) if update => std::fs::write(&path, file.with(&told)).unwrap(),
            Ok((file, told)) if file.below != told => {
                wrong.push(format!("{name} differs; UPDATE=1 writes it again. It is now\n{told}"))
            }
            Ok(_) => {}
        }
    }
    assert!(looked_at > 0, "no file begins with {only}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_number_is_told_of_once_and_every_file_is_in_the_table() {
    let table = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs/scenarios.md")).unwrap();
    let rows = table::rows(&table);
    let numbers: Vec<u8> = rows.iter().map(|r| r.number).collect();
    assert_eq!(numbers, (1..=74).collect::<Vec<u8>>());
    let mut listed: Vec<String> = Vec::new();
    for row in &rows {
        for file in &row.files {
            assert!(file.starts_with(&format!("{:02}-", row.number)), "row {} lists {file}", row.number);
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(file);
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("row {}: {file}: {e}", row.number));
            assert!(text.starts_with(&format!("{}. ", row.number)), "{file} does not begin with its number");
            listed.push(file.clone());
        }
        assert!(!row.files.is_empty() || row.elsewhere.len() > 20, "row {} has neither a file nor a reason", row.number);
    }
    let there: Vec<String> = files().iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(listed, there, "the files that the table lists, and those that there are");
}

/// Scenario 8: what coordinators that count from 5 cannot show.
#[test]
fn no_id_stays_no_id_and_zero_does_not_stay_zero() {
    for mapping in [PidMapping::NegateEveryHop, PidMapping::NegateNonNegative] {
        assert_eq!([-1, 0, 5].map(|id| mapping.apply(ProducerId(id)).0), [-1, -2, -7]);
    }
    assert_eq!(PidMapping::NegateEveryHop.apply(ProducerId(-2)), ProducerId(0));
    assert_eq!(PidMapping::NegateNonNegative.apply(ProducerId(-2)), ProducerId(-2));
}

/// Steps that no one can take, that several can take, and outcomes that are not the expected ones are errors that say what there is.
#[test]
fn what_is_wrong_with_a_file_is_told() {
    let head = "1. Title\n\nSome words.\n\ndesign: raw\ntopology: active-passive\nbounds: small\n";
    let error = |rest: &str| {
        let file = ScenarioFile::parse(&format!("{head}{rest}"));
        file.and_then(|file| run::told(&file)).unwrap_err()
    };
    let writes = "steps:\n  a1's 5.0#0 reaches A\n";
    for (rest, why) in [
        (
            "steps:\n  B crashes\nexpect: holds\n",
            "line 9: no possible step is called 'B crashes'; possible are:\n  The operator stops",
        ),
        ("steps:\n  e\nexpect: holds\n", "line 9: 'e' may be any of:\n  "),
        ("steps:\n  not possible: a1\nexpect: holds\n", "line 9: 'a1' is possible:\n  a1 writes 5.0#0 to A"),
        (&format!("{writes}expect: violates false-duplicate\n"), "line 10: expected false-duplicate, violated is nothing"),
        (&format!("{writes}expect: holds\nexpect: log A: 5.0#0 b1\n"), "line 11: expected 5.0#0 b1, the log of A is 5.0#0 a1"),
        (&format!("{writes}expect: holds\nexpect: shows B STOPPED\n"), "line 11: the drawing does not show 'B STOPPED'"),
        (&format!("{writes}expect: violates nonsense\n"), "line 10: there is no property 'nonsense'"),
        (writes, "the part that begins in line 5 does not say what is expected"),
        ("steps: as above\nexpect: holds\n", "line 8: there are no steps above"),
        ("stairs:\n", "line 8: what does 'stairs:' mean?"),
        ("bounds: b\n", "line 8: unknown bound 'b'"),
    ] {
        let found = error(rest);
        assert!(found.starts_with(why), "{rest}\n{found}");
    }
}
