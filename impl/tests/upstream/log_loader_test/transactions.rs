#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! The transaction index at load.

use cleanslate_log::log::{LogConfig, Recovery};
use cleanslate_log::storage::Storage;
use cleanslate_log::types::Offset;

use crate::upstream::support::{Log, bases, reopen_files, without_snapshots};
use crate::upstream::unified_log_test_core::script::{ABORTED, aborted, led};

/// The files of the script's log, without the index files of segments from a base on.
fn without_indexes(log: &Log, from: i64, keeps_snapshots: bool) -> cleanslate_log::storage::MemoryStorage {
    let mut storage = if keeps_snapshots { log.storage().clone() } else { without_snapshots(log) };
    for name in storage.names().unwrap() {
        let base = name.split('.').next().unwrap().parse::<i64>();
        if name.ends_with("index") && base.unwrap() >= from {
            storage.remove(&name).unwrap();
        }
    }
    storage
}

fn script() -> Log {
    let mut log = led(&LogConfig { segment_bytes: 640, ..LogConfig::default() });
    assert!(bases(&log).len() > 3);
    log.close_clean().unwrap();
    log
}

fn check(log: &Log, from: i64, recovery_point: i64, keeps_snapshots: bool) {
    let storage = without_indexes(log, from, keeps_snapshots);
    let recovered = reopen_files(storage, log.config(), Recovery::Unclean, recovery_point, 0);
    assert_eq!(recovered.log_end_offset(), Offset(90));
    assert_eq!(aborted(&recovered), ABORTED);
    assert_eq!(recovered.producer_state().first_undecided_offset(), None);
}

#[test]
fn test_full_transaction_index_recovery() {
    check(&script(), 0, 0, true);
}

#[test]
fn test_recover_only_last_segment() {
    let log = script();
    let last = bases(&log)[bases(&log).len() - 1];
    check(&log, last, last, true);
}

#[test]
fn test_recover_last_segment_with_no_snapshots() {
    let log = script();
    let last = bases(&log)[bases(&log).len() - 1];
    check(&log, last, last, false);
}
