//! What files of Kafka owe to the Java library: the order of hash tables, lines, white space.

/// The bucket of a `HashMap` into which a hash code falls; the capacity is a power of two.
pub(crate) fn bucket(hash: u32, capacity: usize) -> usize {
    let spread = hash ^ (hash >> 16);
    usize::try_from(spread).unwrap_or(usize::MAX) & capacity.saturating_sub(1)
}

/// The capacity that a `HashMap` begins with when it was made without one.
const FIRST_CAPACITY: usize = 16;
/// As long as a table is smaller than this, a full bucket makes it grow.
const SMALL_TABLE: usize = 64;
/// So many keys fill a bucket.
const BUCKET_KEYS: usize = 8;

/// The capacity of a `HashMap` behind the `put` of a new key: doubled when the bucket of the key was full and the table is
/// small, and when more than three quarters of the table are in use. `same_bucket` counts the keys that were in the bucket
/// of the new one, `keys` all keys with the new one.
pub(crate) fn capacity_behind_put(capacity: usize, same_bucket: impl FnOnce(usize) -> usize, keys: usize) -> usize {
    let mut capacity = capacity.max(FIRST_CAPACITY);
    if capacity < SMALL_TABLE && same_bucket(capacity) >= BUCKET_KEYS {
        capacity = capacity.saturating_mul(2);
    }
    if keys > capacity / 4 * 3 { capacity.saturating_mul(2) } else { capacity }
}

/// The capacity of a `HashMap` into which keys with these hash codes were put.
pub(crate) fn capacity_of(hashes: &[u32]) -> usize {
    (0..hashes.len()).fold(FIRST_CAPACITY, |capacity, index| {
        let (before, from) = hashes.split_at(index);
        let new = from.first().copied().unwrap_or(0);
        let same_bucket = |capacity| before.iter().filter(|hash| bucket(**hash, capacity) == bucket(new, capacity)).count();
        capacity_behind_put(capacity, same_bucket, index.saturating_add(1))
    })
}

/// `String.hashCode`.
pub(crate) fn string_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)))
}

/// `BufferedReader.readLine`: lines end in a line feed, a carriage return, or both; the last may end without.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r']) else {
            rest = None;
            return Some(text);
        };
        let (line, end) = text.split_at(end);
        let behind = end.strip_prefix("\r\n").or_else(|| end.get(1..)).unwrap_or_default();
        rest = Some(behind).filter(|behind| !behind.is_empty());
        Some(line)
    })
}

/// What `\s` matches.
pub(crate) fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

/// `Pattern.split` at runs of white space: white space in front leaves an empty word there, at the end none.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for word in line.split(is_space) {
        // Between two characters of white space lies no word.
        if !word.is_empty() || words.is_empty() {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_in_java() {
        for (text, expected) in [
            ("", vec![]),
            ("\n", vec![""]),
            ("a", vec!["a"]),
            ("a\nb\n", vec!["a", "b"]),
            ("a\r\n\nb\rc\r", vec!["a", "", "b", "c"]),
        ] {
            assert_eq!(lines(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_split_as_in_java() {
        for (line, expected) in [
            ("", vec![""]),
            ("a 0 5", vec!["a", "0", "5"]),
            ("a  0\t5 ", vec!["a", "0", "5"]),
            (" a 0", vec!["", "a", "0"]),
            ("  a", vec!["", "a"]),
            (" \t", vec![""]),
            ("a\u{a0}0", vec!["a\u{a0}0"]),
        ] {
            assert_eq!(words(line), expected, "{line:?}");
        }
    }

    #[test]
    fn hashes_are_those_of_java() {
        assert_eq!(string_hash("cleanslate"), 3_465_867_504);
        let spread: Vec<u32> = (0..25).collect();
        let crowded: Vec<u32> = (0..13).map(|key| key * 32).collect();
        let capacities =
            [&spread[..0], &spread[..12], &spread[..13], &spread, &crowded[..8], &crowded[..9], &crowded].map(capacity_of);
        assert_eq!(capacities, [16, 16, 32, 64, 16, 32, 64]);
    }
}
