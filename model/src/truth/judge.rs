//! The judgements: state and ground truth in, yes or no out.

use super::{Author, Ghost, Stint, Writer};
use crate::batch::{Batch, Kind, Log};
use crate::ids::{Cluster, Offset, ProducerId};
use crate::psm::{AbortedTxn, Psm};

/// Whether the two are one batch, sent twice or copied.
#[must_use]
pub fn is_same_batch(a: &Batch, b: &Batch) -> bool {
    a.author.0 == b.author.0 && a.kind == b.kind
}

/// Whether the two are one batch of data, sent twice or copied.
#[must_use]
pub fn is_same_data(a: &Batch, b: &Batch) -> bool {
    matches!(a.kind, Kind::Data { .. }) && is_same_batch(a, b)
}

/// The real producer of a batch and the batch's number; none for a barrier.
#[must_use]
pub fn writer_and_serial(author: &Ghost<Author>) -> Option<(Writer, u8)> {
    author.0.writer.map(|writer| (writer, author.0.serial))
}

/// Whether a marker would end the transaction that another real producer began at `first_offset`.
#[must_use]
pub fn foreign_marker(log: &Log, first_offset: Offset, marker: &Batch) -> bool {
    log.get(first_offset.index()).is_some_and(|begun| begun.author.0.writer != marker.author.0.writer)
}

/// SILENT-6: no batch lies twice in a log.
#[must_use]
pub fn no_batch_twice(log: &Log) -> bool {
    let written = |b: &Batch| matches!(b.kind, Kind::Data { .. }) && b.producer_id != ProducerId::NONE;
    let again = |(i, b): (usize, &Batch)| log.iter().take(i).any(|other| is_same_batch(other, b));
    !log.iter().enumerate().filter(|(_, b)| written(b)).any(again)
}

/// What a read-committed reader gets of the data batch at `offset`, below the last stable offset.
fn is_shown(log: &Log, aborted: &[AbortedTxn], offset: Offset, batch: &Batch) -> bool {
    // The reader drops an id's data from the first offset of an aborted transaction up to the next ABORT marker of the id.
    let abort_of_id = |b: &Batch| matches!(b.kind, Kind::Marker { commit: false, .. }) && b.producer_id == batch.producer_id;
    let open_abort = |t: &AbortedTxn| {
        let ends =
            log.iter().enumerate().skip(t.first_offset.index()).find(|(_, b)| abort_of_id(b)).map(|(i, _)| Offset::end_of(i));
        t.id == batch.producer_id && t.first_offset <= offset && ends.is_none_or(|end| offset < end)
    };
    !aborted.iter().any(open_abort)
}

/// SILENT-7: what a read-committed reader gets is what was committed in this log, all of it and nothing else.
#[must_use]
pub fn reads_committed(log: &Log, aborted: &[AbortedTxn], lso: Offset) -> bool {
    log.iter().enumerate().take(lso.index()).all(|(i, batch)| {
        if !matches!(batch.kind, Kind::Data { transactional: true }) {
            return true;
        }
        // Its own marker: a later one of its producer, or one that a stop wrote in its producer's name.
        let own = |b: &&Batch| {
            let (marker, data) = (&b.author.0, &batch.author.0);
            matches!(b.kind, Kind::Marker { .. }) && marker.writer == data.writer && marker.serial > data.serial
        };
        let fate = log.iter().skip(i + 1).find(own);
        let committed = fate.is_some_and(|b| matches!(b.kind, Kind::Marker { commit: true, .. }));
        is_shown(log, aborted, Offset::end_of(i), batch) == committed
    })
}

/// SILENT-8: every COMMIT in a log comes after the data of its transaction, and nothing has ended the transaction before.
#[must_use]
pub fn commits_commit(log: &Log) -> bool {
    log.iter().enumerate().filter(|(_, b)| matches!(b.kind, Kind::Marker { commit: true, .. })).all(|(i, commit)| {
        // A coordinator may write its marker again.
        let of_writer = |b: &&Batch| b.author.0.writer == commit.author.0.writer && !is_same_batch(b, commit);
        let mut before = log.iter().take(i).rev().filter(of_writer);
        // A transaction has one batch, numbered one below its marker.
        before.next().is_some_and(|data| data.author.0.serial.saturating_add(1) == commit.author.0.serial)
    })
}

/// ALIGN-1: if two logs hold the same batch at an offset, they hold the same batches at every lower one.
#[must_use]
pub fn logs_match(a: &Log, b: &Log) -> bool {
    let same: Vec<bool> = a.iter().zip(b).map(|(x, y)| is_same_batch(x, y)).collect();
    same.iter().rposition(|s| *s).is_none_or(|last| same.iter().take(last).all(|s| *s))
}

/// Whether two logs hold the same batches under the same ids, whatever their leader epochs.
#[must_use]
pub fn same_content(a: &Log, b: &Log) -> bool {
    let same = |(x, y): (&Batch, &Batch)| is_same_batch(x, y) && x.producer_id == y.producer_id;
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// LOSS-1: a log holds every batch of a producer that the producer was told of: those below `sent`, but for those in `given_up`.
#[must_use]
pub fn holds_acknowledged(log: &Log, writer: Writer, acknowledged: u8, given_up: u8) -> bool {
    (0..acknowledged)
        .filter(|serial| given_up & (1 << (serial & 7)) == 0)
        .all(|serial| log.iter().any(|b| b.author.0.writer == Some(writer) && b.author.0.serial == serial))
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
        let Some(first_local) = local_data(log, start, cluster) else { return true };
        let before = log.get(..first_local).unwrap_or_default();
        let nothing_inherited = before.iter().all(is_barrier);
        let own_barrier_last = before.iter().rev().take_while(|b| is_barrier(b)).any(|b| b.author.0.cluster == cluster);
        nothing_inherited || own_barrier_last
    })
}

/// CLEAN-3: no barrier of the partition's own stop lies among or after the local batches of the stint.
#[must_use]
pub fn no_barrier_after_local(log: &Log, stint: &Ghost<Stint>, cluster: Cluster) -> bool {
    stint.0.is_none_or(|start| {
        let first_local = local_data(log, start, cluster);
        let last_barrier = log.iter().rposition(|b| matches!(b.kind, Kind::Barrier { .. }));
        !matches!((first_local, last_barrier), (Some(l), Some(b)) if b > l)
    })
}

/// Where the first data of a stint lie. Whoever leads with a shorter log moves the stint's beginning into what longer logs have
/// inherited, so that the offset alone does not tell: what is local was sent to this cluster, and not written by the stop of its mirror.
fn local_data(log: &Log, start: Offset, cluster: Cluster) -> Option<usize> {
    let local = |b: &Batch| !matches!(b.kind, Kind::Barrier { .. }) && b.author.0.cluster == cluster && !b.author.is_of_stop();
    log.iter().skip(start.index()).position(local).map(|at| start.index().saturating_add(at))
}
