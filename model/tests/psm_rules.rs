//! The rules of the ProducerStateManager and of the barrier, line by line: operations in, state out.
//!
//! `r5.0#1` is a replicated batch of producer id 5, epoch 0, sequence 1; `c` is a client's; a final `t` makes it transactional;
//! `rCM5.1c3` is a replicated COMMIT of id 5, epoch 1, coordinator epoch 3, `mCM` one of the coordinator; `rBAR<A` is a replicated
//! barrier whose source is A; `cut2` truncates to 2; `roll` begins a segment;
//! `restart` stops in good order and starts again; `crash` kills and recovers. What must come out is the state in the notation of the
//! stories, or the error of the last operation.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use cleanslate_model::batch::{Batch, Kind};
use cleanslate_model::design::Design;
use cleanslate_model::effect::{Effect, Outcome};
use cleanslate_model::ids::{Broker, Cluster, CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use cleanslate_model::message::{FetchResponse, Request};
use cleanslate_model::mirror::MirrorState;
use cleanslate_model::replica::{Replica, ReplicaConfig, Role};
use cleanslate_model::truth::{Author, Ghost, Writer};

struct Bench {
    config: ReplicaConfig,
    replica: Replica,
    last: String,
    serial: u8,
}

impl Bench {
    fn new(design: &str) -> Self {
        let config = ReplicaConfig {
            design: Design::parse(design).unwrap(),
            broker: Broker { cluster: Cluster::B, number: 0 },
            has_peer: false,
            bulk: false,
            mirrors: Some(Cluster::A),
        };
        let replica = config.initial();
        Self { config, replica, last: String::new(), serial: 0 }
    }

    fn batch(&mut self, text: &str) -> Batch {
        self.serial += 1;
        let author = Ghost::new(Author { writer: Some(Writer(0)), cluster: Cluster::A, serial: self.serial });
        if let Some(source) = text.strip_prefix("BAR<") {
            let source = Cluster::ALL.into_iter().find(|c| c.name() == source).unwrap();
            return Batch::barrier(source, author);
        }
        let (kind, text) = match (text.strip_prefix("CM"), text.strip_prefix("AB")) {
            (Some(rest), _) => (Some(true), rest),
            (_, Some(rest)) => (Some(false), rest),
            _ => (None, text),
        };
        let (id, rest) = text.split_once('.').unwrap();
        let (epoch, number) = rest.split_once(['#', 'c']).unwrap();
        let transactional = number.ends_with('t');
        let number: i8 = number.trim_end_matches('t').parse().unwrap();
        Batch {
            producer_id: ProducerId(id.parse().unwrap()),
            producer_epoch: ProducerEpoch(epoch.parse().unwrap()),
            sequence: Sequence(if kind.is_some() { -1 } else { number }),
            kind: match kind {
                Some(commit) => Kind::Marker { commit, coordinator_epoch: CoordinatorEpoch(number) },
                None => Kind::Data { transactional },
            },
            leader_epoch: LeaderEpoch(0),
            author,
        }
    }

    fn become_leader(&mut self, state: MirrorState) {
        self.replica.mirror.state = state;
        self.replica.role = Role::Leader;
    }

    fn fetched(&mut self, response: FetchResponse) {
        self.become_leader(MirrorState::Mirroring);
        self.config.mirror(&mut self.replica, Broker { cluster: Cluster::A, number: 0 }, response);
    }

    fn run(&mut self, op: &str) {
        if op == "roll" {
            self.config.roll(&mut self.replica).unwrap();
        } else if op == "restart" {
            let mirror = self.replica.mirror;
            self.config.restart(&mut self.replica);
            self.config.lead(&mut self.replica, LeaderEpoch(1), false, mirror);
        } else if let Some(text) = op.strip_prefix('r') {
            let (batch, offset) = (self.batch(text), self.replica.log_end());
            self.fetched(FetchResponse::Batches { offset, batches: vec![batch], high_watermark: offset });
        } else if op == "crash" {
            let mirror = self.replica.mirror;
            self.replica = self.config.recovered(&self.replica.durable);
            self.config.lead(&mut self.replica, LeaderEpoch(1), false, mirror);
        } else if let Some(target) = op.strip_prefix("cut") {
            self.fetched(FetchResponse::OutOfRange(Offset(target.parse().unwrap())));
        } else {
            self.become_leader(MirrorState::Stopped);
            let (who, text) = op.split_at(1);
            let batch = self.batch(text);
            let request = Request { batch, producer: 9, correlation: 1, resent: false };
            match who {
                "c" => self.config.produce(&mut self.replica, request),
                "m" => self.config.write_marker(&mut self.replica, request),
                _ => panic!("{op}"),
            };
        }
        let outcome = self.replica.journal.iter().find_map(|e| match e {
            Effect::Append { outcome, .. } | Effect::Copy { outcome, .. } => Some(*outcome),
            _ => None,
        });
        self.replica.journal.clear();
        self.last = match outcome {
            Some(Outcome::Rejected(why)) => why.class().trim_end_matches("Exception").to_owned(),
            Some(Outcome::Duplicate(at)) => format!("duplicate of {at}"),
            _ => String::new(),
        };
    }

    fn state(&self) -> String {
        let entries = self.replica.psm.entries().iter().map(|e| {
            let window: Vec<_> = e.window.as_slice().iter().map(|c| format!("{}@{}", c.sequence, c.offset)).collect();
            let coordinator = if e.coordinator_epoch.0 < 0 { String::new() } else { format!("c{}", e.coordinator_epoch) };
            let txn = e.txn_first_offset.map_or_else(String::new, |o| format!("txn@{o}"));
            format!("{}:e{}[{}]{coordinator}{txn}", e.id, e.epoch, window.join(","))
        });
        let entries: Vec<_> = entries.collect();
        let lso = self.replica.last_stable_offset();
        let end = self.replica.log_end();
        let stable = if lso == end { String::new() } else { format!(" lso {lso}") };
        let last = if self.last.is_empty() { String::new() } else { format!(" {}", self.last) };
        format!("{{{}}}{stable}{last}", entries.join(" "))
    }
}

fn check_design(design: &str, rows: &[(&str, &str)]) {
    for (ops, expected) in rows {
        let mut bench = Bench::new(design);
        ops.split(' ').for_each(|op| bench.run(op));
        assert_eq!(bench.state(), *expected, "{design}: {ops}");
    }
}

fn check(rows: &[(&str, &str)]) {
    check_design("raw", rows);
}

#[test]
fn replication_accepts_what_a_leader_would_refuse() {
    check(&[
        // PSM-8, scenario 1: two producers in one epoch.
        ("r5.0#0 r5.0#1 r5.0#0 r5.0#2 r5.0#40", "{5:e0[0@0,1@1,0@2,2@3,40@4]}"),
        // Scenario 2: the epoch goes down, and what was remembered is forgotten.
        ("r5.3#0 r5.0#0", "{5:e0[0@1]}"),
        ("r5.3#0 r5.0#0 r5.3#1", "{5:e3[1@2]}"),
        // Scenario 3: one marker ends the other's transaction.
        ("r5.0#0t r5.0#0t rCM5.0c0", "{5:e0[0@0,0@1]c0}"),
        // Coordinator epochs go down too.
        ("rCM5.0c7 rCM5.0c2", "{5:e0[]c2}"),
        // PSM-7 is not only for clients.
        ("r5.0#0t r5.0#1", "{5:e0[0@0]txn@0} lso 0 InvalidTxnState"),
    ]);
}

#[test]
fn a_leader_checks_epochs_and_sequences() {
    check(&[
        ("c5.0#7", "{5:e0[7@0]}"),
        ("c5.0#0 c5.0#2", "{5:e0[0@0]} OutOfOrderSequence"),
        ("c5.0#0 c5.1#1", "{5:e0[0@0]} OutOfOrderSequence"),
        ("c5.0#0 c5.1#0", "{5:e1[0@1]}"),
        ("c5.3#0 c5.0#0", "{5:e3[0@0]} InvalidProducerEpoch"),
        ("c5.0#0 c5.0#0", "{5:e0[0@0]} duplicate of 0"),
        // PSM-2: the window has five batches.
        ("c5.0#0 c5.0#1 c5.0#2 c5.0#3 c5.0#4 c5.0#0", "{5:e0[0@0,1@1,2@2,3@3,4@4]} duplicate of 0"),
        ("c5.0#0 c5.0#1 c5.0#2 c5.0#3 c5.0#4 c5.0#5 c5.0#0", "{5:e0[1@1,2@2,3@3,4@4,5@5]} OutOfOrderSequence"),
        // Plain batches leave no trace.
        ("c-1.-1#-1 c-1.-1#-1", "{}"),
    ]);
}

#[test]
fn markers() {
    check(&[
        ("c5.0#0t", "{5:e0[0@0]txn@0} lso 0"),
        ("c5.0#0t mCM5.1c0", "{5:e1[]c0}"),
        ("c5.0#0t mCM5.1c0 c5.1#0", "{5:e1[0@2]c0}"),
        ("c5.0#0t mCM5.1c0 c5.1#1", "{5:e1[]c0} OutOfOrderSequence"),
        // A marker for an unknown id makes an entry, which then checks.
        ("mCM5.0c0 c5.0#1", "{5:e0[]c0} OutOfOrderSequence"),
        ("rCM5.3c2 mCM5.1c2", "{5:e3[]c2} InvalidProducerEpoch"),
        ("rCM5.0c7 mCM5.1c0", "{5:e0[]c7} TransactionCoordinatorFenced"),
        // Transaction version 2: an equal epoch is a retry if nothing is open, stale if something is.
        ("mCM5.1c0 mCM5.1c0", "{5:e1[]c0}"),
        ("c5.0#0t mCM5.0c0", "{5:e0[0@0]txn@0} lso 0 InvalidProducerEpoch"),
        // An open transaction stays open over data of another id.
        ("c5.0#0t c6.0#0", "{5:e0[0@0]txn@0 6:e0[0@1]} lso 0"),
    ]);
}

/// SILENT-1 looks at sequences of one epoch: a marker of transaction version 2 raises the epoch in the middle of a call.
#[test]
fn data_behind_a_marker_in_one_call_begin_a_new_epoch() {
    let mut bench = Bench::new("raw");
    bench.run("r5.0#0t");
    let batches = ["CM5.1c0", "5.1#0t"].map(|text| bench.batch(text)).to_vec();
    bench.fetched(FetchResponse::Batches { offset: Offset(1), batches, high_watermark: Offset(1) });
    assert!(!bench.replica.journal.iter().any(|e| matches!(e, Effect::Anomaly(_))), "{:?}", bench.replica.journal);
    assert_eq!(bench.state(), "{5:e1[0@2]c0txn@2} lso 2");
}

#[test]
fn a_crash_leaves_one_batch_an_id() {
    check(&[
        ("r5.0#0 r5.0#1 r5.0#2 crash", "{5:e0[2@2]}"),
        ("r5.0#0t r6.0#0 crash", "{5:e0[0@0]txn@0 6:e0[0@1]} lso 0"),
        ("r5.0#0 crash r5.0#1", "{5:e0[0@0,1@1]}"),
        ("crash", "{}"),
    ]);
}

#[test]
fn truncation_rebuilds_from_the_newest_snapshot() {
    let log = "r5.0#0 r6.0#0t rAB6.0c0 r5.0#1";
    check(&[
        (&format!("{log} cut3"), "{5:e0[0@0] 6:e0[0@1]c0}"),
        (&format!("{log} cut2"), "{5:e0[0@0] 6:e0[0@1]txn@1} lso 1"),
        (&format!("{log} cut0"), "{}"),
        (&format!("{log} cut4"), "{5:e0[0@0,1@3] 6:e0[0@1]c0}"),
        // The snapshot of the recovery holds one batch of 5; what follows is replayed on top.
        ("r5.0#0 r5.0#1 crash r5.0#2 r5.0#3 cut3", "{5:e0[1@1,2@2]}"),
        // Replayed in one call, an epoch that is left and met again keeps its old batches; appended one by one, it does not.
        ("r7.0#0 r7.0#1 r7.1#0 r7.0#2", "{7:e0[2@3]}"),
        ("r7.0#0 r7.0#1 crash r7.1#0 r7.0#2 r9.0#0 cut4", "{7:e0[1@1,2@3]}"),
    ]);
}

#[test]
fn segments_and_restarts() {
    check(&[
        // A stop in good order leaves one batch an id, too, and open transactions open (PSM-12).
        ("r5.0#0 r5.0#1 restart r5.0#2", "{5:e0[1@1,2@2]}"),
        ("r5.0#0t r6.0#0 restart", "{5:e0[0@0]txn@0 6:e0[0@1]} lso 0"),
        // A roll takes a snapshot (LOG-4): a truncation above it replays from there.
        ("r5.0#0 r5.0#1 roll r5.0#2 r5.0#3 cut3", "{5:e0[1@1,2@2]}"),
        ("r5.0#0 r5.0#1 roll r5.0#2 cut2", "{5:e0[1@1]}"),
        // Segment recovery begins with the last segment.
        ("r5.0#0 r5.0#1 roll r5.0#2 r5.0#3 crash", "{5:e0[3@3]}"),
        ("r5.0#0t roll r6.0#0 crash rAB5.0c0", "{5:e0[0@0]c0 6:e0[0@1]}"),
        // Each segment is replayed as a call of its own.
        ("r7.0#0 r7.0#1 crash r7.1#0 roll r7.0#2 r9.0#0 cut4", "{7:e0[2@3]}"),
    ]);
}

#[test]
fn empty_state_is_built_again_by_design() {
    let log = "r5.0#0 r6.0#0 rBAR<C cut2";
    check_design("raw-barrier+reload-when-empty=done", &[(log, "{5:e0[0@0] 6:e0[0@1]}")]);
    check_design("raw-barrier+reload-when-empty=skipped", &[(log, "{}")]);
}

#[test]
fn a_barrier_clears_by_design() {
    // B mirrors A: a barrier whose source is A is B's own, one whose source is C came from elsewhere.
    check_design("raw", &[("r5.0#0 rBAR<C r6.0#0", "{5:e0[0@0] 6:e0[0@2]}")]);
    check_design(
        "raw-barrier",
        &[
            ("r5.0#0 rBAR<C", "{}"),
            ("r5.0#0 rBAR<C r5.0#0", "{5:e0[0@2]}"),
            ("r5.0#0 rBAR<C r6.0#0 crash", "{6:e0[0@2]}"),
            ("r5.0#0 rBAR<C r6.0#0 r6.0#1 cut3", "{6:e0[0@2]}"),
            // The shortcut of an empty state replays nothing: what lies below the barrier does not come back (PSM-10).
            ("r5.0#0 r6.0#0 rBAR<C cut2", "{}"),
        ],
    );
    check_design(
        "raw-barrier-inert",
        &[
            ("r5.0#0 rBAR<C", "{5:e0[0@0]}"),
            ("r5.0#0 rBAR<C crash", "{5:e0[0@0]}"),
            // On replay the source tells: this barrier could have been B's own.
            ("r5.0#0 rBAR<A crash", "{}"),
        ],
    );
    check_design("raw-barrier+propagated=append", &[("r5.0#0 rBAR<C", "{}"), ("r5.0#0 rBAR<C crash", "{5:e0[0@0]}")]);
    check_design("raw-barrier+clears=negative", &[("r5.0#0 r-7.0#0 rBAR<C", "{5:e0[0@0]}")]);
    check_design("negate-once+barrier=on-stop+propagated=append+clears=negative", &[("r5.0#0 r-9.0#0 rBAR<C", "{}")]);
    // Clearing the entries alone leaves an open transaction that no marker can end any more.
    check_design("raw-barrier", &[("r5.0#0t rBAR<C rCM5.0c0", "{5:e0[]c0} lso 0")]);
    check_design("raw-barrier+clears=all-and-derived", &[("r5.0#0t rBAR<C rCM5.0c0", "{5:e0[]c0}")]);
}

#[test]
fn a_barrier_that_recovery_leaves_out_brings_entries_back() {
    check_design("raw-barrier+applied-by=leader/follower/reload", &[("r5.0#0 rBAR<C crash", "{5:e0[0@0]}")]);
    check_design(
        "raw-barrier+applied-by=leader/follower/segment-recovery",
        &[("r5.0#0 rBAR<C r6.0#0 r6.0#1 cut3", "{5:e0[0@0] 6:e0[0@2]}")],
    );
    check_design("raw-barrier+applied-by=leader", &[("r5.0#0 rBAR<C", "{5:e0[0@0]}")]);
}

#[test]
fn a_bulk_reload_with_a_barrier_that_acts_at_analysis_brings_entries_back() {
    check_design("raw-barrier+timing=analysis", &[("r5.0#0 rBAR<C r6.0#0 r6.0#1 cut3", "{5:e0[0@0] 6:e0[0@2]}")]);
    check_design("raw-barrier+timing=position", &[("r5.0#0 rBAR<C r6.0#0 r6.0#1 cut3", "{6:e0[0@2]}")]);
}

#[test]
fn mapped_ids() {
    check_design("negate", &[("r5.0#0 r-7.0#0 r-1.-1#-1 r0.0#0", "{-7:e0[0@0] -2:e0[0@3] 5:e0[0@1]}")]);
    check_design("negate-once", &[("r5.0#0 r-7.0#0", "{-7:e0[0@0,0@1]}")]);
    check_design("negate+psm-ids=stock", &[("r5.0#0t", "{}")]);
}
