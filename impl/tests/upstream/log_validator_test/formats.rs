#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Records that are stored in the magic that is asked for, whichever they came in.

use bytes::Bytes;
use cleanslate_log::record::{
    AnyBatch, AnyBatchReader, AssignRules, BatchBuilder, Compression, LegacyEntry, Magic, Record, RecordsBuilder, TimestampType,
    assign_offsets_in,
};
use cleanslate_log::types::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::{NOW, rules};

const FIRST: i64 = 1_234_567;

/// Records of a magic, with offsets from 0 on, are given those from 1234567 on in the magic that is asked for.
#[track_caller]
fn check_assignment(from: Magic, to: Magic, codec: Compression) {
    let records = source(from, codec, BatchBuilder::new(Offset(0)));
    let batches = |bytes: &Bytes| AnyBatchReader::new(bytes.clone()).map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(offsets_of(&batches(&records)), [0, 1, 2]);
    let rules = AssignRules { target: Some(codec), next_offset: Offset(FIRST), ..rules() };
    let assigned = assign_offsets_in(to, &records, &rules).unwrap();
    assert_eq!(assigned.next_offset, Offset(FIRST + 3));
    let stored = batches(&assigned.bytes);
    assert_eq!(offsets_of(&stored), [FIRST, FIRST + 1, FIRST + 2]);
    for batch in &stored {
        assert_eq!((batch.magic(), batch.ensure_valid()), (to.get(), Ok(())));
    }
    let values = |batches: &[AnyBatch]| {
        batches.iter().flat_map(|batch| batch.records().unwrap()).map(|record| record.value).collect::<Vec<_>>()
    };
    assert_eq!(values(&stored), values(&batches(&records)));
    // Entries of their own in an old format, one batch otherwise.
    let is_plain = codec == Compression::None;
    assert_eq!(stored.len(), if is_plain && to < Magic::V2 { 3 } else { 1 });
    assert_eq!(assigned.rebuilt, from != to || (to == Magic::V0 && !is_plain));
    let largest = if from == Magic::V0 || to == Magic::V0 { TimestampMs::NONE } else { NOW };
    assert_eq!(assigned.max_timestamp, largest);
}

/// The three records of Kafka's tests.
fn source(magic: Magic, codec: Compression, settings: BatchBuilder) -> Bytes {
    let settings = settings.compression(codec).timestamp(NOW);
    let settings = ["hello", "there", "beautiful"].iter().fold(settings, |all, value| all.record(None, Some(value.as_bytes())));
    RecordsBuilder::new(magic, settings, 0).unwrap().build().unwrap()
}

/// The offsets of all records.
fn offsets_of(batches: &[AnyBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.records().unwrap()).map(|record| record.offset.get()).collect()
}

#[test]
fn test_absolute_offset_assignment_non_compressed() {
    check_assignment(Magic::V0, Magic::V0, Compression::None);
}

#[test]
fn test_absolute_offset_assignment_compressed() {
    check_assignment(Magic::V0, Magic::V0, Compression::Gzip);
}

#[test]
fn test_relative_offset_assignment_non_compressed_v1() {
    check_assignment(Magic::V1, Magic::V1, Compression::None);
}

#[test]
fn test_relative_offset_assignment_compressed_v1() {
    check_assignment(Magic::V1, Magic::V1, Compression::Gzip);
}

#[test]
fn test_offset_assignment_after_up_conversion_v0_to_v1_non_compressed() {
    check_assignment(Magic::V0, Magic::V1, Compression::None);
}

#[test]
fn test_offset_assignment_after_up_conversion_v0_to_v1_compressed() {
    check_assignment(Magic::V0, Magic::V1, Compression::Gzip);
}

#[test]
fn test_offset_assignment_after_up_conversion_v0_to_v2_non_compressed() {
    check_assignment(Magic::V0, Magic::V2, Compression::None);
}

#[test]
fn test_offset_assignment_after_up_conversion_v0_to_v2_compressed() {
    check_assignment(Magic::V0, Magic::V2, Compression::Gzip);
}

#[test]
fn test_offset_assignment_after_up_conversion_v1_to_v2_non_compressed() {
    check_assignment(Magic::V1, Magic::V2, Compression::None);
}

#[test]
fn test_offset_assignment_after_up_conversion_v1_to_v2_compressed() {
    check_assignment(Magic::V1, Magic::V2, Compression::Gzip);
}

#[test]
fn test_offset_assignment_after_down_conversion_v1_to_v0_non_compressed() {
    check_assignment(Magic::V1, Magic::V0, Compression::None);
}

#[test]
fn test_offset_assignment_after_down_conversion_v1_to_v0_compressed() {
    check_assignment(Magic::V1, Magic::V0, Compression::Gzip);
}

#[test]
fn test_offset_assignment_after_down_conversion_v2_to_v1_non_compressed() {
    check_assignment(Magic::V2, Magic::V1, Compression::None);
}

#[test]
fn test_offset_assignment_after_down_conversion_v2_to_v1_compressed() {
    check_assignment(Magic::V2, Magic::V1, Compression::Gzip);
}

#[test]
fn test_offset_assignment_after_down_conversion_v2_to_v0_non_compressed() {
    check_assignment(Magic::V2, Magic::V0, Compression::None);
}

#[test]
fn test_offset_assignment_after_down_conversion_v2_to_v0_compressed() {
    check_assignment(Magic::V2, Magic::V0, Compression::Gzip);
}

/// What an old format cannot say is refused.
#[track_caller]
fn check_not_permitted(settings: BatchBuilder) {
    let settings = settings.producer(ProducerId(134_234), ProducerEpoch(0), Sequence(77));
    let records = source(Magic::V2, Compression::None, settings);
    for magic in [Magic::V0, Magic::V1] {
        let error = assign_offsets_in(magic, &records, &rules()).unwrap_err();
        assert_eq!(error.kafka_class(), "UnsupportedForMessageFormatException");
    }
    assert!(assign_offsets_in(Magic::V2, &records, &rules()).is_ok());
}

#[test]
fn test_down_conversion_of_transactional_records_not_permitted() {
    check_not_permitted(BatchBuilder::new(Offset(0)).transactional(true));
}

#[test]
fn test_down_conversion_of_idempotent_records_not_permitted() {
    check_not_permitted(BatchBuilder::new(Offset(0)));
}

/// The bytes that Kafka's class makes of three records of its clock less 10, 5 and 7 ms, of any magic, for the offsets from 1234567 on.
mod stored {
    pub(super) const V0: &str = "000000000012d68700000014b3ef3bf3000000000001610000000568656c6c6f000000000012d68800000013eb9835a20000ffffffff\
        000000057468657265000000000012d6890000000f9d92668700000000000162ffffffff";
    pub(super) const V1_WITHOUT_TIME: &str = "000000000012d6870000001cb282a10c0100ffffffffffffffff00000001610000000568656c6c6f\
        000000000012d6880000001b5d73cce30100ffffffffffffffffffffffff000000057468657265\
        000000000012d689000000173d6429630100ffffffffffffffff0000000162ffffffff";
    pub(super) const V1_WITH_TIMES: &str = "000000000012d6870000001c59f66e6f01000000018bcfe567f600000001610000000568656c6c6f\
        000000000012d6880000001b9070e07d01000000018bcfe567fbffffffff000000057468657265\
        000000000012d68900000017f158a02201000000018bcfe567f90000000162ffffffff";
    pub(super) const V1_APPENDED: &str = "000000000012d6870000001cbd84b49601080000018bcfe5680000000001610000000568656c6c6f\
        000000000012d6880000001b5b9f62aa01080000018bcfe56800ffffffff000000057468657265\
        000000000012d6890000001799a85dbb01080000018bcfe568000000000162ffffffff";
}

fn hex(bytes: &Bytes) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The records of the bytes in [`stored`].
fn sent(magic: Magic, codec: Compression) -> Bytes {
    let rows: [(i64, Option<&'static str>, Option<&'static str>); 3] =
        [(-10, Some("a"), Some("hello")), (-5, None, Some("there")), (-7, Some("b"), None)];
    let records = rows.into_iter().zip(0..).map(|((time, key, value), offset)| Record {
        offset: Offset(offset),
        timestamp: TimestampMs(NOW.get() + time),
        key: key.map(Into::into),
        value: value.map(Into::into),
        headers: Vec::new(),
    });
    RecordsBuilder::new(magic, BatchBuilder::new(Offset(0)).compression(codec).records(records), 0).unwrap().build().unwrap()
}

/// Beyond Kafka's own tests: what Kafka's class stores, byte by byte where nothing is compressed, and what it tells of that.
#[test]
fn old_formats_are_stored_as_kafka_stores_them() {
    let (create, append) = (TimestampType::CreateTime, TimestampType::LogAppendTime);
    let (now, largest) = (NOW.get(), NOW.get() - 5);
    for (from, to, timestamp_type, bytes, max_timestamp, max_of_set) in [
        (Magic::V0, Magic::V0, create, stored::V0, -1, -1),
        (Magic::V0, Magic::V0, append, stored::V0, -1, now),
        (Magic::V0, Magic::V1, create, stored::V1_WITHOUT_TIME, -1, -1),
        (Magic::V0, Magic::V1, append, stored::V1_APPENDED, now, now),
        (Magic::V1, Magic::V0, create, stored::V0, -1, -1),
        (Magic::V1, Magic::V0, append, stored::V0, now, now),
        (Magic::V1, Magic::V1, create, stored::V1_WITH_TIMES, largest, largest),
        (Magic::V1, Magic::V1, append, stored::V1_APPENDED, now, now),
        (Magic::V2, Magic::V0, create, stored::V0, -1, -1),
        (Magic::V2, Magic::V0, append, stored::V0, now, now),
        (Magic::V2, Magic::V1, create, stored::V1_WITH_TIMES, largest, largest),
        (Magic::V2, Magic::V1, append, stored::V1_APPENDED, now, now),
    ] {
        let why = format!("{from:?} {to:?} {timestamp_type:?}");
        let rules = AssignRules { timestamp_type, next_offset: Offset(FIRST), ..rules() };
        let plain = assign_offsets_in(to, &sent(from, Compression::None), &rules).unwrap();
        assert_eq!(hex(&plain.bytes), bytes, "{why}");
        assert_eq!((plain.max_timestamp.get(), plain.rebuilt), (max_timestamp, from != to), "{why}");
        let set = assign_offsets_in(to, &sent(from, Compression::Gzip), &rules).unwrap();
        assert_eq!((set.max_timestamp.get(), set.rebuilt), (max_of_set, from != to || to == Magic::V0), "{why}");
        let read = |bytes: Bytes| {
            let batches: Vec<AnyBatch> = AnyBatchReader::new(bytes).map(Result::unwrap).collect();
            assert!(batches.iter().all(|batch| batch.ensure_valid().is_ok()), "{why}");
            batches
        };
        let (set, plain) = (read(set.bytes), read(plain.bytes));
        assert_eq!(set.len(), 1, "{why}");
        let records = |batches: &[AnyBatch]| batches.iter().flat_map(|batch| batch.records().unwrap()).collect::<Vec<_>>();
        assert_eq!(records(&set), records(&plain), "{why}");
        let time = if to == Magic::V0 { -1 } else { max_of_set };
        assert_eq!((set[0].last_offset(), set[0].max_timestamp().get()), (Offset(FIRST + 2), time), "{why}");
    }
}

/// Beyond Kafka's own tests: a set of magic 1 stays as it is only if its offsets count up from 0.
#[test]
fn a_set_with_other_offsets_is_built_anew() {
    let records = [0, 2, 3].map(|offset| Record { offset: Offset(offset), timestamp: NOW, ..Record::default() });
    let settings = BatchBuilder::new(Offset(0)).compression(Compression::Gzip).records(records);
    let bytes = RecordsBuilder::new(Magic::V1, settings, 0).unwrap().build().unwrap();
    let assigned = assign_offsets_in(Magic::V1, &bytes, &AssignRules { next_offset: Offset(FIRST), ..rules() }).unwrap();
    assert!(assigned.rebuilt);
    let stored: Vec<AnyBatch> = AnyBatchReader::new(assigned.bytes).map(Result::unwrap).collect();
    assert_eq!(offsets_of(&stored), [FIRST, FIRST + 1, FIRST + 2]);
}

/// Beyond Kafka's own tests: what an old format has no place for is refused, whatever it is.
#[test]
fn what_an_old_format_cannot_hold_is_refused() {
    let headers = vec![cleanslate_log::record::Header { key: "h".into(), value: None }];
    let record = Record { timestamp: NOW, headers, ..Record::default() };
    let with_header = BatchBuilder::new(Offset(0)).records([record]).build().unwrap();
    let one = LegacyEntry { value: Some(b"v"), ..LegacyEntry::default() }.to_bytes().unwrap();
    let zstd = AssignRules { target: Some(Compression::Zstd), ..rules() };
    for magic in [Magic::V0, Magic::V1] {
        for (bytes, rules) in [(with_header.bytes(), &rules()), (&one, &zstd)] {
            assert_eq!(assign_offsets_in(magic, bytes, rules).unwrap_err().kafka_class(), "IllegalArgumentException");
        }
    }
}
