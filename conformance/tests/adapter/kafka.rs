//! The adapter around Apache Kafka's own classes, where it can be built: a short conversation, each line of which is meant.

use std::process::Command;
use std::time::Duration;

use cleanslate_conformance::adapter::message::{HighWatermarkRule, Isolation, Origin};
use cleanslate_conformance::adapter::reply::Append;
use cleanslate_conformance::adapter::{Adapter, Answer, Config, FailureKind, Hex, Launch, Operation, State};

/// For the start of a Java machine on a busy computer.
const TIME_OUT: Duration = Duration::from_secs(120);

/// The command of the adapter; none, and a line that says why, where it cannot be built.
fn command() -> Option<String> {
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

/// The longer vector of `wire-format.md`.
fn barrier() -> Hex {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../specs/wire-format.md")).unwrap();
    let line = text.lines().skip_while(|l| !l.contains("98 bytes")).nth(1).unwrap();
    serde_json::from_value(serde_json::Value::from(line)).unwrap()
}

fn call(adapter: &mut Adapter, operation: &Operation) -> (Answer, Option<State>) {
    let reply = adapter.call(operation, true).unwrap();
    (reply.outcome.unwrap_or_else(|failure| panic!("{operation:?}: {failure:?}")), reply.state)
}

#[test]
fn a_batch_survives_a_crash() {
    let Some(command) = command() else { return };
    let mut adapter = Adapter::start(&Launch::parse(&command, TIME_OUT).unwrap()).unwrap();
    assert_eq!(adapter.greeting().name, "apache-kafka");
    let log = || "A".to_owned();
    let now_ms = 1_700_000_000_000;
    let (_, state) = call(&mut adapter, &Operation::Create { log: log(), now_ms, config: Config::default() });
    assert_eq!(state.unwrap().log_end_offset, 0);
    let append = Operation::AppendLeader {
        log: log(),
        batch: barrier(),
        origin: Origin::Coordinator,
        leader_epoch: 5,
        transaction_version: 0,
        guard: 0,
    };
    let (answer, state) = call(&mut adapter, &append);
    assert_eq!(answer, Answer::Append(Append::Appended { base_offset: 0, last_offset: 0 }));
    let state = state.unwrap();
    assert_eq!((state.log_end_offset, state.high_watermark, state.producers.len()), (1, 0, 0));
    let set = Operation::HighWatermark { log: log(), offset: 1, rule: HighWatermarkRule::Set };
    assert_eq!(call(&mut adapter, &set).1.unwrap().high_watermark, 1);
    let (_, state) = call(&mut adapter, &Operation::Crash { log: log(), cuts: Vec::new(), lost: Vec::new() });
    assert_eq!(state, None);
    let failure = adapter.call(&Operation::State { log: log() }, false).unwrap().outcome.unwrap_err();
    assert_eq!((failure.kind, failure.name.as_str()), (FailureKind::Protocol, "log-closed"));
    let open = Operation::Open { log: log(), clean: false, recovery_point: 0, log_start: 0, now_ms: None };
    let state = call(&mut adapter, &open).1.unwrap();
    assert_eq!((state.log_end_offset, state.high_watermark), (1, 0));
    let read = Operation::Read { log: log(), offset: 0, max_bytes: 1000, isolation: Isolation::LogEnd, min_one_message: true };
    let (Answer::Read(read), _) = call(&mut adapter, &read) else { panic!("another answer") };
    // The leader has given it another offset, and nothing else.
    assert_eq!((&read.records.0[..8], &read.records.0[8..]), (&[0; 8][..], &barrier().0[8..]));
    adapter.finish().unwrap();
}
