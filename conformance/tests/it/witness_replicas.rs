//! The judges of what is promised about transactions, convergence, alignment and loss, on states that are put together by hand.

use cleanslate_conformance::target::Observed;
use cleanslate_conformance::trace::format::{
    AbortedTransaction, Batch, MirrorState, Op, OpenTransaction, ProducerEntry, ReplicaState,
};

use crate::common::{barrier, data, entry, marker};
use crate::witness::{ANY, World, five};

impl World {
    /// The state of a replica with one change.
    fn change(&mut self, replica: &str, change: impl Fn(&mut ReplicaState)) {
        let mut after = self.states[replica].clone();
        change(&mut after);
        let op = Op::HighWatermark { replica: replica.to_owned(), offset: after.high_watermark };
        self.record(op, Observed::Done, after);
    }

    fn copy(&mut self, replica: &str, from: &str, batches: &[Batch], producers: Vec<ProducerEntry>) {
        let offset = self.states[replica].log_end_offset;
        let op = Op::Mirror { replica: replica.into(), from: from.into(), offset, batches: batches.len() as u32, expect: ANY };
        let (appended, state) = (self.appended(replica, batches.len() as i64), self.states[replica].mirror_state);
        self.op(op, appended, batches, state, producers);
    }

    fn cut(&mut self, replica: &str, offset: i64) {
        let mut after = self.states[replica].clone();
        after.log.retain(|e| e.offset < offset);
        (after.log_end_offset, after.high_watermark, after.last_stable_offset) = (offset, offset, offset);
        self.record(Op::Truncate { replica: replica.into(), offset }, Observed::Done, after);
    }

    fn lead(&mut self, replica: &str) {
        let after = self.states[replica].clone();
        self.record(Op::Lead { replica: replica.into() }, Observed::Done, after);
    }
}

fn transaction(commit: bool, aborted: &[(i64, i64)]) -> World {
    let mut w = World::new();
    w.append("A", "a1", data(5, 0, 0, 1, true), Vec::new());
    w.append("A", "a1", marker(5, 1, commit), Vec::new());
    let aborted: Vec<_> = aborted
        .iter()
        .map(|(first_offset, last_offset)| AbortedTransaction {
            producer_id: 5,
            first_offset: *first_offset,
            last_offset: *last_offset,
        })
        .collect();
    w.change("A", |s| s.aborted_transactions = Some(aborted.clone()));
    w
}

#[test]
fn what_consumers_get() {
    assert_eq!(transaction(true, &[]).seen("reads-committed"), None);
    assert_eq!(transaction(false, &[(0, 1)]).seen("reads-committed"), None);
    let hidden = transaction(true, &[(0, 1)]).seen("reads-committed").unwrap();
    assert_eq!(hidden, "consumers of A do not get the committed batch of a1 at offset 0");
    let shown = transaction(false, &[]).seen("reads-committed").unwrap();
    assert_eq!(shown, "consumers of A get the batch of a1 at offset 0, which a1 did not commit");
    // Nobody reads beyond the last stable offset.
    let mut open = World::new();
    open.append("A", "a1", data(5, 0, 0, 1, true), Vec::new());
    open.change("A", |s| s.last_stable_offset = 0);
    assert_eq!(open.seen("reads-committed"), None);
}

#[test]
fn a_commit_has_its_transaction_before_it() {
    assert_eq!(transaction(true, &[]).seen("commit-commits"), None);
    let mut w = transaction(false, &[(0, 1)]);
    w.append("A", "a1", marker(5, 1, true), Vec::new());
    let evidence = w.seen("commit-commits").unwrap();
    assert_eq!(evidence, "A holds a1's COMMIT at offset 2, but not its transaction right before it");
    // A batch outside of a transaction is none of it.
    let mut w = World::new();
    w.append("A", "a1", data(5, 0, 0, 1, false), Vec::new());
    w.append("A", "a1", marker(5, 1, true), Vec::new());
    assert_eq!(w.seen("commit-commits").unwrap(), "A holds a1's COMMIT at offset 1, but not its transaction right before it");
}

#[test]
fn one_batch_at_two_offsets() {
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), Vec::new());
    w.append("A", "a1", five(0, 1), Vec::new());
    w.append("A", "a2", five(0, 0), Vec::new());
    assert_eq!(w.seen("batch-twice"), None);
    w.append("A", "a1", five(0, 0), Vec::new());
    assert_eq!(w.seen("batch-twice").unwrap(), "A holds one batch of a1 twice, at offsets 0 and 3");
    let mut plain = World::new();
    plain.append("A", "a1", data(-1, -1, -1, 1, false), Vec::new());
    plain.append("A", "a1", data(-1, -1, -1, 1, false), Vec::new());
    assert_eq!(plain.seen("batch-twice"), None, "a plain producer's batches look alike");
}

#[test]
fn the_state_that_a_log_means() {
    let state = |w: &mut World, producers: Vec<ProducerEntry>| w.change("A", |s| s.producers.clone_from(&producers));
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), Vec::new());
    w.append("A", "a1", five(0, 1), Vec::new());
    state(&mut w, vec![entry(5, 0, &[(0, 0, 0), (1, 1, 1)])]);
    assert_eq!(w.seen("state-is-that-of-log"), None);
    state(&mut w, vec![entry(5, 0, &[(1, 1, 1)])]);
    assert_eq!(w.seen("state-is-that-of-log"), None, "a restart forgets older batches");
    state(&mut w, vec![entry(5, 0, &[(0, 0, 0)])]);
    let evidence = w.seen("state-is-that-of-log").unwrap();
    assert_eq!(evidence, "A's producer state is not the one that its log means: the entry for id 5 differs");
    w.append("A", "", barrier("B"), Vec::new());
    assert_eq!(w.seen("state-is-that-of-log"), None, "the barrier clears");
    let open = OpenTransaction { producer_id: 7, first_offset: 0 };
    w.change("A", |s| s.open_transactions = vec![open.clone()]);
    assert!(w.seen("state-is-that-of-log").unwrap().contains("the open transactions differs"));
}

#[test]
fn one_log_and_two_states() {
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), vec![entry(5, 0, &[(0, 0, 0)])]);
    w.copy("B", "A", &[five(0, 0)], vec![entry(5, 0, &[(0, 0, 0)])]);
    assert_eq!(w.seen("equal-logs-equal-state"), None);
    w.change("B", |s| s.producers.clear());
    assert_eq!(w.seen("equal-logs-equal-state").unwrap(), "A and B hold the same log, but the entry for id 5 differs");
    w.append("B", "b1", five(0, 1), Vec::new());
    assert_eq!(w.seen("equal-logs-equal-state"), None, "two logs");
}

#[test]
fn what_has_not_ended() {
    let mut w = World::new();
    w.turn("B", MirrorState::Stopping);
    assert_eq!(w.seen("stop-completes").unwrap(), "B is left in STOPPING");
    w.turn("B", MirrorState::Stopped);
    assert_eq!((w.seen("stop-completes"), w.seen("stable-when-quiet")), (None, None));
    w.append("B", "b1", data(5, 0, 0, 1, true), Vec::new());
    w.change("B", |s| s.last_stable_offset = 0);
    assert_eq!(w.seen("stable-when-quiet"), None, "b1 is in the middle of its transaction");
    w.append("B", "b1", marker(5, 1, true), Vec::new());
    w.change("B", |s| s.last_stable_offset = 0);
    let evidence = w.seen("stable-when-quiet").unwrap();
    assert_eq!(evidence, "B is writable, and its last stable offset stays at 0 below its end 2");
}

#[test]
fn logs_that_meet_again_after_they_have_parted() {
    let mut w = World::new();
    w.append("A", "a1", five(0, 0), Vec::new());
    w.append("A", "a1", five(0, 1), Vec::new());
    w.copy("B", "A", &[five(0, 0), five(0, 1)], Vec::new());
    w.copy("B2", "B", &[five(0, 0), five(0, 1)], Vec::new());
    assert_eq!((w.seen("mirror-matches-source"), w.seen("follower-matches-leader")), (None, None));
    w.change("B", |s| s.log[0].batch = five(0, 7));
    assert_eq!(w.seen("mirror-matches-source").unwrap(), "B and A hold the same batch at offset 1, but different ones at offset 0");
    assert_eq!(
        w.seen("follower-matches-leader").unwrap(),
        "B2 and B hold the same batch at offset 1, but different ones at offset 0"
    );
    w.change("B", |s| s.log[1].batch = five(0, 8));
    assert_eq!(w.seen("mirror-matches-source"), None, "parted, and not met again");
}

#[test]
fn what_was_acknowledged() {
    let run = |replicated: bool, copied: bool| {
        let mut w = World::new();
        w.turn("B", MirrorState::Stopped);
        w.turn("B2", MirrorState::Stopped);
        let op = Op::Append {
            replica: "B".into(),
            origin: cleanslate_conformance::trace::format::Origin::Client,
            by: Some("b1".into()),
            batch: five(0, 0),
            expect: ANY,
        };
        let mut after = w.states["B"].clone();
        after.log.push(cleanslate_conformance::trace::format::LogEntry { offset: 0, by: None, batch: five(0, 0) });
        after.log_end_offset = 1;
        w.record(op, Observed::Appended { base_offset: 0, last_offset: 0 }, after);
        if replicated {
            w.change("B", |s| s.high_watermark = 1);
        }
        if copied {
            w.copy("B2", "B", &[five(0, 0)], Vec::new());
        }
        w.lead("B2");
        w.seen("acknowledged-is-kept")
    };
    assert_eq!(run(true, true), None);
    assert_eq!(run(false, false), None, "it was not acknowledged");
    assert_eq!(run(true, false).unwrap(), "B acknowledged a batch of b1 at offset 0; the log of B2, which leads, does not hold it");
}

#[test]
fn what_a_failback_throws_away() {
    let run = |shared: bool| {
        let mut w = World::new();
        w.append("A", "a1", five(0, 0), Vec::new());
        w.append("A", "a1", five(0, 1), Vec::new());
        w.copy("B", "A", &[five(0, 0), five(0, 1)][..if shared { 2 } else { 1 }], Vec::new());
        let state = ReplicaState { mirror_state: MirrorState::LogAlignment, ..w.states["A"].clone() };
        let op = Op::MirrorState { replica: "A".into(), to: MirrorState::LogAlignment, source: Some("B".into()) };
        w.record(op, Observed::Done, state);
        w.cut("A", 1);
        w.seen("failback-throws-away-own")
    };
    assert_eq!(run(false), None);
    assert_eq!(run(true).unwrap(), "the alignment of A threw the batch of a1 at offset 1 away, which B holds there");
}
