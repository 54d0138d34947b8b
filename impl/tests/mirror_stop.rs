//! How a mirror stops: the steps in the order of each design, failures, crashes between any two steps, elections.
#![cfg(test)]

mod log_support;

use MirrorState::{Mirroring, Stopped, Stopping};
use cleanslate_log::barrier::{BarrierPolicy, Clears};
use cleanslate_log::log::{LogConfig, PartitionLog, Recovery};
use cleanslate_log::mirror::{
    Acknowledgement, MirrorDesign, MirrorEffect, MirrorError, MirrorEvent, MirrorFetch, MirrorPartition, MirrorState, NamedDesign,
    Rerun, StepDone, StepFailure, StopCommand, StopRules, StopSequence, StopStep, TaskCheck, UnknownSource,
};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::BatchReader;
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset};
use log_support::{NOW, batch, batches, check, show};

type Mirror = MirrorPartition<MemoryStorage>;

const SOURCE: LeaderEpoch = LeaderEpoch(5);
const OWN: LeaderEpoch = LeaderEpoch(6);

fn named(name: &str) -> NamedDesign {
    NamedDesign::by_name(name).unwrap()
}

/// A mirror of cluster A whose log ends in an open transaction, all of it replicated.
fn mirroring(design: &NamedDesign) -> Mirror {
    let config = design.log_config(LogConfig::default());
    let log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
    let mut mirror = MirrorPartition::new(log, design.mirror.clone()).unwrap();
    mirror.start("A").unwrap();
    mirror.apply(MirrorEvent::LogAligned { source_epoch_ahead: false }).unwrap();
    mirror.mirror_append(batches("E5/5.0#0 E5/t6.0#0 E5/5.0#1", Offset(0)), SOURCE, NOW).unwrap();
    mirror.log_mut().update_high_watermark(Offset(3));
    mirror
}

fn stopping(design: &NamedDesign) -> Mirror {
    let mut mirror = mirroring(design);
    let effects = mirror.apply(MirrorEvent::Stop).unwrap();
    assert_eq!(effects, [MirrorEffect::StoreStatus, MirrorEffect::RunStopSequence]);
    mirror
}

/// Drives the sequence to its end, with every append replicated at once.
fn run(mirror: &mut Mirror, epoch: LeaderEpoch) -> Vec<StopStep> {
    let mut sequence = StopSequence::new(mirror.design().stop.clone());
    let mut steps = Vec::new();
    loop {
        match sequence.command() {
            StopCommand::Run(step) | StopCommand::RunLater(step) => {
                steps.push(step);
                match mirror.run_stop_command(step, epoch, NOW) {
                    Ok(done) => sequence.done(done.appended),
                    Err(_) => sequence.failed(),
                }
            }
            StopCommand::AwaitHighWatermark(offset) => {
                mirror.log_mut().update_high_watermark(offset);
                sequence.high_watermark(offset);
            }
            StopCommand::Done | StopCommand::Halted => return steps,
        }
    }
}

fn client_append(mirror: &mut Mirror, spec: &str) -> Result<bool, String> {
    let bytes = batch(spec, Offset(0)).bytes().clone();
    let result = mirror.append_as_leader(bytes, AppendOrigin::Client, OWN, TransactionVersion::V0, NOW);
    result.map(|result| result.duplicate).map_err(|error| error.kafka_class().to_owned())
}

/// Up to the last stable offset an open transaction stays away, and so does all behind it.
#[test]
fn what_each_design_fetches() {
    let source = check(
        &LogConfig::default(),
        &[("copy E5/5.0#0 | E5/t6.0#0 | E5/5.0#1", "0 | 1 | 2"), ("hw 3", "")],
        "LEO 3 HW 3 LSO 1 {5:e0[0@0,1@2] 6:e0[0@1]txn@1}",
    );
    for (name, batches) in [("raw", 1), ("raw-barrier", 1), ("raw-barrier-abort", 3), ("sound", 3)] {
        let design = named(name);
        let log = PartitionLog::create(MemoryStorage::new(), design.log_config(LogConfig::default()), NOW).unwrap();
        let mirror = MirrorPartition::new(log, design.mirror).unwrap();
        let MirrorFetch::Records(bytes) = mirror.fetch(&source.log, usize::MAX).unwrap() else { panic!("{name}") };
        assert_eq!(BatchReader::new(bytes).count(), batches, "{name}");
    }
}

/// What is left of [5, open 6, 5] by each design, and what a client gets that was given id 5 as well.
#[test]
fn every_named_design_stops() {
    for (name, state, client) in [
        ("raw", "LEO 3 HW 3 LSO 1 {5:e0[0@0,1@2] 6:e0[0@1]txn@1}", Ok(true)),
        ("negate", "LEO 1 HW 1 LSO 1 {-7:e0[0@0]}", Ok(false)),
        ("negate-once", "LEO 1 HW 1 LSO 1 {-7:e0[0@0]}", Ok(false)),
        ("negate-once-barrier", "LEO 2 HW 1 LSO 1 {}", Ok(false)),
        ("raw-barrier-inert", "LEO 2 HW 1 LSO 1 {}", Ok(false)),
        ("raw-barrier", "LEO 2 HW 1 LSO 1 {}", Ok(false)),
        ("raw-barrier-abort", "LEO 5 HW 5 LSO 5 {} aborted 6/1/3/4", Ok(false)),
        ("sound", "LEO 5 HW 5 LSO 5 {} aborted 6/1/3/4", Ok(false)),
    ] {
        let design = named(name);
        assert_eq!(design.name, name);
        let mut mirror = stopping(&design);
        assert_eq!(run(&mut mirror, OWN), design.mirror.stop.order, "{name}");
        assert_eq!((mirror.state(), show(mirror.log()).as_str()), (Stopped, state), "{name}");
        assert_eq!(client_append(&mut mirror, "5.0#0"), client, "{name}");
    }
    assert_eq!(NamedDesign::by_name("rawer"), None);
}

#[test]
fn the_pure_sequence() {
    let rules = StopRules {
        order: vec![StopStep::RemoveFetcher, StopStep::WriteBarrier, StopStep::BecomeWritable],
        acknowledgement: Acknowledgement::InSyncReplicas,
        ..StopRules::default()
    };
    let mut sequence = StopSequence::new(rules.clone());
    assert_eq!(sequence.command(), StopCommand::Run(StopStep::RemoveFetcher));
    sequence.done(None);
    assert_eq!(sequence.command(), StopCommand::Run(StopStep::WriteBarrier));
    sequence.failed();
    assert_eq!(sequence.command(), StopCommand::RunLater(StopStep::WriteBarrier));
    sequence.done(Some(Offset(7)));
    for below in [5, 6] {
        sequence.high_watermark(Offset(below));
        assert_eq!(sequence.command(), StopCommand::AwaitHighWatermark(Offset(7)));
    }
    // While it waits, no step is under way that could be done again.
    sequence.done(None);
    assert_eq!(sequence.command(), StopCommand::AwaitHighWatermark(Offset(7)));
    sequence.high_watermark(Offset(7));
    assert_eq!(sequence.command(), StopCommand::Run(StopStep::BecomeWritable));
    sequence.done(None);
    assert_eq!(sequence.command(), StopCommand::Done);
    sequence.failed();
    assert_eq!(sequence.command(), StopCommand::Done);
    // Where the leader's word is enough, nothing waits.
    let mut sequence = StopSequence::new(StopRules { acknowledgement: Acknowledgement::Leader, ..rules });
    sequence.done(None);
    sequence.done(Some(Offset(7)));
    assert_eq!(sequence.command(), StopCommand::Run(StopStep::BecomeWritable));
}

#[test]
fn what_a_failed_step_leads_to() {
    use StopStep::{AbortOpenTransactions, BecomeWritable, WriteBarrier};
    for (abort_failure, step_failure, failing, then) in [
        (StepFailure::Ignore, StepFailure::Retry, AbortOpenTransactions, StopCommand::Run(WriteBarrier)),
        (StepFailure::Retry, StepFailure::Ignore, AbortOpenTransactions, StopCommand::RunLater(AbortOpenTransactions)),
        (StepFailure::Halt, StepFailure::Ignore, AbortOpenTransactions, StopCommand::Halted),
        (StepFailure::Retry, StepFailure::Ignore, WriteBarrier, StopCommand::Run(BecomeWritable)),
        (StepFailure::Ignore, StepFailure::Retry, WriteBarrier, StopCommand::RunLater(WriteBarrier)),
        (StepFailure::Ignore, StepFailure::Halt, WriteBarrier, StopCommand::Halted),
    ] {
        let order = vec![AbortOpenTransactions, WriteBarrier, BecomeWritable];
        let mut sequence = StopSequence::new(StopRules { order, abort_failure, step_failure, ..StopRules::default() });
        if failing == WriteBarrier {
            sequence.done(None);
        }
        sequence.failed();
        assert_eq!(sequence.command(), then, "{failing:?}");
    }
}

/// A step with no markers to append waits for nothing.
#[test]
fn a_step_tells_what_it_appended() {
    let mut mirror = stopping(&named("sound"));
    let mut step = |step| mirror.run_stop_command(step, OWN, NOW).unwrap();
    assert_eq!(step(StopStep::RemoveFetcher), StepDone { changed: true, appended: None });
    assert_eq!(step(StopStep::RecordLastMirroredEpoch), StepDone { changed: true, appended: None });
    assert_eq!(step(StopStep::BumpLeaderEpoch), StepDone { changed: true, appended: None });
    assert_eq!(step(StopStep::AbortOpenTransactions), StepDone { changed: true, appended: Some(Offset(4)) });
    assert_eq!(step(StopStep::AbortOpenTransactions), StepDone { changed: false, appended: None });
    assert_eq!(step(StopStep::WriteBarrier), StepDone { changed: true, appended: Some(Offset(5)) });
}

/// Crash after each step, and begin again: once as the same leader, once under the epoch of an election.
#[test]
fn a_crash_between_any_two_steps() {
    for name in ["raw-barrier", "raw-barrier-abort", "sound"] {
        let design = named(name);
        for crash_after in 0..design.mirror.stop.order.len() {
            let mut mirror = stopping(&design);
            for step in &design.mirror.stop.order[..crash_after] {
                mirror.run_stop_command(*step, OWN, NOW).unwrap();
                mirror.log_mut().update_high_watermark(Offset(9));
            }
            let config = mirror.log().config().clone();
            let storage = mirror.into_log().into_storage();
            let (mut mirror, _) = MirrorPartition::open(storage, config, design.mirror.clone(), Recovery::Unclean, NOW).unwrap();
            mirror.log_mut().update_high_watermark(Offset(9));
            assert_eq!((mirror.state(), mirror.is_fetching()), (Stopping, false), "{name} after {crash_after}");
            assert_eq!(client_append(&mut mirror, "5.0#0"), Err("ReadOnlyTopicException".to_owned()));
            let effects = mirror.elected(LeaderEpoch(7)).unwrap();
            assert_eq!(effects.last(), Some(&MirrorEffect::RunStopSequence));
            assert_eq!(run(&mut mirror, LeaderEpoch(7)), design.mirror.stop.order, "{name} after {crash_after}");
            assert_eq!(mirror.state(), Stopped);
            let last_mirrored = mirror.metadata().last_mirrored_epoch;
            match name {
                "raw-barrier" => assert_eq!(last_mirrored, None),
                // The epoch of the election, or the one that the first run had bumped to.
                "raw-barrier-abort" => assert_eq!(last_mirrored, Some(LeaderEpoch(7)), "{crash_after}"),
                _ => assert_eq!(last_mirrored, Some(SOURCE), "{crash_after}"),
            }
            assert_eq!(mirror.log().producer_state().active_producers().len(), 0, "{name} after {crash_after}");
            assert_eq!(mirror.log().producer_state().ongoing_transactions().len(), 0);
            assert_eq!(client_append(&mut mirror, "5.0#0"), Ok(false), "{name} after {crash_after}");
        }
    }
}

/// A second run that records anew takes the first run's own epoch for the source's: the mirrored cluster would keep what
/// it wrote in its own epoch 6.
#[test]
fn the_last_mirrored_epoch_of_a_second_run() {
    for (name, last_mirrored) in [("raw-barrier-abort", 6), ("sound", 5)] {
        let design = named(name);
        let mut mirror = stopping(&design);
        for step in &design.mirror.stop.order[..5] {
            mirror.run_stop_command(*step, OWN, NOW).unwrap();
        }
        assert_eq!(mirror.metadata().last_mirrored_epoch, Some(SOURCE));
        mirror.remove_fetcher();
        mirror.record_last_mirrored_epoch().unwrap();
        assert_eq!(mirror.metadata().last_mirrored_epoch, Some(LeaderEpoch(last_mirrored)), "{name}");
    }
    // The same of the offset; and what was recorded never lies beyond the log.
    for (rerun, recorded) in [(Rerun::RecordAgain, 4), (Rerun::KeepRecorded, 3)] {
        let mut design = named("raw-barrier");
        design.mirror.stop.rerun = rerun;
        let mut mirror = stopping(&design);
        mirror.remove_fetcher();
        assert_eq!(mirror.record_last_mirrored_offset(), Ok(Offset(3)));
        mirror.write_barrier(None, OWN, NOW).unwrap();
        assert_eq!(mirror.record_last_mirrored_offset(), Ok(Offset(recorded)), "{rerun:?}");
        mirror.log_mut().truncate_to(Offset(2), NOW).unwrap();
        assert_eq!(mirror.record_last_mirrored_offset(), Ok(Offset(2)));
    }
}

/// The second run may be that of a leader whose log is shorter.
#[test]
fn what_was_recorded_lies_within_the_log() {
    let mut mirror = stopping(&named("sound"));
    mirror.remove_fetcher();
    mirror.log_mut().truncate_to(Offset(0), NOW).unwrap();
    mirror.append_as_follower(batches("E3/- E5/-", Offset(0)), SOURCE, NOW).unwrap();
    assert_eq!(mirror.record_last_mirrored_epoch(), Ok(Some(SOURCE)));
    mirror.log_mut().truncate_to(Offset(1), NOW).unwrap();
    assert_eq!(mirror.record_last_mirrored_epoch(), Ok(Some(LeaderEpoch(3))));
}

/// Bumped first, the epoch is in the log before the last mirrored one is read from it.
#[test]
fn the_epoch_is_recorded_before_it_is_bumped() {
    let order = |first, second| vec![StopStep::RemoveFetcher, first, second, StopStep::WriteBarrier, StopStep::BecomeWritable];
    let (record, bump) = (StopStep::RecordLastMirroredEpoch, StopStep::BumpLeaderEpoch);
    for (order, epoch) in [(order(record, bump), 5), (order(bump, record), 6)] {
        let mut design = named("raw-barrier-abort");
        design.mirror.stop.order = order;
        let mut mirror = stopping(&design);
        run(&mut mirror, OWN);
        assert_eq!(mirror.metadata().last_mirrored_epoch, Some(LeaderEpoch(epoch)));
    }
}

#[test]
fn the_bumped_epoch_is_above_the_mirrored_ones() {
    let mut mirror = stopping(&named("sound"));
    mirror.remove_fetcher();
    for found in [LeaderEpoch(4), SOURCE] {
        let error = mirror.bump_leader_epoch(found).unwrap_err();
        assert_eq!(error, MirrorError::LeaderEpochNotRaised { latest: SOURCE, found });
        assert_eq!(error.kafka_class(), "IllegalStateException");
    }
    // Twice is once, as long as nothing was appended under it.
    mirror.bump_leader_epoch(OWN).unwrap();
    mirror.bump_leader_epoch(OWN).unwrap();
    assert_eq!(mirror.log().end_offset_for_epoch(SOURCE), Some((SOURCE, Offset(3))));
    mirror.write_barrier(None, OWN, NOW).unwrap_err();
    mirror.abort_open_transactions(OWN, NOW).unwrap();
    assert!(mirror.bump_leader_epoch(OWN).is_err());
}

/// Markers that cannot be appended, and a barrier nevertheless: nothing can end the transaction any more.
#[test]
fn a_barrier_in_spite_of_failed_abort_markers() {
    let skip_aborts = |mirror: &mut Mirror| {
        mirror.remove_fetcher();
        mirror.bump_leader_epoch(OWN).unwrap();
        mirror.write_barrier(Some("A"), OWN, NOW).map(|_| ())
    };
    let mut latest = stopping(&named("raw-barrier-abort"));
    skip_aborts(&mut latest).unwrap();
    assert_eq!(latest.abort_open_transactions(OWN, NOW), Ok(Vec::new()));
    latest.log_mut().update_high_watermark(Offset(4));
    assert_eq!(show(latest.log()), "LEO 4 HW 4 LSO 1 {} open@1");
    // The sound design refuses, and the markers can be tried again.
    let mut sound = stopping(&named("sound"));
    let refused = skip_aborts(&mut sound).unwrap_err();
    assert_eq!(refused.kafka_class(), "InvalidTxnStateException");
    assert_eq!(
        refused.to_string(),
        "barrier at offset 3: the transaction of producer 6 that began at offset 1 is open, expected none"
    );
    assert_eq!(sound.abort_open_transactions(OWN, NOW).unwrap().len(), 1);
    sound.write_barrier(Some("A"), OWN, NOW).unwrap();
}

/// A barrier that is tried again after the state has moved on, or the leader has changed.
#[test]
fn a_task_of_an_earlier_time() {
    let stop_with = |task_check| {
        let mut design = named("raw-barrier-abort");
        design.mirror.stop.task_check = task_check;
        let mut mirror = stopping(&design);
        mirror.elected(OWN).unwrap();
        let task = mirror.stop_task(StopStep::WriteBarrier);
        run(&mut mirror, LeaderEpoch(7));
        assert_eq!(client_append(&mut mirror, "5.0#0"), Ok(false));
        let result = mirror.run_stop_task(&task, NOW);
        (mirror, result)
    };
    // It passes the open gate, behind a local batch, and takes the local producer with it.
    let (mut mirror, result) = stop_with(TaskCheck::Unchecked);
    assert_eq!(result, Ok(StepDone { changed: true, appended: Some(Offset(7)) }));
    assert_eq!(mirror.log().producer_state().active_producers().len(), 0);
    assert_eq!(client_append(&mut mirror, "5.0#0"), Ok(false), "a resend is not recognised");
    let (mut mirror, result) = stop_with(TaskCheck::Checked);
    assert_eq!(result.unwrap_err().kafka_class(), "FencedLeaderEpochException");
    assert_eq!(client_append(&mut mirror, "5.0#0"), Ok(true));
    // Another leadership, or none, in the same state.
    let mut mirror = stopping(&named("sound"));
    mirror.elected(OWN).unwrap();
    mirror.remove_fetcher();
    mirror.abort_open_transactions(OWN, NOW).unwrap();
    let task = mirror.stop_task(StopStep::WriteBarrier);
    mirror.apply(MirrorEvent::LeaderResigned).unwrap();
    assert!(matches!(mirror.run_stop_task(&task, NOW), Err(MirrorError::StaleTask { .. })));
    mirror.elected(LeaderEpoch(8)).unwrap();
    assert!(matches!(mirror.run_stop_task(&task, NOW), Err(MirrorError::StaleTask { .. })));
    let task = mirror.stop_task(StopStep::WriteBarrier);
    assert_eq!(mirror.run_stop_task(&task, NOW).unwrap().appended, Some(Offset(5)));
    // A failure and its retry are another state, and come back to the same.
    mirror.apply(MirrorEvent::Failure { retryable: true }).unwrap();
    mirror.apply(MirrorEvent::Retry).unwrap();
    assert!(matches!(mirror.run_stop_task(&task, NOW), Err(MirrorError::StaleTask { .. })));
}

#[test]
fn a_barrier_without_a_known_source() {
    for (unknown_source, client, state) in [
        // The inherited entry is still there.
        (UnknownSource::Skip, Err("OutOfOrderSequenceException".to_owned()), Stopped),
        (UnknownSource::Write, Ok(false), Stopped),
        (UnknownSource::Fail, Err("ReadOnlyTopicException".to_owned()), Stopping),
    ] {
        let mut design = named("sound");
        design.mirror.stop.unknown_source = unknown_source;
        design.mirror.stop.step_failure = StepFailure::Halt;
        let mut mirror = stopping(&design);
        mirror.log_mut().set_mirror_source(None).unwrap();
        let storage = mirror.into_log().into_storage();
        let config = design.log_config(LogConfig::default());
        let (mut mirror, _) = MirrorPartition::open(storage, config, design.mirror.clone(), Recovery::Unclean, NOW).unwrap();
        run(&mut mirror, OWN);
        assert_eq!(mirror.state(), state, "{unknown_source:?}");
        assert_eq!(client_append(&mut mirror, "5.0#0"), client, "{unknown_source:?}");
    }
}

#[test]
fn a_mirror_without_batches_stops() {
    let design = named("sound");
    let config = design.log_config(LogConfig::default());
    let log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
    let mut mirror = MirrorPartition::new(log, design.mirror).unwrap();
    mirror.start("A").unwrap();
    mirror.apply(MirrorEvent::Stop).unwrap();
    run(&mut mirror, LeaderEpoch(0));
    assert_eq!(mirror.metadata().last_mirrored_epoch, None);
    assert_eq!((mirror.state(), show(mirror.log()).as_str()), (Stopped, "LEO 1 HW 1 LSO 1 {}"));
}

/// A pause keeps producer state, and a stop of a paused mirror has all the steps of a stop.
#[test]
fn pause_resume_and_stop() {
    let mut mirror = mirroring(&named("sound"));
    let before = show(mirror.log());
    assert_eq!(mirror.apply(MirrorEvent::Pause).unwrap(), [MirrorEffect::StoreStatus, MirrorEffect::RemoveFetcher]);
    assert!(!mirror.is_fetching());
    let more = batches("E5/5.0#2", Offset(3));
    assert!(matches!(mirror.mirror_append(more.clone(), SOURCE, NOW), Err(MirrorError::WrongState { .. })));
    mirror.apply(MirrorEvent::FetcherRemoved).unwrap();
    assert!(matches!(mirror.apply(MirrorEvent::Pause), Err(MirrorError::IllegalEvent { .. })));
    mirror.apply(MirrorEvent::Resume).unwrap();
    assert_eq!(show(mirror.log()), before);
    mirror.mirror_append(more, SOURCE, NOW).unwrap();
    mirror.apply(MirrorEvent::Pause).unwrap();
    mirror.apply(MirrorEvent::FetcherRemoved).unwrap();
    mirror.apply(MirrorEvent::Stop).unwrap();
    run(&mut mirror, OWN);
    assert_eq!(show(mirror.log()), "LEO 6 HW 6 LSO 6 {} aborted 6/1/4/5");
}

/// A stop that fails before its first step has removed the fetcher, and one that ends has.
#[test]
fn no_fetcher_outlives_mirroring() {
    let mut mirror = stopping(&named("sound"));
    assert!(mirror.is_fetching(), "the first step removes it");
    assert_eq!(mirror.apply(MirrorEvent::StopSequenceDone), Err(MirrorError::StillFetching));
    assert_eq!(mirror.state(), Stopping);
    mirror.apply(MirrorEvent::Failure { retryable: true }).unwrap();
    assert!(!mirror.is_fetching());
    mirror.apply(MirrorEvent::Retry).unwrap();
    assert_eq!((mirror.state(), mirror.is_fetching()), (Stopping, false));
    mirror.apply(MirrorEvent::StopSequenceDone).unwrap();
    assert_eq!(mirror.state(), Stopped);
}

/// A leader whose epoch is below the mirrored ones would make the log forget those.
#[test]
fn a_lower_epoch_is_not_noted() {
    let mut mirror = stopping(&named("raw"));
    run(&mut mirror, LeaderEpoch(0));
    mirror.elected(LeaderEpoch(2)).unwrap();
    assert_eq!(mirror.log().leader_epochs().latest_epoch(), Some(SOURCE));
    assert_eq!(mirror.fence().leader_epoch, Some(LeaderEpoch(2)));
    mirror.elected(OWN).unwrap();
    assert_eq!(mirror.log().leader_epochs().latest_epoch(), Some(OWN));
}

/// What an earlier stop recorded says nothing about the next.
#[test]
fn a_new_start_forgets_what_was_recorded() {
    let mut mirror = stopping(&named("sound"));
    run(&mut mirror, OWN);
    assert_eq!(mirror.metadata().last_mirrored_epoch, Some(SOURCE));
    mirror.start("A").unwrap();
    assert_eq!(mirror.metadata().last_mirrored_epoch, None);
    assert!(matches!(mirror.start("A"), Err(MirrorError::IllegalEvent { .. })));
    for event in [MirrorEvent::Start, MirrorEvent::LeaderElected] {
        assert!(matches!(mirror.apply(event), Err(MirrorError::IllegalEvent { .. })), "they need more than the event");
    }
}

/// The transition is stored before it counts.
#[test]
fn a_status_has_a_version() {
    let mut mirror = mirroring(&named("sound"));
    let before = mirror.fence();
    mirror.apply(MirrorEvent::LeaderResigned).unwrap();
    assert_eq!(mirror.fence(), before, "nothing was stored");
    mirror.apply(MirrorEvent::Failure { retryable: true }).unwrap();
    assert_eq!(mirror.fence().state_epoch, before.state_epoch + 1);
    mirror.apply(MirrorEvent::Retry).unwrap();
    assert_eq!((mirror.state(), mirror.is_fetching()), (Mirroring, true));
    assert_eq!(mirror.metadata().failed_attempts.0, 1);
    // A batch that arrives is a success.
    mirror.mirror_append(batches("E5/5.0#2", Offset(3)), SOURCE, NOW).unwrap();
    assert_eq!(mirror.metadata().failed_attempts.0, 0);
}

/// The prototype's other orders: writable before the barrier, and a barrier in front of the truncation.
#[test]
fn unsafe_orders() {
    use StopStep::{BecomeWritable, RemoveFetcher, TruncateToLso, WriteBarrier};
    let all = BarrierPolicy { clears: Clears::AllIds, ..BarrierPolicy::default() };
    let design = |order: &[StopStep]| NamedDesign {
        barrier: all,
        mirror: MirrorDesign { stop: StopRules { order: order.to_vec(), ..StopRules::default() }, ..MirrorDesign::default() },
        ..named("raw-barrier")
    };
    // A partition that is writable first: the barrier step belongs to STOPPING, so the client meets the mirrored entry.
    let mut mirror = stopping(&design(&[RemoveFetcher, BecomeWritable, WriteBarrier]));
    mirror.remove_fetcher();
    mirror.become_writable().unwrap();
    assert_eq!(client_append(&mut mirror, "5.0#0"), Ok(true), "taken for a resend of the mirrored batch");
    assert!(matches!(mirror.write_barrier(None, OWN, NOW), Err(MirrorError::WrongState { .. })));
    // A barrier that the truncation cuts off again.
    let mut mirror = stopping(&design(&[RemoveFetcher, WriteBarrier, TruncateToLso, BecomeWritable]));
    run(&mut mirror, OWN);
    assert_eq!(show(mirror.log()), "LEO 1 HW 1 LSO 1 {}");
    let batches = mirror.log().batches().unwrap();
    assert!(batches.iter().all(|batch| !batch.is_control()), "no barrier between mirrored and local batches");
}
