//! What one append call makes of one producer id, before any of it counts (Kafka: `ProducerAppendInfo`).

use super::entry::{BatchMetadata, ProducerStateEntry};
use super::error::ProducerStateError;
use super::facts::{AppendOrigin, BatchFacts, BatchKind, TransactionVersion};
use super::txn::{CompletedTxn, TxnMetadata};
use super::verification::VerificationEntry;
use crate::types::{CoordinatorEpoch, Offset, OffsetMetadata, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// The batches of one producer id within one append call.
///
/// It starts from the entry as it is when the call first meets the id, without the entry's batches, and changes nothing
/// outside itself; `ProducerStateManager::update` merges it after the batches were written. So an epoch that is left
/// and entered again within one call keeps the entry's batches, and within two calls does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerAppendInfo {
    origin: AppendOrigin,
    current_epoch: ProducerEpoch,
    current_last_sequence: Sequence,
    updated: ProducerStateEntry,
    started: Vec<TxnMetadata>,
    verification: Option<VerificationEntry>,
}

impl ProducerAppendInfo {
    /// Starts from an entry, or from nothing when the id is not known; and from a verification that is pending.
    #[must_use]
    pub fn new(
        producer_id: ProducerId,
        current: Option<&ProducerStateEntry>,
        origin: AppendOrigin,
        verification: Option<&VerificationEntry>,
    ) -> Self {
        let updated = current.map_or_else(|| ProducerStateEntry::empty(producer_id), ProducerStateEntry::without_batches);
        Self {
            origin,
            current_epoch: updated.producer_epoch,
            current_last_sequence: current.map_or(Sequence::NONE, ProducerStateEntry::last_sequence),
            updated,
            started: Vec::new(),
            verification: verification.copied(),
        }
    }

    /// The producer.
    #[must_use]
    pub fn producer_id(&self) -> ProducerId {
        self.updated.producer_id
    }

    /// The entry as this call would leave it, with the batches of this call only.
    #[must_use]
    pub fn updated(&self) -> &ProducerStateEntry {
        &self.updated
    }

    /// The transactions that began in this call.
    #[must_use]
    pub fn started_transactions(&self) -> &[TxnMetadata] {
        &self.started
    }

    /// Gives the entry and the started transactions away, to be merged.
    pub(super) fn into_parts(self) -> (ProducerStateEntry, Vec<TxnMetadata>) {
        (self.updated, self.started)
    }

    /// Takes in a batch (Kafka: `ProducerAppendInfo.append`); returns the transaction that it ends.
    ///
    /// # Errors
    /// When the rules of the origin refuse it, or a control batch is no readable end-transaction marker.
    pub fn append(&mut self, batch: &BatchFacts, tv: TransactionVersion) -> Result<Option<CompletedTxn>, ProducerStateError> {
        let (producer_id, offset) = (self.producer_id(), batch.base_offset);
        let not_a_marker = |type_id| ProducerStateError::NotAnEndTxnMarker { producer_id, offset, type_id };
        match &batch.kind {
            BatchKind::Data => self.append_data_batch(batch).map(|()| None),
            BatchKind::EmptyControl => Ok(None),
            BatchKind::Marker { commit, coordinator_epoch, timestamp } => {
                let marker = Marker {
                    commit: *commit,
                    coordinator_epoch: *coordinator_epoch,
                    timestamp: *timestamp,
                    epoch: batch.producer_epoch,
                    offset,
                };
                self.append_end_txn_marker(&marker, tv)
            }
            BatchKind::Barrier { .. } => Err(not_a_marker(crate::barrier::CONTROL_TYPE_ID)),
            BatchKind::OtherControl { type_id } => Err(not_a_marker(*type_id)),
            BatchKind::MalformedControl(source) => {
                Err(ProducerStateError::InvalidControlRecord { producer_id, offset, source: source.clone() })
            }
        }
    }

    /// Kafka: `appendDataBatch`.
    fn append_data_batch(&mut self, batch: &BatchFacts) -> Result<(), ProducerStateError> {
        let (epoch, offset) = (batch.producer_epoch, batch.base_offset);
        self.check_producer_epoch(epoch, offset, TransactionVersion::V0)?;
        if self.origin == AppendOrigin::Client {
            self.check_sequence(epoch, batch.base_sequence, offset)?;
        }
        let metadata = BatchMetadata {
            last_sequence: batch.last_sequence,
            last_offset: batch.last_offset,
            offset_delta: batch.offset_delta(),
            timestamp: batch.max_timestamp,
        };
        self.updated.add_batch(epoch, metadata);
        match self.updated.current_txn_first_offset {
            // Whatever the origin: not even a copy may hold such a batch.
            Some(txn_first_offset) if !batch.transactional => {
                Err(ProducerStateError::InvalidTxnState { producer_id: self.producer_id(), offset, txn_first_offset })
            }
            None if batch.transactional => {
                self.updated.current_txn_first_offset = Some(offset);
                let first = OffsetMetadata { offset, position: batch.position };
                self.started.push(TxnMetadata::open(self.producer_id(), first));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Kafka: `appendEndTxnMarker`.
    fn append_end_txn_marker(
        &mut self,
        marker: &Marker,
        tv: TransactionVersion,
    ) -> Result<Option<CompletedTxn>, ProducerStateError> {
        let (producer_id, offset) = (self.producer_id(), marker.offset);
        let tv = match tv {
            TransactionVersion::Unknown if self.origin == AppendOrigin::Replication => TransactionVersion::V0,
            TransactionVersion::Unknown => {
                return Err(ProducerStateError::UnknownTransactionVersion { producer_id, offset });
            }
            known => known,
        };
        self.check_producer_epoch(marker.epoch, offset, tv)?;
        self.check_coordinator_epoch(marker)?;
        let completed = self.updated.current_txn_first_offset.map(|first_offset| CompletedTxn {
            producer_id,
            first_offset,
            last_offset: offset,
            aborted: !marker.commit,
        });
        self.updated.end_transaction(marker.epoch, marker.coordinator_epoch, marker.timestamp);
        Ok(completed)
    }

    /// Data and markers of version 0 and 1 need an epoch that is not lower; markers of version 2 a higher one, or the
    /// same when they repeat what was already done. A copy may go back.
    fn check_producer_epoch(&self, epoch: ProducerEpoch, offset: Offset, tv: TransactionVersion) -> Result<(), ProducerStateError> {
        let current = self.updated.producer_epoch;
        let invalid = match tv {
            TransactionVersion::V2 => {
                let repeats =
                    epoch == current && (self.updated.current_txn_first_offset.is_none() || epoch == ProducerEpoch(i16::MAX));
                epoch <= current && !repeats
            }
            _ => epoch < current,
        };
        if invalid && self.origin != AppendOrigin::Replication {
            return Err(ProducerStateError::InvalidProducerEpoch {
                producer_id: self.producer_id(),
                offset,
                current,
                found: epoch,
            });
        }
        Ok(())
    }

    fn check_coordinator_epoch(&self, marker: &Marker) -> Result<(), ProducerStateError> {
        let (current, found) = (self.updated.coordinator_epoch, marker.coordinator_epoch);
        if current > found && self.origin != AppendOrigin::Replication {
            return Err(ProducerStateError::TransactionCoordinatorFenced {
                producer_id: self.producer_id(),
                offset: marker.offset,
                current,
                found,
            });
        }
        Ok(())
    }

    /// Kafka: `checkSequence`. An id of which nothing is known may begin with any sequence, a new epoch only with 0.
    fn check_sequence(&self, epoch: ProducerEpoch, found: Sequence, offset: Offset) -> Result<(), ProducerStateError> {
        self.check_verified_sequence(epoch, found, offset)?;
        let expected = if epoch != self.updated.producer_epoch {
            if self.updated.producer_epoch == ProducerEpoch::NONE {
                return Ok(());
            }
            Sequence(0)
        } else if self.current_epoch == ProducerEpoch::NONE {
            return Ok(());
        } else {
            self.last_sequence_of(epoch).plus(1)
        };
        if found == expected {
            return Ok(());
        }
        Err(ProducerStateError::OutOfOrderSequence { producer_id: self.producer_id(), offset, epoch, expected, found })
    }

    /// While a verification is pending, no batch may overtake those that wait for it: a client that bumps its epoch begins
    /// with sequence 0, and no sequence is above the smallest that waits.
    fn check_verified_sequence(&self, epoch: ProducerEpoch, found: Sequence, offset: Offset) -> Result<(), ProducerStateError> {
        let Some(pending) = &self.verification else { return Ok(()) };
        let out_of_order =
            |expected| ProducerStateError::OutOfOrderSequence { producer_id: self.producer_id(), offset, epoch, expected, found };
        if pending.supports_epoch_bump && found != Sequence(0) && self.current_last_sequence == Sequence::NONE {
            return Err(out_of_order(Sequence(0)));
        }
        if found > pending.lowest_sequence { Err(out_of_order(pending.lowest_sequence)) } else { Ok(()) }
    }

    fn last_sequence_of(&self, epoch: ProducerEpoch) -> Sequence {
        if !self.updated.is_empty() {
            self.updated.last_sequence()
        } else if epoch == self.current_epoch {
            self.current_last_sequence
        } else {
            Sequence::NONE
        }
    }
}

/// An end-transaction marker in its batch.
struct Marker {
    commit: bool,
    coordinator_epoch: CoordinatorEpoch,
    timestamp: TimestampMs,
    epoch: ProducerEpoch,
    offset: Offset,
}
