//! The steps by which a mirror stops. Which of them, and in which order, is the design's to say.

use super::design::{Rerun, StopStep, TaskCheck, UnknownSource};
use super::error::MirrorError;
use super::machine::MirrorEvent;
use super::partition::{MirrorPartition, StateFence};
use super::state::MirrorState;
use crate::log::AppendResult;
use crate::psm::{AppendOrigin, CompletedTxn, ProducerStateEntry, TransactionVersion};
use crate::record::{MirrorPidResetRecord, RecordBatch};
use crate::storage::Storage;
use crate::types::{CoordinatorEpoch, LeaderEpoch, Offset, TimestampMs};

/// A step that runs apart from the thread that decided on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StopTask {
    /// The step.
    pub step: StopStep,
    /// What it was made under.
    pub fence: StateFence,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepDone {
    /// Whether there was anything to do.
    pub changed: bool,
    /// The offset behind what was appended.
    pub appended: Option<Offset>,
}

impl<S: Storage> MirrorPartition<S> {
    /// Carries out one step. Returns false when the step had nothing to do.
    ///
    /// # Errors
    /// As the step.
    pub fn run_stop_step(&mut self, step: StopStep, leader_epoch: LeaderEpoch, now: TimestampMs) -> Result<bool, MirrorError> {
        match step {
            StopStep::RemoveFetcher => Ok(self.remove_fetcher()),
            StopStep::TruncateToLso => self.truncate_to_lso(now),
            StopStep::RecordLastMirroredOffset => self.record_last_mirrored_offset().map(|_| true),
            StopStep::RecordLastMirroredEpoch => self.record_last_mirrored_epoch().map(|e| e.is_some()),
            StopStep::BumpLeaderEpoch => self.bump_leader_epoch(leader_epoch).map(|()| true),
            StopStep::AbortOpenTransactions => {
                let aborted = self.abort_open_transactions(leader_epoch, now)?;
                Ok(!aborted.is_empty())
            }
            StopStep::WriteBarrier => self.write_own_barrier(leader_epoch, now),
            StopStep::BecomeWritable => self.become_writable().map(|()| true),
        }
    }

    /// Carries out one step, and tells behind which offset its appends end, so that a [`super::StopSequence`] can wait for
    /// them.
    ///
    /// # Errors
    /// As [`Self::run_stop_step`].
    pub fn run_stop_command(
        &mut self,
        step: StopStep,
        leader_epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Result<StepDone, MirrorError> {
        let changed = self.run_stop_step(step, leader_epoch, now)?;
        let appends = matches!(step, StopStep::AbortOpenTransactions | StopStep::WriteBarrier);
        let appended = (changed && appends).then(|| self.log.log_end_offset());
        Ok(StepDone { changed, appended })
    }

    /// A task for this step under the present leader epoch and status.
    #[must_use]
    pub fn stop_task(&self, step: StopStep) -> StopTask {
        StopTask { step, fence: self.fence() }
    }

    /// Carries out a task that was made earlier. Whether what it was made under still has to hold is the design's choice:
    /// an unchecked barrier passes the gate of a partition that has become writable, and lands behind local batches (GATE-11).
    ///
    /// # Errors
    /// [`MirrorError::StaleTask`]; or as the step.
    pub fn run_stop_task(&mut self, task: &StopTask, now: TimestampMs) -> Result<StepDone, MirrorError> {
        let found = self.fence();
        let leader_epoch = task.fence.leader_epoch.unwrap_or(LeaderEpoch::NONE);
        match self.design().stop.task_check {
            TaskCheck::Checked if found != task.fence || found.leader_epoch.is_none() => {
                Err(MirrorError::StaleTask { expected: task.fence, found })
            }
            TaskCheck::Checked => self.run_stop_command(task.step, leader_epoch, now),
            TaskCheck::Unchecked if task.step == StopStep::WriteBarrier => {
                let source = self.source_cluster().map(str::to_owned);
                self.append_barrier(source.as_deref(), leader_epoch, now)?;
                Ok(StepDone { changed: true, appended: Some(self.log.log_end_offset()) })
            }
            TaskCheck::Unchecked => self.run_stop_command(task.step, leader_epoch, now),
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

    /// Stores the log end offset as last mirrored offset, and returns it; in a second run of the same stop, where the design
    /// keeps what the first has recorded, that (STOP-13).
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or the storage fails.
    pub fn record_last_mirrored_offset(&mut self) -> Result<Offset, MirrorError> {
        self.expect_stopping()?;
        let end = self.log.log_end_offset();
        let kept = self.metadata.last_mirrored_offset.filter(|_| self.keeps_recorded());
        let offset = kept.map_or(end, |kept| kept.min(end));
        let mut metadata = self.metadata.clone();
        metadata.last_mirrored_offset = Some(offset);
        self.store(metadata)?;
        Ok(offset)
    }

    /// Stores the latest leader epoch in the log as last mirrored epoch, and returns it; without one, nothing is stored. In a
    /// second run of the same stop as [`Self::record_last_mirrored_offset`].
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, or the storage fails.
    pub fn record_last_mirrored_epoch(&mut self) -> Result<Option<LeaderEpoch>, MirrorError> {
        self.expect_stopping()?;
        let latest = self.log.leader_epochs().latest_epoch();
        let kept = self.metadata.last_mirrored_epoch.filter(|_| self.keeps_recorded());
        let epoch = latest.map(|latest| kept.map_or(latest, |kept| kept.min(latest)));
        if epoch.is_some() {
            let mut metadata = self.metadata.clone();
            metadata.last_mirrored_epoch = epoch;
            self.store(metadata)?;
        }
        Ok(epoch)
    }

    fn keeps_recorded(&self) -> bool {
        self.design().stop.rerun == Rerun::KeepRecorded
    }

    /// Notes a leader epoch at the log end offset, which has to be above all that the log holds: so that what this mirror
    /// appends can be told from what it mirrored (STOP-12).
    ///
    /// # Errors
    /// When the state is not STOPPING, a fetcher runs, the epoch is not above, or the storage fails.
    pub fn bump_leader_epoch(&mut self, leader_epoch: LeaderEpoch) -> Result<(), MirrorError> {
        self.expect_stopping()?;
        let cache = self.log.leader_epochs();
        let (latest, end) = (cache.latest_epoch(), self.log.log_end_offset());
        // A new leader has noted its epoch already; so has an earlier run of this step.
        let noted = cache.entries().last().is_some_and(|last| last.epoch == leader_epoch && last.start_offset >= end);
        match latest {
            Some(latest) if leader_epoch <= latest && !noted => {
                Err(MirrorError::LeaderEpochNotRaised { latest, found: leader_epoch })
            }
            _ => Ok(self.log.assign_epoch_start_offset(leader_epoch)?),
        }
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
        self.append_barrier(source_cluster_id, leader_epoch, timestamp)
    }

    /// The barrier of this stop, with the id of the source cluster; without it, what the design says. Tells whether one was
    /// appended.
    fn write_own_barrier(&mut self, leader_epoch: LeaderEpoch, now: TimestampMs) -> Result<bool, MirrorError> {
        let source = self.source_cluster().map(str::to_owned);
        match (&source, self.design().stop.unknown_source) {
            (None, UnknownSource::Skip) => {
                self.expect_stopping()?;
                return Ok(false);
            }
            (None, UnknownSource::Fail) => return Err(MirrorError::UnknownSourceCluster),
            _ => {}
        }
        self.write_barrier(source.as_deref(), leader_epoch, now).map(|_| true)
    }

    fn append_barrier(
        &mut self,
        source_cluster_id: Option<&str>,
        leader_epoch: LeaderEpoch,
        timestamp: TimestampMs,
    ) -> Result<AppendResult, MirrorError> {
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
        self.apply(MirrorEvent::StopSequenceDone).map(|_| ())
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
