#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! A follower with its fetcher, and the leaders of its partitions; every request is answered at once, or step by step.

use std::collections::{BTreeMap, BTreeSet};

use cleanslate_log::log::{LogConfig, OffsetSpec, PartitionLog};
use cleanslate_log::log_dir::TopicPartition;
use cleanslate_log::replication::{
    EpochEndOffset, EpochRequest, Fetched, Fetcher, FetcherConfig, FetcherEvent, FetcherEvents, InitialFetchState, LeaderAndIsr,
    LeaderError, OffsetRequest, Partition, PartitionConfig, PartitionError, PartitionFetch, PartitionFetchState, Reader, Replicas,
    TruncationMode,
};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, NodeId, Offset, PartitionEpoch, PartitionId, TimestampMs};

use crate::upstream::support::{Log, NOW, follow, new_log, placed, plain};

pub(crate) const FOLLOWER: NodeId = NodeId(0);
pub(crate) const LEADER: NodeId = NodeId(1);
/// A replica in sync that never fetches, so that a leader's high watermark stays where it is put.
const SILENT: NodeId = NodeId(2);

pub(crate) type FetchAnswer = Result<Fetched, LeaderError>;
pub(crate) type EpochAnswer = Result<Option<EpochEndOffset>, LeaderError>;

pub(crate) fn topic(name: &str) -> TopicPartition {
    TopicPartition::new(name, PartitionId(0))
}

/// Single records under these leader epochs, from offset 0 on.
pub(crate) fn of_epochs(of_records: &[i32]) -> Log {
    let mut log = new_log(&LogConfig::default());
    for (epoch, offset) in of_records.iter().zip(0..) {
        follow(&mut log, &[placed(plain(1), offset, *epoch)]).unwrap();
    }
    log
}

pub(crate) fn with_hw(mut log: Log, offset: i64) -> Log {
    log.update_high_watermark(Offset(offset));
    log
}

/// What the controller says of a leader under an epoch; each word is newer than the one before under a lower epoch.
pub(crate) fn led_by(leader: NodeId, epoch: i32) -> LeaderAndIsr {
    LeaderAndIsr {
        leader,
        leader_epoch: LeaderEpoch(epoch),
        partition_epoch: PartitionEpoch(epoch),
        replicas: [LEADER, FOLLOWER, SILENT].into(),
        isr: [LEADER, SILENT].into(),
    }
}

/// A follower's replicas, its fetcher, and the leaders.
#[derive(Debug)]
pub(crate) struct Cluster<S = MemoryStorage> {
    pub(crate) fetcher: Fetcher,
    pub(crate) followers: Replicas<S>,
    pub(crate) leaders: Replicas<MemoryStorage>,
    /// All that the fetcher did.
    pub(crate) events: FetcherEvents,
    pub(crate) now: TimestampMs,
}

impl<S: Storage> Cluster<S> {
    /// Errors delay nothing, as in Kafka's mock of a fetcher.
    pub(crate) fn new(truncation: TruncationMode) -> Self {
        let fetcher = Fetcher::new(FetcherConfig { backoff_ms: 0, truncation });
        Self { fetcher, followers: BTreeMap::new(), leaders: BTreeMap::new(), events: Vec::new(), now: NOW }
    }

    pub(crate) fn lead(&mut self, partition: &TopicPartition, log: Log, epoch: i32) {
        let mut leader = Partition::new(LEADER, log, PartitionConfig::default());
        assert_eq!(leader.make_leader(&led_by(LEADER, epoch), self.now), Ok(true));
        self.leaders.insert(partition.clone(), leader);
    }

    /// The leader hears of a newer epoch of its own.
    pub(crate) fn bump(&mut self, partition: &TopicPartition, epoch: i32) {
        let leader = self.leaders.get_mut(partition).unwrap();
        assert_eq!(leader.make_leader(&led_by(LEADER, epoch), self.now), Ok(false));
    }

    pub(crate) fn follow(&mut self, partition: &TopicPartition, log: PartitionLog<S>) {
        self.followers.insert(partition.clone(), Partition::new(FOLLOWER, log, PartitionConfig::default()));
    }

    pub(crate) fn add(&mut self, partition: &TopicPartition, offset: i64, epoch: i32) {
        let initial = InitialFetchState { topic_id: None, current_leader_epoch: LeaderEpoch(epoch), offset: Offset(offset) };
        self.fetcher.add_partition(partition, initial, &self.followers);
    }

    pub(crate) fn state(&self, partition: &TopicPartition) -> PartitionFetchState {
        *self.fetcher.state(partition).unwrap()
    }

    /// Whether the partition was given up: it is failed, and no longer fetched.
    pub(crate) fn is_failed(&self, partition: &TopicPartition) -> bool {
        let failed = self.fetcher.failed().contains(partition);
        assert!(!failed || self.fetcher.state(partition).is_none());
        failed
    }

    pub(crate) fn follower(&self, partition: &TopicPartition) -> &PartitionLog<S> {
        self.followers[partition].log()
    }

    pub(crate) fn leader(&self, partition: &TopicPartition) -> &Log {
        self.leaders[partition].log()
    }

    /// Log start offset, log end offset, high watermark.
    pub(crate) fn ends(&self, partition: &TopicPartition) -> (i64, i64, i64) {
        let log = self.follower(partition);
        (log.log_start_offset().get(), log.log_end_offset().get(), log.high_watermark().get())
    }

    pub(crate) fn same_logs(&self, partition: &TopicPartition) -> bool {
        self.follower(partition).batches().unwrap() == self.leader(partition).batches().unwrap()
    }

    pub(crate) fn truncations(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, FetcherEvent::Truncated(_))).count()
    }

    pub(crate) fn appends(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, FetcherEvent::Appended { .. })).count()
    }

    /// One round of a fetcher's work (Kafka: `doWork`).
    pub(crate) fn work(&mut self) {
        self.truncate();
        self.fetch();
        self.reset();
    }

    pub(crate) fn truncate(&mut self) {
        let plan = self.fetcher.truncation_plan(&self.followers, self.now);
        let answers = self.answer_epochs(&plan.requests);
        self.on_epochs(&plan.requests, answers);
        let events = self.fetcher.truncate_to_high_watermark(&plan.to_high_watermark, &mut self.followers, self.now);
        self.events.extend(events);
    }

    pub(crate) fn answer_epochs(&self, requests: &[(TopicPartition, EpochRequest)]) -> Vec<(TopicPartition, EpochAnswer)> {
        let answer = |(partition, request): &(TopicPartition, EpochRequest)| {
            let answer =
                self.leaders[partition].end_offset_for_epoch(Some(request.current_leader_epoch), request.leader_epoch, true);
            (partition.clone(), answer.map_err(|error| LeaderError::from(&error)))
        };
        requests.iter().map(answer).collect()
    }

    pub(crate) fn on_epochs(&mut self, requests: &[(TopicPartition, EpochRequest)], answers: Vec<(TopicPartition, EpochAnswer)>) {
        let events = self.fetcher.on_epoch_end_offsets(requests, answers, &mut self.followers, self.now).unwrap();
        self.events.extend(events);
    }

    pub(crate) fn fetch(&mut self) {
        let requests = self.requests();
        let answers = self.answer_fetch(&requests);
        self.on_fetch(&requests, answers);
    }

    pub(crate) fn requests(&self) -> Vec<(TopicPartition, PartitionFetch)> {
        self.fetcher.fetch_requests(&self.followers, &BTreeSet::new(), self.now)
    }

    /// One batch at a time, as Kafka's mock of a leader.
    pub(crate) fn answer_fetch(&mut self, requests: &[(TopicPartition, PartitionFetch)]) -> Vec<(TopicPartition, FetchAnswer)> {
        let now = self.now;
        let answer = |(partition, request): &(TopicPartition, PartitionFetch)| {
            let Some(leader) = self.leaders.get_mut(partition) else {
                return (partition.clone(), Err(LeaderError::UnknownTopicOrPartition));
            };
            let answer = leader.fetch(Reader::Follower(FOLLOWER), request, 1, now);
            (partition.clone(), answer.map_err(|error| LeaderError::from(&error)))
        };
        requests.iter().map(answer).collect()
    }

    pub(crate) fn on_fetch(&mut self, requests: &[(TopicPartition, PartitionFetch)], answers: Vec<(TopicPartition, FetchAnswer)>) {
        let events = self.fetcher.on_fetch(requests, answers, &mut self.followers, self.now);
        self.events.extend(events);
    }

    /// Asks for the leaders' offsets until there is nothing to ask.
    pub(crate) fn reset(&mut self) {
        while let Some((partition, request)) = self.fetcher.offset_requests(self.now).into_iter().next() {
            let answer = self.answer_offset(&partition, request);
            self.on_offset(&partition, request, answer);
        }
    }

    pub(crate) fn answer_offset(&mut self, partition: &TopicPartition, request: OffsetRequest) -> Result<Offset, LeaderError> {
        let leader = self.leaders.get_mut(partition).unwrap();
        offset(leader, request.spec, request.current_leader_epoch).map_err(|error| LeaderError::from(&error))
    }

    pub(crate) fn on_offset(&mut self, partition: &TopicPartition, request: OffsetRequest, answer: Result<Offset, LeaderError>) {
        let event = self.fetcher.on_offset(partition, request, answer, &mut self.followers, self.now);
        self.events.push((partition.clone(), event));
    }
}

fn offset(leader: &mut Partition<MemoryStorage>, spec: OffsetSpec, epoch: LeaderEpoch) -> Result<Offset, PartitionError> {
    let isolation = cleanslate_log::log::FetchIsolation::LogEnd;
    let found = leader.fetch_offset_for_timestamp(spec, isolation, Some(epoch), true)?;
    Ok(found.unwrap().offset)
}
