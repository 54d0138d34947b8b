//! Compaction: traps 34 to 36.

use bytes::Bytes;
use cleanslate_log::log::{CleanOptions, LogConfig};
use cleanslate_log::record::{BatchBuilder, Record, RecordBatch};
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

use crate::log_support::{NOW, TestLog};
use crate::support::{Log, follow, stock};

const DAY_MS: i64 = 86_400_000;

/// A round over everything but the active segment, so many days from now: base offset, count of records, and whether there is a
/// delete horizon, of each batch that is left.
fn clean(log: &mut Log, days: i64) -> Vec<(i64, i32, bool)> {
    log.update_high_watermark(log.log_end_offset());
    let now = TimestampMs(NOW.get() + days * DAY_MS);
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: log.last_stable_offset(), now, max_keys: 1000 };
    log.compact(&options).unwrap();
    let show = |batch: &RecordBatch| (batch.base_offset().get(), batch.record_count(), batch.delete_horizon().is_some());
    log.batches().unwrap().iter().map(show).collect()
}

fn rolled(mut log: TestLog) -> Log {
    log.log.roll(NOW).unwrap();
    log.log
}

/// A control batch of a type that is not known stays for ever. A null value makes it look like a tombstone: it gets a delete horizon,
/// and stays.
#[test]
fn k34_unknown_control_types_are_kept() {
    let mut log = stock(&["copy CTL9"]);
    let key = Some(Bytes::from_static(&[0, 0, 0, 9]));
    let record = Record { offset: Offset(1), timestamp: NOW, key, value: None, headers: Vec::new() };
    let null = BatchBuilder::new(Offset(1)).leader_epoch(LeaderEpoch(0)).control(true).append(record).build().unwrap();
    follow(&mut log.log, null.bytes().clone()).unwrap();
    let before = log.log.batches().unwrap()[0].clone();
    let mut log = rolled(log);
    for days in [0, 0, 2, 400] {
        assert_eq!(clean(&mut log, days), [(0, 1, false), (1, 1, true)]);
        assert_eq!(log.batches().unwrap()[0], before);
    }
}

/// The emptied last batch of a producer counts as a batch of its transaction, so the marker behind it stays until the producer is
/// forgotten.
#[test]
fn k35_an_empty_batch_keeps_its_marker() {
    let mut log = rolled(stock(&["copy t5.0#0 | AB5.0 | -"]));
    for days in [0, 2, 400] {
        assert_eq!(clean(&mut log, days), [(0, 0, false), (1, 1, false), (2, 1, false)]);
        assert_eq!(log.aborted_transactions().count(), 1);
    }
    log.remove_expired_producers(TimestampMs(NOW.get() + DAY_MS));
    // The batch goes, then the marker gets its horizon, then it goes.
    assert_eq!(clean(&mut log, 400), [(1, 1, false), (2, 1, false)]);
    assert_eq!(clean(&mut log, 400), [(1, 1, true), (2, 1, false)]);
    assert_eq!(clean(&mut log, 402), [(2, 1, false)]);
}

/// The last batch of a round is kept as a header, whoever wrote it, so that offsets do not go back.
#[test]
fn k36_the_last_batch_of_a_round_is_kept_empty() {
    let mut log = TestLog::new(&LogConfig::default());
    for offset in 0..2 {
        let keyless = BatchBuilder::new(Offset(offset)).leader_epoch(LeaderEpoch(0)).timestamp(NOW).record(None, Some(b"v"));
        follow(&mut log.log, keyless.build().unwrap().bytes().clone()).unwrap();
    }
    let mut log = rolled(log);
    assert_eq!(clean(&mut log, 0), [(1, 0, false)]);
    assert_eq!(log.segments().map(|(base, _)| base.get()).collect::<Vec<_>>(), [0, 2]);
}
