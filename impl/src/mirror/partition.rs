//! A partition that may be a mirror: the log behind its gate.

use bytes::{Bytes, BytesMut};

use super::alignment::alignment_offset;
use super::design::{DivergenceDetection, MirrorDesign};
use super::error::MirrorError;
use super::machine::{FailedAttempts, Machine, MirrorEffect, MirrorEvent, MirrorStatus, Transition};
use super::metadata::MirrorMetadata;
use super::state::{MirrorState, StateForm};
use crate::barrier::ReplicationPath;
use crate::log::{AppendError, AppendResult, LogConfig, LogError, PartitionLog, ReadError, Recovery, RecoveryReport};
use crate::psm::{AppendOrigin, TransactionVersion};
use crate::record::{AnyBatch, AnyBatchReader, ControlRecordType};
use crate::replication::{EpochEndOffset, FetchPoint, OutOfRange, fetch_point, out_of_range, truncation_point};
use crate::storage::Storage;
use crate::types::{LeaderEpoch, TimestampMs};

/// What a task was made under. It is stale when either has changed (GATE-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateFence {
    /// The leader epoch; `None` when the replica is not leader, as far as it was told.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The version of the mirror's status.
    pub state_epoch: i32,
}

/// What a mirror gets from its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorFetch {
    /// Whole batches; none when there is nothing new.
    Records(Bytes),
    /// The logs part before the own log end.
    Diverging(EpochEndOffset),
    /// The source does not have the offset.
    OutOfRange(OutOfRange),
}

/// One replica of a partition that may be a mirror.
///
/// Its state and what else it has to remember are durable: each change is stored before it counts. Whether a fetcher
/// runs is not; it does from the moment the state becomes MIRRORING until [`MirrorPartition::remove_fetcher`], and again
/// after the partition was opened in that state. Whether the replica leads is not either: it is told by
/// [`MirrorEvent::LeaderElected`], with the epoch in [`MirrorPartition::elected`].
#[derive(Clone, Debug)]
pub struct MirrorPartition<S> {
    pub(super) log: PartitionLog<S>,
    design: MirrorDesign,
    pub(super) metadata: MirrorMetadata,
    pub(super) fetching: bool,
    pub(super) leader_epoch: Option<LeaderEpoch>,
}

impl<S: Storage> MirrorPartition<S> {
    /// Puts a log behind the gate; state and source come from the log's storage.
    ///
    /// # Errors
    /// When the storage fails or the metadata in it cannot be read.
    pub fn new(log: PartitionLog<S>, design: MirrorDesign) -> Result<Self, LogError> {
        let metadata = MirrorMetadata::load(log.storage())?;
        let fetching = metadata.state.permissions().mirror_fetches;
        Ok(Self { log, design, metadata, fetching, leader_epoch: None })
    }

    /// Opens the partition in a storage; see [`PartitionLog::open`].
    ///
    /// # Errors
    /// As [`PartitionLog::open`].
    pub fn open(
        storage: S,
        config: LogConfig,
        design: MirrorDesign,
        recovery: Recovery,
        now: TimestampMs,
    ) -> Result<(Self, RecoveryReport), LogError> {
        let (log, report) = PartitionLog::open(storage, config, recovery, now)?;
        Ok((Self::new(log, design)?, report))
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &PartitionLog<S> {
        &self.log
    }

    /// The log, past the gate: for what needs none, such as the high watermark, snapshots and expiry.
    #[must_use]
    pub fn log_mut(&mut self) -> &mut PartitionLog<S> {
        &mut self.log
    }

    /// Gives the log back.
    #[must_use]
    pub fn into_log(self) -> PartitionLog<S> {
        self.log
    }

    /// The choices of the design.
    #[must_use]
    pub fn design(&self) -> &MirrorDesign {
        &self.design
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> MirrorState {
        self.metadata.state
    }

    /// The cluster that is mirrored, or was mirrored last.
    #[must_use]
    pub fn source_cluster(&self) -> Option<&str> {
        self.metadata.source_cluster.as_deref()
    }

    /// All that is remembered durably: also what a mirror in the other direction asks for when it aligns its log.
    #[must_use]
    pub fn metadata(&self) -> &MirrorMetadata {
        &self.metadata
    }

    /// Whether a fetcher runs.
    #[must_use]
    pub fn is_fetching(&self) -> bool {
        self.fetching
    }

    /// The leader epoch under which the replica leads, and the version of the status.
    #[must_use]
    pub fn fence(&self) -> StateFence {
        StateFence { leader_epoch: self.leader_epoch, state_epoch: self.metadata.state_epoch }
    }

    /// Starts to mirror a cluster; see [`MirrorEvent::Start`]. The partition is read-only from here on, and what an earlier
    /// stop has recorded is forgotten (STOP-14). Returns what the caller has to do.
    ///
    /// # Errors
    /// When the state does not allow it, the id cannot be stored, or the storage fails.
    pub fn start(&mut self, source_cluster: &str) -> Result<Vec<MirrorEffect>, MirrorError> {
        let transition = self.machine().next(&self.metadata.status(), MirrorEvent::Start)?;
        let mut metadata = self.metadata.with_status(&transition.status);
        metadata.source_cluster = Some(source_cluster.to_owned());
        metadata.last_mirrored_offset = None;
        metadata.last_mirrored_epoch = None;
        self.store(metadata)?;
        self.fetching = false;
        Ok(transition.effects)
    }

    /// Takes in an event: stores the status that follows, starts or removes the fetcher, and returns what the caller has to
    /// do. [`MirrorEvent::Start`] needs [`Self::start`], and [`MirrorEvent::LeaderElected`] needs [`Self::elected`].
    ///
    /// # Errors
    /// When the event cannot happen in the state, a fetcher runs at the end of a stop, or the storage fails; the state is the
    /// same then.
    pub fn apply(&mut self, event: MirrorEvent) -> Result<Vec<MirrorEffect>, MirrorError> {
        if matches!(event, MirrorEvent::Start | MirrorEvent::LeaderElected) {
            return Err(MirrorError::IllegalEvent { state: self.metadata.state, event });
        }
        let Transition { status, effects } = self.machine().next(&self.metadata.status(), event)?;
        if event == MirrorEvent::StopSequenceDone && self.fetching {
            return Err(MirrorError::StillFetching);
        }
        if effects.contains(&MirrorEffect::StoreStatus) {
            let metadata = self.metadata.with_status(&status);
            self.store(metadata)?;
        }
        if event == MirrorEvent::LeaderResigned {
            self.leader_epoch = None;
        }
        self.follow_effects(&effects);
        Ok(effects)
    }

    /// The replica leads under this epoch, which it notes at the log end offset where local batches may follow (STOP-15) and
    /// if it is above all epochs there: to note a lower one would forget those. Returns what the state asks a leader to do.
    ///
    /// # Errors
    /// When the epoch is negative or the storage fails.
    pub fn elected(&mut self, leader_epoch: LeaderEpoch) -> Result<Vec<MirrorEffect>, MirrorError> {
        let transition = self.machine().next(&self.metadata.status(), MirrorEvent::LeaderElected)?;
        let is_above = self.log.leader_epochs().latest_epoch().is_none_or(|latest| leader_epoch > latest);
        if is_above && transition.effects.contains(&MirrorEffect::AssignLeaderEpoch) {
            self.log.assign_epoch_start_offset(leader_epoch)?;
        }
        self.leader_epoch = Some(leader_epoch);
        self.follow_effects(&transition.effects);
        Ok(transition.effects)
    }

    fn follow_effects(&mut self, effects: &[MirrorEffect]) {
        for effect in effects {
            match effect {
                MirrorEffect::StartFetcher => self.fetching = true,
                MirrorEffect::RemoveFetcher => self.fetching = false,
                _ => {}
            }
        }
    }

    fn machine(&self) -> Machine {
        Machine::from(&self.design)
    }

    /// Goes to another state, whatever the reason; see [`Machine::may_become`]. A failed mirror may also go back to the
    /// state that failed. For callers that are told of states, not of events.
    ///
    /// # Errors
    /// When the state does not allow it, or the storage fails.
    pub fn transition(&mut self, to: MirrorState) -> Result<(), MirrorError> {
        let before = self.metadata.status();
        if !self.machine().may_become(before.state, to) && before.failed_from != Some(to) {
            return Err(MirrorError::IllegalTransition { from: before.state, to });
        }
        if to != before.state {
            let failed = to == MirrorState::Failed;
            let failed_attempts = if failed { FailedAttempts(1) } else { FailedAttempts::default() };
            let status = MirrorStatus { state: to, failed_from: failed.then_some(before.state), failed_attempts };
            let metadata = self.metadata.with_status(&status);
            self.store(metadata)?;
        }
        self.fetching = match to {
            MirrorState::Mirroring => true,
            // The fetcher is removed by the stop sequence, in a step of its own, and by the work of a pause.
            MirrorState::Stopping | MirrorState::Pausing => self.fetching,
            _ => false,
        };
        Ok(())
    }

    /// Takes over the state and the source that the metadata of the cluster name: what a replica does that did not make the
    /// change itself, so every state may follow (STATE-2). A leader fetches in MIRRORING from here on.
    ///
    /// # Errors
    /// When the id cannot be stored, or the storage fails.
    pub fn learn(&mut self, state: MirrorState, source_cluster: Option<&str>) -> Result<(), MirrorError> {
        let mut metadata = self.metadata.clone();
        metadata.state = state;
        metadata.source_cluster = source_cluster.map(str::to_owned);
        metadata.failed_from = None;
        self.store(metadata)?;
        self.fetching = state == MirrorState::Mirroring;
        Ok(())
    }

    pub(super) fn store(&mut self, metadata: MirrorMetadata) -> Result<(), MirrorError> {
        self.log.store_mirror_metadata(&metadata)?;
        self.metadata = metadata;
        Ok(())
    }

    pub(super) fn expect_state(&self, expected: MirrorState) -> Result<(), MirrorError> {
        let found = self.metadata.state;
        if found == expected {
            return Ok(());
        }
        Err(MirrorError::WrongState { found, expected })
    }

    /// Appends as the leader, if the gate allows it: anything in STOPPED; in STOPPING, not from a client, a barrier or
    /// an ABORT marker; else nothing. See [`PartitionLog::append_as_leader`].
    ///
    /// # Errors
    /// [`AppendError::ReadOnlyTopic`] when the gate is shut; or as the log's append.
    pub fn append_as_leader(
        &mut self,
        batch: Bytes,
        origin: AppendOrigin,
        leader_epoch: LeaderEpoch,
        tv: TransactionVersion,
        now: TimestampMs,
    ) -> Result<AppendResult, AppendError> {
        let state = self.metadata.state;
        let allowed = state.permissions();
        let own = allowed.stop_appends && origin != AppendOrigin::Client && may_pass(&batch);
        if !allowed.appends && !own {
            return Err(AppendError::ReadOnlyTopic { state });
        }
        self.log.append_as_leader(batch, origin, leader_epoch, tv, now)
    }

    /// Appends as a follower of the leader in the same cluster; there is no gate. See
    /// [`PartitionLog::append_as_follower`].
    ///
    /// # Errors
    /// As the log's append.
    pub fn append_as_follower(
        &mut self,
        batches: Bytes,
        leader_epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Result<AppendResult, AppendError> {
        self.log.append_fetched(batches, leader_epoch, ReplicationPath::IntraCluster, now)
    }

    /// What this mirror would fetch next from a source log: whole batches from the own log end offset up to the design's
    /// bound.
    ///
    /// # Errors
    /// As [`PartitionLog::read`] on the source.
    pub fn fetch_from<T: Storage>(&self, source: &PartitionLog<T>, max_bytes: usize) -> Result<Bytes, ReadError> {
        let isolation = self.design.fetch_bound.isolation();
        source.read(self.log.log_end_offset(), isolation, max_bytes)
    }

    /// As [`Self::fetch_from`], if the design finds out where logs part (ALI-12); else the same.
    ///
    /// # Errors
    /// As [`PartitionLog::read`] on the source.
    pub fn fetch<T: Storage>(&self, source: &PartitionLog<T>, max_bytes: usize) -> Result<MirrorFetch, ReadError> {
        let own_end = self.log.log_end_offset();
        if own_end < source.log_start_offset() || own_end > source.log_end_offset() {
            let reaction = out_of_range(source.log_start_offset(), source.log_end_offset(), own_end);
            return Ok(MirrorFetch::OutOfRange(reaction));
        }
        let last_epoch = self.log.leader_epochs().latest_epoch();
        if let (DivergenceDetection::ByLeaderEpoch, Some(epoch)) = (self.design.divergence, last_epoch) {
            match fetch_point(source.leader_epochs(), source.log_end_offset(), epoch, own_end) {
                FetchPoint::Common => {}
                FetchPoint::Diverging(diverging) => return Ok(MirrorFetch::Diverging(diverging)),
                // Nothing of the own log is known to be the source's.
                FetchPoint::Unknown => {
                    return Ok(MirrorFetch::OutOfRange(OutOfRange::TruncateTo(source.log_start_offset().min(own_end))));
                }
            }
        }
        self.fetch_from(source, max_bytes).map(MirrorFetch::Records)
    }

    /// Truncates as a diverging answer asks; the next fetch tells whether that was enough. Tells whether anything was cut.
    /// `now` in milliseconds.
    ///
    /// # Errors
    /// When no fetcher runs, or as [`PartitionLog::truncate_to`].
    pub fn truncate_diverging(&mut self, diverging: &EpochEndOffset, now: TimestampMs) -> Result<bool, MirrorError> {
        self.expect_fetching()?;
        let target = truncation_point(self.log.leader_epochs(), self.log.log_end_offset(), diverging);
        Ok(self.log.truncate_to(target.offset, now)?)
    }

    /// Does what is to be done when the source does not have the fetch offset. `now` in milliseconds.
    ///
    /// # Errors
    /// When no fetcher runs, or the log cannot be truncated.
    pub fn follow_out_of_range(&mut self, reaction: OutOfRange, now: TimestampMs) -> Result<(), MirrorError> {
        self.expect_fetching()?;
        match reaction {
            OutOfRange::TruncateTo(offset) => self.log.truncate_to(offset, now).map(|_| ())?,
            OutOfRange::StartOverAt(offset) => self.log.truncate_fully_and_start_at(offset, now)?,
            OutOfRange::Retry => {}
        }
        Ok(())
    }

    fn expect_fetching(&self) -> Result<(), MirrorError> {
        if self.fetching {
            return Ok(());
        }
        Err(MirrorError::WrongState { found: self.metadata.state, expected: MirrorState::Mirroring })
    }

    /// Appends, as the leader of the mirror, batches that were fetched from the source, under mapped producer ids if the
    /// design maps them. Checksums are checked before they are made new.
    ///
    /// `source_epoch` is the source's leader epoch as the fetcher knows it: batches above it are dropped silently. Where the
    /// design has EPOCH_FENCING, a batch above the mirror's own leader epoch is an error instead (MIR-13).
    ///
    /// # Errors
    /// When the mirror does not fetch, or a batch cannot be read, or its epoch is ahead, or as
    /// [`PartitionLog::append_as_follower`].
    pub fn mirror_append(
        &mut self,
        batches: Bytes,
        source_epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Result<AppendResult, MirrorError> {
        self.expect_fetching()?;
        self.check_source_epochs(&batches)?;
        let mapped = self.map_ids(batches)?;
        let path = ReplicationPath::Mirror;
        let result = self.log.append_fetched(mapped, source_epoch, path, now)?;
        if self.metadata.failed_attempts != FailedAttempts::default() {
            // What was retried has succeeded.
            let status = MirrorStatus { failed_attempts: FailedAttempts::default(), ..self.metadata.status() };
            let metadata = self.metadata.with_status(&status);
            self.store(metadata)?;
        }
        Ok(result)
    }

    fn check_source_epochs(&self, batches: &Bytes) -> Result<(), MirrorError> {
        let Some(own) = self.leader_epoch.filter(|_| self.design.states == StateForm::Nine) else { return Ok(()) };
        let highest = AnyBatchReader::new(batches.clone()).flatten().map(|batch| batch.leader_epoch()).max();
        match highest {
            Some(found) if self.design.epoch_fencing.is_behind(own, found) => Err(MirrorError::SourceEpochAhead { own, found }),
            _ => Ok(()),
        }
    }

    fn map_ids(&self, batches: Bytes) -> Result<Bytes, AppendError> {
        let mapping = self.design.pid_mapping;
        let mut mapped = BytesMut::new();
        let mut changed = false;
        for batch in AnyBatchReader::new(batches.clone()) {
            let batch = match batch.map_err(AppendError::CorruptRecord)? {
                AnyBatch::V2(batch) => batch,
                AnyBatch::Legacy(batch) => {
                    mapped.extend_from_slice(batch.bytes());
                    continue;
                }
            };
            let id = mapping.map(batch.producer_id());
            if id == batch.producer_id() {
                mapped.extend_from_slice(batch.bytes());
            } else {
                batch.ensure_valid().map_err(AppendError::CorruptRecord)?;
                mapped.extend_from_slice(batch.with_producer_id(id).bytes());
                changed = true;
            }
        }
        Ok(if changed { mapped.freeze() } else { batches })
    }

    /// Aligns the log with that of the source before mirroring, as the design says, by what the source recorded when it
    /// last stopped mirroring this cluster; tells whether anything was cut. `now` in milliseconds.
    ///
    /// # Errors
    /// When the state is not LOG_ALIGNMENT, or as [`PartitionLog::truncate_to`].
    pub fn align(&mut self, recorded: &MirrorMetadata, now: TimestampMs) -> Result<bool, MirrorError> {
        self.expect_state(MirrorState::LogAlignment)?;
        let log = &self.log;
        let (own, end, lso) = (log.leader_epochs(), log.log_end_offset(), log.last_stable_offset());
        match alignment_offset(self.design.alignment, recorded, own, end, lso) {
            None => Ok(false),
            Some(target) => Ok(self.log.truncate_to(target, now)?),
        }
    }
}

/// Whether some batch is a barrier or an ABORT marker.
fn may_pass(batches: &Bytes) -> bool {
    AnyBatchReader::new(batches.clone())
        .flatten()
        .filter_map(|batch| batch.as_v2().cloned())
        .any(|batch| matches!(batch.control_type(), Ok(Some(ControlRecordType::MirrorPidReset | ControlRecordType::Abort))))
}
