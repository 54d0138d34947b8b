//! The ProducerStateManager of one replica's log: entries, open transactions, and how both are rebuilt.

mod append;
mod entry;
mod replay;

pub use append::{Finding, Origin, Pending, Rejection};
pub use entry::{Cached, Entry, WINDOW, Window};
pub use replay::{Recovered, Snapshot, Snapshots, load_at_start, meaning, recover, take, truncate};

use crate::batch::Batch;
use crate::design::PsmIds;
use crate::ids::{Offset, ProducerEpoch, ProducerId};

/// An open transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ongoing {
    /// The offset of its first batch.
    pub first_offset: Offset,
    /// The producer id that owns it.
    pub id: ProducerId,
}

/// A transaction that a marker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompletedTxn {
    /// The offset of its first batch.
    pub first_offset: Offset,
    /// The offset of its marker.
    pub last_offset: Offset,
    /// The producer id that owned it.
    pub id: ProducerId,
    /// By COMMIT rather than by ABORT.
    pub committed: bool,
}

/// An entry of the transaction index: what a read-committed reader must leave out (TXN-1; Kafka: `AbortedTxn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbortedTxn {
    /// The producer id.
    pub id: ProducerId,
    /// The offset of its first batch.
    pub first_offset: Offset,
    /// The offset of its ABORT marker.
    pub last_offset: Offset,
}

/// Entries in order of id, open transactions in order of first offset, and those that are ended but not yet replicated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psm {
    entries: Vec<Entry>,
    ongoing: Vec<Ongoing>,
    unreplicated: Vec<CompletedTxn>,
}

impl PsmIds {
    /// Whether the ProducerStateManager looks at batches of this id (PSM-1).
    #[must_use]
    pub fn sees(self, id: ProducerId) -> bool {
        match self {
            Self::Stock => id.0 > -1,
            Self::Mapped => id != ProducerId::NONE,
        }
    }
}

impl Psm {
    /// The entries in order of id.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The open transactions in order of first offset.
    #[must_use]
    pub fn ongoing(&self) -> &[Ongoing] {
        &self.ongoing
    }

    /// The entry of an id.
    #[must_use]
    pub fn entry(&self, id: ProducerId) -> Option<&Entry> {
        self.entries.iter().find(|e| e.id == id)
    }

    /// The offset at which an equal batch lies, if the id's window remembers one (PSM-4).
    #[must_use]
    pub fn duplicate_of(&self, batch: &Batch) -> Option<Offset> {
        let entry = self.entry(batch.producer_id).filter(|e| e.epoch == batch.producer_epoch)?;
        entry.window.as_slice().iter().find(|c| c.sequence == batch.sequence).map(|c| c.offset)
    }

    /// The transactions whose markers lie at or above the high watermark, in order of first offset.
    #[must_use]
    pub fn unreplicated(&self) -> &[CompletedTxn] {
        &self.unreplicated
    }

    /// The first offset that is not both decided and replicated (LOG-3; Kafka: `ProducerStateManager.firstUnstableOffset`).
    #[must_use]
    pub fn first_unstable(&self) -> Option<Offset> {
        let open = self.ongoing.first().map(|t| t.first_offset);
        let unreplicated = self.unreplicated.first().map(|t| t.first_offset);
        open.into_iter().chain(unreplicated).min()
    }

    /// The high watermark has risen: what lies below is replicated (Kafka: `ProducerStateManager.onHighWatermarkUpdated`).
    pub fn on_high_watermark(&mut self, high_watermark: Offset) {
        self.unreplicated.retain(|t| t.last_offset >= high_watermark);
    }

    /// Whether two states are the same but for what a restart legitimately forgets: of each entry's remembered batches only the newest
    /// counts, and transactions that wait for replication do not.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let same = |a: &Entry, b: &Entry| {
            let essence = |e: &Entry| (e.id, e.epoch, e.coordinator_epoch, e.txn_first_offset, e.window.last());
            essence(a) == essence(b)
        };
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(a, b)| same(a, b))
            && self.ongoing == other.ongoing
    }

    fn has_ongoing(&self, id: ProducerId, epoch: ProducerEpoch) -> bool {
        self.entry(id).is_some_and(|e| e.txn_first_offset.is_some() && e.epoch == epoch)
    }

    fn merge(&mut self, newer: &Entry) {
        match self.entries.binary_search_by_key(&newer.id, |e| e.id) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.merge(newer);
                }
            }
            Err(at) => self.entries.insert(at, *newer),
        }
    }

    fn start(&mut self, txn: Ongoing) {
        if let Err(at) = self.ongoing.binary_search(&txn) {
            self.ongoing.insert(at, txn);
        }
    }

    fn complete(&mut self, txn: CompletedTxn) {
        self.ongoing.retain(|t| t.first_offset != txn.first_offset);
        if let Err(at) = self.unreplicated.binary_search(&txn) {
            self.unreplicated.insert(at, txn);
        }
    }

    /// Removes the entries that `which` names. Open transactions stay.
    pub(crate) fn remove_entries(&mut self, which: impl Fn(&Entry) -> bool) {
        self.entries.retain(|e| !which(e));
    }

    /// Ends all open transactions. Those that were ended stay until their ends are replicated: the marker may yet be lost.
    pub(crate) fn forget_transactions(&mut self) {
        self.ongoing.clear();
    }
}
