//! Every directory is opened as Kafka opened it.

use cleanslate_log::log::{LogConfig, LogError, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::record::TimestampType;
use cleanslate_log::storage::{MemoryStorage, Storage as _};
use cleanslate_log::types::{Offset, TimestampMs};

use super::manifest::{Aborted, Case, Directory, Load, Manifest, Producer, State};
use super::sidecars::aborted_tuple;

/// Directory, mode, what differs from Kafka there.
pub(crate) type Difference<'a> = (&'a str, &'a str, &'a str);

/// All differences that there are.
const KNOWN: &[Difference<'_>] = &[];

#[test]
fn every_directory_opens_as_in_kafka() {
    let manifest = Manifest::load();
    let mut opened = 0;
    let mut differences: Vec<Difference<'_>> = Vec::new();
    for (case, directory) in manifest.directories() {
        for load in &directory.loads {
            let found = differing(case, directory, load);
            differences.extend(found.into_iter().map(|what| (directory.path.as_str(), load.mode.as_str(), what)));
            opened += 1;
        }
    }
    assert_eq!(differences, KNOWN);
    assert_eq!(opened, 107);
}

/// What is not as in Kafka after this opening.
fn differing(case: &Case, directory: &Directory, load: &Load) -> Vec<&'static str> {
    match (open(case, directory, load), &load.state) {
        (Ok(log), Some(expected)) => {
            let differing = differing_fields(&state_of(log), expected);
            differing
                .into_iter()
                .map(|(what, details)| {
                    println!("{} {}: {what}: {details}", directory.path, load.mode);
                    what
                })
                .collect()
        }
        (Err(error), None) if load.error.as_deref() == Some(error.kafka_class()) => Vec::new(),
        (result, _) => {
            let result = result.map(|log| log.log_end_offset()).map_err(|error| (error.kafka_class(), error));
            println!("{} {}: {result:?}, expected {:?}", directory.path, load.mode, load.error);
            vec!["outcome"]
        }
    }
}

/// Opens the directory and lets everything in it be replicated.
pub(crate) fn open(case: &Case, directory: &Directory, load: &Load) -> Result<PartitionLog<MemoryStorage>, LogError> {
    let options = OpenOptions {
        recovery: if load.mode == "clean" { Recovery::Clean } else { Recovery::Unclean },
        recovery_point: Offset(load.recovery_point),
        log_start_offset: Offset(load.log_start_offset_checkpoint),
    };
    open_with(case, directory, load, options)
}

/// As [`open`], but in another way.
pub(crate) fn open_with(
    case: &Case,
    directory: &Directory,
    load: &Load,
    options: OpenOptions,
) -> Result<PartitionLog<MemoryStorage>, LogError> {
    let mut storage = MemoryStorage::new();
    for (name, bytes) in directory.files() {
        storage.replace(&name, &bytes).unwrap();
    }
    let (mut log, _) = PartitionLog::open(storage, config(case), options, TimestampMs(load.clock_ms))?;
    log.update_high_watermark(log.log_end_offset());
    Ok(log)
}

fn config(case: &Case) -> LogConfig {
    let mut config = LogConfig::default();
    for (name, value) in &case.topic_config {
        match name.as_str() {
            "internal.segment.bytes" => config.segment_bytes = value.parse().unwrap(),
            "segment.index.bytes" => config.segment_index_bytes = value.parse().unwrap(),
            "index.interval.bytes" => config.index_interval_bytes = value.parse().unwrap(),
            "max.message.bytes" => config.max_message_bytes = value.parse().unwrap(),
            "retention.ms" => config.retention_ms = value.parse().unwrap(),
            "delete.retention.ms" => config.delete_retention_ms = value.parse().unwrap(),
            "cleanup.policy" => (config.compact, config.delete) = (value == "compact", value == "delete"),
            "message.timestamp.type" if value == "LogAppendTime" => config.timestamp_type = TimestampType::LogAppendTime,
            _ => {}
        }
    }
    config
}

pub(crate) fn state_of(log: PartitionLog<MemoryStorage>) -> State {
    let producers = log.producer_state();
    State {
        log_start_offset: log.log_start_offset().get(),
        log_end_offset: log.log_end_offset().get(),
        last_stable_offset: log.last_stable_offset().get(),
        map_end_offset: producers.map_end_offset().get(),
        leader_epochs: log.leader_epochs().entries().iter().map(|entry| (entry.epoch.get(), entry.start_offset.get())).collect(),
        producers: producers.active_producers().values().map(Producer::from).collect(),
        aborted: log.aborted_transactions().map(aborted_tuple).collect(),
        segments: log.segments().map(|(base, size)| (base.get(), size)).collect(),
    }
}

/// The names of the fields that differ, each with both values.
pub(crate) fn differing_fields(found: &State, expected: &State) -> Vec<(&'static str, String)> {
    let transactions = |state: &State| -> Vec<_> { state.aborted.iter().map(|&(id, first, last, _)| (id, first, last)).collect() };
    let last_stable = |state: &State| -> Vec<i64> { state.aborted.iter().map(|&(.., lso): &Aborted| lso).collect() };
    let producers = |state: &State| {
        let mut producers: Vec<_> = state.producers.iter().map(|producer| format!("{producer:?}")).collect();
        producers.sort();
        producers
    };
    let mut differing = Vec::new();
    let mut compare = |what: &'static str, found: String, expected: String| {
        if found != expected {
            differing.push((what, format!("{found}, expected {expected}")));
        }
    };
    let mut field = |what, of: &dyn Fn(&State) -> String| compare(what, of(found), of(expected));
    field("log start offset", &|state| state.log_start_offset.to_string());
    field("log end offset", &|state| state.log_end_offset.to_string());
    field("last stable offset", &|state| state.last_stable_offset.to_string());
    field("map end offset", &|state| state.map_end_offset.to_string());
    field("leader epochs", &|state| format!("{:?}", state.leader_epochs));
    field("producers", &|state| format!("{:?}", producers(state)));
    field("aborted transactions", &|state| format!("{:?}", transactions(state)));
    field("last stable offsets of aborted transactions", &|state| format!("{:?}", last_stable(state)));
    field("segments", &|state| format!("{:?}", state.segments));
    differing
}
