//! `specs/sound.tsv`: the scenarios in which `sound`, and the newer text with changes, keep every promise, each explored to its end, with the number of states.
//!
//! `UPDATE=1 cargo test --release -p cleanslate-model --test sound` writes the numbers again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::path::{Path, PathBuf};

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::Design;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Caps, Ending, Report, search};
use cleanslate_model::topology::Topology;

fn specs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs").join(name)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn scenario(design: &str, topology: &str, bounds: &str) -> Scenario {
    let topology = Topology::by_name(topology).unwrap_or_else(|| panic!("no topology '{topology}'"));
    let bounds = Bounds::parse(bounds, topology).unwrap_or_else(|e| panic!("{e}"));
    Scenario::new(Design::parse(design).unwrap_or_else(|e| panic!("{e}")), topology, bounds)
}

fn explore(scenario: &Scenario) -> Report {
    let report = search(scenario, Caps { states: Some(300_000), depth: None }, |_| None);
    assert_eq!(report.ending, Ending::Complete, "{} at {:?}", scenario.topology.name, scenario.bounds);
    report
}

/// The number of states, if everything holds and all that must be reachable was reached.
fn states(design: &str, topology: &str, bounds: &str) -> u64 {
    let scenario = scenario(design, topology, bounds);
    let report = explore(&scenario);
    for property in &scenario.properties {
        let broken = report.discovery(property.id).map(|d| d.actions.len());
        assert_eq!(broken, None, "{} is broken by {design} in {topology} at {bounds}", property.id);
    }
    for witness in scenario.witnesses() {
        assert!(report.discovery(witness.id).is_some(), "{} was not seen by {design} in {topology} at {bounds}", witness.id);
    }
    report.states
}

fn compare(path: &Path, now: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, now).unwrap();
    } else {
        assert_eq!(read(path), now, "{} differs; UPDATE=1 writes it again", path.display());
    }
}

#[test]
fn sound_keeps_every_promise_within_these_bounds() {
    let path = specs("sound.tsv");
    let text = read(&path);
    let (header, lines) = text.split_once('\n').unwrap();
    assert_eq!(header, "design\ttopology\tbounds\tstates");
    let found: Vec<[String; 4]> = lines
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            {
                let count = states(fields[0], fields[1], fields[2]).to_string();
                [fields[0].to_owned(), fields[1].to_owned(), fields[2].to_owned(), count]
            }
        })
        .collect();
    assert!(found.len() >= 20, "only {} scenarios", found.len());
    let tsv: Vec<String> = found.iter().map(|f| f.join("\t")).collect();
    compare(&path, &format!("{header}\n{}\n", tsv.join("\n")));
}

#[test]
fn the_page_has_the_same_numbers() {
    let path = specs("sound.md");
    let page = read(&path);
    for line in read(&specs("sound.tsv")).lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let row = format!("| {} | `{}` | {} |", fields[1], fields[2], fields[3]);
        assert!(page.contains(&row), "specs/sound.md lacks: {row}");
    }
}

#[test]
fn choices_of_the_text_that_are_taken_back_break_what_the_page_says() {
    let page = read(&specs("sound.md"));
    let (_, table) = page.split_once("| choice | breaks | steps | in |\n|---|---|---|---|\n").unwrap();
    let mut rows = 0;
    for line in table.lines().take_while(|l| l.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (topology, bounds) = cells[3].split_once(", ").unwrap();
        let choice = cells[0].trim_matches('`');
        let report = explore(&scenario(&format!("sound+{choice}"), topology, bounds.trim_matches('`')));
        for property in cells[1].split(", ") {
            let steps = report.discovery(property).map(|d| d.actions.len().to_string());
            assert_eq!(steps.as_deref(), Some(cells[2]), "{choice}: {property}");
        }
        rows += 1;
    }
    assert!(rows > 10, "only {rows} rows found: the test looks in the wrong place");
}
