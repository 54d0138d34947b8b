#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Rolling.

use bytes::Bytes;
use cleanslate_log::log::{FetchIsolation, LogConfig, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::{BatchBuilder, BatchReader};
use cleanslate_log::storage::Storage;
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

use crate::upstream::support::{
    Log, NOW, OUT_OF_ORDER, bases, later, lead, lead_as, new_log, per_segment, plain, produced, read, reopen_files, timed,
};

const HOUR_MS: i64 = 3_600_000;

fn append_at(log: &mut Log, timestamp: TimestampMs, now: i64) -> usize {
    let batch = timed(timestamp).build().unwrap();
    lead_as(log, &batch, AppendOrigin::Client, TransactionVersion::Unknown, TimestampMs(now)).unwrap();
    bases(log).len()
}

#[test]
fn test_time_based_log_roll_during_append() {
    let mut log = new_log(&LogConfig { segment_ms: HOUR_MS, timestamp_after_max_ms: i64::MAX, ..LogConfig::default() });
    let mut now = NOW.get();
    assert_eq!(bases(&log).len(), 1);
    now += HOUR_MS + 1;
    assert_eq!(append_at(&mut log, TimestampMs::NONE, now), 1);
    // Without a timestamp the clock decides.
    assert_eq!(append_at(&mut log, TimestampMs::NONE, now), 2);
    for segments in [3, 4] {
        now += HOUR_MS + 1;
        assert_eq!(append_at(&mut log, TimestampMs::NONE, now), segments);
    }
    let timestamp = TimestampMs(now + HOUR_MS + 1);
    assert_eq!(append_at(&mut log, timestamp, now), 4);
    now += HOUR_MS + 1;
    assert_eq!(append_at(&mut log, timestamp, now), 5);
    // With one, that of the first record does.
    now += HOUR_MS + 1;
    assert_eq!(append_at(&mut log, timestamp, now), 5);
    assert_eq!(append_at(&mut log, TimestampMs(now), now), 6);
    now += HOUR_MS + 1;
    let tv = TransactionVersion::Unknown;
    log.append_as_leader(Bytes::new(), AppendOrigin::Client, LeaderEpoch(0), tv, TimestampMs(now)).unwrap();
    assert_eq!(bases(&log).len(), 6);
}

#[test]
fn test_size_based_log_roll() {
    let mut log = new_log(&per_segment(10));
    assert_eq!(bases(&log).len(), 1);
    for _ in 0..11 {
        lead(&mut log, plain(1)).unwrap();
    }
    assert_eq!(bases(&log).len(), 2);
}

#[test]
fn test_roll_segment_that_already_exists() {
    let mut log = new_log(&LogConfig { segment_ms: HOUR_MS, ..LogConfig::default() });
    assert_eq!(bases(&log), [0]);
    log.roll(NOW).unwrap();
    assert_eq!(bases(&log), [0]);
    assert_eq!(lead(&mut log, plain(1)), Ok((0, 0)));
    log.roll(NOW).unwrap();
    assert_eq!(bases(&log), [0, 1]);
    // An index without room: the empty active segment is replaced.
    log.close_clean().unwrap();
    let config = LogConfig { segment_index_bytes: 0, ..log.config().clone() };
    let mut log = reopen_files(log.storage().clone(), &config, Recovery::Clean, 1, 0);
    assert_eq!(bases(&log), [0, 1]);
    assert_eq!(lead(&mut log, plain(1)), Ok((1, 1)));
    assert_eq!(bases(&log), [0, 1]);
    let offsets: Vec<i64> = log.batches().unwrap().iter().map(|batch| batch.base_offset().get()).collect();
    assert_eq!(offsets, [0, 1]);
}

#[test]
fn test_non_sequential_append() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, produced(1, 0, 0, 1)).unwrap();
    assert_eq!(lead(&mut log, produced(1, 0, 2, 1)), Err(OUT_OF_ORDER));
}

#[test]
fn test_time_based_log_roll_jitter() {
    let (segment_ms, max_jitter) = (60 * 60, 20 * 60);
    let mut drawn = std::collections::BTreeSet::new();
    for segment_jitter_seed in 0..20 {
        let mut log =
            new_log(&LogConfig { segment_ms, segment_jitter_ms: max_jitter, segment_jitter_seed, ..LogConfig::default() });
        let jitter = log.config().roll_jitter_ms(Offset(0));
        assert!((0..max_jitter).contains(&jitter), "{jitter}");
        drawn.insert(jitter);
        let earliest = segment_ms - max_jitter;
        for (after, segments) in [(0, 1), (earliest, 1), (earliest + max_jitter - jitter + 1, 2)] {
            let found = append_at(&mut log, later(after), later(after).get());
            assert_eq!(found, segments, "seed {segment_jitter_seed}, after {after}");
        }
    }
    assert!(drawn.len() > 10, "{drawn:?}");
    // A jitter is below both settings.
    let within = |segment_ms, segment_jitter_ms| {
        let config = LogConfig { segment_ms, segment_jitter_ms, ..LogConfig::default() };
        (0..100).map(|base| config.roll_jitter_ms(Offset(base))).max().unwrap()
    };
    assert!(within(10, 1000) < 10 && within(1000, 10) < 10);
    assert_eq!((within(1000, 0), within(0, 1000)), (0, 0));
}

#[test]
fn test_log_rolls() {
    let mut log = new_log(&LogConfig { segment_bytes: 100, ..LogConfig::default() });
    let value = |offset: i64| offset.to_string();
    for offset in 0..100 {
        let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(value(offset).as_bytes()));
        assert_eq!(lead(&mut log, batch), Ok((offset, offset)));
    }
    log.flush().unwrap();
    for offset in 0..100 {
        let bytes = log.fetch(Offset(offset), FetchIsolation::LogEnd, 1024 * 1024, true).unwrap().records;
        let batch = BatchReader::new(bytes).next().unwrap().unwrap();
        assert_eq!(batch.last_offset(), Offset(offset));
        let record = batch.records().unwrap().remove(0);
        assert_eq!((record.key, record.timestamp), (None, NOW));
        assert_eq!(record.value.unwrap(), value(offset));
    }
    assert_eq!(read(&log, 100, FetchIsolation::LogEnd), Ok(vec![]));
    assert_eq!(bases(&log).len(), 100);
    assert!(log.recovery_point() >= Offset(*bases(&log).last().unwrap()));
}

#[test]
fn test_flushing_empty_active_segments() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, plain(1)).unwrap();
    log.roll(NOW).unwrap();
    let count = |log: &Log, suffix: &str| log.storage().names().unwrap().iter().filter(|name| name.ends_with(suffix)).count();
    let files = |log: &Log| [".log", ".index", ".timeindex"].map(|suffix| count(log, suffix));
    assert_eq!(files(&log), [2, 1, 1]);
    assert_eq!(log.segments().last(), Some((Offset(1), 0)));
    log.flush().unwrap();
    assert_eq!(files(&log), [2, 1, 1]);
    log.flush_with_active().unwrap();
    assert_eq!(files(&log), [2, 2, 2]);
    assert_eq!(log.recovery_point(), Offset(1));
}
