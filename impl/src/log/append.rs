//! Appending (Kafka: `UnifiedLog.appendAsLeader`, `appendAsFollower`).

use bytes::Bytes;

use super::error::AppendError;
use super::files::{LOG_FILE, TXN_INDEX_FILE};
use super::partition_log::{BatchSlot, PartitionLog};
use super::result::AppendResult;
use super::txn_index::AbortedTxn;
use super::validate::{analyze, check_leader_batch, check_order};
use crate::barrier::{BarrierRules, Place, ReplicationPath};
use crate::psm::{AppendOrigin, BatchFacts, BatchMetadata, Completion, Met, PendingAppend, TransactionVersion};
use crate::record::RecordBatch;
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// Who appends, and how.
#[derive(Clone, Copy)]
struct Call {
    origin: AppendOrigin,
    place: Place,
    tv: TransactionVersion,
}

impl<S: Storage> PartitionLog<S> {
    /// Appends exactly one batch at the log end offset, as the leader of `leader_epoch`, which is stamped into it.
    ///
    /// `tv` matters for a marker. `now` is the clock in milliseconds, that timestamps are held against. With
    /// [`AppendOrigin::Replication`] a batch of a leader epoch above `leader_epoch` is dropped silently.
    ///
    /// # Errors
    /// When the batch breaks a rule, or the log is offline, or the storage fails. The leader epoch may have been noted
    /// nevertheless, and a barrier that acts at analysis has cleared producer state.
    pub fn append_as_leader(
        &mut self,
        batch: Bytes,
        origin: AppendOrigin,
        leader_epoch: LeaderEpoch,
        tv: TransactionVersion,
        now: TimestampMs,
    ) -> Result<AppendResult, AppendError> {
        self.check_online()?;
        let analyzed = analyze(&batch, origin, false, leader_epoch, &self.config)?;
        let batch = match analyzed.batches.as_slice() {
            [] => return Ok(AppendResult::nothing()),
            [batch] => batch,
            _ => {
                let why = "a leader appends one batch at a time";
                return Err(AppendError::InvalidRecord(why));
            }
        };
        check_leader_batch(batch, origin, now, &self.config)?;
        let stamped = batch.with_base_offset(self.log_end_offset).with_leader_epoch(leader_epoch);
        check_order(&stamped, Offset::UNKNOWN)?;
        let bytes = stamped.bytes().clone();
        let place = Place::LeaderAppend;
        self.append_batches(&[stamped], bytes, Call { origin, place, tv })
    }

    /// Appends a copy of batches of another log, at the offsets that they have: all of them or none. Offsets may leave
    /// gaps. Batches of a leader epoch above `leader_epoch` are dropped silently, with everything behind them.
    ///
    /// # Errors
    /// When the batches break a rule, or the log is offline, or the storage fails. Leader epochs may have been noted
    /// nevertheless, and a barrier that acts at analysis has cleared producer state.
    pub fn append_as_follower(
        &mut self,
        batches: Bytes,
        leader_epoch: LeaderEpoch,
        path: ReplicationPath,
    ) -> Result<AppendResult, AppendError> {
        self.check_online()?;
        let origin = AppendOrigin::Replication;
        let analyzed = analyze(&batches, origin, true, leader_epoch, &self.config)?;
        let (Some(first), Some(last)) = (analyzed.batches.first(), analyzed.batches.last()) else {
            return Ok(AppendResult::nothing());
        };
        if first.base_offset() < self.log_end_offset {
            return Err(AppendError::UnexpectedAppendOffset {
                first_offset: first.base_offset(),
                last_offset: last.last_offset(),
                log_end_offset: self.log_end_offset,
            });
        }
        let bytes = batches.slice(..analyzed.valid_bytes);
        let call = Call { origin, place: Place::ReplicationAppend(path), tv: TransactionVersion::Unknown };
        self.append_batches(&analyzed.batches, bytes, call)
    }

    /// The order of effects is Kafka's: leader epochs, producer state's word, the bytes, producer state.
    fn append_batches(&mut self, batches: &[RecordBatch], bytes: Bytes, call: Call) -> Result<AppendResult, AppendError> {
        self.assign_epochs(batches)?;
        if bytes.len() > self.config.segment_bytes {
            let (size, max) = (bytes.len(), self.config.segment_bytes);
            return Err(AppendError::RecordBatchTooLarge { size, max });
        }
        let pending = match self.meet_all(batches, call)? {
            Ok(pending) => pending,
            Err(duplicate) => return Ok(duplicate_of(&duplicate)),
        };
        self.write(batches, &bytes)?;
        let completed = pending.commit(&mut self.psm)?;
        self.write_aborted(&completed)?;
        self.psm.set_map_end_offset(self.log_end_offset);
        let first = batches.first().map_or(Offset::UNKNOWN, RecordBatch::base_offset);
        let last = batches.last().map_or(Offset::UNKNOWN, RecordBatch::last_offset);
        Ok(AppendResult::appended(first, last, completed))
    }

    fn assign_epochs(&mut self, batches: &[RecordBatch]) -> Result<(), AppendError> {
        let mut changed = false;
        let mut result = Ok(());
        for batch in batches {
            match self.epochs.assign(batch.leader_epoch(), batch.base_offset()) {
                Ok(assigned) => changed |= assigned,
                Err(error) => {
                    result = Err(AppendError::from((error, batch.base_offset())));
                    break;
                }
            }
        }
        if changed {
            self.write_epochs()?;
        }
        result
    }

    /// What the batches would change; or, as the inner error, the batch that a client's batch repeats.
    fn meet_all(&mut self, batches: &[RecordBatch], call: Call) -> Result<Result<PendingAppend, BatchMetadata>, AppendError> {
        let rules = BarrierRules { policy: self.config.barrier, mirror_source: self.mirror_source.as_deref() };
        let mut pending = PendingAppend::new(call.origin);
        for batch in batches {
            let facts = BatchFacts::from(batch);
            let met = pending.meet(&mut self.psm, &rules, call.place, &facts, call.tv)?;
            if let Met::Duplicate(duplicate) = met {
                return Ok(Err(duplicate));
            }
        }
        Ok(Ok(pending))
    }

    fn write(&mut self, batches: &[RecordBatch], bytes: &Bytes) -> Result<(), AppendError> {
        if self.has_trailing_bytes {
            let cut = self.storage.truncate(LOG_FILE, self.valid_bytes);
            self.or_offline(cut)?;
            self.has_trailing_bytes = false;
        }
        let appended = self.storage.append(LOG_FILE, bytes);
        self.or_offline(appended)?;
        for batch in batches {
            let slot = BatchSlot::new(batch, self.valid_bytes);
            self.valid_bytes = self.valid_bytes.saturating_add(slot.size as u64);
            self.log_end_offset = batch.next_offset();
            self.slots.push(slot);
        }
        Ok(())
    }

    fn write_aborted(&mut self, completed: &[Completion]) -> Result<(), AppendError> {
        for aborted in completed.iter().filter_map(AbortedTxn::from_completion) {
            let appended = self.storage.append(TXN_INDEX_FILE, &aborted.encode());
            self.or_offline(appended)?;
            self.aborted.push(aborted);
        }
        Ok(())
    }
}

fn duplicate_of(batch: &BatchMetadata) -> AppendResult {
    AppendResult {
        first_offset: batch.first_offset(),
        last_offset: batch.last_offset,
        duplicate: true,
        log_append_time: batch.timestamp,
        completed_txns: Vec::new(),
    }
}
