//! What a mirror remembers durably, beside the log.
//!
//! ```text
//! 0
//! state MIRRORING
//! source-cluster <id>          left out when there is none, and so on
//! last-mirrored-offset <offset>
//! last-mirrored-epoch <leader epoch>
//! failed-from <state>
//! failed-attempts <number>     -1: not to be tried again
//! state-epoch <number>
//! ```

use std::fmt::Write as _;
use std::str::FromStr;

use bytes::Bytes;

use super::machine::{FailedAttempts, MirrorStatus};
use super::state::MirrorState;
use crate::log::LogError;
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset};

/// The file.
pub const MIRROR_METADATA_FILE: &str = "mirror-metadata";

/// Longest id of a cluster, in bytes: that of a string in a record.
const MAX_CLUSTER_ID_BYTES: usize = 32767;

/// What a mirror remembers durably. The default is that of a partition which was never a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorMetadata {
    /// The state.
    pub state: MirrorState,
    /// The cluster that is mirrored, or was mirrored last.
    pub source_cluster: Option<String>,
    /// The offset behind the last mirrored record, from the last stop.
    pub last_mirrored_offset: Option<Offset>,
    /// The leader epoch of the last mirrored record, from the last stop.
    pub last_mirrored_epoch: Option<LeaderEpoch>,
    /// The state that failed, while the state is FAILED.
    pub failed_from: Option<MirrorState>,
    /// How often in a row it has failed.
    pub failed_attempts: FailedAttempts,
    /// How often the status was stored: a version, which fences tasks of an earlier one.
    pub state_epoch: i32,
}

/// Why mirror metadata cannot be read or written; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
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
    /// The id of a cluster is not empty, holds no control characters, and has 32767 bytes at most.
    #[error("cluster id of {bytes} bytes, expected 1 to 32767 without control characters")]
    ClusterId {
        /// The length of the id, in bytes.
        bytes: usize,
    },
}

impl MirrorMetadata {
    /// What the state machine sees of it.
    #[must_use]
    pub fn status(&self) -> MirrorStatus {
        MirrorStatus { state: self.state, failed_from: self.failed_from, failed_attempts: self.failed_attempts }
    }

    /// What a mirror in the other direction is told: only what was recorded about its own cluster. The last mirrored epoch
    /// of a third cluster says nothing about where these two logs part (ALI-13).
    #[must_use]
    pub fn recorded_for(&self, cluster: &str) -> Self {
        if self.source_cluster.as_deref() == Some(cluster) { self.clone() } else { Self::default() }
    }

    /// The same with another status, as a new version.
    #[must_use]
    pub(super) fn with_status(&self, status: &MirrorStatus) -> Self {
        let mut next = self.clone();
        next.state = status.state;
        next.failed_from = status.failed_from;
        next.failed_attempts = status.failed_attempts;
        next.state_epoch = next.state_epoch.saturating_add(1);
        next
    }

    /// Reads the metadata of a storage; the default when there is none.
    ///
    /// # Errors
    /// When the storage fails, or the file cannot be read.
    pub fn load(storage: &impl Storage) -> Result<Self, LogError> {
        match storage.read_all(MIRROR_METADATA_FILE)? {
            Some(file) => Ok(Self::decode(&file)?),
            None => Ok(Self::default()),
        }
    }

    /// Writes the metadata into a storage, durably and all at once.
    ///
    /// # Errors
    /// When the id of the source cluster cannot be stored, or the storage fails.
    pub fn store(&self, storage: &mut impl Storage) -> Result<(), LogError> {
        let bytes = self.encode()?;
        storage.replace(MIRROR_METADATA_FILE, &bytes)?;
        Ok(())
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// [`MetadataError::ClusterId`].
    pub fn encode(&self) -> Result<Bytes, MetadataError> {
        let mut text = format!("0\nstate {}\n", self.state);
        // Writing to a string cannot fail.
        if let Some(id) = &self.source_cluster {
            check_cluster_id(id)?;
            let _ = writeln!(text, "source-cluster {id}");
        }
        if let Some(offset) = self.last_mirrored_offset {
            let _ = writeln!(text, "last-mirrored-offset {offset}");
        }
        if let Some(epoch) = self.last_mirrored_epoch {
            let _ = writeln!(text, "last-mirrored-epoch {epoch}");
        }
        if let Some(state) = self.failed_from {
            let _ = writeln!(text, "failed-from {state}");
        }
        if self.failed_attempts != FailedAttempts::default() {
            let _ = writeln!(text, "failed-attempts {}", self.failed_attempts.0);
        }
        if self.state_epoch != 0 {
            let _ = writeln!(text, "state-epoch {}", self.state_epoch);
        }
        Ok(Bytes::from(text))
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// When they are not what [`MirrorMetadata::encode`] writes.
    pub fn decode(file: &Bytes) -> Result<Self, MetadataError> {
        let text = std::str::from_utf8(file).map_err(|_| MetadataError::NotText)?;
        let mut lines = text.split_terminator('\n').enumerate();
        if lines.next().is_none_or(|(_, version)| version != "0") {
            return Err(MetadataError::Version);
        }
        let mut metadata = Self::default();
        for (index, line) in lines {
            let line_number = index.saturating_add(1);
            metadata.decode_line(line, line_number)?;
        }
        Ok(metadata)
    }

    fn decode_line(&mut self, text: &str, line: usize) -> Result<(), MetadataError> {
        let wrong = |expected| MetadataError::Line { line, expected };
        let (key, value) = text.split_once(' ').ok_or_else(|| wrong("a key and a value"))?;
        match key {
            "state" => self.state = parse(value).ok_or_else(|| wrong("a mirror state"))?,
            "source-cluster" => {
                check_cluster_id(value)?;
                self.source_cluster = Some(value.to_owned());
            }
            "last-mirrored-offset" => {
                let offset = parse(value).ok_or_else(|| wrong("an offset"))?;
                self.last_mirrored_offset = Some(Offset(offset));
            }
            "last-mirrored-epoch" => {
                let epoch = parse(value).ok_or_else(|| wrong("a leader epoch"))?;
                self.last_mirrored_epoch = Some(LeaderEpoch(epoch));
            }
            "failed-from" => {
                let state = parse(value).ok_or_else(|| wrong("a mirror state"))?;
                self.failed_from = Some(state);
            }
            "failed-attempts" => {
                let attempts = parse(value).filter(|attempts| *attempts >= -1);
                self.failed_attempts = FailedAttempts(attempts.ok_or_else(|| wrong("a number of attempts, or -1"))?);
            }
            "state-epoch" => self.state_epoch = parse(value).ok_or_else(|| wrong("a state epoch"))?,
            _ => return Err(wrong("a known key")),
        }
        Ok(())
    }
}

fn parse<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn check_cluster_id(id: &str) -> Result<(), MetadataError> {
    let bytes = id.len();
    if bytes == 0 || bytes > MAX_CLUSTER_ID_BYTES || id.chars().any(char::is_control) {
        return Err(MetadataError::ClusterId { bytes });
    }
    Ok(())
}
