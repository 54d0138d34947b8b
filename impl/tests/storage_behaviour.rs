//! All storages behave alike.
#![cfg(test)]

use std::io;

use bytes::Bytes;
use cleanslate_log::log::{LogConfig, PartitionLog, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::BatchBuilder;
use cleanslate_log::storage::{
    FaultyStorage, FileStorage, MAX_NAME_BYTES, MAX_RESERVED_BYTES, MemoryStorage, Storage, StorageError, Unsynced,
};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use proptest::prelude::*;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Runs a test on an empty storage of each kind.
fn on_each(test: impl Fn(&mut dyn AnyStorage)) {
    test(&mut MemoryStorage::new());
    test(&mut FaultyStorage::new());
    let dir = tempfile::tempdir().unwrap();
    test(&mut FileStorage::open(dir.path()).unwrap());
}

/// A storage whose kind is not known.
trait AnyStorage: Storage {}
impl<S: Storage> AnyStorage for S {}

#[test]
fn appended_bytes_are_read_from_any_position() {
    on_each(|storage| {
        for part in ["abc", "", "de", "f"] {
            storage.append("x.log", &bytes(part)).unwrap();
        }
        assert_eq!(storage.len("x.log"), Ok(Some(6)));
        for from in 0_usize..8 {
            for max in 0..8 {
                let text = "abcdef";
                let start = from.min(6);
                let expected = &text[start..(start + max).min(6)];
                let found = storage.read("x.log", from as u64, max).unwrap();
                assert_eq!(found, expected, "{from} {max}");
            }
        }
        assert_eq!(storage.read("x.log", u64::MAX >> 1, usize::MAX), Ok(bytes("")));
        assert_eq!(storage.read_all("x.log"), Ok(Some(bytes("abcdef"))));
        storage.sync("x.log").unwrap();
    });
}

#[test]
fn a_file_is_cut_and_goes_on() {
    on_each(|storage| {
        storage.append("x.log", &bytes("abc")).unwrap();
        storage.append("x.log", &bytes("def")).unwrap();
        for (len, left) in [(6, "abcdef"), (4, "abcd"), (3, "abc"), (1, "a")] {
            storage.truncate("x.log", len).unwrap();
            assert_eq!(storage.read_all("x.log"), Ok(Some(bytes(left))));
        }
        let beyond = storage.truncate("x.log", 2);
        let expected = StorageError::TruncateBeyondEnd { name: "x.log".to_owned(), requested: 2, len: 1 };
        assert_eq!(beyond, Err(expected));
        storage.append("x.log", &bytes("z")).unwrap();
        assert_eq!(storage.read_all("x.log"), Ok(Some(bytes("az"))));
        storage.truncate("x.log", 0).unwrap();
        assert_eq!(storage.len("x.log"), Ok(Some(0)));
    });
}

/// A file that was made longer is as long as what is in it to everybody but to who opens it anew.
#[test]
fn reserved_bytes_are_overwritten_and_given_back() {
    on_each(|storage| {
        storage.append("x.log", &bytes("abc")).unwrap();
        storage.reserve("x.log", 8).unwrap();
        assert_eq!((storage.len("x.log"), storage.read("x.log", 2, 9)), (Ok(Some(3)), Ok(bytes("c"))));
        storage.append("x.log", &bytes("de")).unwrap();
        storage.sync("x.log").unwrap();
        assert_eq!(storage.read_all("x.log"), Ok(Some(bytes("abcde"))));
        let beyond = StorageError::TruncateBeyondEnd { name: "x.log".to_owned(), requested: 6, len: 5 };
        assert_eq!(storage.truncate("x.log", 6), Err(beyond));
        storage.rename("x.log", "y.log").unwrap();
        storage.append("y.log", &bytes("fghij")).unwrap();
        assert_eq!(storage.read_all("y.log"), Ok(Some(bytes("abcdefghij"))));
        storage.trim("y.log").unwrap();
        storage.reserve("y.log", 4).unwrap();
        storage.append("y.log", &bytes("k")).unwrap();
        assert_eq!(storage.read_all("y.log"), Ok(Some(bytes("abcdefghijk"))));
        storage.trim("none").unwrap();
        assert_eq!(storage.len("none"), Ok(None));
        storage.reserve("none", 0).unwrap();
        assert_eq!(storage.len("none"), Ok(Some(0)));
    });
}

/// A file that somebody else has taken away is there no more, whatever was reserved for it.
#[test]
fn nothing_stays_reserved_for_a_file_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = FileStorage::open(dir.path()).unwrap();
    storage.reserve("x.log", 8).unwrap();
    std::fs::remove_file(dir.path().join("x.log")).unwrap();
    storage.remove("x.log").unwrap();
    storage.append("x.log", &bytes("abc")).unwrap();
    assert_eq!(std::fs::read(dir.path().join("x.log")).unwrap(), b"abc");
}

/// What was reserved is durable at once; the bytes that were written over it are not, and leave zeros.
#[test]
fn a_power_failure_leaves_zeros_where_bytes_were_reserved() {
    let mut storage = FaultyStorage::new();
    storage.reserve("x.log", 8).unwrap();
    storage.append("x.log", &bytes("ab")).unwrap();
    storage.sync("x.log").unwrap();
    storage.append("x.log", &bytes("cde")).unwrap();
    let left = |storage: &FaultyStorage, unsynced| storage.after_power_failure(unsynced).read_all("x.log").unwrap().unwrap();
    assert_eq!(left(&storage, Unsynced::Lost), "ab\0\0\0\0\0\0");
    assert_eq!(left(&storage, Unsynced::Torn(1)), "abc\0\0\0\0\0");
    assert_eq!(left(&storage, Unsynced::Kept), "abcde\0\0\0");
    // A cut gives the rest back, once it is durable.
    storage.truncate("x.log", 4).unwrap();
    assert_eq!(left(&storage, Unsynced::Lost), "ab\0\0\0\0\0\0");
    storage.sync("x.log").unwrap();
    assert_eq!(left(&storage, Unsynced::Lost), "abcd");
    storage.reserve("x.log", 6).unwrap();
    storage.append("x.log", &bytes("e")).unwrap();
    storage.trim("x.log").unwrap();
    assert_eq!(left(&storage, Unsynced::Lost), "abcde");
}

/// More than Kafka's file can be long is not reserved.
#[test]
fn no_more_is_reserved_than_a_file_can_be_long() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = FileStorage::open(dir.path()).unwrap();
    storage.reserve("x.log", u64::MAX).unwrap();
    assert_eq!(std::fs::metadata(dir.path().join("x.log")).unwrap().len(), MAX_RESERVED_BYTES);
    assert_eq!(storage.len("x.log"), Ok(Some(0)));
}

#[test]
fn a_replacement_is_whole() {
    on_each(|storage| {
        storage.append("a", &bytes("long old content")).unwrap();
        storage.replace("a", &bytes("new")).unwrap();
        storage.replace("b", &bytes("")).unwrap();
        assert_eq!(storage.read_all("a"), Ok(Some(bytes("new"))));
        // What is appended after a replacement goes to the new file.
        storage.append("a", &bytes("er")).unwrap();
        assert_eq!(storage.read_all("a"), Ok(Some(bytes("newer"))));
        assert_eq!(storage.names(), Ok(vec!["a".to_owned(), "b".to_owned()]));
    });
}

#[test]
fn a_removed_file_is_gone_and_may_come_back() {
    on_each(|storage| {
        storage.append("a", &bytes("x")).unwrap();
        storage.remove("a").unwrap();
        storage.remove("a").unwrap();
        assert_eq!(storage.len("a"), Ok(None));
        assert_eq!(storage.read_all("a"), Ok(None));
        storage.append("a", &bytes("y")).unwrap();
        assert_eq!(storage.read_all("a"), Ok(Some(bytes("y"))));
    });
}

#[test]
fn a_file_gets_another_name() {
    on_each(|storage| {
        storage.append("a", &bytes("x")).unwrap();
        storage.append("b", &bytes("old")).unwrap();
        storage.rename("a", "b").unwrap();
        assert_eq!(storage.names(), Ok(vec!["b".to_owned()]));
        // What is appended from now on goes where the name is.
        storage.append("b", &bytes("y")).unwrap();
        storage.append("a", &bytes("new")).unwrap();
        assert_eq!(storage.read_all("b"), Ok(Some(bytes("xy"))));
        assert_eq!(storage.read_all("a"), Ok(Some(bytes("new"))));
        storage.rename("a", "a").unwrap();
        storage.truncate("a", 1).unwrap();
        assert_eq!(storage.read_all("a"), Ok(Some(bytes("n"))));
        assert!(matches!(storage.rename("c", "a"), Err(StorageError::NotFound { .. })));
        assert_eq!(storage.read_all("a"), Ok(Some(bytes("n"))));
    });
}

/// The new name is durable at once; the bytes are only as far as they were.
#[test]
fn a_power_failure_keeps_the_new_name_and_loses_what_was_not_durable() {
    let mut storage = FaultyStorage::new();
    storage.append("a", &bytes("durable")).unwrap();
    storage.sync("a").unwrap();
    storage.append("a", &bytes(" or not")).unwrap();
    storage.append("b", &bytes("replaced")).unwrap();
    storage.rename("a", "b").unwrap();
    let left = storage.after_power_failure(Unsynced::Lost);
    assert_eq!((left.read_all("a"), left.read_all("b")), (Ok(None), Ok(Some(bytes("durable")))));
    storage.sync("b").unwrap();
    let left = storage.after_power_failure(Unsynced::Lost);
    assert_eq!(left.read_all("b"), Ok(Some(bytes("durable or not"))));
}

#[test]
fn what_is_not_there() {
    on_each(|storage| {
        assert_eq!(storage.len("a"), Ok(None));
        for result in [storage.read("a", 0, 1).map(|_| ()), storage.truncate("a", 0), storage.sync("a")] {
            let error = result.unwrap_err();
            assert!(matches!(error, StorageError::NotFound { .. }), "{error}");
        }
        assert_eq!(storage.names(), Ok(Vec::new()));
    });
}

#[test]
fn names_cannot_leave_the_storage() {
    on_each(|storage| {
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        storage.append("there", &bytes("x")).unwrap();
        for name in ["", ".", "..", "../x", "a/b", "a\\b", "\0", "é", "x.tmp", &long] {
            for result in [
                storage.append(name, &bytes("x")),
                storage.replace(name, &bytes("x")),
                storage.truncate(name, 0),
                storage.reserve(name, 1),
                storage.trim(name),
                storage.remove(name),
                storage.rename(name, "x"),
                storage.rename("there", name),
                storage.sync(name),
                storage.len(name).map(|_| ()),
                storage.read(name, 0, 1).map(|_| ()),
            ] {
                let error = result.unwrap_err();
                assert!(matches!(error, StorageError::InvalidName { .. }), "{error}");
            }
        }
        let longest = "a".repeat(MAX_NAME_BYTES);
        storage.replace(&longest, &bytes("x")).unwrap();
    });
}

#[test]
fn a_directory_keeps_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("below").join("t-0");
    let mut storage = FileStorage::open(&path).unwrap();
    storage.append("x.log", &bytes("abc")).unwrap();
    storage.replace("y", &bytes("d")).unwrap();
    std::fs::write(path.join("y.tmp"), "unfinished").unwrap();
    std::fs::write(path.join("not ours.tmp"), "other").unwrap();
    std::fs::create_dir(path.join("z")).unwrap();
    drop(storage);
    let storage = FileStorage::open(&path).unwrap();
    assert_eq!(storage.dir(), path);
    let names = vec!["x.log".to_owned(), "y".to_owned()];
    assert_eq!(storage.names(), Ok(names));
    assert_eq!(storage.read_all("x.log"), Ok(Some(bytes("abc"))));
    assert!(!path.join("y.tmp").exists());
    assert!(path.join("not ours.tmp").exists());
    // A directory is no file.
    assert_eq!(storage.len("z"), Ok(None));
    let error = storage.read("z", 0, 1).unwrap_err();
    assert!(matches!(error, StorageError::Io { .. }), "{error}");
    let error = FileStorage::open(path.join("x.log")).unwrap_err();
    let StorageError::Io { kind, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(kind, io::ErrorKind::AlreadyExists);
}

#[test]
fn a_clone_in_memory_is_a_storage_of_its_own() {
    let mut first = MemoryStorage::new();
    first.append("a", &bytes("abc")).unwrap();
    let mut second = first.clone();
    assert_eq!(first, second);
    second.append("a", &bytes("d")).unwrap();
    second.replace("b", &bytes("x")).unwrap();
    first.truncate("a", 1).unwrap();
    assert_eq!(first.read_all("a"), Ok(Some(bytes("a"))));
    assert_eq!(second.read_all("a"), Ok(Some(bytes("abcd"))));
    assert_eq!(first.len("b"), Ok(None));
    // Equal is what has equal bytes.
    let mut third = MemoryStorage::new();
    third.append("a", &bytes("abcd")).unwrap();
    third.append("b", &bytes("x")).unwrap();
    assert_eq!(second, third);
    third.truncate("a", 3).unwrap();
    assert_ne!(second, third);
}

/// One operation on one of two files.
#[derive(Clone, Debug)]
enum Op {
    Append(u8, Vec<u8>),
    Reserve(u8, u64),
    Trim(u8),
    Truncate(u8, u64),
    Replace(u8, Vec<u8>),
    Remove(u8),
    Rename(u8, u8),
    Sync(u8),
    Read(u8, u64, usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let content = || prop::collection::vec(any::<u8>(), 0..6);
    let op = prop_oneof![
        4 => (0..2_u8, content()).prop_map(|(f, c)| Op::Append(f, c)),
        2 => (0..2_u8, 0..12_u64).prop_map(|(f, n)| Op::Reserve(f, n)),
        1 => (0..2_u8).prop_map(Op::Trim),
        2 => (0..2_u8, 0..12_u64).prop_map(|(f, n)| Op::Truncate(f, n)),
        1 => (0..2_u8, content()).prop_map(|(f, c)| Op::Replace(f, c)),
        1 => (0..2_u8).prop_map(Op::Remove),
        1 => (0..2_u8, 0..2_u8).prop_map(|(from, to)| Op::Rename(from, to)),
        1 => (0..2_u8).prop_map(Op::Sync),
        4 => (0..2_u8, 0..14_u64, 0..14_usize).prop_map(|(f, a, m)| Op::Read(f, a, m)),
    ];
    prop::collection::vec(op, 0..40)
}

fn run(storage: &mut impl Storage, op: &Op) -> String {
    let name = |file: &u8| format!("file-{file}");
    match op {
        Op::Append(f, c) => format!("{:?}", storage.append(&name(f), &c.clone().into())),
        Op::Reserve(f, n) => format!("{:?}", storage.reserve(&name(f), *n)),
        Op::Trim(f) => format!("{:?}", storage.trim(&name(f))),
        Op::Truncate(f, n) => format!("{:?}", storage.truncate(&name(f), *n)),
        Op::Replace(f, c) => format!("{:?}", storage.replace(&name(f), &c.clone().into())),
        Op::Remove(f) => format!("{:?}", storage.remove(&name(f))),
        Op::Rename(from, to) => format!("{:?}", storage.rename(&name(from), &name(to))),
        Op::Sync(f) => format!("{:?}", storage.sync(&name(f))),
        Op::Read(f, at, max) => format!("{:?}", storage.read(&name(f), *at, *max)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_storages_answer_alike(ops in ops()) {
        let dir = tempfile::tempdir().unwrap();
        let mut memory = MemoryStorage::new();
        let mut faulty = FaultyStorage::new();
        let mut file = FileStorage::open(dir.path()).unwrap();
        for op in &ops {
            let answer = run(&mut memory, op);
            prop_assert_eq!(&answer, &run(&mut file, op), "{:?}", op);
            prop_assert_eq!(&answer, &run(&mut faulty, op), "{:?}", op);
        }
        // To the process, and to one that opens the files anew.
        let files: Vec<_> = memory.names().unwrap().into_iter().map(|name| (name.clone(), memory.read_all(&name))).collect();
        let reopened = memory.reopened();
        prop_assert_eq!(faulty.after_power_failure(Unsynced::Kept), reopened.clone());
        prop_assert_eq!(memory.names(), file.names());
        let anew = FileStorage::open(dir.path()).unwrap();
        for (name, content) in files {
            prop_assert_eq!(content, file.read_all(&name));
            prop_assert_eq!(reopened.read_all(&name), anew.read_all(&name));
        }
    }
}

/// Some batches, a restart, some more, a truncation: on either storage the same log and the same files.
fn run_log<S: Storage>(storage: S) -> PartitionLog<S> {
    let now = TimestampMs(0);
    let tv = TransactionVersion::V0;
    let append = |log: &mut PartitionLog<S>, sequence| {
        let batch = BatchBuilder::new(Offset(0))
            .producer(ProducerId(5), ProducerEpoch(0), Sequence(sequence))
            .record(None, Some(b"value"))
            .build()
            .unwrap();
        let bytes = batch.bytes().clone();
        log.append_as_leader(bytes, AppendOrigin::Client, LeaderEpoch(0), tv, now).unwrap();
    };
    let mut log = PartitionLog::create(storage, LogConfig::default(), TimestampMs(0)).unwrap();
    append(&mut log, 0);
    append(&mut log, 1);
    log.close_clean().unwrap();
    let storage = log.into_storage();
    let (mut log, _) = PartitionLog::open(storage, LogConfig::default(), Recovery::Clean, now).unwrap();
    append(&mut log, 2);
    append(&mut log, 3);
    log.truncate_to(Offset(3), now).unwrap();
    let storage = log.into_storage();
    let (log, _) = PartitionLog::open(storage, LogConfig::default(), Recovery::Unclean, now).unwrap();
    log
}

#[test]
fn a_log_is_the_same_on_each_storage() {
    let dir = tempfile::tempdir().unwrap();
    let in_memory = run_log(MemoryStorage::new());
    let on_disk = run_log(FileStorage::open(dir.path()).unwrap());
    assert_eq!(in_memory.producer_state(), on_disk.producer_state());
    assert_eq!(in_memory.batches(), on_disk.batches());
    assert_eq!(on_disk.log_end_offset(), Offset(3));
    let names = in_memory.storage().names().unwrap();
    assert_eq!(Ok(&names), on_disk.storage().names().as_ref());
    for name in names {
        assert_eq!(in_memory.storage().read_all(&name), on_disk.storage().read_all(&name));
    }
}

/// A reader of files that belong to others changes none of them.
#[test]
fn an_existing_directory_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.log"), "abc").unwrap();
    std::fs::write(dir.path().join("x.log.tmp"), "unfinished").unwrap();
    let storage = FileStorage::existing(dir.path());
    assert_eq!(storage.read_all("x.log"), Ok(Some(bytes("abc"))));
    assert!(dir.path().join("x.log.tmp").exists());
    let nowhere = dir.path().join("nowhere");
    assert_eq!(FileStorage::existing(&nowhere).len("x.log"), Ok(None));
    assert!(!nowhere.exists());
}

/// Files that are being written go on under the new name of their directory.
#[test]
fn a_directory_gets_another_name() {
    let parent = tempfile::tempdir().unwrap();
    let mut storage = FileStorage::open(parent.path().join("t-0")).unwrap();
    storage.append("x.log", &bytes("a")).unwrap();
    storage.reserve("y.log", 4).unwrap();
    for name in ["", ".", "..", "a/b", "a\\b", "\0", &"a".repeat(256)] {
        let error = storage.rename_dir(name).unwrap_err();
        assert!(matches!(error, StorageError::InvalidName { .. }), "{error}");
    }
    std::fs::create_dir(parent.path().join("full")).unwrap();
    std::fs::write(parent.path().join("full").join("z"), "z").unwrap();
    assert!(matches!(storage.rename_dir("full"), Err(StorageError::Io { .. })));
    assert_eq!(storage.dir(), parent.path().join("t-0"));
    storage.rename_dir("t-0.deleted").unwrap();
    storage.append("x.log", &bytes("b")).unwrap();
    storage.append("y.log", &bytes("c")).unwrap();
    storage.trim("y.log").unwrap();
    let moved = parent.path().join("t-0.deleted");
    assert_eq!(std::fs::read(moved.join("x.log")).unwrap(), b"ab");
    assert_eq!(std::fs::read(moved.join("y.log")).unwrap(), b"c");
    storage.rename_dir("t-0.deleted").unwrap();
    assert!(!parent.path().join("t-0").exists());
}
