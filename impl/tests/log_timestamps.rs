//! Lookups by time. What is expected is what Apache Kafka 4.3.1 answers for the same batches.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{LogConfig, OffsetSpec, PartitionLog, ReadError, Recovery};
use cleanslate_log::record::{BatchBuilder, Compression, HEADER_BYTES, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage as _};
use cleanslate_log::types::{LeaderEpoch, Offset, TimestampMs};

const NOW: i64 = 1_700_000_000_000;

type Log = PartitionLog<MemoryStorage>;

fn new_log(segment_bytes: usize) -> Log {
    let config = LogConfig { segment_bytes, ..LogConfig::default() };
    PartitionLog::create(MemoryStorage::new(), config, TimestampMs(NOW)).unwrap()
}

/// A follower appends a batch with these timestamps.
fn append(log: &mut Log, offset: i64, epoch: i32, timestamps: &[i64], compression: Compression) {
    let builder = BatchBuilder::new(Offset(offset)).leader_epoch(LeaderEpoch(epoch)).compression(compression);
    let builder = timestamps
        .iter()
        .fold(builder, |builder, timestamp| builder.timestamp(TimestampMs(*timestamp)).record(Some(b"key"), Some(b"value")));
    let bytes = builder.build().unwrap().bytes().clone();
    log.append_as_follower(bytes, LeaderEpoch(100), ReplicationPath::IntraCluster, TimestampMs(NOW)).unwrap();
}

/// Seven batches in three segments, at 0, 4 and 9; a leader epoch for every two.
fn seven_batches(compression: Compression) -> Log {
    let mut log = new_log(300);
    let mut offset = 0;
    let batches: [&[i64]; 7] = [&[10], &[20, 15], &[20], &[5], &[40, 30, 40], &[35], &[25]];
    for (after_ms, epoch) in batches.into_iter().zip([0, 0, 1, 1, 2, 2, 3]) {
        let timestamps: Vec<i64> = after_ms.iter().map(|ms| NOW + ms).collect();
        append(&mut log, offset, epoch, &timestamps, compression);
        offset += i64::try_from(after_ms.len()).unwrap();
    }
    log
}

/// `timestamp/offset/epoch`, the timestamp in milliseconds after [`NOW`] or -1, the epoch `-` if none is known; else `none`.
fn look_up(log: &mut Log, timestamp: i64) -> String {
    let Some(found) = log.fetch_offset_by_timestamp(OffsetSpec::from(timestamp)).unwrap() else { return "none".to_owned() };
    let of_record = if found.timestamp.get() >= NOW { found.timestamp.get() - NOW } else { found.timestamp.get() };
    let epoch = found.leader_epoch.map_or("-".to_owned(), |epoch| epoch.to_string());
    format!("{of_record}/{}/{epoch}", found.offset)
}

fn look_up_all(log: &mut Log, timestamps: impl IntoIterator<Item = i64>) -> String {
    timestamps.into_iter().map(|timestamp| look_up(log, timestamp)).collect::<Vec<_>>().join(" ")
}

fn after_now(ms: &[i64]) -> impl Iterator<Item = i64> {
    ms.iter().map(|ms| NOW + ms)
}

#[test]
fn an_empty_log_has_an_end_and_a_start() {
    let mut log = new_log(300);
    assert_eq!(look_up_all(&mut log, [-1, -2, -3, -4, -5, -6]), "-1/0/- -1/0/- none -1/0/- -1/-1/-1 -1/-1/-1");
    assert_eq!(look_up_all(&mut log, [NOW, 0, -7]), "none none none");
}

#[test]
fn the_first_record_that_is_not_older_is_found() {
    let mut log = seven_batches(Compression::None);
    assert_eq!(log.segments().map(|(base, _)| base.get()).collect::<Vec<_>>(), [0, 4, 9]);
    assert_eq!(look_up_all(&mut log, [-1, -2, -3, -4]), "-1/10/3 -1/0/0 40/5/2 -1/0/0");
    let asked = [0, 5, 10, 11, 15, 16, 20, 21, 30, 31, 35, 36, 40, 41];
    let expected = "10/0/0 10/0/0 10/0/0 20/1/0 20/1/0 20/1/0 20/1/0 40/5/2 40/5/2 40/5/2 40/5/2 40/5/2 40/5/2 none";
    assert_eq!(look_up_all(&mut log, after_now(&asked)), expected);
    assert_eq!(look_up_all(&mut log, [0, -7]), "10/0/0 10/0/0");
}

#[test]
fn nothing_below_the_log_start_is_found() {
    let mut log = seven_batches(Compression::None);
    log.update_high_watermark(log.log_end_offset());
    log.maybe_increment_log_start_offset(Offset(3)).unwrap();
    assert_eq!(look_up_all(&mut log, [-1, -2, -3, -4]), "-1/10/3 -1/3/1 40/5/2 -1/3/1");
    let expected = "20/3/1 20/3/1 20/3/1 20/3/1 20/3/1 40/5/2 40/5/2";
    assert_eq!(look_up_all(&mut log, after_now(&[0, 5, 10, 15, 20, 21, 40])), expected);
}

#[test]
fn compressed_batches_are_looked_into() {
    let mut log = new_log(1000);
    append(&mut log, 0, 0, &[NOW, NOW + 2, NOW + 1], Compression::Zstd);
    assert_eq!(look_up_all(&mut log, after_now(&[0, 1, 2, 3])), "0/0/0 2/1/0 2/1/0 none");
    assert_eq!(look_up(&mut log, -3), "2/1/0");
}

#[test]
fn an_epoch_that_begins_behind_the_log_start_is_not_that_of_the_log_start() {
    let mut log = new_log(1000);
    append(&mut log, 5, 3, &[NOW], Compression::None);
    assert_eq!(look_up_all(&mut log, [-2, -4, -1, -3, NOW]), "-1/0/- -1/0/- -1/6/3 0/5/3 0/5/3");
}

#[test]
fn records_without_timestamps_have_the_smallest_one() {
    let mut log = new_log(1000);
    append(&mut log, 0, 0, &[-1, -1], Compression::None);
    assert_eq!(look_up(&mut log, -3), "-1/0/0");
    assert_eq!(look_up(&mut log, 0), "none");
}

#[test]
fn a_segment_whose_largest_timestamp_was_cut_off_is_searched() {
    let mut log = new_log(1000);
    append(&mut log, 0, 0, &[NOW + 26, NOW + 37], Compression::None);
    append(&mut log, 2, 0, &[NOW + 42, NOW + 45], Compression::None);
    // The only entry of the time index is that of the second batch.
    log.close_clean().unwrap();
    let config = log.config().clone();
    let (mut log, _) = PartitionLog::open(log.into_storage(), config, Recovery::Clean, TimestampMs(NOW)).unwrap();
    log.truncate_to(Offset(2), TimestampMs(NOW)).unwrap();
    assert_eq!(look_up_all(&mut log, after_now(&[27, 38])), "37/1/0 none");
}

#[test]
fn a_batch_that_cannot_be_read_is_an_error() {
    let log = seven_batches(Compression::Zstd);
    let name = "00000000000000000000.log";
    let mut storage = log.storage().clone();
    let mut bytes = storage.read_all(name).unwrap().unwrap().to_vec();
    let first = RecordBatch::decode(&bytes.clone().into(), 0).unwrap().1;
    bytes[HEADER_BYTES..first].fill(0xff);
    storage.replace(name, &bytes.into()).unwrap();
    let (mut log, _) = PartitionLog::open(storage, log.config().clone(), Recovery::Clean, TimestampMs(NOW)).unwrap();
    let error = log.fetch_offset_by_timestamp(OffsetSpec::Timestamp(TimestampMs(NOW))).unwrap_err();
    assert!(matches!(error, ReadError::CorruptRecord { position: 0, .. }), "{error}");
    // What the first batch does not have to be read for is found.
    assert_eq!(look_up(&mut log, NOW + 20), "20/1/0");
}
