//! Writing entries of magic 0 and 1 (Kafka: `LegacyRecord.write`, `AbstractLegacyRecordBatch.writeHeader`).

use bytes::{BufMut, Bytes, BytesMut};

use super::encode_error::EncodeError;
use super::header::{Attributes, LOG_OVERHEAD_BYTES};
use super::record_body::length;
use crate::types::{Offset, TimestampMs};

/// CRC, magic, attributes, and the lengths of the key and the value.
const FIXED_BYTES: usize = 14;
const TIMESTAMP_BYTES: usize = 8;
const CRC_BYTES: usize = 4;

/// What an entry of magic 0 or 1 is to say: a record, or a compressed set of records as the value.
///
/// It is written as it is told, with the CRC that belongs to it: nothing checks that the attributes and the value fit. What
/// Kafka's producers wrote is made by [`RecordsBuilder`](super::RecordsBuilder).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegacyEntry<'a> {
    /// The offset as stored, which in a set of magic 1 counts from the set's beginning.
    pub offset: Offset,
    /// The codec of a set, and the timestamp type in magic 1. The low 8 bits are written.
    pub attributes: Attributes,
    /// Milliseconds. An entry with a timestamp is of magic 1, one without of magic 0.
    pub timestamp: Option<TimestampMs>,
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
}

impl LegacyEntry<'_> {
    /// 0 or 1.
    #[must_use]
    pub fn magic(&self) -> i8 {
        i8::from(self.timestamp.is_some())
    }

    /// The size that the entry has when it is written, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        let parts = [self.key, self.value].into_iter().flatten().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        let timestamp = if self.timestamp.is_some() { TIMESTAMP_BYTES } else { 0 };
        parts.saturating_add(LOG_OVERHEAD_BYTES + FIXED_BYTES + timestamp)
    }

    /// Writes the entry.
    ///
    /// # Errors
    /// When the key, the value or both together are longer than a length field can say.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let mut covered = Vec::with_capacity(self.size_in_bytes());
        let [_, attributes] = self.attributes.0.to_be_bytes();
        covered.put_i8(self.magic());
        covered.put_u8(attributes);
        if let Some(timestamp) = self.timestamp {
            covered.put_i64(timestamp.get());
        }
        put_sized(&mut covered, self.key, "record key")?;
        put_sized(&mut covered, self.value, "record value")?;
        out.put_i64(self.offset.get());
        out.put_i32(length(covered.len().saturating_add(CRC_BYTES), "record")?);
        out.put_u32(crc32fast::hash(&covered));
        out.extend_from_slice(&covered);
        Ok(())
    }

    /// The entry as bytes.
    ///
    /// # Errors
    /// As [`LegacyEntry::encode`].
    pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(self.size_in_bytes());
        self.encode(&mut out)?;
        Ok(out.freeze())
    }
}

fn put_sized(out: &mut Vec<u8>, part: Option<&[u8]>, what: &'static str) -> Result<(), EncodeError> {
    match part {
        Some(part) => {
            out.put_i32(length(part.len(), what)?);
            out.extend_from_slice(part);
        }
        None => out.put_i32(-1),
    }
    Ok(())
}
