//! The barrier's rules. This file is the specification of what a MIRROR_PID_RESET control batch does to producer state.
//!
//! * BAR-1 A barrier is written while a mirror stops, at the log end, with the id of the cluster that was mirrored.
//! * BAR-2 A barrier has no producer id: without the rules below it is invisible to the ProducerStateManager.
//! * BAR-3 It *clears*: the entries of negative ids, all entries, or all entries and what is derived from them, by design.
//! * BAR-4 A barrier that reached the log by mirroring is *propagated*. By design it is inert, or it clears on append, or also on replay.
//! * BAR-5 It takes effect at its *position*, after all batches before it and before all batches behind it; or, by design, at once when
//!   it is *analysed*, while infos that are pending from earlier batches of the same append call are merged afterwards.
//! * BAR-6 It acts in every *place* where producer state is built: leader append, replication append, reload, segment recovery; by
//!   design some can be left out.

use crate::batch::{Batch, Kind};
use crate::design::{AppliedBy, Applier, Clears, Design, Fault, Propagated, PsmIds, ReloadWhenEmpty, Timing};
use crate::ids::{Cluster, Offset, ProducerId};
use crate::psm::{Finding, Origin, Pending, Psm, Rejection};

/// Where a batch meets the ProducerStateManager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The leader's own append.
    LeaderAppend,
    /// An append with replication origin: from the leader of the same cluster, or, for the leader of a mirror, from the source.
    ReplicationAppend {
        /// The batch comes from another cluster.
        mirrored: bool,
    },
    /// A replay of the log: reload or segment recovery.
    Replay(Applier),
}

/// The barrier rules of one design for one log.
#[derive(Clone, Copy, Debug)]
pub struct Barriers {
    clears: Clears,
    propagated: Propagated,
    timing: Timing,
    applied_by: AppliedBy,
    ids: PsmIds,
    reload_when_empty: ReloadWhenEmpty,
    fault: Fault,
    /// The cluster that this log mirrors or last mirrored. On replay the bytes do not tell how a barrier came here; its source
    /// cluster does: the log's own barriers name the cluster that the log mirrored.
    source: Option<Cluster>,
}

impl Barriers {
    /// The rules of a design for a log that mirrors, or last mirrored, `source`.
    #[must_use]
    pub const fn new(design: &Design, source: Option<Cluster>) -> Self {
        Self {
            clears: design.clears,
            propagated: design.propagated,
            timing: design.timing,
            applied_by: design.applied_by,
            ids: design.psm_ids,
            reload_when_empty: design.reload_when_empty,
            fault: design.fault,
            source,
        }
    }

    /// The rules as the design means them, with no place left out, nothing too early, and replay like append: what every replica's state is
    /// held against.
    #[must_use]
    pub const fn ideal(design: &Design, source: Option<Cluster>) -> Self {
        let propagated = match design.propagated {
            Propagated::Inert => Propagated::Inert,
            Propagated::Append | Propagated::AppendAndReplay => Propagated::AppendAndReplay,
        };
        Self { propagated, timing: Timing::Position, applied_by: AppliedBy::ALL, fault: Fault::None, ..Self::new(design, source) }
    }

    /// The fault that the design has, if any.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        self.fault
    }

    /// Whether producer state that was empty before a truncation is built again from what is left (PSM-10).
    #[must_use]
    pub fn rebuilds_empty_state(&self) -> bool {
        self.reload_when_empty == ReloadWhenEmpty::Done
    }

    /// One batch meets the ProducerStateManager within an append call or a replay.
    ///
    /// # Errors
    /// [`Rejection`]: the whole call must be given up.
    pub fn meet(
        &self,
        psm: &mut Psm,
        pending: &mut Pending,
        batch: &Batch,
        offset: Offset,
        origin: Origin,
        place: Place,
    ) -> Result<Finding, Rejection> {
        match batch.kind {
            Kind::Barrier { source } => {
                if self.acts(source, place) {
                    self.clear(psm, pending);
                }
                Ok(Finding::default())
            }
            _ if self.ids.sees(batch.producer_id) => pending.analyse(psm, batch, offset, origin, self.fault),
            _ => Ok(Finding::default()),
        }
    }

    /// BAR-4, BAR-6: whether a barrier clears anything here.
    fn acts(&self, barrier_source: Cluster, place: Place) -> bool {
        let (applier, propagated) = match place {
            Place::LeaderAppend => (Applier::Leader, false),
            Place::ReplicationAppend { mirrored } => (Applier::Follower, mirrored),
            Place::Replay(applier) => (applier, self.source != Some(barrier_source)),
        };
        let by_path = match self.propagated {
            Propagated::Inert => !propagated,
            Propagated::Append => !propagated || matches!(place, Place::ReplicationAppend { .. }),
            Propagated::AppendAndReplay => true,
        };
        by_path && self.applied_by.has(applier)
    }

    /// BAR-3, BAR-5: what goes, and when.
    fn clear(&self, psm: &mut Psm, pending: &mut Pending) {
        if self.timing == Timing::Position {
            // At its position: what lies before the barrier in this call takes effect first.
            pending.take_effect(psm);
        }
        match self.clears {
            Clears::NegativeIds => psm.remove_entries(|e| e.id < ProducerId(0)),
            Clears::AllIds => psm.remove_entries(|_| true),
            Clears::AllIdsAndDerived => {
                psm.remove_entries(|_| true);
                psm.forget_transactions();
                pending.forget_infos();
            }
        }
    }
}
