//! The mark of an orderly stop (Kafka: `CleanShutdownFileHandler`, KIP-966).
//!
//! ```text
//! {"version":0,"brokerEpoch":306}
//! ```

use bytes::Bytes;
use serde_json::Value;

use crate::types::BrokerEpoch;

/// The file.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";

/// What the mark says. That it is there says that the stop was orderly, whatever it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CleanShutdown {
    /// The epoch of the broker that stopped; `None` when the file does not tell or cannot be read.
    pub broker_epoch: Option<BrokerEpoch>,
}

impl CleanShutdown {
    /// The bytes of the file that a broker of this epoch leaves.
    #[must_use]
    pub fn encode(broker_epoch: BrokerEpoch) -> Bytes {
        Bytes::from(format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}"))
    }

    /// Reads the bytes of a file; never fails. As in Kafka the version is read but not looked at, other fields and what
    /// follows the object are not looked at, and numbers may be texts or have decimals.
    #[must_use]
    pub fn decode(file: &Bytes) -> Self {
        Self { broker_epoch: broker_epoch(file) }
    }
}

fn broker_epoch(file: &Bytes) -> Option<BrokerEpoch> {
    let first = serde_json::Deserializer::from_slice(file).into_iter().next()?.ok()?;
    let Value::Object(fields) = first else { return None };
    match fields.get("version") {
        None | Some(Value::Null) => {}
        Some(version) => {
            i32::try_from(integer(version)?).ok()?;
        }
    }
    integer(fields.get("brokerEpoch")?).map(BrokerEpoch)
}

/// A number that is whole, or the part of it in front of the decimal point; or a text that holds one.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().filter(|_| number.is_f64()).and_then(truncated)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn truncated(number: f64) -> Option<i64> {
    // Both bounds are powers of two, which are exact.
    let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    in_range.then(|| format!("{:.0}", number.trunc()).parse().ok())?
}
