//! A property that cannot fail proves nothing: each is broken by a design, by a design with one choice changed, or by a variant of the kill
//! list. Every counterexample here was written to a file and run again, on the log and in the model, before the program told of it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::process::Command;

use cleanslate_conformance::kill;
use cleanslate_model::property::PROPERTIES;
use serde_json::Value;

/// Design, topology, bounds, the property that must break, and the steps of its shortest trace.
const FAULTS: &[(&str, &str, &str, &str, u64)] = &[
    ("raw", "active-passive", "small", "writable-psm-empty", 4),
    ("raw", "active-passive", "small", "false-duplicate", 5),
    ("raw", "active-passive", "small,batches=2,crashes=1", "false-rejection", 8),
    ("raw", "active-passive", "small,transactional=1", "foreign-marker", 11),
    ("raw", "failback", "small,plain=1", "sequence-break-accepted", 8),
    ("raw", "failback", "small,transactional=1", "lower-epoch-accepted", 14),
    ("negate", "active-passive", "small", "barrier-before-local", 6),
    ("negate-once", "chain", "small", "log-pid-single-producer", 8),
    // The final design with one choice changed.
    ("raw-barrier+barrier=none", "active-passive", "small", "writable-psm-empty", 5),
    ("raw-barrier+barrier=none", "active-passive", "small", "false-duplicate", 6),
    ("raw-barrier+clears=negative", "active-passive", "small", "writable-psm-empty", 6),
    ("raw-barrier+clears=negative", "active-passive", "small", "false-duplicate", 7),
    ("raw-barrier+propagated=inert", "chain", "small", "psm-entry-single-producer", 10),
    ("raw-barrier+propagated=inert", "chain", "small", "sequence-break-accepted", 10),
    ("raw-barrier+propagated=append", "chain", "small,crashes=1,batches=2", "psm-entry-single-producer", 11),
    ("raw-barrier+timing=analysis", "failback", "small,crashes=1,batches=2", "psm-entry-single-producer", 18),
    (
        "raw-barrier+applied-by=leader/follower/segment-recovery",
        "failback",
        "small,crashes=1,batches=2",
        "psm-entry-single-producer",
        18,
    ),
    ("raw-barrier+applied-by=follower/reload/segment-recovery", "active-passive", "small", "false-duplicate", 7),
    ("raw-barrier+applied-by=leader/reload/segment-recovery", "chain", "small", "psm-entry-single-producer", 10),
    ("raw-barrier+applied-by=leader/follower/reload", "active-passive", "small,crashes=1", "false-duplicate", 8),
    ("raw-barrier+applied-by=leader/follower/reload", "active-passive", "small,crashes=1", "writable-psm-empty", 7),
    (
        "raw-barrier+stop-order=truncate/record/bump/abort/writable/write-barrier",
        "active-passive",
        "small",
        "no-barrier-after-local",
        5,
    ),
    ("raw-barrier+stop-order=truncate/record/bump/abort/writable/write-barrier", "active-passive", "small", "false-duplicate", 6),
    ("raw-barrier+alignment=none", "failback", "small", "log-pid-single-producer", 8),
    ("raw-barrier+alignment=own-lso", "failback", "small", "log-pid-single-producer", 8),
    ("raw-barrier+open-transactions=leave", "active-passive", "small,transactional=1", "writable-psm-empty", 10),
];

#[test]
fn every_fault_is_caught() {
    let dir = tempfile::tempdir().unwrap();
    let traces = dir.path().to_string_lossy().into_owned();
    let mut wrong = Vec::new();
    for (design, topology, bounds, property, length) in FAULTS {
        let output = Command::new(env!("CARGO_BIN_EXE_cleanslate"))
            .args(["check", "--json", "--design", design, "--topology", topology, "--bounds", bounds])
            .args(["--property", property, "--trace-dir", &traces])
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let found: Option<Value> = stdout.lines().next().and_then(|l| serde_json::from_str(l).ok());
        let found = found.map_or(Value::Null, |v| v["length"].clone());
        if output.status.code() != Some(1) || found.as_u64() != Some(*length) {
            let stderr = String::from_utf8_lossy(&output.stderr);
            wrong.push(format!("{design} in {topology} at {bounds}, {property}: expected {length} steps, found {found} {stderr}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_property_is_broken_by_some_fault() {
    let listed = kill::load().unwrap().into_iter().filter_map(|variant| match variant.fate {
        kill::Fate::Killed { property, .. } => Some(property.id),
        kill::Fate::Survives(_) => None,
    });
    let broken: BTreeSet<_> = FAULTS.iter().map(|f| f.3).chain(listed).collect();
    let all: BTreeSet<_> = PROPERTIES.iter().map(|p| p.id).collect();
    assert_eq!(broken, all);
}
