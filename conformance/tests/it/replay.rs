//! Replay of the samples on the target in process, and what is said when trace and target part.

use crate::common::{UPDATE, sample, sample_files, updating};
use cleanslate_conformance::replay::{ReplayReport, record, replay};
use cleanslate_conformance::target::in_process::InProcess;
use cleanslate_conformance::trace::format::{Expect, MirrorState, Op, Trace};
use cleanslate_conformance::trace::read::{parse_trace, read_trace};
use cleanslate_conformance::trace::write::{trace_to_string, write_trace};
use cleanslate_conformance::witness::Judgement;

fn run(trace: &Trace) -> ReplayReport {
    replay(trace, None, &mut InProcess::default()).unwrap()
}

/// The first difference between the changed trace and the target, as it is printed.
fn divergence(trace: &Trace) -> String {
    let report = replay(trace, Some(std::path::Path::new("a trace.json")), &mut InProcess::default()).unwrap();
    assert!(!report.succeeded());
    report.divergence.expect("target and trace part").to_string()
}

#[test]
fn every_sample_agrees_and_shows_what_it_claims() {
    for file in sample_files() {
        let trace = read_trace(&file).unwrap();
        if updating() {
            write_trace(&file, &record(&trace, &mut InProcess::default()).unwrap()).unwrap();
        }
        let trace = read_trace(&file).unwrap();
        let report = run(&trace);
        assert!(report.divergence.is_none(), "{}: {}; {UPDATE}=1 records", file.display(), report.divergence.unwrap());
        assert_eq!(report.steps_agreed, trace.steps.len());
        match (&trace.property, &report.judgement) {
            (None, None) | (Some(_), Some(Judgement::Seen(_))) => assert!(report.succeeded()),
            (property, judgement) => panic!("{}: {property:?}: {judgement:?}", file.display()),
        }
    }
}

#[test]
fn recording_changes_nothing_in_a_trace_that_agrees() {
    for file in sample_files() {
        let trace = read_trace(&file).unwrap();
        let mut blank = trace.clone();
        for step in &mut blank.steps {
            step.state.clear();
        }
        assert_eq!(record(&blank, &mut InProcess::default()).unwrap(), trace, "{}", file.display());
    }
}

#[test]
fn evidence_is_a_sentence_about_the_concrete_state() {
    let seen = |name: &str| match run(&sample(name)).judgement {
        Some(Judgement::Seen(evidence)) => evidence,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(seen("negate-once-chain"), "the log of C holds batches of a1 and b1 under id -7 with no barrier between (offset 1)");
    assert_eq!(seen("raw-false-duplicate"), "B took a batch of b1 for a duplicate of the batch of a1 at offset 0; it was dropped");
    assert_eq!(
        seen("raw-false-rejection"),
        "B refused an honest append of b1 with OutOfOrderSequenceException: the entry for id 5 was last written by a1"
    );
    assert_eq!(seen("raw-foreign-marker"), "on B the marker of b1 at offset 1 ended the transaction that a1 began at offset 0");
}

#[test]
fn other_properties_are_judged_on_the_same_samples() {
    let judge = |name: &str, property: &str| {
        let trace = Trace { property: Some(property.to_owned()), ..sample(name) };
        run(&trace).judgement.unwrap()
    };
    let seen = |j: Judgement| matches!(j, Judgement::Seen(_));
    assert!(seen(judge("negate-once-chain", "psm-entry-single-producer")));
    assert!(seen(judge("raw-false-duplicate", "writable-psm-empty")));
    assert!(seen(judge("negate-once-chain", "barrier-before-local")));
    for name in ["raw-barrier-stop", "raw-barrier-failback", "raw-barrier-follower"] {
        for property in cleanslate_conformance::witness::PROPERTIES {
            assert_eq!(judge(name, property), Judgement::NotSeen, "{name}: {property}");
        }
    }
    assert_eq!(judge("raw-barrier-stop", "lso-reaches-hw"), Judgement::NotJudged);
}

#[test]
fn a_claim_that_is_not_true_fails_the_replay() {
    let trace = Trace { property: Some("false-duplicate".to_owned()), ..sample("raw-barrier-stop") };
    let report = run(&trace);
    assert!(report.divergence.is_none() && !report.succeeded());
}

#[test]
fn a_wrong_result_is_named_with_its_operation() {
    let mut trace = sample("negate-once-chain");
    let Op::Append { expect, .. } = &mut trace.steps[6].ops[0] else { panic!("step 7 appends") };
    *expect = Expect::Error("OutOfOrderSequenceException".to_owned());
    assert_eq!(
        divergence(&trace),
        "step 7: b1 writes 5.0#0 to B at offset 1.\n  \
           operation  append 5.0#0(b1) to B\n  \
           field      ops[0].expect\n  \
           expected   {\"error\":\"OutOfOrderSequenceException\"}\n  \
           actual     {\"appended\":{\"base_offset\":1,\"last_offset\":1}}\n  \
           reproduce  cargo run --release -- trace replay 'a trace.json'"
    );
}

#[test]
fn a_wrong_state_is_named_with_its_field() {
    let original = sample("negate-once-chain");
    let change = |edit: &dyn Fn(&mut Trace)| {
        let mut trace = original.clone();
        edit(&mut trace);
        divergence(&trace)
    };
    let text = change(&|t| t.steps[1].state.get_mut("B").unwrap().producers[0].batches[0].last_offset = 7);
    assert!(text.starts_with("step 2: "), "{text}");
    assert!(text.contains("field      state.B.producers[0].batches[0].last_offset\n  expected   7\n  actual     0"), "{text}");
    let text = change(&|t| t.steps[7].state.get_mut("C").unwrap().log[1].by = Some("a1".to_owned()));
    assert!(text.contains("field      state.C.log[1].by\n  expected   \"a1\"\n  actual     \"b1\""), "{text}");
    let text = change(&|t| t.steps[5].state.get_mut("B").unwrap().mirror_state = MirrorState::Failed);
    assert!(text.contains("field      state.B.mirror_state\n  expected   \"FAILED\"\n  actual     \"STOPPED\""), "{text}");
    let text = change(&|t| t.steps[0].state.get_mut("A").unwrap().producers.clear());
    assert!(text.contains("field      state.A.producers[0]\n  expected   nothing\n  actual     {"), "{text}");
}

#[test]
fn a_scenario_that_the_target_does_not_know_is_an_error() {
    let fails = |edit: &dyn Fn(&mut Trace)| {
        let mut trace = sample("negate-once-chain");
        edit(&mut trace);
        replay(&trace, None, &mut InProcess::default()).unwrap_err().to_string()
    };
    let axis = |key: &str, value: &str| fails(&|t| drop(t.scenario.axes.insert(key.to_owned(), value.to_owned())));
    assert_eq!(
        axis("pid-mapping", "double"),
        "target impl: axis `pid-mapping`: expected one of none, negate, negate-once, found \"double\""
    );
    assert!(axis("applied-by", "leader,nobody").contains("expected one of all, none, leader, follower, reload, segment-recovery"));
    assert!(axis("colour", "red").contains("unknown axis \"colour\": expected one of "));
    let missing = fails(&|t| drop(t.scenario.axes.remove("timing")));
    assert!(missing.contains("axis `timing` is missing: expected one of analysis, position"), "{missing}");
}

#[test]
fn operations_that_make_no_sense_are_errors_and_no_panics() {
    let fails = |op: &str| {
        let mut trace = sample("raw-barrier-stop");
        trace.steps.truncate(2);
        let ops = format!("[{op}]");
        trace.steps[1].ops = serde_json::from_str(&ops).unwrap();
        trace.steps[1].state.clear();
        let trace = parse_trace("t.json", trace_to_string(&trace).as_bytes()).unwrap();
        replay(&trace, None, &mut InProcess::default())
    };
    for op in [
        r#"{"op": "recover", "replica": "A", "clean": false}"#,
        r#"{"op": "mirror", "replica": "B", "from": "A", "offset": 1, "batches": 1, "expect": {"error": "X"}}"#,
        r#"{"op": "mirror", "replica": "B", "from": "A", "offset": 0, "batches": 9, "expect": {"error": "X"}}"#,
        r#"{"op": "crash", "replica": "A"}, {"op": "crash", "replica": "A"}"#,
        r#"{"op": "crash", "replica": "A"}, {"op": "truncate", "replica": "A", "offset": 0}"#,
        r#"{"op": "crash", "replica": "A"}, {"op": "mirror", "replica": "B", "from": "A", "offset": 0, "batches": 1, "expect": {"error": "X"}}"#,
    ] {
        let error = fails(op).map(|r| format!("{:?}", r.divergence)).unwrap_err().to_string();
        assert!(error.contains("step 2"), "{op}: {error}");
    }
    // Numbers at the edge of their types go through.
    for op in [
        r#"{"op": "truncate", "replica": "A", "offset": 9223372036854775807}"#,
        r#"{"op": "high-watermark", "replica": "A", "offset": 9223372036854775807}"#,
        r#"{"op": "last-mirrored-offset", "replica": "A", "offset": 9223372036854775807}"#,
    ] {
        let _ = fails(op);
    }
}

/// What came back from operations that are done to a fresh partition pair instead of the sample's second step.
fn answers(ops: &str) -> Vec<Option<Expect>> {
    let mut trace = sample("raw-barrier-stop");
    trace.steps.truncate(2);
    trace.steps[1].ops = serde_json::from_str(&format!("[{ops}]")).unwrap();
    let recorded = record(&trace, &mut InProcess::default()).unwrap();
    let expects = recorded.steps[1].ops.iter().map(|op| match op {
        Op::Append { expect, .. } | Op::Mirror { expect, .. } => Some(expect.clone()),
        _ => None,
    });
    expects.collect()
}

#[test]
fn the_gate_of_a_mirror_is_part_of_the_target() {
    let append = |producer_id: i64, control: &str, origin: &str| {
        format!(
            r#"{{"op": "append", "replica": "B", "origin": "{origin}", "by": null, "expect": {{"error": "X"}}, "batch": {{"producer_id": {producer_id},
               "producer_epoch": 0, "base_sequence": -1, "records": 1, "transactional": {}, "control": {control}}}}}"#,
            producer_id >= 0
        )
    };
    let (barrier, abort) =
        (r#"{"type": "MIRROR_PID_RESET", "source_cluster": "A"}"#, r#"{"type": "ABORT", "coordinator_epoch": 0}"#);
    let commit = r#"{"type": "COMMIT", "coordinator_epoch": 0}"#;
    let stopping = r#"{"op": "mirror-state", "replica": "B", "to": "STOPPING"}"#;
    let mirror = r#"{"op": "mirror", "replica": "B", "from": "A", "offset": 0, "batches": 1, "expect": {"error": "X"}}"#;
    let read_only = Some(Expect::Error("ReadOnlyTopicException".to_owned()));
    let got = answers(&[append(-1, barrier, "coordinator"), append(5, abort, "coordinator")].join(","));
    assert_eq!(got, [read_only.clone(), read_only.clone()], "a mirror is read-only");
    let ops = [
        stopping.to_owned(),
        append(5, commit, "coordinator"),
        append(5, abort, "coordinator"),
        append(-1, barrier, "coordinator"),
    ];
    let got = answers(&ops.join(","));
    assert_eq!(got[1], read_only, "nothing but what a stop writes");
    assert!(matches!((&got[2], &got[3]), (Some(Expect::Appended { .. }), Some(Expect::Appended { .. }))), "{got:?}");
    let got = answers(&format!("{stopping},{mirror}"));
    assert_eq!(got[1], Some(Expect::Error("IllegalStateException".to_owned())), "the fetcher is gone");
}

#[test]
fn a_turn_that_no_mirror_takes_is_a_divergence() {
    let mut trace = sample("raw-barrier-stop");
    trace.steps[3].ops = vec![Op::MirrorState { replica: "B".to_owned(), to: MirrorState::Stopped, source: None }];
    let text = divergence(&trace);
    assert!(text.contains("mirror-state B to STOPPED"), "{text}");
    assert!(text.contains("expected   done\n  actual     {\"error\":\"IllegalStateException\"}"), "{text}");
}
