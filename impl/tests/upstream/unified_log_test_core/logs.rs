#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Truncation, appends, offsets, deletion.

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{AppendError, LogConfig, OffsetSnapshot, Recovery};
use cleanslate_log::record::{BatchBuilder, Compression, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, OffsetMetadata};

use crate::upstream::legacy::{follow_bytes, same};
use crate::upstream::support::{
    Log, NOW, bases, epochs, follow, hw, later, lead, lead_under, new_log, per_segment, placed, plain, reopen, reopen_files,
    start_at, timed,
};

#[test]
fn test_truncate_to() {
    let mut log = new_log(&per_segment(10));
    let size_of = |log: &Log| (log.log_end_offset().get(), log.size_in_bytes());
    let fill = |log: &mut Log| (0..10).for_each(|_| assert!(lead(log, plain(1)).is_ok()));
    fill(&mut log);
    let full = size_of(&log);
    assert_eq!(full.0, 10);
    for target in [10, 11] {
        log.truncate_to(Offset(target), NOW).unwrap();
        assert_eq!(size_of(&log), full);
    }
    log.truncate_to(Offset(5), NOW).unwrap();
    assert_eq!(log.log_end_offset(), Offset(5));
    log.truncate_to(Offset(0), NOW).unwrap();
    assert_eq!(size_of(&log), (0, 0));
    fill(&mut log);
    assert_eq!(size_of(&log), full);
    log.truncate_fully_and_start_at(Offset(1), NOW).unwrap();
    assert_eq!(size_of(&log), (1, 0));
    fill(&mut log);
    assert_eq!(size_of(&log), (11, full.1));
    log.truncate_to(Offset(0), NOW).unwrap();
    assert_eq!(size_of(&log), (0, 0));
}

#[test]
fn test_append_message_with_null_payload() {
    let mut log = new_log(&LogConfig::default());
    lead(&mut log, BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, None)).unwrap();
    let records = log.batches().unwrap()[0].records().unwrap();
    assert_eq!((records[0].offset, &records[0].value), (Offset(0), &None));
}

#[test]
fn test_append_with_no_timestamp() {
    let mut log = new_log(&LogConfig::default());
    let batch = BatchBuilder::new(Offset(0)).record(Some(b"key"), Some(b"value"));
    assert_eq!(lead(&mut log, batch), Ok((0, 0)));
}

#[test]
fn test_append_with_out_of_order_offsets_throws_exception() {
    let mut log = new_log(&LogConfig::default());
    let batches: Vec<RecordBatch> = [0, 1, 3, 2, 4].into_iter().map(|offset| placed(plain(1), offset, 0)).collect();
    assert_eq!(follow(&mut log, &batches), Err("OffsetsOutOfOrderException"));
}

#[test]
fn test_append_empty_log_below_log_start_offset_throws_exception() {
    let mut log = new_log(&LogConfig::default());
    log.truncate_fully_and_start_at(Offset(7), NOW).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(7), Offset(7)));
    let batch = placed(plain(3), 4, 0).bytes().clone();
    let path = ReplicationPath::IntraCluster;
    let error = log.append_as_follower(batch, LeaderEpoch(0), path, NOW).unwrap_err();
    let AppendError::UnexpectedAppendOffset { first_offset, last_offset, .. } = error else { panic!("{error}") };
    assert_eq!((first_offset, last_offset), (Offset(4), Offset(6)));
}

#[test]
fn test_load_partition_dir_with_no_segments_should_not_throw() {
    let log = reopen_files(MemoryStorage::new(), &LogConfig::default(), Recovery::Unclean, 0, 0);
    assert_eq!(bases(&log).len(), 1);
}

#[test]
fn test_offset_snapshot() {
    let mut log = new_log(&LogConfig { segment_bytes: 1024 * 1024 * 5, ..LogConfig::default() });
    let batch = [b"a", b"b", b"c"].iter().fold(BatchBuilder::new(Offset(0)), |batch, value| batch.record(None, Some(*value)));
    let batch = placed(batch, 0, 5);
    follow(&mut log, std::slice::from_ref(&batch)).unwrap();
    hw(&mut log, 3);
    let end = OffsetMetadata::at(Offset(3), Offset(0), batch.size_in_bytes() as u64);
    let expected =
        OffsetSnapshot { log_start_offset: Offset(0), log_end_offset: end, high_watermark: end, last_stable_offset: end };
    // To ask changes nothing.
    for _ in 0..2 {
        assert_eq!(log.fetch_offset_snapshot(), Ok(expected));
    }
}

/// As after the upload of three segments: the log starts at 15, what is held here at 31, in segments of ten records.
#[test]
fn test_convert_to_offset_metadata_does_not_throw_offset_out_of_range_error() {
    let mut log = new_log(&LogConfig::default());
    log.truncate_fully_below_start(Offset(31), Offset(15), NOW).unwrap();
    for offset in 31..50 {
        let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(b"test"));
        assert_eq!(lead(&mut log, batch), Ok((offset, offset)));
        if offset % 10 == 0 {
            log.roll(NOW).unwrap();
        }
    }
    hw(&mut log, 50);
    assert_eq!((bases(&log), log.log_start_offset(), log.log_end_offset()), (vec![31, 41], Offset(15), Offset(50)));
    let mut converted = |offset| log.maybe_convert_to_offset_metadata(Offset(offset)).unwrap();
    assert_eq!(converted(35), OffsetMetadata::at(Offset(35), Offset(31), 288));
    for out_of_range in [29, 51, 14] {
        assert_eq!(converted(out_of_range), OffsetMetadata::offset_only(Offset(out_of_range)));
    }
}

fn of_hundred() -> Log {
    let mut log = new_log(&LogConfig::default());
    (0..100).for_each(|_| assert!(lead(&mut log, plain(1)).is_ok()));
    log
}

#[test]
fn test_maybe_update_high_watermark_as_follower() {
    let mut log = of_hundred();
    for (offset, changes, high_watermark) in
        [(99, true, 99), (99, false, 99), (100, true, 100), (100, false, 100), (101, false, 100), (100, false, 100)]
    {
        assert_eq!(log.maybe_update_high_watermark(Offset(offset)), changes, "{offset}");
        assert_eq!(log.high_watermark(), Offset(high_watermark));
    }
}

/// Old records, five in a segment.
fn hundred(retention_ms: i64) -> Log {
    let mut log = new_log(&LogConfig { retention_ms, ..per_segment(5) });
    (0..100).for_each(|_| assert!(lead(&mut log, timed(later(-1000))).is_ok()));
    log
}

#[test]
fn test_segment_deletion_with_high_watermark_initialization() {
    let mut log = hundred(999);
    hw(&mut log, 25);
    assert!(log.delete_old_segments(NOW).unwrap() > 0);
    assert!(log.log_start_offset() <= Offset(25));
    assert_eq!(log.log_start_offset(), Offset(25));
}

#[test]
fn test_cannot_delete_segments_at_or_above_high_watermark() {
    let mut log = hundred(999);
    assert_eq!(log.delete_old_segments(NOW), Ok(0));
    assert_eq!(bases(&log).len(), 20);
    for high_watermark in 25..=30 {
        hw(&mut log, high_watermark);
        log.delete_old_segments(NOW).unwrap();
        assert!(log.log_start_offset() <= Offset(high_watermark));
        let bases = bases(&log);
        assert_eq!(bases[0], log.log_start_offset().get());
        assert!(bases[1..].iter().all(|next| *next > high_watermark));
    }
    assert_eq!(log.log_end_offset(), Offset(100));
}

#[test]
fn test_cannot_increment_log_start_offset_past_high_watermark() {
    let mut log = hundred(-1);
    hw(&mut log, 25);
    let error = log.maybe_increment_log_start_offset(Offset(26)).unwrap_err();
    assert_eq!(error.kafka_class(), "OffsetOutOfRangeException");
    start_at(&mut log, 25);
}

#[test]
fn test_append_below_expected_offset_throws_exception() {
    for codec in [Compression::None, Compression::Lz4] {
        for magic in [0, 1, 2] {
            let mut log = new_log(&LogConfig::default());
            lead(&mut log, plain(1)).unwrap();
            lead(&mut log, plain(1)).unwrap();
            let batch = match magic {
                2 => placed(plain(1).compression(codec), 0, 0).bytes().clone(),
                old => same(old, 0, codec, 1),
            };
            assert_eq!(follow_bytes(&mut log, batch), Err("UnexpectedAppendOffsetException"), "magic {magic} {codec:?}");
            assert_eq!(log.log_end_offset(), Offset(2));
        }
    }
}

#[test]
fn test_leader_epoch_cache_cleared_after_downgrade_in_appended_messages() {
    let mut log = new_log(&LogConfig::default());
    lead_under(&mut log, plain(1), 5);
    assert_eq!(log.leader_epochs().latest_epoch(), Some(LeaderEpoch(5)));
    assert_eq!(follow_bytes(&mut log, same(1, 1, Compression::None, 1)), Ok((-1, 1)));
    assert_eq!(log.leader_epochs().latest_epoch(), None);
    // The file is empty too.
    assert_eq!(epochs(&reopen(&log, Recovery::Clean, 0, 0)), []);
}

#[test]
fn test_leader_epoch_cache_created_after_message_format_upgrade() {
    let mut log = new_log(&LogConfig { segment_bytes: 1000, index_interval_bytes: 1, ..LogConfig::default() });
    follow_bytes(&mut log, same(1, 0, Compression::None, 1)).unwrap();
    assert_eq!(log.leader_epochs().latest_epoch(), None);
    lead_under(&mut log, plain(1), 5);
    assert_eq!(log.leader_epochs().latest_epoch(), Some(LeaderEpoch(5)));
    assert_eq!(epochs(&log), [(5, 1)]);
}

/// Twenty segments of five records, all too old.
#[test]
fn test_async_delete() {
    let record = || BatchBuilder::new(Offset(0)).timestamp(later(-1000)).record(None, Some(b"test"));
    let segment_bytes = record().build().unwrap().size_in_bytes() * 5;
    let mut log = new_log(&LogConfig {
        segment_bytes,
        segment_index_bytes: 1000,
        index_interval_bytes: 10_000,
        retention_ms: 999,
        file_delete_delay_ms: Some(1000),
        ..LogConfig::default()
    });
    (0..100).for_each(|_| assert!(lead(&mut log, record()).is_ok()));
    let old: Vec<String> = bases(&log).iter().flat_map(|base| ["log", "index"].map(|end| format!("{base:0>20}.{end}"))).collect();
    assert_eq!(old.len(), 40);
    hw(&mut log, 100);
    log.delete_old_segments(NOW).unwrap();
    assert_eq!(bases(&log), [100]);
    let there = |log: &Log, name: &String| log.storage().len(name).unwrap().is_some();
    let renamed: Vec<String> = old.iter().map(|name| format!("{name}.deleted")).collect();
    assert!(renamed.iter().all(|name| there(&log, name)));
    assert!(!old.iter().any(|name| there(&log, name)));
    let waiting = log.deleted_files().count();
    assert_eq!(log.remove_deleted_files(later(999)), Ok(0));
    assert!(renamed.iter().all(|name| there(&log, name)));
    assert_eq!(log.remove_deleted_files(later(1001)), Ok(waiting));
    assert!(!renamed.iter().any(|name| there(&log, name)));
}

#[test]
fn test_log_offsets_listener() {
    let mut log = new_log(&LogConfig { segment_bytes: 1024 * 1024, ..LogConfig::default() });
    assert_eq!(log.take_high_watermark_update(), Some(Offset(0)));
    lead(&mut log, plain(3)).unwrap();
    lead(&mut log, plain(3)).unwrap();
    assert_eq!(log.take_high_watermark_update(), None);
    log.maybe_increment_high_watermark(Offset(4)).unwrap();
    assert_eq!(log.take_high_watermark_update(), Some(Offset(4)));
    log.truncate_to(Offset(3), NOW).unwrap();
    assert_eq!(log.take_high_watermark_update(), Some(Offset(3)));
    lead(&mut log, plain(3)).unwrap();
    log.truncate_fully_and_start_at(Offset(4), NOW).unwrap();
    assert_eq!(log.take_high_watermark_update(), Some(Offset(4)));
}

#[test]
fn test_update_log_offsets_listener() {
    let mut log = new_log(&LogConfig { segment_bytes: 1024 * 1024, ..LogConfig::default() });
    lead(&mut log, plain(3)).unwrap();
    log.maybe_increment_high_watermark(Offset(2)).unwrap();
    start_at(&mut log, 1);
    // Who begins to follow here, asks from here on.
    assert!(log.take_high_watermark_update().is_some());
    assert_eq!(log.take_high_watermark_update(), None);
    lead(&mut log, plain(3)).unwrap();
    log.maybe_increment_high_watermark(Offset(4)).unwrap();
    assert_eq!(log.take_high_watermark_update(), Some(Offset(4)));
}
