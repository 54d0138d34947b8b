//! Differences that are known: a version of Kafka does something else than the one that this project's log follows.
//!
//! A known difference is left out of the comparison and counted. One that never occurs in a run of the stored and random sequences fails
//! that run, so that the list cannot go stale. `specs/kafka-versions.md` tells of each.

use std::collections::BTreeMap;

use crate::adapter::message::Operation;

/// What differs: the part of the reply, what came here, what came there.
pub type Part = (String, String, String);

/// What is compared where one side has no such file.
pub const NO_FILE: &str = "no such file";

/// A difference with a name.
#[derive(Debug)]
pub struct Known {
    /// The versions of Kafka, by their beginning.
    versions: &'static str,
    /// The name.
    pub name: &'static str,
    /// Why it is none of this project's log.
    pub reason: &'static str,
    explains: fn(&Operation, &Part) -> bool,
}

const KNOWN: [Known; 1] = [Known {
    versions: "4.4.",
    name: "index-files-at-close",
    reason: "since 4.4 a clean stop makes the index files of an active segment that has not been appended to",
    explains: |operation, (part, here, there)| {
        matches!(operation, Operation::Files { .. })
            && (part.ends_with(".index") || part.ends_with(".timeindex"))
            && here == NO_FILE
            && there.is_empty()
    },
}];

/// The known differences of the other side, and how often each has occurred.
#[derive(Debug, Default)]
pub struct Masks {
    counts: BTreeMap<&'static str, (&'static Known, u64)>,
}

impl Masks {
    /// Those of a version of Kafka; none of another implementation.
    #[must_use]
    pub fn of(implementation: &str, version: &str) -> Self {
        let fits = |known: &&Known| implementation == "apache-kafka" && version.starts_with(known.versions);
        Self { counts: KNOWN.iter().filter(fits).map(|known| (known.name, (known, 0))).collect() }
    }

    /// Takes out the parts that a known difference explains, and counts them.
    pub fn remove(&mut self, operation: &Operation, parts: &mut Vec<Part>) {
        for (known, count) in self.counts.values_mut() {
            let before = parts.len();
            parts.retain(|part| !(known.explains)(operation, part));
            *count = count.saturating_add(u64::from(parts.len() < before));
        }
    }

    /// The known differences with their counts, in order of name.
    pub fn counts(&self) -> impl Iterator<Item = (&'static Known, u64)> {
        self.counts.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_difference_is_taken_out_and_counted_for_its_version_only() {
        let files = Operation::Files { log: "A".to_owned(), content: true };
        let part = |name: &str, there: &str| (name.to_owned(), NO_FILE.to_owned(), there.to_owned());
        let all = vec![part("file 0.index", ""), part("file 0.timeindex", ""), part("file 0.index", "00"), part("file 0.log", "")];
        for (version, left, counted) in [("4.4.0", 2, vec![1]), ("4.3.1", 4, vec![])] {
            let (mut masks, mut parts) = (Masks::of("apache-kafka", version), all.clone());
            masks.remove(&files, &mut parts);
            assert_eq!(parts.len(), left);
            assert_eq!(masks.counts().map(|(_, count)| count).collect::<Vec<_>>(), counted);
        }
    }
}
