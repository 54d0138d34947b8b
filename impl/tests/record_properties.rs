//! What is built reads back the same, and no bytes make the record layer panic.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::varint::{
    read_unsigned_varint, read_varint, read_varlong, varint_bytes, varlong_bytes, write_unsigned_varint, write_varint,
    write_varlong,
};
use cleanslate_log::record::{
    ATTRIBUTES_POSITION, AnyBatchReader, Attributes, BatchBuilder, BatchHeader, BatchReader, CRC_POSITION, Compression,
    ControlRecord, ControlRecordType, EndTxnMarker, HEADER_BYTES, Header, KRaftVersion, KRaftVoters, LeaderChange, MAGIC_V2, Magic,
    MirrorPidResetRecord, Record, RecordBatch, RecordsBuilder, SnapshotFooter, SnapshotHeader, Voter, VoterEndpoint,
};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;

#[path = "data/record/vectors.rs"]
mod vectors;

fn some_bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn header() -> impl Strategy<Value = Header> {
    (some_bytes(), option::of(some_bytes())).prop_map(|(key, value)| Header { key, value })
}

/// The distance to the next record's offset, and the record.
fn record() -> impl Strategy<Value = (u16, Record)> {
    let timestamp = prop_oneof![Just(-1), 0..=i64::MAX, 1_700_000_000_000_i64..1_700_000_010_000];
    let parts = (1..=u16::MAX, timestamp, option::of(some_bytes()), option::of(some_bytes()), vec(header(), 0..4));
    parts.prop_map(|(distance, timestamp, key, value, headers)| {
        let (offset, timestamp) = (Offset(0), TimestampMs(timestamp));
        (distance, Record { offset, timestamp, key, value, headers })
    })
}

/// A base offset, records from there on, and what remains up to the last offset.
fn offsets_and_records() -> impl Strategy<Value = (Offset, Vec<Record>, Offset)> {
    (0..=i64::MAX / 2, vec(record(), 1..12), any::<u16>()).prop_map(|(base, records, rest)| {
        let mut next = base;
        let place = |(distance, record): (u16, Record)| {
            let offset = Offset(next);
            next += i64::from(distance);
            Record { offset, ..record }
        };
        let records: Vec<Record> = records.into_iter().map(place).collect();
        let last = records.last().unwrap().offset.plus(i64::from(rest));
        (Offset(base), records, last)
    })
}

type Producer = (ProducerId, ProducerEpoch, Sequence);

fn producer() -> impl Strategy<Value = Producer> {
    let id = prop_oneof![Just(0), 0..=i64::MAX, i64::MIN..=-2];
    (id, 0..=i16::MAX, 0..=i32::MAX).prop_map(|(id, epoch, seq)| (ProducerId(id), ProducerEpoch(epoch), Sequence(seq)))
}

fn batch_header() -> impl Strategy<Value = BatchHeader> {
    let positions = (any::<i64>(), any::<i32>(), any::<u32>(), any::<i16>(), any::<i32>());
    let rest = (any::<i64>(), any::<i64>(), any::<i64>(), any::<i16>(), any::<i32>(), any::<i32>());
    (positions, rest).prop_map(|((offset, epoch, crc, bits, delta), (base, max, id, producer_epoch, seq, count))| BatchHeader {
        base_offset: Offset(offset),
        batch_length: i32::try_from(HEADER_BYTES).unwrap() - 12,
        partition_leader_epoch: LeaderEpoch(epoch),
        magic: MAGIC_V2,
        crc,
        attributes: Attributes(bits),
        last_offset_delta: delta,
        base_timestamp: TimestampMs(base),
        max_timestamp: TimestampMs(max),
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(producer_epoch),
        base_sequence: Sequence(seq),
        record_count: count,
    })
}

fn voter() -> impl Strategy<Value = Voter> {
    let endpoint = ("\\PC{0,20}", "\\PC{0,20}", any::<u16>());
    let endpoint = endpoint.prop_map(|(name, host, port)| VoterEndpoint { name, host, port });
    let parts = (any::<i32>(), any::<[u8; 16]>(), vec(endpoint, 0..3), any::<i16>(), any::<i16>());
    parts.prop_map(|(voter_id, directory_id, endpoints, min_supported_version, max_supported_version)| Voter {
        voter_id,
        directory_id,
        endpoints,
        min_supported_version,
        max_supported_version,
    })
}

/// Any control record that can be written.
fn control_record() -> impl Strategy<Value = ControlRecord> {
    let marker = (any::<bool>(), any::<i32>()).prop_map(|(commit, epoch)| {
        ControlRecord::EndTxnMarker(EndTxnMarker { commit, coordinator_epoch: CoordinatorEpoch(epoch) })
    });
    let change = (any::<i16>(), any::<i32>(), vec(any::<i32>(), 0..200), vec(any::<i32>(), 0..4)).prop_map(
        |(version, leader_id, voters, granting_voters)| {
            ControlRecord::LeaderChange(LeaderChange { version, leader_id, voters, granting_voters })
        },
    );
    let snapshot = (any::<i16>(), any::<i64>()).prop_map(|(version, timestamp)| {
        let last_contained_log_timestamp = TimestampMs(timestamp);
        ControlRecord::SnapshotHeader(SnapshotHeader { version, last_contained_log_timestamp })
    });
    let footer = any::<i16>().prop_map(|version| ControlRecord::SnapshotFooter(SnapshotFooter { version }));
    let kraft_version = (any::<i16>(), any::<i16>())
        .prop_map(|(version, kraft_version)| ControlRecord::KRaftVersion(KRaftVersion { version, kraft_version }));
    let voters = (any::<i16>(), vec(voter(), 0..4))
        .prop_map(|(version, voters)| ControlRecord::KRaftVoters(KRaftVoters { version, voters }));
    let barrier = (0..=i16::MAX, option::of("\\PC{0,200}")).prop_map(|(version, source_cluster_id)| {
        ControlRecord::MirrorPidReset(MirrorPidResetRecord { version, source_cluster_id })
    });
    prop_oneof![marker, change, snapshot, footer, kraft_version, voters, barrier]
}

/// Calls everything that reads a batch. Errors are fine, and lie within the batch.
fn exercise(batch: &RecordBatch) {
    let size = batch.size_in_bytes();
    let _ = (batch.last_offset(), batch.next_offset(), batch.last_sequence(), batch.sequence_of(Offset(i64::MIN)));
    let _ = (batch.attributes().compression(), batch.delete_horizon(), batch.timestamp_type());
    let positions = [batch.ensure_valid().err(), batch.records().err(), batch.control_type().err(), batch.control_record().err()];
    for error in positions.into_iter().flatten() {
        assert!(error.position() <= size, "{error}");
        assert!(!error.to_string().is_empty());
    }
    assert_eq!(RecordBatch::empty_header(batch.header()).ensure_valid(), Ok(()));
    assert_eq!(batch.with_producer_id(ProducerId(1)).ensure_valid(), Ok(()));
    assert_eq!(batch.with_base_offset(batch.base_offset()), *batch);
}

/// Reads a buffer from its beginning and decodes at every position of it.
fn exercise_buffer(buf: &Bytes) {
    let mut read = 0;
    for result in BatchReader::new(buf.clone()) {
        match result {
            Ok(batch) => {
                read += batch.size_in_bytes();
                exercise(&batch);
            }
            Err(error) => assert!((read..=buf.len()).contains(&error.position()), "{error}"),
        }
    }
    assert!(read <= buf.len());
    for at in 0..=buf.len() {
        match RecordBatch::decode(buf, at) {
            Ok((batch, next)) => assert!(next <= buf.len() && next == at + batch.size_in_bytes()),
            Err(error) => assert!((at..=buf.len()).contains(&error.position()), "{error}"),
        }
    }
}

/// Numbers of any length.
fn number<T: std::fmt::Debug + Clone + From<i8>>(long: impl Strategy<Value = T>) -> impl Strategy<Value = T> {
    prop_oneof![long, any::<i8>().prop_map(T::from)]
}

proptest! {
    /// Sizes that are told in advance are those of what is built, and a builder with a limit builds the same batch.
    #[test]
    fn sizes_are_told_in_advance((base, records, _) in offsets_and_records(), horizon in option::of(0..=i64::MAX)) {
        let batch = BatchBuilder::new(base).records(records.clone());
        let batch = horizon.map_or(batch.clone(), |horizon| batch.delete_horizon(TimestampMs(horizon)));
        let built = batch.clone().build().unwrap();
        prop_assert_eq!(batch.uncompressed_size_in_bytes().unwrap(), built.size_in_bytes());
        let mut limited = RecordsBuilder::new(Magic::V2, batch, 0).unwrap();
        prop_assert_eq!(limited.estimated_size_in_bytes(), built.size_in_bytes());
        prop_assert_eq!(&limited.build().unwrap(), built.bytes());
    }

    /// Records of magic 0 and 1 read back the same, but for what these formats do not have.
    #[test]
    fn old_formats_read_back((base, records, _) in offsets_and_records(), v1 in any::<bool>(), codec in 0..=3_u8) {
        let magic = if v1 { Magic::V1 } else { Magic::V0 };
        let records: Vec<Record> = records.into_iter().map(|record| Record { headers: Vec::new(), ..record }).collect();
        let settings = BatchBuilder::new(base).compression(Compression::from_id(codec).unwrap()).records(records.clone());
        let mut builder = RecordsBuilder::new(magic, settings, 0).unwrap();
        let uncompressed = builder.uncompressed_bytes();
        let built = builder.build().unwrap();
        prop_assert!(codec != 0 || built.len() == uncompressed);
        let read: Vec<Record> = AnyBatchReader::new(built).flat_map(|batch| batch.unwrap().records().unwrap()).collect();
        let timed = |record: Record| Record { timestamp: if v1 { record.timestamp } else { TimestampMs::NONE }, ..record };
        prop_assert_eq!(read, records.into_iter().map(timed).collect::<Vec<_>>());
    }

    #[test]
    fn integers_round_trip(int in number(any::<i32>()), long in number(any::<i64>()), unsigned in any::<u32>(), tail in some_bytes()) {
        let mut out = Vec::new();
        write_varint(&mut out, int);
        let length = out.len();
        prop_assert_eq!(varint_bytes(int), length);
        out.extend_from_slice(&tail);
        prop_assert_eq!(read_varint(&out), Ok((int, length)));
        out.clear();
        write_varlong(&mut out, long);
        let length = out.len();
        prop_assert_eq!(varlong_bytes(long), length);
        out.extend_from_slice(&tail);
        prop_assert_eq!(read_varlong(&out), Ok((long, length)));
        out.clear();
        write_unsigned_varint(&mut out, unsigned);
        let length = out.len();
        out.extend_from_slice(&tail);
        prop_assert_eq!(read_unsigned_varint(&out), Ok((unsigned, length)));
    }

    #[test]
    fn built_batches_read_back(
        (base, records, last) in offsets_and_records(),
        leader_epoch in any::<i32>(),
        producer in option::of(producer()),
        transactional in any::<bool>(),
        horizon in option::of(0..=i64::MAX),
        append_time in option::of(-1..=i64::MAX),
    ) {
        let mut builder =
            BatchBuilder::new(base).leader_epoch(LeaderEpoch(leader_epoch)).records(records.clone()).last_offset(last);
        if let Some((id, epoch, sequence)) = producer {
            builder = builder.producer(id, epoch, sequence).transactional(transactional);
        }
        if let Some(horizon) = horizon {
            builder = builder.delete_horizon(TimestampMs(horizon));
        }
        if let Some(append_time) = append_time {
            builder = builder.log_append_time(TimestampMs(append_time));
        }
        let batch = builder.build().unwrap();
        let (decoded, next) = RecordBatch::decode(batch.bytes(), 0).unwrap();
        prop_assert_eq!(next, batch.size_in_bytes());
        prop_assert_eq!(&decoded, &batch);
        prop_assert_eq!(decoded.ensure_valid(), Ok(()));
        prop_assert_eq!((decoded.base_offset(), decoded.last_offset()), (base, last));
        prop_assert_eq!(decoded.leader_epoch(), LeaderEpoch(leader_epoch));
        prop_assert_eq!(decoded.delete_horizon(), horizon.map(TimestampMs));
        prop_assert_eq!(decoded.is_transactional(), producer.is_some() && transactional);
        if let Some((id, epoch, sequence)) = producer {
            let read = (decoded.producer_id(), decoded.producer_epoch(), decoded.base_sequence());
            prop_assert_eq!(read, (id, epoch, sequence));
            prop_assert_eq!(decoded.last_sequence(), sequence.plus(decoded.last_offset_delta()));
        }
        let mut expected = records;
        if let Some(append_time) = append_time {
            expected.iter_mut().for_each(|record| record.timestamp = TimestampMs(append_time));
        }
        let max = expected.iter().map(|record| record.timestamp).max().unwrap();
        prop_assert_eq!(decoded.max_timestamp(), max);
        prop_assert_eq!(decoded.records().unwrap(), expected);
    }

    #[test]
    fn control_records_round_trip(record in control_record(), id in 0..=i64::MAX, epoch in 0..=i16::MAX) {
        let mut builder = BatchBuilder::new(Offset(7)).leader_epoch(LeaderEpoch(1)).control(true);
        if record.record_type().is_end_txn_marker() {
            builder = builder.producer(ProducerId(id), ProducerEpoch(epoch), Sequence::NONE).transactional(true);
        }
        let batch = builder.control_record(record.clone()).build().unwrap();
        let (decoded, _) = RecordBatch::decode(batch.bytes(), 0).unwrap();
        prop_assert_eq!(decoded.control_type().unwrap(), Some(record.record_type()));
        prop_assert_eq!(decoded.control_record().unwrap(), Some(record));
    }

    #[test]
    fn control_types_round_trip(id in any::<i16>()) {
        let record_type = ControlRecordType::from_id(id);
        prop_assert_eq!(record_type.id(), id);
        prop_assert_eq!(matches!(record_type, ControlRecordType::Unknown(_)), !(0..=7).contains(&id));
        prop_assert_eq!(ControlRecordType::decode_key(&record_type.key()), Ok(record_type));
    }

    #[test]
    fn headers_round_trip(header in batch_header()) {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), HEADER_BYTES);
        let bytes = Bytes::from(bytes);
        prop_assert_eq!(BatchHeader::decode(&bytes, 0), Ok(header));
        exercise(&RecordBatch::decode(&bytes, 0).unwrap().0);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..300)) {
        let bytes = Bytes::from(bytes);
        exercise_buffer(&bytes);
        let _ = ControlRecordType::decode_key(&bytes);
        for id in -1..=8 {
            let key = ControlRecordType::from_id(id).key();
            if let Err(error) = ControlRecord::decode(Some(&key), Some(&bytes)) {
                prop_assert!(error.position() <= bytes.len());
            }
        }
        let _ = (read_varint(&bytes), read_varlong(&bytes), read_unsigned_varint(&bytes));
    }

    #[test]
    fn arbitrary_records_do_not_panic(
        header in batch_header(),
        count in 0..4,
        bits in 0_i16..0x80,
        body in vec(0_u8..40, 0..80),
    ) {
        let length = i32::try_from(HEADER_BYTES - 12 + body.len()).unwrap();
        let attributes = Attributes(bits & !7);
        let mut bytes = Vec::new();
        BatchHeader { batch_length: length, attributes, record_count: count, ..header }.encode(&mut bytes);
        bytes.extend_from_slice(&body);
        exercise(&RecordBatch::decode(&Bytes::from(bytes), 0).unwrap().0);
    }

    #[test]
    fn changed_vectors_do_not_panic(
        which in any::<Index>(),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        with_crc in any::<bool>(),
    ) {
        let mut bytes = which.get(vectors::VECTORS).bytes().to_vec();
        for (at, byte) in changes {
            *at.get_mut(&mut bytes[..]) = byte;
        }
        if with_crc {
            let crc = crc32c::crc32c(&bytes[ATTRIBUTES_POSITION..]);
            bytes[CRC_POSITION..ATTRIBUTES_POSITION].copy_from_slice(&crc.to_be_bytes());
        }
        exercise_buffer(&Bytes::from(bytes));
    }

    #[test]
    fn barrier_values_that_read_are_written_the_same(bytes in vec(prop_oneof![0_u8..6, Just(b'a')], 0..12)) {
        let bytes = Bytes::from(bytes);
        if let Ok(record) = MirrorPidResetRecord::decode(&bytes) {
            let written = record.encode().unwrap();
            // Unknown tagged fields are not kept; the count of tagged fields is the last byte when there are none.
            prop_assert_eq!(MirrorPidResetRecord::decode(&written).unwrap(), record);
            prop_assert!(written.len() <= bytes.len());
            prop_assert_eq!(&written[..written.len() - 1], &bytes[..written.len() - 1]);
        }
    }
}
