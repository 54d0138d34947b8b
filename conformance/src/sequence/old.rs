//! Records of magic 0 and 1, as an old leader would have written them.

use bytes::BufMut;
use cleanslate_log::record::{Compression, EncodeError, compress};
use cleanslate_log::types::{Offset, TimestampMs};

use super::action::Old;
use super::concrete::compression;

/// Whether the records are compressed together.
pub(super) fn is_set(old: &Old) -> bool {
    compression(old.codec) != Compression::None
}

/// The records from an offset on, and the offset behind them. Records without compression are entries of their own.
pub(super) fn old_records(old: &Old, first: Offset, now: TimestampMs, serial: u64) -> Result<(Vec<u8>, Offset), EncodeError> {
    let (magic, count) = (i8::from(old.has_time), i64::from(old.records.max(1)));
    // Offsets within a set are absolute in magic 0, and count from 0 in magic 1.
    let within = if is_set(old) && old.has_time { Offset(0) } else { first };
    let mut entries = Vec::new();
    for index in 0..count {
        let (key, value) = (format!("k{}", serial % 5), format!("{serial}.{index}"));
        // Some are tombstones.
        let value = if serial.is_multiple_of(7) && index == 0 { None } else { Some(value.as_bytes()) };
        entries.extend(entry(magic, within.plus(index), 0, now, Some(key.as_bytes()), value));
    }
    let next = first.plus(count);
    if !is_set(old) {
        return Ok((entries, next));
    }
    let codec = compression(old.codec);
    let set = compress(codec, &entries)?;
    Ok((entry(magic, next.plus(-1), codec.id(), now, None, Some(&set)), next))
}

fn entry(magic: i8, offset: Offset, attributes: u8, now: TimestampMs, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_i8(magic);
    body.put_u8(attributes);
    if magic == 1 {
        body.put_i64(now.get());
    }
    for part in [key, value] {
        // Keys and values are a few bytes long.
        body.put_i32(part.map_or(-1, |part| i32::try_from(part.len()).unwrap_or(i32::MAX)));
        body.extend_from_slice(part.unwrap_or_default());
    }
    let mut out = Vec::new();
    out.put_i64(offset.get());
    out.put_i32(i32::try_from(body.len().saturating_add(4)).unwrap_or(i32::MAX));
    out.put_u32(crc32fast::hash(&body));
    out.extend_from_slice(&body);
    out
}
