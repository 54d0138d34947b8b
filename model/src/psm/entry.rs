//! Entries of the ProducerStateManager (Kafka: `ProducerStateEntry`).

use crate::ids::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::truth::{Contributors, Ghost};

/// How many batches an entry remembers for duplicate detection (PSM-2; Kafka: `NUM_BATCHES_TO_RETAIN`).
pub const WINDOW: usize = 5;

/// A remembered batch. The model's batches have one record, so one sequence and one offset describe it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cached {
    /// The sequence.
    pub sequence: Sequence,
    /// The offset.
    pub offset: Offset,
}

/// The remembered batches, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    items: [Cached; WINDOW],
    len: u8,
}

impl Window {
    /// The batches, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[Cached] {
        self.items.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The newest.
    #[must_use]
    pub fn last(&self) -> Option<Cached> {
        self.as_slice().last().copied()
    }

    /// Adds one, dropping the oldest if the window is full.
    pub fn push(&mut self, cached: Cached) {
        if usize::from(self.len) == WINDOW {
            self.items.rotate_left(1);
            self.len -= 1;
        }
        if let Some(slot) = self.items.get_mut(usize::from(self.len)) {
            *slot = cached;
            self.len += 1;
        }
    }

    /// Only the newest batch: what a snapshot keeps (PSM-9).
    #[must_use]
    pub fn newest_only(&self) -> Self {
        let mut window = Self::default();
        if let Some(last) = self.last() {
            window.push(last);
        }
        window
    }
}

/// What is known of one producer id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The id.
    pub id: ProducerId,
    /// The last epoch, -1 if only an empty entry exists.
    pub epoch: ProducerEpoch,
    /// The epoch of the coordinator that wrote the last marker.
    pub coordinator_epoch: CoordinatorEpoch,
    /// The remembered batches of the epoch.
    pub window: Window,
    /// The first offset of the open transaction.
    pub txn_first_offset: Option<Offset>,
    /// Ground truth.
    pub contributors: Ghost<Contributors>,
}

impl Entry {
    /// The entry after another one for the same id is merged into it (PSM-3; Kafka: `ProducerStateEntry.update`).
    pub fn merge(&mut self, newer: &Self) {
        if self.epoch != newer.epoch {
            self.window = Window::default();
            self.epoch = newer.epoch;
        }
        for cached in newer.window.as_slice() {
            self.window.push(*cached);
        }
        self.coordinator_epoch = newer.coordinator_epoch;
        self.txn_first_offset = newer.txn_first_offset;
        self.contributors = self.contributors.with(newer.contributors);
    }
}
