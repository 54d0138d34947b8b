//! The lines of JSON.

use bytes::{BufMut, Bytes};
use cleanslate_log::dump::{DumpOptions, MAX_FINDINGS};
use cleanslate_log::record::{BatchBuilder, ControlRecord, MirrorPidResetRecord, Record};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{Offset, TimestampMs};

use super::support::dump;

const LOG: &str = "00000000000000000000.log";
const INDEX: &str = "00000000000000000000.index";

fn log(bytes: &[Bytes]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    storage.append(LOG, &bytes.concat().into()).unwrap();
    storage
}

fn json() -> DumpOptions {
    DumpOptions { json: true, print_data_log: true, ..DumpOptions::default() }
}

/// One data batch with bytes that are no text, one barrier behind a gap, and garbage.
#[test]
fn a_log_is_a_line_each_for_head_batch_record_rest_and_finding() {
    let record = Record {
        offset: Offset(0),
        timestamp: TimestampMs(5),
        key: None,
        value: Some(Bytes::from_static(&[0xff, 0x01])),
        headers: Vec::new(),
    };
    let data = BatchBuilder::new(Offset(0)).append(record).build().unwrap();
    let barrier = MirrorPidResetRecord { version: 0, source_cluster_id: Some("west".to_owned()) };
    let barrier =
        BatchBuilder::new(Offset(3)).control(true).control_record(ControlRecord::MirrorPidReset(barrier)).build().unwrap();
    let storage = log(&[data.bytes().clone(), barrier.bytes().clone(), Bytes::from_static(&[0; 7])]);
    let dumped = dump(&storage, &[LOG], json());
    let (crc, barrier_crc) = (data.stored_crc(), barrier.stored_crc());
    let (size, barrier_size) = (data.size_in_bytes(), barrier.size_in_bytes());
    let no_producer = r#""base_sequence":-1,"last_sequence":-1,"producer_id":-1,"producer_epoch":-1,"leader_epoch":-1"#;
    let file = r#""file":"00000000000000000000.log""#;
    let expected = [
        format!(r#"{{"kind":"log",{file},"base_offset":0}}"#),
        format!(
            r#"{{"kind":"batch",{file},"position":0,"size":{size},"magic":2,"codec":"none","crc":{crc},"is_valid":true,"timestamp_type":"CreateTime","max_timestamp":5,"last_offset":0,"base_offset":0,"count":1,{no_producer},"is_transactional":false,"is_control":false,"delete_horizon":null}}"#
        ),
        format!(
            r#"{{"kind":"record",{file},"offset":0,"timestamp":5,"key_size":null,"value_size":2,"sequence":-1,"headers":[],"key":null,"value_hex":"ff01"}}"#
        ),
        format!(
            r#"{{"kind":"batch",{file},"position":{size},"size":{barrier_size},"magic":2,"codec":"none","crc":{barrier_crc},"is_valid":true,"timestamp_type":"CreateTime","max_timestamp":-1,"last_offset":3,"base_offset":3,"count":1,{no_producer},"is_transactional":false,"is_control":true,"delete_horizon":null}}"#
        ),
        format!(
            r#"{{"kind":"record",{file},"offset":3,"timestamp":-1,"key_size":4,"value_size":8,"sequence":-1,"headers":[],"control":{{"source_cluster_id":"west","type":"MIRROR_PID_RESET","type_id":7}}}}"#
        ),
        format!(r#"{{"kind":"invalid-bytes",{file},"bytes":7}}"#),
        format!(r#"{{"kind":"finding",{file},"finding":"non-consecutive-offsets","next_offset":3,"offset":0}}"#),
    ];
    assert_eq!(dumped.out.lines().collect::<Vec<_>>(), expected);
    assert_eq!(dumped.err, "");
}

#[test]
fn other_files_have_lines_of_their_own() {
    let batch = BatchBuilder::new(Offset(0)).record(None, Some(b"v")).record(None, None).build().unwrap();
    let mut storage = log(&[batch.bytes().clone()]);
    let mut index = Vec::new();
    index.put_i32(4);
    index.put_i32(0);
    storage.append(INDEX, &index.into()).unwrap();
    storage.append("1.snapshot", &Bytes::from_static(&[0, 9, 0, 0, 0, 0, 0, 0, 0, 0])).unwrap();
    let dumped = dump(&storage, &[INDEX, "1.snapshot", "x.foo"], json());
    let expected = [
        r#"{"kind":"offset-index-entry","file":"00000000000000000000.index","offset":4,"position":0}"#,
        r#"{"kind":"corrupt-snapshot","file":"1.snapshot","why":"Snapshot failed schema validation: Snapshot contained an unknown file version 9"}"#,
        r#"{"kind":"ignored","file":"x.foo"}"#,
        r#"{"kind":"finding","file":"00000000000000000000.index","finding":"index-mismatch","index_offset":4,"log_offset":1}"#,
    ];
    assert_eq!(dumped.out.lines().collect::<Vec<_>>(), expected);
}

/// An index that is wrong everywhere does not fill the memory: of what is odd, so much is kept.
#[test]
fn findings_are_bounded() {
    let batch = BatchBuilder::new(Offset(0)).record(None, Some(b"v")).build().unwrap();
    let mut storage = log(&[batch.bytes().clone()]);
    let index: Vec<u8> = (1..=i32::try_from(MAX_FINDINGS).unwrap() + 3)
        .flat_map(|offset| [offset.to_be_bytes(), 0_i32.to_be_bytes()].concat())
        .collect();
    storage.append(INDEX, &index.into()).unwrap();
    let options = DumpOptions { verify_index_only: true, ..DumpOptions::default() };
    let text = dump(&storage, &[INDEX], options.clone()).err;
    assert_eq!((text.lines().count(), text.lines().last()), (MAX_FINDINGS + 2, Some("  and 3 more")));
    let json = dump(&storage, &[INDEX], DumpOptions { json: true, ..options }).out;
    let last = r#"{"kind":"more-findings","file":"00000000000000000000.index","count":3,"finding":"index-mismatch"}"#;
    assert_eq!((json.lines().count(), json.lines().last()), (MAX_FINDINGS + 1, Some(last)));
}
