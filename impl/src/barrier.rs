//! The barrier's rules: what a MIRROR_PID_RESET control batch does to producer state. This file is their specification.
//!
//! A mirror that stops writes a barrier into its log (KIP-1279): all producers before it belong to the mirrored cluster,
//! all after it to this one, and both clusters count producer ids from the same number. A barrier is a control batch of
//! type 7 without a visible producer id, so without the rules below it is invisible to producer state, as it is in Kafka
//! 4.3.1. Under a visible producer id it is no barrier but a control batch of an unknown type, which is refused. A
//! control batch that compaction has emptied is not a barrier.
//!
//! * **What it clears** ([`Clears`]): nothing; the entries of negative ids; all entries; all entries and everything that
//!   was derived from them.
//! * **Propagated** ([`Propagated`]): a barrier is *propagated* in a log that it reached by mirroring, else it is the
//!   log's *own*. On append the path tells which ([`ReplicationPath`]); a copy within the cluster is a copy of an own
//!   one as far as the follower can see. On replay the bytes do not tell the path: there a barrier is propagated when it
//!   names another source cluster than the one that this log mirrors or mirrored last. A barrier that names no source
//!   cluster counts as own.
//! * **When** ([`Timing`]): while the append call is analysed, or at the barrier's position with the write.
//! * **Where** ([`AppliedOn`]): on the leader's append, on appends with replication origin, on reload, on segment
//!   recovery.
//!
//! * **Open transactions** ([`OpenAtBarrier`]): the leader appends a barrier behind open transactions, or refuses it.
//! * **Snapshots** ([`BarrierSnapshots`]): one in front of a barrier holds what the barrier cleared. It is harmless where the
//!   replay meets the barrier (BAR-12); a snapshot behind the barrier only makes that replay rarer, because recovery and
//!   truncation delete snapshots, and a load keeps few of them.
//! * **An empty state** ([`EmptyState`]): Kafka does not replay a log into a state that is empty already. Behind a barrier,
//!   empty does not mean that the log in front of it holds no producers.
//! * **Compaction** ([`BarrierRetention`]): whether the cleaner may remove a barrier.
//!
//! [`BarrierPolicy::SOUND`] is the choice under which producer state is a function of the log: equal at equal offsets,
//! however it was built (BAR-11).
//!
//! A producer cannot append a control batch at all, so a barrier never comes from a client.

use crate::psm::{BatchFacts, BatchKind, PendingAppend, ProducerStateError, ProducerStateManager};
use crate::types::{Offset, ProducerId};

/// The control record type of a barrier.
pub const CONTROL_TYPE_ID: i16 = 7;

/// What a barrier clears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clears {
    /// Nothing: the barrier is stored, as Kafka 4.3.1 does with any control batch without a producer id.
    #[default]
    Nothing,
    /// The entries of negative producer ids, which are the mapped ones.
    NegativeIds,
    /// All entries; open and unreplicated transactions stay.
    AllIds,
    /// All entries, the open transactions, the pending verifications, and what the same append call has collected so far
    /// and would merge later. Ended transactions that are not replicated yet stay: the last stable offset must not pass them.
    AllIdsAndDerived,
}

/// What a propagated barrier does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Propagated {
    /// Nothing.
    Inert,
    /// It clears when it is appended, and does nothing when it is replayed.
    ExpiresOnAppend,
    /// It clears whenever it is met, as an own one does.
    #[default]
    ExpiresOnAppendAndReplay,
}

/// When a barrier takes effect within the call that carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timing {
    /// At once, on the live state, while the call is analysed: before anything is written, also when the call fails
    /// later. What the call has collected from batches before the barrier is merged after the write.
    AtAnalysis,
    /// At its position: behind everything before it, before everything behind it, and only if the call succeeds.
    #[default]
    AtPosition,
}

/// Where a barrier acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AppliedOn {
    /// When the leader appends it.
    pub leader_append: bool,
    /// When it is appended with replication origin: by a follower, or by the leader of a mirror.
    pub replication_append: bool,
    /// When the log is replayed after a truncation or a clean start.
    pub reload: bool,
    /// When a segment is recovered after a crash.
    pub segment_recovery: bool,
}

impl AppliedOn {
    /// Everywhere.
    pub const EVERYWHERE: Self = Self { leader_append: true, replication_append: true, reload: true, segment_recovery: true };
}

impl Default for AppliedOn {
    fn default() -> Self {
        Self::EVERYWHERE
    }
}

/// Whether a leader appends a barrier while a transaction is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpenAtBarrier {
    /// It does. What becomes of the transaction is told by [`Clears`]; no choice there is right, as readers take what is
    /// neither open nor aborted for committed.
    #[default]
    Accept,
    /// It refuses: the transactions have to be aborted first (BAR-13).
    Refuse,
}

/// Which snapshots of producer state a barrier asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarrierSnapshots {
    /// None but those that are written anyway.
    #[default]
    AsUsual,
    /// One behind the append call that carried a barrier which acted.
    BehindBarrier,
}

/// What a rebuild does with a state that is empty and reaches the end of the log or beyond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EmptyState {
    /// Nothing: there is nothing to forget (Kafka: `rebuildProducerState`, `isEmptyBeforeTruncation`).
    #[default]
    Kept,
    /// It is rebuilt like any other (BAR-14).
    Rebuilt,
}

/// Whether compaction may remove a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarrierRetention {
    /// Never: to Kafka's cleaner it is a control batch of an unknown type (BAR-15).
    #[default]
    Forever,
    /// When no batch of a producer is left in front of it, `delete.retention.ms` later. Snapshots in front of it go with it.
    WhileItProtects,
    /// `delete.retention.ms` after the first cleaning round that met it, as an end-transaction marker without records.
    LikeMarker,
}

/// The barrier's rules in one design. The default is stock Kafka: nothing is cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BarrierPolicy {
    /// What a barrier clears.
    pub clears: Clears,
    /// What a propagated barrier does.
    pub propagated: Propagated,
    /// When it takes effect.
    pub timing: Timing,
    /// Where it acts.
    pub applied_on: AppliedOn,
    /// Whether a leader appends it behind open transactions.
    pub open_transactions: OpenAtBarrier,
    /// Which snapshots it asks for.
    pub snapshots: BarrierSnapshots,
    /// What a rebuild does with an empty state.
    pub empty_state: EmptyState,
    /// Whether compaction may remove it.
    pub retention: BarrierRetention,
}

impl BarrierPolicy {
    /// The rule under which producer state is a function of the log.
    pub const SOUND: Self = Self {
        clears: Clears::AllIdsAndDerived,
        propagated: Propagated::ExpiresOnAppendAndReplay,
        timing: Timing::AtPosition,
        applied_on: AppliedOn::EVERYWHERE,
        open_transactions: OpenAtBarrier::Refuse,
        snapshots: BarrierSnapshots::AsUsual,
        empty_state: EmptyState::Rebuilt,
        retention: BarrierRetention::Forever,
    };
}

/// Which way a batch came that is appended with replication origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicationPath {
    /// From the leader of the same partition in the same cluster.
    IntraCluster,
    /// From another cluster, by the leader of a mirror.
    Mirror,
}

/// Where a batch meets producer state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The leader's own append.
    LeaderAppend,
    /// An append with replication origin.
    ReplicationAppend(ReplicationPath),
    /// Replay after a truncation or a clean start: many batches in one call.
    Reload,
    /// Replay after a crash: batch by batch.
    SegmentRecovery,
}

/// The rules of a design in one log.
#[derive(Clone, Copy, Debug)]
pub struct BarrierRules<'a> {
    /// The design's choices.
    pub policy: BarrierPolicy,
    /// The cluster that this log mirrors, or mirrored last.
    pub mirror_source: Option<&'a str>,
}

impl BarrierRules<'_> {
    /// A batch that is no barrier changes nothing here; a barrier clears what the design says, if it acts in this place.
    ///
    /// # Errors
    /// When a transaction that a marker before the barrier ended is not known to be open, or one is open that the design
    /// does not accept.
    pub fn meet(
        &self,
        live: &mut ProducerStateManager,
        pending: &mut PendingAppend,
        batch: &BatchFacts,
        place: Place,
    ) -> Result<(), ProducerStateError> {
        match &batch.kind {
            BatchKind::Barrier { source_cluster_id } if self.acts(source_cluster_id.as_deref(), place) => {
                self.check_open_transactions(live, batch.base_offset, place)?;
                pending.note_barrier();
                self.take_effect(live, pending)
            }
            _ => Ok(()),
        }
    }

    /// Only the leader can refuse: a copy or a replay has to take the log as it is. A leader's call holds one batch, so
    /// nothing is pending.
    fn check_open_transactions(&self, live: &ProducerStateManager, offset: Offset, place: Place) -> Result<(), ProducerStateError> {
        let refuses = self.policy.open_transactions == OpenAtBarrier::Refuse && place == Place::LeaderAppend;
        match live.ongoing_transactions().values().next() {
            Some(txn) if refuses => Err(ProducerStateError::BarrierInTransaction {
                producer_id: txn.producer_id,
                offset,
                txn_first_offset: txn.first_offset,
            }),
            _ => Ok(()),
        }
    }

    /// Whether a barrier with this source cluster acts in this place.
    fn acts(&self, barrier_source: Option<&str>, place: Place) -> bool {
        self.policy.clears != Clears::Nothing
            && self.acts_here(place)
            && (!self.is_propagated(barrier_source, place) || self.propagated_acts(place))
    }

    fn acts_here(&self, place: Place) -> bool {
        let applied_on = self.policy.applied_on;
        match place {
            Place::LeaderAppend => applied_on.leader_append,
            Place::ReplicationAppend(_) => applied_on.replication_append,
            Place::Reload => applied_on.reload,
            Place::SegmentRecovery => applied_on.segment_recovery,
        }
    }

    fn is_propagated(&self, barrier_source: Option<&str>, place: Place) -> bool {
        match place {
            Place::LeaderAppend => false,
            Place::ReplicationAppend(path) => path == ReplicationPath::Mirror,
            Place::Reload | Place::SegmentRecovery => barrier_source.is_some() && barrier_source != self.mirror_source,
        }
    }

    fn propagated_acts(&self, place: Place) -> bool {
        match self.policy.propagated {
            Propagated::Inert => false,
            Propagated::ExpiresOnAppend => matches!(place, Place::ReplicationAppend(_)),
            Propagated::ExpiresOnAppendAndReplay => true,
        }
    }

    fn take_effect(&self, live: &mut ProducerStateManager, pending: &mut PendingAppend) -> Result<(), ProducerStateError> {
        match self.policy.timing {
            Timing::AtAnalysis => {
                self.clear(live);
                if self.policy.clears == Clears::AllIdsAndDerived {
                    pending.forget_collected();
                }
            }
            Timing::AtPosition => self.clear(pending.settle_up_to_here(live)?),
        }
        Ok(())
    }

    fn clear(&self, state: &mut ProducerStateManager) {
        match self.policy.clears {
            Clears::Nothing => {}
            Clears::NegativeIds => state.remove_producers(|id| id < ProducerId(0)),
            Clears::AllIds => state.remove_producers(|_| true),
            Clears::AllIdsAndDerived => {
                state.remove_producers(|_| true);
                state.forget_ongoing_transactions();
                state.forget_verifications();
            }
        }
    }
}
