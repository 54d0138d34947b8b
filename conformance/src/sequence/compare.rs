//! Runs requests on another implementation and holds what comes against what came of them here.

use serde::Serialize;

use super::known::{Masks, NO_FILE, Part};
use crate::adapter::message::Operation;
use crate::adapter::reply::{Answer, Failure, FailureKind, FileEntry, Files, Read, Reply};
use crate::adapter::{AdapterError, Requests, State};

/// Where the two sides part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The request, counted from 0.
    pub step: usize,
    /// What differs: the part of the reply, what came here, what came there.
    pub parts: Vec<Part>,
}

/// Sends all requests and compares each reply; finds the first that differs.
///
/// # Errors
/// When the adapter misbehaves.
pub fn compare(
    adapter: &mut impl Requests,
    requests: &[(Operation, Reply)],
    masks: &mut Masks,
) -> Result<Option<Difference>, AdapterError> {
    send(adapter, requests)?;
    receive(adapter, requests, masks)
}

/// Sends all requests, and one that forgets the logs.
///
/// # Errors
/// When the adapter misbehaves.
pub fn send(adapter: &mut impl Requests, requests: &[(Operation, Reply)]) -> Result<(), AdapterError> {
    for (operation, _) in requests {
        adapter.send(operation, true)?;
    }
    adapter.send(&Operation::Reset {}, false)
}

/// Receives the replies to requests that were sent, and compares each but for the known differences and for what the adapter says that it
/// cannot tell.
///
/// # Errors
/// When the adapter misbehaves.
pub fn receive(
    adapter: &mut impl Requests,
    requests: &[(Operation, Reply)],
    masks: &mut Masks,
) -> Result<Option<Difference>, AdapterError> {
    masks.begin();
    let tells_aborted = adapter.abilities().has("transaction-index");
    let mut difference = None;
    for (step, (operation, here)) in requests.iter().enumerate() {
        let Some(there) = adapter.receive()? else { break };
        if difference.is_none() {
            let mut parts =
                if tells_aborted { parts(operation, here, &there) } else { parts(operation, &silent(here), &silent(&there)) };
            masks.remove(operation, &mut parts);
            if !parts.is_empty() {
                difference = Some(Difference { step, parts });
            }
        }
    }
    adapter.receive()?;
    Ok(difference)
}

/// A reply that tells of no aborted transaction beside what was read.
fn silent(reply: &Reply) -> Reply {
    match &reply.outcome {
        Ok(Answer::Read(read)) => {
            let read = Read { records: read.records.clone(), aborted: None };
            Reply { outcome: Ok(Answer::Read(read)), state: reply.state.clone() }
        }
        _ => reply.clone(),
    }
}

/// Where two replies differ. Messages of errors, names of tasks, and recovery points are not compared: the last depends on when an
/// implementation flushes.
fn parts(operation: &Operation, here: &Reply, there: &Reply) -> Vec<Part> {
    let mut parts = Vec::new();
    if !same_outcome(&here.outcome, &there.outcome) {
        parts.push(("outcome".to_owned(), show(&here.outcome), show(&there.outcome)));
        if let (Ok(Answer::Files(here)), Ok(Answer::Files(there))) = (&here.outcome, &there.outcome) {
            parts = files(here, there);
        }
    }
    match (&here.state, &there.state) {
        (Some(here), Some(there)) => parts.extend(states(here, there)),
        (None, None) => {}
        (here, there) if operation.leaves_open() => {
            let show = |state: &Option<State>| state.as_ref().map(json).unwrap_or_default();
            parts.push(("state".to_owned(), show(here), show(there)));
        }
        _ => {}
    }
    parts
}

/// As the protocol has it.
fn show(outcome: &Result<Answer, Failure>) -> String {
    match outcome {
        Ok(answer) => format!("{{\"ok\":{}}}", json(answer)),
        Err(failure) => format!("{{\"error\":{}}}", json(failure)),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

fn same_outcome(here: &Result<Answer, Failure>, there: &Result<Answer, Failure>) -> bool {
    match (here, there) {
        (Ok(Answer::Tasks(_)), Ok(Answer::Tasks(_))) => true,
        (Ok(Answer::Files(here)), Ok(Answer::Files(there))) => files(here, there).is_empty(),
        (Ok(here), Ok(there)) => here == there,
        (Err(here), Err(there)) => here.kind == there.kind && here.name == there.name && here.kind != FailureKind::Internal,
        _ => false,
    }
}

/// The files of a log by name and content.
fn files(here: &Files, there: &Files) -> Vec<Part> {
    let list = |files: &Files| -> Vec<(String, String)> {
        let entries = files.files.iter();
        // Where the content was not asked for, there is the size.
        let shown = |entry: &FileEntry| entry.content.as_ref().map_or_else(|| format!("{} bytes", entry.size), ToString::to_string);
        entries.map(|entry| (entry.name.clone(), shown(entry))).collect()
    };
    let (here, there) = (list(here), list(there));
    let mut names: Vec<&String> = here.iter().chain(&there).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let find = |list: &[(String, String)], name: &String| {
        list.iter().find(|(n, _)| n == name).map_or_else(|| NO_FILE.to_owned(), |(_, content)| content.clone())
    };
    names
        .into_iter()
        .filter_map(|name| {
            let (here, there) = (find(&here, name), find(&there, name));
            (here != there).then(|| (format!("file {name}"), here, there))
        })
        .collect()
}

/// Where two states differ, but for their recovery points and for the arrays that the other side does not tell for want of the feature.
pub(crate) fn states(here: &State, there: &State) -> Vec<Part> {
    let fields = |state: &State| match serde_json::to_value(State { recovery_point: 0, ..state.clone() }) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (here, there) = (fields(here), fields(there));
    here.iter()
        .filter_map(|(name, here)| {
            let there = there.get(name).cloned().unwrap_or_default();
            let is_told = !there.is_null() || !here.is_array();
            (is_told && *here != there).then(|| (name.clone(), here.to_string(), there.to_string()))
        })
        .collect()
}
