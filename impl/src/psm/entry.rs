//! What is known of one producer id (Kafka: `ProducerStateEntry`, `BatchMetadata`).

use crate::types::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// How many batches of a producer id are remembered, to recognise a resend.
pub const BATCHES_TO_RETAIN: usize = 5;

/// A batch that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchMetadata {
    /// Sequence of the last record.
    pub last_sequence: Sequence,
    /// Offset of the last record.
    pub last_offset: Offset,
    /// Last offset less first offset, in records.
    pub offset_delta: i32,
    /// The largest timestamp in the batch, in milliseconds.
    pub timestamp: TimestampMs,
}

impl BatchMetadata {
    /// Sequence of the first record; wraps (Kafka: `BatchMetadata.firstSeq`).
    #[must_use]
    pub fn first_sequence(&self) -> Sequence {
        let (last, delta) = (self.last_sequence.get(), self.offset_delta);
        // The arithmetic of Java's DefaultRecordBatch.decrementSequence: a snapshot may hold any numbers.
        if last < delta {
            Sequence(i32::MAX.wrapping_sub(delta.wrapping_sub(last)).wrapping_add(1))
        } else {
            Sequence(last.wrapping_sub(delta))
        }
    }

    /// Offset of the first record.
    #[must_use]
    pub fn first_offset(&self) -> Offset {
        self.last_offset.plus(-i64::from(self.offset_delta))
    }
}

/// The state of one producer id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProducerStateEntry {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its epoch; -1 when only an emptied control batch was seen.
    pub producer_epoch: ProducerEpoch,
    /// Epoch of the coordinator that wrote the last marker; -1 before the first.
    pub coordinator_epoch: CoordinatorEpoch,
    /// Timestamp of the last batch or marker, in milliseconds: the client's time, not that of the append.
    pub last_timestamp: TimestampMs,
    /// First offset of the open transaction.
    pub current_txn_first_offset: Option<Offset>,
    batches: Vec<BatchMetadata>,
}

impl ProducerStateEntry {
    /// The state of a producer id of which nothing is known (Kafka: `ProducerStateEntry.empty`).
    #[must_use]
    pub fn empty(producer_id: ProducerId) -> Self {
        Self {
            producer_id,
            producer_epoch: ProducerEpoch::NONE,
            coordinator_epoch: CoordinatorEpoch::NONE,
            last_timestamp: TimestampMs::NONE,
            current_txn_first_offset: None,
            batches: Vec::new(),
        }
    }

    /// The remembered batches, oldest first; at most [`BATCHES_TO_RETAIN`].
    #[must_use]
    pub fn batches(&self) -> &[BatchMetadata] {
        &self.batches
    }

    /// The newest remembered batch.
    #[must_use]
    pub fn last_batch(&self) -> Option<&BatchMetadata> {
        self.batches.last()
    }

    /// Whether no batch is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Sequence of the last record of the newest batch; -1 when there is none.
    #[must_use]
    pub fn last_sequence(&self) -> Sequence {
        self.last_batch().map_or(Sequence::NONE, |batch| batch.last_sequence)
    }

    /// Offset of the last record of the newest batch; -1 when there is none (Kafka: `lastDataOffset`).
    #[must_use]
    pub fn last_data_offset(&self) -> Offset {
        self.last_batch().map_or(Offset::UNKNOWN, |batch| batch.last_offset)
    }

    /// The remembered batch with exactly this epoch and these sequences (Kafka: `findDuplicateBatch`).
    #[must_use]
    pub fn find_duplicate(
        &self,
        epoch: ProducerEpoch,
        first_sequence: Sequence,
        last_sequence: Sequence,
    ) -> Option<&BatchMetadata> {
        if epoch != self.producer_epoch {
            return None;
        }
        self.batches.iter().find(|batch| batch.first_sequence() == first_sequence && batch.last_sequence == last_sequence)
    }

    /// The same state without the remembered batches: what an append starts from.
    pub(super) fn without_batches(&self) -> Self {
        Self { batches: Vec::new(), ..*self }
    }

    /// Remembers a batch. A change of epoch, up or down, forgets those before it.
    pub(super) fn add_batch(&mut self, epoch: ProducerEpoch, batch: BatchMetadata) {
        self.set_epoch(epoch);
        self.remember(batch);
        self.last_timestamp = batch.timestamp;
    }

    /// Takes over what a marker says: it ends the transaction and may change the epoch.
    pub(super) fn end_transaction(&mut self, epoch: ProducerEpoch, coordinator_epoch: CoordinatorEpoch, timestamp: TimestampMs) {
        self.set_epoch(epoch);
        self.coordinator_epoch = coordinator_epoch;
        self.current_txn_first_offset = None;
        self.last_timestamp = timestamp;
    }

    /// Merges what one append call made of this entry (Kafka: `ProducerStateEntry.update`): batches of the same epoch
    /// are added to those that are there.
    pub(super) fn merge(&mut self, newer: Self) {
        self.set_epoch(newer.producer_epoch);
        for batch in newer.batches {
            self.remember(batch);
        }
        self.coordinator_epoch = newer.coordinator_epoch;
        self.current_txn_first_offset = newer.current_txn_first_offset;
        self.last_timestamp = newer.last_timestamp;
    }

    /// Restores the one batch that a snapshot holds.
    pub(super) fn restore_batch(&mut self, batch: BatchMetadata) {
        self.batches = vec![batch];
    }

    fn set_epoch(&mut self, epoch: ProducerEpoch) {
        if self.producer_epoch != epoch {
            self.batches.clear();
            self.producer_epoch = epoch;
        }
    }

    fn remember(&mut self, batch: BatchMetadata) {
        if self.batches.len() >= BATCHES_TO_RETAIN {
            self.batches.remove(0);
        }
        self.batches.push(batch);
    }
}
