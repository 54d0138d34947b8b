//! Batches of magic 0 and 1 in a log: copied from an old leader or from the source of a mirror, and what becomes of them.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{CleanOptions, FetchIsolation, LogConfig, LogError, OffsetSpec, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::mirror::{MirrorDesign, MirrorPartition, MirrorState, PidMapping};
use cleanslate_log::record::{AnyBatch, Attributes, BatchBuilder, Compression, LegacyEntry, RecordBatch, compress};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const DAY_MS: i64 = 86_400_000;

type Log = PartitionLog<MemoryStorage>;

/// An entry: a record with a key and a value, or a compressed set without a key.
fn entry(magic: i8, offset: i64, attributes: u8, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let timestamp = (magic == 1).then_some(TimestampMs(NOW.get() + offset));
    let entry = LegacyEntry { offset: Offset(offset), attributes: Attributes(attributes.into()), timestamp, key, value };
    entry.to_bytes().unwrap().to_vec()
}

/// A record whose key tells a name; an empty value is a tombstone.
fn record(magic: i8, offset: i64, key: &str, value: &str) -> Bytes {
    let value = (!value.is_empty()).then_some(value.as_bytes());
    entry(magic, offset, 0, Some(key.as_bytes()), value).into()
}

/// A gzip set of magic 1 of records at offsets up to the last.
fn set(last: i64, keys: &[&str]) -> Bytes {
    let inner: Vec<u8> = keys.iter().zip(0..).flat_map(|(key, at)| entry(1, at, 0, Some(key.as_bytes()), Some(b"v"))).collect();
    entry(1, last, 1, None, Some(&compress(Compression::Gzip, &inner).unwrap())).into()
}

/// A batch of magic 2 of one record, of producer 5 under leader epoch 3.
fn modern(offset: i64, sequence: i32, key: &str) -> Bytes {
    let builder = BatchBuilder::new(Offset(offset)).leader_epoch(LeaderEpoch(3)).timestamp(NOW);
    let builder = builder.producer(ProducerId(5), ProducerEpoch(0), Sequence(sequence));
    builder.record(Some(key.as_bytes()), Some(b"v")).build().unwrap().bytes().clone()
}

fn new_log(config: LogConfig) -> Log {
    PartitionLog::create(MemoryStorage::new(), config, NOW).unwrap()
}

fn follow(log: &mut Log, parts: &[Bytes]) -> Result<(i64, i64), &'static str> {
    let result = log.append_as_follower(parts.concat().into(), LeaderEpoch(9), ReplicationPath::IntraCluster, NOW);
    result.map(|result| (result.first_offset.get(), result.last_offset.get())).map_err(|error| error.kafka_class())
}

/// Magic and last offset of each batch.
fn shown(log: &Log) -> Vec<(i8, i64)> {
    log.all_batches().unwrap().iter().map(|batch| (batch.magic(), batch.last_offset().get())).collect()
}

fn read(log: &Log, from: i64) -> Bytes {
    log.read(Offset(from), FetchIsolation::LogEnd, usize::MAX).unwrap()
}

fn reopened(log: &Log, recovery: Recovery) -> Log {
    PartitionLog::open(log.storage().clone(), log.config().clone(), OpenOptions::new(recovery), NOW).unwrap().0
}

/// Old records at 0 and 1, an old set at 2 to 4, then batches of producer 5 at 5 and 6.
fn mixed(config: LogConfig) -> (Log, Vec<Bytes>) {
    let mut log = new_log(config);
    let parts =
        vec![record(0, 0, "a", "1"), record(1, 1, "b", "1"), set(4, &["c", "d", "e"]), modern(5, 0, "a"), modern(6, 1, "b")];
    assert_eq!(follow(&mut log, &parts[..3]), Ok((-1, 4)), "old batches do not tell where they begin");
    assert_eq!(follow(&mut log, &parts[3..]), Ok((5, 6)));
    (log, parts)
}

#[test]
fn a_copy_is_stored_as_it_is_and_read_as_it_is() {
    let (mut log, parts) = mixed(LogConfig::default());
    assert_eq!(shown(&log), [(0, 0), (1, 1), (1, 4), (2, 5), (2, 6)]);
    assert_eq!(read(&log, 0), parts.concat());
    // A reader within a set is given the whole of it.
    assert_eq!(read(&log, 3), parts[2..].concat());
    let entry = log.producer_state().last_entry(ProducerId(5)).unwrap();
    assert_eq!((entry.last_sequence(), entry.last_data_offset()), (Sequence(1), Offset(6)));
    let found = log.fetch_offset_by_timestamp(OffsetSpec::Timestamp(TimestampMs(NOW.get() + 1))).unwrap().unwrap();
    assert_eq!((found.offset, found.leader_epoch), (Offset(1), None));
}

/// An epoch says where an old log ends only if all batches tell theirs.
#[test]
fn an_old_batch_clears_the_leader_epochs_and_the_next_begins_them_anew() {
    let (log, _) = mixed(LogConfig::default());
    assert_eq!(log.leader_epochs().entries().len(), 1);
    assert_eq!(log.end_offset_for_epoch(LeaderEpoch(3)), Some((LeaderEpoch(3), Offset(7))));
    let mut log = new_log(LogConfig::default());
    follow(&mut log, &[modern(0, 0, "a"), record(1, 1, "b", "1"), modern(2, 1, "b")]).unwrap();
    let entries = log.leader_epochs().entries();
    assert_eq!(entries.iter().map(|entry| entry.start_offset.get()).collect::<Vec<_>>(), [2]);
}

#[test]
fn every_start_finds_the_same_log() {
    for segment_bytes in [1 << 20, 300] {
        let (mut log, parts) = mixed(LogConfig { segment_bytes, index_interval_bytes: 1, ..LogConfig::default() });
        log.close_clean().unwrap();
        for recovery in [Recovery::Clean, Recovery::Unclean] {
            let again = reopened(&log, recovery);
            assert_eq!((read(&again, 0), again.log_end_offset()), (parts.concat().into(), Offset(7)), "{recovery:?}");
            assert_eq!(again.producer_state().last_entry(ProducerId(5)).unwrap().last_sequence(), Sequence(1));
            assert_eq!(again.segments().collect::<Vec<_>>(), log.segments().collect::<Vec<_>>());
        }
    }
}

/// A follower does not look into a set, and neither does a start.
#[test]
fn a_set_may_begin_below_the_log_end() {
    let mut log = new_log(LogConfig::default());
    follow(&mut log, &[record(1, 0, "a", "1"), record(1, 1, "b", "1"), record(1, 2, "c", "1")]).unwrap();
    assert_eq!(follow(&mut log, &[set(3, &["b", "c", "d"])]), Ok((-1, 3)));
    assert_eq!(follow(&mut log, &[set(3, &["d"])]), Err("UnexpectedAppendOffsetException"));
    for recovery in [Recovery::Clean, Recovery::Unclean] {
        assert_eq!(shown(&reopened(&log, recovery)), [(1, 0), (1, 1), (1, 2), (1, 3)], "{recovery:?}");
    }
}

#[test]
fn a_cut_within_a_set_takes_all_of_it() {
    let (mut log, parts) = mixed(LogConfig::default());
    assert_eq!(log.truncate_to(Offset(3), NOW), Ok(true));
    assert_eq!((log.log_end_offset(), read(&log, 0)), (Offset(3), parts[..2].concat().into()));
    assert!(log.producer_state().is_empty());
    assert_eq!(follow(&mut log, &[set(4, &["c", "d", "e"])]), Ok((-1, 4)), "what reaches beyond the end is appended");
}

#[test]
fn a_wrong_checksum_is_refused_and_recovery_cuts_there() {
    let mut log = new_log(LogConfig::default());
    let (good, bad) = (record(1, 0, "a", "1"), record(1, 1, "b", "1"));
    let mut bytes = bad.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    assert_eq!(follow(&mut log, &[good.clone(), bytes.clone().into()]), Err("CorruptRecordException"));
    assert_eq!(log.log_end_offset(), Offset(0), "all or nothing");
    follow(&mut log, std::slice::from_ref(&good)).unwrap();
    let mut storage = log.into_storage();
    cleanslate_log::storage::Storage::append(&mut storage, cleanslate_log::log::LOG_FILE, &bytes.into()).unwrap();
    let options = OpenOptions::new(Recovery::Unclean);
    let (log, report) = PartitionLog::open(storage, LogConfig::default(), options, NOW).unwrap();
    assert_eq!((read(&log, 0), log.log_end_offset()), (good, Offset(1)));
    assert!(report.corruption.is_some());
}

fn round(log: &mut Log, now: i64) -> Result<Offset, LogError> {
    let first_uncleanable = log.segments().last().unwrap().0;
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable, now: TimestampMs(now), max_keys: 100 };
    log.compact(&options)
}

fn of_magic_2(log: &Log) -> Vec<RecordBatch> {
    log.all_batches().unwrap().iter().filter_map(AnyBatch::as_v2).cloned().collect()
}

/// A set becomes a batch that begins with the first record that is left, under no leader epoch.
#[test]
fn compaction_writes_old_batches_anew_in_magic_2() {
    let (mut log, _) = mixed(LogConfig { compact: true, ..LogConfig::default() });
    log.roll(NOW).unwrap();
    assert_eq!(round(&mut log, NOW.get()), Ok(Offset(7)));
    assert_eq!(shown(&log), [(2, 4), (2, 5), (2, 6)]);
    let batches = of_magic_2(&log);
    let set = &batches[0];
    assert_eq!((set.base_offset(), set.leader_epoch(), set.producer_id()), (Offset(2), LeaderEpoch::NONE, ProducerId::NONE));
    assert_eq!(set.attributes().compression(), Some(Compression::Gzip));
    let records: Vec<(i64, i64)> = set.records().unwrap().iter().map(|r| (r.offset.get(), r.timestamp.get())).collect();
    assert_eq!(records, [(2, NOW.get()), (3, NOW.get() + 1), (4, NOW.get() + 2)]);
    assert_eq!(shown(&reopened(&log, Recovery::Unclean)), shown(&log));
}

#[test]
fn a_tombstone_of_an_old_batch_gets_a_horizon_when_it_is_written_anew() {
    let mut log = new_log(LogConfig { compact: true, ..LogConfig::default() });
    follow(&mut log, &[record(1, 0, "a", "1"), record(1, 1, "a", ""), record(0, 2, "b", "1")]).unwrap();
    log.roll(NOW).unwrap();
    round(&mut log, NOW.get()).unwrap();
    let batches = of_magic_2(&log);
    assert_eq!(batches.len(), 2);
    assert_eq!(batches[0].delete_horizon(), Some(TimestampMs(NOW.get() + DAY_MS)));
    assert_eq!(batches[1].max_timestamp(), TimestampMs::NONE, "magic 0 has no time");
    round(&mut log, NOW.get() + DAY_MS).unwrap();
    assert_eq!(shown(&log), [(2, 2)]);
}

/// Of a batch of magic 2 in this place the header would be kept.
#[test]
fn an_old_batch_of_which_nothing_is_left_must_not_be_the_last_of_a_round() {
    let mut log = new_log(LogConfig { compact: true, ..LogConfig::default() });
    follow(&mut log, &[record(1, 0, "a", "1"), entry(1, 1, 0, None, Some(b"no key")).into()]).unwrap();
    log.roll(NOW).unwrap();
    let error = round(&mut log, NOW.get()).unwrap_err();
    assert_eq!(
        (&error, error.kafka_class()),
        (&LogError::EmptyLegacyBatch { position: record(1, 0, "a", "1").len() as u64 }, "IllegalStateException")
    );
    assert_eq!(shown(&log), [(1, 0), (1, 1)]);
}

#[test]
fn a_leader_writes_what_it_is_sent_in_magic_2() {
    let mut log = new_log(LogConfig::default());
    let (origin, tv) = (cleanslate_log::psm::AppendOrigin::Client, cleanslate_log::psm::TransactionVersion::Unknown);
    let sent: Bytes = [record(1, 7, "a", "1"), record(1, 9, "b", "1")].concat().into();
    let result = log.append_as_leader(sent, origin, LeaderEpoch(2), tv, NOW).unwrap();
    assert_eq!((result.first_offset, result.last_offset), (Offset(0), Offset(1)));
    assert_eq!((shown(&log), of_magic_2(&log)[0].leader_epoch()), (vec![(2, 1)], LeaderEpoch(2)));
}

/// The source's old data, also where ids are mapped: old batches have none.
#[test]
fn a_mirror_copies_old_batches_as_they_are() {
    for pid_mapping in [PidMapping::None, PidMapping::NegateEveryHop] {
        let design = MirrorDesign { pid_mapping, ..MirrorDesign::default() };
        let mut mirror = MirrorPartition::new(new_log(LogConfig::default()), design).unwrap();
        mirror.start("A").unwrap();
        mirror.transition(MirrorState::Mirroring).unwrap();
        let parts = [set(2, &["a", "b", "c"]), modern(3, 0, "a"), record(0, 4, "b", "1")];
        mirror.mirror_append(parts.concat().into(), LeaderEpoch(9), NOW).unwrap();
        let log = mirror.log();
        assert_eq!(shown(log), [(1, 2), (2, 3), (0, 4)]);
        let batches = log.all_batches().unwrap();
        assert_eq!((batches[0].bytes(), batches[2].bytes()), (&parts[0], &parts[2]));
        let mapped = of_magic_2(log)[0].producer_id();
        assert_eq!(mapped == ProducerId(5), pid_mapping == PidMapping::None, "{mapped}");
    }
}
