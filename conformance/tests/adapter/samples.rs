//! One message of each kind.

use cleanslate_conformance::adapter::message::{Cut, HighWatermarkRule, Isolation, Origin};
use cleanslate_conformance::adapter::{Config, Hex, Operation};
use serde_json::{Value, json};

/// Each operation, with values in all fields.
pub(crate) fn operations() -> Vec<Operation> {
    let log = || "a.B-1_".to_owned();
    vec![
        Operation::Hello { protocol: 1, runner: "cleanslate 0.1.0".to_owned() },
        Operation::Create { log: log(), now_ms: 1_700_000_000_000, config: config() },
        Operation::AppendLeader {
            log: log(),
            batch: Hex(vec![0, 1, 0xab, 0xff]),
            origin: Origin::Coordinator,
            leader_epoch: 3,
            transaction_version: -1,
            guard: 2,
        },
        Operation::AppendFollower { log: log(), batches: Hex(vec![]), leader_epoch: 0 },
        Operation::Read { log: log(), offset: 0, max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: false },
        Operation::Truncate { log: log(), offset: i64::MAX },
        Operation::TruncateFully { log: log(), offset: 5 },
        Operation::HighWatermark { log: log(), offset: 5, rule: HighWatermarkRule::Follower },
        Operation::LogStart { log: log(), offset: 5 },
        Operation::BecomeLeader { log: log(), leader_epoch: 5 },
        Operation::EndOffsetForEpoch { log: log(), leader_epoch: 5 },
        Operation::Roll { log: log() },
        Operation::Flush { log: log() },
        Operation::Snapshot { log: log() },
        Operation::DeleteSnapshots { log: log(), before: 9 },
        Operation::Expire { log: log(), now_ms: 9 },
        Operation::Retention { log: log() },
        Operation::Compact { log: log(), first_dirty: 0, first_uncleanable: 4, now_ms: 9 },
        Operation::StartVerification { log: log(), producer_id: 7, producer_epoch: 0, sequence: -1, epoch_bump: true },
        Operation::SetTime { log: log(), now_ms: 9 },
        Operation::RunTasks { log: log() },
        Operation::Close { log: log() },
        Operation::Crash {
            log: log(),
            cuts: vec![Cut { file: "00000000000000000000.log".to_owned(), bytes: 7 }],
            lost: vec!["*.snapshot".to_owned(), "leader-epoch-checkpoint".to_owned()],
        },
        Operation::Open { log: log(), clean: true, recovery_point: 2, log_start: 1, now_ms: Some(4) },
        Operation::State { log: log() },
        Operation::Files { log: log(), content: true },
        Operation::PutFile { log: log(), file: "00000000000000000004.snapshot".to_owned(), content: Hex(vec![1]) },
        Operation::Drop { log: log() },
        Operation::Reset {},
        Operation::Bye {},
    ]
}

/// The same with other choices, and with little in the fields.
pub(crate) fn more_operations() -> Vec<Operation> {
    let log = || "a".to_owned();
    let read = |isolation| Operation::Read { log: log(), offset: 0, max_bytes: 0, isolation, min_one_message: true };
    let append = |origin| Operation::AppendLeader {
        log: log(),
        batch: Hex::default(),
        origin,
        leader_epoch: 0,
        transaction_version: 0,
        guard: 0,
    };
    vec![
        Operation::Create { log: log(), now_ms: 0, config: Config::default() },
        Operation::Crash { log: log(), cuts: vec![], lost: vec![] },
        Operation::Open { log: log(), clean: false, recovery_point: 0, log_start: 0, now_ms: None },
        read(Isolation::HighWatermark),
        read(Isolation::Committed),
        append(Origin::Client),
        append(Origin::Replication),
        Operation::HighWatermark { log: log(), offset: 0, rule: HighWatermarkRule::Set },
        Operation::HighWatermark { log: log(), offset: 0, rule: HighWatermarkRule::Leader },
    ]
}

fn config() -> Config {
    Config {
        segment_bytes: Some(1),
        segment_ms: Some(1),
        index_bytes: Some(4),
        index_interval_bytes: Some(0),
        max_message_bytes: Some(1),
        producer_expiration_ms: Some(1),
        max_transaction_timeout_ms: Some(1),
        verification: Some(true),
        cleanup_policy: Some("compact,delete".to_owned()),
        delete_retention_ms: Some(0),
        retention_ms: Some(-1),
        retention_bytes: Some(-1),
        timestamp_type: Some("LogAppendTime".to_owned()),
    }
}

/// A state, of an adapter with all features or with none.
pub(crate) fn state(with_features: bool) -> Value {
    let producer = json!({
        "producer_id": 7, "producer_epoch": -1, "coordinator_epoch": -1, "last_timestamp": -1, "txn_first_offset": null,
        "batches": [{"base_sequence": 0, "last_sequence": 1, "base_offset": 4, "last_offset": 5, "timestamp": 1_700_000_000_000_i64}],
    });
    let mut state = json!({
        "log_start_offset": 1, "log_end_offset": 9, "high_watermark": 8, "last_stable_offset": 4, "first_unstable_offset": 4,
        "recovery_point": 0, "map_end_offset": 9, "producers": [producer],
        "ongoing_transactions": [{"producer_id": 7, "first_offset": 4, "last_offset": null}],
        "unreplicated_transactions": [{"producer_id": 8, "first_offset": 4, "last_offset": 8}],
        "verification": null, "snapshots": null, "leader_epochs": null, "aborted_transactions": null, "segments": null,
    });
    if with_features {
        state["verification"] =
            json!([{"producer_id": 7, "producer_epoch": 1, "lowest_sequence": -1, "epoch_bump": false, "guard": 1}]);
        state["snapshots"] = json!([{"offset": 4, "producers": [producer]}, {"offset": 6, "producers": null}]);
        state["leader_epochs"] = json!([{"epoch": 0, "start_offset": 0}]);
        state["aborted_transactions"] = json!([{"producer_id": 7, "first_offset": 1, "last_offset": 2, "last_stable_offset": 3}]);
        state["segments"] = json!([{"base_offset": 0, "size": 512}]);
    }
    state
}

/// Each kind of reply, and each outcome of an append.
pub(crate) fn replies() -> Vec<Value> {
    let hello = json!({
        "protocol": 1, "name": "toy", "version": "0.1", "build": "abc", "operations": ["hello", "bye"], "features": ["segments"],
    });
    let files = json!({"files": [{"name": "x.log", "size": 1, "sha256": "0a".repeat(32), "content": "00"}]});
    let mut answers = vec![
        ("hello", hello),
        ("append-leader", json!({"outcome": "appended", "base_offset": 4, "last_offset": 5})),
        ("append-leader", json!({"outcome": "duplicate", "base_offset": 4, "last_offset": 5})),
        ("append-follower", json!({"outcome": "nothing"})),
        ("read", json!({"records": "00ff", "aborted": [{"producer_id": 7, "first_offset": 4}]})),
        ("read", json!({"records": "", "aborted": null})),
        ("truncate", json!({"changed": true})),
        ("log-start", json!({"changed": false})),
        ("high-watermark", json!({"high_watermark": 4})),
        ("end-offset-for-epoch", json!({"leader_epoch": 1, "end_offset": 4})),
        ("end-offset-for-epoch", json!({"leader_epoch": null, "end_offset": null})),
        ("roll", json!({"base_offset": 4})),
        ("snapshot", json!({"latest": 4})),
        ("retention", json!({"segments": 4})),
        ("compact", json!({"next_dirty": 4})),
        ("start-verification", json!({"guard": 4})),
        ("run-tasks", json!({"tasks": ["delete-file"]})),
        ("files", files),
    ];
    for operation in [
        "create",
        "truncate-fully",
        "become-leader",
        "flush",
        "delete-snapshots",
        "expire",
        "set-time",
        "close",
        "crash",
        "open",
        "state",
        "put-file",
        "drop",
        "reset",
        "bye",
    ] {
        answers.push((operation, json!({})));
    }
    let reply = |(n, (operation, ok)): (usize, (&str, Value))| json!({"id": n, "op": operation, "ok": ok});
    let mut replies: Vec<Value> = answers.into_iter().enumerate().map(reply).collect();
    let error = |kind: &str, name: &str| json!({"kind": kind, "name": name, "message": "two\nlines"});
    replies.push(json!({"id": 1, "op": "create", "error": error("exception", "OutOfOrderSequenceException")}));
    replies.push(json!({"id": null, "op": null, "error": error("protocol", "malformed")}));
    replies.push(json!({"id": 1, "op": "state", "error": error("internal", "any word"), "state": state(false)}));
    replies.push(json!({"id": 1, "op": "state", "ok": {}, "state": state(true)}));
    replies
}
