//! The judgements: state and ground truth in, yes or no out.

use super::{Author, Ghost, Stint};
use crate::batch::{Batch, Kind, Log};
use crate::ids::{Cluster, Offset, ProducerId};
use crate::psm::Psm;

/// Whether the two are one batch, sent twice.
#[must_use]
pub fn is_same_batch(a: &Ghost<Author>, b: &Ghost<Author>) -> bool {
    a.0 == b.0
}

/// Whether a marker would end the transaction that another real producer began at `first_offset`.
#[must_use]
pub fn foreign_marker(log: &Log, first_offset: Offset, marker: &Batch) -> bool {
    log.get(first_offset.index()).is_some_and(|begun| begun.author.0.writer != marker.author.0.writer)
}

/// UNIQ-1: no entry mixes batches of two real producers.
#[must_use]
pub fn psm_entry_single_producer(psm: &Psm) -> bool {
    psm.entries().iter().all(|e| e.contributors.writer_count() <= 1)
}

/// UNIQ-2: under one stored id, no two real producers' batches lie in the log without a barrier between them.
#[must_use]
pub fn log_pid_single_producer(log: &Log) -> bool {
    let is_barrier = |b: &Batch| matches!(b.kind, Kind::Barrier { .. });
    log.split(is_barrier).all(|stretch| {
        stretch.iter().enumerate().all(|(i, batch)| {
            batch.producer_id == ProducerId::NONE
                || stretch
                    .iter()
                    .take(i)
                    .all(|other| other.producer_id != batch.producer_id || other.author.0.writer == batch.author.0.writer)
        })
    })
}

/// CLEAN-1: a writable partition keeps no producer state from before it became writable.
#[must_use]
pub fn writable_psm_empty(psm: &Psm, stint: &Ghost<Stint>) -> bool {
    stint.0.is_none_or(|start| {
        psm.entries().iter().all(|e| e.contributors.oldest() >= start) && psm.ongoing().iter().all(|t| t.first_offset >= start)
    })
}

/// CLEAN-2: between the last inherited and the first local batch of a writable partition lies the barrier of its own stop.
#[must_use]
pub fn barrier_before_local(log: &Log, stint: &Ghost<Stint>, cluster: Cluster) -> bool {
    let is_barrier = |b: &Batch| matches!(b.kind, Kind::Barrier { .. });
    stint.0.is_none_or(|start| {
        let Some(first_local) = log.iter().skip(start.index()).position(|b| !is_barrier(b)) else { return true };
        let before = log.get(..start.index() + first_local).unwrap_or_default();
        let nothing_inherited = before.iter().all(is_barrier);
        let own_barrier_last = before.iter().rev().take_while(|b| is_barrier(b)).any(|b| b.author.0.cluster == cluster);
        nothing_inherited || own_barrier_last
    })
}

/// CLEAN-3: no barrier of the partition's own stop lies among or after the local batches of the stint.
#[must_use]
pub fn no_barrier_after_local(log: &Log, stint: &Ghost<Stint>) -> bool {
    stint.0.is_none_or(|start| {
        let local = log.get(start.index()..).unwrap_or_default();
        let first_local = local.iter().position(|b| !matches!(b.kind, Kind::Barrier { .. }));
        let last_barrier = local.iter().rposition(|b| matches!(b.kind, Kind::Barrier { .. }));
        !matches!((first_local, last_barrier), (Some(l), Some(b)) if b > l)
    })
}
