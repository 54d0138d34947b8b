//! Ids of topics and log directories (Kafka: `org.apache.kafka.common.Uuid`).

use std::fmt;
use std::str::FromStr;

/// The digits of base64 for URLs, in order.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The longest text that Kafka looks at, in UTF-16 units: with padding.
const MAX_TEXT: usize = 24;
/// The digits that 128 bits take.
const TEXT_DIGITS: usize = 22;

/// 128 bits that name something, the most significant first. The text is base64 for URLs, without padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// Why a text is no id (Kafka: `IllegalArgumentException`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UuidError {
    /// A character that is no digit of base64 for URLs.
    #[error("character {position} is no digit of an id")]
    Digit {
        /// Which one, from 0.
        position: usize,
    },
    /// There are more or fewer digits than an id has, or half of the padding.
    #[error("an id of {digits} digits, expected 22, with or without ==")]
    Length {
        /// How many there are.
        digits: usize,
    },
}

impl Uuid {
    /// No id: a topic never has it.
    pub const ZERO: Self = Self(0);
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 22 digits of 6 bits, of which the last 4 bits are none of the id's.
        (0..TEXT_DIGITS).try_for_each(|digit| {
            let down = 122_usize.checked_sub(6 * digit);
            let bits = down.map_or(self.0 << 4, |down| self.0 >> down) & 63;
            let digit = usize::try_from(bits).ok().and_then(|bits| DIGITS.get(bits)).copied().unwrap_or(b'A');
            write!(f, "{}", char::from(digit))
        })
    }
}

impl FromStr for Uuid {
    type Err = UuidError;

    /// As Kafka reads it: the padding may be there, and the bits of the last digit that are none of the id's are not
    /// looked at.
    fn from_str(text: &str) -> Result<Self, UuidError> {
        let length = text.encode_utf16().count();
        let wrong_length = UuidError::Length { digits: length };
        if length > MAX_TEXT {
            return Err(wrong_length);
        }
        let digits = text.strip_suffix("==").unwrap_or(text);
        let mut bits: u128 = 0;
        let mut count: usize = 0;
        for (position, char) in digits.chars().enumerate() {
            let value = DIGITS.iter().position(|digit| char::from(*digit) == char).ok_or(UuidError::Digit { position })?;
            let value = u128::try_from(value).unwrap_or(0);
            let last = count.saturating_add(1) == TEXT_DIGITS;
            bits = if last { (bits << 2) | (value >> 4) } else { (bits << 6) | value };
            count = count.saturating_add(1);
        }
        if count == TEXT_DIGITS { Ok(Self(bits)) } else { Err(wrong_length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_kafka() {
        assert_eq!(Uuid((1 << 64) | 2).to_string(), "AAAAAAAAAAEAAAAAAAAAAg");
        assert_eq!(Uuid(u128::MAX).to_string(), "_____________________w");
        for id in [0, 1, 1 << 127, u128::MAX, 0xf21d_5939_710f_435b_9d8d_df68_b565_a2fd] {
            assert_eq!(Uuid(id).to_string().parse(), Ok(Uuid(id)));
        }
    }

    #[test]
    fn what_kafka_refuses_is_refused() {
        let id: Uuid = "8h1ZOXEPQ1udjd9otWWi_Q".parse().unwrap_or_default();
        assert_eq!(id.to_string(), "8h1ZOXEPQ1udjd9otWWi_Q");
        for text in ["8h1ZOXEPQ1udjd9otWWi_Q==", "8h1ZOXEPQ1udjd9otWWi_R"] {
            assert_eq!(text.parse(), Ok(id), "{text}");
        }
        let refused =
            ["", "x", "8h1ZOXEPQ1udjd9otWWi_QA", "8h1ZOXEPQ1udjd9otWWi_Q=", "8h1ZOXEPQ1udjd9otWWi_", "8h1ZOXEPQ1udjd9otWWi_Q "];
        for text in refused.into_iter().chain([
            "8h1ZOXEPQ1udjd9otWWi_Q==x",
            "8h1ZOXEPQ1udjd9otWWi+Q",
            "8h1ZOXEPQ1udjd9otWWi",
            "äh1ZOXEPQ1udjd9otWWi_Q",
        ]) {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }
}
