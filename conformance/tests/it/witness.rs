//! The judges, on states that are put together by hand.

use cleanslate_conformance::ledger::Ledger;
use cleanslate_conformance::target::{Observed, ObservedBatch, ObservedState};
use cleanslate_conformance::trace::format::{
    Batch, Expect, MirrorState, Op, Origin, ProducerEntry, ReplicaDecl, ReplicaState, ScenarioRef, Trace,
};
use cleanslate_conformance::witness::{Frame, Judgement, Witness};

use crate::common::{barrier, data, entry, marker, state};

/// A little world: replicas whose logs grow by hand.
pub(crate) struct World {
    ledger: Ledger,
    witness: Witness,
    pub(crate) states: std::collections::BTreeMap<String, ReplicaState>,
}

pub(crate) const ANY: Expect = Expect::Appended { base_offset: 0, last_offset: 0 };

impl World {
    pub(crate) fn new() -> Self {
        let replica = |name: &str, mirrors: Option<&str>| ReplicaDecl {
            name: name.to_owned(),
            cluster: name[..1].to_owned(),
            mirrors: mirrors.map(str::to_owned),
        };
        let trace = Trace {
            format: String::new(),
            version: 1,
            title: String::new(),
            scenario: ScenarioRef {
                design: String::new(),
                axes: [("clears".to_owned(), "all".to_owned()), ("psm-ids".to_owned(), "stock".to_owned())].into(),
                topology: String::new(),
                bounds: Default::default(),
            },
            property: None,
            violation: None,
            replicas: vec![replica("A", None), replica("B", Some("A")), replica("B2", Some("A"))],
            producers: Vec::new(),
            steps: Vec::new(),
        };
        let states = trace.replicas.iter().map(|r| (r.name.clone(), ReplicaState::initial(r.mirrors.is_some()))).collect();
        Self { ledger: Ledger::new(&trace), witness: Witness::default(), states }
    }

    /// An operation after which the replica's log is longer by `batches` and its entries are `producers`.
    pub(crate) fn op(
        &mut self,
        op: Op,
        outcome: Observed,
        batches: &[Batch],
        mirror_state: MirrorState,
        producers: Vec<ProducerEntry>,
    ) {
        let before = self.states[op.replica()].clone();
        let mut log: Vec<(String, Batch)> =
            before.log.iter().map(|e| (e.by.clone().unwrap_or_default(), e.batch.clone())).collect();
        log.extend(batches.iter().map(|b| (String::new(), b.clone())));
        let log: Vec<(&str, Batch)> = log.iter().map(|(by, b)| (by.as_str(), b.clone())).collect();
        self.record(op, outcome, state(mirror_state, &log, producers));
    }

    /// An operation after which the replica is in this state.
    pub(crate) fn record(&mut self, op: Op, outcome: Observed, after: ReplicaState) {
        let before = self.states[op.replica()].clone();
        let after = observed(after);
        self.ledger.apply(&op, &outcome, &after);
        let after = self.ledger.label(op.replica(), after);
        self.states.insert(op.replica().to_owned(), after.clone());
        self.witness.begin_step();
        self.witness.record(&self.ledger, Frame { op, outcome, before, after });
    }

    pub(crate) fn append(&mut self, replica: &str, by: &str, batch: Batch, producers: Vec<ProducerEntry>) {
        let origin = if batch.control.is_none() { Origin::Client } else { Origin::Coordinator };
        let by = (!by.is_empty()).then(|| by.to_owned());
        let op = Op::Append { replica: replica.to_owned(), origin, by, batch: batch.clone(), expect: ANY };
        let state = self.states[replica].mirror_state;
        self.op(op, self.appended(replica, 1), &[batch], state, producers);
    }

    pub(crate) fn appended(&self, replica: &str, records: i64) -> Observed {
        let base_offset = self.states[replica].log_end_offset;
        Observed::Appended { base_offset, last_offset: base_offset + records - 1 }
    }

    fn mirror(&mut self, batches: &[Batch], producers: Vec<ProducerEntry>) {
        let offset = self.states["B"].log_end_offset;
        let op = Op::Mirror { replica: "B".into(), from: "A".into(), offset, batches: batches.len() as u32, expect: ANY };
        self.op(op, self.appended("B", batches.len() as i64), batches, MirrorState::Mirroring, producers);
    }

    pub(crate) fn turn(&mut self, replica: &str, to: MirrorState) {
        let op = Op::MirrorState { replica: replica.to_owned(), to, source: None };
        let producers = self.states[replica].producers.clone();
        self.op(op, Observed::Done, &[], to, producers);
    }

    pub(crate) fn seen(&self, property: &str) -> Option<String> {
        match self.witness.judge(property, &self.ledger) {
            Judgement::Seen(evidence) => Some(evidence),
            Judgement::NotSeen => None,
            Judgement::NotJudged => panic!("{property} can be judged"),
        }
    }
}

fn observed(state: ReplicaState) -> ObservedState {
    let log = state.log.into_iter().map(|e| ObservedBatch { offset: e.offset, batch: e.batch }).collect();
    ObservedState {
        up: state.up,
        mirror_state: state.mirror_state,
        log_start_offset: state.log_start_offset,
        log_end_offset: state.log_end_offset,
        high_watermark: state.high_watermark,
        last_stable_offset: state.last_stable_offset,
        log,
        producers: state.producers,
        open_transactions: state.open_transactions,
        aborted_transactions: state.aborted_transactions,
    }
}

/// Data of id 5 in epoch `e` with one record of sequence `s`.
pub(crate) fn five(e: i16, s: i32) -> Batch {
    data(5, e, s, 1, false)
}

#[test]
fn contributors_outlive_what_an_entry_shows() {
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
    assert_eq!(w.seen("psm-entry-single-producer"), None);
    // The new epoch hides the batch of a1, but not that the entry began with it.
    w.append("A", "a2", five(1, 0), vec![entry(5, 1, &[(0, 0, 1)])]);
    let evidence = w.seen("psm-entry-single-producer").unwrap();
    assert_eq!(evidence, "the entry of A for id 5 mixes a1 (offset 0) and a2 (offset 1)");
}

#[test]
fn a_barrier_ends_an_entry_unless_the_entry_survives_it() {
    let mut cleared = World::new();
    cleared.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
    cleared.append("A", "", barrier("Z"), Vec::new());
    cleared.append("A", "a2", five(0, 0), vec![entry(5, 0, &[(0, 0, 2)])]);
    assert_eq!(cleared.seen("psm-entry-single-producer"), None);
    assert_eq!(cleared.seen("log-pid-single-producer"), None);

    let mut inert = World::new();
    inert.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
    inert.append("A", "", barrier("Z"), vec![entry(5, 0, &[(0, 0, 0)])]);
    inert.append("A", "a2", five(0, 0), vec![entry(5, 0, &[(0, 0, 0), (0, 0, 2)])]);
    assert!(inert.seen("psm-entry-single-producer").is_some());
    assert_eq!(inert.seen("log-pid-single-producer"), None, "the barrier lies between");

    // Both in one append call: only the entry tells whether the barrier between them was heeded.
    for (shown, mixed) in [(vec![(0, 0, 2)], false), (vec![(0, 0, 0), (0, 0, 2)], true)] {
        let mut w = World::new();
        w.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
        w.append("A", "", barrier("Z"), Vec::new());
        w.append("A", "a2", five(0, 0), vec![entry(5, 0, &[(0, 0, 2)])]);
        w.mirror(&[five(0, 0), barrier("Z"), five(0, 0)], vec![entry(5, 0, &shown)]);
        assert_eq!(w.seen("psm-entry-single-producer").is_some(), mixed, "{shown:?}");
    }
}

#[test]
fn a_rebuilt_entry_is_judged_by_the_log() {
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
    w.append("A", "a2", five(0, 1), Vec::new());
    w.op(Op::Crash { replica: "A".into() }, Observed::Done, &[], MirrorState::Stopped, Vec::new());
    assert_eq!(w.seen("psm-entry-single-producer"), None, "a crashed replica has no entries");
    let recover = Op::Recover { replica: "A".into(), clean: false };
    w.op(recover, Observed::Done, &[], MirrorState::Stopped, vec![entry(5, 0, &[(1, 1, 1)])]);
    assert!(w.seen("psm-entry-single-producer").is_some());
}

#[test]
fn a_writable_partition_with_inherited_entries() {
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
    w.mirror(&[five(0, 0)], vec![entry(5, 0, &[(0, 0, 0)])]);
    w.turn("B", MirrorState::Stopping);
    assert_eq!(w.seen("writable-psm-empty"), None, "not writable yet");
    w.turn("B", MirrorState::Stopped);
    let evidence = w.seen("writable-psm-empty").unwrap();
    assert_eq!(evidence, "B is writable, and its entry for id 5 goes back to the batch of a1 at offset 0");
    // A was always writable: its own entries are not inherited.
    assert!(!evidence.contains("A is"));
}

#[test]
fn barriers_where_they_must_be() {
    let run = |stopping: &[Batch], late: &[Batch]| {
        let mut w = World::new();
        w.append("A", "a1", five(0, 0), Vec::new());
        w.mirror(&[five(0, 0)], Vec::new());
        w.turn("B", MirrorState::Stopping);
        stopping.iter().for_each(|b| w.append("B", "", b.clone(), Vec::new()));
        w.turn("B", MirrorState::Stopped);
        w.append("B", "b1", five(0, 0), Vec::new());
        late.iter().for_each(|b| w.append("B", "", b.clone(), Vec::new()));
        (w.seen("barrier-before-local").is_some(), w.seen("no-barrier-after-local").is_some())
    };
    assert_eq!(run(&[barrier("A")], &[]), (false, false));
    assert_eq!(run(&[], &[]), (true, false));
    assert_eq!(run(&[barrier("A"), marker(5, 1, false)], &[]), (true, false), "the barrier must come last");
    assert_eq!(run(&[marker(5, 1, false), barrier("A")], &[]), (false, false));
    assert_eq!(run(&[barrier("A")], &[barrier("A")]), (false, true));
}

#[test]
fn a_barrier_of_the_next_stop_is_not_late() {
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), Vec::new());
    // Failback with nothing to mirror: the barrier follows local data, but of an earlier stint.
    w.turn("A", MirrorState::LogAlignment);
    w.turn("A", MirrorState::Mirroring);
    w.turn("A", MirrorState::Stopping);
    w.append("A", "", barrier("B"), Vec::new());
    w.turn("A", MirrorState::Stopped);
    w.append("A", "a1", five(1, 0), Vec::new());
    assert_eq!(w.seen("no-barrier-after-local"), None);
    assert_eq!(w.seen("barrier-before-local"), None);
}

#[test]
fn what_replication_accepts() {
    let mirrored = |known: ProducerEntry, batch: Batch, after: ProducerEntry| {
        let mut w = World::new();
        w.append("A", "a1", data(9, 0, 0, 1, false), Vec::new());
        w.append("A", "a2", batch.clone(), Vec::new());
        w.mirror(&[data(9, 0, 0, 1, false)], vec![known]);
        w.mirror(&[batch], vec![after]);
        (w.seen("sequence-break-accepted").is_some(), w.seen("lower-epoch-accepted").is_some())
    };
    let known = || entry(5, 3, &[(7, 9, 0)]);
    assert_eq!(mirrored(known(), five(3, 10), entry(5, 3, &[(10, 10, 1)])), (false, false));
    assert_eq!(mirrored(known(), five(3, 11), entry(5, 3, &[(11, 11, 1)])), (true, false));
    assert_eq!(mirrored(known(), five(4, 7), entry(5, 4, &[(7, 7, 1)])), (false, false));
    assert_eq!(mirrored(known(), five(2, 10), entry(5, 2, &[(10, 10, 1)])), (false, true));
    assert_eq!(mirrored(known(), marker(5, 2, true), entry(5, 2, &[])), (false, true));
    assert_eq!(mirrored(entry(5, 3, &[]), five(3, 4), entry(5, 3, &[(4, 4, 1)])), (false, false), "nothing to follow");
    let wraps = entry(5, 3, &[(i32::MAX, i32::MAX, 0)]);
    assert_eq!(mirrored(wraps, five(3, 0), entry(5, 3, &[(0, 0, 1)])), (false, false));
    // The same two checks within one call.
    let mut w = World::new();
    w.append("A", "a1", five(1, 0), Vec::new());
    w.append("A", "a1", five(1, 2), Vec::new());
    w.append("A", "a1", five(0, 0), Vec::new());
    w.mirror(&[five(1, 0), five(1, 2), five(0, 0)], vec![entry(5, 0, &[(0, 0, 2)])]);
    assert!(w.seen("sequence-break-accepted").is_some() && w.seen("lower-epoch-accepted").is_some());
}

#[test]
fn whose_transaction_a_marker_ends() {
    let run = |by: &str| {
        let mut w = World::new();
        let open = ProducerEntry { txn_first_offset: Some(0), ..entry(5, 0, &[(0, 0, 0)]) };
        w.append("A", "a1", data(5, 0, 0, 1, true), vec![open]);
        w.append("A", by, marker(5, 1, true), vec![entry(5, 1, &[])]);
        w.seen("foreign-marker")
    };
    assert_eq!(run("a1"), None);
    assert_eq!(run(""), None, "a stopping mirror's marker is nobody's");
    assert_eq!(run("a2").unwrap(), "on A the marker of a2 at offset 1 ended the transaction that a1 began at offset 0");
}

#[test]
fn duplicates_and_refusals() {
    let answer = |by: &str, batch: Batch, outcome: Observed| {
        let mut w = World::new();
        w.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
        let op = Op::Append { replica: "A".into(), origin: Origin::Client, by: Some(by.to_owned()), batch, expect: ANY };
        w.op(op, outcome, &[], MirrorState::Stopped, vec![entry(5, 0, &[(0, 0, 0)])]);
        (w.seen("false-duplicate").is_some(), w.seen("false-rejection").is_some())
    };
    let duplicate = |offset: i64| Observed::Duplicate { base_offset: offset, last_offset: offset };
    assert_eq!(answer("a1", five(0, 0), duplicate(0)), (false, false), "an honest resend");
    assert_eq!(answer("a2", five(0, 0), duplicate(0)), (true, false));
    assert_eq!(answer("a1", five(0, 1), duplicate(0)), (true, false), "another batch of the same producer");
    assert_eq!(answer("a1", five(0, 0), duplicate(9)), (true, false), "nothing is there");
    let refused = |class: &str| Observed::Error(class.to_owned());
    assert_eq!(answer("a2", five(0, 0), refused("OutOfOrderSequenceException")), (false, true));
    assert_eq!(answer("a1", five(0, 1), refused("OutOfOrderSequenceException")), (false, true), "it goes on where it was");
    assert_eq!(answer("a1", five(0, 5), refused("OutOfOrderSequenceException")), (false, false), "its own gap");
    assert_eq!(answer("a2", five(0, 0), refused("ReadOnlyTopicException")), (false, false), "not about producer ids");
}
