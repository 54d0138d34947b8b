//! What can be seen of a partition, in the words of a trace.

use cleanslate_log::mirror::MirrorState as LogMirrorState;
use cleanslate_log::psm::{BatchMetadata, ProducerStateEntry};

use super::codec::decode;
use super::in_process::{Partition, failed};
use super::{ObservedBatch, ObservedState, TargetError};
use crate::trace::format::{AbortedTransaction, CachedBatch, MirrorState, OpenTransaction, ProducerEntry};

/// The observable state of a partition whose broker is up.
pub(super) fn show(partition: &Partition) -> Result<ObservedState, TargetError> {
    let log = partition.log();
    let batches = log.batches().map_err(failed)?;
    let batches = batches.iter().map(|b| Ok(ObservedBatch { offset: b.base_offset().get(), batch: decode(b)? }));
    let psm = log.producer_state();
    let open = psm.ongoing_transactions().iter();
    let aborted = log.aborted_transactions().map(|t| AbortedTransaction {
        producer_id: t.producer_id.get(),
        first_offset: t.first_offset.get(),
        last_offset: t.last_offset.get(),
    });
    Ok(ObservedState {
        up: true,
        mirror_state: mirror_state(partition.state()),
        log_start_offset: log.log_start_offset().get(),
        log_end_offset: log.log_end_offset().get(),
        high_watermark: log.high_watermark().get(),
        last_stable_offset: log.last_stable_offset().get(),
        log: batches.collect::<Result<_, TargetError>>()?,
        producers: psm.active_producers().values().map(entry).collect(),
        open_transactions: open.map(|(o, t)| OpenTransaction { producer_id: t.producer_id.get(), first_offset: o.get() }).collect(),
        aborted_transactions: Some(aborted.collect()),
    })
}

fn entry(entry: &ProducerStateEntry) -> ProducerEntry {
    ProducerEntry {
        producer_id: entry.producer_id.get(),
        producer_epoch: entry.producer_epoch.get(),
        coordinator_epoch: entry.coordinator_epoch.get(),
        batches: entry.batches().iter().map(cached).collect(),
        txn_first_offset: entry.current_txn_first_offset.map(|o| o.get()),
    }
}

fn cached(batch: &BatchMetadata) -> CachedBatch {
    CachedBatch {
        base_sequence: batch.first_sequence().get(),
        last_sequence: batch.last_sequence.get(),
        base_offset: batch.first_offset().get(),
        last_offset: batch.last_offset.get(),
    }
}

pub(super) const fn mirror_state(state: LogMirrorState) -> MirrorState {
    match state {
        LogMirrorState::LogAlignment => MirrorState::LogAlignment,
        LogMirrorState::EpochFencing => MirrorState::EpochFencing,
        LogMirrorState::UleRecovery => MirrorState::UleRecovery,
        LogMirrorState::Mirroring => MirrorState::Mirroring,
        LogMirrorState::Pausing => MirrorState::Pausing,
        LogMirrorState::Paused => MirrorState::Paused,
        LogMirrorState::Stopping => MirrorState::Stopping,
        LogMirrorState::Stopped => MirrorState::Stopped,
        LogMirrorState::Failed => MirrorState::Failed,
    }
}
