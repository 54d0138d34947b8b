//! `specs/deep.md`: too long to be made again by every test run. What it says of the bounds is held against the code, and its tables against
//! themselves: every design on every topology, and as many verdicts as the closing line counts.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::collections::BTreeMap;

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::NAMED;
use cleanslate_model::property::Group;
use cleanslate_model::topology::{TOPOLOGIES, Topology};

const PAGE: &str = include_str!("../../specs/deep.md");

/// The lines of the tables that `check` prints: design, topology, verdicts. Cells are at least two blanks apart.
fn rows() -> Vec<(String, String, Vec<String>)> {
    let mut rows = Vec::new();
    let mut columns = 0;
    for line in PAGE.lines() {
        let cells: Vec<String> = line.split("  ").map(|c| c.trim().to_owned()).filter(|c| !c.is_empty()).collect();
        let [design, topology, rest @ ..] = cells.as_slice() else { continue };
        if design == "design" {
            columns = rest.iter().filter(|c| Group::ALL.iter().any(|g| g.id() == c.as_str())).count();
        } else if NAMED.iter().any(|d| d.name == design) && Topology::by_name(topology).is_some() {
            rows.push((design.clone(), topology.clone(), rest[..columns].to_vec()));
        }
    }
    rows
}

#[test]
fn every_design_is_on_every_topology() {
    let rows = rows();
    for topology in TOPOLOGIES {
        for design in NAMED {
            assert!(rows.iter().any(|(d, t, _)| d == design.name && t == topology.name), "{} in {}", design.name, topology.name);
        }
    }
}

#[test]
fn verdicts_are_three_and_as_many_as_are_counted() {
    let mut counted = BTreeMap::from([("holds", 0), ("violated", 0), ("inconclusive", 0)]);
    for (design, topology, cells) in rows() {
        assert!(!cells.is_empty());
        for cell in cells {
            let word = cell.split(' ').next().unwrap();
            *counted.get_mut(word).unwrap_or_else(|| panic!("{design} in {topology}: '{cell}'")) += 1;
            assert!(design != "sound" || word != "violated", "sound in {topology}");
        }
    }
    let mut told = BTreeMap::from([("holds", 0), ("violated", 0), ("inconclusive", 0)]);
    for line in PAGE.lines().filter(|l| l.contains(" verdicts: ")) {
        let numbers: Vec<usize> = line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        assert_eq!(numbers[0], numbers[1] + numbers[2] + numbers[3], "{line}");
        for (word, number) in ["holds", "violated", "inconclusive"].iter().zip(&numbers[1..4]) {
            *told.get_mut(word).unwrap() += number;
        }
    }
    assert_eq!(counted, told);
}

#[test]
fn the_bounds_are_those_of_the_code() {
    for topology in TOPOLOGIES {
        let line = PAGE.lines().find(|l| l.starts_with(&format!("| {} | `", topology.name)));
        let text = line.and_then(|l| l.split('`').nth(1)).unwrap_or_else(|| panic!("no bounds of {}", topology.name));
        assert_eq!(Bounds::parse(text, topology), Ok(Bounds::deep(topology)), "{}", topology.name);
    }
}
