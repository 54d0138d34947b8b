//! Hexadecimal text to bytes.

use bytes::Bytes;

/// The bytes; spaces do not count.
pub(crate) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
