//! Aborted transactions, for read-committed readers (Kafka: `TransactionIndex`, `AbortedTxn`).
//!
//! ```text
//! entries of 34 bytes: i16 version 0 | i64 producer id | i64 first offset | i64 last offset | i64 last stable offset
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::psm::Completion;
use crate::storage::StorageError;
use crate::types::{Offset, ProducerId};

/// The size of an entry, in bytes.
pub const TXN_INDEX_ENTRY_BYTES: usize = 34;

/// An aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbortedTxn {
    /// The producer.
    pub producer_id: ProducerId,
    /// Offset of its first batch.
    pub first_offset: Offset,
    /// Offset of the ABORT marker.
    pub last_offset: Offset,
    /// The last stable offset when the marker was appended. Depends on how batches were grouped into appends.
    pub last_stable_offset: Offset,
}

/// Why an aborted transaction cannot be noted.
#[derive(Debug)]
pub(super) enum TxnIndexError {
    /// Its marker lies at or in front of the one that was noted last.
    Order {
        /// The offset of the marker.
        offset: Offset,
        /// The offset of the one before.
        previous: Offset,
    },
    /// The storage failed.
    Storage(StorageError),
}

impl From<StorageError> for TxnIndexError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl AbortedTxn {
    /// The entry that the end of a transaction calls for; none if it was committed.
    pub(super) fn from_completion(completion: &Completion) -> Option<Self> {
        completion.txn.aborted.then_some(Self {
            producer_id: completion.txn.producer_id,
            first_offset: completion.txn.first_offset,
            last_offset: completion.txn.last_offset,
            last_stable_offset: completion.last_stable_offset,
        })
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(TXN_INDEX_ENTRY_BYTES);
        out.put_i16(0);
        out.put_i64(self.producer_id.get());
        out.put_i64(self.first_offset.get());
        out.put_i64(self.last_offset.get());
        out.put_i64(self.last_stable_offset.get());
        out.freeze()
    }

    /// The first entry of a file, by its position in bytes, whose version is above 0, and that version. Kafka reads the first
    /// byte of the two, as a signed number (Kafka: `AbortedTxn.version`, `TransactionIndex.iterable`).
    pub(super) fn first_unknown_version(file: &Bytes) -> Option<(u64, i8)> {
        let versions = file.chunks_exact(TXN_INDEX_ENTRY_BYTES).map(|entry| entry.first().copied().map_or(0, u8::cast_signed));
        let unknown = versions.enumerate().find(|(_, version)| *version > 0);
        unknown.map(|(index, version)| ((index * TXN_INDEX_ENTRY_BYTES) as u64, version))
    }

    /// Reads a file. What follows the last whole entry is ignored, and the version is not looked at.
    pub(super) fn decode_all(mut file: Bytes) -> Vec<Self> {
        let mut entries = Vec::with_capacity(file.len() / TXN_INDEX_ENTRY_BYTES);
        while file.len() >= TXN_INDEX_ENTRY_BYTES {
            file.advance(2);
            entries.push(Self {
                producer_id: ProducerId(file.get_i64()),
                first_offset: Offset(file.get_i64()),
                last_offset: Offset(file.get_i64()),
                last_stable_offset: Offset(file.get_i64()),
            });
        }
        entries
    }
}
