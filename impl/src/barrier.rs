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
//! A producer cannot append a control batch at all, so a barrier never comes from a client.

use crate::psm::{BatchKind, PendingAppend, ProducerStateError, ProducerStateManager};
use crate::types::ProducerId;

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
    /// All entries, the open transactions, and what the same append call has collected so far and would merge later.
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
    /// When a transaction that a marker before the barrier ended is not known to be open.
    pub fn meet(
        &self,
        live: &mut ProducerStateManager,
        pending: &mut PendingAppend,
        batch: &BatchKind,
        place: Place,
    ) -> Result<(), ProducerStateError> {
        match batch {
            BatchKind::Barrier { source_cluster_id } if self.acts(source_cluster_id.as_deref(), place) => {
                self.take_effect(live, pending)
            }
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
            }
        }
    }
}
