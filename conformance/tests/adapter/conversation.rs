//! The conversation: requests ahead of replies, errors that stay, requests that are not sent.

use cleanslate_conformance::adapter::message::Origin;
use cleanslate_conformance::adapter::{Adapter, AdapterError, Hex, Operation, Trouble};

use crate::samples::state;
use crate::toy::{PATIENT, create, greeted, reset, told, toy};

fn append(bytes: usize) -> Operation {
    let batch = Hex(vec![7; bytes]);
    Operation::AppendLeader {
        log: "A".to_owned(),
        batch,
        origin: Origin::Client,
        leader_epoch: 0,
        transaction_version: 0,
        guard: 0,
    }
}

#[test]
fn greeting() {
    let adapter = Adapter::start(&toy(r#"greet '"segments","virtual-time"'; bye"#, PATIENT)).unwrap();
    assert_eq!((adapter.greeting().name.as_str(), adapter.greeting().version.as_str()), ("toy", "0.1"));
    let abilities = adapter.abilities();
    assert!(abilities.knows("create") && !abilities.knows("roll"));
    assert!(abilities.has("segments") && !abilities.has("snapshots"));
    adapter.finish().unwrap();
}

#[test]
fn requests_run_ahead_of_replies() {
    // The toy does not answer before it has all hundred.
    let mut adapter =
        greeted("while [ $id -lt 101 ]; do next; done; id=1; while [ $id -lt 101 ]; do id=$((id + 1)); tell $id; done; bye");
    for _ in 0..100 {
        adapter.send(&reset(), false).unwrap();
    }
    for n in 2..102 {
        assert_eq!(told(adapter.receive().unwrap().unwrap()), n.to_string());
    }
    assert_eq!(adapter.receive().unwrap(), None);
    adapter.finish().unwrap();
}

#[test]
fn neither_side_waits_for_the_other_when_all_pipes_are_full() {
    let script = format!(
        "n=0; while [ $n -lt 400 ]; do n=$((n + 1)); next; reply state '\"ok\":{{}},\"state\":{}'; done; bye",
        state(false)
    );
    let mut adapter = greeted(&script);
    let log = "A".repeat(600);
    for _ in 0..400 {
        adapter.send(&Operation::State { log: log.clone() }, false).unwrap();
    }
    for _ in 0..400 {
        assert!(adapter.receive().unwrap().unwrap().state.is_some());
    }
    adapter.finish().unwrap();
}

#[test]
fn replies_that_are_not_received_are_skipped() {
    let mut adapter = greeted("next; tell a; next; tell b; next; tell c; bye");
    adapter.send(&reset(), false).unwrap();
    adapter.send(&reset(), false).unwrap();
    assert_eq!(told(adapter.call(&reset(), false).unwrap()), "c");
    adapter.finish().unwrap();
    let mut adapter = greeted("next; tell a; bye");
    adapter.send(&reset(), false).unwrap();
    adapter.finish().unwrap();
}

#[test]
fn state_is_asked_of_operations_on_a_log_only() {
    let script = "next; tell \"$(printf '%s' \"$line\" | tr -d '\"')\"; bye";
    let mut adapter = greeted(script);
    assert_eq!(told(adapter.call(&reset(), true).unwrap()), "{id:2,op:reset}");
    adapter.finish().unwrap();
}

#[test]
fn errors_of_the_implementation_are_replies() {
    let failure = r#""error":{"kind":"exception","name":"OutOfOrderSequenceException","message":"two\nlines"}"#;
    let mut adapter =
        greeted(&format!("next; cat <<'END'\n{{\"id\":2,\"op\":\"create\",{failure},\"state\":{}}}\nEND\nbye", state(false)));
    let reply = adapter.call(&create(), true).unwrap();
    assert_eq!(reply.outcome.unwrap_err().name, "OutOfOrderSequenceException");
    assert!(reply.state.is_some());
    adapter.finish().unwrap();
}

#[test]
fn what_cannot_be_sent_leaves_the_adapter_alive() {
    let mut adapter = greeted("next; tell $id; bye");
    let error = adapter.send(&Operation::Roll { log: "A".to_owned() }, false).unwrap_err();
    assert_eq!(error, AdapterError::new(Trouble::NotListed("the operation roll".to_owned())));
    let error = adapter.send(&append(9 << 20), false).unwrap_err();
    assert!(matches!(*error.trouble, Trouble::LongRequest { bytes } if bytes > 18 << 20), "{error:?}");
    assert_eq!(adapter.receive().unwrap(), None);
    assert_eq!(told(adapter.call(&reset(), false).unwrap()), "2");
    adapter.finish().unwrap();
}

#[test]
fn a_dead_adapter_stays_dead() {
    let mut adapter = greeted("next; echo 'it hurts' >&2; say nonsense; while_it_runs");
    let error = adapter.call(&create(), false).unwrap_err();
    assert!(matches!(*error.trouble, Trouble::Garbage { .. }), "{error:?}");
    assert_eq!(error.stderr, ["it hurts"]);
    assert_eq!(adapter.send(&create(), false).unwrap_err(), error);
    assert_eq!(adapter.receive().unwrap_err(), error);
    assert_eq!(adapter.call(&reset(), true).unwrap_err(), error);
    assert_eq!(adapter.send(&Operation::Roll { log: "A".to_owned() }, false).unwrap_err(), error);
    assert_eq!(adapter.finish().unwrap_err(), error);
}
