//! When the storage fails, the log is offline, and what was acknowledged is still there after recovery.
#![cfg(test)]

mod log_support;

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{AppendError, FetchIsolation, LogConfig, LogError, PartitionLog, ReadError, Recovery};
use cleanslate_log::mirror::{MirrorError, MirrorEvent, MirrorPartition, MirrorState, NamedDesign};
use cleanslate_log::storage::{FaultyStorage, MemoryStorage, StorageError};
use cleanslate_log::types::{LeaderEpoch, Offset};
use log_support::{NOW, batches, check, show};

const GROUPS: [&str; 5] = ["t5.0#0 AB5.0", "E1/6.0#0 E1/-", "E1/t5.0#1", "E1/AB5.0", "E2/6.0#1"];

/// Appends, snapshots, truncates and closes until something fails; returns the offset up to which all was acknowledged.
fn run(log: &mut PartitionLog<FaultyStorage>) -> (Offset, Option<StorageError>) {
    let path = ReplicationPath::IntraCluster;
    let mut acknowledged = Offset(0);
    let mut failure = None;
    for group in GROUPS {
        let bytes = batches(group, log.log_end_offset());
        match log.append_as_follower(bytes, LeaderEpoch(9), path, NOW) {
            Ok(result) => acknowledged = result.last_offset.plus(1),
            Err(AppendError::Storage(error)) => failure = failure.or(Some(error)),
            Err(other) => panic!("{other}"),
        }
        match log.take_snapshot() {
            Ok(_) => {}
            Err(LogError::Storage(error)) => failure = failure.or(Some(error)),
            Err(other) => panic!("{other}"),
        }
    }
    match log.truncate_to(Offset(6), NOW) {
        Ok(_) => acknowledged = acknowledged.min(Offset(6)),
        Err(LogError::Storage(error)) => failure = failure.or(Some(error)),
        Err(other) => panic!("{other}"),
    }
    if failure.is_some() {
        acknowledged = acknowledged.min(Offset(6)); // the truncation may have happened
    }
    match log.close_clean() {
        Ok(()) => {}
        Err(LogError::Storage(error)) => failure = failure.or(Some(error)),
        Err(other) => panic!("{other}"),
    }
    (acknowledged, failure)
}

#[test]
fn a_failure_takes_the_log_offline_and_loses_nothing_acknowledged() {
    let mut failures = 0;
    for changes in 0.. {
        let config = LogConfig::default();
        let created = PartitionLog::create(MemoryStorage::new(), config.clone(), NOW).unwrap().into_storage();
        let mut storage = FaultyStorage::over(created);
        storage.fail_after(changes);
        let clean = Recovery::Clean;
        let Ok((mut log, _)) = PartitionLog::open(storage, config.clone(), clean, NOW) else {
            continue;
        };
        let (acknowledged, failure) = run(&mut log);
        if let Some(failure) = &failure {
            failures += 1;
            let read = log.read(Offset(0), FetchIsolation::LogEnd, 1);
            assert_eq!(read, Err(ReadError::Storage(failure.clone())));
            let bytes = batches("-", log.log_end_offset());
            let path = ReplicationPath::IntraCluster;
            let append = log.append_as_follower(bytes, LeaderEpoch(9), path, NOW);
            assert_eq!(append, Err(AppendError::Storage(failure.clone())));
        }
        let image = log.into_storage().visible().clone();
        let (log, _) = PartitionLog::open(image, config, Recovery::Unclean, NOW).unwrap();
        assert!(log.log_end_offset() >= acknowledged, "after {changes}");
        show(&log);
        if failure.is_none() {
            assert_eq!(log.log_end_offset(), Offset(6));
            break;
        }
    }
    assert!(failures > 15, "{failures} failures");
}

#[test]
fn the_same_without_failures() {
    let lines = [
        ("copy t5.0#0 AB5.0 | E1/6.0#0 E1/- | E1/t5.0#1", "0..1 | 2..3 | 4"),
        ("copy E1/AB5.0 | E2/6.0#1", "5 | 6"),
        ("truncate 6", "cut"),
        ("clean", ""),
    ];
    check(&LogConfig::default(), &lines, "LEO 6 HW 0 LSO 0 {5:e0[1@4]c0 6:e0[0@2]} aborted 5/0/1/2 aborted 5/4/5/6");
}

/// Mirrors and stops, as the sound design does, until something fails.
fn mirror_and_stop(mirror: &mut MirrorPartition<FaultyStorage>) -> Result<(), MirrorError> {
    mirror.start("A")?;
    mirror.apply(MirrorEvent::LogAligned { source_epoch_ahead: false })?;
    mirror.mirror_append(batches("5.0#0 t6.0#0", Offset(0)), LeaderEpoch(0), NOW)?;
    mirror.apply(MirrorEvent::Stop)?;
    for step in mirror.design().stop.order.clone() {
        mirror.run_stop_step(step, LeaderEpoch(1), NOW)?;
    }
    Ok(())
}

/// Whatever fails in whichever step: what is writable afterwards has a barrier, and what is not can be stopped again.
#[test]
fn a_failure_while_a_mirror_stops() {
    let design = NamedDesign::by_name("sound").unwrap();
    let config = design.log_config(LogConfig::default());
    let mut failures = 0;
    for changes in 0.. {
        let created = PartitionLog::create(MemoryStorage::new(), config.clone(), NOW).unwrap().into_storage();
        let mut storage = FaultyStorage::over(created);
        storage.fail_after(changes);
        let opened = MirrorPartition::open(storage, config.clone(), design.mirror.clone(), Recovery::Clean, NOW);
        let Ok((mut mirror, _)) = opened else { continue };
        let result = mirror_and_stop(&mut mirror);
        let before = mirror.state();
        let image = mirror.into_log().into_storage().visible().clone();
        let (mut mirror, _) = MirrorPartition::open(image, config.clone(), design.mirror.clone(), Recovery::Unclean, NOW).unwrap();
        assert_eq!(mirror.state(), before, "after {changes}: what counts is stored");
        if result.is_err() {
            failures += 1;
        }
        if mirror.state() == MirrorState::Stopping {
            for step in mirror.design().stop.order.clone() {
                mirror.run_stop_step(step, LeaderEpoch(2), NOW).unwrap();
            }
        }
        if mirror.state() == MirrorState::Stopped && mirror.log().log_end_offset() > Offset(0) {
            assert_eq!(mirror.log().producer_state().active_producers().len(), 0, "after {changes}");
            assert_eq!(mirror.log().producer_state().ongoing_transactions().len(), 0, "after {changes}");
            assert_eq!(mirror.metadata().last_mirrored_epoch, Some(LeaderEpoch(0)), "after {changes}");
        }
        if result.is_ok() {
            break;
        }
    }
    assert!(failures > 8, "{failures} failures");
}
