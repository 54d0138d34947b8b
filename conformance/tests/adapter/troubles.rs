//! What the runner does about a bad adapter: one test for each way to be bad. See the section of that name in `adapter-protocol.md`.

use std::time::Duration;

use cleanslate_conformance::adapter::message::MAX_LINE_BYTES;
use cleanslate_conformance::adapter::{Adapter, AdapterError, Launch, Operation, Trouble};

use crate::samples::state;
use crate::toy::{PATIENT, SOON, assert_one_line, create, greeted, toy, trouble, trouble_of};

fn assert_garbage(error: &AdapterError, reason: &str) {
    assert!(matches!(&*error.trouble, Trouble::Garbage { why, .. } if why.contains(reason)), "{error:?}");
}

#[test]
fn no_reply_in_time() {
    let error = trouble_of(&toy("exec sleep 600", Duration::from_millis(300)));
    assert_eq!(*error.trouble, Trouble::TimeOut { operation: "hello", id: 1, within: Duration::from_millis(300) });
    let error = trouble_of(&toy("greet; exec sleep 600", SOON));
    assert_eq!(*error.trouble, Trouble::TimeOut { operation: "create", id: 2, within: SOON });
    assert_eq!(error.exit, None);
}

#[test]
fn a_line_that_never_ends() {
    let error = trouble_of(&toy(r#"greet; next; printf '{"id":2'; exec sleep 600"#, SOON));
    assert!(matches!(*error.trouble, Trouble::TimeOut { operation: "create", .. }), "{error:?}");
}

#[test]
fn end_of_output() {
    let error = trouble("greet; next; exit 0");
    assert_eq!(*error.trouble, Trouble::Ended { operation: "create", id: 2 });
    assert_eq!(error.exit.as_deref(), Some("it ended with exit status: 0"));
    let error = trouble("greet; next; kill -9 $$");
    assert_eq!(*error.trouble, Trouble::Ended { operation: "create", id: 2 });
    assert!(error.exit.as_ref().is_some_and(|exit| exit.contains("signal: 9")), "{error:?}");
}

#[test]
fn closed_output_of_a_process_that_goes_on() {
    let error = trouble("greet; next; exec sleep 600 >&-");
    assert_eq!(*error.trouble, Trouble::Ended { operation: "create", id: 2 });
    assert_eq!(error.exit, None);
}

#[test]
fn cut_line() {
    let error = trouble(r#"greet; next; printf '{"id":2,"op":"create","ok":{}}'"#);
    assert!(matches!(&*error.trouble, Trouble::CutLine { excerpt } if excerpt.contains("create")), "{error:?}");
}

#[test]
fn line_too_long() {
    let error = trouble(r"greet; next; head -c 17000000 /dev/zero | tr '\0' a");
    let Trouble::LongLine { limit, excerpt } = &*error.trouble else { panic!("{error:?}") };
    assert_eq!(*limit, MAX_LINE_BYTES);
    assert!(excerpt.starts_with("\"aaaa") && excerpt.ends_with("...") && excerpt.len() < 200, "{excerpt}");
    assert!(matches!(*trouble(&padded(1)).trouble, Trouble::LongLine { .. }));
}

#[test]
fn line_as_long_as_it_may_be() {
    let mut adapter = Adapter::start(&toy(&padded(0), PATIENT)).unwrap();
    adapter.call(&create(), false).unwrap().outcome.unwrap();
    adapter.finish().unwrap();
}

/// A toy whose reply to `create` is longer than the longest line by so many bytes.
fn padded(more: usize) -> String {
    let start = r#"{"id":2,"op":"create","ok":{}"#;
    let blanks = MAX_LINE_BYTES - start.len() - 1 + more;
    format!(r"greet; next; printf '%s' '{start}'; head -c {blanks} /dev/zero | tr '\0' ' '; say '}}'; bye")
}

#[test]
fn not_json() {
    assert_garbage(&trouble("greet; next; say 'Picked up JAVA_TOOL_OPTIONS'"), "expected value");
    assert_garbage(&trouble("greet; next; say ''"), "EOF");
    assert_garbage(&trouble(r"greet; next; printf '\377\376\n'"), "utf-8");
    assert_garbage(&trouble(r#"greet; next; say '{"id":2,"op":"create","ok":{}} {}'"#), "trailing");
}

#[test]
fn not_a_reply() {
    for (line, reason) in [
        ("[]", "an object"),
        (r#"[2,"create",{}]"#, "an object"),
        ("7", "an object"),
        (r#"{"id":2,"op":"create"}"#, "either ok or error"),
        (r#"{"id":2,"op":"create","ok":null}"#, "an object"),
        (r#"{"id":2,"op":"create","ok":[]}"#, "an object"),
        (r#"{"id":2,"op":"create","ok":{"done":true}}"#, "unknown field"),
        (r#"{"id":2,"op":"create","ok":{},"time":1}"#, "unknown field"),
        (r#"{"id":2,"id":2,"op":"create","ok":{}}"#, "duplicate field"),
        (r#"{"id":2.0,"op":"create","ok":{}}"#, "floating point"),
        (r#"{"op":"create","ok":{}}"#, "missing field"),
        (r#"{"id":2,"op":"create","error":{"kind":"protocol","name":"busy","message":""}}"#, "no error"),
        (r#"{"id":2,"op":"create","error":{"kind":"panic","name":"x","message":""}}"#, "unknown variant"),
    ] {
        let error = trouble(&format!("greet; next; say '{line}'"));
        assert_garbage(&error, reason);
    }
}

#[test]
fn a_reply_that_tries_to_spoil_the_diagnosis() {
    let long = "y".repeat(5000);
    for line in [
        r#"{"a\nb\u001b[31m":1}"#.to_owned(),
        format!(r#"{{"{long}":1}}"#),
        format!(r#"{{"id":2,"op":"create\n{long}","ok":{{}}}}"#),
        format!(r#"{{"id":2,"op":"create","error":{{"kind":"protocol","name":"{long}\n","message":""}}}}"#),
        format!(r#"{{"id":2,"op":"create","error":{{"kind":"{long}\n","name":"","message":""}}}}"#),
    ] {
        assert_one_line(&trouble(&format!("greet; next; cat <<'END'\n{line}\nEND")));
    }
    let error = trouble(
        r#"next; cat <<'END'
{"id":1,"op":"hello","error":{"kind":"internal","name":"a\nb","message":"c\nd"}}
END"#,
    );
    assert_eq!(*error.trouble, Trouble::Hello("a b: c d".to_owned()));
}

#[test]
fn reply_with_another_id_or_operation() {
    for (line, operation, id) in [
        (r#"{"id":3,"op":"create","ok":{}}"#, "create", "3"),
        (r#"{"id":1,"op":"create","ok":{}}"#, "create", "1"),
        (r#"{"id":2,"op":"truncate","ok":{"changed":true}}"#, "truncate", "2"),
        (r#"{"id":null,"op":null,"error":{"kind":"protocol","name":"malformed","message":"too long"}}"#, "null", "null"),
    ] {
        let error = trouble(&format!("greet; next; say '{line}'"));
        let Trouble::WrongReply { operation: due, id: 2, found_operation, found_id, excerpt } = &*error.trouble else {
            panic!("{error:?}")
        };
        assert_eq!((*due, found_operation.as_str(), found_id.as_str()), ("create", operation, id));
        assert!(excerpt.contains("op"), "{excerpt}");
    }
}

#[test]
fn both_ok_and_error() {
    let error = r#""error":{"kind":"internal","name":"x","message":""}"#;
    assert_garbage(&trouble(&format!("greet; next; reply create '\"ok\":{{}},{error}'")), "either ok or error");
}

#[test]
fn hello_of_another_protocol() {
    let error = trouble(r#"next; hello 2 "$required""#);
    assert_eq!(*error.trouble, Trouble::Hello("expected protocol 1, found 2".to_owned()));
    let refused = r#""error":{"kind":"protocol","name":"unsupported-protocol","message":"only 2"}"#;
    let error = trouble(&format!("next; reply hello '{refused}'"));
    assert_eq!(*error.trouble, Trouble::Hello("unsupported-protocol: only 2".to_owned()));
    let unknown = r#""error":{"kind":"protocol","name":"unknown-operation","message":"what?"}"#;
    let error = trouble(&format!("next; reply hello '{unknown}'"));
    assert_eq!(*error.trouble, Trouble::Hello("unknown-operation: what?".to_owned()));
}

#[test]
fn hello_without_a_required_operation() {
    let error = trouble(r#"next; hello 1 '"hello","create","bye"'"#);
    assert!(matches!(&*error.trouble, Trouble::Hello(why) if why.contains("append-leader")), "{error:?}");
}

#[test]
fn hello_with_a_feature_that_does_not_exist_or_twice() {
    assert_garbage(&trouble(r#"greet '"snapshot"'"#), "no feature \"snapshot\"");
    assert_garbage(&trouble(r#"greet '"segments","segments"'"#), "listed twice");
}

#[test]
fn program_that_does_not_exist() {
    let error = trouble_of(&Launch::parse("'/nowhere/an\nadapter' -v", PATIENT).unwrap());
    assert!(matches!(&*error.trouble, Trouble::Start { program, .. } if program == "/nowhere/an adapter"), "{error:?}");
    let error = trouble_of(&Launch { words: Vec::new(), time_out: PATIENT });
    assert!(matches!(*error.trouble, Trouble::Command { .. }), "{error:?}");
}

#[test]
fn program_that_exits_at_once() {
    let error = trouble("echo 'one line' >&2; echo 'cannot find the jar' >&2; exit 3");
    assert_eq!(*error.trouble, Trouble::Ended { operation: "hello", id: 1 });
    assert_eq!(error.stderr, ["one line", "cannot find the jar"]);
    let shown = "adapter: its output ended before the reply to hello (id 1); it ended with exit status: 3; \
                 last line of its stderr: cannot find the jar";
    assert_eq!(error.to_string(), shown);
}

#[test]
fn listed_operation_that_it_does_not_know() {
    let unknown = r#""error":{"kind":"protocol","name":"unknown-operation","message":"what?"}"#;
    let error = trouble(&format!("greet; next; reply create '{unknown}'"));
    let lie = Trouble::Lie { listed: "the operation create".to_owned(), found: "does not know it".to_owned() };
    assert_eq!(*error.trouble, lie);
}

#[test]
fn state_that_contradicts_the_features() {
    let with = state(true).to_string();
    let without = state(false).to_string();
    for (feature, shown) in [("", &with), (r#""snapshots""#, &without), (r#""segments","leader-epochs""#, &without)] {
        let script = format!("greet '{feature}'; next; reply state '\"ok\":{{}},\"state\":{shown}'");
        let mut adapter = Adapter::start(&toy(&script, PATIENT)).unwrap();
        let error = adapter.call(&Operation::State { log: "A".to_owned() }, false).unwrap_err();
        assert!(matches!(*error.trouble, Trouble::Lie { .. }), "{error:?}");
        assert_one_line(&error);
    }
}

#[test]
fn state_that_is_missing_or_not_asked_for() {
    let shown = state(false).to_string();
    assert_garbage(&trouble(&format!("greet; next; reply create '\"ok\":{{}},\"state\":{shown}'")), "nobody asked");
    let mut adapter = greeted("next; reply create '\"ok\":{}'");
    assert_garbage(&adapter.call(&create(), true).unwrap_err(), "missing");
}

#[test]
fn unasked_line_after_bye() {
    let error = trouble("greet; next; reply create '\"ok\":{}'; bye; say goodbye");
    assert_eq!(*error.trouble, Trouble::Unasked { excerpt: "\"goodbye\"".to_owned() });
}

#[test]
fn refused_bye() {
    let refusal = r#""error":{"kind":"internal","name":"no","message":"I stay"}"#;
    let error = trouble(&format!("greet; next; reply create '\"ok\":{{}}'; next; reply bye '{refusal}'"));
    assert_eq!(*error.trouble, Trouble::Bye("no: I stay".to_owned()));
}

#[test]
fn lingering_after_bye() {
    let error = trouble_of(&toy("greet; next; reply create '\"ok\":{}'; bye; exec sleep 600", SOON));
    assert_eq!(*error.trouble, Trouble::Lingers { within: SOON });
    assert_eq!(error.exit, None);
    let error = trouble_of(&toy("greet; next; reply create '\"ok\":{}'; bye; exec sleep 600 >&-", SOON));
    assert_eq!(*error.trouble, Trouble::Lingers { within: SOON });
}

#[test]
fn another_exit_status_after_bye() {
    let error = trouble("greet; next; reply create '\"ok\":{}'; bye; echo 'disk full' >&2; exit 4");
    assert!(matches!(*error.trouble, Trouble::Lingers { .. }), "{error:?}");
    assert_eq!(error.exit.as_deref(), Some("it ended with exit status: 4"));
    assert_eq!(error.stderr, ["disk full"]);
}
