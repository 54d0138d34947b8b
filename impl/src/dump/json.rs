//! The lines of JSON: `specs/dump.md` has their fields.

use std::fmt;
use std::io::{self, Write};

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::control;
use super::text::{self, More, Shown};
use crate::log::scan::BatchHead;
use crate::psm::ProducerStateEntry;
use crate::record::{AnyBatch, DecodeError, Record, StoredHeaders};

/// A line.
#[derive(Serialize)]
struct Line<'a, T> {
    kind: &'static str,
    file: &'a str,
    #[serde(flatten)]
    fields: T,
}

#[derive(Serialize)]
pub(super) struct BatchLine {
    position: u64,
    size: u64,
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
    offset: i64,
    timestamp: i64,
    key_size: Option<usize>,
    value_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<HeaderNames<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_valid: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Value>,
    /// Key and value, where they are asked for.
    #[serde(flatten)]
    data: Option<Data<'a>>,
}

/// Key and value: as text if that is UTF-8, else in hexadecimal digits under another name.
#[derive(Serialize)]
struct Data<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<Hex<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<Hex<'a>>,
}

impl<'a> Data<'a> {
    fn of(record: &'a Record) -> Self {
        let ((key, key_hex), (value, value_hex)) = (text_or_hex(record.key.as_ref()), text_or_hex(record.value.as_ref()));
        Self { key, key_hex, value, value_hex }
    }
}

fn text_or_hex(bytes: Option<&Bytes>) -> (Option<Option<&str>>, Option<Hex<'_>>) {
    match bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| Hex(bytes))) {
        None => (Some(None), None),
        Some(Ok(text)) => (Some(Some(text)), None),
        Some(Err(hex)) => (None, Some(hex)),
    }
}

/// Names of headers, written one by one.
struct HeaderNames<'a>(&'a StoredHeaders);

impl Serialize for HeaderNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.keys().map(String::from_utf8_lossy))
    }
}

/// Hexadecimal digits, written one by one.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Serialize)]
pub(super) struct AbortedTxnLine {
    pub(super) version: i8,
    pub(super) producer_id: i64,
    pub(super) first_offset: i64,
    pub(super) last_offset: i64,
    pub(super) last_stable_offset: i64,
}

#[derive(Serialize)]
pub(super) struct ProducerLine {
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

pub(super) fn write_line(out: &mut dyn Write, kind: &'static str, file: &str, fields: impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Line { kind, file, fields })?;
    writeln!(out)
}

pub(super) fn batch_line(head: &BatchHead, is_valid: bool) -> BatchLine {
    let BatchHead { batch, position, size, .. } = head;
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
    BatchLine {
        position: *position,
        size: *size,
        magic: text::magic(batch),
        codec: text::codec(batch).ok(),
        crc: batch.stored_crc(),
        is_valid,
        timestamp_type: text::timestamp_type(batch),
        max_timestamp: batch.max_timestamp().get(),
        last_offset: batch.last_offset().get(),
        v2,
    }
}

pub(super) fn record_line<'a>(batch: &AnyBatch, shown: &'a Shown, with_data: bool) -> Result<RecordLine<'a>, DecodeError> {
    let record = &shown.record;
    let (sequence, headers, crc, is_valid) = match &shown.more {
        More::V2 { sequence, headers } => (Some(sequence.get()), Some(HeaderNames(headers)), None, None),
        More::Legacy { crc, is_valid, .. } => (None, None, Some(*crc), Some(*is_valid)),
    };
    let is_control = text::is_control(batch);
    let size = |part: &Option<Bytes>| part.as_ref().map(Bytes::len);
    let (key_size, value_size) = match &shown.more {
        More::V2 { .. } => (size(&record.key), size(&record.value)),
        More::Legacy { sizes: (key, value), .. } => (usize::try_from(*key).ok(), usize::try_from(*value).ok()),
    };
    if with_data {
        shown.check_data()?;
    }
    Ok(RecordLine {
        offset: record.offset.get(),
        timestamp: record.timestamp.get(),
        key_size,
        value_size,
        sequence,
        headers,
        crc,
        is_valid,
        control: if is_control { Some(control::json(record)?) } else { None },
        data: (with_data && !is_control).then(|| Data::of(record)),
    })
}

pub(super) fn producer_line(entry: &ProducerStateEntry) -> ProducerLine {
    ProducerLine {
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
    }
}
