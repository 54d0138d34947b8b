#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! What times a leader gives the batches of magic 2 that it makes of records of magic 0 and 1.

use bytes::Bytes;
use cleanslate_log::record::{AssignError, AssignRules, Assigned, Compression, RecordBatch, TimestampType, assign_offsets};
use cleanslate_log::types::{ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::{BAD_TIME, NOW, rules};
use crate::upstream::legacy::legacy;

/// Three records at [`NOW`], as far as the magic has times, with offsets from 0 on.
fn records(magic: i8, codec: Compression) -> Bytes {
    let records = [b"hello".as_slice(), b"there", b"beautiful"].map(|value| (None, Some(value)));
    legacy(magic, 0, codec, &records)
}

fn assign(magic: i8, codec: Compression, rules: &AssignRules) -> Result<(Assigned, RecordBatch), AssignError> {
    let rules = AssignRules { target: Some(codec), ..*rules };
    let mut assigned = assign_offsets(&records(magic, codec), &rules)?;
    let batch = assigned.batch.take().unwrap();
    assert_eq!((batch.ensure_valid(), batch.attributes().compression()), (Ok(()), Some(codec)));
    assert!(assigned.rebuilt);
    Ok((assigned, batch))
}

fn check_create_time(magic: i8, expected: TimestampMs) {
    let (assigned, batch) = assign(magic, Compression::Gzip, &rules()).unwrap();
    assert_eq!((batch.max_timestamp(), assigned.max_timestamp), (expected, expected));
    assert!(batch.records().unwrap().iter().all(|record| record.timestamp == expected));
    assert_eq!(batch.attributes().timestamp_type(), TimestampType::CreateTime);
    let producer = (batch.producer_id(), batch.producer_epoch(), batch.base_sequence());
    assert_eq!(producer, (ProducerId(-1), ProducerEpoch(-1), Sequence(-1)));
}

#[test]
fn check_create_time_up_conversion_from_v0() {
    check_create_time(0, TimestampMs(-1));
}

#[test]
fn test_create_time_up_conversion_v1_to_v2() {
    check_create_time(1, NOW);
}

#[test]
fn test_invalid_create_time_compressed_v1() {
    let at = |ms: i64| AssignRules { now: TimestampMs(NOW.get() + ms), ..rules() };
    assert!(assign(1, Compression::Gzip, &at(1000)).is_ok());
    assert_eq!(assign(1, Compression::Gzip, &at(1001)).unwrap_err().kafka_class(), BAD_TIME);
}
