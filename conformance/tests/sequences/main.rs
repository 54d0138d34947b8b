//! What the random sequences of log operations reach, and that stored ones can be read. No other implementation is needed for this.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

#[cfg(test)]
mod command;
#[cfg(test)]
mod limited;

use std::collections::BTreeMap;

use cleanslate_conformance::adapter::Abilities;
use cleanslate_conformance::adapter::message::Operation;
use cleanslate_conformance::sequence::action::plans;
use cleanslate_conformance::sequence::file::SequenceFile;
use cleanslate_conformance::sequence::random::requests;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

/// Each operation with what came of it, and how often in 600 sequences. A cleaning round counts apart if it has changed the log.
fn outcomes() -> BTreeMap<String, u32> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut counts = BTreeMap::new();
    for _ in 0..600 {
        let plan = plans(30).new_tree(&mut runner).unwrap().current();
        let (mut sizes, mut ends, mut damaged) = (BTreeMap::new(), BTreeMap::new(), None);
        for (operation, reply) in requests(&plan, &Abilities::all()).0 {
            let segments = reply.state.as_ref().map(|state| state.segments.clone());
            let before = operation.log().and_then(|log| sizes.insert(log.to_owned(), segments.clone()));
            let changed = matches!(operation, Operation::Compact { .. }) && before.is_some_and(|before| before != segments);
            let outcome = match &reply.outcome {
                Ok(_) if changed => "changed".to_owned(),
                Ok(_) => "ok".to_owned(),
                Err(failure) => failure.name.clone(),
            };
            if let Operation::AppendLeader { batch: bytes, .. } | Operation::AppendFollower { batches: bytes, .. } = &operation
                && let (Some(magic), Some(attributes)) = (bytes.0.get(16), bytes.0.get(22))
            {
                let what = if *magic == 2 { format!("codec {}", attributes & 7) } else { format!("magic {magic}") };
                *counts.entry(format!("{} {outcome}, {what}", operation.name())).or_insert(0) += 1;
            }
            let end = reply.state.as_ref().map(|state| state.log_end_offset);
            if let (Operation::Open { log, .. }, Some(end), Some((file, before))) = (&operation, end, damaged.take()) {
                let cut = if ends.get(log).is_some_and(|last| end < *last) { ", cut" } else { "" };
                *counts.entry(format!("open with a damaged {file}{cut}")).or_insert(0) += u32::from(before == *log);
            }
            if let Operation::PutFile { log, file, .. } = &operation
                && log != "C"
            {
                damaged = Some((file.rsplit('.').next().unwrap_or_default().to_owned(), log.clone()));
            }
            if let (Some(log), Some(end)) = (operation.log(), end) {
                ends.insert(log.to_owned(), end);
            }
            *counts.entry(format!("{} {outcome}", operation.name())).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn the_random_sequences_reach_what_they_are_meant_to_reach() {
    let counts = outcomes();
    let wanted = [
        "append-follower InvalidTxnStateException",
        "append-follower IllegalArgumentException",
        "append-follower ok",
        "append-follower RecordBatchTooLargeException",
        "append-leader InvalidProducerEpochException",
        "append-leader InvalidTxnStateException",
        "append-leader OutOfOrderSequenceException",
        "append-leader TransactionCoordinatorFencedException",
        "append-leader ok",
        "append-follower ok, codec 1",
        "append-follower ok, magic 0",
        "append-follower ok, magic 1",
        "append-follower ok, codec 2",
        "append-follower ok, codec 3",
        "append-follower ok, codec 4",
        "append-leader ok, codec 1",
        "append-leader ok, codec 2",
        "append-leader ok, codec 3",
        "append-leader ok, codec 4",
        "close ok",
        "compact changed",
        "compact ok",
        "crash ok",
        "delete-snapshots ok",
        "end-offset-for-epoch ok",
        "expire ok",
        "files ok",
        "flush ok",
        "high-watermark IllegalArgumentException",
        "high-watermark ok",
        "log-start OffsetOutOfRangeException",
        "log-start ok",
        "open KafkaStorageException",
        "open ok",
        "open with a damaged index",
        "open with a damaged log",
        "open with a damaged log, cut",
        "open with a damaged snapshot",
        "open with a damaged timeindex",
        "read OffsetOutOfRangeException",
        "read ok",
        "retention ok",
        "roll ok",
        "set-time ok",
        "snapshot ok",
        "start-verification InvalidProducerEpochException",
        "start-verification ok",
        "truncate ok",
        "truncate-fully ok",
    ];
    let missing: Vec<_> = wanted.iter().filter(|wanted| counts.get(**wanted).is_none_or(|count| *count < 5)).collect();
    assert!(missing.is_empty(), "reached less than 5 times: {missing:?} of {counts:#?}");
    assert!(counts.contains_key("open with a damaged txnindex"), "{counts:#?}");
    let protocol: Vec<_> = counts.keys().filter(|name| name.ends_with("-log") || name.contains(" log-")).collect();
    assert!(protocol.is_empty(), "requests that make no sense: {protocol:?}");
}

#[test]
fn stored_sequences_can_be_read_and_written() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sequences");
    let mut read = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let file = SequenceFile::read(&path).unwrap();
        assert_eq!(file.to_text().unwrap(), std::fs::read_to_string(&path).unwrap(), "{}", path.display());
        read += 1;
    }
    assert!(read > 0);
}

/// The schema of sequences: its steps are the protocol's requests without `id` and `state`.
#[test]
fn the_schema_is_that_of_the_protocol_and_stored_sequences_satisfy_it() {
    let specs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let read = |name: &str| -> Value { serde_json::from_str(&std::fs::read_to_string(specs.join(name)).unwrap()).unwrap() };
    let (sequence, protocol) = (read("sequence.schema.json"), read("adapter-protocol.schema.json"));
    let mut expected = protocol["$defs"]["request"]["oneOf"].as_array().unwrap().clone();
    expected.retain(|request| request["properties"]["op"]["const"].as_str().is_none_or(|op| !["hello", "bye"].contains(&op)));
    for request in &mut expected {
        request["required"].as_array_mut().unwrap().retain(|field| field != "id");
        let fields = request["properties"].as_object_mut().unwrap();
        fields.retain(|name, _| name != "id" && name != "state");
    }
    assert_eq!(sequence["$defs"]["step"]["oneOf"].as_array().unwrap(), &expected);
    for (name, definition) in sequence["$defs"].as_object().unwrap() {
        assert!(name == "step" || *definition == protocol["$defs"][name], "{name}");
    }
    let validator = jsonschema::validator_for(&sequence).unwrap();
    for entry in std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sequences")).unwrap() {
        let path = entry.unwrap().path();
        let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&file).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
}

#[test]
fn a_broken_file_is_refused_with_its_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broken.json");
    let refusal = |text: &str| {
        std::fs::write(&path, text).unwrap();
        SequenceFile::read(&path).unwrap_err().to_string().replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(refusal("{"), "FILE: EOF while parsing an object at line 1 column 1");
    let other = r#"{"format": "cleanslate-sequence", "version": 2, "about": "", "steps": []}"#;
    assert_eq!(refusal(other), "FILE: format cleanslate-sequence of version 2, expected cleanslate-sequence of version 1");
    let unknown = r#"{"format": "cleanslate-sequence", "version": 1, "about": "", "steps": [{"op": "dance"}]}"#;
    assert!(refusal(unknown).starts_with("FILE: unknown variant `dance`, expected one of `hello`"));
    let array = r#"["cleanslate-sequence", 1, "", []]"#;
    assert_eq!(refusal(array), "FILE: file: expected an object, found an array at line 1 column 1");
    let step = r#"{"format": "cleanslate-sequence", "version": 1, "about": "", "steps": [["run-tasks", "A"]]}"#;
    assert_eq!(refusal(step), "FILE: steps[0]: expected an object, found an array at line 1 column 72");
}
