//! Things that must not happen, seen at the moment when they happen and kept in the history.

use crate::ids::Cluster;

/// One kind of wrong event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// Scenario 1 of both texts: replication accepted a batch of the entry's epoch whose sequence does not follow.
    SequenceBreakAccepted,
    /// Scenario 2: replication accepted a batch or marker of a lower epoch than the entry's.
    LowerEpochAccepted,
    /// Scenario 3: a marker ended a transaction that another real producer had begun.
    ForeignMarker,
    /// A leader answered an honest producer's new batch as a duplicate, and dropped it.
    FalseDuplicate,
    /// An honest producer's batch or marker was refused.
    FalseRejection,
    /// The alignment of a failback threw a batch away that the source holds at the same offset.
    ThrewAwayShared,
}

/// Which [`Anomaly`] happened on which cluster's replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Anomalies(u32);

impl Anomalies {
    const fn bit(anomaly: Anomaly, cluster: Cluster) -> u32 {
        let kind = match anomaly {
            Anomaly::SequenceBreakAccepted => 0,
            Anomaly::LowerEpochAccepted => 1,
            Anomaly::ForeignMarker => 2,
            Anomaly::FalseDuplicate => 3,
            Anomaly::FalseRejection => 4,
            Anomaly::ThrewAwayShared => 5,
        };
        1 << (cluster.index() * 8 + kind)
    }

    /// Adds one.
    pub const fn insert(&mut self, anomaly: Anomaly, cluster: Cluster) {
        self.0 |= Self::bit(anomaly, cluster);
    }

    /// Whether it happened there.
    #[must_use]
    pub const fn contains(self, anomaly: Anomaly, cluster: Cluster) -> bool {
        self.0 & Self::bit(anomaly, cluster) != 0
    }
}
