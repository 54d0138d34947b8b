//! Bounds: how much happens within the explored space. They are part of every verdict.

use std::collections::BTreeMap;

use crate::topology::Topology;

macro_rules! bounds {
    ($($name:ident, $max:literal, $about:literal;)+) => {
        /// How much happens. Producers are counted per cluster that can be writable.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct Bounds {
            $(#[doc = $about] pub $name: u8,)+
        }

        /// The keys of [`Bounds`], with the largest value that each may take and its meaning.
        pub const KEYS: &[(&str, u8, &str)] = &[$((stringify!($name), $max, $about),)+];

        impl Bounds {
            fn slot(&mut self, key: &str) -> Option<&mut u8> {
                match key {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    _ => None,
                }
            }

            /// The bounds by key; those of an arbitrary source only where there is one.
            #[must_use]
            pub fn to_map(&self) -> BTreeMap<&'static str, u8> {
                let mut map = BTreeMap::from([$((stringify!($name), self.$name),)+]);
                if self.source == 0 {
                    map.retain(|key, _| !SOURCE_KEYS.contains(key));
                }
                map
            }
        }
    };
}

bounds! {
    plain, 2, "producers without an id, per writable cluster";
    idempotent, 2, "idempotent producers, per writable cluster";
    transactional, 2, "transactional producers, per writable cluster";
    batches, 6, "batches of each plain and idempotent producer";
    transactions, 4, "transactions of each transactional producer, one batch each";
    aborts, 1, "1 if transactions may abort";
    crashes, 4, "crashes in total";
    commands, 8, "lines of the operator's script that are carried out";
    followers, 4, "clusters that have a follower beside the leader, mirrors first";
    elections, 3, "elections of an in-sync follower without a crash, in total";
    unclean, 2, "elections of a replica that is not in sync, in total";
    rolls, 3, "segment rolls, each with a producer snapshot, in total";
    restarts, 3, "clean restarts in total";
    retries, 3, "batches and markers that are sent again although the first copy is still on its way, in total";
    bumps, 2, "batches that an idempotent producer gives up, going on with the next epoch, in total";
    bulk, 1, "1 if a fetch may carry all batches that there are as well as one";
    source, 8, "batches of an arbitrary source, those that it loses included";
    ids, 2, "producer ids under which an arbitrary source stores batches";
    cuts, 3, "times that an arbitrary source loses the end of its log";
    raises, 3, "times that an arbitrary source raises its leader epoch without writing";
    tail, 2, "batches of an arbitrary source that may wait to be readable; 0 if all are readable at once";
}

/// The keys that mean something only where the source is arbitrary.
const SOURCE_KEYS: [&str; 5] = ["source", "ids", "cuts", "raises", "tail"];

/// Why a text is not a set of bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// Neither a name nor KEY=N.
    #[error("unknown bound '{text}'; use small, ci, deep or KEY=N with KEY one of {}", keys())]
    Unknown {
        /// The text.
        text: String,
    },
    /// Nothing between two commas, or nothing at all.
    #[error("a bound is missing in '{text}'; use small, ci, deep or KEY=N with KEY one of {}, separated by commas", keys())]
    Empty {
        /// The whole text.
        text: String,
    },
    /// The topology has no arbitrary source, which the bound is about.
    #[error("bound '{key}' is about an arbitrary source, which topology '{topology}' does not have")]
    NoSource {
        /// The key.
        key: String,
        /// The topology.
        topology: &'static str,
    },
    /// The value is not a number in range.
    #[error("bound '{key}' takes a number from 0 to {max}, not '{value}'")]
    OutOfRange {
        /// The key.
        key: String,
        /// What was given.
        value: String,
        /// The largest value.
        max: u8,
    },
}

fn keys() -> String {
    KEYS.iter().map(|(k, _, _)| *k).collect::<Vec<_>>().join(", ")
}

impl Bounds {
    /// Nothing happens but what the operator does.
    const NOTHING: Self = Self {
        plain: 0,
        idempotent: 0,
        transactional: 0,
        batches: 0,
        transactions: 0,
        aborts: 0,
        crashes: 0,
        commands: 8,
        followers: 0,
        elections: 0,
        unclean: 0,
        rolls: 0,
        restarts: 0,
        retries: 0,
        bumps: 0,
        bulk: 0,
        source: 0,
        ids: 0,
        cuts: 0,
        raises: 0,
        tail: 0,
    };

    /// The smallest bounds that show anything.
    pub const SMALL: Self = Self { idempotent: 1, batches: 1, transactions: 1, ..Self::NOTHING };

    /// The smallest bounds of a topology.
    #[must_use]
    pub const fn small(topology: &Topology) -> Self {
        if topology.environment.is_some() { Self { source: 2, ids: 1, ..Self::SMALL } } else { Self::SMALL }
    }

    /// The bounds for every push: each topology has its own, as large as the time of all runs together allows.
    #[must_use]
    pub fn ci(topology: &Topology) -> Self {
        let small = Self::SMALL;
        match topology.name {
            // Transactions of both kinds of ends, a follower, a crash.
            "active-passive" => Self { transactional: 1, aborts: 1, crashes: 1, followers: 1, ..small },
            // Changes of leadership by crash and by election, in every session.
            "failback" => Self { crashes: 1, followers: 1, elections: 1, ..small },
            "retarget" => Self { idempotent: 0, transactional: 1, aborts: 1, crashes: 1, ..small },
            "link" => Self { source: 3, ids: 1, cuts: 1, ..small },
            "fan-in" | "chain-4" => Self { batches: 2, crashes: 1, ..small },
            _ => Self { transactional: 1, aborts: 1, ..small },
        }
    }

    /// Bounds for a run of minutes to hours; specs/deep.md has what came of it. In chains and with one mirror: a follower, an election, a
    /// crash, a snapshot on the way, a resend, an epoch bump and bulk fetches, all together. Elsewhere as many of these as can be explored to the end.
    #[must_use]
    pub fn deep(topology: &Topology) -> Self {
        let small = Self { followers: 1, crashes: 1, ..Self::SMALL };
        match topology.name {
            "active-passive" | "chain" => Self { elections: 1, rolls: 1, retries: 1, bumps: 1, bulk: 1, ..small },
            "fan-out" => Self { elections: 1, rolls: 1, ..small },
            "failback" => Self { elections: 1, bulk: 1, ..small },
            "retarget" => Self { rolls: 1, ..small },
            "link" => Self { source: 3, ids: 1, cuts: 1, commands: 1, ..small },
            _ => Self { elections: 1, ..small },
        }
    }

    /// Reads `small`, `ci`, `deep`, or a list of these and KEY=N; later parts overrule earlier ones, and `ci` is the start.
    ///
    /// # Errors
    /// [`BoundsError`] names the keys or the range.
    pub fn parse(text: &str, topology: &Topology) -> Result<Self, BoundsError> {
        let mut bounds = Self::ci(topology);
        for part in text.split(',') {
            match part {
                "" => return Err(BoundsError::Empty { text: text.to_owned() }),
                "small" => bounds = Self::small(topology),
                "ci" => bounds = Self::ci(topology),
                "deep" => bounds = Self::deep(topology),
                _ => bounds.set(part, topology)?,
            }
        }
        Ok(bounds)
    }

    fn set(&mut self, part: &str, topology: &Topology) -> Result<(), BoundsError> {
        let unknown = || BoundsError::Unknown { text: part.to_owned() };
        let (key, value) = part.split_once('=').ok_or_else(unknown)?;
        let (_, max, _) = KEYS.iter().find(|(k, _, _)| *k == key).ok_or_else(unknown)?;
        let number = value.parse::<u8>().ok().filter(|n| n <= max);
        let number = number.ok_or_else(|| BoundsError::OutOfRange { key: key.to_owned(), value: value.to_owned(), max: *max })?;
        if number > 0 && topology.environment.is_none() && SOURCE_KEYS.contains(&key) {
            return Err(BoundsError::NoSource { key: key.to_owned(), topology: topology.name });
        }
        if let Some(slot) = self.slot(key) {
            *slot = number;
        }
        Ok(())
    }
}
