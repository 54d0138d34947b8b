//! The batches of a trace as Kafka's bytes, and back.

use cleanslate_log::record::{BatchBuilder, ControlRecord, EncodeError, MirrorPidResetRecord, RecordBatch};
use cleanslate_log::types::{CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::TargetError;
use crate::trace::format::{Batch, Control};

/// The time at which everything happens: no entry ever expires during a trace.
pub(crate) const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

/// The batch as a producer, a coordinator or a stopping mirror sends it. `serial` makes the payloads of a trace distinct.
pub(crate) fn encode(batch: &Batch, serial: u64) -> Result<RecordBatch, TargetError> {
    let wrong = |e: EncodeError| TargetError::Impossible(format!("no batch of Kafka's looks like this: {e}"));
    let (id, epoch) = (ProducerId(batch.producer_id), ProducerEpoch(batch.producer_epoch));
    let (first, leader_epoch) = (Offset(0), LeaderEpoch(0));
    match &batch.control {
        None => {
            let mut builder = BatchBuilder::new(first)
                .leader_epoch(leader_epoch)
                .timestamp(NOW)
                .producer(id, epoch, Sequence(batch.base_sequence))
                .transactional(batch.transactional);
            for i in 0..batch.records {
                builder = builder.record(None, Some(format!("{serial}.{i}").as_bytes()));
            }
            builder.build().map_err(wrong)
        }
        Some(Control::Commit { coordinator_epoch }) => {
            let coordinator_epoch = CoordinatorEpoch(*coordinator_epoch);
            RecordBatch::end_txn_marker(first, leader_epoch, NOW, id, epoch, true, coordinator_epoch).map_err(wrong)
        }
        Some(Control::Abort { coordinator_epoch }) => {
            let coordinator_epoch = CoordinatorEpoch(*coordinator_epoch);
            RecordBatch::end_txn_marker(first, leader_epoch, NOW, id, epoch, false, coordinator_epoch).map_err(wrong)
        }
        Some(Control::MirrorPidReset { source_cluster }) => {
            let record = MirrorPidResetRecord { version: 0, source_cluster_id: Some(source_cluster.clone()) };
            RecordBatch::mirror_pid_reset(first, leader_epoch, NOW, &record).map_err(wrong)
        }
    }
}

/// A stored batch in the words of a trace.
pub(crate) fn decode(stored: &RecordBatch) -> Result<Batch, TargetError> {
    let wrong = |e: &dyn std::fmt::Display| {
        TargetError::Failed(format!("the batch at offset {} cannot be read: {e}", stored.base_offset()))
    };
    let control = match stored.control_record().map_err(|e| wrong(&e))? {
        None => None,
        Some(ControlRecord::EndTxnMarker(marker)) => {
            let coordinator_epoch = marker.coordinator_epoch.get();
            Some(if marker.commit { Control::Commit { coordinator_epoch } } else { Control::Abort { coordinator_epoch } })
        }
        Some(ControlRecord::MirrorPidReset(reset)) => {
            Some(Control::MirrorPidReset { source_cluster: reset.source_cluster_id.unwrap_or_default() })
        }
        Some(other) => return Err(wrong(&format_args!("no trace has a control record like {other:?}"))),
    };
    let records = u32::try_from(i64::from(stored.last_offset_delta()) + 1).map_err(|e| wrong(&e))?;
    Ok(Batch {
        producer_id: stored.producer_id().get(),
        producer_epoch: stored.producer_epoch().get(),
        base_sequence: stored.base_sequence().get(),
        records,
        transactional: stored.is_transactional(),
        control,
    })
}
