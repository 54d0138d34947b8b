//! Where a mirror's log and its source's part, and how a failback aligns them.
#![cfg(test)]

mod log_support;

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{FetchIsolation, LeaderEpochCache, LogConfig, PartitionLog};
use cleanslate_log::mirror::{
    Alignment, DivergenceDetection, EpochFencing, MirrorDesign, MirrorError, MirrorEvent, MirrorFetch, MirrorMetadata,
    MirrorPartition, MirrorState, NamedDesign,
};
use cleanslate_log::psm::AppendOrigin;
use cleanslate_log::replication::{
    EpochEndOffset, FetchPoint, OutOfRange, TruncationPoint, fetch_point, out_of_range, truncation_point,
};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset};
use log_support::{NOW, batch, batches, check, show_producers};

type Mirror = MirrorPartition<MemoryStorage>;

/// A cache of `epoch@start` entries.
fn cache(entries: &str) -> LeaderEpochCache {
    let mut cache = LeaderEpochCache::default();
    for entry in entries.split_whitespace() {
        let (epoch, start) = entry.split_once('@').unwrap();
        cache.assign(LeaderEpoch(epoch.parse().unwrap()), Offset(start.parse().unwrap())).unwrap();
    }
    cache
}

fn diverging(epoch: i32, end: i64) -> EpochEndOffset {
    EpochEndOffset { epoch: LeaderEpoch(epoch), end_offset: Offset(end) }
}

/// Kafka's `Partition.readRecords`: a source with epochs 1 from 0 on, 3 from 10 on, 5 from 20 on, that ends at 30.
#[test]
fn what_a_source_says_to_a_fetch() {
    let source = cache("1@0 3@10 5@20");
    for (epoch, offset, answer) in [
        (5, 30, FetchPoint::Common),
        (5, 31, FetchPoint::Diverging(diverging(5, 30))),
        (3, 20, FetchPoint::Common),
        (3, 21, FetchPoint::Diverging(diverging(3, 20))),
        (4, 15, FetchPoint::Diverging(diverging(3, 20))),
        (1, 10, FetchPoint::Common),
        (6, 5, FetchPoint::Unknown),
        (-1, 5, FetchPoint::Unknown),
    ] {
        assert_eq!(fetch_point(&source, Offset(30), LeaderEpoch(epoch), Offset(offset)), answer, "{epoch}@{offset}");
    }
}

/// Kafka's `getOffsetTruncationState`.
#[test]
fn to_where_a_diverging_answer_truncates() {
    for (own, answer, offset, completed) in [
        // The same epoch: where the shorter one ends.
        ("1@0 3@10", diverging(3, 20), 20, true),
        ("1@0 3@10", diverging(3, 40), 30, true),
        ("1@0 3@10 5@15", diverging(3, 40), 15, true),
        // Another epoch below: that is asked about next.
        ("1@0 4@12", diverging(3, 20), 12, false),
        // Nothing below: all that the source has.
        ("4@12", diverging(3, 20), 12, true),
        ("", diverging(3, 20), 20, true),
    ] {
        let expected = TruncationPoint { offset: Offset(offset), completed };
        assert_eq!(truncation_point(&cache(own), Offset(30), &answer), expected, "{own} {answer:?}");
    }
}

#[test]
fn what_a_mirror_does_out_of_the_source_s_range() {
    for (start, end, own, reaction) in [
        (0, 5, 8, OutOfRange::TruncateTo(Offset(5))),
        (6, 9, 4, OutOfRange::StartOverAt(Offset(6))),
        (6, 9, 6, OutOfRange::Retry),
        (0, 5, 5, OutOfRange::Retry),
    ] {
        assert_eq!(out_of_range(Offset(start), Offset(end), Offset(own)), reaction);
    }
}

fn partition(design: MirrorDesign, specs: &str) -> Mirror {
    let config = NamedDesign::by_name("sound").unwrap().log_config(LogConfig::default());
    let mut log = PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap();
    if !specs.is_empty() {
        log.append_as_follower(batches(specs, Offset(0)), LeaderEpoch(9), ReplicationPath::IntraCluster, NOW).unwrap();
    }
    log.update_high_watermark(log.log_end_offset());
    MirrorPartition::new(log, design).unwrap()
}

/// Fetches until there is nothing new; returns how often logs had to be truncated.
fn catch_up(mirror: &mut Mirror, source: &Mirror) -> usize {
    let mut truncations = 0;
    loop {
        match mirror.fetch(source.log(), usize::MAX).unwrap() {
            MirrorFetch::Records(bytes) if bytes.is_empty() => return truncations,
            MirrorFetch::Records(bytes) => {
                mirror.mirror_append(bytes, LeaderEpoch(99), NOW).unwrap();
            }
            MirrorFetch::Diverging(diverging) => {
                truncations += 1;
                assert!(mirror.truncate_diverging(&diverging, NOW).unwrap());
            }
            MirrorFetch::OutOfRange(reaction) => {
                truncations += 1;
                mirror.follow_out_of_range(reaction, NOW).unwrap();
            }
        }
    }
}

/// The mirror B had fetched less of epoch 5 than A holds. B stops, writes under epoch 6, and A mirrors it back.
#[test]
fn a_failback_with_and_without_divergence_detection() {
    let (by_epoch, by_both) = (Alignment::LastMirroredEpoch, Alignment::LastMirroredEpochAndOffset);
    let (none, detect) = (DivergenceDetection::None, DivergenceDetection::ByLeaderEpoch);
    for (alignment, divergence, aligned_end, truncations, same) in [
        (Alignment::None, none, 4, 0, false),
        (Alignment::LastMirroredOffset, none, 2, 0, true),
        // The end of A's own epoch 5 is no offset that B ever had.
        (by_epoch, none, 4, 0, false),
        (by_epoch, detect, 4, 1, true),
        (by_both, none, 2, 0, true),
        (Alignment::None, detect, 4, 1, true),
    ] {
        let design = MirrorDesign { alignment, divergence, ..NamedDesign::by_name("sound").unwrap().mirror };
        let mut a = partition(design.clone(), "E5/5.0#0 E5/5.0#1 E5/5.0#2 E5/5.0#3");
        let mut b = partition(design, "E5/5.0#0 E5/5.0#1");
        b.start("A").unwrap();
        b.apply(MirrorEvent::LogAligned { source_epoch_ahead: false }).unwrap();
        b.apply(MirrorEvent::Stop).unwrap();
        b.remove_fetcher();
        b.record_last_mirrored_epoch().unwrap();
        b.record_last_mirrored_offset().unwrap();
        b.bump_leader_epoch(LeaderEpoch(6)).unwrap();
        b.write_barrier(Some("A"), LeaderEpoch(6), NOW).unwrap();
        b.become_writable().unwrap();
        for spec in ["5.0#0", "5.0#1", "5.0#2"] {
            let bytes = batch(spec, Offset(0)).bytes().clone();
            b.append_as_leader(bytes, AppendOrigin::Client, LeaderEpoch(6), Default::default(), NOW).unwrap();
        }
        let end = b.log().log_end_offset();
        b.log_mut().update_high_watermark(end);
        a.start("B").unwrap();
        a.align(&b.metadata().recorded_for("A"), NOW).unwrap();
        assert_eq!(a.log().log_end_offset(), Offset(aligned_end), "{alignment:?} {divergence:?}");
        a.apply(MirrorEvent::LogAligned { source_epoch_ahead: false }).unwrap();
        assert_eq!(catch_up(&mut a, &b), truncations, "{alignment:?} {divergence:?}");
        let bytes = |mirror: &Mirror| mirror.log().read(Offset(0), FetchIsolation::LogEnd, usize::MAX).unwrap();
        assert_eq!(bytes(&a) == bytes(&b), same, "{alignment:?} {divergence:?}");
        let producers = |mirror: &Mirror| show_producers(mirror.log().producer_state());
        assert_eq!(producers(&a) == producers(&b), same, "{alignment:?} {divergence:?}");
    }
}

/// Logs that part in the middle of several epochs come together step by step.
#[test]
fn divergence_over_several_epochs() {
    let design = NamedDesign::by_name("sound").unwrap().mirror;
    let source = partition(design.clone(), "E1/- E1/- E3/- E3/- E7/-");
    for (own, truncations, end) in [
        ("E1/- E1/- E2/- E2/- E2/-", 1, 5),
        ("E1/- E1/- E1/- E5/- E5/-", 2, 5),
        ("E0/- E4/- E6/-", 2, 5),
        ("E1/- E1/- E3/-", 0, 5),
        ("E8/- E8/-", 1, 5),
        ("", 0, 5),
    ] {
        let mut mirror = partition(design.clone(), own);
        mirror.start("A").unwrap();
        mirror.apply(MirrorEvent::LogAligned { source_epoch_ahead: false }).unwrap();
        assert_eq!(catch_up(&mut mirror, &source), truncations, "{own}");
        assert_eq!(mirror.log().log_end_offset(), Offset(end), "{own}");
        assert_eq!(mirror.log().batches().unwrap(), source.log().batches().unwrap(), "{own}");
    }
}

/// The source's log start has moved past the mirror's log: it is emptied, and its producers with it.
#[test]
fn a_mirror_that_is_left_behind_starts_over() {
    let design = NamedDesign::by_name("sound").unwrap().mirror;
    let lines = [("copy E1/5.0#0 E1/5.0#1 E1/7.0#0", "0..2"), ("hw 3", "")];
    let source = check(&LogConfig::default(), &lines, "LEO 3 HW 3 LSO 3 {5:e0[0@0,1@1] 7:e0[0@2]}").log;
    let mut source = MirrorPartition::new(source, design.clone()).unwrap();
    source.log_mut().maybe_increment_log_start_offset(Offset(2)).unwrap();
    let mut mirror = partition(design, "E1/5.0#0");
    mirror.start("A").unwrap();
    mirror.apply(MirrorEvent::LogAligned { source_epoch_ahead: false }).unwrap();
    assert_eq!(catch_up(&mut mirror, &source), 1);
    assert_eq!(show_producers(mirror.log().producer_state()), "{7:e0[0@2]}");
    assert_eq!((mirror.log().log_start_offset(), mirror.log().log_end_offset()), (Offset(2), Offset(3)));
}

/// Only what was recorded about the asking cluster counts: a third one's epoch 5 is another epoch 5.
#[test]
fn what_a_third_cluster_recorded_says_nothing() {
    let recorded = MirrorMetadata {
        source_cluster: Some("S".to_owned()),
        last_mirrored_offset: Some(Offset(2)),
        last_mirrored_epoch: Some(LeaderEpoch(5)),
        ..MirrorMetadata::default()
    };
    assert_eq!(recorded.recorded_for("S"), recorded);
    assert_eq!(recorded.recorded_for("A"), MirrorMetadata::default());
    let design = NamedDesign::by_name("sound").unwrap().mirror;
    let mut mirror = partition(design, "E5/- E5/-");
    mirror.start("B").unwrap();
    mirror.align(&recorded.recorded_for("A"), NOW).unwrap();
    assert_eq!(mirror.log().log_end_offset(), Offset(0));
}

#[test]
fn a_source_whose_epoch_is_ahead() {
    for (margin, own, source, behind) in
        [(0, 5, 5, false), (0, 5, 6, true), (3, 8, 5, false), (3, 7, 5, true), (0, i32::MAX, i32::MAX, false), (-1, 5, 5, false)]
    {
        let fencing = EpochFencing { margin, lead: 10 };
        assert_eq!(fencing.is_behind(LeaderEpoch(own), LeaderEpoch(source)), behind, "{margin} {own} {source}");
    }
    assert_eq!(EpochFencing::default().target(LeaderEpoch(5)), LeaderEpoch(15));
    assert_eq!(EpochFencing::default().target(LeaderEpoch(i32::MAX)), LeaderEpoch(i32::MAX));
    // The nine-state form refuses such a batch, and goes on when its own epoch is above.
    let fetched = batches("E5/- E7/-", Offset(0));
    let mut mirror = partition(NamedDesign::by_name("sound").unwrap().mirror, "");
    mirror.start("A").unwrap();
    mirror.apply(MirrorEvent::LogAligned { source_epoch_ahead: false }).unwrap();
    mirror.elected(LeaderEpoch(6)).unwrap();
    let error = mirror.mirror_append(fetched.clone(), LeaderEpoch(9), NOW).unwrap_err();
    assert_eq!(error, MirrorError::SourceEpochAhead { own: LeaderEpoch(6), found: LeaderEpoch(7) });
    assert_eq!(mirror.log().log_end_offset(), Offset(0));
    mirror.apply(MirrorEvent::SourceEpochAhead).unwrap();
    assert_eq!((mirror.state(), mirror.is_fetching()), (MirrorState::EpochFencing, false));
    // A mirrored log notes no epoch of its own: the source's come with its batches.
    mirror.elected(LeaderEpoch(17)).unwrap();
    assert_eq!(mirror.log().leader_epochs().latest_epoch(), None);
    mirror.apply(MirrorEvent::EpochRaised).unwrap();
    mirror.mirror_append(fetched.clone(), LeaderEpoch(9), NOW).unwrap();
    assert_eq!(mirror.log().leader_epochs().latest_epoch(), Some(LeaderEpoch(7)));
    // The six-state form drops what is above the epoch that the fetcher knows.
    let mut mirror = partition(MirrorDesign::default(), "");
    mirror.start("A").unwrap();
    mirror.apply(MirrorEvent::LogAligned { source_epoch_ahead: true }).unwrap();
    mirror.elected(LeaderEpoch(6)).unwrap();
    mirror.mirror_append(fetched, LeaderEpoch(6), NOW).unwrap();
    assert_eq!(mirror.log().log_end_offset(), Offset(1));
}

/// Truncations by the source's word belong to a mirror that fetches.
#[test]
fn only_a_fetching_mirror_follows_its_source() {
    let mut mirror = partition(MirrorDesign::default(), "E1/5.0#0 E1/5.0#1");
    assert!(matches!(mirror.truncate_diverging(&diverging(1, 1), NOW), Err(MirrorError::WrongState { .. })));
    let reaction = OutOfRange::TruncateTo(Offset(1));
    assert!(matches!(mirror.follow_out_of_range(reaction, NOW), Err(MirrorError::WrongState { .. })));
}
