//! The steps by which a mirror stops. Which of them, and in which order, is the design's to say.

use super::design::StopStep;
use super::error::MirrorError;
use super::partition::MirrorPartition;
use super::state::MirrorState;
use crate::log::AppendResult;
use crate::psm::{AppendOrigin, CompletedTxn, ProducerStateEntry, TransactionVersion};
use crate::record::{MirrorPidResetRecord, RecordBatch};
use crate::storage::Storage;
use crate::types::{CoordinatorEpoch, LeaderEpoch, Offset, TimestampMs};

impl<S: Storage> MirrorPartition<S> {
    /// Carries out one step, with the source cluster's id in the barrier. Returns false when the step had nothing to do.
    ///
    /// # Errors
    /// As the step.
    pub fn run_stop_step(&mut self, step: StopStep, leader_epoch: LeaderEpoch, now: TimestampMs) -> Result<bool, MirrorError> {
        match step {
            StopStep::RemoveFetcher => Ok(self.remove_fetcher()),
            StopStep::TruncateToLso => self.truncate_to_lso(now),
            StopStep::RecordLastMirroredOffset => self.record_last_mirrored_offset().map(|_| true),
            StopStep::RecordLastMirroredEpoch => self.record_last_mirrored_epoch().map(|e| e.is_some()),
            StopStep::AbortOpenTransactions => {
                let aborted = self.abort_open_transactions(leader_epoch, now)?;
                Ok(!aborted.is_empty())
            }
            StopStep::WriteBarrier => {
                let source = self.source_cluster().map(str::to_owned);
                self.write_barrier(source.as_deref(), leader_epoch, now).map(|_| true)
            }
            StopStep::BecomeWritable => self.become_writable().map(|()| true),
        }
    }

    /// Stops fetching; tells whether a fetcher ran. What a fetch brings afterwards is refused. Not durable: a partition
    /// that is opened in state MIRRORING fetches.
    pub fn remove_fetcher(&mut self) -> bool {
        std::mem::replace(&mut self.fetching, false)
    }

    /// Cuts the log at its last stable offset; tells whether there was anything to cut. `now` in milliseconds.
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or as [`crate::log::PartitionLog::truncate_to`].
    pub fn truncate_to_lso(&mut self, now: TimestampMs) -> Result<bool, MirrorError> {
        self.expect_stopping()?;
        let target = self.log.last_stable_offset();
        Ok(self.log.truncate_to(target, now)?)
    }

    /// Stores the log end offset as last mirrored offset, and returns it.
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or the storage fails.
    pub fn record_last_mirrored_offset(&mut self) -> Result<Offset, MirrorError> {
        self.expect_stopping()?;
        let offset = self.log.log_end_offset();
        let mut metadata = self.metadata.clone();
        metadata.last_mirrored_offset = Some(offset);
        self.store(metadata)?;
        Ok(offset)
    }

    /// Stores the latest leader epoch in the log as last mirrored epoch, and returns it; without one, nothing is stored.
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or the storage fails.
    pub fn record_last_mirrored_epoch(&mut self) -> Result<Option<LeaderEpoch>, MirrorError> {
        self.expect_stopping()?;
        let epoch = self.log.leader_epochs().latest_epoch();
        if epoch.is_some() {
            let mut metadata = self.metadata.clone();
            metadata.last_mirrored_epoch = epoch;
            self.store(metadata)?;
        }
        Ok(epoch)
    }

    /// Appends an ABORT marker for each producer with an open transaction, under its own epoch and the coordinator epoch
    /// that it last saw, or 0. Returns the transactions that ended.
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or a marker cannot be appended; those before it stay.
    pub fn abort_open_transactions(
        &mut self,
        leader_epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Result<Vec<CompletedTxn>, MirrorError> {
        self.expect_stopping()?;
        let producers = self.log.producer_state().active_producers().values();
        let open: Vec<ProducerStateEntry> = producers.filter(|entry| entry.current_txn_first_offset.is_some()).cloned().collect();
        let mut aborted = Vec::new();
        for entry in open {
            let marker = RecordBatch::end_txn_marker(
                Offset(0),
                leader_epoch,
                now,
                entry.producer_id,
                entry.producer_epoch,
                false,
                entry.coordinator_epoch.max(CoordinatorEpoch(0)),
            )?;
            let result = self.append_control(&marker, leader_epoch, now)?;
            aborted.extend(result.completed_txns.iter().map(|completion| completion.txn));
        }
        Ok(aborted)
    }

    /// Appends a barrier with this source cluster, or without one, and this timestamp in milliseconds.
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or the barrier cannot be written or appended.
    pub fn write_barrier(
        &mut self,
        source_cluster_id: Option<&str>,
        leader_epoch: LeaderEpoch,
        timestamp: TimestampMs,
    ) -> Result<AppendResult, MirrorError> {
        self.expect_stopping()?;
        let record = MirrorPidResetRecord { version: 0, source_cluster_id: source_cluster_id.map(str::to_owned) };
        let barrier = RecordBatch::mirror_pid_reset(Offset(0), leader_epoch, timestamp, &record)?;
        self.append_control(&barrier, leader_epoch, timestamp)
    }

    /// Opens the gate: STOPPING to STOPPED, whatever the other steps came to.
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or the storage fails.
    pub fn become_writable(&mut self) -> Result<(), MirrorError> {
        self.expect_stopping()?;
        self.transition(MirrorState::Stopped)
    }

    fn expect_stopping(&self) -> Result<(), MirrorError> {
        self.expect_state(MirrorState::Stopping)?;
        if self.fetching {
            return Err(MirrorError::StillFetching);
        }
        Ok(())
    }

    fn append_control(
        &mut self,
        batch: &RecordBatch,
        leader_epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Result<AppendResult, MirrorError> {
        let origin = AppendOrigin::Coordinator;
        let tv = TransactionVersion::V0;
        let bytes = batch.bytes().clone();
        Ok(self.append_as_leader(bytes, origin, leader_epoch, tv, now)?)
    }
}
