//! Reading is strict and never panics; writing is stable and atomic.

use crate::common::{sample, sample_files};
use cleanslate_conformance::trace::format::Trace;
use cleanslate_conformance::trace::read::{MAX_TRACE_BYTES, parse_trace, read_trace};
use cleanslate_conformance::trace::write::{trace_to_string, write_trace};
use proptest::prelude::*;

fn error_of(text: impl AsRef<[u8]>) -> String {
    let error = parse_trace("t.json", text.as_ref()).expect_err("the text is broken").to_string();
    assert_eq!(error.lines().count(), 1, "one line: {error}");
    error
}

/// The sample's text with the first `from` replaced.
fn changed(from: &str, to: &str) -> String {
    let text = trace_to_string(&sample("negate-once-chain"));
    assert!(text.contains(from), "{from} is in the sample");
    text.replacen(from, to, 1)
}

#[test]
fn samples_survive_reading_and_writing() {
    for file in sample_files() {
        let trace = read_trace(&file).unwrap();
        let text = trace_to_string(&trace);
        assert_eq!(parse_trace("again", text.as_bytes()).unwrap(), trace);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{} is in normal form", file.display());
    }
}

#[test]
fn each_step_has_its_line() {
    let trace = sample("negate-once-chain");
    let text = trace_to_string(&trace);
    let steps: Vec<&str> = text.lines().filter(|l| l.starts_with("    {\"n\": ")).collect();
    assert_eq!(steps.len(), trace.steps.len());
}

#[test]
fn a_file_appears_whole_and_replaces_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.json");
    let trace = sample("raw-barrier-stop");
    write_trace(&path, &sample("negate-once-chain")).unwrap();
    write_trace(&path, &trace).unwrap();
    assert_eq!(read_trace(&path).unwrap(), trace);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    let nowhere = dir.path().join("missing/trace.json");
    let error = write_trace(&nowhere, &trace).unwrap_err().to_string();
    assert!(error.contains("cannot write the trace"), "{error}");
}

/// Several workers may find the same counterexample.
#[test]
fn writers_of_one_file_do_not_meet() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, path) = (sample("negate-once-chain"), dir.path().join("t.json"));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|_| write_trace(&path, &trace).unwrap()));
        }
    });
    assert_eq!(read_trace(&path).unwrap(), trace);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn broken_text_is_named_with_its_place() {
    let whole = trace_to_string(&sample("negate-once-chain"));
    assert_eq!(error_of(""), "t.json:1:1: EOF while parsing a value");
    assert!(error_of(&whole[..whole.len() / 2]).contains(": EOF while parsing"));
    assert_eq!(error_of(b"{\n \"format\": \"\xff\"}"), "t.json:2:13: expected UTF-8 text");
    assert!(error_of("[]").starts_with("t.json:1:"));
    assert!(error_of(format!("{whole}x")).contains("trailing characters"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error_of(changed("\"axes\": {", &format!("\"axes\": {{\"x\": {deep}, "))).contains("expected a string"));
    let error = error_of(changed("\"title\": ", "\"tit\\nle\": "));
    assert!(error.contains("unknown field `tit\\nle`, expected one of `format`"), "{error}");
}

#[test]
fn wrong_fields_are_named_with_what_is_expected() {
    for (from, to, expected) in [
        ("\"version\": 1", "\"version\": 2", "t.json:3:14: version: expected version 1, found 2"),
        ("\"cleanslate-trace\"", "\"other\"", "t.json:2:13: format: expected \"cleanslate-trace\", found \"other\""),
        ("\"version\": 1", "\"version\": \"1\"", "invalid type: string \"1\", expected u32"),
        ("\"n\": 1,", "\"n\": 1, \"m\": 1,", "unknown field `m`, expected one of `n`, `say`, `ops`, `state`"),
        ("\"op\": \"append\"", "\"op\": \"add\"", "unknown variant `add`, expected one of `append`, `mirror`"),
        (
            "\"origin\": \"client\"",
            "\"origin\": \"raft\"",
            "unknown variant `raft`, expected one of `client`, `coordinator`, `stopping-mirror`",
        ),
        ("\"producer_epoch\": 0", "\"producer_epoch\": 40000", "invalid value: integer `40000`, expected i16"),
        ("\"producer_id\": 5", "\"producer_id\": 99999999999999999999", "expected i64"),
        ("\"producer_id\": 5", "\"producer_id\": 5.5", "invalid type: floating point `5.5`, expected i64"),
        ("\"say\": ", "\"say\": \"\", \"say\": ", "duplicate field `say`"),
        ("\"kind\": \"idempotent\"", "\"kind\": null", "expected"),
    ] {
        let error = error_of(changed(from, to));
        assert!(error.contains(expected), "{to}: {error}");
    }
}

/// serde would take the values of the fields in their order for the object.
#[test]
fn an_array_is_no_object() {
    for (from, to, expected) in [
        (
            r#"{"name": "A", "cluster": "A", "mirrors": null}"#,
            r#"["A", "A", null]"#,
            "replicas[0]: expected an object, found an array",
        ),
        (
            r#""expect": {"appended": {"base_offset": 0, "last_offset": 0}}"#,
            r#""expect": {"appended": [0, 0]}"#,
            "steps[0].ops[0].expect.appended: expected an object, found an array",
        ),
    ] {
        let error = error_of(changed(from, to));
        assert!(error.contains(expected), "{to}: {error}");
    }
    let whole = trace_to_string(&sample("negate-once-chain"));
    let trace: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let fields = ["format", "version", "title", "scenario", "property", "violation", "replicas", "producers", "steps"];
    let values: Vec<&serde_json::Value> = fields.iter().map(|field| &trace[field]).collect();
    assert!(error_of(serde_json::to_string(&values).unwrap()).starts_with("t.json:1:"));
}

#[test]
fn contradictions_are_named_with_their_step() {
    for (from, to, expected) in [
        ("\"n\": 2,", "\"n\": 3,", "steps[1].n (step 2): expected step number 2, found 3"),
        ("\"name\": \"B\"", "\"name\": \"A\"", "replicas[1].name: expected a unique name, found replica \"A\" again"),
        ("\"name\": \"b1\"", "\"name\": \"a1\"", "producers[1].name: expected a unique name, found producer \"a1\" again"),
        ("\"name\": \"b1\"", "\"name\": \"b\\u001b1\"", "producers[1].name: expected a name of 1 to 64 printable ASCII characters"),
        ("\"mirrors\": \"A\"", "\"mirrors\": \"Z\"", "replicas[1].mirrors: expected a declared cluster (A, B, C), found \"Z\""),
        (
            "\"replica\": \"B\"",
            "\"replica\": \"Z\"",
            "steps[1].ops[0].replica (step 2): expected a declared replica (A, B, C), found \"Z\"",
        ),
        ("\"from\": \"A\"", "\"from\": \"B\"", "steps[1].ops[0].from (step 2): expected another replica"),
        ("\"by\": \"a1\"", "\"by\": \"x9\"", "steps[0].ops[0].by (step 1): expected a declared producer (a1, b1), found \"x9\""),
        ("\"by\": \"a1\"", "\"by\": null", "steps[0].ops[0].by (step 1): expected the producer of a data batch, found none"),
        ("\"records\": 1", "\"records\": 0", "batch.records (step 1): expected 1 to 10000 records, found 0"),
        ("\"batches\": 1", "\"batches\": 4000000000", "expected 1 to 10000 batches, found 4000000000"),
        ("\"offset\": 0, \"batches\"", "\"offset\": -1, \"batches\"", "expected an offset of 0 or more, found -1"),
        ("\"say\": \"", "\"say\": \"\\n", "steps[0].say (step 1): expected one line of text, found a control character"),
        (
            "\"high_watermark\": 0",
            "\"high_watermark\": -5",
            "steps[0].state.A.high_watermark (step 1): expected an offset of 0 or more",
        ),
    ] {
        let from = if from.contains("high_watermark") { "\"high_watermark\": 1" } else { from };
        let error = error_of(changed(from, to));
        assert!(error.contains(expected), "{to}: {error}");
        let line: usize = error.split(':').nth(1).unwrap().parse().unwrap();
        let text = changed(from, to);
        let there = text.lines().nth(line - 1).unwrap();
        assert!(there.contains(to.split(':').next().unwrap()), "{error}: line {line} is {there}");
    }
}

#[test]
fn states_of_undeclared_replicas_are_refused() {
    let mut trace = sample("negate-once-chain");
    let state = trace.steps[0].state["A"].clone();
    trace.steps[0].state.insert("Z".to_owned(), state);
    assert!(error_of(trace_to_string(&trace)).contains("steps[0].state.Z (step 1): expected a declared replica"));
}

#[test]
fn sizes_are_bounded() {
    let blank = vec![b' '; usize::try_from(MAX_TRACE_BYTES).unwrap() + 1];
    assert_eq!(error_of(&blank), "t.json: expected at most 16777216 bytes in a trace");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.json");
    std::fs::write(&path, &blank).unwrap();
    assert!(read_trace(&path).unwrap_err().to_string().contains("at most 16777216 bytes"));
    assert!(read_trace(dir.path()).unwrap_err().to_string().contains("cannot read the trace"));

    let mut many = sample("negate-once-chain");
    let step = many.steps[0].clone();
    many.steps = (1..=200).map(|n| cleanslate_conformance::trace::format::Step { n, ..step.clone() }).collect();
    let text = trace_to_string(&many).replace("\"records\": 1", "\"records\": 10000");
    assert!(error_of(text).contains("expected at most 1000000 appended records"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_trace("any", &bytes);
    }

    #[test]
    fn no_cut_or_flip_makes_the_reader_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = trace_to_string(&sample("raw-foreign-marker")).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        if let Err(error) = parse_trace("any", &bytes) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

#[test]
fn null_fields_may_be_left_out() {
    let text = changed("\"property\": \"log-pid-single-producer\",\n", "").replace(", \"control\": null", "");
    let trace: Trace = parse_trace("t.json", text.as_bytes()).unwrap();
    assert_eq!(trace.property, None);
}
