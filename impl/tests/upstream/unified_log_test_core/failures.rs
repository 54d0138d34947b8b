#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! A storage that cannot write one kind of file.

use cleanslate_log::log::{FetchIsolation, LogConfig, PartitionLog, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::FaultyStorage;
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::support::{NOW, end_txn, plain, produced};

fn failing(suffix: &str) -> PartitionLog<FaultyStorage> {
    let mut storage = FaultyStorage::new();
    storage.refuse_files(suffix);
    PartitionLog::create(storage, LogConfig::default(), NOW).unwrap()
}

fn append(log: &mut PartitionLog<FaultyStorage>, batch: &RecordBatch, origin: AppendOrigin) -> Result<(), &'static str> {
    let result = log.append_as_leader(batch.bytes().clone(), origin, LeaderEpoch(0), TransactionVersion::V0, NOW);
    result.map(|_| ()).map_err(|error| error.kafka_class())
}

#[test]
fn test_recovery_point_not_incremented_on_producer_state_snapshot_flush_failure() {
    let mut log = failing(".snapshot");
    append(&mut log, &plain(1).build().unwrap(), AppendOrigin::Client).unwrap();
    assert_eq!(log.recovery_point(), Offset(0));
    assert_eq!(log.roll(NOW).unwrap_err().kafka_class(), "KafkaStorageException");
    assert_eq!(log.recovery_point(), Offset(0));
}

#[test]
fn test_append_to_transaction_index_failure() {
    let mut log = failing(".txnindex");
    append(&mut log, &produced(1, 0, 0, 10).transactional(true).build().unwrap(), AppendOrigin::Client).unwrap();
    for _ in 0..2 {
        let aborted = append(&mut log, &end_txn(1, 0, false, 1), AppendOrigin::Coordinator);
        assert_eq!(aborted, Err("KafkaStorageException"));
    }
    assert_eq!((log.log_end_offset(), log.last_stable_offset()), (Offset(11), Offset(0)));
    log.update_high_watermark(Offset(12));
    assert_eq!(log.last_stable_offset(), Offset(0));
    let storage = log.into_storage().visible().clone();
    let (mut log, _) = PartitionLog::open(storage, LogConfig::default(), Recovery::Unclean, NOW).unwrap();
    log.update_high_watermark(Offset(12));
    assert_eq!((log.log_end_offset(), log.first_unstable_offset()), (Offset(11), None));
    assert_eq!(log.collect_aborted_transactions(Offset(0), Offset(100)).len(), 1);
}

#[test]
fn test_append_to_or_read_from_log_in_failed_log_dir() {
    let mut log = failing(".txnindex");
    append(&mut log, &plain(1).build().unwrap(), AppendOrigin::Client).unwrap();
    let first = |log: &mut PartitionLog<FaultyStorage>| {
        let fetched = log.fetch(Offset(0), FetchIsolation::LogEnd, 4096, true);
        fetched.map(|data| data.offset.offset.get()).map_err(|error| error.kafka_class())
    };
    assert_eq!(first(&mut log), Ok(0));
    append(&mut log, &produced(1, 0, 0, 10).transactional(true).build().unwrap(), AppendOrigin::Client).unwrap();
    let failed = "KafkaStorageException";
    assert_eq!(append(&mut log, &end_txn(1, 0, false, 1), AppendOrigin::Coordinator), Err(failed));
    assert_eq!(append(&mut log, &plain(1).build().unwrap(), AppendOrigin::Client), Err(failed));
    assert_eq!(first(&mut log), Err(failed));
}
