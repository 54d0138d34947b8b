//! What requests need of an adapter, so that one that lacks it is not asked for it, and is not held against what it cannot have.
//!
//! An operation that is not listed cannot be asked for. A feature that is not listed is needed where it shows beyond its own array of the
//! state: a log of several segments is read segment by segment, and an entry that comes from a snapshot remembers one batch. Where it
//! shows is told by what came of the requests on the log of this project.

use std::collections::{BTreeMap, BTreeSet};

use crate::adapter::message::{Config, Operation};
use crate::adapter::reply::{Answer, Reply};
use crate::adapter::{Abilities, State};

/// Names of operations and features.
pub type Names = BTreeSet<&'static str>;

/// What the requests of one sequence need, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    logs: BTreeMap<String, Seen>,
}

/// What a log was like when it was open last.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// There is a producer state snapshot that is not empty.
    has_snapshot: bool,
    producers: Vec<i64>,
    /// Files of it were written from outside.
    is_foreign: bool,
}

impl Needs {
    /// What the next request needs, in view of what came of it here.
    pub fn next(&mut self, operation: &Operation, here: &Reply) -> Names {
        let mut needs = Names::from([operation.name()]);
        needs.extend(of_fields(operation));
        let Some(log) = operation.log() else {
            self.logs.clear();
            return needs;
        };
        let seen = self.logs.entry(log.to_owned()).or_default();
        let loads = match operation {
            // One without snapshots reads everything again, and may see damage that a start after a clean stop does not look at.
            Operation::Open { clean, .. } => seen.has_snapshot || *clean && (seen.is_foreign || !seen.producers.is_empty()),
            Operation::Truncate { .. } => seen.has_snapshot,
            _ => false,
        };
        if loads {
            needs.insert("snapshots");
        }
        match operation {
            Operation::Close { .. } => seen.has_snapshot |= !seen.producers.is_empty(),
            Operation::PutFile { .. } => seen.is_foreign = true,
            _ => {}
        }
        if let Ok(Answer::Files(files)) = &here.outcome {
            needs.extend(files.files.iter().filter_map(|file| of_file(&file.name)));
        }
        let Some(state) = &here.state else { return needs };
        if state.segments.as_ref().is_some_and(|segments| segments.len() > 1) {
            needs.insert("segments");
        }
        let producers: Vec<i64> = state.producers.iter().map(|producer| producer.producer_id).collect();
        // Entries that are older than they may be do not come back, neither those that were there nor those of files from outside.
        let stored = state.snapshots.iter().flatten().flat_map(|snapshot| snapshot.producers.iter().flatten());
        let mut known = stored.map(|producer| producer.producer_id).chain(seen.producers.iter().copied());
        if (loads || matches!(operation, Operation::Open { .. })) && known.any(|id| !producers.contains(&id)) {
            needs.insert("virtual-time");
        }
        *seen = Seen { has_snapshot: holds_producers(state), producers, is_foreign: false };
        needs
    }
}

/// Whether a snapshot has entries, or cannot be read.
fn holds_producers(state: &State) -> bool {
    let snapshots = state.snapshots.iter().flatten();
    snapshots.map(|snapshot| snapshot.producers.as_ref()).any(|producers| producers.is_none_or(|all| !all.is_empty()))
}

/// The feature that a file of Kafka's belongs to.
fn of_file(name: &str) -> Option<&'static str> {
    let kinds = [
        (".log", "segments"),
        (".index", "segments"),
        (".timeindex", "segments"),
        (".txnindex", "transaction-index"),
        (".snapshot", "snapshots"),
        ("leader-epoch-checkpoint", "leader-epochs"),
    ];
    kinds.into_iter().find_map(|(end, feature)| name.ends_with(end).then_some(feature))
}

/// The features that the fields of a request name.
fn of_fields(operation: &Operation) -> Names {
    let mut needs = Names::new();
    match operation {
        Operation::Create { config, .. } => needs.extend(of_config(config)),
        Operation::AppendLeader { guard, .. } if *guard != 0 => drop(needs.insert("transaction-verification")),
        Operation::StartVerification { .. } => drop(needs.insert("transaction-verification")),
        Operation::Crash { cuts, lost, .. } if !cuts.is_empty() || !lost.is_empty() => drop(needs.insert("crash-files")),
        Operation::PutFile { file, .. } => needs.extend(of_file(file)),
        Operation::Snapshot { .. } | Operation::DeleteSnapshots { .. } => drop(needs.insert("snapshots")),
        Operation::EndOffsetForEpoch { .. } => drop(needs.insert("leader-epochs")),
        Operation::Expire { .. }
        | Operation::SetTime { .. }
        | Operation::Compact { .. }
        | Operation::Open { now_ms: Some(_), .. } => {
            needs.insert("virtual-time");
        }
        _ => {}
    }
    needs
}

fn of_config(config: &Config) -> Names {
    let sizes = [config.segment_bytes.is_some(), config.index_bytes.is_some(), config.index_interval_bytes.is_some()];
    let ages =
        [config.segment_ms.is_some(), config.producer_expiration_ms.is_some(), config.retention_ms.is_some_and(|ms| ms >= 0)];
    let compacts = config.cleanup_policy.as_ref().is_some_and(|policy| policy.contains("compact"));
    let stamps = config.timestamp_type.as_deref() == Some("LogAppendTime");
    [
        ("segments", sizes.contains(&true)),
        ("virtual-time", ages.contains(&true) || stamps),
        ("transaction-verification", config.verification == Some(true)),
        ("compaction", compacts),
    ]
    .into_iter()
    .filter_map(|(feature, is_needed)| is_needed.then_some(feature))
    .collect()
}

/// The settings without those that need what is missing.
#[must_use]
pub fn possible(config: &Config, abilities: &Abilities) -> Config {
    let mut config = config.clone();
    if !abilities.has("segments") {
        (config.segment_bytes, config.index_bytes, config.index_interval_bytes) = (None, None, None);
    }
    if !abilities.has("virtual-time") {
        (config.segment_ms, config.producer_expiration_ms, config.retention_ms) = (None, None, None);
        config.timestamp_type = None;
    }
    if !abilities.has("transaction-verification") {
        config.verification = None;
    }
    if !abilities.has("compaction") {
        config.cleanup_policy = None;
    }
    config
}

/// What of these is not listed.
#[must_use]
pub fn lacking(needs: Names, abilities: &Abilities) -> Names {
    needs.into_iter().filter(|name| !abilities.knows(name) && !abilities.has(name)).collect()
}

/// All that requests need and an adapter lacks.
#[must_use]
pub fn missing(requests: &[(Operation, Reply)], abilities: &Abilities) -> Names {
    let mut needs = Needs::default();
    let all = requests.iter().flat_map(|(operation, here)| needs.next(operation, here));
    lacking(all.collect(), abilities)
}

/// The requests without those that an adapter needs no word for: one that does not list `run-tasks` puts nothing off.
#[must_use]
pub fn worded(requests: Vec<(Operation, Reply)>, abilities: &Abilities) -> Vec<(Operation, Reply)> {
    let mut requests = requests;
    if !abilities.knows("run-tasks") {
        requests.retain(|(operation, _)| !matches!(operation, Operation::RunTasks { .. }));
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::message::Cut;
    use crate::sequence::local::Local;

    fn log() -> String {
        "A".to_owned()
    }

    fn create(config: Config) -> Operation {
        Operation::Create { log: log(), now_ms: 0, config }
    }

    fn lacks(steps: &[Operation]) -> Vec<&'static str> {
        let mut local = Local::default();
        let requests: Vec<_> = steps.iter().map(|step| (step.clone(), local.call(step, true))).collect();
        missing(&requests, &Abilities::required()).into_iter().collect()
    }

    #[test]
    fn what_every_adapter_can_do_needs_nothing() {
        let crash = Operation::Crash { log: log(), cuts: Vec::new(), lost: Vec::new() };
        let open = Operation::Open { log: log(), clean: false, recovery_point: 0, log_start: 0, now_ms: None };
        let truncate = Operation::Truncate { log: log(), offset: 0 };
        let close = Operation::Close { log: log() };
        let closed = Operation::Open { log: log(), clean: true, recovery_point: 0, log_start: 0, now_ms: None };
        assert!(lacks(&[create(Config::default()), crash, open, truncate, close, closed]).is_empty());
    }

    #[test]
    fn operations_and_features_are_named_all_at_once() {
        let config = Config { segment_bytes: Some(100), verification: Some(true), ..Config::default() };
        let compact = Operation::Compact { log: log(), first_dirty: 0, first_uncleanable: 0, now_ms: 0 };
        let cuts = vec![Cut { file: "00000000000000000000.log".to_owned(), bytes: 1 }];
        let crash = Operation::Crash { log: log(), cuts, lost: Vec::new() };
        let files = Operation::Files { log: log(), content: true };
        let expected = ["compact", "crash-files", "files", "leader-epochs", "segments", "transaction-verification", "virtual-time"];
        assert_eq!(lacks(&[create(config), compact, crash, files]), expected);
    }

    #[test]
    fn a_log_of_two_segments_needs_segments() {
        let reply = |count: i64| {
            let mut local = Local::default();
            let mut reply = local.call(&create(Config::default()), true);
            let segments = (0..count).map(|base_offset| crate::adapter::state::Segment { base_offset, size: 0 });
            reply.state.as_mut().unwrap().segments = Some(segments.collect());
            reply
        };
        let state = Operation::State { log: log() };
        assert!(!Needs::default().next(&state, &reply(1)).contains("segments"));
        assert!(Needs::default().next(&state, &reply(2)).contains("segments"));
    }

    #[test]
    fn settings_that_need_something_are_left_out() {
        let config = Config {
            segment_bytes: Some(1),
            segment_ms: Some(1),
            verification: Some(true),
            timestamp_type: Some("LogAppendTime".to_owned()),
            max_message_bytes: Some(9),
            ..Config::default()
        };
        assert_eq!(possible(&config, &Abilities::all()), config);
        let left = possible(&config, &Abilities::required());
        assert_eq!(left, Config { max_message_bytes: Some(9), ..Config::default() });
        assert!(of_config(&left).is_empty());
    }
}
