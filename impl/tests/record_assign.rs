//! What a leader makes of a batch: Kafka's results on drawn batches, and the rules one by one.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{
    AssignError, AssignRules, Assigned, Attributes, BatchBuilder, BatchHeader, Compression, ControlRecord, DecodeError,
    EndTxnMarker, Header, Record, RecordBatch, RecordError, RecordFault, TimestampType, assign_offsets,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

#[path = "data/record/hex.rs"]
mod hex;
use hex::hex;

const CASES: &str = include_str!("data/record/assigned.txt");
const T: i64 = 1_700_000_000_000;

fn codec(name: &str) -> Option<Compression> {
    match name {
        "producer" => None,
        "none" => Some(Compression::None),
        "gzip" => Some(Compression::Gzip),
        "snappy" => Some(Compression::Snappy),
        "lz4" => Some(Compression::Lz4),
        "zstd" => Some(Compression::Zstd),
        other => panic!("{other}"),
    }
}

/// The input and the rules of a case of Kafka's, and what came of it.
fn parse(line: &str) -> (Bytes, AssignRules, Vec<&str>) {
    let (given, expected) = line.split_once(" => ").unwrap();
    let fields: Vec<&str> = given.split(' ').collect();
    let number = |index: usize| fields[index].parse::<i64>().unwrap();
    let create_time = fields[3] == "true";
    let rules = AssignRules {
        from_client: fields[1] == "true",
        target: codec(fields[2]),
        timestamp_type: if create_time { TimestampType::CreateTime } else { TimestampType::LogAppendTime },
        timestamp_before_max_ms: number(4),
        timestamp_after_max_ms: number(5),
        now: TimestampMs(number(6)),
        next_offset: Offset(number(7)),
        leader_epoch: LeaderEpoch(i32::try_from(number(8)).unwrap()),
        compacted: fields[9] == "true",
        ..AssignRules::default()
    };
    (hex(fields[0]), rules, expected.split(' ').collect())
}

fn cases() -> impl Iterator<Item = &'static str> {
    CASES.lines().filter(|line| !line.starts_with('#'))
}

/// The header but for what depends on how a codec compresses.
fn comparable(batch: &RecordBatch) -> BatchHeader {
    BatchHeader { crc: 0, batch_length: 0, ..*batch.header() }
}

#[test]
fn as_kafka_does() {
    let mut count = 0;
    for line in cases() {
        let (bytes, rules, expected) = parse(line);
        match (assign_offsets(&bytes, &rules), &expected[..]) {
            (Err(error), ["ERR", class]) => assert_eq!(error.kafka_class(), *class, "{error}: {line}"),
            (Ok(assigned), ["OK", max_timestamp, next_offset, rebuilt, rest @ ..]) => {
                assert_eq!(assigned.max_timestamp.to_string(), *max_timestamp, "{line}");
                assert_eq!(assigned.next_offset.to_string(), *next_offset, "{line}");
                assert_eq!(assigned.rebuilt.to_string(), *rebuilt, "{line}");
                check_bytes(&assigned, &hex(rest.concat().as_str()), line);
            }
            (result, _) => panic!("{result:?}: {line}"),
        }
        count += 1;
    }
    assert!(count > 100, "{count}");
}

fn check_bytes(assigned: &Assigned, expected: &Bytes, line: &str) {
    let Some(batch) = &assigned.batch else { return assert!(expected.is_empty(), "{line}") };
    assert_eq!(batch.ensure_valid(), Ok(()), "{line}");
    if assigned.rebuilt && batch.attributes().compression() != Some(Compression::None) {
        let (expected, _) = RecordBatch::decode(expected, 0).unwrap();
        assert_eq!(comparable(batch), comparable(&expected), "{line}");
        assert_eq!(batch.records(), expected.records(), "{line}");
    } else {
        // Kafka leaves what follows the last whole batch.
        assert!(expected.starts_with(batch.bytes()), "{line}");
    }
}

fn record(offset: i64, timestamp: i64, key: Option<&'static str>) -> Record {
    let value = Some(Bytes::from_static(b"v"));
    Record { offset: Offset(offset), timestamp: TimestampMs(timestamp), key: key.map(Bytes::from), value, headers: Vec::new() }
}

fn three() -> BatchBuilder {
    let records = [record(0, T, Some("a")), record(1, T + 5, None), record(2, T - 3, Some("c"))];
    BatchBuilder::new(Offset(0)).records(records)
}

fn rules() -> AssignRules {
    AssignRules { now: TimestampMs(T + 10), next_offset: Offset(1000), leader_epoch: LeaderEpoch(7), ..AssignRules::default() }
}

fn marker() -> RecordBatch {
    let record = ControlRecord::EndTxnMarker(EndTxnMarker { commit: true, coordinator_epoch: CoordinatorEpoch(4) });
    let builder = BatchBuilder::new(Offset(0)).producer(ProducerId(7), ProducerEpoch(3), Sequence::NONE);
    builder.transactional(true).control(true).timestamp(TimestampMs(T)).control_record(record).build().unwrap()
}

/// The batch with other fields in its header, and the CRC that belongs to them.
fn with_header(batch: &RecordBatch, change: impl FnOnce(&mut BatchHeader)) -> RecordBatch {
    let mut header = *batch.header();
    change(&mut header);
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    bytes.extend_from_slice(&batch.bytes()[61..]);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    RecordBatch::decode(&Bytes::from(bytes), 0).unwrap().0
}

fn assign(batch: &RecordBatch, rules: &AssignRules) -> RecordBatch {
    assign_offsets(batch.bytes(), rules).unwrap().batch.unwrap()
}

fn refused(batch: &RecordBatch, rules: &AssignRules) -> (&'static str, AssignError) {
    let error = assign_offsets(batch.bytes(), rules).unwrap_err();
    (error.kafka_class(), error)
}

#[test]
fn a_batch_that_fits_keeps_its_crc() {
    let sent = three().build().unwrap();
    let assigned = assign_offsets(sent.bytes(), &rules()).unwrap();
    let expected = sent.with_base_offset(Offset(1000)).with_leader_epoch(LeaderEpoch(7));
    assert_eq!(assigned.batch, Some(expected));
    assert_eq!((assigned.max_timestamp, assigned.next_offset), (TimestampMs(T + 5), Offset(1003)));
    assert!(!assigned.rebuilt);
}

#[test]
fn the_max_timestamp_is_that_of_the_records() {
    for codec in [Compression::None, Compression::Gzip] {
        let sent = with_header(&three().compression(codec).build().unwrap(), |header| {
            header.max_timestamp = TimestampMs(T + 99);
            // Bits without a meaning are dropped when the header is written.
            header.attributes = Attributes(header.attributes.0 | 0x0180);
        });
        let batch = assign(&sent, &rules());
        assert_eq!(batch.max_timestamp(), TimestampMs(T + 5));
        assert_eq!(batch.attributes(), Attributes::default().with_compression(codec));
        assert_eq!(batch.ensure_valid(), Ok(()));
        assert_eq!(batch.bytes()[61..], sent.bytes()[61..]);
    }
}

#[test]
fn append_time_is_the_clock_of_the_leader() {
    let rules = AssignRules { timestamp_type: TimestampType::LogAppendTime, timestamp_after_max_ms: 0, ..rules() };
    for codec in [Compression::None, Compression::Lz4] {
        let sent = three().compression(codec).build().unwrap();
        let batch = assign(&sent, &rules);
        assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (TimestampType::LogAppendTime, rules.now));
        assert_eq!(batch.header().base_timestamp, TimestampMs(T), "the deltas stay as they were sent");
        assert!(batch.records().unwrap().iter().all(|record| record.timestamp == rules.now));
    }
}

#[test]
fn another_codec_builds_the_batch_anew() {
    let header = Header { key: Bytes::from_static(b"h"), value: None };
    let with_headers = Record { headers: vec![header], ..record(3, T, None) };
    let sent = three().append(with_headers).producer(ProducerId(7), ProducerEpoch(3), Sequence(9)).transactional(true);
    let plain = sent.clone().build().unwrap();
    let mut expected = plain.records().unwrap();
    for (record, offset) in expected.iter_mut().zip(1000..) {
        record.offset = Offset(offset);
    }
    for target in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let result = assign_offsets(plain.bytes(), &AssignRules { target: Some(target), ..rules() }).unwrap();
        let batch = result.batch.unwrap();
        assert!(result.rebuilt);
        assert_eq!(batch.records(), Ok(expected.clone()));
        let producer = (batch.producer_id(), batch.producer_epoch(), batch.base_sequence(), batch.is_transactional());
        assert_eq!(producer, (ProducerId(7), ProducerEpoch(3), Sequence(9), true));
        assert_eq!(batch.attributes().compression(), Some(target));
        // And back.
        let back = AssignRules { target: Some(Compression::None), ..rules() };
        let sent = sent.clone().compression(target).build().unwrap();
        let uncompressed = plain.with_base_offset(Offset(1000)).with_leader_epoch(LeaderEpoch(7));
        assert_eq!(assign(&sent, &back), uncompressed);
    }
}

#[test]
fn markers_are_not_compressed() {
    let coordinator = AssignRules { from_client: false, target: Some(Compression::Zstd), ..rules() };
    let batch = assign(&marker(), &coordinator);
    assert_eq!(batch, marker().with_base_offset(Offset(1000)).with_leader_epoch(LeaderEpoch(7)));
    assert_eq!(refused(&marker(), &rules()), ("InvalidRecordException", AssignError::ControlBatch));
}

#[test]
fn what_only_clients_may_not() {
    let sent = three().build().unwrap();
    let cases = [
        (with_header(&sent, |header| header.last_offset_delta = -1), AssignError::OffsetRange { last_offset_delta: -1 }),
        (with_header(&sent, |header| header.last_offset_delta = 7), AssignError::RecordCount { count: 3, last_offset_delta: 7 }),
        (
            with_header(&sent, |header| (header.producer_id, header.producer_epoch) = (ProducerId(7), ProducerEpoch(0))),
            AssignError::BaseSequence { base_sequence: -1, producer_id: 7 },
        ),
    ];
    for (batch, error) in cases {
        assert_eq!(refused(&batch, &rules()), ("InvalidRecordException", error));
        let of_coordinator = assign(&batch, &AssignRules { from_client: false, ..rules() });
        // The count of the records decides about the last offset.
        assert_eq!(of_coordinator.last_offset(), Offset(1002));
    }
    let empty = with_header(&sent, |header| header.record_count = 0);
    let error = AssignError::RecordCount { count: 0, last_offset_delta: 2 };
    assert_eq!(refused(&empty, &rules()), ("InvalidRecordException", error));
    let result = assign_offsets(empty.bytes(), &AssignRules { from_client: false, ..rules() }).unwrap();
    assert_eq!((result.next_offset, result.max_timestamp), (Offset(1000), TimestampMs::NONE));
}

#[test]
fn an_empty_batch_cannot_be_built_anew() {
    let empty = with_header(&three().build().unwrap(), |header| header.record_count = 0);
    let rules = AssignRules { from_client: false, target: Some(Compression::Gzip), ..rules() };
    assert_eq!(assign_offsets(empty.bytes(), &rules).unwrap().batch, None);
    let rules = AssignRules { timestamp_type: TimestampType::LogAppendTime, ..rules };
    assert_eq!(refused(&empty, &rules), ("NullPointerException", AssignError::EmptyWithAppendTime));
}

#[test]
fn exactly_one_batch() {
    let one = three().build().unwrap();
    let error = assign_offsets(&Bytes::from(one.bytes().repeat(2)), &rules()).unwrap_err();
    assert_eq!((error.kafka_class(), error), ("InvalidRecordException", AssignError::SeveralBatches));
    for bytes in [&b""[..], &one.bytes()[..80]] {
        let error = assign_offsets(&Bytes::copy_from_slice(bytes), &rules()).unwrap_err();
        assert_eq!((error.kafka_class(), error), ("InvalidRecordException", AssignError::NoBatch));
    }
    let mut damaged = one.bytes().to_vec();
    damaged[70] ^= 1;
    let error = assign_offsets(&Bytes::from(damaged), &rules()).unwrap_err();
    assert_eq!(error.kafka_class(), "CorruptRecordException");
}

#[test]
fn every_record_at_fault_is_named() {
    let window = AssignRules { timestamp_before_max_ms: 12, timestamp_after_max_ms: 0, ..rules() };
    let faults = |faults: &[(usize, RecordFault)]| {
        AssignError::Records(faults.iter().map(|&(index, fault)| RecordError { index, fault }).collect())
    };
    for codec in [Compression::None, Compression::Snappy] {
        let sent = three().compression(codec).build().unwrap();
        let late = faults(&[(2, RecordFault::Timestamp(T - 3))]);
        assert_eq!(refused(&sent, &window), ("InvalidTimestampException", late));
        let compacted = AssignRules { compacted: true, ..rules() };
        assert_eq!(refused(&sent, &compacted), ("InvalidRecordException", faults(&[(1, RecordFault::NoKey)])));
        let both = faults(&[(1, RecordFault::NoKey), (2, RecordFault::Timestamp(T - 3))]);
        assert_eq!(refused(&sent, &AssignRules { compacted: true, ..window }), ("InvalidTimestampException", both));
        let early = faults(&[(1, RecordFault::Timestamp(T + 5))]);
        let rules = AssignRules { now: TimestampMs(T + 4), timestamp_after_max_ms: 0, ..rules() };
        assert_eq!(refused(&sent, &rules), ("InvalidTimestampException", early));
    }
    // No timestamp is not a bad one.
    let sent = BatchBuilder::new(Offset(0)).record(None, None).build().unwrap();
    assert_eq!(assign(&sent, &window).max_timestamp(), TimestampMs::NONE);
}

#[test]
fn append_time_from_a_client() {
    let sent = three().log_append_time(TimestampMs(T)).build().unwrap();
    let append_time = AssignRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    let (class, error) = refused(&sent, &append_time);
    assert_eq!(class, "InvalidTimestampException");
    let AssignError::Records(errors) = error else { panic!("{error}") };
    assert_eq!(errors.len(), 3);
    assert_eq!(errors[0].fault, RecordFault::AppendTime);
    // With create time it passes where it lies in the window, and becomes create time.
    let batch = assign(&sent, &rules());
    assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (TimestampType::CreateTime, TimestampMs(T)));
    let sent = BatchBuilder::new(Offset(0)).log_append_time(TimestampMs(-1)).record(None, None).build().unwrap();
    assert_eq!(refused(&sent, &rules()).0, "InvalidTimestampException");
}

#[test]
fn offsets_of_compressed_records_count_up_from_0() {
    let gap = BatchBuilder::new(Offset(0)).records([record(0, T, None), record(2, T, None)]);
    let coordinator = AssignRules { from_client: false, ..rules() };
    let compressed = gap.clone().compression(Compression::Gzip).build().unwrap();
    assert_eq!(refused(&compressed, &coordinator), ("UnsupportedOperationException", AssignError::OffsetsOfCompressed));
    // Nothing to keep: the new batch has the offsets that it should have.
    let to_lz4 = AssignRules { target: Some(Compression::Lz4), ..coordinator };
    let offsets: Vec<_> = assign(&compressed, &to_lz4).records().unwrap().iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [Offset(1000), Offset(1001)]);
    // Without codecs, the deltas stay as they are.
    let batch = assign(&gap.build().unwrap(), &coordinator);
    assert_eq!((batch.base_offset(), batch.last_offset()), (Offset(999), Offset(1001)));
}

#[test]
fn bombs_are_refused() {
    let value = vec![0; 1 << 20];
    let sent = BatchBuilder::new(Offset(0)).compression(Compression::Zstd).record(None, Some(&value)).build().unwrap();
    let bounded = AssignRules { max_decompressed_bytes: 1 << 20, ..rules() };
    let (class, error) = refused(&sent, &bounded);
    assert_eq!(class, "RecordTooLargeException");
    assert!(matches!(error, AssignError::Unreadable(DecodeError::DecompressedTooLarge { position: 61, .. })), "{error}");
}

fn some_rules() -> impl Strategy<Value = AssignRules> {
    let clock = (any::<i64>(), any::<i64>(), any::<i64>(), any::<i64>());
    (any::<(bool, bool, bool, i32)>(), 0..=5_u8, clock).prop_map(|((from_client, create, compacted, epoch), id, clock)| {
        AssignRules {
            from_client,
            target: Compression::from_id(id),
            timestamp_type: if create { TimestampType::CreateTime } else { TimestampType::LogAppendTime },
            timestamp_before_max_ms: clock.0,
            timestamp_after_max_ms: clock.1,
            now: TimestampMs(clock.2),
            next_offset: Offset(clock.3),
            leader_epoch: LeaderEpoch(epoch),
            compacted,
            max_decompressed_bytes: 10_000,
        }
    })
}

proptest! {
    #[test]
    fn damage_does_no_harm(which in any::<Index>(), flips in vec((any::<Index>(), 1..=255_u8), 0..3), rules in some_rules()) {
        let lines: Vec<_> = cases().collect();
        let mut bytes = parse(lines[which.index(lines.len())]).0.to_vec();
        for (at, flip) in flips {
            if !bytes.is_empty() {
                let position = at.index(bytes.len());
                bytes[position] ^= flip;
            }
        }
        if bytes.len() > 61 && bytes[16] == 2 {
            let crc = crc32c::crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        match assign_offsets(&Bytes::from(bytes), &rules) {
            Ok(Assigned { batch, .. }) => prop_assert!(batch.is_none_or(|batch| batch.ensure_valid().is_ok())),
            Err(error) => prop_assert!(!error.to_string().is_empty() && !error.kafka_class().is_empty()),
        }
    }

    #[test]
    fn what_was_assigned_has_the_offsets(count in 1..20_i64, next in 0..i64::MAX / 2, from in 0..5_u8, to in 0..=5_u8) {
        let records = (0..count).map(|offset| record(offset, T + offset, None));
        let sent = BatchBuilder::new(Offset(0)).compression(Compression::from_id(from).unwrap()).records(records).build().unwrap();
        let rules = AssignRules { next_offset: Offset(next), target: Compression::from_id(to), ..rules() };
        let assigned = assign_offsets(sent.bytes(), &rules).unwrap();
        prop_assert_eq!(assigned.next_offset, Offset(next + count));
        let batch = assigned.batch.unwrap();
        let offsets: Vec<_> = batch.records().unwrap().iter().map(|record| record.offset.get()).collect();
        prop_assert_eq!(offsets, (next..next + count).collect::<Vec<_>>());
        prop_assert_eq!((batch.base_offset(), batch.next_offset()), (Offset(next), Offset(next + count)));
        prop_assert_eq!(batch.attributes().compression(), Compression::from_id(if to == 5 { from } else { to }));
    }
}
