//! Helpers of all tests: sample traces, states by hand, expected text files.

use std::path::{Path, PathBuf};

use cleanslate_conformance::trace::format::{
    Batch, CachedBatch, Control, LogEntry, MirrorState, OpenTransaction, ProducerEntry, ReplicaState, Trace,
};
use cleanslate_conformance::trace::read::read_trace;

/// Set to rewrite the expected files of the tests instead of comparing with them.
pub(crate) const UPDATE: &str = "CLEANSLATE_UPDATE";

pub(crate) fn updating() -> bool {
    std::env::var_os(UPDATE).is_some()
}

pub(crate) fn data_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The sample traces, in order of name.
pub(crate) fn sample_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(data_dir()).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "json"));
    files.sort();
    assert!(files.len() >= 6, "the samples are there");
    files
}

pub(crate) fn sample(name: &str) -> Trace {
    read_trace(&data_dir().join(format!("{name}.json"))).unwrap()
}

/// Compares `actual` with the text of `tests/data/<name>`, or writes it there.
pub(crate) fn expect_file(name: &str, actual: &str) {
    let path = data_dir().join(name);
    if updating() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}; run once with {UPDATE}=1", path.display()));
    assert_eq!(expected, actual, "{} differs; run with {UPDATE}=1 to accept", path.display());
}

/// Data of one producer id: epoch, base sequence, records.
pub(crate) fn data(producer_id: i64, epoch: i16, sequence: i32, records: u32, transactional: bool) -> Batch {
    Batch { producer_id, producer_epoch: epoch, base_sequence: sequence, records, transactional, control: None }
}

pub(crate) fn marker(producer_id: i64, epoch: i16, commit: bool) -> Batch {
    let control = if commit { Control::Commit { coordinator_epoch: 0 } } else { Control::Abort { coordinator_epoch: 0 } };
    Batch { producer_id, producer_epoch: epoch, base_sequence: -1, records: 1, transactional: true, control: Some(control) }
}

pub(crate) fn barrier(source: &str) -> Batch {
    let control = Some(Control::MirrorPidReset { source_cluster: source.to_owned() });
    Batch { producer_id: -1, producer_epoch: -1, base_sequence: -1, records: 1, transactional: false, control }
}

pub(crate) fn entry(producer_id: i64, epoch: i16, batches: &[(i32, i32, i64)]) -> ProducerEntry {
    let cached = |(first, last, offset): &(i32, i32, i64)| CachedBatch {
        base_sequence: *first,
        last_sequence: *last,
        base_offset: *offset,
        last_offset: offset + i64::from(last - first),
    };
    ProducerEntry {
        producer_id,
        producer_epoch: epoch,
        coordinator_epoch: -1,
        batches: batches.iter().map(cached).collect(),
        txn_first_offset: None,
    }
}

/// A state whose log holds these batches one after the other, with nothing behind the high watermark.
pub(crate) fn state(mirror_state: MirrorState, batches: &[(&str, Batch)], producers: Vec<ProducerEntry>) -> ReplicaState {
    let mut log = Vec::new();
    let mut end = 0;
    for (by, batch) in batches {
        let by = (!by.is_empty()).then(|| (*by).to_owned());
        log.push(LogEntry { offset: end, by, batch: batch.clone() });
        end += i64::from(batch.records);
    }
    let mut open: Vec<OpenTransaction> = producers
        .iter()
        .filter_map(|p| p.txn_first_offset.map(|first_offset| OpenTransaction { producer_id: p.producer_id, first_offset }))
        .collect();
    open.sort_by_key(|t| t.first_offset);
    ReplicaState {
        up: true,
        mirror_state,
        log_start_offset: 0,
        log_end_offset: end,
        high_watermark: end,
        last_stable_offset: open.first().map_or(end, |t| t.first_offset),
        log,
        producers,
        open_transactions: open,
        aborted_transactions: Some(Vec::new()),
    }
}
