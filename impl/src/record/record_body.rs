//! The records inside a batch (Kafka: `DefaultRecord`).

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

use super::cursor::Cursor;
use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::header::{BatchHeader, TimestampType};
use super::varint::{varint_bytes, varlong_bytes, write_varint, write_varlong};
use crate::types::{Offset, TimestampMs};

/// A header of a record: a name and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
    /// The name. UTF-8 by convention; Kafka accepts any bytes here, and so does this.
    pub key: Bytes,
    /// The value; `None` is null.
    pub value: Option<Bytes>,
}

impl Header {
    /// The name as text, with U+FFFD in place of what is not UTF-8, which is how Kafka shows it.
    #[must_use]
    pub fn key_utf8(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.key)
    }
}

/// A record with its offset and timestamp resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// Position in the partition log.
    pub offset: Offset,
    /// Milliseconds; the batch's max timestamp for every record when the batch has append time.
    pub timestamp: TimestampMs,
    /// The key; `None` is null.
    pub key: Option<Bytes>,
    /// The value; `None` is null, which compaction takes as "delete".
    pub value: Option<Bytes>,
    /// The headers, in their order; names may repeat.
    pub headers: Vec<Header>,
}

/// What is known of a record without its key, value and headers (Kafka: `PartialDefaultRecord`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordOutline {
    /// Position in the partition log.
    pub offset: Offset,
    /// Milliseconds; the batch's max timestamp for every record when the batch has append time.
    pub timestamp: TimestampMs,
    /// Bytes of the key; `None` is null.
    pub key_size: Option<usize>,
    /// Bytes of the value; `None` is null.
    pub value_size: Option<usize>,
    /// How many headers there are.
    pub header_count: usize,
}

/// A record as stored: deltas instead of offset and timestamp, and fields as parts of the batch's bytes.
pub(crate) struct RawRecord<'a> {
    timestamp_delta: i64,
    offset_delta: i32,
    pub(super) key: Option<Cursor<'a>>,
    pub(super) value: Option<Cursor<'a>>,
    headers: Cursor<'a>,
    /// How many there are.
    header_count: usize,
    /// Position behind the length field, for errors about the whole record.
    pub(super) position: usize,
}

impl<'a> RawRecord<'a> {
    /// Reads a record and moves behind it. The headers are checked too, so that a record is either read or refused.
    pub(super) fn decode(cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let length = cursor.length("record length")?;
        let position = cursor.position();
        let mut body = cursor.split(length, "record")?;
        let record = Self::fields(&mut body)?;
        if body.remaining() > 0 {
            let consumed = length - body.remaining();
            return Err(DecodeError::RecordLengthMismatch { position, declared: length, consumed });
        }
        Ok(record)
    }

    /// Reads a record without regard to its length field and moves behind its fields
    /// (Kafka: `DefaultRecord.readPartiallyFrom`, which a leader uses for a compressed batch that it need not change).
    pub(super) fn skim(cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        cursor.varint("record length")?;
        Self::fields(cursor)
    }

    fn fields(body: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let position = body.position();
        body.i8("record attributes")?; // no bit has a meaning: ignored
        let timestamp_delta = body.varlong("timestamp delta")?;
        let offset_delta = body.varint("offset delta")?;
        let key = body.nullable_part("record key")?;
        let value = body.nullable_part("record value")?;
        let headers = body.clone();
        let header_count = skip_headers(body)?;
        Ok(Self { timestamp_delta, offset_delta, key, value, headers, header_count, position })
    }

    /// Resolves offset and timestamp by the batch's header. A timestamp wraps as in Java: a delete horizon as base is
    /// any distance away.
    pub(super) fn into_record(mut self, header: &BatchHeader) -> Result<Record, DecodeError> {
        Ok(Record {
            offset: self.offset(header),
            timestamp: self.timestamp(header),
            headers: decode_headers(&mut self.headers, self.header_count)?,
            key: self.key.map(Cursor::into_bytes),
            value: self.value.map(Cursor::into_bytes),
        })
    }

    /// As [`RawRecord::into_record`], with an empty list of headers, which takes no memory.
    fn without_headers(self, header: &BatchHeader) -> Record {
        Record {
            offset: self.offset(header),
            timestamp: self.timestamp(header),
            key: self.key.map(Cursor::into_bytes),
            value: self.value.map(Cursor::into_bytes),
            headers: Vec::new(),
        }
    }

    pub(super) fn outline(self, header: &BatchHeader) -> RecordOutline {
        RecordOutline {
            offset: self.offset(header),
            timestamp: self.timestamp(header),
            key_size: self.key.as_ref().map(Cursor::remaining),
            value_size: self.value.as_ref().map(Cursor::remaining),
            header_count: self.header_count,
        }
    }

    /// The record, with its headers as they are stored.
    pub(crate) fn with_stored_headers(self, header: &BatchHeader) -> (Record, StoredHeaders) {
        let headers = StoredHeaders(self.headers.clone().into_bytes());
        (self.without_headers(header), headers)
    }

    fn offset(&self, header: &BatchHeader) -> Offset {
        header.base_offset.plus(i64::from(self.offset_delta))
    }

    fn timestamp(&self, header: &BatchHeader) -> TimestampMs {
        match header.attributes.timestamp_type() {
            TimestampType::CreateTime => TimestampMs(header.base_timestamp.get().wrapping_add(self.timestamp_delta)),
            TimestampType::LogAppendTime => header.max_timestamp,
        }
    }
}

/// The headers of a record as stored, which take no memory of their own. They were read over before, so nothing fails.
#[derive(Clone, Debug)]
pub(crate) struct StoredHeaders(Bytes);

impl StoredHeaders {
    /// The names, one by one.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut cursor = Cursor::new(&self.0);
        let count = header_count(&mut cursor).unwrap_or(0);
        (0..count).map_while(move |_| {
            let key = header_key(&mut cursor).ok()?;
            cursor.nullable_part("header value").ok()?;
            Some(key.rest())
        })
    }
}

/// The count of headers, which is at most the number of bytes that are left.
fn header_count(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    let position = cursor.position();
    let count = cursor.length("header count")?;
    let available = cursor.remaining();
    if count > available {
        return Err(DecodeError::CountExceedsBytes { position, what: "header count", count, available });
    }
    Ok(count)
}

fn header_key<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>, DecodeError> {
    let length = cursor.length("header key length")?;
    cursor.split(length, "header key")
}

/// Reads over the headers; returns how many there are.
fn skip_headers(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    let count = header_count(cursor)?;
    for _ in 0..count {
        header_key(cursor)?;
        cursor.nullable_part("header value")?;
    }
    Ok(count)
}

/// `found` headers are there, as was found before: so much is allocated, and no more.
fn decode_headers(cursor: &mut Cursor<'_>, found: usize) -> Result<Vec<Header>, DecodeError> {
    let mut headers = Vec::with_capacity(found);
    for _ in 0..header_count(cursor)? {
        let key = header_key(cursor)?.into_bytes();
        let value = cursor.nullable_part("header value")?.map(Cursor::into_bytes);
        headers.push(Header { key, value });
    }
    Ok(headers)
}

impl Record {
    /// Writes the record with its offset and timestamp relative to the batch's.
    pub(super) fn encode(&self, out: &mut BytesMut, timestamp_delta: i64, offset_delta: i32) -> Result<(), EncodeError> {
        let mut body = BytesMut::new();
        body.put_i8(0); // attributes: none are defined
        write_varlong(&mut body, timestamp_delta);
        write_varint(&mut body, offset_delta);
        put_nullable(&mut body, self.key.as_ref(), "record key")?;
        put_nullable(&mut body, self.value.as_ref(), "record value")?;
        write_varint(&mut body, length(self.headers.len(), "record headers")?);
        for header in &self.headers {
            put_nullable(&mut body, Some(&header.key), "header key")?;
            put_nullable(&mut body, header.value.as_ref(), "header value")?;
        }
        write_varint(out, length(body.len(), "record")?);
        out.extend_from_slice(&body);
        Ok(())
    }
}

impl Record {
    /// The bytes that [`Record::encode`] writes.
    pub(super) fn encoded_bytes(&self, timestamp_delta: i64, offset_delta: i32) -> usize {
        let headers = self.headers.iter().fold(0_usize, |sum, header| {
            let (key, value) = (part_bytes(Some(&header.key)), part_bytes(header.value.as_ref()));
            sum.saturating_add(key).saturating_add(value)
        });
        let body = [
            1, // attributes
            varlong_bytes(timestamp_delta),
            varint_bytes(offset_delta),
            part_bytes(self.key.as_ref()),
            part_bytes(self.value.as_ref()),
            length_bytes(self.headers.len()),
            headers,
        ];
        let body = body.into_iter().fold(0, usize::saturating_add);
        length_bytes(body).saturating_add(body)
    }
}

/// The bytes of a length field. What is too long for one is refused when it is written.
fn length_bytes(length: usize) -> usize {
    varint_bytes(i32::try_from(length).unwrap_or(i32::MAX))
}

/// A length and what it is of; a null has a length only.
fn part_bytes(part: Option<&Bytes>) -> usize {
    part.map_or(varint_bytes(-1), |part| length_bytes(part.len()).saturating_add(part.len()))
}

fn put_nullable(out: &mut BytesMut, bytes: Option<&Bytes>, what: &'static str) -> Result<(), EncodeError> {
    match bytes {
        Some(bytes) => {
            write_varint(out, length(bytes.len(), what)?);
            out.extend_from_slice(bytes);
        }
        None => write_varint(out, -1),
    }
    Ok(())
}

/// A length as the 32-bit number that the format has for it.
pub(super) fn length(length: usize, what: &'static str) -> Result<i32, EncodeError> {
    i32::try_from(length).map_err(|_| EncodeError::TooLong { what, length, maximum: i32::MAX as usize })
}
