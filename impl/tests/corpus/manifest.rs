//! The manifest of the corpus and its files.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cleanslate_log::psm::ProducerStateEntry;
use serde::Deserialize;

/// Everything that the tests know of the files.
#[derive(Deserialize)]
pub(crate) struct Manifest {
    pub(crate) cases: Vec<Case>,
}

/// Files that were made together. Paths begin in the directory of the corpus.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) topic_config: BTreeMap<String, String>,
    pub(crate) directories: Vec<Directory>,
    /// The logs that cannot be read to their end.
    pub(crate) damaged: BTreeMap<String, Damage>,
    pub(crate) snapshots: BTreeMap<String, Vec<Producer>>,
    pub(crate) leader_epochs: BTreeMap<String, Vec<(i32, i64)>>,
    pub(crate) txn_indexes: BTreeMap<String, Vec<Aborted>>,
}

/// Where the first batch begins that is not whole and valid, and what is wrong with it: `cut`, `size` or `CRC`.
#[derive(Deserialize)]
pub(crate) struct Damage {
    pub(crate) at: usize,
    pub(crate) what: String,
}

#[derive(Deserialize)]
pub(crate) struct Directory {
    pub(crate) path: String,
    pub(crate) loads: Vec<Load>,
}

/// What Kafka made of the directory: a state, or the class of an exception.
#[derive(Deserialize)]
pub(crate) struct Load {
    pub(crate) mode: String,
    pub(crate) recovery_point: i64,
    pub(crate) log_start_offset_checkpoint: i64,
    pub(crate) clock_ms: i64,
    pub(crate) state: Option<State>,
    pub(crate) error: Option<String>,
    /// The SHA-256 of each file after the log was closed again.
    #[serde(default)]
    pub(crate) files_after: BTreeMap<String, String>,
}

/// A log after it was opened. The last stable offset is that with everything replicated.
#[derive(Debug, Deserialize)]
pub(crate) struct State {
    pub(crate) log_start_offset: i64,
    pub(crate) log_end_offset: i64,
    pub(crate) last_stable_offset: i64,
    pub(crate) map_end_offset: i64,
    pub(crate) leader_epochs: Vec<(i32, i64)>,
    pub(crate) producers: Vec<Producer>,
    pub(crate) aborted: Vec<Aborted>,
    /// Base offset and size in bytes.
    pub(crate) segments: Vec<(i64, u64)>,
}

/// Producer id, first offset, last offset, last stable offset.
pub(crate) type Aborted = (i64, i64, i64, i64);

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Producer {
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    last_timestamp: i64,
    current_txn_first_offset: Option<i64>,
    batches: Vec<Batch>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Batch {
    first_offset: i64,
    first_sequence: i32,
    last_offset: i64,
    last_sequence: i32,
    timestamp: i64,
}

impl From<&ProducerStateEntry> for Producer {
    fn from(entry: &ProducerStateEntry) -> Self {
        let batches = entry.batches().iter().map(|batch| Batch {
            first_offset: batch.first_offset().get(),
            first_sequence: batch.first_sequence().get(),
            last_offset: batch.last_offset.get(),
            last_sequence: batch.last_sequence.get(),
            timestamp: batch.timestamp.get(),
        });
        Self {
            producer_id: entry.producer_id.get(),
            producer_epoch: entry.producer_epoch.get(),
            coordinator_epoch: entry.coordinator_epoch.get(),
            last_timestamp: entry.last_timestamp.get(),
            current_txn_first_offset: entry.current_txn_first_offset.map(|offset| offset.get()),
            batches: batches.collect(),
        }
    }
}

impl Manifest {
    pub(crate) fn load() -> Self {
        serde_json::from_slice(&std::fs::read(root().join("manifest.json")).unwrap()).unwrap()
    }

    pub(crate) fn directories(&self) -> impl Iterator<Item = (&Case, &Directory)> {
        self.cases.iter().flat_map(|case| case.directories.iter().map(move |directory| (case, directory)))
    }
}

impl Directory {
    /// A directory of which the manifest knows nothing.
    pub(crate) fn at(path: &str) -> Self {
        Self { path: path.to_owned(), loads: Vec::new() }
    }

    /// The files with their names, decompressed, ascending.
    pub(crate) fn files(&self) -> Vec<(String, Bytes)> {
        let entries = std::fs::read_dir(root().join(&self.path)).unwrap();
        let mut files: Vec<_> = entries.map(|entry| read(&entry.unwrap().path())).collect();
        files.sort();
        files
    }

    /// As [`Directory::files`], those with this suffix, with paths.
    pub(crate) fn files_of(&self, suffix: &str) -> Vec<(String, Bytes)> {
        let files = self.files().into_iter().filter(|(name, _)| name.ends_with(suffix));
        files.map(|(name, bytes)| (format!("{}/{name}", self.path), bytes)).collect()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn read(path: &Path) -> (String, Bytes) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let bytes = std::fs::read(path).unwrap();
    let Some(plain) = name.strip_suffix(".gz") else {
        return (name.to_owned(), bytes.into());
    };
    let mut inflated = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut inflated).unwrap();
    (plain.to_owned(), inflated.into())
}
