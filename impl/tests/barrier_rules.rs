//! What a barrier does: by policy, by place, by path, by time.
#![cfg(test)]

mod log_support;

use cleanslate_log::barrier::{AppliedOn, BarrierPolicy, BarrierSnapshots, Clears, EmptyState, OpenAtBarrier, Propagated, Timing};
use cleanslate_log::log::{LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::{ProducerIdVisibility, VerificationRequest, snapshot_files};
use cleanslate_log::storage::Storage;
use cleanslate_log::types::{Offset, ProducerEpoch, ProducerId, Sequence};
use log_support::{NOW, TestLog, check, show_producers};

const EMPTY: &str = "LEO 2 HW 0 LSO 0 {}";
const KEPT: &str = "LEO 2 HW 0 LSO 0 {5:e0[0@0]}";

fn with(policy: BarrierPolicy) -> LogConfig {
    LogConfig { barrier: policy, ..LogConfig::default() }
}

fn clearing(clears: Clears, timing: Timing) -> LogConfig {
    with(BarrierPolicy { clears, timing, ..BarrierPolicy::default() })
}

const TIMINGS: [Timing; 2] = [Timing::AtAnalysis, Timing::AtPosition];

#[test]
fn stock_kafka_stores_a_barrier_and_clears_nothing() {
    for line in ["coordinator BAR<A", "copy BAR<A", "mirror BAR<A", "coordinator BAR"] {
        let lines = [("copy 5.0#0", "0"), (line, "1")];
        check(&LogConfig::default(), &lines, KEPT);
        check(&LogConfig::default(), &[lines[0], lines[1], ("crash 0", "")], KEPT);
    }
}

#[test]
fn a_barrier_clears_all_entries_wherever_it_is_appended() {
    for timing in TIMINGS {
        for clears in [Clears::AllIds, Clears::AllIdsAndDerived] {
            let config = clearing(clears, timing);
            for line in ["coordinator BAR<A", "copy BAR<A", "mirror BAR<A", "coordinator BAR"] {
                check(&config, &[("copy 5.0#0", "0"), (line, "1")], EMPTY);
            }
        }
    }
}

#[test]
fn after_a_barrier_an_id_is_unknown() {
    check(
        &clearing(Clears::AllIds, Timing::AtPosition),
        &[
            ("copy 5.3#0 | 5.3#1", "0 | 1"),
            ("coordinator BAR<A", "2"),
            // Neither a duplicate, nor out of order, nor fenced.
            ("client 5.0#0", "3"),
            ("client 5.0#0", "duplicate 3"),
        ],
        "LEO 4 HW 0 LSO 0 {5:e0[0@3]}",
    );
    check(
        &LogConfig::default(),
        &[
            ("copy 5.3#0 | 5.3#1", "0 | 1"),
            ("coordinator BAR<A", "2"),
            ("client 5.3#0", "duplicate 0"),
            ("client 5.0#0", "InvalidProducerEpochException"),
        ],
        "LEO 3 HW 0 LSO 0 {5:e3[0@0,1@1]}",
    );
}

#[test]
fn negative_ids_only() {
    for timing in TIMINGS {
        let config = LogConfig { ids: ProducerIdVisibility::Mapped, ..clearing(Clears::NegativeIds, timing) };
        check(&config, &[("mirror -7.0#0 | 0.0#0", "0 | 1"), ("coordinator BAR<A", "2")], "LEO 3 HW 0 LSO 0 {0:e0[0@1]}");
        // As stock Kafka sees ids, there is nothing to clear.
        let stock_ids = clearing(Clears::NegativeIds, timing);
        check(&stock_ids, &[("mirror -7.0#0 | 0.0#0", "0 | 1"), ("coordinator BAR<A", "2")], "LEO 3 HW 0 LSO 0 {0:e0[0@1]}");
    }
}

/// A follower that catches up in bulk against one that does not fall behind.
#[test]
fn at_analysis_a_bulk_append_brings_the_entries_back() {
    let bulk = [("copy 5.0#0 BAR<A", "0..1")];
    let single = [("copy 5.0#0 | BAR<A", "0 | 1")];
    for (clears, timing, in_bulk) in [
        (Clears::AllIds, Timing::AtAnalysis, KEPT),
        (Clears::AllIdsAndDerived, Timing::AtAnalysis, EMPTY),
        (Clears::AllIds, Timing::AtPosition, EMPTY),
        (Clears::AllIdsAndDerived, Timing::AtPosition, EMPTY),
    ] {
        let config = clearing(clears, timing);
        check(&config, &single, EMPTY);
        check(&config, &bulk, in_bulk);
    }
    // What comes of it: the follower is elected, and a new producer's first batch is taken for a resend.
    check(&clearing(Clears::AllIds, Timing::AtAnalysis), &[bulk[0], ("client 5.0#0", "duplicate 0")], KEPT);
}

#[test]
fn what_follows_a_barrier_in_the_same_call() {
    let lines = [("copy 5.0#0 BAR<A 5.0#7", "0..2")];
    for (clears, timing, state) in [
        (Clears::AllIds, Timing::AtAnalysis, "{5:e0[0@0,7@2]}"),
        (Clears::AllIdsAndDerived, Timing::AtAnalysis, "{5:e0[7@2]}"),
        (Clears::AllIds, Timing::AtPosition, "{5:e0[7@2]}"),
        (Clears::AllIdsAndDerived, Timing::AtPosition, "{5:e0[7@2]}"),
        (Clears::Nothing, Timing::AtPosition, "{5:e0[0@0,7@2]}"),
    ] {
        let state = format!("LEO 3 HW 0 LSO 0 {state}");
        check(&clearing(clears, timing), &lines, &state);
    }
    // A lower epoch behind a barrier is a new producer's, and behind two of them another one's.
    check(
        &clearing(Clears::AllIds, Timing::AtPosition),
        &[("copy 5.3#4 BAR<A 5.0#0 6.0#0 BAR<B 5.1#0 5.1#1", "0..6")],
        "LEO 7 HW 0 LSO 0 {5:e1[0@5,1@6]}",
    );
}

#[test]
fn at_analysis_the_state_is_gone_even_if_nothing_is_appended() {
    let lines = [("copy 5.0#0", "0"), ("copy BAR<A t6.0#0 6.0#1", "InvalidTxnStateException")];
    for (timing, state) in [(Timing::AtAnalysis, "LEO 1 HW 0 LSO 0 {}"), (Timing::AtPosition, "LEO 1 HW 0 LSO 0 {5:e0[0@0]}")] {
        check(&clearing(Clears::AllIds, timing), &lines, state);
    }
}

#[test]
fn an_open_transaction_outlives_its_entry_unless_derived_state_goes_too() {
    let lines = [("copy t5.0#0 | BAR<A", "0 | 1"), ("hw 2", ""), ("coordinator AB5.0", "2"), ("hw 3", "")];
    for timing in TIMINGS {
        // The marker finds no open transaction in the entry, and the last stable offset stays where it is.
        check(&clearing(Clears::AllIds, timing), &lines, "LEO 3 HW 3 LSO 0 {5:e0[]c0} open@0");
        check(&clearing(Clears::AllIdsAndDerived, timing), &lines, "LEO 3 HW 3 LSO 3 {5:e0[]c0}");
    }
}

#[test]
fn transactions_that_began_or_ended_before_the_barrier_in_the_same_call() {
    let begun = [("copy t5.0#0 BAR<A", "0..1"), ("hw 2", "")];
    for (clears, timing, state) in [
        (Clears::AllIds, Timing::AtAnalysis, "LEO 2 HW 2 LSO 0 {5:e0[0@0]txn@0}"),
        (Clears::AllIds, Timing::AtPosition, "LEO 2 HW 2 LSO 0 {} open@0"),
        (Clears::AllIdsAndDerived, Timing::AtAnalysis, "LEO 2 HW 2 LSO 2 {}"),
        (Clears::AllIdsAndDerived, Timing::AtPosition, "LEO 2 HW 2 LSO 2 {}"),
    ] {
        check(&clearing(clears, timing), &begun, state);
    }
    // An aborted transaction stays known to readers, whatever is cleared.
    for (clears, timing, entry) in [
        (Clears::AllIds, Timing::AtAnalysis, "{5:e0[0@0]c0}"),
        (Clears::AllIds, Timing::AtPosition, "{}"),
        (Clears::AllIdsAndDerived, Timing::AtAnalysis, "{}"),
        (Clears::AllIdsAndDerived, Timing::AtPosition, "{}"),
    ] {
        check(
            &clearing(clears, timing),
            &[("copy t5.0#0 AB5.0 BAR<A", "0..2"), ("hw 3", "")],
            &format!("LEO 3 HW 3 LSO 3 {entry} aborted 5/0/1/2"),
        );
    }
}

/// Who applies it: each place can be left out.
#[test]
fn each_place_can_be_left_out() {
    let without = |leave_out: fn(&mut AppliedOn)| {
        let mut applied_on = AppliedOn::EVERYWHERE;
        leave_out(&mut applied_on);
        with(BarrierPolicy { clears: Clears::AllIds, applied_on, ..BarrierPolicy::default() })
    };
    let leader = without(|places| places.leader_append = false);
    let replication = without(|places| places.replication_append = false);
    let reload = without(|places| places.reload = false);
    let recovery = without(|places| places.segment_recovery = false);
    let lead: &[(&str, &str)] = &[("copy 5.0#0", "0"), ("coordinator BAR<A", "1")];
    let copy: &[(&str, &str)] = &[("copy 5.0#0 | BAR<A", "0 | 1")];
    let replay: &[(&str, &str)] = &[("copy -", "0"), ("snapshot", ""), ("copy 5.0#0 | BAR<A", "1 | 2"), ("reopen", "")];
    let truncate: &[(&str, &str)] = &[("copy 5.0#0 | BAR<A | 6.0#0", "0 | 1 | 2"), ("truncate 2", "cut")];
    let crash: &[(&str, &str)] = &[("copy 5.0#0 | BAR<A", "0 | 1"), ("crash 0", "")];
    for (lines, culprit, kept) in [
        (lead, &leader, KEPT),
        (copy, &replication, KEPT),
        (replay, &reload, "LEO 3 HW 0 LSO 0 {5:e0[0@1]}"),
        (truncate, &reload, KEPT),
        (crash, &recovery, KEPT),
    ] {
        for config in [&leader, &replication, &reload, &recovery] {
            let empty = kept.split('{').next().unwrap().to_owned() + "{}";
            // The source is the own one, so that replay sees an own barrier.
            let mut with_source = vec![("source A", "")];
            with_source.extend_from_slice(lines);
            let state = if config == culprit { kept } else { &empty };
            check(config, &with_source, state);
        }
    }
}

#[test]
fn propagated_on_append_is_what_came_from_another_cluster() {
    let policy = |propagated| with(BarrierPolicy { clears: Clears::AllIds, propagated, ..BarrierPolicy::default() });
    let inert = policy(Propagated::Inert);
    let on_append = policy(Propagated::ExpiresOnAppend);
    let always = policy(Propagated::ExpiresOnAppendAndReplay);
    for barrier in ["BAR", "BAR<A", "BAR<B"] {
        let mirrored = format!("mirror {barrier}");
        let copied = format!("copy {barrier}");
        for (config, state) in [(&inert, KEPT), (&on_append, EMPTY), (&always, EMPTY)] {
            let lines = [("source A", ""), ("copy 5.0#0", "0"), (&mirrored, "1")];
            check(config, &lines, state);
            // A follower in the same cluster cannot tell: it clears, where its leader did not.
            let lines = [("source A", ""), ("copy 5.0#0", "0"), (&copied, "1")];
            check(config, &lines, EMPTY);
        }
    }
}

#[test]
fn propagated_on_replay_is_what_names_another_source_cluster() {
    let policy = |propagated| with(BarrierPolicy { clears: Clears::AllIds, propagated, ..BarrierPolicy::default() });
    let inert = policy(Propagated::Inert);
    let on_append = policy(Propagated::ExpiresOnAppend);
    let always = policy(Propagated::ExpiresOnAppendAndReplay);
    for (source, barrier, own) in [
        ("source A", "BAR<A", true),
        ("source A", "BAR", true),
        ("source A", "BAR<B", false),
        ("hw 0", "BAR<B", false),
        ("hw 0", "BAR", true),
    ] {
        let batches = format!("mirror 5.0#0 | {barrier}");
        let crash = [(source, ""), (&batches, "0 | 1"), ("crash 0", "")];
        let batches = format!("mirror 5.0#0 | {barrier} | -");
        let truncate = [
            (source, ""),
            (&batches, "0 | 1 | 2"),
            // Something to lose, else there would be no replay.
            ("mirror 6.0#0", "3"),
            ("truncate 2", "cut"),
        ];
        for lines in [&crash[..], &truncate[..]] {
            check(&always, lines, EMPTY);
            for config in [&inert, &on_append] {
                check(config, lines, if own { EMPTY } else { KEPT });
            }
        }
    }
}

#[test]
fn the_source_cluster_survives_a_restart() {
    let log = check(&LogConfig::default(), &[("source A", ""), ("copy -", "0"), ("clean", "")], "LEO 1 HW 0 LSO 0 {}");
    assert_eq!(log.log.mirror_source(), Some("A"));
}

#[test]
fn a_replay_in_bulk_has_the_fault_of_a_bulk_append() {
    let before = [("copy -", "0"), ("snapshot", ""), ("copy 5.0#0 | BAR<A | 6.0#0", "1 | 2 | 3")];
    for (timing, reloaded) in [(Timing::AtAnalysis, "{5:e0[0@1] 6:e0[0@3]}"), (Timing::AtPosition, "{6:e0[0@3]}")] {
        let config = clearing(Clears::AllIds, timing);
        let run = |last: (&str, &str), state: &str| {
            let lines = [&before[..], &[last]].concat();
            check(&config, &lines, &format!("LEO 4 HW 0 LSO 0 {state}"));
        };
        run(("hw 0", ""), "{6:e0[0@3]}");
        run(("crash 0", ""), "{6:e0[0@3]}");
        run(("reopen", ""), reloaded);
    }
}

#[test]
fn a_truncation_that_cuts_the_barrier_brings_back_what_it_cleared() {
    check(
        &clearing(Clears::AllIds, Timing::AtPosition),
        &[("copy 5.0#0 | BAR<A | 6.0#0", "0 | 1 | 2"), ("truncate 1", "cut")],
        "LEO 1 HW 0 LSO 0 {5:e0[0@0]}",
    );
    // But not if nothing is left to be rebuilt, unless the settings want it.
    check(
        &clearing(Clears::AllIds, Timing::AtPosition),
        &[("copy 5.0#0 | BAR<A", "0 | 1"), ("truncate 1", "cut")],
        "LEO 1 HW 0 LSO 0 {}",
    );
    check(
        &with(BarrierPolicy { clears: Clears::AllIds, empty_state: EmptyState::Rebuilt, ..BarrierPolicy::default() }),
        &[("copy 5.0#0 | BAR<A", "0 | 1"), ("truncate 1", "cut")],
        "LEO 1 HW 0 LSO 0 {5:e0[0@0]}",
    );
}

#[test]
fn a_type_seven_batch_under_an_id_is_no_barrier() {
    let config = clearing(Clears::AllIds, Timing::AtPosition);
    check(
        &config,
        &[("copy 5.0#0", "0"), ("coordinator CTL7:6.0", "IllegalArgumentException"), ("copy CTL7:6.0", "IllegalArgumentException")],
        "LEO 1 HW 0 LSO 0 {5:e0[0@0]}",
    );
    // Under an id that counts as none, and with a value that is no MirrorPidResetRecord, it is.
    check(&config, &[("copy 5.0#0", "0"), ("copy CTL7:-2.0", "1")], EMPTY);
}

/// A leader that refuses leaves the log as it was; a copy is taken as it is, and its open transactions count as ended.
#[test]
fn a_barrier_behind_an_open_transaction() {
    let policy = |open_transactions| BarrierPolicy { open_transactions, ..BarrierPolicy::SOUND };
    for timing in TIMINGS {
        let refuses = with(BarrierPolicy { timing, ..policy(OpenAtBarrier::Refuse) });
        check(
            &refuses,
            &[
                ("copy t5.0#0", "0"),
                ("coordinator BAR<A", "InvalidTxnStateException"),
                ("coordinator AB5.0", "1"),
                ("coordinator BAR<A", "2"),
            ],
            "LEO 3 HW 0 LSO 0 {} aborted 5/0/1/2",
        );
        for verb in ["copy", "mirror"] {
            let line = format!("{verb} BAR<A");
            check(&refuses, &[("copy t5.0#0", "0"), (&line, "1"), ("hw 2", "")], "LEO 2 HW 2 LSO 2 {}");
        }
    }
    let accepts = with(policy(OpenAtBarrier::Accept));
    check(&accepts, &[("copy t5.0#0", "0"), ("coordinator BAR<A", "1"), ("hw 2", "")], "LEO 2 HW 2 LSO 2 {}");
}

/// A verification that was asked for before the barrier belongs to another producer.
#[test]
fn pending_verifications_are_derived_state() {
    for (clears, pending) in [(Clears::AllIds, 1), (Clears::AllIdsAndDerived, 0)] {
        for timing in TIMINGS {
            let mut log = TestLog::new(&clearing(clears, timing));
            let request = VerificationRequest {
                producer_id: ProducerId(5),
                producer_epoch: ProducerEpoch(0),
                sequence: Sequence(3),
                supports_epoch_bump: false,
            };
            log.log.maybe_start_transaction_verification(&request, NOW).unwrap();
            assert_eq!(log.run("copy BAR<A t6.0#0 6.0#1"), "InvalidTxnStateException");
            let after_failure = if timing == Timing::AtAnalysis { pending } else { 1 };
            assert_eq!(log.log.producer_state().verifications().len(), after_failure, "{clears:?} {timing:?}");
            assert_eq!(log.run("coordinator BAR<A"), "0");
            assert_eq!(log.log.producer_state().verifications().len(), pending, "{clears:?} {timing:?}");
        }
    }
}

#[test]
fn a_snapshot_behind_each_barrier_that_acts() {
    let offsets = |policy: BarrierPolicy, lines: &[&str]| -> Vec<i64> {
        let mut log = TestLog::new(&with(policy));
        lines.iter().for_each(|line| drop(log.run(line)));
        snapshot_files(log.log.storage()).unwrap().iter().map(|file| file.offset.get()).collect()
    };
    let behind = BarrierPolicy { snapshots: BarrierSnapshots::BehindBarrier, ..BarrierPolicy::SOUND };
    let lines = ["source A", "copy 5.0#0", "coordinator BAR<A", "copy 5.0#0 BAR<A 6.0#0", "mirror BAR<B"];
    assert_eq!(offsets(behind, &lines), [2, 5, 6]);
    assert_eq!(offsets(BarrierPolicy { propagated: Propagated::Inert, ..behind }, &lines), [2, 5]);
    assert_eq!(offsets(BarrierPolicy { clears: Clears::Nothing, ..behind }, &lines), Vec::<i64>::new());
    assert_eq!(offsets(BarrierPolicy::SOUND, &lines), Vec::<i64>::new());
}

/// A broker without the rule took the log in and wrote a snapshot; a broker with it loads that snapshot. So the first start
/// under the rule has to be one without snapshots, after a crash: then all batches are met again.
#[test]
fn a_snapshot_that_was_written_without_the_rule() {
    let stock = check(&LogConfig::default(), &[("copy 5.0#0 | BAR<A", "0 | 1"), ("clean", "")], KEPT);
    let mut storage = stock.log.storage().clone();
    for recovery in [Recovery::Clean, Recovery::Unclean] {
        let (log, _) = PartitionLog::open(storage.clone(), with(BarrierPolicy::SOUND), recovery, NOW).unwrap();
        let revived = recovery == Recovery::Clean;
        assert_eq!(show_producers(log.producer_state()) == "{5:e0[0@0]}", revived, "{recovery:?}");
    }
    // Where the recovery point lies behind the barrier, a crash alone is not enough.
    let mut rolled = TestLog::new(&LogConfig::default());
    rolled.run("copy 5.0#0 | BAR<A");
    rolled.log.roll(NOW).unwrap();
    let options = OpenOptions { recovery_point: Offset(2), ..OpenOptions::new(Recovery::Unclean) };
    let mut reopened = |remove_snapshots: bool| {
        storage = rolled.log.storage().clone();
        for file in snapshot_files(&storage).unwrap().iter().filter(|_| remove_snapshots) {
            storage.remove(&file.name).unwrap();
        }
        let (log, _) = PartitionLog::open(storage.clone(), with(BarrierPolicy::SOUND), options, NOW).unwrap();
        show_producers(log.producer_state())
    };
    assert_eq!(reopened(false), "{5:e0[0@0]}");
    assert_eq!(reopened(true), "{}");
}

/// With the log start behind a barrier, a reload meets neither the barrier nor what is in front of it; the recovery of the
/// first segment meets both.
#[test]
fn a_log_start_behind_the_barrier() {
    let with_start = |policy: BarrierPolicy, recovery| {
        let mut log = TestLog::new(&with(policy));
        log.run("copy 5.0#0 | BAR<A | 6.0#0");
        log.run("hw 3");
        log.log.maybe_increment_log_start_offset(Offset(2)).unwrap();
        log.log.take_snapshot().unwrap();
        let live = show_producers(log.log.producer_state());
        let options = OpenOptions { log_start_offset: Offset(2), ..OpenOptions::new(recovery) };
        let (log, _) = PartitionLog::open(log.log.into_storage(), with(policy), options, NOW).unwrap();
        (live, show_producers(log.producer_state()))
    };
    let only_local = "{6:e0[0@2]}".to_owned();
    for recovery in [Recovery::Clean, Recovery::Unclean] {
        assert_eq!(with_start(BarrierPolicy::SOUND, recovery), (only_local.clone(), only_local.clone()), "{recovery:?}");
    }
    let applied_on = AppliedOn { segment_recovery: false, ..AppliedOn::EVERYWHERE };
    let without_recovery = BarrierPolicy { applied_on, ..BarrierPolicy::SOUND };
    let revived = "{5:e0[0@0] 6:e0[0@2]}".to_owned();
    assert_eq!(with_start(without_recovery, Recovery::Unclean), (only_local, revived));
}

/// Retention deletes from the front, so a barrier never goes before what it cleared, and its segment's snapshot goes with it.
#[test]
fn a_barrier_goes_with_its_segment() {
    let mut log = TestLog::new(&with(BarrierPolicy::SOUND));
    for (line, roll) in [("copy 5.0#0", true), ("copy BAR<A", true), ("copy 6.0#0", false)] {
        log.run(line);
        if roll {
            log.log.roll(NOW).unwrap();
        }
    }
    log.run("hw 3");
    for (start, deleted, batches) in [(1, 1, 2), (2, 1, 1)] {
        log.log.maybe_increment_log_start_offset(Offset(start)).unwrap();
        assert_eq!(log.log.delete_old_segments(NOW), Ok(deleted));
        assert_eq!(log.log.batches().unwrap().len(), batches);
        for recovery in [Recovery::Clean, Recovery::Unclean] {
            let options = OpenOptions { log_start_offset: Offset(start), ..OpenOptions::new(recovery) };
            let storage = log.log.storage().clone();
            let (log, _) = PartitionLog::open(storage, with(BarrierPolicy::SOUND), options, NOW).unwrap();
            assert_eq!(show_producers(log.producer_state()), "{6:e0[0@2]}", "{start} {recovery:?}");
        }
    }
}
