//! Followers: traps 31 to 33, and 39.

use bytes::Bytes;
use cleanslate_log::log::LogConfig;
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::log_support::{NOW, TestLog, batch, batches};
use crate::support::{epochs, follow, stock};

/// Offsets of a copy may leave gaps, and the log end jumps over them.
#[test]
fn k31_a_copy_may_leave_gaps() {
    let mut log = stock(&["copy -"]).log;
    assert_eq!(follow(&mut log, batch("5.0#0x3", Offset(40)).bytes().clone()), Ok(40));
    assert_eq!(log.log_end_offset(), Offset(43));
    assert_eq!(follow(&mut log, batch("5.0#3", Offset(42)).bytes().clone()), Err("UnexpectedAppendOffsetException"));
}

/// A copy may hold a batch that a leader would find too large, but not be larger than a segment.
#[test]
fn k32_a_copy_has_the_size_limit_of_a_segment_only() {
    let size = batch("-", Offset(0)).size_in_bytes();
    let config = LogConfig { max_message_bytes: size - 1, segment_bytes: size * 2, ..LogConfig::default() };
    let mut log = TestLog::new(&config).log;
    let one: Bytes = batch("-", Offset(0)).bytes().clone();
    let led = log.append_as_leader(one.clone(), AppendOrigin::Client, LeaderEpoch(0), TransactionVersion::V0, NOW);
    assert_eq!(led.unwrap_err().kafka_class(), "RecordTooLargeException");
    assert_eq!(follow(&mut log, one), Ok(0));
    assert_eq!(follow(&mut log, batches("- - -", Offset(1))), Err("RecordBatchTooLargeException"));
    assert_eq!(follow(&mut log, batches("- -", Offset(1))), Ok(1));
}

/// The high watermark of a follower goes down when the leader says so; that of a leader does not.
#[test]
fn k33_the_high_watermark_of_a_follower_may_go_down() {
    let mut log = stock(&["copy - | - | -", "hw 3"]).log;
    assert_eq!(log.maybe_increment_high_watermark(Offset(1)), Ok(false));
    assert_eq!(log.high_watermark(), Offset(3));
    assert!(log.maybe_update_high_watermark(Offset(1)));
    assert_eq!(log.high_watermark(), Offset(1));
    assert!(log.maybe_update_high_watermark(Offset(99)));
    assert_eq!(log.high_watermark(), Offset(3));
    assert_eq!(log.maybe_increment_high_watermark(Offset(4)).unwrap_err().kafka_class(), "IllegalArgumentException");
}

/// A copy has to have leader epochs: -1 is refused, after those of the batches before it were noted.
#[test]
fn k39_a_copy_needs_leader_epochs() {
    let mut log = stock(&[]).log;
    assert_eq!(follow(&mut log, batches("E3/- E-1/-", Offset(0))), Err("IllegalArgumentException"));
    assert_eq!((log.log_end_offset(), epochs(&log)), (Offset(0), vec![(3, 0)]));
}
