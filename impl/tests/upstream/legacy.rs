#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Record sets of magic 0 and 1, as Kafka's `MemoryRecords.withRecords` makes them.

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::PartitionLog;
use cleanslate_log::record::{Attributes, BatchBuilder, Compression, LegacyEntry, Magic, RecordsBuilder, compress};
use cleanslate_log::storage::Storage;
use cleanslate_log::types::{LeaderEpoch, Offset};

use crate::upstream::support::NOW;

/// A key and a value; `None` is null.
pub(crate) type KeyValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// An entry: a record, or a compressed set.
fn entry(magic: i8, offset: i64, codec: Compression, (key, value): KeyValue<'_>) -> Vec<u8> {
    let attributes = Attributes::default().with_compression(codec);
    let timestamp = (magic == 1).then_some(NOW);
    LegacyEntry { offset: Offset(offset), attributes, timestamp, key, value }.to_bytes().unwrap().to_vec()
}

/// Records at offsets from the first on: one entry each, or one compressed set.
pub(crate) fn legacy(magic: i8, first: i64, codec: Compression, records: &[KeyValue<'_>]) -> Bytes {
    let magic = if magic == 0 { Magic::V0 } else { Magic::V1 };
    let settings = BatchBuilder::new(Offset(first)).compression(codec).timestamp(NOW);
    let settings = records.iter().fold(settings, |settings, (key, value)| settings.record(*key, *value));
    RecordsBuilder::new(magic, settings, 0).unwrap().build().unwrap()
}

/// So many records with the same key and value.
pub(crate) fn same(magic: i8, first: i64, codec: Compression, count: usize) -> Bytes {
    legacy(magic, first, codec, &vec![(Some(b"key".as_slice()), Some(b"value".as_slice())); count])
}

/// A follower appends bytes, fetched under the highest leader epoch; first and last offset.
pub(crate) fn follow_bytes<S: Storage>(log: &mut PartitionLog<S>, bytes: Bytes) -> Result<(i64, i64), &'static str> {
    let result = log.append_as_follower(bytes, LeaderEpoch(i32::MAX), ReplicationPath::IntraCluster, NOW);
    result.map(|r| (r.first_offset.get(), r.last_offset.get())).map_err(|e| e.kafka_class())
}

/// A set of one record that has another magic.
pub(crate) fn mixed_set(outer: i8, inner: i8) -> Bytes {
    let record = entry(inner, 0, Compression::None, (Some(b"key"), Some(b"value")));
    entry(outer, 0, Compression::Gzip, (None, Some(&compress(Compression::Gzip, &record).unwrap()))).into()
}

/// A set as old versions of the cleaner could write it: of magic 1, with records of magic 0 whose offsets count from 0. Values are the
/// offsets.
pub(crate) fn wrongly_cleaned(first: i64, keys: &[&str]) -> Bytes {
    let record = |(key, at): (&&str, i64)| {
        let value = (first + at).to_string();
        entry(0, at, Compression::None, (Some(key.as_bytes()), Some(value.as_bytes())))
    };
    let inner: Vec<u8> = keys.iter().zip(0..).flat_map(record).collect();
    let last = first + i64::try_from(keys.len()).unwrap() - 1;
    entry(1, last, Compression::Gzip, (None, Some(&compress(Compression::Gzip, &inner).unwrap()))).into()
}
