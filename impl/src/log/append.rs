//! Appending (Kafka: `UnifiedLog.appendAsLeader`, `appendAsFollower`).

use bytes::Bytes;

use super::error::AppendError;
use super::partition_log::PartitionLog;
use super::result::AppendResult;
use super::segment::Incoming;
use super::txn_index::AbortedTxn;
use super::validate::{Analyzed, analyze, check_order};
use crate::barrier::{BarrierRules, BarrierSnapshots, Place, ReplicationPath};
use crate::psm::{
    AppendOrigin, BatchFacts, BatchMetadata, Completion, Met, PendingAppend, TransactionVersion, Verification, VerificationGuard,
};
use crate::record::{AnyBatch, AssignRules, TimestampType, assign_offsets};
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// Who appends, and how.
#[derive(Clone, Copy)]
struct Call {
    origin: AppendOrigin,
    place: Place,
    tv: TransactionVersion,
    guard: VerificationGuard,
    now: TimestampMs,
}

impl<S: Storage> PartitionLog<S> {
    /// Appends exactly one batch at the log end offset, as the leader of `leader_epoch`, which is stamped into it. With
    /// [`AppendOrigin::RaftLeader`] any number of batches at the offsets that they have, which may leave gaps; they have to
    /// carry `leader_epoch`, and what a leader checks of records is not checked.
    ///
    /// `tv` matters for a marker. `now` is the clock in milliseconds, that timestamps are held against. With
    /// [`AppendOrigin::Replication`] a batch of a leader epoch above `leader_epoch` is dropped silently.
    ///
    /// Bytes that end before a batch does are no batch of it: what follows the last whole one is left out. No bytes at all, or less than
    /// one batch, are no error, as in Kafka: nothing is appended, and the offsets of the result are [`Offset::UNKNOWN`], -1.
    ///
    /// # Errors
    /// When the batch breaks a rule, or the log is offline, or the storage fails. The leader epoch may have been noted
    /// nevertheless, a new segment begun, and a barrier that acts at analysis has cleared producer state.
    pub fn append_as_leader(
        &mut self,
        batch: Bytes,
        origin: AppendOrigin,
        leader_epoch: LeaderEpoch,
        tv: TransactionVersion,
        now: TimestampMs,
    ) -> Result<AppendResult, AppendError> {
        self.append_verified(batch, origin, leader_epoch, tv, VerificationGuard::SENTINEL, now)
    }

    /// As [`Self::append_as_leader`], for a client that was given a guard by
    /// [`Self::maybe_start_transaction_verification`] (KIP-890).
    ///
    /// # Errors
    /// As [`Self::append_as_leader`].
    pub fn append_verified(
        &mut self,
        batch: Bytes,
        origin: AppendOrigin,
        leader_epoch: LeaderEpoch,
        tv: TransactionVersion,
        guard: VerificationGuard,
        now: TimestampMs,
    ) -> Result<AppendResult, AppendError> {
        self.check_online()?;
        self.topic_id_before_data()?;
        let analyzed = analyze(&batch, origin, false, leader_epoch, &self.config)?;
        if analyzed.valid_bytes == 0 {
            return Ok(AppendResult::nothing());
        }
        let call = Call { origin, place: Place::LeaderAppend, tv, guard, now };
        if origin == AppendOrigin::RaftLeader {
            return self.append_placed(&batch, &analyzed, call);
        }
        let rules = AssignRules {
            from_client: origin == AppendOrigin::Client,
            target: self.config.compression,
            timestamp_type: self.config.timestamp_type,
            timestamp_before_max_ms: self.config.timestamp_before_max_ms,
            timestamp_after_max_ms: self.config.timestamp_after_max_ms,
            now,
            next_offset: self.log_end_offset,
            leader_epoch,
            compacted: self.config.compact,
            max_decompressed_bytes: self.config.max_decompressed_bytes,
        };
        let assigned = assign_offsets(&batch.slice(..analyzed.valid_bytes), &rules)?;
        let Some(stamped) = assigned.batch else { return Ok(AppendResult::nothing()) };
        if assigned.rebuilt && stamped.size_in_bytes() > self.config.max_message_bytes {
            let (size, max) = (stamped.size_in_bytes(), self.config.max_message_bytes);
            return Err(AppendError::RecordTooLarge { size, max });
        }
        check_order(&stamped, Offset::UNKNOWN)?;
        let bytes = stamped.bytes().clone();
        let mut result = self.append_batches(&[AnyBatch::V2(stamped)], bytes, assigned.max_timestamp, call)?;
        if !result.duplicate && self.config.timestamp_type == TimestampType::LogAppendTime {
            result.log_append_time = now;
        }
        Ok(result)
    }

    /// Appends a copy of batches of another log, at the offsets that they have: all of them or none. Offsets may leave
    /// gaps. Batches of magic 0 and 1 stay as they are; as nothing tells who led when they were appended, the log forgets its leader
    /// epochs with each. Batches of a leader epoch above `leader_epoch` are dropped silently, with everything behind them. So is a batch
    /// at the end that is not whole; without a whole one nothing is appended, and the offsets of the result are [`Offset::UNKNOWN`].
    /// `now` is the clock in milliseconds.
    ///
    /// # Errors
    /// When the batches break a rule, or the log is offline, or the storage fails. Leader epochs may have been noted
    /// nevertheless, a new segment begun, and a barrier that acts at analysis has cleared producer state.
    pub fn append_as_follower(
        &mut self,
        batches: Bytes,
        leader_epoch: LeaderEpoch,
        path: ReplicationPath,
        now: TimestampMs,
    ) -> Result<AppendResult, AppendError> {
        self.check_online()?;
        self.topic_id_before_data()?;
        let origin = AppendOrigin::Replication;
        let analyzed = analyze(&batches, origin, true, leader_epoch, &self.config)?;
        if analyzed.batches.is_empty() {
            return Ok(AppendResult::nothing());
        }
        let (place, tv) = (Place::ReplicationAppend(path), TransactionVersion::Unknown);
        let call = Call { origin, place, tv, guard: VerificationGuard::SENTINEL, now };
        self.append_placed(&batches, &analyzed, call)
    }

    /// As [`Self::append_as_follower`], for a fetcher: a log without records, which starts within the first batch that it is given,
    /// starts at that batch instead, where the source has deleted records up to the middle of a batch
    /// (Kafka: `Partition.appendRecordsToFollowerOrFutureReplica`).
    ///
    /// # Errors
    /// As [`Self::append_as_follower`].
    pub fn append_fetched(
        &mut self,
        batches: Bytes,
        leader_epoch: LeaderEpoch,
        path: ReplicationPath,
        now: TimestampMs,
    ) -> Result<AppendResult, AppendError> {
        let end = self.log_end_offset;
        match self.append_as_follower(batches.clone(), leader_epoch, path, now) {
            Err(AppendError::UnexpectedAppendOffset { first_offset, last_offset, .. })
                if self.log_start_offset == end && first_offset < end && last_offset >= end =>
            {
                self.truncate_fully_and_start_at(first_offset, now)?;
                self.append_as_follower(batches, leader_epoch, path, now)
            }
            result => result,
        }
    }

    /// Appends batches at the offsets that they have.
    fn append_placed(&mut self, batches: &Bytes, analyzed: &Analyzed, call: Call) -> Result<AppendResult, AppendError> {
        self.check_follows(analyzed)?;
        let bytes = batches.slice(..analyzed.valid_bytes);
        self.append_batches(&analyzed.batches, bytes, analyzed.max_timestamp(), call)
    }

    fn check_follows(&self, analyzed: &Analyzed) -> Result<(), AppendError> {
        let (Some(first), Some(last)) = (analyzed.batches.first(), analyzed.batches.last()) else { return Ok(()) };
        // A compressed set of magic 0 or 1 does not tell where it begins, so it may begin below the log end offset.
        if first.base_offset().unwrap_or(first.last_offset()) >= self.log_end_offset {
            return Ok(());
        }
        Err(AppendError::UnexpectedAppendOffset {
            first_offset: first.first_offset(self.config.max_decompressed_bytes),
            last_offset: last.last_offset(),
            log_end_offset: self.log_end_offset,
        })
    }

    /// The order of effects is Kafka's: leader epochs, a new segment, producer state's word, the bytes, producer state.
    fn append_batches(
        &mut self,
        batches: &[AnyBatch],
        bytes: Bytes,
        max_timestamp: TimestampMs,
        call: Call,
    ) -> Result<AppendResult, AppendError> {
        self.assign_epochs(batches)?;
        if bytes.len() > self.config.max_segment_bytes() {
            let (size, max) = (bytes.len(), self.config.max_segment_bytes());
            return Err(AppendError::RecordBatchTooLarge { size, max });
        }
        let first_offset = batches.first().and_then(AnyBatch::base_offset);
        let last_offset = batches.last().map_or(Offset::UNKNOWN, AnyBatch::last_offset);
        self.maybe_roll(&Incoming { bytes: bytes.len(), first_offset, last_offset, max_timestamp }, call.now)?;
        let pending = match self.meet_all(batches, call)? {
            Ok(pending) => pending,
            Err(duplicate) => return Ok(duplicate_of(&duplicate)),
        };
        self.write(batches, &bytes)?;
        let barrier_acted = pending.barrier_acted();
        let completed = self.commit(pending)?;
        self.psm.set_map_end_offset(self.log_end_offset);
        self.refresh_first_unstable_offset();
        if barrier_acted && self.config.barrier.snapshots == BarrierSnapshots::BehindBarrier {
            let taken = self.psm.take_snapshot(&mut self.storage);
            self.or_offline(taken)?;
        }
        Ok(AppendResult::appended(first_offset.unwrap_or(Offset::UNKNOWN), last_offset, completed))
    }

    fn assign_epochs(&mut self, batches: &[AnyBatch]) -> Result<(), AppendError> {
        let mut changed = false;
        let mut result = Ok(());
        for batch in batches {
            let AnyBatch::V2(batch) = batch else {
                changed |= self.epochs.clear();
                continue;
            };
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
    fn meet_all(&mut self, batches: &[AnyBatch], call: Call) -> Result<Result<PendingAppend, BatchMetadata>, AppendError> {
        let rules = BarrierRules { policy: self.config.barrier, mirror_source: self.mirror_source.as_deref() };
        let verification = Verification { required: self.config.transaction_verification, guard: call.guard };
        let mut pending = PendingAppend::verified(call.origin, verification);
        // Batches of magic 0 and 1 know no producers.
        let mut place = self.end_position();
        for batch in batches {
            let position = Some(place);
            place.position = place.position.saturating_add(batch.size_in_bytes() as u64);
            let Some(batch) = batch.as_v2() else { continue };
            let facts = BatchFacts { position, ..BatchFacts::from(batch) };
            let met = pending.meet(&mut self.psm, &rules, call.place, &facts, call.tv)?;
            if let Met::Duplicate(duplicate) = met {
                return Ok(Err(duplicate));
            }
        }
        Ok(Ok(pending))
    }

    fn write(&mut self, batches: &[AnyBatch], bytes: &Bytes) -> Result<(), AppendError> {
        let Some(active) = self.segments.last_mut() else { return Ok(()) };
        let written = active.append(&mut self.storage, &self.config, batches, bytes);
        self.or_offline(written)?;
        self.log_end_offset = batches.last().map_or(self.log_end_offset, AnyBatch::next_offset);
        Ok(())
    }

    /// Producer state takes the batches in. An aborted transaction is over when it is in the index, not before.
    fn commit(&mut self, pending: PendingAppend) -> Result<Vec<Completion>, AppendError> {
        let Self { psm, segments, storage, .. } = self;
        let committed =
            pending.commit_with(psm, |completion| match (AbortedTxn::from_completion(completion), segments.last_mut()) {
                (Some(aborted), Some(active)) => active.append_aborted(storage, aborted).map_err(AppendError::from),
                _ => Ok(()),
            });
        self.or_offline(committed)
    }

    /// Begins the verification of a producer's transaction, before its first batch is appended; returns the guard that
    /// the append has to come with, or [`VerificationGuard::SENTINEL`] when the transaction is open already
    /// (Kafka: `maybeStartTransactionVerification`). `now` is the clock in milliseconds.
    ///
    /// # Errors
    /// When the log has seen a higher epoch of the producer.
    pub fn maybe_start_transaction_verification(
        &mut self,
        request: &crate::psm::VerificationRequest,
        now: TimestampMs,
    ) -> Result<VerificationGuard, AppendError> {
        Ok(self.psm.maybe_start_verification(request, self.log_end_offset, now)?)
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
