//! Control records, in the words of Kafka's tool.

use std::fmt::Write as _;

use serde_json::Value;

use crate::record::{ControlRecord, ControlRecordType, DecodeError, EndTxnMarker, KRaftVoters, LeaderChange, Record, Voter};

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What is printed behind the metadata of a control record. A barrier is of a type that Kafka's tool does not know.
pub(super) fn text(record: &Record) -> Result<String, DecodeError> {
    Ok(match read(record)? {
        Read::Unknown(id) => format!("controlType: UNKNOWN({id})"),
        Read::Known(ControlRecord::EndTxnMarker(EndTxnMarker { commit, coordinator_epoch })) => {
            let outcome = if commit { "COMMIT" } else { "ABORT" };
            format!("endTxnMarker: {outcome} coordinatorEpoch: {coordinator_epoch}")
        }
        Read::Known(record) => match message(&record) {
            Some(("LeaderChange", json)) => format!("LeaderChange: {json}"),
            Some((name, json)) => format!("{name} {json}"),
            None => format!("controlType: UNKNOWN({})", record.record_type().id()),
        },
    })
}

/// The same for a line of JSON, where a barrier is shown for what it is.
pub(super) fn json(record: &Record) -> Result<Value, DecodeError> {
    let known = match read(record)? {
        Read::Unknown(7) => ControlRecord::decode(record.key.as_ref(), record.value.as_ref()).ok(),
        Read::Unknown(_) => None,
        Read::Known(known) => Some(known),
    };
    let id = key_type(record)?.id();
    Ok(match known {
        Some(ControlRecord::EndTxnMarker(EndTxnMarker { commit, coordinator_epoch })) => serde_json::json!({
            "type": if commit { "COMMIT" } else { "ABORT" }, "type_id": id, "coordinator_epoch": coordinator_epoch,
        }),
        Some(ControlRecord::MirrorPidReset(barrier)) => serde_json::json!({
            "type": "MIRROR_PID_RESET", "type_id": id, "source_cluster_id": barrier.source_cluster_id,
        }),
        Some(known) => match message(&known) {
            Some((name, text)) => {
                let value: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                serde_json::json!({ "type": name, "type_id": id, "value": value })
            }
            None => serde_json::json!({ "type": "UNKNOWN", "type_id": id }),
        },
        None => serde_json::json!({ "type": "UNKNOWN", "type_id": id }),
    })
}

/// A control record as Kafka 4.3 knows it.
enum Read {
    Known(ControlRecord),
    /// The value is not looked at.
    Unknown(i16),
}

fn key_type(record: &Record) -> Result<ControlRecordType, DecodeError> {
    match &record.key {
        Some(key) => ControlRecordType::decode_key(key),
        None => Err(DecodeError::Null { position: 0, what: "control record key" }),
    }
}

fn read(record: &Record) -> Result<Read, DecodeError> {
    match key_type(record)? {
        unknown @ (ControlRecordType::Unknown(_) | ControlRecordType::MirrorPidReset) => Ok(Read::Unknown(unknown.id())),
        _ => ControlRecord::decode(record.key.as_ref(), record.value.as_ref()).map(Read::Known),
    }
}

/// The name of a message of KRaft, and its fields as Kafka's converters to JSON write them.
fn message(record: &ControlRecord) -> Option<(&'static str, String)> {
    match record {
        ControlRecord::LeaderChange(LeaderChange { version, leader_id, voters, granting_voters }) => {
            let list = |ids: &[i32]| ids.iter().map(|id| format!("{{\"voterId\":{id}}}")).collect::<Vec<_>>().join(",");
            let (voters, granting) = (list(voters), list(granting_voters));
            let start = format!("{{\"version\":{version},\"leaderId\":{leader_id}");
            Some(("LeaderChange", format!("{start},\"voters\":[{voters}],\"grantingVoters\":[{granting}]}}")))
        }
        ControlRecord::SnapshotHeader(header) => {
            let (version, time) = (header.version, header.last_contained_log_timestamp);
            Some(("SnapshotHeader", format!("{{\"version\":{version},\"lastContainedLogTimestamp\":{time}}}")))
        }
        ControlRecord::SnapshotFooter(footer) => Some(("SnapshotFooter", format!("{{\"version\":{}}}", footer.version))),
        ControlRecord::KRaftVersion(kraft) => {
            Some(("KRaftVersion", format!("{{\"version\":{},\"kRaftVersion\":{}}}", kraft.version, kraft.kraft_version)))
        }
        ControlRecord::KRaftVoters(KRaftVoters { version, voters }) => {
            let voters: Vec<_> = voters.iter().map(voter).collect();
            Some(("KRaftVoters", format!("{{\"version\":{version},\"voters\":[{}]}}", voters.join(","))))
        }
        ControlRecord::EndTxnMarker(_) | ControlRecord::MirrorPidReset(_) | ControlRecord::Unknown { .. } => None,
    }
}

fn voter(voter: &Voter) -> String {
    let string = |text: &str| Value::from(text).to_string();
    let endpoints: Vec<_> = voter
        .endpoints
        .iter()
        .map(|at| format!("{{\"name\":{},\"host\":{},\"port\":{}}}", string(&at.name), string(&at.host), at.port))
        .collect();
    format!(
        "{{\"voterId\":{},\"voterDirectoryId\":\"{}\",\"endpoints\":[{}],\"kRaftVersionFeature\":{{\"minSupportedVersion\":{},\
         \"maxSupportedVersion\":{}}}}}",
        voter.voter_id,
        uuid(&voter.directory_id),
        endpoints.join(","),
        voter.min_supported_version,
        voter.max_supported_version,
    )
}

/// Base 64 with the letters of URLs and without padding (Kafka: `Uuid.toString`).
fn uuid(id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(22);
    for chunk in id.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, index| bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0)));
        for digit in 0..=chunk.len() {
            let shift = 18_usize.saturating_sub(digit.saturating_mul(6));
            let index = usize::try_from(bits >> shift & 63).unwrap_or(0);
            let _ = text.write_char(BASE64_URL.get(index).copied().map_or('A', char::from));
        }
    }
    text
}
