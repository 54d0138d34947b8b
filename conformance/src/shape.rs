//! What serde's derived readers let through and no schema does: an array of the fields' values in the place of an object.

use serde::Serialize;
use serde_json::Value;

use crate::trace::locate::Place;

/// The first place, in the order of the fields, at which `text` has an array and the value that was read from it an object.
pub(crate) fn array_for_object<T: Serialize>(value: &T, text: &str) -> Option<Place> {
    // Both are JSON already: neither conversion fails.
    let (written, read) = (serde_json::to_value(value).ok()?, serde_json::from_str(text).ok()?);
    search(&written, &read, &Place::default())
}

fn search(written: &Value, read: &Value, place: &Place) -> Option<Place> {
    match (written, read) {
        (Value::Object(_), Value::Array(_)) => Some(place.clone()),
        (Value::Object(written), Value::Object(read)) => {
            let both = written.iter().filter_map(|(key, value)| Some((key, value, read.get(key)?)));
            both.into_iter().find_map(|(key, written, read)| search(written, read, &place.key(key)))
        }
        (Value::Array(written), Value::Array(read)) => {
            let mut both = written.iter().zip(read).enumerate();
            both.find_map(|(n, (written, read))| search(written, read, &place.index(n)))
        }
        _ => None,
    }
}
