//! Readers of fields that refuse what the schema refuses, where the derived ones would be lenient.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Everything that an adapter may list as a feature.
pub const FEATURES: [&str; 8] = [
    "compaction",
    "crash-files",
    "leader-epochs",
    "segments",
    "snapshots",
    "transaction-index",
    "transaction-verification",
    "virtual-time",
];

/// The codes of errors of the kind `protocol`.
pub const CODES: [&str; 11] = [
    "malformed",
    "unknown-operation",
    "unsupported-protocol",
    "no-hello",
    "unknown-log",
    "log-exists",
    "log-open",
    "log-closed",
    "too-many-logs",
    "unknown-file",
    "unknown-guard",
];

/// A JSON object. What serde derives would take an array of the fields' values too.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// An array of objects.
pub(super) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Object<T>>::deserialize(deserializer)?.into_iter().map(|o| o.0).collect())
}

/// An array of objects or null; an error when the field is left out.
pub(super) fn optional_objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let found = Option::<Vec<Object<T>>>::deserialize(deserializer)?;
    Ok(found.map(|objects| objects.into_iter().map(|o| o.0).collect()))
}

/// An object that, with `#[serde(default)]`, may be left out, but not be null.
pub(super) fn present_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Object::deserialize(deserializer).map(|o| Some(o.0))
}

/// A value that, with `#[serde(default)]`, may be left out, but not be null.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A value or null; unlike a plain `Option`, an error when the field is left out.
pub(super) fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// An offset, which is not negative.
pub(super) fn offset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    within(i64::deserialize(deserializer)?, "an offset", 0, i64::MAX)
}

/// An offset, or -1 for none.
pub(super) fn offset_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    within(i64::deserialize(deserializer)?, "an offset or -1", -1, i64::MAX)
}

/// An offset or null; an error when the field is left out.
pub(super) fn optional_offset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Option::deserialize(deserializer)?.map(|found| within(found, "an offset", 0, i64::MAX)).transpose()
}

/// A number that fits an int of Java and is not negative.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(u32::deserialize(deserializer)?, "a 31-bit number", 0, u32::MAX >> 1)
}

/// The same or null; an error when the field is left out.
pub(super) fn optional_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Option::deserialize(deserializer)?.map(|found| within(found, "a 31-bit number", 0, u32::MAX >> 1)).transpose()
}

/// The id of a request or null; an error when the field is left out.
pub(super) fn optional_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::deserialize(deserializer)?.map(|found| within(found, "a 63-bit number", 0, u64::MAX >> 1)).transpose()
}

/// The size of a file.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(u64::deserialize(deserializer)?, "a 63-bit number", 0, u64::MAX >> 1)
}

/// The epoch of a producer, or -1.
pub(super) fn producer_epoch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i16, D::Error> {
    within(i16::deserialize(deserializer)?, "an epoch or -1", -1, i16::MAX)
}

/// The epoch of a coordinator, or -1.
pub(super) fn coordinator_epoch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    within(i32::deserialize(deserializer)?, "an epoch or -1", -1, i32::MAX)
}

/// The epoch of a leader.
pub(super) fn leader_epoch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    within(i32::deserialize(deserializer)?, "an epoch", 0, i32::MAX)
}

/// Text without control characters.
pub(super) fn line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.chars().any(char::is_control) { Err(Error::custom("text with a control character")) } else { Ok(text) }
}

/// The same, if the field is there.
pub(super) fn present_line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    line(deserializer).map(Some)
}

/// An array of such texts.
pub(super) fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let bad = texts.iter().any(|text| text.chars().any(char::is_control));
    if bad { Err(Error::custom("text with a control character")) } else { Ok(texts) }
}

/// An array of the names of operations, each once.
pub(super) fn operations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    set(deserializer, "operation", |name| (1..=64).contains(&name.len()) && name.chars().all(part))
}

/// An array of features, each once.
pub(super) fn features<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    set(deserializer, "feature", |name| FEATURES.contains(&name))
}

/// A SHA-256 digest in hex.
pub(super) fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let good = text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if good { Ok(text) } else { Err(Error::custom("expected 64 lower-case hex digits")) }
}

fn set<'de, D: Deserializer<'de>>(deserializer: D, what: &str, good: impl Fn(&str) -> bool) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let mut seen = BTreeSet::new();
    for name in &names {
        if !good(name) {
            return Err(Error::custom(format!("there is no {what} {name:?}")));
        }
        if !seen.insert(name) {
            return Err(Error::custom(format!("the {what} {name} is listed twice")));
        }
    }
    Ok(names)
}

fn within<T: PartialOrd + Display, E: Error>(found: T, what: &str, low: T, high: T) -> Result<T, E> {
    if found < low || found > high { Err(E::custom(format!("expected {what}, found {found}"))) } else { Ok(found) }
}
