#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Lookups by time, and the raft leader's appends.

use cleanslate_log::log::{LogConfig, OffsetSpec};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

use crate::upstream::support::{Log, NOW, ends, later, lead_as, lead_under, new_log, placed, plain, timed};

/// Timestamp, offset and leader epoch.
fn look_up(log: &mut Log, spec: OffsetSpec) -> Option<(TimestampMs, i64, Option<i32>)> {
    let found = log.fetch_offset_by_timestamp(spec).unwrap();
    found.map(|found| (found.timestamp, found.offset.get(), found.leader_epoch.map(LeaderEpoch::get)))
}

const NONE: TimestampMs = TimestampMs::NONE;

#[test]
fn test_fetch_offset_by_timestamp_includes_leader_epoch() {
    let mut log = new_log(&LogConfig { segment_bytes: 200, index_interval_bytes: 1, ..LogConfig::default() });
    assert_eq!(look_up(&mut log, OffsetSpec::Timestamp(TimestampMs(0))), None);
    lead_under(&mut log, timed(NOW), 0);
    lead_under(&mut log, timed(later(1)), 1);
    assert_eq!(look_up(&mut log, OffsetSpec::Timestamp(NOW)), Some((NOW, 0, Some(0))));
    assert_eq!(look_up(&mut log, OffsetSpec::Timestamp(later(1))), Some((later(1), 1, Some(1))));
    assert_eq!(look_up(&mut log, OffsetSpec::Earliest), Some((NONE, 0, Some(0))));
    assert_eq!(look_up(&mut log, OffsetSpec::EarliestLocal), Some((NONE, 0, Some(0))));
    assert_eq!(look_up(&mut log, OffsetSpec::Latest), Some((NONE, 2, Some(1))));
    // The log end already belongs to an epoch without batches.
    log.assign_epoch_start_offset(LeaderEpoch(2)).unwrap();
    assert_eq!(look_up(&mut log, OffsetSpec::Latest), Some((NONE, 2, Some(2))));
}

#[test]
fn test_fetch_offset_by_timestamp_with_max_timestamp_includes_timestamp() {
    let mut log = new_log(&LogConfig { segment_bytes: 200, index_interval_bytes: 1, ..LogConfig::default() });
    assert_eq!(look_up(&mut log, OffsetSpec::MaxTimestamp), None);
    for (timestamp, epoch) in [(NOW, 0), (later(1), 0), (NOW, 1)] {
        lead_under(&mut log, timed(timestamp), epoch);
    }
    assert_eq!(look_up(&mut log, OffsetSpec::MaxTimestamp), Some((later(1), 1, Some(0))));
}

#[test]
fn test_fetch_latest_tiered_timestamp_no_remote_storage() {
    let mut log = new_log(&LogConfig::default());
    lead_under(&mut log, timed(NOW), 0);
    assert_eq!(look_up(&mut log, OffsetSpec::LatestTiered), Some((NONE, -1, Some(-1))));
}

#[test]
fn test_fetch_earliest_pending_upload_timestamp_no_remote_storage() {
    let mut log = new_log(&LogConfig::default());
    lead_under(&mut log, timed(NOW), 0);
    assert_eq!(look_up(&mut log, OffsetSpec::EarliestPendingUpload), Some((NONE, -1, Some(-1))));
}

#[test]
fn test_append_as_leader_with_raft_leader() {
    let mut log = new_log(&LogConfig::default());
    let mut append = |offset| {
        let origin = AppendOrigin::RaftLeader;
        let appended = lead_as(&mut log, &placed(plain(3), offset, 0), origin, TransactionVersion::Unknown, NOW);
        (appended, ends(&log).0)
    };
    assert_eq!(append(0), (Ok((0, 2)), 3));
    assert_eq!(append(1), (Err("UnexpectedAppendOffsetException"), 3));
    assert_eq!(append(3), (Ok((3, 5)), 6));
    assert_eq!(log.log_end_offset(), Offset(6));
}
