//! The text format of Java's `Properties`, as far as `meta.properties` needs it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::types::TimestampMs;

/// A `\u` that four hexadecimal digits do not follow, at this byte of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadEscape(pub(super) usize);

/// A byte of the file, with its position. Each is a character of Latin-1.
type Char = (usize, u8);

/// Reads a file. The later of two values of a key counts.
pub(super) fn decode(file: &[u8]) -> Result<BTreeMap<String, String>, BadEscape> {
    let mut properties = BTreeMap::new();
    for line in logical_lines(file) {
        let (key, value) = split(&line);
        properties.insert(unescape(key)?, unescape(value)?);
    }
    Ok(properties)
}

/// Lines without the white space in front of them, comments and empty lines; one that ends in a backslash goes on in the
/// next.
fn logical_lines(file: &[u8]) -> Vec<Vec<Char>> {
    let mut lines: Vec<Vec<Char>> = Vec::new();
    let mut goes_on = false;
    let mut at: usize = 0;
    for natural in file.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        let text = natural.strip_suffix(b"\n").or_else(|| natural.strip_suffix(b"\r")).unwrap_or(natural);
        // The line feed behind a carriage return is no line of its own.
        let behind_return = text.is_empty() && natural == b"\n" && at.checked_sub(1).is_some_and(|at| file.get(at) == Some(&b'\r'));
        let line: Vec<Char> = (at..).zip(text.iter().copied()).skip_while(|(_, byte)| is_blank(*byte)).collect();
        at = at.saturating_add(natural.len());
        if behind_return {
            continue;
        }
        let is_comment = line.first().is_some_and(|(_, byte)| matches!(byte, b'#' | b'!'));
        if !goes_on && (line.is_empty() || is_comment) {
            continue;
        }
        let backslashes = line.iter().rev().take_while(|(_, byte)| *byte == b'\\').count();
        let last = backslashes % 2 == 1;
        let kept = line.len().saturating_sub(usize::from(last));
        let line = line.into_iter().take(kept);
        match lines.last_mut().filter(|_| goes_on) {
            Some(begun) => begun.extend(line),
            None => lines.push(line.collect()),
        }
        goes_on = last;
    }
    lines
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

/// Key and value: the key ends at white space, `=` or `:`, unless a backslash stands in front of it.
fn split(line: &[Char]) -> (&[Char], &[Char]) {
    let mut escaped = false;
    let key = line.iter().take_while(|(_, byte)| {
        let ends = !escaped && (is_blank(*byte) || matches!(byte, b'=' | b':'));
        escaped = !escaped && *byte == b'\\';
        !ends
    });
    let (key, rest) = line.split_at(key.count());
    let rest = without_blanks(rest);
    let value = rest.split_first().filter(|((_, byte), _)| matches!(byte, b'=' | b':')).map_or(rest, |(_, behind)| behind);
    (key, without_blanks(value))
}

fn without_blanks(chars: &[Char]) -> &[Char] {
    let blanks = chars.iter().take_while(|(_, byte)| is_blank(*byte)).count();
    chars.get(blanks..).unwrap_or_default()
}

fn unescape(chars: &[Char]) -> Result<String, BadEscape> {
    let mut units = Vec::with_capacity(chars.len());
    let mut chars = chars.iter().copied();
    while let Some((at, byte)) = chars.next() {
        if byte != b'\\' {
            units.push(u16::from(byte));
            continue;
        }
        let Some((_, escaped)) = chars.next() else { break };
        units.push(match escaped {
            b'u' => {
                let digits = chars.by_ref().take(4).map(|(_, byte)| char::from(byte).to_digit(16));
                let digits: Vec<u32> =
                    digits.collect::<Option<_>>().filter(|digits: &Vec<u32>| digits.len() == 4).ok_or(BadEscape(at))?;
                let unit = digits.into_iter().fold(0, |unit, digit| unit * 16 + digit);
                u16::try_from(unit).unwrap_or(0)
            }
            b't' => u16::from(b'\t'),
            b'r' => u16::from(b'\r'),
            b'n' => u16::from(b'\n'),
            b'f' => 0x0c,
            other => u16::from(other),
        });
    }
    Ok(String::from_utf16_lossy(&units))
}

/// The lines that Java writes on top: an empty comment, and the time.
pub(super) fn head(now: TimestampMs) -> String {
    format!("#\n#{}\n", date(now))
}

/// A line for a key, which needs no escapes.
pub(super) fn line(key: &str, value: &str) -> String {
    let mut out = format!("{key}=");
    for (index, char) in value.chars().enumerate() {
        // Writing to a string cannot fail.
        let _ = match char {
            ' ' if index == 0 => write!(out, "\\ "),
            '\t' => write!(out, "\\t"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\u{c}' => write!(out, "\\f"),
            '=' | ':' | '#' | '!' | '\\' => write!(out, "\\{char}"),
            other => write!(out, "{other}"),
        };
    }
    out.push('\n');
    out
}

/// `Date.toString` in UTC: `Tue Dec 01 03:33:52 UTC 2026`.
fn date(now: TimestampMs) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = now.get().div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years begin in March here, so that the leap day is the last; an era has 400 of them.
    let from_march = days.saturating_add(719_468);
    let (era, day_of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era.saturating_mul(400) + year_of_era + i64::from(month < 2);
    let named = |names: &[&'static str], index: i64| usize::try_from(index).ok().and_then(|index| names.get(index).copied());
    let (weekday, month) = (named(&WEEKDAYS, days.rem_euclid(7)), named(&MONTHS, month));
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    let (weekday, month) = (weekday.unwrap_or_default(), month.unwrap_or_default());
    format!("{weekday} {month} {day:02} {hours:02}:{minutes:02}:{seconds:02} UTC {year:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_java() {
        for (ms, expected) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (951_782_399_999, "Mon Feb 28 23:59:59 UTC 2000"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (1_796_096_032_000, "Tue Dec 01 03:33:52 UTC 2026"),
            (4_107_542_400_000, "Mon Mar 01 00:00:00 UTC 2100"),
        ] {
            assert_eq!(date(TimestampMs(ms)), expected);
        }
        assert!(!date(TimestampMs(i64::MIN)).is_empty() && !date(TimestampMs(i64::MAX)).is_empty());
    }
}
