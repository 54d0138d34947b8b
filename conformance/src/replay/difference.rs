//! The first difference between two values, with the path of the field.

use serde::Serialize;
use serde_json::Value;

use crate::trace::format::ReplicaState;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the field, e.g. `producers[0].producer_epoch`; empty for the whole value.
    pub field: String,
    /// The expected value as JSON, or `nothing`.
    pub expected: String,
    /// The actual value as JSON, or `nothing`.
    pub actual: String,
}

impl Difference {
    /// The same difference seen from a value that holds this one at `path`.
    #[must_use]
    pub fn under(self, path: &str) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        Self { field: format!("{path}{dot}{}", self.field), ..self }
    }
}

/// The first field in which `expected` and `actual` differ, or none.
///
/// The comparison goes over the JSON form, so that a field that is added to the format can never be forgotten here.
#[must_use]
pub fn first_difference<T: Serialize + PartialEq>(expected: &T, actual: &T) -> Option<Difference> {
    if expected == actual {
        return None;
    }
    match (serde_json::to_value(expected), serde_json::to_value(actual)) {
        (Ok(expected), Ok(actual)) => differ(Some(&expected), Some(&actual)),
        _ => None,
    }
}

/// The first field in which two states differ; a transaction index that only one of them tells is not compared.
#[must_use]
pub fn state_difference(expected: &ReplicaState, actual: &ReplicaState) -> Option<Difference> {
    if expected.aborted_transactions.is_some() == actual.aborted_transactions.is_some() {
        return first_difference(expected, actual);
    }
    let blind = |state: &ReplicaState| ReplicaState { aborted_transactions: None, ..state.clone() };
    first_difference(&blind(expected), &blind(actual))
}

fn differ(expected: Option<&Value>, actual: Option<&Value>) -> Option<Difference> {
    match (expected, actual) {
        (Some(e), Some(a)) if e == a => None,
        (Some(Value::Object(e)), Some(Value::Object(a))) => e
            .keys()
            .chain(a.keys().filter(|k| !e.contains_key(*k)))
            .find_map(|key| differ(e.get(key), a.get(key)).map(|d| d.under(key))),
        (Some(Value::Array(e)), Some(Value::Array(a))) => {
            (0..e.len().max(a.len())).find_map(|i| differ(e.get(i), a.get(i)).map(|d| d.under(&format!("[{i}]"))))
        }
        _ => Some(Difference { field: String::new(), expected: text(expected), actual: text(actual) }),
    }
}

fn text(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// A value as JSON on one line.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
