//! The axes along which the proposed designs differ. Each choice has the name that the command line and the trace files use.

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
        /// Each is ended by an ABORT marker, in the name of its producer.
        Abort = "abort",
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
        /// To the end of the last mirrored epoch that the source recorded when it stopped, 0 if it recorded none.
        Lme = "lme",
        /// To the smaller of the two.
        Both = "both",
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
        /// Store the last mirrored offset and epoch.
        Record = "record",
        /// Raise the leader epoch.
        BumpEpoch = "bump",
        /// Append an ABORT marker for each open transaction.
        AbortOpen = "abort",
        /// Append the barrier.
        WriteBarrier = "write-barrier",
        /// Become writable.
        BecomeWritable = "writable",
    }
}

axis! {
    /// Which steps of a stop wait for the in-sync replicas before the next one begins (STOP-3).
    StopAcks, "stop-acks", "which steps of a stop wait for the in-sync replicas", {
        /// None of them.
        None = "none",
        /// The barrier.
        Barrier = "barrier",
        /// Truncations, markers and the barrier; alignment, too.
        All = "all",
        /// Each, and what was mirrored before the first; alignment, too.
        EveryStep = "every-step",
    }
}

axis! {
    /// What a stop does that begins again after a leader has changed or restarted (STOP-4).
    StopResume, "stop-resume", "where a stop goes on after its leader has changed or restarted", {
        /// With its first step.
        Redo = "redo",
        /// With the step after the last one that was done.
        Continue = "continue",
    }
}

axis! {
    /// Whether a stop that begins again stores its last mirrored offset and epoch again (STOP-5).
    Record, "record", "whether a stop that is done again stores the last mirrored offset and epoch again", {
        /// Each time.
        Again = "again",
        /// Once for each mirror session.
        Once = "once",
    }
}

axis! {
    /// Whether a stop raises the leader epoch before it appends anything (STOP-6).
    EpochBump, "epoch-bump", "whether a stop raises the leader epoch before it appends", {
        /// It does.
        On = "on",
        /// It does not.
        Off = "off",
    }
}

axis! {
    /// The leader epoch under which the mirror leader stores a batch (MIR-6).
    LeaderEpochs, "leader-epochs", "the leader epoch under which a mirrored batch is stored", {
        /// The source's.
        Keep = "keep",
        /// That of the mirror leader.
        Rewrite = "rewrite",
    }
}

axis! {
    /// Whether a mirror leader raises its leader epoch before it stores a batch of a higher one (MIR-7).
    EpochFencing, "epoch-fencing", "whether a mirror raises its leader epoch to those of the batches that it stores", {
        /// It does.
        On = "on",
        /// It does not.
        Off = "off",
    }
}

axis! {
    /// Which readers of a log are told by leader epochs that their logs part (EPOCH-5).
    Divergence, "divergence", "which fetches carry the last epoch, so that diverging logs are found", {
        /// None.
        None = "none",
        /// Followers, as in stock Kafka.
        Followers = "followers",
        /// Followers and mirrors.
        All = "all",
    }
}

axis! {
    /// Whose records of a stop a starting mirror may align with (ALI-2).
    AlignmentScope, "alignment-scope", "which recorded stops a starting mirror may align with", {
        /// Only that of a mirror of itself: a direct failback.
        Direct = "direct",
        /// That of any mirror.
        Any = "any",
    }
}

axis! {
    /// Whether a write of the mirror state counts that comes from a leader of an older epoch (STATE-1).
    StateFencing, "state-fencing", "whether mirror state written by a deposed leader is refused", {
        /// It is refused.
        On = "on",
        /// It is taken.
        Off = "off",
    }
}

axis! {
    /// Who may write while a mirror stops (GATE-1).
    Gate, "gate", "when the read-only gate lets clients write", {
        /// No client before the partition is STOPPED.
        Stopped = "stopped",
        /// Clients, too, from the beginning of the stop on.
        Stopping = "stopping",
    }
}

axis! {
    /// Whether the producer state is built again after a truncation if it was empty before (PSM-10).
    ReloadWhenEmpty, "reload-when-empty", "whether producer state that was empty before a truncation is built again from what is left", {
        /// It stays empty, as in stock Kafka.
        Skipped = "skipped",
        /// It is built again.
        Done = "done",
    }
}

axis! {
    /// What a leader that cuts its own log does with what its follower has told it (LOG-6).
    LeaderTruncation, "leader-truncation", "whether a leader that cuts its log still counts what its follower had before", {
        /// It counts on until the follower fetches again, as stock Kafka does, where no leader cuts its log.
        KeepsFollower = "keeps-follower",
        /// It counts nothing until the follower has fetched again.
        ForgetsFollower = "forgets-follower",
    }
}

axis! {
    /// Which replicas an alignment waits for before the mirror fetches (ALI-3).
    AlignmentWaits, "alignment-waits", "which replicas must be aligned before a mirror fetches", {
        /// Those in sync, if `stop-acks` is `all`.
        InSync = "in-sync",
        /// Every replica, in sync or not.
        EveryReplica = "every-replica",
    }
}

axis! {
    /// What happens to appends that are not yet replicated, hence not answered, when a partition becomes a mirror (ALI-4).
    UnansweredAtStart, "unanswered-at-start", "what becomes of unanswered appends when a partition becomes a mirror", {
        /// Their clients keep waiting and send them again later.
        Kept = "kept",
        /// Their clients are refused for good and give them up.
        Refused = "refused",
    }
}

axis! {
    /// When a leader counts its own epoch among those of its log before it has appended anything under it (EPOCH-7).
    OwnEpoch, "own-epoch", "when a leader counts its own epoch among those of its log", {
        /// While the partition is writable: a mirror's log has the epochs of its source.
        WhileWritable = "while-writable",
        /// Always.
        Always = "always",
    }
}
