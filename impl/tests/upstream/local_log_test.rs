#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LocalLogTest.

use bytes::Bytes;
use cleanslate_log::log::{FetchIsolation, PartitionLog};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::{BatchBuilder, BatchReader};
use cleanslate_log::storage::Storage;
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::support::NOW;

mod files;
mod segments;

/// A key, if there is one, and a value.
pub(crate) type KeyValue<'a> = (Option<&'a str>, &'a str);

/// One record without a key.
const A: [KeyValue<'_>; 1] = [(None, "a")];

/// The leader of an epoch appends one batch of records.
pub(crate) fn append_under<S: Storage>(
    log: &mut PartitionLog<S>,
    records: &[KeyValue<'_>],
    epoch: i32,
) -> Result<(), &'static str> {
    let add = |batch: BatchBuilder, record: &KeyValue<'_>| batch.record(record.0.map(str::as_bytes), Some(record.1.as_bytes()));
    let batch = records.iter().fold(BatchBuilder::new(Offset(0)).timestamp(NOW), add).build().unwrap();
    let (origin, tv) = (AppendOrigin::Client, TransactionVersion::Unknown);
    let appended = log.append_as_leader(batch.bytes().clone(), origin, LeaderEpoch(epoch), tv, NOW);
    appended.map(|_| ()).map_err(|error| error.kafka_class())
}

/// As [`append_under`], for a leader of epoch 0 that is not refused.
pub(crate) fn append<S: Storage>(log: &mut PartitionLog<S>, records: &[KeyValue<'_>]) {
    append_under(log, records, 0).unwrap();
}

/// Keys and values of records; no key is an empty one.
fn key_values(bytes: Bytes) -> Vec<(String, String)> {
    let text = |bytes: Option<Bytes>| String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap();
    let records = BatchReader::new(bytes).flat_map(|batch| batch.unwrap().records().unwrap());
    records.map(|record| (text(record.key), text(record.value))).collect()
}

/// Keys and values of the records from an offset on, over all segments.
fn read<S: Storage>(log: &PartitionLog<S>, from: i64) -> Vec<(String, String)> {
    key_values(log.read(Offset(from), FetchIsolation::LogEnd, usize::MAX).unwrap())
}

fn pairs(records: &[(&str, &str)]) -> Vec<(String, String)> {
    records.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
