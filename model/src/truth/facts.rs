//! The facts that are sealed in ghosts.

use super::Ghost;
use crate::batch::{Batch, Kind};
use crate::ids::{Cluster, Offset, ProducerId};

/// A real producer, by its number in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer(pub u8);

/// Who wrote a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Author {
    /// The real producer; none for a barrier.
    pub writer: Option<Writer>,
    /// The cluster to whose leader it was sent.
    pub cluster: Cluster,
    /// The batch's number among those of its writer, so that a resend can be told from a new batch; of a barrier, its leader's epoch.
    pub serial: u8,
}

/// The number of what the stop of a mirror writes in a producer's name.
const OF_STOP: u8 = u8::MAX;

/// Who contributed to an entry of the ProducerStateManager since the entry appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contributors {
    /// A bit for each real producer.
    writers: u16,
    /// The smallest offset of a contributing batch.
    oldest: Offset,
}

impl Ghost<Stint> {
    /// What is local in a log that ends before the stint began: whoever leads with less than was written once, goes on from its own end.
    #[must_use]
    pub fn in_log_until(self, end: Offset) -> Self {
        Self(self.0.map(|since| since.min(end)))
    }
}

impl Ghost<Author> {
    /// The author of what the stop of a mirror writes in the name of this producer: it comes after all that the producer wrote so far.
    #[must_use]
    pub const fn ended_by_stop_of(self, cluster: Cluster) -> Self {
        Self(Author { cluster, serial: OF_STOP, ..self.0 })
    }

    /// Whether the stop of a mirror wrote it.
    pub(super) const fn is_of_stop(&self) -> bool {
        self.0.serial == OF_STOP
    }
}

impl Ghost<Contributors> {
    /// The contributors of a new entry: the author of its first batch.
    #[must_use]
    pub fn first(author: &Ghost<Author>, offset: Offset) -> Self {
        let writers = author.0.writer.map_or(0, |w| 1_u16.checked_shl(u32::from(w.0)).unwrap_or(0));
        Self(Contributors { writers, oldest: offset })
    }

    /// With those of another.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(Contributors { writers: self.0.writers | other.0.writers, oldest: self.0.oldest.min(other.0.oldest) })
    }

    /// The contributors of an entry that was loaded from a snapshot, as far as the entry still shows them: the batches of its id from the
    /// newest barrier below the oldest offset that it shows. What lies before that barrier left nothing in the entry that could be told
    /// from what came after. None if no batch of the id is left.
    #[must_use]
    pub fn shown(log: &[Batch], id: ProducerId, oldest_shown: Option<Offset>) -> Option<Self> {
        let of_id = |b: &Batch| b.producer_id == id && !matches!(b.kind, Kind::Barrier { .. });
        let shown = oldest_shown.map(Offset::index).or_else(|| log.iter().rposition(of_id))?;
        let barrier = log.iter().take(shown).rposition(|b| matches!(b.kind, Kind::Barrier { .. }));
        let from = barrier.map_or(0, |b| b + 1);
        let own = log.iter().enumerate().skip(from).filter(|(_, b)| of_id(b));
        own.map(|(i, b)| Self::first(&b.author, Offset::end_of(i))).reduce(Self::with)
    }

    pub(super) const fn writer_count(&self) -> u32 {
        self.0.writers.count_ones()
    }

    pub(super) const fn oldest(&self) -> Offset {
        self.0.oldest
    }
}

/// The log end offset of a partition at the moment when it became writable the last time; none while it is read-only.
/// Everything below is inherited, everything from there on is local.
pub type Stint = Option<Offset>;
