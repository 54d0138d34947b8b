//! What is odd about the files, told at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::json::{Line, write_line};

/// So many entries are kept for a file and a kind of finding; of the rest only the number. Kafka's tool keeps all.
pub const MAX_FINDINGS: usize = 100_000;

/// Pairs of numbers, of which so many are kept.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// In the order in which they are told.
    kept: BTreeMap<i64, (i64, i64)>,
    more: u64,
}

impl Pairs {
    /// Adds a pair behind the others.
    pub(super) fn add(&mut self, first: i64, second: i64) {
        self.keep(i64::try_from(self.kept.len()).unwrap_or(i64::MAX), (first, second));
    }

    /// Adds a pair where its first number belongs, in place of one that has the same.
    pub(super) fn put(&mut self, first: i64, second: i64) {
        self.keep(first, (first, second));
    }

    fn keep(&mut self, key: i64, pair: (i64, i64)) {
        if self.kept.len() < MAX_FINDINGS || self.kept.contains_key(&key) {
            self.kept.insert(key, pair);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }
}

/// What is odd about one file.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Offset in the index, last offset of the batch that it points at.
    pub(super) index_mismatches: Pairs,
    /// Timestamp in the index, largest of the batch.
    pub(super) timestamp_mismatches: Pairs,
    /// Timestamp in the index, the one before.
    pub(super) timestamps_out_of_order: Pairs,
    /// Offset in the index, last offset of the batch that was found, or -1.
    pub(super) offsets_not_found: Pairs,
    /// Offset of a record, offset of the next.
    pub(super) non_consecutive: Pairs,
}

/// A kind of finding, in the order in which kinds are told.
struct Kind {
    name: &'static str,
    title: &'static str,
    entry: fn(i64, i64) -> String,
    pairs: fn(&Findings) -> &Pairs,
    /// The fields of the pair in JSON.
    fields: (&'static str, &'static str),
    descending: bool,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "index-mismatch",
        title: "Mismatches in :",
        entry: |index, log| format!("  Index offset: {index}, log offset: {log}"),
        pairs: |findings| &findings.index_mismatches,
        fields: ("index_offset", "log_offset"),
        descending: true,
    },
    Kind {
        name: "timestamp-mismatch",
        title: "Found timestamp mismatch in :",
        entry: |index, log| format!("  Index timestamp: {index}, log timestamp: {log}"),
        pairs: |findings| &findings.timestamp_mismatches,
        fields: ("index_timestamp", "log_timestamp"),
        descending: false,
    },
    Kind {
        name: "timestamp-out-of-order",
        title: "Found out of order timestamp in :",
        entry: |index, previous| format!("  Index timestamp: {index}, Previously indexed timestamp: {previous}"),
        pairs: |findings| &findings.timestamps_out_of_order,
        fields: ("index_timestamp", "previous_timestamp"),
        descending: false,
    },
    Kind {
        name: "offset-not-found",
        title: "The following indexed offsets are not found in :",
        entry: |index, log| format!("Indexed offset: {index}, found log offset: {log}"),
        pairs: |findings| &findings.offsets_not_found,
        fields: ("index_offset", "log_offset"),
        descending: false,
    },
    Kind {
        name: "non-consecutive-offsets",
        title: "Non-consecutive offsets in ",
        entry: |first, second| format!("  {first} is followed by {second}"),
        pairs: |findings| &findings.non_consecutive,
        fields: ("offset", "next_offset"),
        descending: false,
    },
];

impl Kind {
    fn entries<'f>(&self, findings: &'f Findings) -> Box<dyn Iterator<Item = (i64, i64)> + 'f> {
        let kept = (self.pairs)(findings).kept.values().copied();
        if self.descending { Box::new(kept.rev()) } else { Box::new(kept) }
    }

    fn more(&self, findings: &Findings) -> u64 {
        (self.pairs)(findings).more
    }
}

impl Findings {
    pub(super) fn is_empty(&self) -> bool {
        KINDS.iter().all(|kind| (kind.pairs)(self).kept.is_empty())
    }
}

/// Kind by kind, as Kafka's tool does.
pub(super) fn print_text(files: &[(String, Findings)], err: &mut dyn Write) -> io::Result<()> {
    for kind in &KINDS {
        for (path, findings) in files {
            let mut entries = kind.entries(findings).peekable();
            if entries.peek().is_some() {
                writeln!(err, "{}{path}", kind.title)?;
            }
            for (first, second) in entries {
                writeln!(err, "{}", (kind.entry)(first, second))?;
            }
            if kind.more(findings) > 0 {
                writeln!(err, "  and {} more", kind.more(findings))?;
            }
        }
    }
    Ok(())
}

/// A line for each entry.
pub(super) fn print_json(files: &[(String, Findings)], out: &mut dyn Write) -> io::Result<()> {
    for kind in &KINDS {
        for (path, findings) in files {
            for (first, second) in kind.entries(findings) {
                let values = [(kind.fields.0, first), (kind.fields.1, second)].into_iter().collect();
                write_line(out, &Line::Finding { file: path, finding: kind.name, values })?;
            }
            if kind.more(findings) > 0 {
                write_line(out, &Line::MoreFindings { file: path, finding: kind.name, count: kind.more(findings) })?;
            }
        }
    }
    Ok(())
}
