//! What a log is made with.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::barrier::BarrierPolicy;
use crate::psm::{ProducerIdVisibility, ProducerStateManager};
use crate::record::{Compression, TimestampType};
use crate::types::Offset;

/// Settings of a log. The default is that of stock Kafka 4.3.1, except that transactions are not verified, nothing
/// is deleted for its age, and what is deleted is gone at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// What a barrier does.
    pub barrier: BarrierPolicy,
    /// Which producer ids state is kept for.
    pub ids: ProducerIdVisibility,
    /// How long a producer is remembered after its last batch, in milliseconds (`producer.id.expiration.ms`).
    pub producer_id_expiration_ms: i64,
    /// Whether a client's transactional batch needs a verified transaction
    /// (`transaction.partition.verification.enable`).
    pub transaction_verification: bool,
    /// Size of the largest batch that a leader appends, in bytes (`max.message.bytes`).
    pub max_message_bytes: usize,
    /// Size of a segment at which another one begins, and of the largest append, in bytes (`segment.bytes`). More than 2147483647
    /// counts as that.
    pub segment_bytes: usize,
    /// Time after which another segment begins, in milliseconds of the records' timestamps (`segment.ms`).
    pub segment_ms: i64,
    /// By how much a segment may end earlier than `segment_ms` tells, so that not all logs begin one at once, in milliseconds
    /// (`segment.jitter.ms`).
    pub segment_jitter_ms: i64,
    /// What the jitter of each segment is drawn from: a log has no randomness of its own.
    pub segment_jitter_seed: u64,
    /// Whether the file of a new segment is as long as a segment may be from the beginning on, until it is the active one no more
    /// or the log is stopped (`preallocate`). After a crash the rest of it is zeros, which recovery cuts.
    pub preallocate: bool,
    /// Size of the files of offset and time index of the active segment, in bytes (`segment.index.bytes`).
    pub segment_index_bytes: usize,
    /// Bytes of batches between two entries of an index (`index.interval.bytes`).
    pub index_interval_bytes: usize,
    /// How far a record's timestamp may be ahead of the clock when a leader appends it, in milliseconds
    /// (`message.timestamp.after.max.ms`).
    pub timestamp_after_max_ms: i64,
    /// How far a record's timestamp may be behind the clock when a leader appends it, in milliseconds
    /// (`message.timestamp.before.max.ms`).
    pub timestamp_before_max_ms: i64,
    /// Whose time records carry (`message.timestamp.type`).
    pub timestamp_type: TimestampType,
    /// The codec of appended batches; `None` leaves it to the producer (`compression.type`).
    pub compression: Option<Compression>,
    /// Size of the largest record set that is decompressed, in bytes.
    pub max_decompressed_bytes: usize,
    /// Whether records are removed that a later one with the same key replaces (`cleanup.policy`).
    pub compact: bool,
    /// Whether old segments are deleted (`cleanup.policy`).
    pub delete: bool,
    /// Age at which a segment is deleted, in milliseconds; negative for never (`retention.ms`).
    pub retention_ms: i64,
    /// Size of the log above which its oldest segments are deleted, in bytes; negative for none (`retention.bytes`).
    pub retention_bytes: i64,
    /// How long tombstones and markers are kept by compaction, in milliseconds (`delete.retention.ms`).
    pub delete_retention_ms: i64,
    /// How long the files of deleted segments, and their snapshots, are kept under another name, in milliseconds
    /// (`file.delete.delay.ms`); `None` to remove them at once. See [`super::PartitionLog::remove_deleted_files`].
    pub file_delete_delay_ms: Option<i64>,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            barrier: BarrierPolicy::default(),
            ids: ProducerIdVisibility::default(),
            producer_id_expiration_ms: 86_400_000,
            transaction_verification: false,
            max_message_bytes: 1_048_588,
            segment_bytes: 1 << 30,
            segment_ms: 7 * 86_400_000,
            segment_jitter_ms: 0,
            segment_jitter_seed: 0,
            preallocate: false,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            timestamp_after_max_ms: 3_600_000,
            timestamp_before_max_ms: i64::MAX,
            timestamp_type: TimestampType::CreateTime,
            compression: None,
            max_decompressed_bytes: crate::record::DEFAULT_MAX_DECOMPRESSED_BYTES,
            compact: false,
            delete: true,
            retention_ms: -1,
            retention_bytes: -1,
            delete_retention_ms: 86_400_000,
            file_delete_delay_ms: None,
        }
    }
}

impl LogConfig {
    /// By how much the segment with this base offset ends earlier than `segment_ms` tells, in milliseconds: 0 or more, and less than both
    /// `segment_jitter_ms` and `segment_ms` (Kafka: `randomSegmentJitter`).
    #[must_use]
    pub fn roll_jitter_ms(&self, base_offset: Offset) -> i64 {
        let bound = u64::try_from(self.segment_jitter_ms.min(self.segment_ms)).unwrap_or(0);
        let mut drawn = DefaultHasher::new();
        (self.segment_jitter_seed, base_offset).hash(&mut drawn);
        drawn.finish().checked_rem(bound).and_then(|jitter| i64::try_from(jitter).ok()).unwrap_or(0)
    }

    /// The state of a log without producers.
    pub(super) fn new_producer_state(&self) -> ProducerStateManager {
        ProducerStateManager::new(self.ids, self.producer_id_expiration_ms)
    }
}

/// How a log is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// After an orderly stop: the bytes are trusted, producer state comes from the newest snapshot and a replay of what
    /// follows it.
    Clean,
    /// After a crash: the batches of the segments that may not be durable are checked, the log is cut at the first that
    /// is torn or corrupt, and producer state is rebuilt.
    Unclean,
}

/// How a log is opened, and what a broker keeps of it outside its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpenOptions {
    /// After which kind of stop.
    pub recovery: Recovery,
    /// Everything below was durable (`recovery-point-offset-checkpoint`). The segment that holds it is recovered too.
    pub recovery_point: Offset,
    /// The log start offset (`log-start-offset-checkpoint`).
    pub log_start_offset: Offset,
}

impl OpenOptions {
    /// A log of which nothing is known outside its directory.
    #[must_use]
    pub fn new(recovery: Recovery) -> Self {
        let zero = Offset(0);
        Self { recovery, recovery_point: zero, log_start_offset: zero }
    }
}

impl From<Recovery> for OpenOptions {
    fn from(recovery: Recovery) -> Self {
        Self::new(recovery)
    }
}

/// The most bytes of a segment, as Kafka's files have positions of 31 bits (`FileRecords`).
pub(super) const MAX_SEGMENT_BYTES: usize = i32::MAX as usize;

impl LogConfig {
    /// Size of the largest segment in bytes, whatever the setting says.
    pub(super) fn max_segment_bytes(&self) -> usize {
        self.segment_bytes.min(MAX_SEGMENT_BYTES)
    }

    /// How long the file of a new segment is, in bytes, before anything is in it; `None` where it grows with its content (Kafka:
    /// `initFileSize`).
    pub(super) fn init_file_size(&self) -> Option<u64> {
        self.preallocate.then_some(self.max_segment_bytes() as u64)
    }
}

/// Up to where a reader may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchIsolation {
    /// The log end offset: followers.
    LogEnd,
    /// The high watermark: read-uncommitted consumers.
    HighWatermark,
    /// The last stable offset: read-committed consumers.
    TxnCommitted,
}
