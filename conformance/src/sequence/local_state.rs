//! The whole observable state of a log, in the words of the adapter protocol.

use cleanslate_log::log::PartitionLog;
use cleanslate_log::psm::{ProducerSnapshot, ProducerStateEntry, ProducerStateManager, TxnMetadata, snapshot_files};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::Offset;

use super::local::guard_number;
use crate::adapter::state::{
    AbortedTransaction, CachedBatch, LeaderEpoch, Producer, Segment, Snapshot, State, Transaction, Verification,
};

/// What can be seen of an open log. `earlier_guards` were handed out before it was opened.
pub(crate) fn state_of(log: &PartitionLog<MemoryStorage>, earlier_guards: u64) -> State {
    let psm = log.producer_state();
    let get = |offset: Option<Offset>| offset.map(Offset::get);
    State {
        log_start_offset: log.log_start_offset().get(),
        log_end_offset: log.log_end_offset().get(),
        high_watermark: log.high_watermark().get(),
        last_stable_offset: log.last_stable_offset().get(),
        first_unstable_offset: get(log.first_unstable_offset()),
        recovery_point: log.recovery_point().get(),
        map_end_offset: psm.map_end_offset().get(),
        producers: psm.active_producers().values().map(producer).collect(),
        ongoing_transactions: psm.ongoing_transactions().values().map(transaction).collect(),
        unreplicated_transactions: psm.unreplicated_transactions().values().map(transaction).collect(),
        verification: Some(verification(psm, earlier_guards)),
        snapshots: Some(snapshots(log.storage())),
        leader_epochs: Some(
            log.leader_epochs()
                .entries()
                .iter()
                .map(|entry| LeaderEpoch { epoch: entry.epoch.get(), start_offset: entry.start_offset.get() })
                .collect(),
        ),
        aborted_transactions: Some(
            log.aborted_transactions()
                .map(|aborted| AbortedTransaction {
                    producer_id: aborted.producer_id.get(),
                    first_offset: aborted.first_offset.get(),
                    last_offset: aborted.last_offset.get(),
                    last_stable_offset: aborted.last_stable_offset.get(),
                })
                .collect(),
        ),
        segments: Some(
            log.segments()
                .map(|(base, size)| Segment { base_offset: base.get(), size: u32::try_from(size).unwrap_or(u32::MAX) })
                .collect(),
        ),
    }
}

fn producer(entry: &ProducerStateEntry) -> Producer {
    Producer {
        producer_id: entry.producer_id.get(),
        producer_epoch: entry.producer_epoch.get(),
        coordinator_epoch: entry.coordinator_epoch.get(),
        last_timestamp: entry.last_timestamp.get(),
        txn_first_offset: entry.current_txn_first_offset.map(Offset::get),
        batches: entry
            .batches()
            .iter()
            .map(|batch| CachedBatch {
                base_sequence: batch.first_sequence().get(),
                last_sequence: batch.last_sequence.get(),
                base_offset: batch.first_offset().get(),
                last_offset: batch.last_offset.get(),
                timestamp: batch.timestamp.get(),
            })
            .collect(),
    }
}

fn transaction(txn: &TxnMetadata) -> Transaction {
    Transaction {
        producer_id: txn.producer_id.get(),
        first_offset: txn.first_offset.get(),
        last_offset: txn.last_offset.map(Offset::get),
    }
}

fn verification(psm: &ProducerStateManager, earlier_guards: u64) -> Vec<Verification> {
    let entries = psm.verifications().iter();
    entries
        .map(|(id, entry)| Verification {
            producer_id: id.get(),
            producer_epoch: entry.producer_epoch.get(),
            lowest_sequence: entry.lowest_sequence.get(),
            epoch_bump: entry.supports_epoch_bump,
            guard: guard_number(entry.guard, earlier_guards),
        })
        .collect()
}

fn snapshots(storage: &MemoryStorage) -> Vec<Snapshot> {
    let files = snapshot_files(storage).unwrap_or_default();
    files
        .into_iter()
        .map(|file| {
            let bytes = storage.read_all(&file.name).ok().flatten().unwrap_or_default();
            Snapshot { offset: file.offset.get(), producers: ProducerSnapshot::decode(&bytes).ok().map(|s| entries(&s)) }
        })
        .collect()
}

fn entries(snapshot: &ProducerSnapshot) -> Vec<Producer> {
    let mut producers: Vec<Producer> = snapshot.entries.iter().map(|entry| producer(&ProducerStateEntry::from(entry))).collect();
    producers.sort_by_key(|producer| producer.producer_id);
    producers
}
