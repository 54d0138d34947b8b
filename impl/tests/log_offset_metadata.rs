//! Where in the files an offset lies: what the append tells the producer state, and when that is known no more.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

use cleanslate_log::log::{FetchIsolation, LogConfig, PartitionLog, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::{BatchBuilder, RecordBatch};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{
    CoordinatorEpoch, LeaderEpoch, Offset, OffsetMetadata, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};

type Log = PartitionLog<MemoryStorage>;

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

fn append(log: &mut Log, batch: &RecordBatch, origin: AppendOrigin) {
    log.append_as_leader(batch.bytes().clone(), origin, LeaderEpoch(0), TransactionVersion::V0, NOW).unwrap();
}

/// One record that belongs to no producer, or to a transaction of one. Returns the size of its batch in bytes.
fn record(log: &mut Log, id: Option<(i64, i32)>) -> u64 {
    let builder = BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(b"key"), Some(b"value"));
    let builder = match id {
        Some((id, sequence)) => builder.producer(ProducerId(id), ProducerEpoch(0), Sequence(sequence)).transactional(true),
        None => builder,
    };
    let batch = builder.build().unwrap();
    append(log, &batch, AppendOrigin::Client);
    batch.size_in_bytes() as u64
}

/// Two records in a first segment; in a second one a record and, behind it, an open transaction of producer 7 at offset 3. Returns
/// the place of that.
fn open_transaction() -> (Log, OffsetMetadata) {
    let mut log = PartitionLog::create(MemoryStorage::new(), LogConfig::default(), NOW).unwrap();
    record(&mut log, None);
    record(&mut log, None);
    log.roll(NOW).unwrap();
    let size = record(&mut log, None);
    record(&mut log, Some((7, 0)));
    record(&mut log, None);
    (log, OffsetMetadata::at(Offset(3), Offset(2), size))
}

/// What the producer state knows of the first unstable offset, and what the log answers.
fn unstable(log: &Log) -> (Option<OffsetMetadata>, Option<OffsetMetadata>) {
    (log.producer_state().first_unstable_offset_metadata(), log.first_unstable_offset_metadata())
}

#[test]
fn an_append_tells_where_a_transaction_begins_and_an_ended_one_still_knows() {
    let (mut log, place) = open_transaction();
    assert_eq!(unstable(&log), (Some(place), Some(place)));
    let (id, coordinator) = (ProducerId(7), CoordinatorEpoch(0));
    let marker = RecordBatch::end_txn_marker(Offset(0), LeaderEpoch(0), NOW, id, ProducerEpoch(0), true, coordinator).unwrap();
    append(&mut log, &marker, AppendOrigin::Coordinator);
    // Ended, but the marker is not replicated.
    assert_eq!(unstable(&log), (Some(place), Some(place)));
    log.update_high_watermark(Offset(6));
    assert_eq!(unstable(&log), (None, None));
}

#[test]
fn several_batches_of_one_append_have_a_place_each() {
    let mut log = PartitionLog::create(MemoryStorage::new(), LogConfig::default(), NOW).unwrap();
    let batch = |id: i64| {
        let builder = BatchBuilder::new(Offset(id)).timestamp(NOW).record(None, Some(b"value"));
        builder.producer(ProducerId(id), ProducerEpoch(0), Sequence(0)).transactional(true).leader_epoch(LeaderEpoch(0)).build()
    };
    let batches: Vec<RecordBatch> = (0..3).map(|id| batch(id).unwrap()).collect();
    let bytes: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes().to_vec()).collect();
    let path = cleanslate_log::barrier::ReplicationPath::IntraCluster;
    log.append_as_follower(bytes.into(), LeaderEpoch(0), path, NOW).unwrap();
    let size = batches[0].size_in_bytes() as u64;
    let open = log.producer_state().ongoing_transactions().values();
    let places: Vec<OffsetMetadata> = open.map(cleanslate_log::psm::TxnMetadata::first_offset_metadata).collect();
    let at = |offset: i64, position| OffsetMetadata::at(Offset(offset), Offset(0), position);
    assert_eq!(places, [at(0, 0), at(1, size), at(2, 2 * size)]);
}

/// The producer state is made anew from a snapshot or from the records, and knows the offset only; the log looks for the place.
#[test]
fn a_reload_forgets_the_place_and_the_log_finds_it_again() {
    let only = Some(OffsetMetadata::offset_only(Offset(3)));
    let (mut log, place) = open_transaction();
    log.truncate_to(Offset(4), NOW).unwrap();
    assert_eq!(log.producer_state().first_unstable_offset_metadata(), only, "truncation");
    log.update_high_watermark(Offset(1));
    assert_eq!(unstable(&log), (only, Some(place)), "truncation");
    for recovery in [Recovery::Clean, Recovery::Unclean] {
        let (mut log, _) = open_transaction();
        if recovery == Recovery::Clean {
            log.close_clean().unwrap();
        }
        let (log, _) = PartitionLog::open(log.into_storage(), LogConfig::default(), recovery, NOW).unwrap();
        assert_eq!(unstable(&log), (only, Some(place)), "{recovery:?}");
    }
}

/// Below the log start there is nothing to place: the first unstable offset is the log start, whose place is looked for.
#[test]
fn the_log_start_takes_the_place_of_what_lies_below() {
    let (mut log, place) = open_transaction();
    let size = record(&mut log, Some((7, 1)));
    log.update_high_watermark(Offset(6));
    log.maybe_increment_log_start_offset(Offset(5)).unwrap();
    let before = place.position.unwrap().position;
    let expected = OffsetMetadata::at(Offset(5), Offset(2), before + size + before);
    assert_eq!(unstable(&log), (Some(place), Some(expected)));
}

/// Where the log stands, and the places. The high watermark lies within a batch of two records, and goes down to its beginning.
#[test]
fn a_snapshot_of_the_offsets_has_their_places() {
    let (mut log, place) = open_transaction();
    let at = |position| OffsetMetadata::at(Offset(5), Offset(2), position);
    let size = place.position.unwrap().position;
    let two = BatchBuilder::new(Offset(0)).timestamp(NOW).record(None, Some(b"a")).record(None, Some(b"b")).build().unwrap();
    append(&mut log, &two, AppendOrigin::Client);
    log.update_high_watermark(Offset(6));
    let snapshot = log.fetch_offset_snapshot().unwrap();
    assert_eq!(snapshot.log_start_offset, Offset(0));
    assert_eq!(snapshot.high_watermark, at(3 * size));
    assert_eq!(log.high_watermark(), Offset(5));
    assert_eq!(snapshot.last_stable_offset, place);
    let end = 3 * size + two.size_in_bytes() as u64;
    assert_eq!(snapshot.log_end_offset, OffsetMetadata::at(Offset(7), Offset(2), end));
    // A reader is told where its bytes begin, and where it was stopped.
    let read = log.fetch(Offset(0), FetchIsolation::LogEnd, 1, false).unwrap();
    assert_eq!((read.records.len(), read.offset), (1, OffsetMetadata::at(Offset(0), Offset(0), 0)));
    let stopped = log.fetch(Offset(3), FetchIsolation::TxnCommitted, 1, true).unwrap();
    assert_eq!((stopped.records.len(), stopped.offset), (0, place));
}
