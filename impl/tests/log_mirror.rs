//! A partition that is a mirror: states, gate, mapping of ids, and the stop sequence.
#![cfg(test)]

mod log_support;

use MirrorState::{Failed, LogAlignment, Mirroring, Paused, Stopped, Stopping};
use cleanslate_log::barrier::{BarrierPolicy, Clears};
use cleanslate_log::log::{FetchIsolation, LogConfig, PartitionLog, Recovery};
use cleanslate_log::mirror::{
    Alignment, FailedAttempts, FetchBound, MetadataError, MirrorDesign, MirrorError, MirrorMetadata, MirrorPartition, MirrorState,
    PidMapping, StopStep,
};
use cleanslate_log::psm::{AppendOrigin, ProducerIdVisibility, TransactionVersion};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerId};
use log_support::{NOW, batch, batches, check, show, show_producers};

const EPOCH: LeaderEpoch = LeaderEpoch(9);

fn config() -> LogConfig {
    LogConfig { barrier: BarrierPolicy { clears: Clears::AllIds, ..BarrierPolicy::default() }, ..LogConfig::default() }
}

fn partition(design: MirrorDesign) -> MirrorPartition<MemoryStorage> {
    let log = PartitionLog::create(MemoryStorage::new(), config(), NOW).unwrap();
    MirrorPartition::new(log, design).unwrap()
}

/// A mirror of cluster A that fetches.
fn mirror(design: MirrorDesign) -> MirrorPartition<MemoryStorage> {
    let mut partition = partition(design);
    partition.start("A").unwrap();
    partition.transition(Mirroring).unwrap();
    partition
}

#[test]
fn names_of_states_are_read_as_they_are_shown() {
    for state in MirrorState::ALL {
        assert_eq!(state.to_string().parse(), Ok(state));
    }
    assert_eq!("PREPARING".parse(), Ok(LogAlignment));
    assert_eq!(LogAlignment.to_string(), "LOG_ALIGNMENT");
    assert!("Mirroring".parse::<MirrorState>().is_err());
}

#[test]
fn a_failed_mirror_goes_back_to_the_state_that_failed() {
    let mut partition = mirror(MirrorDesign::default());
    partition.transition(Failed).unwrap();
    assert!(!partition.is_fetching());
    let error = partition.transition(Paused).unwrap_err();
    assert!(matches!(error, MirrorError::IllegalTransition { .. }));
    partition.transition(Mirroring).unwrap();
    assert_eq!((partition.state(), partition.is_fetching()), (Mirroring, true));
}

#[test]
fn the_gate() {
    let specs = ["5.0#0", "CM5.0", "AB5.0", "BAR<A", "CTL9"];
    let passes = |partition: &MirrorPartition<MemoryStorage>, spec: &str, origin| {
        let mut partition = partition.clone();
        let bytes = batch(spec, Offset(0)).bytes().clone();
        let tv = TransactionVersion::V0;
        let result = partition.append_as_leader(bytes, origin, EPOCH, tv, NOW);
        result.err().map(|error| error.kafka_class()) != Some("ReadOnlyTopicException")
    };
    let mut partition = partition(MirrorDesign::default());
    for spec in specs {
        assert!(passes(&partition, spec, AppendOrigin::Coordinator));
    }
    assert!(passes(&partition, "5.0#0", AppendOrigin::Client));
    partition.start("A").unwrap();
    for state in [LogAlignment, Mirroring, Paused, Failed] {
        partition.transition(state).unwrap();
        assert_eq!(partition.state(), state);
        for spec in specs {
            for origin in [AppendOrigin::Client, AppendOrigin::Coordinator] {
                assert!(!passes(&partition, spec, origin), "{state} {spec}");
            }
        }
    }
    partition.transition(Stopping).unwrap();
    for spec in specs {
        let may = ["AB5.0", "BAR<A"].contains(&spec);
        assert_eq!(passes(&partition, spec, AppendOrigin::Coordinator), may);
        assert!(!passes(&partition, spec, AppendOrigin::Client), "{spec}");
    }
    partition.transition(Stopped).unwrap();
    assert!(passes(&partition, "5.0#0", AppendOrigin::Client));
}

#[test]
fn mapping_of_ids() {
    use PidMapping::{NegateEveryHop, NegateNonNegative, None};
    for (mapping, id, mapped) in [
        (None, 5, 5),
        (None, -7, -7),
        (NegateEveryHop, 5, -7),
        (NegateEveryHop, -7, 5),
        (NegateEveryHop, -1, -1),
        (NegateEveryHop, 0, -2),
        (NegateNonNegative, 5, -7),
        (NegateNonNegative, -7, -7),
        (NegateNonNegative, -1, -1),
        (NegateNonNegative, 0, -2),
        (NegateEveryHop, i64::MAX, i64::MAX),
        (NegateEveryHop, i64::MIN, i64::MAX - 1),
    ] {
        assert_eq!(mapping.map(ProducerId(id)), ProducerId(mapped));
    }
}

#[test]
fn a_mirror_stores_mapped_ids_with_checksums_of_their_own() {
    let design = MirrorDesign { pid_mapping: PidMapping::NegateNonNegative, ..MirrorDesign::default() };
    let mut partition = mirror(design);
    let from_source = batches("5.0#0 - CM0.0 -7.0#0 BAR<Z", Offset(0));
    partition.mirror_append(from_source.clone(), EPOCH, NOW).unwrap();
    let stored = partition.log().batches().unwrap();
    let ids: Vec<i64> = stored.iter().map(|b| b.producer_id().get()).collect();
    assert_eq!(ids, [-7, -1, -2, -7, -1]);
    for batch in &stored {
        batch.ensure_valid().unwrap();
    }
    // What is damaged stays so.
    let mut damaged = batches("5.0#1", Offset(5)).to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let error = partition.mirror_append(damaged.into(), EPOCH, NOW).unwrap_err();
    assert_eq!(error.kafka_class(), "CorruptRecordException");
    // Without mapping, bytes are stored as they came.
    let mut raw = mirror(MirrorDesign::default());
    raw.mirror_append(from_source.clone(), EPOCH, NOW).unwrap();
    let all = raw.log().read(Offset(0), FetchIsolation::LogEnd, usize::MAX);
    assert_eq!(all.unwrap(), from_source);
}

#[test]
fn only_a_fetching_mirror_appends_what_it_fetched() {
    let bytes = batches("5.0#0", Offset(0));
    let mut partition = partition(MirrorDesign::default());
    assert!(partition.mirror_append(bytes.clone(), EPOCH, NOW).is_err());
    partition.start("A").unwrap();
    assert!(partition.mirror_append(bytes.clone(), EPOCH, NOW).is_err());
    partition.transition(Mirroring).unwrap();
    partition.mirror_append(bytes, EPOCH, NOW).unwrap();
    let next = batches("5.0#1", Offset(1));
    partition.remove_fetcher();
    assert!(partition.mirror_append(next.clone(), EPOCH, NOW).is_err());
    // A follower of the same cluster goes on.
    partition.append_as_follower(next, EPOCH, NOW).unwrap();
    assert_eq!(partition.log().log_end_offset(), Offset(2));
}

#[test]
fn the_stop_sequence_of_the_newer_text() {
    let source = check(
        &LogConfig::default(),
        &[("copy 5.0#0 | t6.0#0 | 5.0#1", "0 | 1 | 2"), ("hw 3", "")],
        "LEO 3 HW 3 LSO 1 {5:e0[0@0,1@2] 6:e0[0@1]txn@1}",
    );
    let mut mirror = mirror(MirrorDesign { fetch_bound: FetchBound::Hw, ..MirrorDesign::default() });
    let fetched = mirror.fetch_from(&source.log, usize::MAX).unwrap();
    mirror.mirror_append(fetched, EPOCH, NOW).unwrap();
    mirror.log_mut().update_high_watermark(Offset(3));
    mirror.transition(Stopping).unwrap();
    for step in mirror.design().stop.order.clone() {
        assert_eq!(mirror.run_stop_step(step, EPOCH, NOW), Ok(true), "{step:?}");
    }
    // The open transaction was cut off, and with it what followed; the barrier is the last batch.
    assert_eq!(show(mirror.log()), "LEO 2 HW 1 LSO 1 {}");
    assert_eq!(mirror.state(), Stopped);
    assert_eq!(mirror.metadata().last_mirrored_offset, Some(Offset(1)));
    let record = mirror.log().batches().unwrap()[1].control_record();
    let expected = batch("BAR<A", Offset(0)).control_record();
    assert_eq!(record, expected);
    // A local producer that was given id 5 as well begins anew.
    let local = batch("5.0#0", Offset(0)).bytes().clone();
    let tv = TransactionVersion::V0;
    let result = mirror.append_as_leader(local, AppendOrigin::Client, EPOCH, tv, NOW).unwrap();
    assert!(!result.duplicate);
}

#[test]
fn open_transactions_are_aborted_under_their_own_epochs() {
    let mut mirror = mirror(MirrorDesign::default());
    let fetched = batches("CM6.2c4 t5.0#0 t6.2#0 7.0#0", Offset(0));
    mirror.mirror_append(fetched, EPOCH, NOW).unwrap();
    mirror.transition(Stopping).unwrap();
    let error = mirror.abort_open_transactions(EPOCH, NOW).unwrap_err();
    assert_eq!(error, MirrorError::StillFetching);
    mirror.remove_fetcher();
    let aborted = mirror.abort_open_transactions(EPOCH, NOW).unwrap();
    assert_eq!(aborted.len(), 2);
    assert_eq!(show(mirror.log()), "LEO 6 HW 0 LSO 0 {5:e0[0@1]c0 6:e2[0@2]c4 7:e0[0@3]} aborted 5/1/4/2 aborted 6/2/5/6");
    assert_eq!(mirror.abort_open_transactions(EPOCH, NOW), Ok(Vec::new()));
}

#[test]
fn stop_steps_belong_to_stopping() {
    let mut partition = mirror(MirrorDesign::default());
    for step in [
        StopStep::TruncateToLso,
        StopStep::RecordLastMirroredOffset,
        StopStep::RecordLastMirroredEpoch,
        StopStep::AbortOpenTransactions,
        StopStep::WriteBarrier,
        StopStep::BecomeWritable,
    ] {
        let error = partition.run_stop_step(step, EPOCH, NOW).unwrap_err();
        assert!(matches!(error, MirrorError::WrongState { .. }), "{step:?}");
    }
}

#[test]
fn a_restart_finds_the_mirror_where_it_was() {
    let mut partition = mirror(MirrorDesign::default());
    partition.mirror_append(batches("E3/5.0#0", Offset(0)), EPOCH, NOW).unwrap();
    partition.transition(Stopping).unwrap();
    partition.remove_fetcher();
    partition.record_last_mirrored_offset().unwrap();
    partition.record_last_mirrored_epoch().unwrap();
    let before = partition.metadata().clone();
    let storage = partition.into_log().into_storage();
    let (partition, _) = MirrorPartition::open(storage, config(), MirrorDesign::default(), Recovery::Unclean, NOW).unwrap();
    assert_eq!(partition.metadata(), &before);
    assert_eq!(
        before,
        MirrorMetadata {
            state: Stopping,
            source_cluster: Some("A".to_owned()),
            last_mirrored_offset: Some(Offset(1)),
            last_mirrored_epoch: Some(LeaderEpoch(3)),
            failed_from: None,
            failed_attempts: FailedAttempts(0),
            state_epoch: 3,
        }
    );
    assert_eq!(partition.log().mirror_source(), Some("A"));
    assert!(!partition.is_fetching());
    // A partition that never was a mirror has no metadata and is writable.
    let fresh = self::partition(MirrorDesign::default());
    assert_eq!(fresh.metadata(), &MirrorMetadata::default());
    assert_eq!(fresh.state(), Stopped);
}

#[test]
fn metadata_is_written_as_it_is_read() {
    let metadata = MirrorMetadata {
        state: Failed,
        source_cluster: Some("a cluster, with blanks".to_owned()),
        last_mirrored_offset: Some(Offset(0)),
        last_mirrored_epoch: None,
        failed_from: Some(Stopping),
        failed_attempts: FailedAttempts::NOT_RETRYABLE,
        state_epoch: 7,
    };
    let bytes = metadata.encode().unwrap();
    let text = "0\nstate FAILED\nsource-cluster a cluster, with blanks\nlast-mirrored-offset 0\nfailed-from STOPPING\n\
                failed-attempts -1\nstate-epoch 7\n";
    assert_eq!(bytes, text);
    assert_eq!(MirrorMetadata::decode(&bytes), Ok(metadata));
    for bad in [
        &b""[..],
        b"1\n",
        b"0\nstate\n",
        b"0\nstate WRITABLE\n",
        b"0\nlast-mirrored-offset x\n",
        b"0\ncolour blue\n",
        b"0\nfailed-attempts -2\n",
        b"0\nstate-epoch 99999999999\n",
        b"0\nsource-cluster \n",
        b"\xff\n",
    ] {
        let bad = bytes::Bytes::copy_from_slice(bad);
        assert!(MirrorMetadata::decode(&bad).is_err(), "{bad:?}");
    }
    for id in ["", "two\nlines"] {
        let metadata = MirrorMetadata { source_cluster: Some(id.to_owned()), ..MirrorMetadata::default() };
        assert_eq!(metadata.encode(), Err(MetadataError::ClusterId { bytes: id.len() }));
    }
    let mut partition = partition(MirrorDesign::default());
    assert!(partition.start("two\nlines").is_err());
    assert_eq!(partition.state(), Stopped);
    let names = partition.log().storage().names().unwrap();
    assert!(!names.contains(&"mirror-metadata".to_owned()));
}

#[test]
fn alignment() {
    let recorded =
        |offset, epoch| MirrorMetadata { last_mirrored_offset: offset, last_mirrored_epoch: epoch, ..MirrorMetadata::default() };
    let by_offset = recorded(Some(Offset(2)), None);
    let by_epoch = recorded(None, Some(LeaderEpoch(1)));
    for (alignment, recorded, end) in [
        (Alignment::None, &by_offset, 4),
        (Alignment::OwnLso, &by_offset, 3),
        (Alignment::LastMirroredOffset, &by_offset, 2),
        (Alignment::LastMirroredOffset, &by_epoch, 0),
        (Alignment::LastMirroredEpoch, &by_offset, 0),
        (Alignment::LastMirroredEpoch, &by_epoch, 1),
    ] {
        let mut partition = partition(MirrorDesign { alignment, ..MirrorDesign::default() });
        let local = batches("E0/5.0#0 E2/5.0#1 E2/5.0#2 E2/t6.0#0", Offset(0));
        partition.append_as_follower(local, EPOCH, NOW).unwrap();
        partition.log_mut().update_high_watermark(Offset(4));
        assert!(partition.align(recorded, NOW).is_err());
        partition.start("B").unwrap();
        partition.align(recorded, NOW).unwrap();
        let found = partition.log().log_end_offset();
        assert_eq!(found, Offset(end), "{alignment:?}");
    }
}

#[test]
fn mapped_ids_are_tracked_only_where_they_are_visible() {
    for (ids, state) in [(ProducerIdVisibility::Stock, "{}"), (ProducerIdVisibility::Mapped, "{-7:e0[0@0]txn@0}")] {
        let config = LogConfig { ids, ..config() };
        let log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
        let design = MirrorDesign { pid_mapping: PidMapping::NegateEveryHop, ..MirrorDesign::default() };
        let mut mirror = MirrorPartition::new(log, design).unwrap();
        mirror.start("A").unwrap();
        mirror.transition(Mirroring).unwrap();
        mirror.mirror_append(batches("t5.0#0", Offset(0)), EPOCH, NOW).unwrap();
        assert_eq!(show_producers(mirror.log().producer_state()), state);
    }
}

#[test]
fn what_the_cluster_says_is_taken_over_whatever_the_state_was() {
    for before in MirrorState::ALL {
        for told in MirrorState::ALL {
            let mut partition = partition(MirrorDesign::default());
            partition.learn(before, Some("A")).unwrap();
            partition.learn(told, Some("C")).unwrap();
            assert_eq!(
                (partition.state(), partition.source_cluster(), partition.is_fetching()),
                (told, Some("C"), told == Mirroring)
            );
            let stored = MirrorMetadata::load(partition.log().storage()).unwrap();
            assert_eq!((stored.state, stored.source_cluster.as_deref(), stored.failed_from), (told, Some("C"), None));
        }
    }
}
