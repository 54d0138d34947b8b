//! Which requests a partition answers: those of its leader epoch, and those for a leader only if it leads (Kafka: `Partition.getLocalLog`,
//! `fetchRecords`, `lastOffsetForLeaderEpoch`, `fetchOffsetSnapshot`, `fetchOffsetForTimestamp`, `appendRecordsToLeader`,
//! `deleteRecordsOnLeader`).

use bytes::Bytes;

use super::divergence::{EpochEndOffset, FetchPoint, fetch_point};
use super::error::PartitionError;
use super::partition::Partition;
use crate::log::{
    AppendResult, FetchData, FetchIsolation, OffsetSnapshot, OffsetSpec, PartitionLog, ReadError, TimestampAndOffset,
};
use crate::log_dir::Uuid;
use crate::psm::{AppendOrigin, TransactionVersion, VerificationGuard, VerificationRequest};
use crate::storage::Storage;
use crate::types::{LeaderEpoch, NodeId, Offset, OffsetMetadata, TimestampMs};

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reader {
    /// The follower on this broker: up to the log end, from the leader only.
    Follower(NodeId),
    /// A client.
    Client {
        /// Up to where.
        isolation: FetchIsolation,
        /// Whether it tells enough of itself to be sent to a follower; else only the leader answers.
        from_follower: bool,
    },
}

/// What a fetch says about one partition (Kafka: `FetchRequest.PartitionData`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionFetch {
    /// From where.
    pub fetch_offset: Offset,
    /// Where a follower's log starts; [`Offset::UNKNOWN`] from a client.
    pub log_start_offset: Offset,
    /// The leader epoch under which the reader fetches, if it tells.
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// The leader epoch of the batch before `fetch_offset`, if there is one and the reader wants to know whether it is the same here.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// The id of the topic that the reader means, if it tells. A broker finds the partition by it, which does not look at it.
    pub topic_id: Option<Uuid>,
}

/// Where a log stood before a read, as the answer tells it (Kafka: `LogReadInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadOffsets {
    /// Where it starts.
    pub log_start_offset: Offset,
    /// Where it ends.
    pub log_end_offset: Offset,
    /// Up to where it is replicated.
    pub high_watermark: Offset,
    /// Up to where it is replicated and belongs to no undecided transaction.
    pub last_stable_offset: Offset,
}

impl ReadOffsets {
    fn of<S: Storage>(log: &PartitionLog<S>) -> Self {
        Self {
            log_start_offset: log.log_start_offset(),
            log_end_offset: log.log_end_offset(),
            high_watermark: log.high_watermark(),
            last_stable_offset: log.last_stable_offset(),
        }
    }
}

/// The answer to a fetch (Kafka: `LogReadInfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The records; none when the logs part.
    pub data: FetchData,
    /// Where the reader's log and this one part, if they do before the fetch offset.
    pub diverging: Option<EpochEndOffset>,
    /// Where the log stood before the read.
    pub offsets: ReadOffsets,
}

/// What a leader did about a request to delete records (Kafka: `LogDeleteRecordsResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeletedRecords {
    /// The first offset that was to stay; the request is done when the low watermark has reached it.
    pub requested_offset: Offset,
    /// The smallest log start offset of the leader and those followers that are not fenced.
    pub low_watermark: Offset,
}

impl<S: Storage> Partition<S> {
    /// Whether this replica answers a request.
    fn check_access(&self, current_leader_epoch: Option<LeaderEpoch>, leader_only: bool) -> Result<(), PartitionError> {
        self.check_current_leader_epoch(current_leader_epoch)?;
        if leader_only && !self.is_leader() {
            return Err(PartitionError::NotLeaderOrFollower);
        }
        Ok(())
    }

    /// Up to `max_bytes` bytes from the batch on that holds or follows the offset, the first batch whole; or where the logs part.
    /// A follower's fetch from where the logs do not part is noted as its log end offset, and may bring it into sync
    /// ([`Partition::isr_change`]). `now` in milliseconds.
    ///
    /// # Errors
    /// When the epoch or the replica is the wrong one, or the follower is not known; or as [`PartitionLog::fetch`].
    pub fn fetch(
        &mut self,
        reader: Reader,
        request: &PartitionFetch,
        max_bytes: usize,
        now: TimestampMs,
    ) -> Result<Fetched, PartitionError> {
        let (follower, isolation, leader_only) = match reader {
            Reader::Follower(replica) => (Some(replica), FetchIsolation::LogEnd, true),
            Reader::Client { isolation, from_follower } => (None, isolation, !from_follower),
        };
        self.check_access(request.current_leader_epoch, leader_only)?;
        if let Some(replica) = follower.filter(|replica| self.follower(*replica).is_none()) {
            // The follower may have heard of its assignment first; it comes back.
            return Err(PartitionError::UnrecognizedReplica { replica, knows_epoch: request.current_leader_epoch.is_some() });
        }
        let fetched = self.read(request, isolation, max_bytes)?;
        if let (Some(replica), None) = (follower, fetched.diverging) {
            self.follower_fetched(replica, request, fetched.offsets.log_end_offset, now)?;
        }
        Ok(fetched)
    }

    fn read(&mut self, request: &PartitionFetch, isolation: FetchIsolation, max_bytes: usize) -> Result<Fetched, PartitionError> {
        let offsets = ReadOffsets::of(&self.log);
        let answer = |data, diverging| Fetched { data, diverging, offsets };
        if let Some(last_fetched) = request.last_fetched_epoch {
            let point = fetch_point(self.log.leader_epochs(), offsets.log_end_offset, last_fetched, request.fetch_offset);
            if point == FetchPoint::Unknown {
                return Err(PartitionError::UnknownFetchedEpoch(last_fetched));
            }
            // Also where the logs part: what the reader has lies before all that is here.
            if request.fetch_offset < offsets.log_start_offset {
                let ReadOffsets { log_start_offset, log_end_offset, .. } = offsets;
                return Err(ReadError::OffsetOutOfRange { offset: request.fetch_offset, log_start_offset, log_end_offset }.into());
            }
            if let FetchPoint::Diverging(diverging) = point {
                let offset = OffsetMetadata::offset_only(request.fetch_offset);
                return Ok(answer(FetchData { records: Bytes::new(), aborted: None, offset }, Some(diverging)));
            }
        }
        let data = self.log.fetch(request.fetch_offset, isolation, max_bytes, true)?;
        Ok(answer(data, None))
    }

    /// The largest leader epoch at or below `epoch` and where it ends; `None` when nothing is known.
    ///
    /// # Errors
    /// When the epoch of the request or the replica is the wrong one.
    pub fn end_offset_for_epoch(
        &self,
        current_leader_epoch: Option<LeaderEpoch>,
        epoch: LeaderEpoch,
        leader_only: bool,
    ) -> Result<Option<EpochEndOffset>, PartitionError> {
        self.check_access(current_leader_epoch, leader_only)?;
        let end = self.log.end_offset_for_epoch(epoch);
        Ok(end.map(|(epoch, end_offset)| EpochEndOffset { epoch, end_offset }))
    }

    /// Where the log stands.
    ///
    /// # Errors
    /// When the epoch of the request or the replica is the wrong one, the log is offline, or the storage fails.
    pub fn fetch_offset_snapshot(
        &mut self,
        current_leader_epoch: Option<LeaderEpoch>,
        leader_only: bool,
    ) -> Result<OffsetSnapshot, PartitionError> {
        self.check_access(current_leader_epoch, leader_only)?;
        Ok(self.log.fetch_offset_snapshot()?)
    }

    /// Looks for an offset by time. A client, whose isolation is not [`FetchIsolation::LogEnd`], gets none that it may not read, and of
    /// a leader whose high watermark has not reached its epoch yet only what lies below the high watermark, as that may still be one
    /// that the leader before has told more of.
    ///
    /// # Errors
    /// When the epoch of the request or the replica is the wrong one; [`PartitionError::OffsetNotAvailable`]; or as
    /// [`PartitionLog::fetch_offset_by_timestamp`].
    pub fn fetch_offset_for_timestamp(
        &mut self,
        spec: OffsetSpec,
        isolation: FetchIsolation,
        current_leader_epoch: Option<LeaderEpoch>,
        leader_only: bool,
    ) -> Result<Option<TimestampAndOffset>, PartitionError> {
        self.check_access(current_leader_epoch, leader_only)?;
        let high_watermark = self.log.high_watermark();
        let log = &mut self.log;
        let last_fetchable = match isolation {
            FetchIsolation::LogEnd => log.log_end_offset(),
            FetchIsolation::HighWatermark => high_watermark,
            FetchIsolation::TxnCommitted => log.last_stable_offset(),
        };
        let behind = self.leader_epoch_start_offset.filter(|start| *start > high_watermark);
        let available = match behind.filter(|_| isolation != FetchIsolation::LogEnd) {
            Some(epoch_start) => Err(PartitionError::OffsetNotAvailable { high_watermark, epoch_start }),
            None => Ok(()),
        };
        match spec {
            OffsetSpec::Latest => available.map(|()| {
                let leader_epoch = Some(self.leader_epoch);
                Some(TimestampAndOffset { timestamp: TimestampMs::NONE, offset: last_fetchable, leader_epoch })
            }),
            OffsetSpec::Earliest | OffsetSpec::EarliestLocal => Ok(log.fetch_offset_by_timestamp(spec)?),
            _ => {
                let found = log.fetch_offset_by_timestamp(spec)?.filter(|found| found.offset < last_fetchable);
                if found.is_none() {
                    available?;
                }
                Ok(found)
            }
        }
    }

    /// Appends as the leader, under its epoch; see [`PartitionLog::append_verified`]. `now` in milliseconds.
    ///
    /// # Errors
    /// [`PartitionError::NotLeaderOrFollower`]; or as the log's append.
    pub fn append_to_leader(
        &mut self,
        batch: Bytes,
        origin: AppendOrigin,
        tv: TransactionVersion,
        guard: VerificationGuard,
        now: TimestampMs,
    ) -> Result<AppendResult, PartitionError> {
        self.check_access(None, true)?;
        let result = self.log.append_verified(batch, origin, self.leader_epoch, tv, guard, now)?;
        // A leader that is in sync alone waits for nobody.
        self.maybe_increment_high_watermark(now)?;
        Ok(result)
    }

    /// Begins the verification of a producer's transaction; see [`PartitionLog::maybe_start_transaction_verification`]. `now` in
    /// milliseconds.
    ///
    /// # Errors
    /// [`PartitionError::NotLeaderOrFollower`]; or as the log's.
    pub fn maybe_start_transaction_verification(
        &mut self,
        request: &VerificationRequest,
        now: TimestampMs,
    ) -> Result<VerificationGuard, PartitionError> {
        self.check_access(None, true)?;
        Ok(self.log.maybe_start_transaction_verification(request, now)?)
    }

    /// Gives up the records below an offset for a client; -1 means all below the high watermark (`DeleteRecordsRequest.HIGH_WATERMARK`).
    /// A topic that is compacted only loses no records; one with no policy at all may.
    ///
    /// # Errors
    /// [`PartitionError::NotLeaderOrFollower`]; [`PartitionError::PolicyViolation`]; [`PartitionError::NegativeOffset`]; or as
    /// [`PartitionLog::maybe_increment_log_start_offset`], as beyond the high watermark.
    pub fn delete_records_on_leader(&mut self, offset: Offset) -> Result<DeletedRecords, PartitionError> {
        self.check_access(None, true)?;
        let config = self.log.config();
        if config.compact && !config.delete {
            return Err(PartitionError::PolicyViolation);
        }
        let requested_offset = if offset == Offset::UNKNOWN { self.log.high_watermark() } else { offset };
        if requested_offset < Offset(0) {
            return Err(PartitionError::NegativeOffset(requested_offset));
        }
        self.log.maybe_increment_log_start_offset(requested_offset)?;
        Ok(DeletedRecords { requested_offset, low_watermark: self.low_watermark() })
    }
}
