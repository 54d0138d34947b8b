//! What is odd about the files, told at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;

use super::json::write_line;

/// So many entries are kept for a file and a kind of finding; of the rest only the number. Kafka's tool keeps all.
pub const MAX_FINDINGS: usize = 100_000;

/// Pairs of numbers, of which so many are kept.
#[derive(Debug, Default)]
struct Pairs {
    /// In the order in which they are told.
    kept: BTreeMap<i64, (i64, i64)>,
    more: u64,
}

impl Pairs {
    /// Adds a pair behind the others.
    fn add(&mut self, first: i64, second: i64) {
        self.keep(i64::try_from(self.kept.len()).unwrap_or(i64::MAX), (first, second));
    }

    fn keep(&mut self, key: i64, pair: (i64, i64)) {
        if self.kept.len() < MAX_FINDINGS || self.kept.contains_key(&key) {
            self.kept.insert(key, pair);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }
}

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Offset in the index, last offset of the batch that it points at.
    IndexMismatch,
    /// Timestamp in the index, largest of the batch.
    TimestampMismatch,
    /// Timestamp in the index, the one before.
    TimestampOutOfOrder,
    /// Offset in the index, last offset of the batch that was found, or -1.
    OffsetNotFound,
    /// Offset of a record, offset of the next.
    NonConsecutive,
}

/// How a kind is told.
struct Words {
    kind: Kind,
    name: &'static str,
    title: &'static str,
    /// What stands in front of either number.
    entry: [&'static str; 2],
    /// The fields of the pair in JSON.
    fields: [&'static str; 2],
}

/// In the order in which kinds are told.
#[rustfmt::skip]
const WORDS: [Words; 5] = [
    words(Kind::IndexMismatch, "index-mismatch", "Mismatches in :",
        ["  Index offset: ", ", log offset: "], ["index_offset", "log_offset"]),
    words(Kind::TimestampMismatch, "timestamp-mismatch", "Found timestamp mismatch in :",
        ["  Index timestamp: ", ", log timestamp: "], ["index_timestamp", "log_timestamp"]),
    words(Kind::TimestampOutOfOrder, "timestamp-out-of-order", "Found out of order timestamp in :",
        ["  Index timestamp: ", ", Previously indexed timestamp: "], ["index_timestamp", "previous_timestamp"]),
    words(Kind::OffsetNotFound, "offset-not-found", "The following indexed offsets are not found in :",
        ["Indexed offset: ", ", found log offset: "], ["index_offset", "log_offset"]),
    words(Kind::NonConsecutive, "non-consecutive-offsets", "Non-consecutive offsets in ",
        ["  ", " is followed by "], ["offset", "next_offset"]),
];

const fn words(kind: Kind, name: &'static str, title: &'static str, entry: [&'static str; 2], fields: [&'static str; 2]) -> Words {
    Words { kind, name, title, entry, fields }
}

/// What is odd about one file.
#[derive(Debug, Default)]
pub(super) struct Findings(BTreeMap<Kind, Pairs>);

impl Findings {
    /// Adds a pair behind the others of its kind.
    pub(super) fn add(&mut self, kind: Kind, first: i64, second: i64) {
        self.0.entry(kind).or_default().add(first, second);
    }

    /// Adds a pair where its first number belongs, in place of one of its kind that has the same.
    pub(super) fn put(&mut self, kind: Kind, first: i64, second: i64) {
        self.0.entry(kind).or_default().keep(first, (first, second));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Calls a function for each kind and file that have something to tell, with the pairs in their order and how many more there are.
fn tell(
    files: &[(String, Findings)],
    mut told: impl FnMut(&Words, &str, &mut dyn Iterator<Item = (i64, i64)>, u64) -> io::Result<()>,
) -> io::Result<()> {
    for words in &WORDS {
        for (path, findings) in files {
            let Some(pairs) = findings.0.get(&words.kind) else { continue };
            let kept = pairs.kept.values().copied();
            match words.kind {
                Kind::IndexMismatch => told(words, path, &mut kept.rev(), pairs.more)?,
                _ => told(words, path, &mut { kept }, pairs.more)?,
            }
        }
    }
    Ok(())
}

/// Kind by kind, as Kafka's tool does.
pub(super) fn print_text(files: &[(String, Findings)], err: &mut dyn Write) -> io::Result<()> {
    tell(files, |words, path, pairs, more| {
        writeln!(err, "{}{path}", words.title)?;
        let [before_first, before_second] = words.entry;
        for (first, second) in pairs {
            writeln!(err, "{before_first}{first}{before_second}{second}")?;
        }
        if more > 0 { writeln!(err, "  and {more} more") } else { Ok(()) }
    })
}

/// A line for each entry.
pub(super) fn print_json(files: &[(String, Findings)], out: &mut dyn Write) -> io::Result<()> {
    tell(files, |words, path, pairs, more| {
        let [first_field, second_field] = words.fields;
        for (first, second) in pairs {
            write_line(out, "finding", path, json!({ "finding": words.name, first_field: first, second_field: second }))?;
        }
        if more > 0 {
            write_line(out, "more-findings", path, json!({ "finding": words.name, "count": more }))?;
        }
        Ok(())
    })
}
