//! Producer state at equal offsets is equal, however it was built: under the sound rule always, under each other choice not
//! in the places that are named here.
#![cfg(test)]

mod log_support;

use std::collections::{BTreeMap, BTreeSet};

use cleanslate_log::barrier::{
    AppliedOn, BarrierPolicy, BarrierRetention, BarrierSnapshots, Clears, EmptyState, OpenAtBarrier, Propagated, Timing,
};
use cleanslate_log::log::{CleanOptions, LogConfig, PartitionLog, Recovery};
use cleanslate_log::psm::{SnapshotEntry, snapshot_files};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{Offset, ProducerId, TimestampMs};
use log_support::{NOW, TestLog, check, show_producers};
use proptest::prelude::*;

/// What a snapshot would hold, and the open transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct View {
    entries: BTreeMap<ProducerId, SnapshotEntry>,
    open: Vec<(Offset, ProducerId)>,
}

fn view(log: &PartitionLog<MemoryStorage>) -> View {
    let psm = log.producer_state();
    View {
        entries: psm.active_producers().iter().map(|(id, entry)| (*id, SnapshotEntry::from(entry))).collect(),
        open: psm.ongoing_transactions().values().map(|txn| (txn.first_offset, txn.producer_id)).collect(),
    }
}

fn new_log(policy: BarrierPolicy) -> TestLog {
    let mut log = TestLog::new(&LogConfig { barrier: policy, compact: true, ..LogConfig::default() });
    log.run("source A");
    log
}

fn verb(spec: &str) -> &'static str {
    if ["AB", "CM", "BAR"].iter().any(|control| spec.contains(control)) { "coordinator" } else { "client" }
}

/// The state at the end of each batch, as it is under the sound rule where batches come one by one.
fn reference(specs: &[&str]) -> Vec<(Offset, View)> {
    let mut log = new_log(BarrierPolicy::SOUND);
    let mut states = Vec::new();
    for spec in specs {
        log.run(&format!("copy {spec}"));
        states.push((log.log.log_end_offset(), view(&log.log)));
    }
    states
}

/// The batches, one group for each run of zero bits in the mask.
fn groups(specs: &[&str], cuts: u32) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        match out.last_mut() {
            Some(group) if cuts & (1 << index) == 0 => {
                group.push(' ');
                group.push_str(spec);
            }
            _ => out.push((*spec).to_owned()),
        }
    }
    out
}

/// A log whose snapshots are those that are taken behind the batches of the mask, and behind the first.
fn with_snapshots(policy: BarrierPolicy, specs: &[&str], snapshots: u32, rolls: u32) -> TestLog {
    let mut log = new_log(policy);
    for (index, spec) in specs.iter().enumerate() {
        log.run(&format!("copy {spec}"));
        if index == 0 || snapshots & (1 << index) != 0 {
            log.run("snapshot");
        }
        if rolls & (1 << index) != 0 {
            log.log.roll(NOW).unwrap();
        }
    }
    log
}

/// Goes all ways to a state, with these cuts into append calls, snapshots and rolls, and tells each that led elsewhere.
fn differing(policy: BarrierPolicy, specs: &[&str], cuts: u32, snapshots: u32, rolls: u32, found: &mut BTreeSet<&'static str>) {
    let expected = reference(specs);
    let at = |offset: Offset| &expected.iter().find(|(end, _)| *end == offset).unwrap().1;
    let last = &expected.last().unwrap().1;
    let mut compare = |way: &'static str, log: &TestLog| {
        if view(&log.log) != *at(log.log.log_end_offset()) {
            found.insert(way);
        }
    };
    let mut leader = new_log(policy);
    for spec in specs {
        leader.run(&format!("{} {spec}", verb(spec)));
        compare("leader", &leader);
    }
    for (way, verb) in [("follower", "copy"), ("mirror", "mirror")] {
        let mut log = new_log(policy);
        for group in groups(specs, cuts) {
            log.run(&format!("{verb} {group}"));
            compare(way, &log);
        }
    }
    let built = with_snapshots(policy, specs, snapshots, rolls);
    for (way, line) in [("clean stop", "clean"), ("reload", "reopen"), ("segment recovery", "crash 0")] {
        let mut log = built.clone();
        assert_eq!(log.run(line), "");
        compare(way, &log);
    }
    // A start leaves few snapshots behind.
    let mut restarted = built.clone();
    restarted.run("clean");
    for (end, _) in expected.iter().rev() {
        for (way, from) in [("truncation", &built), ("truncation after a restart", &restarted)] {
            let mut log = from.clone();
            log.run(&format!("truncate {end}"));
            compare(way, &log);
        }
    }
    if !compacted_agrees(built, last) {
        found.insert("compaction");
    }
}

/// After compaction, a replay of what is left gives the same producers with the same epochs and last sequences, and the same
/// open transactions. Markers may be gone, and with them coordinator epochs.
fn compacted_agrees(built: TestLog, expected: &View) -> bool {
    let mut log = built.log;
    log.update_high_watermark(log.log_end_offset());
    log.roll(NOW).unwrap();
    for days in 0..3 {
        let now = TimestampMs(NOW.get() + days * 86_400_000);
        let first_uncleanable = log.last_stable_offset();
        log.compact(&CleanOptions { first_dirty: Offset(0), first_uncleanable, now, max_keys: 1000 }).unwrap();
    }
    let config = log.config().clone();
    let mut storage = log.into_storage();
    for file in snapshot_files(&storage).unwrap() {
        storage.remove(&file.name).unwrap();
    }
    let (log, _) = PartitionLog::open(storage, config, Recovery::Unclean, NOW).unwrap();
    let found = view(&log);
    let essence = |view: &View| -> Vec<_> {
        view.entries.values().map(|entry| (entry.producer_id, entry.producer_epoch, entry.last_sequence)).collect()
    };
    essence(&found) == essence(expected) && found.open == expected.open
}

/// All cuts, all snapshots, all rolls.
fn differing_anywhere(policy: BarrierPolicy, specs: &[&str]) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let all = 1_u32 << specs.len();
    for mask in 0..all {
        // Not every triple, but every set of cuts, every set of snapshots and every set of rolls.
        differing(policy, specs, mask, mask, 0, &mut found);
        differing(policy, specs, mask, all - 1 - mask, mask >> 1, &mut found);
    }
    found
}

/// Two stints with the same id, and transactions in both.
const TWO_STINTS: [&str; 6] = ["-", "5.3#0", "t6.0#0", "AB6.0", "BAR<A", "t5.0#0x2"];
/// A stint that ends in a barrier, and nothing behind: the state is empty.
const ENDS_EMPTY: [&str; 4] = ["-", "5.0#0", "5.0#1", "BAR<A"];
/// Two barriers.
const TWO_BARRIERS: [&str; 6] = ["-", "5.1#0", "BAR<A", "5.0#7", "BAR<A", "6.0#0"];

#[test]
fn the_sound_rule_gives_one_state() {
    for specs in [&TWO_STINTS[..], &ENDS_EMPTY, &TWO_BARRIERS, &["-", "5.0#0", "BAR<B", "5.0#0"], &["-", "BAR", "t5.0#0"]] {
        assert_eq!(differing_anywhere(BarrierPolicy::SOUND, specs), BTreeSet::new(), "{specs:?}");
    }
}

/// Neither a snapshot behind each barrier nor a cleaner that removes what protects nothing makes a difference.
#[test]
fn other_sound_choices() {
    let behind = BarrierPolicy { snapshots: BarrierSnapshots::BehindBarrier, ..BarrierPolicy::SOUND };
    let removes = BarrierPolicy { retention: BarrierRetention::WhileItProtects, ..BarrierPolicy::SOUND };
    // Where no transaction is open at a barrier, entries are all there is to clear.
    let entries = BarrierPolicy { clears: Clears::AllIds, open_transactions: OpenAtBarrier::Accept, ..BarrierPolicy::SOUND };
    for policy in [behind, removes, entries] {
        for specs in [&TWO_STINTS[..], &ENDS_EMPTY, &TWO_BARRIERS] {
            assert_eq!(differing_anywhere(policy, specs), BTreeSet::new(), "{policy:?} {specs:?}");
        }
    }
}

/// Each other choice, and all the ways on which it leads elsewhere.
#[test]
fn every_unsound_choice_shows_somewhere() {
    let sound = BarrierPolicy::SOUND;
    let without = |leave_out: fn(&mut AppliedOn)| {
        let mut applied_on = AppliedOn::EVERYWHERE;
        leave_out(&mut applied_on);
        BarrierPolicy { applied_on, ..sound }
    };
    let (cut, cut_later) = ("truncation", "truncation after a restart");
    let all_ways = ["clean stop", "compaction", "follower", "leader", "mirror", "reload", "segment recovery", cut, cut_later];
    // A barrier that names another source than the log's counts as propagated where bytes are all there is.
    let foreign = ["-", "5.3#0", "BAR<B", "6.0#0"];
    let nothing = BarrierPolicy { clears: Clears::Nothing, ..sound };
    let negative = BarrierPolicy { clears: Clears::NegativeIds, ..sound };
    let analysis = BarrierPolicy { timing: Timing::AtAnalysis, clears: Clears::AllIds, ..sound };
    let inert = BarrierPolicy { propagated: Propagated::Inert, ..sound };
    let on_append = BarrierPolicy { propagated: Propagated::ExpiresOnAppend, ..sound };
    let kept = BarrierPolicy { empty_state: EmptyState::Kept, ..sound };
    let like_marker = BarrierPolicy { retention: BarrierRetention::LikeMarker, ..sound };
    let no_leader = without(|on| on.leader_append = false);
    let no_follower = without(|on| on.replication_append = false);
    let no_reload = without(|on| on.reload = false);
    let no_recovery = without(|on| on.segment_recovery = false);
    let snapshots = BarrierPolicy { snapshots: BarrierSnapshots::BehindBarrier, ..no_reload };
    let cases: [(&str, BarrierPolicy, &[&str], &[&str]); 12] = [
        ("no rule", nothing, &TWO_STINTS, &all_ways),
        ("negative ids", negative, &TWO_STINTS, &all_ways),
        ("at analysis", analysis, &TWO_STINTS, &["follower", "mirror", "reload", cut, cut_later]),
        ("not the leader", no_leader, &TWO_STINTS, &["leader"]),
        // What followers know goes into their snapshots.
        ("not the follower", no_follower, &TWO_STINTS, &["clean stop", "follower", "mirror", "reload", cut, cut_later]),
        ("not reload", no_reload, &TWO_STINTS, &["reload", cut, cut_later]),
        ("not recovery", no_recovery, &TWO_STINTS, &["compaction", "segment recovery"]),
        ("inert", inert, &foreign, &["mirror", "reload", "segment recovery", cut, cut_later]),
        ("on append", on_append, &foreign, &["reload", "segment recovery", cut, cut_later]),
        ("empty kept", kept, &ENDS_EMPTY, &[cut, cut_later]),
        ("like a marker", like_marker, &ENDS_EMPTY, &["compaction"]),
        ("snapshots instead of reload", snapshots, &TWO_STINTS, &[cut_later]),
    ];
    for (name, policy, specs, ways) in cases {
        let found = differing_anywhere(policy, specs);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ways, "{name}");
    }
}

/// What the first differences look like.
#[test]
fn the_first_difference_of_each_place() {
    let with = |policy: BarrierPolicy| LogConfig { barrier: policy, ..LogConfig::default() };
    let analysis = with(BarrierPolicy { timing: Timing::AtAnalysis, clears: Clears::AllIds, ..BarrierPolicy::SOUND });
    let kept = with(BarrierPolicy { empty_state: EmptyState::Kept, ..BarrierPolicy::SOUND });
    let sound = with(BarrierPolicy::SOUND);
    let bulk = [("copy 5.0#0 BAR<A", "0..1")];
    check(&analysis, &bulk, "LEO 2 HW 0 LSO 0 {5:e0[0@0]}");
    check(&sound, &bulk, "LEO 2 HW 0 LSO 0 {}");
    // A barrier that is cut off again: the open transaction in front of it is open again, or forgotten for good.
    let cut = [("copy t5.0#0 | BAR<A", "0 | 1"), ("truncate 1", "cut"), ("hw 1", "")];
    check(&kept, &cut, "LEO 1 HW 1 LSO 1 {}");
    check(&sound, &cut, "LEO 1 HW 1 LSO 0 {5:e0[0@0]txn@0}");
}

/// A barrier that acts at analysis takes what ended in front of it in the same call, too: the last stable offset passes a
/// marker that is not replicated.
#[test]
fn at_analysis_an_ended_transaction_is_forgotten_before_it_is_replicated() {
    for (timing, ended, stable) in [(Timing::AtPosition, 1, 0), (Timing::AtAnalysis, 0, 1)] {
        let mut log = new_log(BarrierPolicy { timing, ..BarrierPolicy::SOUND });
        log.run("copy t5.0#0");
        log.run("copy AB5.0 BAR<A");
        log.run("hw 1");
        assert_eq!(log.log.producer_state().unreplicated_transactions().len(), ended, "{timing:?}");
        assert_eq!(log.log.last_stable_offset(), Offset(stable), "{timing:?}");
    }
}

/// What a source does next; invalid steps are left out when the log is written.
#[derive(Clone, Copy, Debug)]
enum Step {
    Plain,
    Data { id: usize, records: u8, transactional: bool },
    End { id: usize, commit: bool },
    BumpEpoch { id: usize },
    Barrier { foreign: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..2_usize;
    prop_oneof![
        1 => Just(Step::Plain),
        6 => (id.clone(), 1..3_u8, any::<bool>()).prop_map(|(id, records, transactional)| Step::Data { id, records, transactional }),
        3 => (id.clone(), any::<bool>()).prop_map(|(id, commit)| Step::End { id, commit }),
        1 => id.prop_map(|id| Step::BumpEpoch { id }),
        2 => any::<bool>().prop_map(|foreign| Step::Barrier { foreign }),
    ]
}

#[derive(Clone, Copy, Default)]
struct Producer {
    epoch: i16,
    next_sequence: i32,
    open: bool,
}

/// The batches of a log that leaders would have accepted: in each stint sequences follow and epochs do not fall, and no
/// transaction is open at a barrier. Behind a barrier each id belongs to a new producer.
fn write_down(steps: &[Step]) -> Vec<String> {
    let mut producers = [Producer::default(); 2];
    let mut specs = vec!["-".to_owned()];
    let name = |id: usize, producer: &Producer| format!("{}.{}", id + 5, producer.epoch);
    for step in steps {
        match *step {
            Step::Plain => specs.push("-".to_owned()),
            Step::Data { id, records, transactional } => {
                let producer = &mut producers[id];
                let in_transaction = transactional || producer.open;
                let mark = if in_transaction { "t" } else { "" };
                specs.push(format!("{mark}{}#{}x{records}", name(id, producer), producer.next_sequence));
                producer.next_sequence += i32::from(records);
                producer.open = in_transaction;
            }
            Step::End { id, commit } if producers[id].open => {
                let kind = if commit { "CM" } else { "AB" };
                specs.push(format!("{kind}{}", name(id, &producers[id])));
                producers[id].open = false;
            }
            Step::BumpEpoch { id } if !producers[id].open => {
                producers[id].epoch += 1;
                producers[id].next_sequence = 0;
            }
            Step::End { .. } | Step::BumpEpoch { .. } => {}
            Step::Barrier { foreign } => {
                for id in (0..2).filter(|id| producers[*id].open) {
                    specs.push(format!("AB{}", name(id, &producers[id])));
                }
                specs.push(if foreign { "BAR<B" } else { "BAR<A" }.to_owned());
                producers = [Producer::default(); 2];
            }
        }
    }
    specs
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_sound_rule_gives_one_state_for_any_log(
        steps in proptest::collection::vec(step(), 1..20),
        cuts in any::<u32>(),
        snapshots in any::<u32>(),
        rolls in any::<u32>(),
    ) {
        let specs = write_down(&steps);
        let specs: Vec<&str> = specs.iter().take(32).map(String::as_str).collect();
        let mut found = BTreeSet::new();
        differing(BarrierPolicy::SOUND, &specs, cuts, snapshots, rolls, &mut found);
        let removes = BarrierPolicy { retention: BarrierRetention::WhileItProtects, ..BarrierPolicy::SOUND };
        differing(removes, &specs, cuts, snapshots, rolls, &mut found);
        prop_assert_eq!(found, BTreeSet::new(), "{:?}", specs);
        // Where nothing is reloaded, the remembered batches are the same too, and what ended and is not replicated yet.
        let mut one_by_one = new_log(BarrierPolicy::SOUND);
        let mut leader = new_log(BarrierPolicy::SOUND);
        let mut grouped = new_log(BarrierPolicy::SOUND);
        for spec in &specs {
            one_by_one.run(&format!("copy {spec}"));
            leader.run(&format!("{} {spec}", verb(spec)));
        }
        for group in groups(&specs, cuts) {
            grouped.run(&format!("copy {group}"));
        }
        let producers = |log: &TestLog| show_producers(log.log.producer_state());
        prop_assert_eq!(leader.log.log_end_offset(), one_by_one.log.log_end_offset(), "the leader accepts all of it");
        prop_assert_eq!(producers(&leader), producers(&one_by_one));
        prop_assert_eq!(producers(&grouped), producers(&one_by_one));
        let ended = |log: &TestLog| log.log.producer_state().unreplicated_transactions().clone();
        prop_assert_eq!(ended(&leader), ended(&one_by_one));
        prop_assert_eq!(ended(&grouped), ended(&one_by_one));
    }
}
