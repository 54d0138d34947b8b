//! LINK-1, LINK-2: one link behind an arbitrary source. `specs/chains.md` tells what follows.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::collections::BTreeSet;
use std::path::Path;

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::{Design, NAMED};
use cleanslate_model::property::{GUARANTEE, Group, PROPERTIES, PropertySpec};
use cleanslate_model::scenario::{Reduction, Scenario, State};
use cleanslate_model::search::{Caps, Ending, Options, Report, search_with};
use cleanslate_model::source::Dropped;
use cleanslate_model::topology::{LINK, Topology};
use cleanslate_model::truth;

/// What the source guarantees, stated by the same predicate as what is proved of its mirrors.
static ASSUMED: PropertySpec = PropertySpec {
    id: "source-is-good",
    requirement: "LINK-1",
    group: Group::Alignment,
    about: "the source's log is good",
    condition: source_is_good,
    goal: None,
};

fn source_is_good(scenario: &Scenario, state: &State) -> bool {
    let source = LINK.environment.and_then(|cluster| scenario.leader(state, cluster));
    source.is_some_and(|(_, replica)| truth::broken_part(&replica.durable.log).is_none())
}

fn link(design: &str, bounds: &str, reduction: Reduction, dropped: Option<Dropped>) -> Scenario {
    let bounds = Bounds::parse(bounds, LINK).unwrap_or_else(|e| panic!("{e}"));
    let mut scenario = Scenario::link(Design::parse(design).unwrap_or_else(|e| panic!("{e}")), bounds, reduction, dropped);
    scenario.properties.push(&ASSUMED);
    scenario
}

fn explore(scenario: &Scenario) -> Report {
    let options = Options { caps: Caps { states: Some(400_000), depth: None }, threads: 2, goals: false };
    let report = search_with(scenario, options, |_| None);
    assert_eq!(report.ending, Ending::Complete, "{:?}", scenario.bounds);
    report
}

/// The properties that are broken, with the steps of the shortest traces.
fn broken(scenario: &Scenario, report: &Report) -> Vec<(&'static str, usize)> {
    let of = |p: &&PropertySpec| report.discovery(p.id).map(|d| (p.id, d.actions.len()));
    scenario.properties.iter().filter_map(of).collect()
}

/// The rows of the page's table that begins with this line.
fn rows(header: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs/chains.md")).unwrap();
    let (_, table) = page.split_once(header).unwrap_or_else(|| panic!("specs/chains.md lacks {header}"));
    let lines = table.trim_start().lines().skip(1).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()).collect()
}

#[test]
fn what_the_mirrors_of_sound_guarantee_follows_from_what_any_source_guarantees() {
    let rows = rows("| bounds | what is in it | states |");
    assert!(rows.len() >= 8, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let scenario = link("sound", &row[0], Reduction::Urgent, None);
        let report = explore(&scenario);
        assert_eq!(broken(&scenario, &report), [], "{}", row[0]);
        for witness in scenario.witnesses() {
            assert!(report.discovery(witness.id).is_some(), "{} was not seen at {}", witness.id, row[0]);
        }
        if report.states.to_string() != row[2] {
            wrong.push(format!("{}: {} states, not {}", row[0], report.states, row[2]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn designs_that_break_in_chains_break_in_a_link() {
    let rows = rows("| design | bounds | breaks first, of the guarantee and the promises | steps |");
    let designs: BTreeSet<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert!(NAMED.iter().all(|named| named.name == "sound" || designs.contains(named.name)), "{designs:?}");
    let mut wrong = Vec::new();
    for row in &rows {
        let scenario = link(&row[0], &row[1], Reduction::Urgent, None);
        let report = explore(&scenario);
        assert!(report.discovery(ASSUMED.id).is_none(), "the source of {} is not good", row[0]);
        wrong.extend(untrue(row, &scenario, &report));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a row says of broken properties and steps, and the search does not find.
fn untrue(row: &[String], scenario: &Scenario, report: &Report) -> Vec<String> {
    let broken = broken(scenario, report);
    let found = |id: &str| broken.iter().find(|(b, _)| *b == id).map(|(_, steps)| steps.to_string());
    let wrong = row[2].split(", ").filter(|id| found(id).as_ref() != Some(&row[3]));
    wrong.map(|id| format!("{} at {}: {id} after {:?}; broken are {broken:?}", row[0], row[1], found(id))).collect()
}

#[test]
fn each_assumption_is_needed() {
    let rows = rows("| dropped | bounds | what breaks at a mirror of `sound` | steps |");
    let of = |name: &str| match name {
        "G3" => Dropped::OneWriter,
        "G4" => Dropped::Order,
        "G5" => Dropped::Epochs,
        _ => panic!("no assumption {name}"),
    };
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<BTreeSet<_>>(), BTreeSet::from(["G3", "G4", "G5"]));
    let mut wrong = Vec::new();
    for row in &rows {
        let dropped = of(&row[0]);
        let scenario = link("sound", &row[1], Reduction::Urgent, Some(dropped));
        let report = explore(&scenario);
        // What is dropped is what the predicate forbids. G5 of a log that was cut shows only in the log of who has read it before.
        assert_eq!(report.discovery(ASSUMED.id).is_some(), dropped != Dropped::Epochs, "{}", row[0]);
        wrong.extend(untrue(row, &scenario, &report));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// RED-3: the search that leaves out what no reader can see finds the same as the search of every interleaving.
#[test]
fn the_reduced_search_of_a_link_sees_the_same() {
    for named in NAMED {
        for bounds in ["small,source=1,cuts=1,tail=1,commands=1", "small,source=2,commands=1"] {
            both_searches_see_the_same(named.name, bounds);
        }
    }
    for bounds in ["small,source=2,cuts=1,commands=1", "small,source=1,cuts=1,followers=1,commands=1"] {
        both_searches_see_the_same("raw-barrier", bounds);
        both_searches_see_the_same("raw-barrier-abort", bounds);
    }
}

fn both_searches_see_the_same(design: &str, bounds: &str) {
    let [reduced, full] = [Reduction::Urgent, Reduction::None].map(|reduction| {
        let report = explore(&link(design, bounds, reduction, None));
        let found: BTreeSet<&str> = report.discoveries.iter().map(|d| d.property).collect();
        (report.states, found)
    });
    assert_eq!(reduced.1, full.1, "{design} at {bounds}");
    assert!(reduced.0 < full.0, "{design} at {bounds}: the reduction does nothing");
}

/// The base of the induction: what a cluster with its own producers, replicas and elections writes is good, as its mirror sees it.
#[test]
fn a_log_without_a_source_is_good() {
    let topology = Topology::by_name("active-passive").unwrap();
    for bounds in [
        "small,batches=2,followers=2,elections=1",
        "small,batches=2,followers=2,crashes=1",
        "small,idempotent=0,transactional=1,aborts=1,followers=2,crashes=1",
    ] {
        let bounds = Bounds::parse(bounds, topology).unwrap();
        let mut scenario = Scenario::new(Design::parse("sound").unwrap(), topology, bounds);
        scenario.properties = PROPERTIES.iter().chain(&GUARANTEE).collect();
        let report = explore(&scenario);
        assert_eq!(broken(&scenario, &report), [], "{bounds:?}");
    }
}
