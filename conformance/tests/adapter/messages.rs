//! What is sent and what is understood, held against the schema and the text.

use std::collections::BTreeSet;

use cleanslate_conformance::adapter::message::{OPTIONAL, PROTOCOL, REQUIRED};
use cleanslate_conformance::adapter::{Adapter, CODES, FEATURES, Operation, ReplyLine};
use serde_json::{Value, json};

use crate::samples::{more_operations, operations, replies};
use crate::toy::{PATIENT, create, toy};

fn text(file: &str) -> String {
    std::fs::read_to_string(format!("{}/../specs/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(&text("adapter-protocol.schema.json")).unwrap()
}

/// The part of the schema for `request` or `reply`.
fn validator(part: &str) -> jsonschema::Validator {
    let mut schema = schema();
    assert!(jsonschema::meta::is_valid(&schema), "the schema is a schema");
    schema.as_object_mut().unwrap().remove("anyOf");
    schema["$ref"] = json!(format!("#/$defs/{part}"));
    jsonschema::draft202012::new(&schema).unwrap()
}

fn assert_valid(validator: &jsonschema::Validator, value: &Value) {
    let errors: Vec<String> = validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{value}: {errors:?}");
}

/// The operations in a part of the schema.
fn operations_of(part: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for kind in schema()["$defs"][part]["oneOf"].as_array().unwrap() {
        let op = &kind["properties"]["op"];
        names.extend(op["const"].as_str().map(str::to_owned));
        names.extend(op["enum"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()));
    }
    names
}

fn request(operation: &Operation, state: bool) -> Value {
    let line = operation.to_line(7, state).unwrap();
    let (end, line) = line.split_last().unwrap();
    assert!(*end == b'\n' && !line.contains(&b'\n'));
    serde_json::from_slice(line).unwrap()
}

#[test]
fn every_request_is_in_the_schema() {
    let validator = validator("request");
    let mut seen = BTreeSet::new();
    for operation in operations().iter().chain(&more_operations()) {
        for state in [false, true] {
            if state && !operation.is_on_a_log() {
                continue;
            }
            let value = request(operation, state);
            assert_valid(&validator, &value);
            assert_eq!(value["op"], operation.name());
            assert_eq!(value.get("state"), state.then_some(&json!(true)));
        }
        seen.insert(operation.name().to_owned());
    }
    assert_eq!(seen, operations_of("request"));
}

#[test]
fn only_operations_on_a_log_take_the_state() {
    let validator = validator("request");
    for operation in operations() {
        assert_eq!(validator.is_valid(&request(&operation, true)), operation.is_on_a_log(), "{}", operation.name());
    }
}

#[test]
fn every_reply_is_in_the_schema_and_understood() {
    let validator = validator("reply");
    let mut seen = BTreeSet::new();
    for value in replies() {
        assert_valid(&validator, &value);
        let line = value.to_string();
        let reply = ReplyLine::parse(line.as_bytes()).and_then(ReplyLine::read).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert_eq!(reply.outcome.is_ok(), value.get("ok").is_some());
        if let Some(state) = reply.state {
            assert_eq!(serde_json::to_value(state).unwrap(), value["state"]);
        }
        if value.get("ok").is_some() {
            seen.insert(value["op"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, operations_of("reply"));
    assert_eq!(seen, operations_of("request"));
}

/// Every way to damage one node of a document: take it away, put a value of another kind in its place, add one.
fn damaged(root: &Value) -> Vec<(String, Value)> {
    let mut paths = vec![String::new()];
    let mut out = Vec::new();
    while let Some(path) = paths.pop() {
        let node = root.pointer(&path).unwrap();
        let mut put = |what: &str, new: Value| {
            let mut changed = root.clone();
            *changed.pointer_mut(&path).unwrap() = new;
            out.push((format!("{path} {what}"), changed));
        };
        for other in [
            json!(null),
            json!(true),
            json!(-1),
            json!(-2),
            json!(40_000),
            json!(4_294_967_296_u64),
            json!(9_223_372_036_854_775_808_u64),
            json!(0.5),
            json!("x y"),
            json!("\u{1b}"),
            json!("abc"),
            json!("00AA"),
            json!([]),
            json!({}),
        ] {
            put(&format!(":= {other}"), other);
        }
        if let Value::Object(map) = node {
            let mut more = map.clone();
            more.insert("surplus".to_owned(), json!(1));
            put("and more", Value::Object(more));
            put("as an array", Value::Array(map.values().cloned().collect()));
            for key in map.keys() {
                let mut less = map.clone();
                less.remove(key);
                put(&format!("without {key}"), Value::Object(less));
                paths.push(format!("{path}/{key}"));
            }
        } else if let Value::Array(items) = node {
            put("twice", Value::Array(items.iter().chain(items).cloned().collect()));
            paths.extend((0..items.len()).map(|i| format!("{path}/{i}")));
        }
    }
    out
}

#[test]
fn damaged_replies_are_judged_alike() {
    let validator = validator("reply");
    let (mut refused, mut accepted) = (0, 0);
    for reply in replies() {
        for (what, value) in damaged(&reply) {
            // That an adapter speaks another protocol is found out after its greeting is read.
            if what.starts_with("/ok/protocol") {
                continue;
            }
            let line = value.to_string();
            let read = ReplyLine::parse(line.as_bytes()).and_then(ReplyLine::read);
            let valid = validator.is_valid(&value);
            assert_eq!(read.is_ok(), valid, "{reply}\n{what}: the schema says {valid}, the reader {read:?}");
            if valid { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(refused > 3000 && accepted > 200, "{refused} refused, {accepted} accepted");
}

#[test]
fn the_schema_knows_the_same_words() {
    let words = |value: &Value| -> BTreeSet<String> { serde_json::from_value(value.clone()).unwrap() };
    let own = |words: &[&str]| -> BTreeSet<String> { words.iter().map(|&word| word.to_owned()).collect() };
    let schema = schema();
    assert_eq!(words(&schema["$defs"]["feature"]["enum"]), own(&FEATURES));
    assert_eq!(words(&schema["$defs"]["error"]["oneOf"][1]["properties"]["name"]["enum"]), own(&CODES));
    assert_eq!(schema["$id"], format!("urn:cleanslate:adapter-protocol:{PROTOCOL}"));
}

#[test]
fn the_text_knows_the_same_words() {
    let text = text("adapter-protocol.md");
    let section = |name: &str| text.split(&format!("\n## {name}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
    let first_cells = |section: &str| -> Vec<String> {
        section.lines().filter_map(|l| l.strip_prefix("| ")?.split(" |").next().map(str::to_owned)).collect()
    };
    let mut listed = BTreeSet::new();
    let mut required = BTreeSet::new();
    for cell in first_cells(section("Operations")).iter().filter(|cell| cell.contains('`')) {
        let name = cell.trim_matches('*').trim_matches('`').to_owned();
        if cell.starts_with("**") {
            required.insert(name.clone());
        }
        listed.insert(name);
    }
    assert_eq!(listed, operations_of("request"));
    assert_eq!(listed, REQUIRED.iter().chain(&OPTIONAL).map(|&name| name.to_owned()).collect());
    assert_eq!(required, REQUIRED.iter().map(|&name| name.to_owned()).collect());
    for feature in FEATURES {
        assert!(section("Hello").contains(&format!("\n| `{feature}` | ")), "{feature}");
    }
    for code in CODES {
        assert!(section("Messages").contains(&format!("`{code}`")), "{code}");
    }
}

/// The example conversation of the text: what the runner says, and what the adapter says.
fn example() -> (Vec<String>, Vec<String>) {
    let text = text("adapter-protocol.md");
    let example = text.split("## Example\n").nth(1).unwrap().split("```").nth(1).unwrap().trim();
    let side = |mark| example.lines().filter_map(|line| line.strip_prefix(mark)).map(str::to_owned).collect();
    let sides: (Vec<String>, Vec<String>) = (side("> "), side("< "));
    assert_eq!(sides.0.len() + sides.1.len(), example.lines().count());
    sides
}

#[test]
fn the_example_is_valid() {
    let (requests, replies) = example();
    let whole = jsonschema::draft202012::new(&schema()).unwrap();
    for (part, lines) in [("request", &requests), ("reply", &replies)] {
        let validator = validator(part);
        assert_eq!(lines.len(), 5);
        for line in lines {
            let value = serde_json::from_str(line).unwrap();
            assert_valid(&validator, &value);
            assert!(whole.is_valid(&value), "{line}");
        }
    }
}

#[test]
fn the_example_is_understood() {
    let (requests, replies) = example();
    let script: String = replies.iter().map(|reply| format!("next; say '{reply}'\n")).collect();
    let mut adapter = Adapter::start(&toy(&script, PATIENT)).unwrap();
    let operations = operations();
    let named = |name: &str| operations.iter().find(|operation| operation.name() == name).unwrap();
    adapter.call(&create(), false).unwrap().outcome.unwrap();
    let reply = adapter.call(named("high-watermark"), true).unwrap();
    assert!(reply.outcome.is_ok() && reply.state.is_some());
    let reply = adapter.call(named("truncate"), false).unwrap();
    assert_eq!(reply.outcome.unwrap_err().name, "unknown-log");
    adapter.finish().unwrap();
    assert_eq!(requests.len(), 5);
}
