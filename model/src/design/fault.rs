//! Faults: one rule of the base left out, applied too early, or to too little. No proposed design has one; the kill list shows that each is
//! caught, so that a property that nothing can break does not pass for a promise kept.

axis! {
    /// A fault in the rules that all designs share (KILL-1).
    Fault, "fault", "a fault in the rules that all designs share, for the kill list", {
        /// None.
        None = "none",
        /// PSM-5 is not checked: a client's batch may have any sequence.
        SequenceUnchecked = "sequence-unchecked",
        /// PSM-4 is not checked for data: a client's batch may have a lower epoch.
        EpochUnchecked = "epoch-unchecked",
        /// PSM-6 is not checked: a coordinator's marker may have any epoch.
        MarkerEpochUnchecked = "marker-epoch-unchecked",
        /// PSM-4 without the duplicates: a resend of the newest batch counts as new.
        ResendCountsAsNew = "resend-counts-as-new",
        /// A marker leaves the transaction open.
        MarkerEndsNothing = "marker-ends-nothing",
        /// ABORT markers leave nothing in the transaction index.
        AbortsNotIndexed = "aborts-not-indexed",
        /// Snapshots forget that a transaction is open.
        SnapshotForgetsTransactions = "snapshot-forgets-transactions",
        /// Snapshots are empty.
        SnapshotForgetsEntries = "snapshot-forgets-entries",
        /// A truncation leaves the snapshots above it.
        TruncationKeepsSnapshots = "truncation-keeps-snapshots",
        /// A truncation leaves the producer state as it is.
        TruncationKeepsState = "truncation-keeps-state",
        /// A truncation leaves the transaction index as it is.
        TruncationKeepsIndex = "truncation-keeps-index",
        /// Segment recovery begins without the snapshot below the active segment.
        RecoveryWithoutSnapshot = "recovery-without-snapshot",
        /// A stop in good order takes no snapshot.
        RestartWithoutSnapshot = "restart-without-snapshot",
        /// The high watermark does not wait for the in-sync follower.
        HighWatermarkAlone = "high-watermark-alone",
        /// A follower counts as in sync before it has caught up.
        InSyncTooEarly = "in-sync-too-early",
        /// Appends are acknowledged before they are replicated.
        AcknowledgedTooEarly = "acknowledged-too-early",
        /// An election does not raise the leader epoch.
        ElectionKeepsEpoch = "election-keeps-epoch",
        /// A leader that raises its epoch does not wait for the controller.
        EpochRaisedAlone = "epoch-raised-alone",
        /// A new leader does not take up a stop that its predecessor began.
        StopForgotten = "stop-forgotten",
        /// A new leader takes a stop that its predecessor began for done.
        StopTakenForDone = "stop-taken-for-done",
        /// The fetcher is not removed when a stop begins.
        FetcherStays = "fetcher-stays",
        /// The gate lets clients write to a partition that aligns or mirrors.
        WritableWhileMirroring = "writable-while-mirroring",
        /// The gate lets markers pass to a partition that aligns or mirrors.
        MarkersWhileMirroring = "markers-while-mirroring",
        /// A stop ends only the first open transaction.
        AbortsOnlyOne = "aborts-only-one",
        /// A stop never records how far it has mirrored.
        RecordsNothing = "records-nothing",
        /// A mirror reads its source to the end, beyond the high watermark.
        MirrorReadsToEnd = "mirror-reads-to-end",
        /// A deposed leader's word that a command is done counts.
        DeposedIsBelieved = "deposed-is-believed",
        /// A leader of writable data does not count its own epoch before it has written something.
        OwnEpochUnknown = "own-epoch-unknown",
        /// A reader that is told of an epoch cuts to the end that the leader told, whatever its own log says.
        CutsToLeadersEnd = "cuts-to-leaders-end",
    }
}
