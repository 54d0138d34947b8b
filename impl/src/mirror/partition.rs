//! A partition that may be a mirror: the log behind its gate.

use bytes::{Bytes, BytesMut};

use super::design::MirrorDesign;
use super::error::MirrorError;
use super::metadata::MirrorMetadata;
use super::state::MirrorState;
use crate::barrier::ReplicationPath;
use crate::log::{AppendError, AppendResult, LogConfig, LogError, PartitionLog, ReadError, Recovery, RecoveryReport};
use crate::psm::{AppendOrigin, TransactionVersion};
use crate::record::{BatchReader, ControlRecordType};
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// One replica of a partition that may be a mirror.
///
/// Its state and what else it has to remember are durable: each change is stored before it counts. Whether a fetcher
/// runs is not; it does from the moment the state becomes MIRRORING until [`MirrorPartition::remove_fetcher`], and again
/// after the partition was opened in that state.
#[derive(Clone, Debug)]
pub struct MirrorPartition<S> {
    pub(super) log: PartitionLog<S>,
    design: MirrorDesign,
    pub(super) metadata: MirrorMetadata,
    pub(super) fetching: bool,
}

impl<S: Storage> MirrorPartition<S> {
    /// Puts a log behind the gate; state and source come from the log's storage.
    ///
    /// # Errors
    /// When the storage fails or the metadata in it cannot be read.
    pub fn new(log: PartitionLog<S>, design: MirrorDesign) -> Result<Self, LogError> {
        let metadata = MirrorMetadata::load(log.storage())?;
        Ok(Self { fetching: metadata.state == MirrorState::Mirroring, log, design, metadata })
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

    /// Starts to mirror a cluster: STOPPED or FAILED to LOG_ALIGNMENT. The partition is read-only from here on.
    ///
    /// # Errors
    /// When the state does not allow it, the id cannot be stored, or the storage fails.
    pub fn start(&mut self, source_cluster: &str) -> Result<(), MirrorError> {
        self.check_transition(MirrorState::LogAlignment)?;
        let mut metadata = self.metadata.clone();
        metadata.state = MirrorState::LogAlignment;
        metadata.source_cluster = Some(source_cluster.to_owned());
        metadata.failed_from = None;
        self.store(metadata)
    }

    /// Goes to another state; see [`MirrorState::may_become`]. A failed mirror may also go back to the state that
    /// failed.
    ///
    /// # Errors
    /// When the state does not allow it, or the storage fails.
    pub fn transition(&mut self, to: MirrorState) -> Result<(), MirrorError> {
        self.check_transition(to)?;
        let mut metadata = self.metadata.clone();
        if to != metadata.state {
            metadata.failed_from = (to == MirrorState::Failed).then_some(metadata.state);
            metadata.state = to;
            self.store(metadata)?;
        }
        self.fetching = match to {
            MirrorState::Mirroring => true,
            // The fetcher is removed by the stop sequence, in a step of its own.
            MirrorState::Stopping => self.fetching,
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

    fn check_transition(&self, to: MirrorState) -> Result<(), MirrorError> {
        let from = self.metadata.state;
        if from.may_become(to) || self.metadata.failed_from == Some(to) {
            return Ok(());
        }
        Err(MirrorError::IllegalTransition { from, to })
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
        let open = match state {
            MirrorState::Stopped => true,
            MirrorState::Stopping => origin != AppendOrigin::Client && may_pass(&batch),
            _ => false,
        };
        if !open {
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
        self.log.append_as_follower(batches, leader_epoch, ReplicationPath::IntraCluster, now)
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

    /// Appends, as the leader of the mirror, batches that were fetched from the source, under mapped producer ids if the
    /// design maps them. Checksums are checked before they are made new.
    ///
    /// # Errors
    /// When the mirror does not fetch, or a batch cannot be read, or as [`PartitionLog::append_as_follower`].
    pub fn mirror_append(
        &mut self,
        batches: Bytes,
        leader_epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Result<AppendResult, MirrorError> {
        if !self.fetching {
            return Err(MirrorError::WrongState { found: self.metadata.state, expected: MirrorState::Mirroring });
        }
        let mapped = self.map_ids(batches)?;
        let path = ReplicationPath::Mirror;
        Ok(self.log.append_as_follower(mapped, leader_epoch, path, now)?)
    }

    fn map_ids(&self, batches: Bytes) -> Result<Bytes, AppendError> {
        let mapping = self.design.pid_mapping;
        let mut mapped = BytesMut::new();
        let mut changed = false;
        for batch in BatchReader::new(batches.clone()) {
            let batch = batch.map_err(AppendError::CorruptRecord)?;
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
        use super::design::Alignment;
        self.expect_state(MirrorState::LogAlignment)?;
        let target = match self.design.alignment {
            Alignment::None => return Ok(false),
            Alignment::OwnLso => self.log.last_stable_offset(),
            Alignment::LastMirroredOffset => recorded.last_mirrored_offset.unwrap_or_default(),
            Alignment::LastMirroredEpoch => recorded
                .last_mirrored_epoch
                .and_then(|epoch| self.log.end_offset_for_epoch(epoch))
                .map_or(Offset(0), |(_, end)| end),
        };
        Ok(self.log.truncate_to(target, now)?)
    }
}

/// Whether some batch is a barrier or an ABORT marker.
fn may_pass(batches: &Bytes) -> bool {
    BatchReader::new(batches.clone())
        .flatten()
        .any(|batch| matches!(batch.control_type(), Ok(Some(ControlRecordType::MirrorPidReset | ControlRecordType::Abort))))
}
