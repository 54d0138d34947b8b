//! The schema and the reader agree on what a trace is.

use crate::common::{sample, sample_files};
use cleanslate_conformance::trace::read::{parse_trace, read_trace};
use cleanslate_conformance::trace::write::trace_to_string;
use serde_json::{Value, json};

fn schema() -> jsonschema::Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs/trace.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "the schema is a schema");
    jsonschema::draft202012::new(&schema).unwrap()
}

/// Every way to damage one node of a document: take it away, or put a value of another kind in its place.
fn damage(value: &Value, at: &str, out: &mut Vec<(String, Value)>, rebuild: &dyn Fn(Value) -> Value) {
    for other in [
        json!(null),
        json!(true),
        json!(-1),
        json!(4_294_967_296_u64),
        json!(0.5),
        json!("x y"),
        json!([]),
        json!({}),
        json!("\u{1b}"),
    ] {
        if other != *value {
            out.push((format!("{at} := {other}"), rebuild(other)));
        }
    }
    match value {
        Value::Object(map) => {
            let mut more = map.clone();
            more.insert("surplus".to_owned(), json!(1));
            out.push((format!("{at}.surplus"), rebuild(Value::Object(more))));
            for (key, child) in map {
                let mut less = map.clone();
                less.remove(key);
                out.push((format!("{at} without {key}"), rebuild(Value::Object(less))));
                let here = map.clone();
                damage(child, &format!("{at}.{key}"), out, &move |new| {
                    let mut changed = here.clone();
                    changed.insert(key.clone(), new);
                    rebuild(Value::Object(changed))
                });
            }
        }
        Value::Array(items) => {
            for (i, child) in items.iter().enumerate() {
                let here = items.clone();
                damage(child, &format!("{at}[{i}]"), out, &move |new| {
                    let mut changed = here.clone();
                    changed[i] = new;
                    rebuild(Value::Array(changed))
                });
            }
        }
        _ => {}
    }
}

/// Rules that a schema cannot state. A damaged trace that breaks one of them is refused by the reader only; see `trace-format.md`.
const BEYOND_THE_SCHEMA: [&str; 13] = [
    "expected a declared",
    "expected a unique name",
    "expected step number",
    "expected another",
    "expected the producer of a data batch",
    "expected none for a barrier",
    "expected 1 to 1 records",
    "and last_offset not below it",
    "in ascending order",
    "or more, found",
    "expected offset",
    "appended records in a trace",
    "duplicate field",
];

#[test]
fn samples_are_valid_in_both() {
    let schema = schema();
    for file in sample_files() {
        let trace = read_trace(&file).unwrap();
        let value: Value = serde_json::from_str(&trace_to_string(&trace)).unwrap();
        let errors: Vec<String> = schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", file.display());
    }
}

#[test]
fn damaged_samples_are_judged_alike() {
    let schema = schema();
    let (mut refused, mut accepted) = (0, 0);
    for (name, steps) in [("raw-false-duplicate", vec![2, 6]), ("raw-barrier-stop", vec![3, 6, 9, 10])] {
        let mut trace = sample(name);
        // One step of each kind and one state of a replica are enough, and keep this test short.
        trace.steps.retain(|s| steps.contains(&s.n));
        for (n, step) in (1..).zip(&mut trace.steps) {
            step.n = n;
            if n != 2 {
                step.state.clear();
            }
        }
        let value: Value = serde_json::from_str(&trace_to_string(&trace)).unwrap();
        let mut damaged = Vec::new();
        damage(&value, "trace", &mut damaged, &|v| v);
        for (what, value) in damaged {
            let read = parse_trace("t.json", value.to_string().as_bytes());
            let valid = schema.is_valid(&value);
            match read {
                Ok(_) => {
                    accepted += 1;
                    assert!(valid, "{name}: {what}: the reader accepts it, the schema does not");
                }
                Err(e) => {
                    refused += 1;
                    let e = e.to_string();
                    let beyond = BEYOND_THE_SCHEMA.iter().any(|rule| e.contains(rule));
                    assert!(!valid || beyond, "{name}: {what}: the schema accepts it, the reader does not: {e}");
                }
            }
        }
    }
    assert!(refused > 1000 && accepted > 100, "{refused} refused, {accepted} accepted");
}

#[test]
fn every_operation_is_in_the_schema() {
    let schema = schema();
    let mut value: Value = serde_json::from_str(&trace_to_string(&sample("raw-false-duplicate"))).unwrap();
    for op in [
        json!({"op": "truncate", "replica": "A", "offset": 0}),
        json!({"op": "last-mirrored-offset", "replica": "A", "offset": 0}),
        json!({"op": "mirror-state", "replica": "A", "to": "PAUSED", "source": "B"}),
        json!({"op": "learn-mirror-state", "replica": "A", "to": "STOPPED", "source": null}),
        json!({"op": "lead", "replica": "A"}),
        json!({"op": "roll", "replica": "A"}),
        json!({"op": "crash", "replica": "A"}),
        json!({"op": "recover", "replica": "A", "clean": true}),
    ] {
        value["steps"][0]["ops"] = json!([op]);
        assert!(schema.is_valid(&value), "{op}");
        parse_trace("t.json", value.to_string().as_bytes()).unwrap();
    }
}

#[test]
fn the_example_in_the_text_is_a_trace() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../specs/trace-format.md")).unwrap();
    let example = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let trace = parse_trace("trace-format.md", example.as_bytes()).unwrap();
    let value: Value = serde_json::from_str(&trace_to_string(&trace)).unwrap();
    assert!(schema().is_valid(&value));
}
