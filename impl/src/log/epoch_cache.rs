//! Leader epochs and the offsets at which they begin (Kafka: `LeaderEpochFileCache`).

use std::fmt::Write as _;

use bytes::Bytes;

use crate::types::{LeaderEpoch, Offset};

/// A leader epoch and the offset of its first batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// Where it begins.
    pub start_offset: Offset,
}

/// The entries ascend in both epoch and start offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeaderEpochCache {
    entries: Vec<EpochEntry>,
}

/// Leader epochs are 0 or above (Kafka: `IllegalArgumentException`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("leader epoch {0}, expected 0 or above")]
pub struct NegativeEpoch(pub LeaderEpoch);

/// Why a checkpoint file cannot be read; lines count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochCheckpointError {
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    NotText,
    /// The first line is not 0.
    #[error("line 1: expected version 0")]
    Version,
    /// A line is not of the form that it should have.
    #[error("line {line}: expected {expected}")]
    Line {
        /// The line.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// A line has two words, but not an epoch and an offset.
    #[error("line {line}: expected two numbers")]
    Number {
        /// The line.
        line: usize,
    },
    /// A line, or the count, has a number below 0.
    #[error("line {line}: expected no number below 0")]
    Negative {
        /// The line.
        line: usize,
    },
    /// There are more or fewer entries than the second line says.
    #[error("{found} entries, expected {expected}")]
    Count {
        /// The count in the second line.
        expected: usize,
        /// The entries that are there.
        found: usize,
    },
}

impl EpochCheckpointError {
    /// The simple name of the exception class that Kafka throws in this case (`CheckpointFile`, `LeaderEpochFileCache`).
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::NotText | Self::Version | Self::Line { .. } | Self::Count { .. } => "KafkaStorageException",
            Self::Number { .. } => "NumberFormatException",
            Self::Negative { .. } => "IllegalArgumentException",
        }
    }
}

impl LeaderEpochCache {
    /// The entries, ascending.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The newest epoch.
    #[must_use]
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.epoch)
    }

    /// Notes that a batch of this epoch begins at this offset; returns whether that changed anything. Entries that are
    /// no longer below both are dropped.
    ///
    /// # Errors
    /// When the epoch or the offset is negative.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> Result<bool, NegativeEpoch> {
        if epoch < LeaderEpoch(0) || start_offset < Offset(0) {
            return Err(NegativeEpoch(epoch));
        }
        let known = self.entries.last().is_some_and(|last| last.epoch == epoch && start_offset >= last.start_offset);
        if known {
            return Ok(false);
        }
        self.entries.retain(|entry| entry.epoch < epoch && entry.start_offset < start_offset);
        self.entries.push(EpochEntry { epoch, start_offset });
        Ok(true)
    }

    /// Forgets everything; returns whether there was anything (Kafka: `clearAndFlush`, without the flush).
    pub fn clear(&mut self) -> bool {
        let had_any = !self.entries.is_empty();
        self.entries.clear();
        had_any
    }

    /// Drops the epochs that begin at or behind an offset; returns whether that changed anything.
    pub fn truncate_from_end(&mut self, end_offset: Offset) -> bool {
        let before = self.entries.len();
        if end_offset >= Offset(0) {
            self.entries.retain(|entry| entry.start_offset < end_offset);
        }
        self.entries.len() != before
    }

    /// Drops what lies before an offset: the last epoch that begins at or below it begins there from now on. Returns
    /// whether that changed anything.
    pub fn truncate_from_start(&mut self, start_offset: Offset) -> bool {
        let below = self.entries.iter().rposition(|entry| entry.start_offset <= start_offset);
        let Some(index) = below.filter(|_| start_offset >= Offset(0)) else {
            return false;
        };
        self.entries.drain(..index);
        match self.entries.first_mut() {
            Some(first) => {
                let moved = first.start_offset != start_offset || index > 0;
                first.start_offset = start_offset;
                moved
            }
            None => false,
        }
    }

    /// The largest epoch at or below the one asked for, and where it ends: at the beginning of the next one, or at the
    /// log end offset. `None` when nothing is known. For an epoch below all, the answer is that epoch and the beginning
    /// of the first.
    #[must_use]
    pub fn end_offset_for(&self, epoch: LeaderEpoch, log_end_offset: Offset) -> Option<(LeaderEpoch, Offset)> {
        if epoch < LeaderEpoch(0) {
            return None;
        }
        if self.latest_epoch() == Some(epoch) {
            return Some((epoch, log_end_offset));
        }
        let higher = self.entries.iter().find(|entry| entry.epoch > epoch)?;
        let floor = self.entries.iter().rev().find(|entry| entry.epoch <= epoch);
        Some((floor.map_or(epoch, |entry| entry.epoch), higher.start_offset))
    }

    /// The epoch of the batch at an offset.
    #[must_use]
    pub fn epoch_for_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        let mut below = self.entries.iter().rev();
        below.find(|entry| entry.start_offset <= offset).map(|entry| entry.epoch)
    }

    /// The largest epoch below this one.
    #[must_use]
    pub fn previous_epoch(&self, epoch: LeaderEpoch) -> Option<LeaderEpoch> {
        self.previous_entry(epoch).map(|entry| entry.epoch)
    }

    /// The entry of the largest epoch below this one.
    #[must_use]
    pub fn previous_entry(&self, epoch: LeaderEpoch) -> Option<EpochEntry> {
        self.entries.iter().rev().find(|entry| entry.epoch < epoch).copied()
    }

    /// The smallest epoch above this one.
    #[must_use]
    pub fn next_epoch(&self, epoch: LeaderEpoch) -> Option<LeaderEpoch> {
        self.entries.iter().map(|entry| entry.epoch).find(|known| *known > epoch)
    }

    /// The entry of this epoch.
    #[must_use]
    pub fn entry(&self, epoch: LeaderEpoch) -> Option<EpochEntry> {
        self.entries.iter().find(|entry| entry.epoch == epoch).copied()
    }

    /// The checkpoint file: version 0, the count, and an epoch and an offset a line.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut text = format!("0\n{}\n", self.entries.len());
        for entry in &self.entries {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {}", entry.epoch, entry.start_offset);
        }
        Bytes::from(text)
    }

    /// Reads a checkpoint file; an empty one holds no entries. Entries that do not ascend are no error: each is assigned after the one
    /// before, as in [`LeaderEpochCache::assign`].
    ///
    /// # Errors
    /// When the file is not of the form that [`LeaderEpochCache::encode`] writes.
    pub fn decode(file: &Bytes) -> Result<Self, EpochCheckpointError> {
        let text = std::str::from_utf8(file).map_err(|_| EpochCheckpointError::NotText)?;
        let mut lines = text.lines();
        match lines.next().map(str::parse) {
            None => return Ok(Self::default()),
            Some(Ok(0_i32)) => {}
            Some(_) => return Err(EpochCheckpointError::Version),
        }
        let Some(count) = lines.next() else {
            return Ok(Self::default());
        };
        let count: i32 = count.parse().map_err(|_| EpochCheckpointError::Line { line: 2, expected: "a count" })?;
        let expected = usize::try_from(count).map_err(|_| EpochCheckpointError::Negative { line: 2 })?;
        // Kafka reads all lines before it looks at one.
        let lines = lines.enumerate().map(|(index, line)| (index.saturating_add(3), line));
        let entries = lines.map(|(number, line)| decode_line(number, line).map(|entry| (number, entry)));
        let entries = entries.collect::<Result<Vec<(usize, EpochEntry)>, EpochCheckpointError>>()?;
        if entries.len() != expected {
            return Err(EpochCheckpointError::Count { expected, found: entries.len() });
        }
        let mut cache = Self::default();
        for (line, entry) in entries {
            cache.assign(entry.epoch, entry.start_offset).map_err(|_| EpochCheckpointError::Negative { line })?;
        }
        Ok(cache)
    }
}

/// Two numbers apart by what Java's `\s` matches; a blank in front makes an empty word, blanks behind make none.
fn decode_line(line: usize, text: &str) -> Result<EpochEntry, EpochCheckpointError> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r');
    let (begins_blank, mut words) = (text.starts_with(is_blank), text.split(is_blank).filter(|word| !word.is_empty()));
    let first = if begins_blank { Some("") } else { words.next() };
    match (first, words.next(), words.next()) {
        (Some(epoch), Some(start_offset), None) => {
            let wrong = |_| EpochCheckpointError::Number { line };
            let epoch = LeaderEpoch(epoch.parse().map_err(wrong)?);
            Ok(EpochEntry { epoch, start_offset: Offset(start_offset.parse().map_err(wrong)?) })
        }
        _ => Err(EpochCheckpointError::Line { line, expected: "an epoch and an offset" }),
    }
}
