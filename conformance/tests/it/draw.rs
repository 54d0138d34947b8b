//! The drawings, character by character.

use std::collections::BTreeMap;

use crate::common::{barrier, data, entry, expect_file, marker, sample, sample_files, state};
use cleanslate_conformance::trace::draw::{MAX_COLUMNS, draw, draw_states, meetings};
use cleanslate_conformance::trace::format::{MirrorState, ReplicaDecl, ReplicaState};

fn replicas(names: &[(&str, &str)]) -> Vec<ReplicaDecl> {
    names.iter().map(|(n, c)| ReplicaDecl { name: (*n).to_owned(), cluster: (*c).to_owned(), mirrors: None }).collect()
}

fn states(states: Vec<(&str, ReplicaState)>) -> BTreeMap<String, ReplicaState> {
    states.into_iter().map(|(n, s)| (n.to_owned(), s)).collect()
}

#[test]
fn every_kind_of_cell() {
    let batches = [
        ("a1", data(5, 0, 0, 1, true)),
        ("p1", data(-1, -1, -1, 2, false)),
        ("a2", data(6, 3, 10, 3, false)),
        ("a1", marker(5, 1, true)),
        ("", barrier("A")),
        ("b1", data(-7, 0, 0, 1, true)),
        ("b1", marker(-7, 1, false)),
    ];
    let mut open = entry(5, 0, &[(0, 0, 0), (1, 1, 1)]);
    open.coordinator_epoch = 3;
    open.txn_first_offset = Some(2);
    let full = state(MirrorState::Stopped, &batches, vec![entry(-7, 1, &[]), open, entry(6, 3, &[(10, 12, 3)])]);
    let mut down = state(MirrorState::Mirroring, &batches[..2], Vec::new());
    down.up = false;
    let mut trimmed = state(MirrorState::Failed, &batches[..3], Vec::new());
    trimmed.log.remove(0);
    trimmed.log_start_offset = 1;
    let drawn = draw_states(
        &replicas(&[("A", "A"), ("B1", "B"), ("B2", "B"), ("C", "C")]),
        &states(vec![("A", full), ("B1", down), ("B2", trimmed), ("C", ReplicaState::initial(true))]),
    );
    expect_file("drawings/cells.txt", &drawn);
}

#[test]
fn a_long_log_wraps_into_blocks() {
    let batches: Vec<_> = (0..30).map(|i| ("a1", data(1_000_000 + i64::from(i), 0, i, 1, false))).collect();
    let entries = (0..30).map(|i| entry(1_000_000 + i64::from(i), 0, &[(i, i, i64::from(i))])).collect();
    let long = state(MirrorState::Stopped, &batches, entries);
    let short = state(MirrorState::Mirroring, &batches[..9], Vec::new());
    let drawn = draw_states(&replicas(&[("A", "A"), ("B", "B")]), &states(vec![("A", long), ("B", short)]));
    assert!(drawn.lines().all(|l| l.len() <= MAX_COLUMNS), "{drawn}");
    assert!(drawn.lines().all(|l| l.trim_end() == l), "no blanks at line ends");
    expect_file("drawings/wrapped.txt", &drawn);
}

#[test]
fn an_empty_trace_draws_its_replicas() {
    let drawn = draw_states(&replicas(&[("A", "A")]), &states(vec![("A", ReplicaState::initial(false))]));
    assert_eq!(drawn, "offset\nA\n    STOPPED LSO 0 HW 0 LEO 0\n    PSM {}\n");
    assert_eq!(draw_states(&[], &BTreeMap::new()), "offset\n");
}

#[test]
fn producers_meet_only_between_barriers() {
    let (a, b) = (data(5, 0, 0, 1, false), data(5, 0, 1, 1, false));
    let apart = state(MirrorState::Stopped, &[("a1", a.clone()), ("", barrier("A")), ("b1", b.clone())], Vec::new());
    assert_eq!(meetings(&apart), []);
    let together = state(MirrorState::Stopped, &[("a1", a), ("b1", b), ("", barrier("A"))], Vec::new());
    let met = meetings(&together);
    assert_eq!(met.len(), 1);
    assert_eq!((met[0].producer_id, met[0].offset, met[0].producers.join(" ")), (5, 1, "a1 b1".to_owned()));
    // No id is no meeting.
    let plain = data(-1, -1, -1, 1, false);
    assert_eq!(meetings(&state(MirrorState::Stopped, &[("p1", plain.clone()), ("p2", plain)], Vec::new())), []);
}

#[test]
fn the_samples() {
    for file in sample_files() {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let trace = sample(&name);
        let mut text = String::new();
        for step in &trace.steps {
            text.push_str(&format!("{} {}\n\n{}\n", step.n, step.say, draw(&trace, step.n)));
        }
        assert_eq!(draw(&trace, u32::MAX), draw(&trace, trace.steps.len() as u32));
        expect_file(&format!("drawings/{name}.txt"), &text);
    }
}
