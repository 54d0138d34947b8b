//! The axes along which the proposed designs differ. Each choice has the name that the command line and the trace files use.

use std::fmt;

/// One axis: a key, and the names of its choices.
pub trait Axis: Copy + PartialEq + Sized + 'static {
    /// The key, e.g. `pid-mapping`.
    const KEY: &'static str;
    /// One sentence about the axis.
    const ABOUT: &'static str;
    /// All choices with their names.
    const CHOICES: &'static [(&'static str, Self)];

    /// The name of this choice.
    fn name(self) -> &'static str {
        Self::CHOICES.iter().find(|(_, c)| *c == self).map_or("?", |(n, _)| n)
    }

    /// The choice with this name.
    fn by_name(name: &str) -> Option<Self> {
        Self::CHOICES.iter().find(|(n, _)| *n == name).map(|(_, c)| *c)
    }
}

macro_rules! axis {
    ($(#[$doc:meta])* $name:ident, $key:literal, $about:literal, { $($(#[$vdoc:meta])* $variant:ident = $vname:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl Axis for $name {
            const KEY: &'static str = $key;
            const ABOUT: &'static str = $about;
            const CHOICES: &'static [(&'static str, Self)] = &[$(($vname, Self::$variant)),+];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

axis! {
    /// What the mirror leader does to producer ids before it appends (MAP-1, MAP-2).
    PidMapping, "pid-mapping", "what the mirror leader does to the producer id of each batch", {
        /// Ids are stored as they came.
        None = "none",
        /// Every id p becomes -(p + 2), on every hop; -1 stays -1.
        NegateEveryHop = "negate",
        /// Ids of 0 and above become -(p + 2); negative ids stay.
        NegateNonNegative = "negate-once",
    }
}

axis! {
    /// Which ids the ProducerStateManager keeps state for (MAP-3).
    PsmIds, "psm-ids", "which producer ids the ProducerStateManager keeps state for", {
        /// All ids but -1, as the texts about mapped ids assume.
        Mapped = "mapped",
        /// Ids of 0 and above, as stock Kafka does: mapped ids are invisible.
        Stock = "stock",
    }
}

axis! {
    /// Whether the stop sequence writes a barrier (BAR-1).
    Barrier, "barrier", "whether a MIRROR_PID_RESET control batch is written while a mirror stops", {
        /// No barrier.
        None = "none",
        /// One barrier per stop, at the log end offset.
        OnStop = "on-stop",
    }
}

axis! {
    /// What a barrier clears (BAR-3).
    Clears, "clears", "what a barrier removes from the ProducerStateManager", {
        /// The entries of ids below 0.
        NegativeIds = "negative",
        /// All entries, and nothing that is derived from them.
        AllIds = "all",
        /// All entries, open transactions and infos still pending in the same append.
        AllIdsAndDerived = "all-and-derived",
    }
}

axis! {
    /// What a barrier does that reached a log by mirroring (BAR-4).
    Propagated, "propagated", "what a barrier does in a log that received it by mirroring", {
        /// Nothing: it is stored.
        Inert = "inert",
        /// It clears when it is appended, and nothing when the log is replayed.
        Append = "append",
        /// It clears when it is appended and when the log is replayed.
        AppendAndReplay = "append-and-replay",
    }
}

axis! {
    /// When a barrier takes effect within one append call (BAR-5).
    Timing, "timing", "when a barrier takes effect within the append call that carries it", {
        /// At once, while the call is analysed; infos that are pending from earlier batches of the call are merged afterwards.
        Analysis = "analysis",
        /// At its position, with the write.
        Position = "position",
    }
}

axis! {
    /// Up to where a mirror may read its source (MIR-2).
    FetchBound, "fetch-bound", "up to which offset of the source a mirror may read", {
        /// The last stable offset.
        Lso = "lso",
        /// The high watermark.
        Hw = "hw",
    }
}

axis! {
    /// What the stop sequence does about open transactions (STOP-2).
    OpenTransactions, "open-transactions", "what the stop sequence does about open transactions", {
        /// The log is truncated to the last stable offset.
        Truncate = "truncate",
        /// Nothing.
        Leave = "leave",
    }
}

axis! {
    /// How a log is aligned before it starts to mirror (ALI-1).
    Alignment, "alignment", "to which offset a log is truncated before it starts to mirror", {
        /// It is not.
        None = "none",
        /// To its own last stable offset.
        OwnLso = "own-lso",
        /// To the last mirrored offset that the source recorded when it stopped, 0 if it recorded none.
        Lmo = "lmo",
    }
}

axis! {
    /// One place where producer state is built, which a barrier may or may not act on (BAR-6).
    Applier, "applied-by", "where a barrier acts: a list of places, or all", {
        /// The leader's own append.
        Leader = "leader",
        /// Appends with replication origin.
        Follower = "follower",
        /// Reload after a truncation or a clean start.
        Reload = "reload",
        /// Segment recovery after a crash.
        SegmentRecovery = "segment-recovery",
    }
}

axis! {
    /// One durable step of the stop sequence after the fetcher is removed (STOP-1).
    StopStep, "stop-order", "the steps of the stop sequence after the fetcher is removed, in order", {
        /// Truncate the log to its last stable offset.
        TruncateToLso = "truncate",
        /// Store the last mirrored offset.
        RecordLmo = "record-lmo",
        /// Append the barrier.
        WriteBarrier = "write-barrier",
        /// Become writable.
        BecomeWritable = "writable",
    }
}
