//! `cleanslate list`.

use std::fmt::Write as _;
use std::process::ExitCode;

use cleanslate_model::bounds::{Bounds, KEYS};
use cleanslate_model::design::NAMED;
use cleanslate_model::property::{GUARANTEE, PROPERTIES};
use cleanslate_model::topology::{Command, LINK, TOPOLOGIES, Topology};
use serde_json::{Value, json};

use super::args::{ListArgs, Listing};
use super::output::print;
use super::{CliError, EXIT_EXPECTED};
use crate::requirements;

/// Runs `cleanslate list`.
///
/// # Errors
/// [`CliError`] if the results cannot be written.
pub fn run(args: &ListArgs) -> Result<ExitCode, CliError> {
    let items = match args.what {
        Listing::Designs => designs(),
        Listing::Topologies => topologies(),
        Listing::Bounds => bounds(),
        Listing::Properties => properties(),
        Listing::Requirements => requirements::all().map(|r| item(r.id, &r.text, &[], json!({}))).collect(),
    };
    let mut out = String::new();
    for Item { text, value } in items {
        if args.json {
            let _ = writeln!(out, "{value}");
        } else {
            out.push_str(&text);
        }
    }
    print(&out)?;
    Ok(ExitCode::from(EXIT_EXPECTED))
}

struct Item {
    text: String,
    value: Value,
}

fn item(id: &str, about: &str, more: &[String], extra: Value) -> Item {
    let mut text = format!("{id}\n    {about}\n");
    for line in more {
        let _ = writeln!(text, "    {line}");
    }
    let mut value = json!({ "id": id, "about": about });
    if let (Some(object), Value::Object(extra)) = (value.as_object_mut(), extra) {
        object.extend(extra);
    }
    Item { text, value }
}

fn designs() -> Vec<Item> {
    let one = |d: &cleanslate_model::design::NamedDesign| {
        let axes: serde_json::Map<String, Value> = d.design.axes().into_iter().map(|(k, v)| (k.to_owned(), json!(v))).collect();
        let words: Vec<String> = d.design.axes().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        item(d.name, d.about, &words.chunks(4).map(|c| c.join("  ")).collect::<Vec<_>>(), json!({ "axes": axes }))
    };
    NAMED.iter().map(one).collect()
}

fn topologies() -> Vec<Item> {
    TOPOLOGIES.iter().chain([LINK]).map(|t| item(t.name, t.about, &script(t), json!({ "script": script(t) }))).collect()
}

type BoundsOf = fn(&Topology) -> Bounds;

fn bounds() -> Vec<Item> {
    let named: [(&str, BoundsOf); 3] = [("small", Bounds::small), ("ci", Bounds::ci), ("deep", Bounds::deep)];
    let one = |&(key, max, about): &(&str, u8, &str)| {
        let mut values = serde_json::Map::new();
        let mut lines = Vec::new();
        for (name, of) in named {
            let at = |t: &Topology| of(t).to_map().get(key).copied();
            let here: Vec<_> = TOPOLOGIES.iter().chain([LINK]).filter_map(|t| Some((t.name, at(t)?))).collect();
            lines.push(format!("{name}: {}", words(&here)));
            values.insert(
                name.to_owned(),
                here.into_iter().map(|(t, n)| (t.to_owned(), json!(n))).collect::<serde_json::Map<_, _>>().into(),
            );
        }
        let about = format!("{about}; at most {max}");
        item(key, &about, &lines, json!({ "max": max, "values": values }))
    };
    KEYS.iter().map(one).collect()
}

/// One number if it is the same everywhere, else the topologies by number.
fn words(values: &[(&str, u8)]) -> String {
    let mut by_value: Vec<(u8, Vec<&str>)> = Vec::new();
    for (topology, value) in values {
        match by_value.iter_mut().find(|(v, _)| v == value) {
            Some((_, topologies)) => topologies.push(topology),
            None => by_value.push((*value, vec![topology])),
        }
    }
    by_value.sort_by_key(|(value, _)| *value);
    match by_value.as_slice() {
        [(value, topologies)] if topologies.len() > 1 => value.to_string(),
        several => several.iter().map(|(value, t)| format!("{value} ({})", t.join(", "))).collect::<Vec<_>>().join("; "),
    }
}

fn script(topology: &Topology) -> Vec<String> {
    let line = |(i, l): (usize, &cleanslate_model::topology::ScriptLine)| {
        let what = match l.command {
            Command::Stop => format!("stop {}", l.at),
            Command::Start(source) => format!("start {} mirroring {source}", l.at),
        };
        let when = l.after.map_or_else(|| "at any time".to_owned(), |a| format!("after {}", a + 1));
        format!("{}. {what}, {when}", i + 1)
    };
    topology.script.iter().enumerate().map(line).collect()
}

fn properties() -> Vec<Item> {
    let one = |p: &cleanslate_model::property::PropertySpec| {
        let more = vec![format!("group {}, requirement {}", p.group.id(), p.requirement)];
        item(p.id, p.about, &more, json!({ "group": p.group.id(), "requirement": p.requirement }))
    };
    PROPERTIES.iter().chain(&GUARANTEE).map(one).collect()
}
