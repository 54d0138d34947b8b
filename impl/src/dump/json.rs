//! The lines of JSON: `specs/dump.md` has their fields.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::control;
use super::text::{self, More, Shown};
use crate::psm::ProducerStateEntry;
use crate::record::{AnyBatch, DecodeError};

/// A line.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Line<'a> {
    Log {
        file: &'a str,
        base_offset: i64,
    },
    MetadataSnapshot {
        file: &'a str,
        end_offset: i64,
        epoch: i32,
    },
    BootstrapSnapshot {
        file: &'a str,
    },
    Batch(BatchLine<'a>),
    Record(RecordLine<'a>),
    InvalidBytes {
        file: &'a str,
        bytes: u64,
    },
    OffsetIndexEntry {
        file: &'a str,
        offset: i64,
        position: i32,
    },
    TimeIndexEntry {
        file: &'a str,
        timestamp: i64,
        offset: i64,
    },
    IndexVerdict {
        file: &'a str,
        verdict: &'static str,
    },
    AbortedTxn(AbortedTxnLine<'a>),
    Producer(ProducerLine<'a>),
    CorruptSnapshot {
        file: &'a str,
        why: String,
    },
    Ignored {
        file: &'a str,
    },
    Finding {
        file: &'a str,
        finding: &'static str,
        #[serde(flatten)]
        values: BTreeMap<&'static str, i64>,
    },
    MoreFindings {
        file: &'a str,
        finding: &'static str,
        count: u64,
    },
}

#[derive(Serialize)]
pub(super) struct BatchLine<'a> {
    file: &'a str,
    position: u64,
    size: usize,
    magic: i8,
    codec: Option<&'static str>,
    crc: u32,
    is_valid: bool,
    timestamp_type: &'static str,
    max_timestamp: i64,
    last_offset: i64,
    /// What only magic 2 has.
    #[serde(flatten)]
    v2: Option<V2Line>,
}

#[derive(Serialize)]
struct V2Line {
    base_offset: i64,
    count: i32,
    base_sequence: i32,
    last_sequence: i32,
    producer_id: i64,
    producer_epoch: i16,
    leader_epoch: i32,
    is_transactional: bool,
    is_control: bool,
    delete_horizon: Option<i64>,
}

#[derive(Serialize)]
pub(super) struct RecordLine<'a> {
    file: &'a str,
    offset: i64,
    timestamp: i64,
    key_size: Option<usize>,
    value_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_valid: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Value>,
    /// Key and value, where they are asked for.
    #[serde(flatten)]
    data: BTreeMap<&'static str, Option<String>>,
}

#[derive(Serialize)]
pub(super) struct AbortedTxnLine<'a> {
    pub(super) file: &'a str,
    pub(super) version: i8,
    pub(super) producer_id: i64,
    pub(super) first_offset: i64,
    pub(super) last_offset: i64,
    pub(super) last_stable_offset: i64,
}

#[derive(Serialize)]
pub(super) struct ProducerLine<'a> {
    file: &'a str,
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    current_txn_first_offset: Option<i64>,
    last_timestamp: i64,
    batch: Option<LastBatch>,
}

#[derive(Serialize)]
struct LastBatch {
    first_sequence: i32,
    last_sequence: i32,
    last_offset: i64,
    offset_delta: i32,
    timestamp: i64,
}

pub(super) fn write_line(out: &mut dyn Write, line: &Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    writeln!(out)
}

pub(super) fn batch_line<'a>(file: &'a str, batch: &AnyBatch, position: u64) -> Line<'a> {
    let v2 = batch.as_v2().map(|batch| V2Line {
        base_offset: batch.base_offset().get(),
        count: batch.record_count(),
        base_sequence: batch.base_sequence().get(),
        last_sequence: batch.last_sequence().get(),
        producer_id: batch.producer_id().get(),
        producer_epoch: batch.producer_epoch().get(),
        leader_epoch: batch.leader_epoch().get(),
        is_transactional: batch.is_transactional(),
        is_control: batch.is_control(),
        delete_horizon: batch.delete_horizon().map(|time| time.get()),
    });
    Line::Batch(BatchLine {
        file,
        position,
        size: batch.size_in_bytes(),
        magic: text::magic(batch),
        codec: text::codec(batch).ok(),
        crc: text::crc(batch),
        is_valid: batch.ensure_valid().is_ok(),
        timestamp_type: text::timestamp_type(batch),
        max_timestamp: batch.max_timestamp().get(),
        last_offset: batch.last_offset().get(),
        v2,
    })
}

pub(super) fn record_line<'a>(file: &'a str, batch: &AnyBatch, shown: &Shown, with_data: bool) -> Result<Line<'a>, DecodeError> {
    let record = &shown.record;
    let (sequence, crc, is_valid) = match shown.more {
        More::V2 { sequence } => (Some(sequence.get()), None, None),
        More::Legacy { crc, is_valid } => (None, Some(crc), Some(is_valid)),
    };
    let is_control = text::is_control(batch);
    let mut data = BTreeMap::new();
    if with_data && !is_control {
        for (name, hex_name, bytes) in [("key", "key_hex", &record.key), ("value", "value_hex", &record.value)] {
            add_bytes(&mut data, name, hex_name, bytes.as_ref());
        }
    }
    Ok(Line::Record(RecordLine {
        file,
        offset: record.offset.get(),
        timestamp: record.timestamp.get(),
        key_size: record.key.as_ref().map(Bytes::len),
        value_size: record.value.as_ref().map(Bytes::len),
        sequence,
        headers: sequence.map(|_| record.headers.iter().map(|header| header.key_utf8().into_owned()).collect()),
        crc,
        is_valid,
        control: if is_control { Some(control::json(record)?) } else { None },
        data,
    }))
}

/// As text if it is UTF-8, else in hexadecimal digits under another name.
fn add_bytes(data: &mut BTreeMap<&'static str, Option<String>>, name: &'static str, hex_name: &'static str, bytes: Option<&Bytes>) {
    let Some(bytes) = bytes else {
        data.insert(name, None);
        return;
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => data.insert(name, Some(text.to_owned())),
        Err(_) => data.insert(hex_name, Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
    };
}

pub(super) fn producer_line<'a>(file: &'a str, entry: &ProducerStateEntry) -> Line<'a> {
    Line::Producer(ProducerLine {
        file,
        producer_id: entry.producer_id.get(),
        producer_epoch: entry.producer_epoch.get(),
        coordinator_epoch: entry.coordinator_epoch.get(),
        current_txn_first_offset: entry.current_txn_first_offset.map(|offset| offset.get()),
        last_timestamp: entry.last_timestamp.get(),
        batch: entry.last_batch().map(|batch| LastBatch {
            first_sequence: batch.first_sequence().get(),
            last_sequence: batch.last_sequence.get(),
            last_offset: batch.last_offset.get(),
            offset_delta: batch.offset_delta,
            timestamp: batch.timestamp.get(),
        }),
    })
}
