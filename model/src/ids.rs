//! Small newtypes: what Kafka gives a name has a type of its own, and states stay a few bytes wide.

use std::fmt;

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

newtype! {
    /// A position in a log. Every batch of the model has one record, so an offset is also the index of a batch.
    Offset(u8)
}
newtype! {
    /// The id that a coordinator hands out; -1 is none; the `negate` designs store ids of -2 and below.
    ProducerId(i16)
}
newtype! {
    /// The fencing counter of one producer id; -1 is none.
    ProducerEpoch(i8)
}
newtype! {
    /// The number of a record within one producer id and epoch; -1 is none.
    Sequence(i8)
}
newtype! {
    /// The epoch of the transaction coordinator that wrote a marker; -1 is none.
    CoordinatorEpoch(i8)
}

newtype! {
    /// The counter of leaderships of a partition within its cluster (Kafka: partition leader epoch).
    LeaderEpoch(u8)
}

impl LeaderEpoch {
    /// The epoch after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl ProducerId {
    /// The batch has no producer id.
    pub const NONE: Self = Self(-1);
    /// The first id that every cluster's coordinator hands out: all clusters count from the same number, so ids collide.
    pub const FIRST: Self = Self(5);
}

impl Offset {
    /// The offset `n` batches later.
    #[must_use]
    pub const fn plus(self, n: u8) -> Self {
        Self(self.0.saturating_add(n))
    }

    /// As an index into a log.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The end offset of a log with this many batches. Bounds keep logs far below 255 batches.
    #[must_use]
    pub fn end_of(len: usize) -> Self {
        Self(u8::try_from(len).unwrap_or(u8::MAX))
    }
}

/// One cluster of the topology: A, B, C or D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cluster {
    /// The original source in every topology.
    A,
    /// The first mirror.
    B,
    /// The mirror of B in a chain, or the second mirror of A in a fan-out.
    C,
    /// The mirror of C in a chain of four.
    D,
}

impl Cluster {
    /// All clusters in order.
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::D];

    /// The cluster's place in [`Cluster::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name, one upper-case letter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }

    /// The epoch of this cluster's transaction coordinator. They differ, as those of real clusters do, so that a marker of one
    /// cluster can be fenced by state that came from another.
    #[must_use]
    pub const fn coordinator_epoch(self) -> CoordinatorEpoch {
        CoordinatorEpoch(match self {
            Self::A => 3,
            Self::B => 2,
            Self::C => 1,
            Self::D => 0,
        })
    }
}

/// A replica of the partition: a broker of a cluster. Number 0 leads at the start; number 1 follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Broker {
    /// The cluster.
    pub cluster: Cluster,
    /// Its number within the cluster, 0 or 1.
    pub number: u8,
}

impl Broker {
    /// The other replica of the cluster.
    #[must_use]
    pub const fn other(self) -> Self {
        Self { number: 1 - (self.number & 1), ..self }
    }
}

impl fmt::Display for Broker {
    /// `B` for the first broker of cluster B, `B2` for its second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cluster.name())?;
        if self.number == 0 { Ok(()) } else { write!(f, "{}", self.number + 1) }
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
