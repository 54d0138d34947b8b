//! The ProducerStateManager of one replica's log: entries, open transactions, and how both are rebuilt.

mod append;
mod entry;
mod replay;

pub use append::{Finding, Origin, Pending, Rejection};
pub use entry::{Cached, Entry, WINDOW, Window};
pub use replay::{Snapshot, Snapshots, recover, truncate};

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

/// Entries in order of id, open transactions in order of first offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psm {
    entries: Vec<Entry>,
    ongoing: Vec<Ongoing>,
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

    /// The last stable offset of a log that ends at `log_end` and whose high watermark is there too (LOG-3).
    #[must_use]
    pub fn last_stable_offset(&self, log_end: Offset) -> Offset {
        self.ongoing.first().map_or(log_end, |t| t.first_offset.min(log_end))
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

    fn complete(&mut self, txn: Ongoing) {
        self.ongoing.retain(|t| t.first_offset != txn.first_offset);
    }

    /// Removes the entries that `which` names. Open transactions stay.
    pub(crate) fn remove_entries(&mut self, which: impl Fn(&Entry) -> bool) {
        self.entries.retain(|e| !which(e));
    }

    /// Ends all open transactions.
    pub(crate) fn forget_ongoing(&mut self) {
        self.ongoing.clear();
    }
}
