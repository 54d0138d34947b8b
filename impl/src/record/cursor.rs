//! A bounds-checked reader over a part of a buffer, whose errors know their position in that buffer.

use bytes::Bytes;

use super::error::DecodeError;
use super::varint::{self, MAX_VARINT_BYTES, MAX_VARLONG_BYTES, VarintError};

/// Reads forward from a position up to an end; both are byte positions in the buffer.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a Bytes,
    position: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor over the whole buffer.
    pub(super) fn new(bytes: &'a Bytes) -> Self {
        Self { bytes, position: 0, end: bytes.len() }
    }

    /// A cursor over the buffer from `position`, or from its end when that comes first.
    pub(super) fn starting_at(bytes: &'a Bytes, position: usize) -> Self {
        Self { bytes, position: position.min(bytes.len()), end: bytes.len() }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn remaining(&self) -> usize {
        self.end.saturating_sub(self.position)
    }

    /// The bytes that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..self.end).unwrap_or_default()
    }

    /// Splits off the next `length` bytes as a cursor of their own and moves behind them.
    pub(super) fn split(&mut self, length: usize, what: &'static str) -> Result<Self, DecodeError> {
        self.require(length, what)?;
        let part = Self { bytes: self.bytes, position: self.position, end: self.position + length };
        self.position = part.end;
        Ok(part)
    }

    /// The next `length` bytes, shared with the buffer, not copied.
    pub(super) fn take(&mut self, length: usize, what: &'static str) -> Result<Bytes, DecodeError> {
        Ok(self.split(length, what)?.into_bytes())
    }

    /// All the bytes that are left.
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes.slice(self.position..self.end)
    }

    /// An error unless `length` bytes are left.
    pub(super) fn require(&self, length: usize, what: &'static str) -> Result<(), DecodeError> {
        let available = self.remaining();
        if length > available {
            return Err(DecodeError::UnexpectedEnd { position: self.position, what, needed: length, available });
        }
        Ok(())
    }

    /// An error unless no bytes are left.
    pub(super) fn finish(&self, what: &'static str) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            remaining => Err(DecodeError::TrailingBytes { position: self.position, what, remaining }),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let Some(array) = self.rest().first_chunk::<N>() else {
            return Err(DecodeError::UnexpectedEnd { position: self.position, what, needed: N, available: self.remaining() });
        };
        self.position += N;
        Ok(*array)
    }

    pub(super) fn i8(&mut self, what: &'static str) -> Result<i8, DecodeError> {
        self.array(what).map(i8::from_be_bytes)
    }

    pub(super) fn i16(&mut self, what: &'static str) -> Result<i16, DecodeError> {
        self.array(what).map(i16::from_be_bytes)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.array(what).map(i32::from_be_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        self.array(what).map(i64::from_be_bytes)
    }

    pub(super) fn uuid(&mut self, what: &'static str) -> Result<[u8; 16], DecodeError> {
        self.array(what)
    }

    pub(super) fn varint(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        let read = varint::read_varint(self.rest());
        self.advance(read, what, MAX_VARINT_BYTES)
    }

    pub(super) fn varlong(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        let read = varint::read_varlong(self.rest());
        self.advance(read, what, MAX_VARLONG_BYTES)
    }

    pub(super) fn unsigned_varint(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        let read = varint::read_unsigned_varint(self.rest());
        let value = self.advance(read, what, MAX_VARINT_BYTES)?;
        // Saturates on a 16-bit machine only, where the bounds check that follows every length refuses it.
        Ok(usize::try_from(value).unwrap_or(usize::MAX))
    }

    /// A zigzag length that may not be negative.
    pub(super) fn length(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        let position = self.position;
        let length = self.varint(what)?;
        usize::try_from(length).map_err(|_| DecodeError::NegativeLength { position, what, length })
    }

    /// A zigzag length and that many bytes; any negative length is null.
    pub(super) fn nullable_part(&mut self, what: &'static str) -> Result<Option<Self>, DecodeError> {
        match usize::try_from(self.varint(what)?) {
            Ok(length) => self.split(length, what).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn advance<T>(
        &mut self,
        read: Result<(T, usize), VarintError>,
        what: &'static str,
        max_bytes: usize,
    ) -> Result<T, DecodeError> {
        match read {
            Ok((value, taken)) => {
                self.position += taken;
                Ok(value)
            }
            Err(VarintError::TooLong) => Err(DecodeError::VarintTooLong { position: self.position, what, max_bytes }),
            Err(VarintError::UnexpectedEnd) => {
                let available = self.remaining();
                Err(DecodeError::UnexpectedEnd { position: self.position, what, needed: available + 1, available })
            }
        }
    }
}
