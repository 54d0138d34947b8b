//! Differences that are known: a version of Kafka does something else than the one that this project's log follows.
//!
//! A known difference is left out of the comparison and counted. One that never occurs in a run of all stored sequences of the project fails
//! that run, so that the list cannot go stale. `specs/kafka-versions.md` tells of each.

use std::collections::{BTreeMap, BTreeSet};

use crate::adapter::message::Operation;
use crate::adapter::state::{Segment, Snapshot};

/// What differs: the part of the reply, what came here, what came there.
pub type Part = (String, String, String);

/// What is compared where one side has no such file.
pub const NO_FILE: &str = "no such file";

/// What a log that does not load says about an aborted transaction of another version.
const UNEXPECTED_VERSION: &str =
    r#"{"error":{"kind":"exception","name":"KafkaException","message":"Unexpected aborted transaction version "#;

/// The size of a batch without records.
const EMPTY_BATCH_BYTES: u32 = 61;

/// A difference with a name.
#[derive(Debug)]
pub struct Known {
    /// The first version of Kafka that has it, by major and minor number; it is not known that a later one lost it again.
    since: (u32, u32),
    /// The name.
    pub name: &'static str,
    /// Why it is none of this project's log.
    pub reason: &'static str,
    explains: fn(&Operation, &Part) -> bool,
    /// Whether the log cannot be compared any more in that sequence.
    loses_log: bool,
}

const KNOWN: [Known; 4] = [
    Known {
        since: (4, 4),
        name: "index-files-at-close",
        reason: "since 4.4 a clean stop makes the index files of an active segment that has not been appended to",
        explains: |operation, (part, here, there)| {
            matches!(operation, Operation::Files { .. })
                && (part.ends_with(".index") || part.ends_with(".timeindex"))
                && here == NO_FILE
                && there.is_empty()
        },
        loses_log: false,
    },
    Known {
        since: (4, 4),
        name: "aborted-transaction-version",
        reason: "since 4.4 both bytes of an aborted transaction's version are read, and one below 0 is refused too",
        explains: |operation, (part, here, there)| {
            matches!(operation, Operation::Open { .. })
                && part == "outcome"
                && here.starts_with(r#"{"ok":"#)
                && there.starts_with(UNEXPECTED_VERSION)
        },
        loses_log: true,
    },
    Known {
        since: (4, 4),
        name: "expired-marker-batch",
        reason: "since 4.4 a cleaning round leaves nothing of an expired marker, where 4.3 keeps its batch without the record",
        explains: |operation, (part, here, there)| {
            matches!(operation, Operation::Compact { .. }) && part == "segments" && lacks_empty_batches(here, there)
        },
        loses_log: true,
    },
    Known {
        since: (4, 4),
        name: "snapshot-of-an-untouched-segment",
        reason: "since 4.4 a start after a clean stop does not recover an active segment that was never appended to, as its index files are there",
        explains: |operation, (part, here, there)| match operation {
            Operation::Open { clean: true, log_start, .. } => part == "snapshots" && lacks_empty_snapshots(here, there, *log_start),
            _ => false,
        },
        loses_log: true,
    },
];

/// The first two numbers of a version such as `4.4.0`, `4.5.0-SNAPSHOT` or `5.0-rc1`; none if it does not begin with two numbers.
fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-', '+']);
    let mut number = || parts.next().and_then(|part| part.parse().ok());
    Some((number()?, number()?))
}

/// Whether the snapshots there are those here without empty ones up to the log start offset.
fn lacks_empty_snapshots(here: &str, there: &str, log_start: i64) -> bool {
    type Snapshots = Vec<Snapshot>;
    let (Ok(mut here), Ok(there)) = (serde_json::from_str::<Snapshots>(here), serde_json::from_str::<Snapshots>(there)) else {
        return false;
    };
    let count = here.len();
    here.retain(|snapshot| snapshot.offset > log_start || snapshot.producers.as_ref() != Some(&Vec::new()));
    here.len() < count && here == there
}

/// Whether the segments there, by their sizes, can be those here without some batches that hold nothing.
fn lacks_empty_batches(here: &str, there: &str) -> bool {
    type Segments = Vec<Segment>;
    let (Ok(here), Ok(there)) = (serde_json::from_str::<Segments>(here), serde_json::from_str::<Segments>(there)) else {
        return false;
    };
    let lacking = |(here, there): (&Segment, &Segment)| {
        let bytes = here.size.checked_sub(there.size)?;
        (here.base_offset == there.base_offset && bytes % EMPTY_BATCH_BYTES == 0).then_some(bytes)
    };
    let each: Option<Vec<u32>> = here.iter().zip(&there).map(lacking).collect();
    here.len() == there.len() && each.is_some_and(|each| each.iter().any(|bytes| *bytes > 0))
}

/// The known differences of the other side, and how often each has occurred.
#[derive(Debug, Default)]
pub struct Masks {
    counts: BTreeMap<&'static str, (&'static Known, u64)>,
    /// The logs of the present sequence that cannot be compared any more.
    lost: BTreeSet<String>,
}

impl Masks {
    /// Those of a version of Kafka; none of another implementation.
    #[must_use]
    pub fn of(implementation: &str, version: &str) -> Self {
        let version = if implementation == "apache-kafka" { major_and_minor(version) } else { None };
        let fits = |known: &&Known| version.is_some_and(|version| version >= known.since);
        Self { counts: KNOWN.iter().filter(fits).map(|known| (known.name, (known, 0))).collect(), lost: BTreeSet::new() }
    }

    /// Another sequence begins.
    pub fn begin(&mut self) {
        self.lost.clear();
    }

    /// Takes out the parts that a known difference explains, and counts them.
    pub fn remove(&mut self, operation: &Operation, parts: &mut Vec<Part>) {
        for (known, count) in self.counts.values_mut() {
            let before = parts.len();
            parts.retain(|part| !(known.explains)(operation, part));
            if parts.len() < before {
                *count = count.saturating_add(1);
                self.lost.extend(operation.log().filter(|_| known.loses_log).map(ToOwned::to_owned));
            }
        }
        if operation.log().is_some_and(|log| self.lost.contains(log)) {
            parts.clear();
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
        for (version, left, counted) in [
            (
                "4.4.0",
                2,
                vec![
                    ("aborted-transaction-version", 0),
                    ("expired-marker-batch", 0),
                    ("index-files-at-close", 1),
                    ("snapshot-of-an-untouched-segment", 0),
                ],
            ),
            ("4.3.1", 4, vec![]),
        ] {
            let (mut masks, mut parts) = (Masks::of("apache-kafka", version), all.clone());
            masks.remove(&files, &mut parts);
            assert_eq!(parts.len(), left);
            assert_eq!(masks.counts().map(|(known, count)| (known.name, count)).collect::<Vec<_>>(), counted);
        }
    }

    #[test]
    fn a_known_difference_holds_from_a_version_on() {
        let count = |implementation: &str, version: &str| Masks::of(implementation, version).counts().count();
        for later in ["4.4.0", "4.4.0-SNAPSHOT", "4.4-rc1", "4.5.0-SNAPSHOT", "4.10.0", "5.0.0", "5.0.0-SNAPSHOT", "10.0"] {
            assert_eq!(count("apache-kafka", later), KNOWN.len(), "{later}");
        }
        for earlier in
            ["4.3.1", "4.3.1-SNAPSHOT", "4.3.10", "3.9.0", "3.44.0", "4", "", "trunk", "4.x", "x.4.4", "-4.4", "99999999999.4"]
        {
            assert_eq!(count("apache-kafka", earlier), 0, "{earlier}");
        }
        assert_eq!(count("another", "4.4.0"), 0);
    }

    #[test]
    fn only_empty_batches_may_be_lacking() {
        let segments = |sizes: &[u32]| -> String {
            let each: Vec<String> =
                sizes.iter().enumerate().map(|(n, size)| format!(r#"{{"base_offset":{n},"size":{size}}}"#)).collect();
            format!("[{}]", each.join(","))
        };
        let lacks = |here: &[u32], there: &[u32]| lacks_empty_batches(&segments(here), &segments(there));
        assert!(lacks(&[200, 300], &[200, 178]));
        for (here, there) in
            [(&[200, 300][..], &[200, 300][..]), (&[200, 300], &[261, 300]), (&[200, 300], &[200, 299]), (&[200], &[])]
        {
            assert!(!lacks(here, there), "{here:?} {there:?}");
        }
    }

    #[test]
    fn only_empty_snapshots_up_to_the_log_start_may_be_lacking() {
        let (first, second) = (r#"{"offset":1,"producers":[]}"#, r#"{"offset":2,"producers":[]}"#);
        let here = format!("[{first},{second}]");
        for (there, log_start, lacks) in [
            ("[]".to_owned(), 2, true),
            (format!("[{second}]"), 1, true),
            (here.clone(), 2, false),
            ("[]".to_owned(), 1, false),
            (format!("[{first}]"), 2, false),
        ] {
            assert_eq!(lacks_empty_snapshots(&here, &there, log_start), lacks, "{there} {log_start}");
        }
    }

    #[test]
    fn a_log_that_is_lost_is_so_for_the_rest_of_its_sequence() {
        let open = |log: &str| Operation::Open { log: log.to_owned(), clean: true, recovery_point: 0, log_start: 0, now_ms: None };
        let part = |there: &str| ("outcome".to_owned(), r#"{"ok":{}}"#.to_owned(), there.to_owned());
        let mut masks = Masks::of("apache-kafka", "4.4.0");
        let mut left = |operation: &Operation, there: &str, begins: bool| {
            if begins {
                masks.begin();
            }
            let mut parts = vec![part(there)];
            masks.remove(operation, &mut parts);
            parts.len()
        };
        assert_eq!(left(&open("A"), r#"{"error":{"kind":"exception","name":"KafkaException","message":"another"}}"#, true), 1);
        assert_eq!(left(&open("A"), &format!("{UNEXPECTED_VERSION}1 in ...\"}}}}"), false), 0);
        assert_eq!((left(&open("A"), "X", false), left(&open("B"), "X", false), left(&open("A"), "X", true)), (0, 1, 1));
    }
}
