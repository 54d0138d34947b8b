//! The pieces of Kafka's flexible messages: compact strings and arrays, tagged fields.

use bytes::{BufMut, BytesMut};

use super::cursor::Cursor;
use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::varint::write_unsigned_varint;

/// The most bytes of a string (Kafka: the generated message classes).
const MAX_STRING_BYTES: usize = 0x7fff;

/// Reads a string that may not be null: its length plus 1, and UTF-8.
///
/// Kafka puts U+FFFD in place of what is not UTF-8; here it is an error, as no writer of a control record makes it.
pub(super) fn compact_string(cursor: &mut Cursor<'_>, what: &'static str) -> Result<String, DecodeError> {
    let position = cursor.position();
    let Some(length) = cursor.unsigned_varint(what)?.checked_sub(1) else {
        return Err(DecodeError::Null { position, what });
    };
    if length > MAX_STRING_BYTES {
        return Err(DecodeError::StringTooLong { position, what, length });
    }
    let start = cursor.position();
    let bytes = cursor.take(length, what)?;
    String::from_utf8(bytes.to_vec())
        .map_err(|error| DecodeError::InvalidUtf8 { position: start + error.utf8_error().valid_up_to(), what })
}

/// Reads an array that may not be null: its length plus 1, and its elements.
pub(super) fn compact_array<'a, T>(
    cursor: &mut Cursor<'a>,
    what: &'static str,
    element: impl Fn(&mut Cursor<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let position = cursor.position();
    let Some(count) = cursor.unsigned_varint(what)?.checked_sub(1) else {
        return Err(DecodeError::Null { position, what });
    };
    let available = cursor.remaining();
    if count > available {
        return Err(DecodeError::CountExceedsBytes { position, what, count, available });
    }
    // Grows with what was read; every element takes at least one byte.
    let mut elements = Vec::new();
    for _ in 0..count {
        elements.push(element(cursor)?);
    }
    Ok(elements)
}

/// Reads over a section of tagged fields. None are defined for control records, and unknown ones are to be ignored.
pub(super) fn skip_tagged_fields(cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
    let position = cursor.position();
    let count = cursor.unsigned_varint("count of tagged fields")?;
    let available = cursor.remaining();
    if count > available {
        return Err(DecodeError::CountExceedsBytes { position, what: "count of tagged fields", count, available });
    }
    for _ in 0..count {
        cursor.unsigned_varint("tag of a tagged field")?;
        let size = cursor.unsigned_varint("size of a tagged field")?;
        cursor.split(size, "tagged field")?;
    }
    Ok(())
}

/// Writes a string.
pub(super) fn put_compact_string(out: &mut BytesMut, text: &str, what: &'static str) -> Result<(), EncodeError> {
    put_length_plus_one(out, text.len(), MAX_STRING_BYTES, what)?;
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Writes an array.
pub(super) fn put_compact_array<T>(
    out: &mut BytesMut,
    elements: &[T],
    what: &'static str,
    element: impl Fn(&mut BytesMut, &T) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    put_length_plus_one(out, elements.len(), i32::MAX as usize, what)?;
    elements.iter().try_for_each(|one| element(out, one))
}

/// Writes a section of tagged fields without any.
pub(super) fn put_no_tagged_fields(out: &mut BytesMut) {
    out.put_u8(0);
}

fn put_length_plus_one(out: &mut BytesMut, length: usize, maximum: usize, what: &'static str) -> Result<(), EncodeError> {
    let plus_one = u32::try_from(length).ok().filter(|_| length <= maximum).and_then(|length| length.checked_add(1));
    let plus_one = plus_one.ok_or(EncodeError::TooLong { what, length, maximum })?;
    write_unsigned_varint(out, plus_one);
    Ok(())
}
