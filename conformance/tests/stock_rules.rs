//! Traces on implementations that have the rules of stock Kafka only: what is skipped, and that nothing else is. The last test runs Kafka's own
//! classes, where the adapter can be built.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cleanslate_conformance::adapter::{Adapter, Launch};
use cleanslate_conformance::conform::stock::{StockReplay, replay_with_stock_rules};
use cleanslate_conformance::conform::{Conformance, Outcome, read_traces};
use cleanslate_conformance::target::in_process::{InProcess, StockRules};
use cleanslate_conformance::target::over_adapter::OverAdapter;
use cleanslate_conformance::trace::format::{MirrorState, Trace};
use cleanslate_conformance::trace::read::read_trace;
use cleanslate_conformance::witness::Judgement;

const BOTH: StockRules = StockRules { barriers: true, ids: true };

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn sample(name: &str) -> Trace {
    read_trace(&data().join(format!("{name}.json"))).unwrap()
}

fn run(trace: &Trace, stock: StockRules) -> StockReplay {
    replay_with_stock_rules(trace, None, &mut InProcess::under(stock)).unwrap()
}

/// Of each sample, the steps that agree under stock rules, and the rule that the next one needs.
const SAMPLES: [(&str, usize, Option<&str>); 7] = [
    ("negate-once-chain", 1, Some("producer entries of negative ids (psm-ids=mapped)")),
    ("raw-barrier-failback", 3, Some("a barrier that clears producer entries (clears=all)")),
    ("raw-barrier-follower", 3, Some("a barrier that clears producer entries (clears=all)")),
    ("raw-barrier-stop", 5, Some("a barrier that clears producer entries (clears=all)")),
    ("raw-false-duplicate", 6, None),
    ("raw-false-rejection", 4, None),
    ("raw-foreign-marker", 5, None),
];

#[test]
fn a_step_that_needs_another_rule_is_skipped_with_all_that_follows() {
    for (name, agreed, needs) in SAMPLES {
        let replay = run(&sample(name), BOTH);
        assert_eq!((replay.report.steps_agreed, replay.needs.as_deref()), (agreed, needs), "{name}");
        assert_eq!(matches!(replay.report.judgement, Some(Judgement::Seen(_))), name.starts_with("raw-f"), "{name}");
    }
    let why = run(&sample("raw-barrier-stop"), BOTH).skipped().unwrap();
    assert!(
        why.starts_with(
            "step 6 needs a barrier that clears producer entries (clears=all), which impl does not have; the 5 before it"
        ),
        "{why}"
    );
}

#[test]
fn a_target_that_has_the_rule_runs_the_whole_trace() {
    for (name, _, _) in SAMPLES {
        let replay = run(&sample(name), StockRules::default());
        assert!(replay.needs.is_none() && replay.report.succeeded(), "{name}");
    }
    // Only the one rule is missing, and the trace needs the other.
    assert!(run(&sample("raw-barrier-stop"), StockRules { barriers: false, ids: true }).report.succeeded());
}

#[test]
fn a_wrong_step_is_never_skipped() {
    let wrong_before = |name: &str, step: usize| {
        let mut trace = sample(name);
        trace.steps[step - 1].state.values_mut().next().unwrap().mirror_state = MirrorState::Failed;
        let replay = run(&trace, BOTH);
        assert_eq!((replay.report.divergence.unwrap().step as usize, replay.needs), (step, None), "{name}");
    };
    wrong_before("raw-barrier-stop", 3);
    wrong_before("raw-false-duplicate", 2);
    // A target that misses another rule than the one that the step needs is wrong, even where it parts in that step.
    let mut both = sample("negate-once-chain");
    both.scenario.axes.insert("psm-ids".to_owned(), "stock".to_owned());
    assert!(run(&both, BOTH).needs.is_none());
}

/// The command of the adapter around Kafka's classes; none, and a line that says why, where it cannot be built.
fn kafka() -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/kafka-adapter");
    let output = Command::new(script).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        println!("skipped: {}", stderr.lines().last().unwrap_or("the adapter cannot be built"));
        return None;
    }
    assert!(output.status.success(), "{script}: {}: {stderr}", output.status);
    Some(String::from_utf8(output.stdout).unwrap().lines().last().unwrap().to_owned())
}

#[test]
fn kafkas_classes_corrupt_in_the_same_step() {
    let Some(command) = kafka() else { return };
    let mut adapter = Adapter::start(&Launch::parse(&command, Duration::from_secs(120)).unwrap()).unwrap();
    let mut conformance = Conformance::default();
    conformance.traces(&read_traces(&data()).unwrap(), &mut OverAdapter::new(&mut adapter, "kafka"), true, 2);
    adapter.finish().unwrap();
    let said: Vec<String> = conformance
        .cases
        .iter()
        .map(|case| match &case.outcome {
            Outcome::Passed(seen) => seen.clone().unwrap_or_default(),
            Outcome::Failed(why) => format!("failed: {why}"),
            Outcome::Skipped(why) => why.split(';').next().unwrap().to_owned(),
        })
        .collect();
    let skipped = |step: u32, rule: &str| format!("step {step} needs {rule}, which kafka does not have");
    let clears = "a barrier that clears producer entries (clears=all)";
    assert_eq!(
        said,
        [
            skipped(2, "producer entries of negative ids (psm-ids=mapped)"),
            skipped(4, clears),
            skipped(4, clears),
            skipped(6, clears),
            "step 6: B took a batch of b1 for a duplicate of the batch of a1 at offset 0; it was dropped".to_owned(),
            "step 4: B refused an honest append of b1 with OutOfOrderSequenceException: the entry for id 5 was last written by a1"
                .to_owned(),
            "step 5: on B the marker of b1 at offset 1 ended the transaction that a1 began at offset 0".to_owned(),
        ]
    );
}
