#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Segments with offsets too far from their base: splits, and crashes while one goes on.

use bytes::Bytes;
use cleanslate_log::log::{FetchIsolation, LogConfig, LogError, Recovery};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::Offset;

use crate::upstream::support::{Log, NOW, bases, placed, plain, read, reopen_files};

const MAX: i64 = i32::MAX as i64;
const SUFFIXES: [&str; 3] = ["index", "log", "timeindex"];

fn name(base: i64, suffix: &str) -> String {
    format!("{base:0>20}.{suffix}")
}

/// Single records at these offsets.
fn put_segment(storage: &mut MemoryStorage, base: i64, offsets: &[i64]) {
    let bytes: Vec<u8> = offsets.iter().flat_map(|offset| placed(plain(1), *offset, 0).bytes().to_vec()).collect();
    storage.replace(&name(base, "log"), &bytes.into()).unwrap();
    for suffix in ["index", "timeindex"] {
        storage.replace(&name(base, suffix), &Bytes::new()).unwrap();
    }
}

/// Three segments, the second of which has offsets too far from its base; and all offsets.
fn overflowed() -> (MemoryStorage, Vec<i64>) {
    let mut storage = MemoryStorage::new();
    let from = |base: i64| [base, base + 1, base + MAX - 1, base + MAX];
    let second = MAX + 1;
    let overflow = [from(second), from(second + MAX + 1)].concat();
    let third = second + 2 * MAX + 2;
    put_segment(&mut storage, 0, &from(0));
    put_segment(&mut storage, second, &overflow);
    put_segment(&mut storage, third, &from(third));
    (storage, [from(0).to_vec(), overflow, from(third).to_vec()].concat())
}

fn open(storage: MemoryStorage) -> Log {
    reopen_files(storage, &LogConfig::default(), Recovery::Unclean, 0, 0)
}

fn offsets(log: &Log) -> Vec<i64> {
    read(log, 0, FetchIsolation::LogEnd).unwrap().into_iter().map(|(first, _)| first).collect()
}

#[test]
fn test_recovery_of_segment_with_offset_overflow() {
    let (storage, expected) = overflowed();
    let mut log = open(storage);
    assert_eq!(offsets(&log), expected);
    assert_eq!(bases(&log), [0, MAX + 1, 2 * MAX + 2, 3 * MAX + 3]);
    for base in bases(&log) {
        let error = log.split_overflowed_segment(Offset(base), NOW);
        assert_eq!(error, Err(LogError::NoOverflow { base_offset: Offset(base) }));
    }
}

/// The overflowed log while its second segment is being replaced. The files of the two parts have these suffixes; without
/// the `old` segment it is gone already.
fn interrupted(parts: [&str; 2], old: bool) -> MemoryStorage {
    let (mut storage, _) = overflowed();
    let done = open(storage.clone());
    let bases = [MAX + 1, 2 * MAX + 2];
    if !old {
        SUFFIXES.iter().for_each(|suffix| storage.remove(&name(bases[0], suffix)).unwrap());
    }
    for (base, part) in bases.into_iter().zip(parts) {
        for suffix in SUFFIXES {
            let file = name(base, suffix);
            let content = done.storage().read_all(&file).unwrap().unwrap();
            storage.replace(&format!("{file}{part}"), &content).unwrap();
        }
    }
    storage
}

#[track_caller]
fn check_interrupted(parts: [&str; 2], old: bool) {
    let storage = interrupted(parts, old);
    let log = open(storage);
    assert_eq!(offsets(&log), overflowed().1);
    assert_eq!(bases(&log).len(), 4);
    let left: Vec<_> =
        log.storage().names().unwrap().into_iter().filter(|name| name.ends_with("ed") || name.ends_with("swap")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn test_recovery_after_crash_during_split_phase1() {
    check_interrupted([".cleaned", ".cleaned"], true);
}

#[test]
fn test_recovery_after_crash_during_split_phase2() {
    check_interrupted([".cleaned", ".swap"], true);
}

#[test]
fn test_recovery_after_crash_during_split_phase3() {
    check_interrupted([".swap", ".swap"], true);
}

#[test]
fn test_recovery_after_crash_during_split_phase4() {
    check_interrupted([".swap", ".swap"], false);
}

#[test]
fn test_recovery_after_crash_during_split_phase5() {
    check_interrupted(["", ".swap"], false);
}
