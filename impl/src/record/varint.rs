//! Variable-length integers, with the limits of Kafka's `ByteUtils`.
//!
//! Seven bits a byte, lowest group first, top bit set on every byte but the last. Signed integers are zigzagged first.
//! Over-long encodings are accepted, and bits beyond the integer's width are dropped, as Kafka does: a reader that is
//! stricter would reject bytes that every broker accepts.

use bytes::BufMut;

/// The most bytes that a 32-bit integer may take.
pub const MAX_VARINT_BYTES: usize = 5;
/// The most bytes that a 64-bit integer may take.
pub const MAX_VARLONG_BYTES: usize = 10;

/// Why a variable-length integer could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarintError {
    /// The bytes end before the integer does.
    UnexpectedEnd,
    /// The last byte that may belong to the integer has its top bit set.
    TooLong,
}

/// Reads an unsigned 32-bit integer; returns it and the number of bytes taken (Kafka: `ByteUtils.readUnsignedVarint`).
///
/// # Errors
/// When the bytes end early, or the fifth byte asks for a sixth.
pub fn read_unsigned_varint(bytes: &[u8]) -> Result<(u32, usize), VarintError> {
    let mut value = 0_u32;
    for (index, &byte) in bytes.iter().take(MAX_VARINT_BYTES).enumerate() {
        // A shift of 28 keeps the low nibble of the fifth byte and drops the rest.
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, index + 1));
        }
    }
    Err(unfinished(bytes, MAX_VARINT_BYTES))
}

/// Reads a zigzag 32-bit integer; returns it and the number of bytes taken (Kafka: `ByteUtils.readVarint`).
///
/// # Errors
/// As [`read_unsigned_varint`].
pub fn read_varint(bytes: &[u8]) -> Result<(i32, usize), VarintError> {
    let (raw, taken) = read_unsigned_varint(bytes)?;
    Ok(((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed(), taken))
}

/// Reads a zigzag 64-bit integer; returns it and the number of bytes taken (Kafka: `ByteUtils.readVarlong`).
///
/// # Errors
/// When the bytes end early, or the tenth byte asks for an eleventh.
pub fn read_varlong(bytes: &[u8]) -> Result<(i64, usize), VarintError> {
    let mut raw = 0_u64;
    for (index, &byte) in bytes.iter().take(MAX_VARLONG_BYTES).enumerate() {
        raw |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed(), index + 1));
        }
    }
    Err(unfinished(bytes, MAX_VARLONG_BYTES))
}

fn unfinished(bytes: &[u8], max_bytes: usize) -> VarintError {
    if bytes.len() < max_bytes { VarintError::UnexpectedEnd } else { VarintError::TooLong }
}

/// Writes an unsigned 32-bit integer in the fewest bytes.
pub fn write_unsigned_varint(out: &mut impl BufMut, value: u32) {
    write_groups(out, u64::from(value));
}

/// Writes a zigzag 32-bit integer in the fewest bytes.
pub fn write_varint(out: &mut impl BufMut, value: i32) {
    write_groups(out, zigzag(value));
}

/// Writes a zigzag 64-bit integer in the fewest bytes.
pub fn write_varlong(out: &mut impl BufMut, value: i64) {
    write_groups(out, zigzag_long(value));
}

/// The bytes that [`write_varint`] writes: 1 to 5.
#[must_use]
pub fn varint_bytes(value: i32) -> usize {
    groups(zigzag(value))
}

/// The bytes that [`write_varlong`] writes: 1 to 10.
#[must_use]
pub fn varlong_bytes(value: i64) -> usize {
    groups(zigzag_long(value))
}

fn zigzag(value: i32) -> u64 {
    u64::from(((value << 1) ^ (value >> 31)).cast_unsigned())
}

fn zigzag_long(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Seven bits each, and at least one.
fn groups(value: u64) -> usize {
    (64_u32.saturating_sub(value.leading_zeros())).div_ceil(7).max(1) as usize
}

fn write_groups(out: &mut impl BufMut, mut value: u64) {
    // At most ten rounds: a u64 has ten groups of seven bits.
    while value >= 0x80 {
        out.put_u8(low_group(value) | 0x80);
        value >>= 7;
    }
    out.put_u8(low_group(value));
}

fn low_group(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_int(value: i32, expected: &[u8]) {
        let mut out = Vec::new();
        write_varint(&mut out, value);
        assert_eq!(out, expected, "{value}");
        assert_eq!(read_varint(&out), Ok((value, expected.len())));
        let mut out_long = Vec::new();
        write_varlong(&mut out_long, i64::from(value));
        assert_eq!(out_long, expected, "{value} as a long");
        assert_eq!(read_varlong(&out), Ok((i64::from(value), expected.len())));
    }

    #[test]
    fn zigzag_values_have_the_fewest_bytes() {
        check_int(0, &[0x00]);
        check_int(-1, &[0x01]);
        check_int(1, &[0x02]);
        check_int(63, &[0x7e]);
        check_int(-64, &[0x7f]);
        check_int(64, &[0x80, 0x01]);
        check_int(-65, &[0x81, 0x01]);
        check_int(i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        check_int(i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]);
    }

    #[test]
    fn long_extremes_take_ten_bytes() {
        for value in [i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_varlong(&mut out, value);
            assert_eq!(out.len(), MAX_VARLONG_BYTES);
            assert_eq!(read_varlong(&out), Ok((value, MAX_VARLONG_BYTES)));
        }
    }

    #[test]
    fn over_long_encodings_are_accepted() {
        assert_eq!(read_varint(&[0x80, 0x80, 0x80, 0x80, 0x00]), Ok((0, 5)));
        assert_eq!(read_varlong(&[0x82, 0x80, 0x00]), Ok((1, 3)));
    }

    #[test]
    fn the_high_nibble_of_the_fifth_byte_is_dropped() {
        assert_eq!(read_unsigned_varint(&[0xff, 0xff, 0xff, 0xff, 0x7f]), Ok((u32::MAX, 5)));
        assert_eq!(read_varint(&[0x80, 0x80, 0x80, 0x80, 0x70]), Ok((0, 5)));
    }

    #[test]
    fn a_further_byte_than_the_maximum_is_an_error() {
        assert_eq!(read_varint(&[0x80; 5]), Err(VarintError::TooLong));
        assert_eq!(read_varint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), Err(VarintError::TooLong));
        assert_eq!(read_varlong(&[0x80; 10]), Err(VarintError::TooLong));
        // The tenth byte holds bit 63 alone; its other bits are dropped.
        let mut ten = [0x80; 10];
        ten[9] = 0x7f;
        assert_eq!(read_varlong(&ten), Ok((1 << 62, 10)));
    }

    #[test]
    fn a_cut_integer_is_unfinished() {
        assert_eq!(read_varint(&[]), Err(VarintError::UnexpectedEnd));
        assert_eq!(read_varint(&[0x80; 4]), Err(VarintError::UnexpectedEnd));
        assert_eq!(read_varlong(&[0x80; 9]), Err(VarintError::UnexpectedEnd));
    }
}
