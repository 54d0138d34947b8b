//! Segments with offsets too far from their base. What is expected is what Apache Kafka 4.3.1 makes of the same files.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

use bytes::Bytes;
use cleanslate_log::log::{CleanOptions, LogConfig, LogError, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::snapshot_files;
use cleanslate_log::record::{BatchBuilder, RecordBatch};
use cleanslate_log::storage::{MemoryStorage, Storage as _};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const MAX: i64 = i32::MAX as i64;
/// A snapshot without producers.
const EMPTY_SNAPSHOT: &[u8] = &[0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0];

type Log = PartitionLog<MemoryStorage>;

fn builder(offset: i64, after_ms: i64) -> BatchBuilder {
    BatchBuilder::new(Offset(offset)).leader_epoch(LeaderEpoch(0)).timestamp(TimestampMs(NOW.get() + after_ms))
}

fn filled(builder: BatchBuilder, records: usize) -> Bytes {
    filled_with((0..records).fold(builder, |builder, _| builder.record(Some(b"key"), Some(b"value"))))
}

fn filled_with(builder: BatchBuilder) -> Bytes {
    builder.build().unwrap().bytes().clone()
}

/// One record, 76 bytes.
fn plain(offset: i64, after_ms: i64) -> Bytes {
    filled(builder(offset, after_ms), 1)
}

fn produced(offset: i64, id: i64, transactional: bool) -> Bytes {
    let producer = builder(offset, 0).producer(ProducerId(id), ProducerEpoch(0), Sequence(0));
    filled(producer.transactional(transactional), 1)
}

fn abort(offset: i64, id: i64) -> Bytes {
    let (id, epoch) = (ProducerId(id), ProducerEpoch(0));
    let marker = RecordBatch::end_txn_marker(Offset(offset), LeaderEpoch(0), NOW, id, epoch, false, CoordinatorEpoch(1));
    marker.unwrap().bytes().clone()
}

/// Five batches, the last two of which are too far from the base offset.
fn five_batches() -> Vec<Bytes> {
    vec![produced(0, 7, false), plain(1, 1), plain(MAX, 2), plain(MAX + 5, 5), produced(MAX + 6, 8, false)]
}

fn name(base: i64, suffix: &str) -> String {
    format!("{base:0>20}.{suffix}")
}

/// The files of a segment with empty indexes.
fn put_segment(storage: &mut MemoryStorage, base: i64, batches: &[Bytes]) {
    storage.replace(&name(base, "log"), &batches.concat().into()).unwrap();
    for suffix in ["index", "timeindex"] {
        storage.replace(&name(base, suffix), &Bytes::new()).unwrap();
    }
}

fn segment(batches: &[Bytes]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    put_segment(&mut storage, 0, batches);
    storage
}

fn open(storage: MemoryStorage, recovery: Recovery, recovery_point: i64) -> Result<Log, LogError> {
    let options = OpenOptions { recovery, recovery_point: Offset(recovery_point), log_start_offset: Offset(0) };
    let config = LogConfig { index_interval_bytes: 1, ..LogConfig::default() };
    PartitionLog::open(storage, config, options, NOW).map(|(log, _)| log)
}

/// Segments with their sizes, log end offset, recovery point, producers, aborted transactions with their last stable
/// offset, and snapshots; offsets above [`MAX`] as `M+n`.
fn show(log: &Log) -> String {
    let offset = |offset: Offset| match offset.get() {
        far if far > MAX => format!("M+{}", far - MAX),
        near => near.to_string(),
    };
    let list = |items: Vec<String>| items.join(" ");
    let segments = log.segments().map(|(base, size)| format!("{}/{size}", offset(base))).collect();
    let ids = log.producer_state().active_producers().keys().map(|id| id.to_string()).collect();
    let aborted = log.aborted_transactions().map(|txn| {
        format!("{}/{}..{}/{}", txn.producer_id, offset(txn.first_offset), offset(txn.last_offset), offset(txn.last_stable_offset))
    });
    let snapshots = snapshot_files(log.storage()).unwrap().iter().map(|file| offset(file.offset)).collect();
    let (end, point) = (offset(log.log_end_offset()), offset(log.recovery_point()));
    let (segments, ids, aborted) = (list(segments), list(ids), list(aborted.collect()));
    format!("{segments} | LEO {end} | rp {point} | ids {ids} | aborted {aborted} | snapshots {}", list(snapshots))
}

#[track_caller]
fn check(storage: MemoryStorage, recovery: Recovery, recovery_point: i64, expected: &str) -> Log {
    let mut log = open(storage, recovery, recovery_point).unwrap();
    assert_eq!(show(&log), expected);
    let names = log.storage().names().unwrap();
    assert!(names.iter().all(|name| !name.ends_with("swap") && !name.ends_with("cleaned")), "{names:?}");
    // Nothing is left to be split.
    let base_offset = log.segments().next().unwrap().0;
    if recovery == Recovery::Unclean {
        assert_eq!(log.split_overflowed_segment(base_offset, NOW), Err(LogError::NoOverflow { base_offset }));
    }
    log
}

fn file(log: &Log, base: i64, suffix: &str) -> String {
    let bytes = log.storage().read_all(&name(base, suffix)).unwrap().unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_segment_is_split_when_it_is_recovered() {
    let expected = "0/228 M+5/152 | LEO M+7 | rp 0 | ids 7 8 | aborted  | snapshots M+5 M+7";
    let mut log = check(segment(&five_batches()), Recovery::Unclean, 0, expected);
    log.close_clean().unwrap();
    assert_eq!(file(&log, 0, "index"), "000000010000004c7fffffff00000098");
    assert_eq!(file(&log, 0, "timeindex"), "0000018bcfe56801000000010000018bcfe568027fffffff");
    assert_eq!(file(&log, MAX + 5, "index"), "000000010000004c");
    assert_eq!(file(&log, MAX + 5, "timeindex"), "0000018bcfe5680500000000");
    assert_eq!(log.leader_epochs().entries().len(), 1);
}

#[test]
fn a_recovery_point_in_the_second_part_leaves_the_first_alone() {
    let expected = "0/228 M+5/152 | LEO M+7 | rp M+6 | ids 7 8 | aborted  | snapshots M+5 M+7";
    check(segment(&five_batches()), Recovery::Unclean, MAX + 6, expected);
}

#[test]
fn after_an_orderly_stop_a_segment_is_split_only_if_its_index_is_gone() {
    let whole = "0/380 | LEO M+7 | rp M+7 | ids  | aborted  | snapshots M+7";
    check(segment(&five_batches()), Recovery::Clean, 0, whole);
    let mut storage = segment(&five_batches());
    storage.remove(&name(0, "index")).unwrap();
    let split = "0/228 M+5/152 | LEO M+7 | rp M+7 | ids  | aborted  | snapshots M+5 M+7";
    check(storage.clone(), Recovery::Clean, 0, split);
    let recovered = "0/228 M+5/152 | LEO M+7 | rp 0 | ids 7 8 | aborted  | snapshots M+5 M+7";
    check(storage, Recovery::Unclean, 0, recovered);
}

#[test]
fn there_are_as_many_parts_as_it_takes() {
    let batches = [0, MAX + 1, 2 * MAX + 1, 2 * MAX + 2, 3 * MAX + 3].map(|offset| plain(offset, 0));
    let expected = format!(
        "0/76 M+1/152 M+{}/76 M+{}/76 | LEO M+{} | rp 0 | ids  | aborted  | snapshots M+1 M+{} M+{} M+{}",
        MAX + 2,
        2 * MAX + 3,
        2 * MAX + 4,
        MAX + 2,
        2 * MAX + 3,
        2 * MAX + 4
    );
    check(segment(&batches), Recovery::Unclean, 0, &expected);
}

#[test]
fn a_transaction_index_is_built_anew_where_a_part_is_recovered() {
    let batches = [produced(0, 7, true), abort(1, 7), plain(MAX + 5, 0), produced(MAX + 6, 8, true), abort(MAX + 7, 8)];
    let both = "7/0..1/2 8/M+6..M+7/M+8";
    let expected =
        |rp: &str, aborted: &str| format!("0/154 M+5/230 | LEO M+8 | rp {rp} | ids 7 8 | aborted {aborted} | snapshots M+5 M+8");
    check(segment(&batches), Recovery::Unclean, 0, &expected("0", both));
    // The first part is not recovered, and its entry is lost.
    let mut storage = segment(&batches);
    let entry: Vec<u8> = [0, 7, 0, 1, 2].iter().flat_map(|number: &i64| number.to_be_bytes()).skip(6).collect();
    storage.replace(&name(0, "txnindex"), &entry.into()).unwrap();
    check(storage, Recovery::Unclean, MAX + 6, &expected("M+6", "8/M+6..M+7/M+8"));
}

#[test]
fn segments_before_and_behind_stay() {
    let mut storage = segment(&five_batches());
    put_segment(&mut storage, MAX + 10, &[plain(MAX + 10, 0), plain(MAX + 11, 0)]);
    storage.replace(&name(MAX + 10, "snapshot"), &Bytes::from_static(EMPTY_SNAPSHOT)).unwrap();
    let behind = "0/228 M+5/152 M+10/152 | LEO M+12 | rp 0 | ids 7 8 | aborted  | snapshots M+5 M+10 M+12";
    check(storage, Recovery::Unclean, 0, behind);

    let mut storage = segment(&[plain(0, 0)]);
    put_segment(&mut storage, 5, &[plain(5, 0), plain(MAX + 6, 0)]);
    storage.replace(&name(5, "snapshot"), &Bytes::from_static(EMPTY_SNAPSHOT)).unwrap();
    let before = "0/76 5/76 M+6/76 | LEO M+7 | rp 0 | ids  | aborted  | snapshots 5 M+6 M+7";
    check(storage, Recovery::Unclean, 0, before);
}

#[test]
fn the_snapshot_of_a_segment_that_is_gone_goes_too() {
    let mut storage = segment(&[plain(0, 0)]);
    put_segment(&mut storage, 5, &[plain(MAX + 6, 0)]);
    storage.replace(&name(5, "snapshot"), &Bytes::from_static(EMPTY_SNAPSHOT)).unwrap();
    let expected = "0/76 M+6/76 | LEO M+7 | rp 0 | ids  | aborted  | snapshots M+6 M+7";
    check(storage, Recovery::Unclean, 0, expected);
}

#[test]
fn a_bad_batch_is_found_where_it_is_met_first() {
    let mut batches = five_batches();
    let damaged = |batch: &Bytes| {
        let mut bytes = batch.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        Bytes::from(bytes)
    };
    let good = batches[4].clone();
    batches[4] = damaged(&good);
    let behind = "0/228 M+5/76 | LEO M+6 | rp 0 | ids 7 | aborted  | snapshots M+5 M+6";
    check(segment(&batches), Recovery::Unclean, 0, behind);
    batches[4] = good;
    batches[2] = damaged(&batches[2]);
    let before = "0/152 | LEO 2 | rp 0 | ids 7 | aborted  | snapshots 2";
    check(segment(&batches), Recovery::Unclean, 0, before);
}

#[test]
fn a_torn_end_cannot_be_split() {
    let torn = [five_batches(), vec![Bytes::from_static(&[1, 2, 3])]].concat();
    let error = open(segment(&torn), Recovery::Unclean, 0).unwrap_err();
    assert_eq!(error, LogError::SplitTrailingBytes { position: 380, len: 383 });
    assert_eq!(error.kafka_class(), "NoSuchElementException");
}

#[test]
fn batches_in_front_of_the_base_are_split_off_or_refused() {
    let mut storage = MemoryStorage::new();
    put_segment(&mut storage, 5, &[plain(3, 0), plain(MAX + 9, 0)]);
    let log = open(storage, Recovery::Unclean, 0).unwrap();
    assert_eq!(show(&log), "3/76 M+9/76 | LEO M+10 | rp 3 | ids  | aborted  | snapshots M+9 M+10");
    let mut storage = MemoryStorage::new();
    put_segment(&mut storage, 5, &[plain(3, 0)]);
    let error = open(storage, Recovery::Unclean, 0).unwrap_err();
    assert_eq!((error.kafka_class(), error), ("IllegalArgumentException", LogError::NoOverflow { base_offset: Offset(5) }));
}

#[test]
fn an_open_log_can_split_its_segments() {
    let mut log = open(segment(&five_batches()), Recovery::Clean, 0).unwrap();
    assert_eq!(log.split_overflowed_segment(Offset(0), NOW), Ok(vec![Offset(0), Offset(MAX + 5)]));
    assert_eq!(show(&log), "0/228 M+5/152 | LEO M+7 | rp M+7 | ids  | aborted  | snapshots M+7");
    let error = log.split_overflowed_segment(Offset(9), NOW);
    assert_eq!(error, Err(LogError::NoOverflow { base_offset: Offset(9) }));
}

/// One cleaning round that is given up for a split, and the next one; segments with their sizes after each.
#[track_caller]
fn check_cleaning(keys: &[(i64, &str)], after_split: [(i64, u64); 3], after_cleaning: [(i64, u64); 3]) {
    let keyed = |offset: i64, key: &str| filled_with(builder(offset, 0).record(Some(key.as_bytes()), Some(b"value")));
    let mut storage = segment(&keys.iter().map(|(offset, key)| keyed(*offset, key)).collect::<Vec<_>>());
    put_segment(&mut storage, MAX + 9, &[keyed(MAX + 9, "a")]);
    let mut log = open(storage, Recovery::Clean, 0).unwrap();
    let segments = |log: &Log| log.segments().map(|(base, size)| (base.get(), size)).collect::<Vec<_>>();
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: log.log_end_offset(), now: NOW, max_keys: 100 };
    let error = log.compact(&options).unwrap_err();
    assert_eq!((error.kafka_class(), segments(&log)), ("LogCleaningAbortedException", after_split.to_vec()));
    assert_eq!(log.compact(&options), Ok(Offset(MAX + 9)));
    assert_eq!(segments(&log), after_cleaning);
}

#[test]
fn cleaning_splits_a_segment_and_begins_anew() {
    let split = [(0, 148), (MAX + 5, 74), (MAX + 9, 74)];
    check_cleaning(&[(0, "a"), (1, "b"), (MAX + 5, "c")], split, split);
    let (split, cleaned) = ([(0, 74), (MAX + 5, 74), (MAX + 9, 74)], [(0, 0), (MAX + 5, 74), (MAX + 9, 74)]);
    check_cleaning(&[(0, "a"), (MAX + 5, "a")], split, cleaned);
    let (split, cleaned) = ([(0, 74), (MAX + 5, 148), (MAX + 9, 74)], [(0, 0), (MAX + 5, 148), (MAX + 9, 74)]);
    check_cleaning(&[(0, "a"), (MAX + 5, "b"), (MAX + 6, "a")], split, cleaned);
}
