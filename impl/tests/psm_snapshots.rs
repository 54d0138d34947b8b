//! Snapshot files of producer state: bytes, damage, and which files stay.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::psm::{
    ProducerIdVisibility, ProducerSnapshot, ProducerStateManager, SnapshotEntry, SnapshotError, snapshot_file_name, snapshot_files,
};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const T: i64 = 1_700_000_000_000;

fn hex(text: &str) -> Bytes {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

fn entry(id: i64, epoch: i16) -> SnapshotEntry {
    SnapshotEntry {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
        last_sequence: Sequence::NONE,
        last_offset: Offset::UNKNOWN,
        offset_delta: 0,
        timestamp: TimestampMs(T),
        coordinator_epoch: CoordinatorEpoch::NONE,
        current_txn_first_offset: None,
    }
}

/// What Kafka 4.3.1 writes.
fn golden() -> Vec<(&'static str, Vec<SnapshotEntry>)> {
    let with_batch =
        |id, epoch, offset| SnapshotEntry { last_sequence: Sequence(0), last_offset: Offset(offset), ..entry(id, epoch) };
    vec![
        ("000148674bc700000000", vec![]),
        (
            "000120ec54b7000000020000000000000001\
             0000ffffffffffffffffffffffff000000000000018bcfe56800ffffffffffffffffffffffff\
             00000000000012670003ffffffffffffffffffffffff000000000000018bcfe56801000000090000000000000002",
            vec![
                entry(1, 0),
                SnapshotEntry {
                    timestamp: TimestampMs(T + 1),
                    coordinator_epoch: CoordinatorEpoch(9),
                    current_txn_first_offset: Some(Offset(2)),
                    ..entry(4711, 3)
                },
            ],
        ),
        (
            "000136fbca9700000003\
             00000000000000070001000000000000000000000004000000000000018bcfe56800ffffffffffffffffffffffff\
             00000000000000080004000000000000000000000007000000000000018bcfe568000000000bffffffffffffffff\
             00000000000000090000000000000000000000000014000000000000018bcfe56800ffffffffffffffffffffffff",
            vec![
                with_batch(7, 1, 4),
                SnapshotEntry { coordinator_epoch: CoordinatorEpoch(11), ..with_batch(8, 4, 7) },
                with_batch(9, 0, 20),
            ],
        ),
    ]
}

#[test]
fn snapshots_are_kafkas_byte_for_byte() {
    for (bytes, entries) in golden() {
        let bytes = hex(bytes);
        let snapshot = ProducerSnapshot { entries };
        assert_eq!(snapshot.encode(), bytes);
        assert_eq!(ProducerSnapshot::decode(&bytes), Ok(snapshot));
    }
}

#[test]
fn a_loaded_snapshot_is_written_the_same_again() {
    for (bytes, entries) in golden() {
        let mut psm = ProducerStateManager::new(ProducerIdVisibility::Stock, i64::MAX);
        psm.load(&ProducerSnapshot { entries }, TimestampMs(T));
        assert_eq!(psm.snapshot().encode(), hex(bytes));
    }
}

#[test]
fn every_damage_is_noticed() {
    for (bytes, _) in golden() {
        let bytes = hex(bytes);
        for len in 0..bytes.len() {
            let cut = bytes.slice(..len);
            assert!(ProducerSnapshot::decode(&cut).is_err(), "cut to {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(ProducerSnapshot::decode(&flipped.into()).is_err());
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        let error = ProducerSnapshot::decode(&longer.into()).unwrap_err();
        assert!(matches!(error, SnapshotError::Crc { .. }));
    }
    let version_2 = hex("000248674bc700000000");
    assert_eq!(ProducerSnapshot::decode(&version_2), Err(SnapshotError::Version { found: 2 }));
    for count in ["ffffffff", "7fffffff", "00000001"] {
        let count = hex(count);
        let mut bytes = hex("0001").to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&count).to_be_bytes());
        bytes.extend_from_slice(&count);
        assert!(ProducerSnapshot::decode(&bytes.into()).is_err());
    }
}

fn offsets(storage: &MemoryStorage) -> Vec<i64> {
    let files = snapshot_files(storage).unwrap();
    files.iter().map(|file| file.offset.get()).collect()
}

fn with_snapshots(at: &[i64]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    let empty = ProducerSnapshot::default().encode();
    for offset in at {
        let name = snapshot_file_name(Offset(*offset));
        storage.replace(&name, &empty).unwrap();
    }
    storage
}

#[test]
fn names_of_snapshots() {
    assert_eq!(snapshot_file_name(Offset(42)), "00000000000000000042.snapshot");
    let mut storage = with_snapshots(&[42, 7]);
    for other in ["42.snapshot", "x.snapshot", "00000000000000000042.log"] {
        storage.append(other, &Bytes::new()).unwrap();
    }
    assert_eq!(offsets(&storage), [7, 42]);
}

#[test]
fn a_reload_removes_snapshots_out_of_range() {
    let mut psm = ProducerStateManager::new(ProducerIdVisibility::Stock, i64::MAX);
    let mut storage = with_snapshots(&[1, 2, 3, 4, 5]);
    psm.truncate_and_reload(&mut storage, Offset(1), Offset(3), TimestampMs(T)).unwrap();
    assert_eq!(offsets(&storage), [2, 3]);
    assert_eq!(psm.map_end_offset(), Offset(3));
    psm.truncate_fully_and_start_at(&mut storage, Offset(150)).unwrap();
    assert_eq!(offsets(&storage), [0_i64; 0]);
    assert_eq!(psm.map_end_offset(), Offset(150));
}

#[test]
fn corrupt_snapshots_are_removed_and_the_next_older_one_is_loaded() {
    let good = ProducerSnapshot { entries: vec![entry(5, 0)] };
    for corrupt in [&b""[..], b"half of it", &[0xff; 56]] {
        let mut storage = with_snapshots(&[2]);
        let name = snapshot_file_name(Offset(1));
        storage.replace(&name, &good.encode()).unwrap();
        let name = snapshot_file_name(Offset(2));
        let corrupt = Bytes::copy_from_slice(corrupt);
        storage.replace(&name, &corrupt).unwrap();
        let mut psm = ProducerStateManager::new(ProducerIdVisibility::Stock, i64::MAX);
        psm.truncate_and_reload(&mut storage, Offset(0), Offset(20), TimestampMs(T)).unwrap();
        assert_eq!(offsets(&storage), [1]);
        assert_eq!(psm.map_end_offset(), Offset(1));
        assert_eq!(psm.active_producers().len(), 1);
    }
}

#[test]
fn strays() {
    for (bases, found, left) in [
        (&[5][..], &[5, 2, 42][..], &[5, 42][..]),
        (&[42], &[5, 2, 42], &[42]),
        (&[0, 2, 4], &[1, 3, 6, 99], &[99]),
        (&[0], &[2, 3], &[3]),
        (&[9], &[2, 3], &[]),
    ] {
        let mut storage = with_snapshots(found);
        let bases: Vec<Offset> = bases.iter().copied().map(Offset).collect();
        ProducerStateManager::remove_stray_snapshots(&mut storage, &bases).unwrap();
        assert_eq!(offsets(&storage), left, "{bases:?} {found:?}");
    }
}
