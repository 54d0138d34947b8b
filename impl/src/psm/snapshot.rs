//! The `.snapshot` file of producer state (Kafka: schema `ProducerSnapshot`, version 1).
//!
//! ```text
//! i16 version 1 | u32 CRC-32C of what follows | i32 count | count entries of 46 bytes:
//!   i64 producer id | i16 epoch | i32 last sequence | i64 last offset | i32 offset delta | i64 timestamp
//!   | i32 coordinator epoch | i64 first offset of the open transaction, or -1
//! ```
//!
//! Only the newest batch of a producer is stored: last sequence -1, last offset -1 and delta 0 when there is none.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::entry::{BatchMetadata, ProducerStateEntry};
use crate::types::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// The version that is written, and the only one that can be read.
pub const SNAPSHOT_VERSION: i16 = 1;

/// Bytes in front of the entries.
pub(crate) const HEADER_BYTES: usize = 10;
/// Where that begins which the checksum covers.
pub(crate) const CRC_END: usize = 6;
/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: usize = 46;

/// One producer in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotEntry {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its epoch.
    pub producer_epoch: ProducerEpoch,
    /// Last sequence of the newest batch, or -1.
    pub last_sequence: Sequence,
    /// Last offset of the newest batch, or -1.
    pub last_offset: Offset,
    /// Last less first offset of the newest batch, or 0.
    pub offset_delta: i32,
    /// The entry's timestamp, in milliseconds.
    pub timestamp: TimestampMs,
    /// Epoch of the coordinator that wrote the last marker, or -1.
    pub coordinator_epoch: CoordinatorEpoch,
    /// First offset of the open transaction.
    pub current_txn_first_offset: Option<Offset>,
}

/// The content of a snapshot: the order of the entries has no meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerSnapshot {
    /// The producers, in the order of the file.
    pub entries: Vec<SnapshotEntry>,
}

/// Why a file is no producer snapshot (Kafka: `CorruptSnapshotException`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The file has another length than its header says.
    #[error("producer snapshot of {found} bytes, expected {expected}")]
    Length {
        /// The length that the header calls for, in bytes; that of a header when the file is shorter.
        expected: u64,
        /// The length of the file, in bytes.
        found: u64,
    },
    /// The version is not 1.
    #[error("producer snapshot of version {found}, expected 1")]
    Version {
        /// The version.
        found: i16,
    },
    /// The checksum is not that of the bytes.
    #[error("producer snapshot: stored CRC-32C is {stored:08x}, the bytes give {computed:08x}")]
    Crc {
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The count of entries is negative, or larger than the number of bytes behind it.
    #[error("producer snapshot with {found} entries in {available} bytes")]
    Count {
        /// The count.
        found: i32,
        /// The bytes behind it.
        available: u64,
    },
}

impl ProducerSnapshot {
    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut body = BytesMut::with_capacity(4 + self.entries.len().saturating_mul(ENTRY_BYTES));
        body.put_i32(i32::try_from(self.entries.len()).unwrap_or(i32::MAX));
        for entry in &self.entries {
            body.put_i64(entry.producer_id.get());
            body.put_i16(entry.producer_epoch.get());
            body.put_i32(entry.last_sequence.get());
            body.put_i64(entry.last_offset.get());
            body.put_i32(entry.offset_delta);
            body.put_i64(entry.timestamp.get());
            body.put_i32(entry.coordinator_epoch.get());
            body.put_i64(entry.current_txn_first_offset.map_or(-1, Offset::get));
        }
        let mut out = BytesMut::with_capacity(CRC_END + body.len());
        out.put_i16(SNAPSHOT_VERSION);
        out.put_u32(crc32c::crc32c(&body));
        out.extend_from_slice(&body);
        out.freeze()
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// When the file is not whole, of another version, or its checksum is wrong.
    pub fn decode(file: &Bytes) -> Result<Self, SnapshotError> {
        let head = file.slice(..HEADER_BYTES.min(file.len()));
        Self::check(&head, file.len() as u64, || Ok::<_, SnapshotError>(crc32c::crc32c(file.get(CRC_END..).unwrap_or_default())))?;
        let mut rest = file.slice(head.len()..);
        let entries = std::iter::from_fn(|| (rest.len() >= ENTRY_BYTES).then(|| rest.split_to(ENTRY_BYTES)));
        Ok(Self { entries: entries.map(SnapshotEntry::decode).collect() })
    }

    /// Checks a file by its first bytes, its length and the checksum of the others, in the order of Kafka's reader.
    pub(crate) fn check<E: From<SnapshotError>>(
        head: &Bytes,
        len: u64,
        computed_crc: impl FnOnce() -> Result<u32, E>,
    ) -> Result<(), E> {
        let length_is = |expected: usize| SnapshotError::Length { expected: expected as u64, found: len };
        let mut header = head.clone();
        if header.len() < HEADER_BYTES {
            return Err(length_is(HEADER_BYTES).into());
        }
        let version = header.get_i16();
        if version != SNAPSHOT_VERSION {
            return Err(SnapshotError::Version { found: version }.into());
        }
        let stored = header.get_u32();
        let found = header.get_i32();
        let available = len.saturating_sub(HEADER_BYTES as u64);
        let count = usize::try_from(found).ok().filter(|count| *count as u64 <= available);
        let count = count.ok_or(SnapshotError::Count { found, available })?;
        let expected = HEADER_BYTES.saturating_add(count.saturating_mul(ENTRY_BYTES));
        if len < expected as u64 {
            return Err(length_is(expected).into());
        }
        // Kafka has read the entries before it looks at the checksum.
        let computed = computed_crc()?;
        if stored != computed {
            return Err(SnapshotError::Crc { stored, computed }.into());
        }
        if len != expected as u64 {
            return Err(length_is(expected).into());
        }
        Ok(())
    }
}

impl SnapshotEntry {
    /// Reads exactly [`ENTRY_BYTES`].
    pub(crate) fn decode(mut entry: Bytes) -> Self {
        Self {
            producer_id: ProducerId(entry.get_i64()),
            producer_epoch: ProducerEpoch(entry.get_i16()),
            last_sequence: Sequence(entry.get_i32()),
            last_offset: Offset(entry.get_i64()),
            offset_delta: entry.get_i32(),
            timestamp: TimestampMs(entry.get_i64()),
            coordinator_epoch: CoordinatorEpoch(entry.get_i32()),
            current_txn_first_offset: Some(Offset(entry.get_i64())).filter(|offset| offset.get() >= 0),
        }
    }
}

impl From<&ProducerStateEntry> for SnapshotEntry {
    fn from(entry: &ProducerStateEntry) -> Self {
        let batch = entry.last_batch();
        Self {
            producer_id: entry.producer_id,
            producer_epoch: entry.producer_epoch,
            last_sequence: entry.last_sequence(),
            last_offset: entry.last_data_offset(),
            offset_delta: batch.map_or(0, |batch| batch.offset_delta),
            timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            current_txn_first_offset: entry.current_txn_first_offset,
        }
    }
}

impl From<&SnapshotEntry> for ProducerStateEntry {
    /// The restored batch gets the entry's timestamp, as no other is stored.
    fn from(stored: &SnapshotEntry) -> Self {
        let mut entry = Self::empty(stored.producer_id);
        entry.producer_epoch = stored.producer_epoch;
        entry.coordinator_epoch = stored.coordinator_epoch;
        entry.last_timestamp = stored.timestamp;
        entry.current_txn_first_offset = stored.current_txn_first_offset;
        if stored.last_offset.get() >= 0 {
            entry.restore_batch(BatchMetadata {
                last_sequence: stored.last_sequence,
                last_offset: stored.last_offset,
                offset_delta: stored.offset_delta,
                timestamp: stored.timestamp,
            });
        }
        entry
    }
}
