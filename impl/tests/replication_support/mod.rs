#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Two replicas of a partition and their fetchers; who leads may change at any time, and answers may come late, twice, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cleanslate_log::log::{FetchData, FetchIsolation, LogConfig, PartitionLog};
use cleanslate_log::log_dir::TopicPartition;
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard};
use cleanslate_log::record::{BatchBuilder, RecordBatch};
use cleanslate_log::replication::{
    EpochEndOffset, Fetched, Fetcher, FetcherConfig, InitialFetchState, LeaderAndIsr, LeaderError, OffsetRequest, Partition,
    PartitionConfig, PartitionError, PartitionFetch, ReadOffsets, Reader, Replicas, TruncationMode,
};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, NodeId, Offset, OffsetMetadata, PartitionEpoch, PartitionId, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_000_000);

pub(crate) type Replica = Partition<MemoryStorage>;
type FetchAnswer = Result<Fetched, LeaderError>;

pub(crate) fn topic() -> TopicPartition {
    TopicPartition::new("topic", PartitionId(0))
}

/// The replica of a node, of which nothing was heard yet.
pub(crate) fn replica(node: i32) -> Replica {
    let log = PartitionLog::create(MemoryStorage::new(), LogConfig::default(), NOW).unwrap();
    Partition::new(NodeId(node), log, PartitionConfig::default())
}

/// Nodes 0 and 1 have replicas; only the leader is in sync.
pub(crate) fn led_by(node: i32, leader_epoch: i32, partition_epoch: i32) -> LeaderAndIsr {
    LeaderAndIsr {
        leader: NodeId(node),
        leader_epoch: LeaderEpoch(leader_epoch),
        partition_epoch: PartitionEpoch(partition_epoch),
        replicas: [NodeId(0), NodeId(1)].into(),
        isr: [NodeId(node)].into(),
    }
}

/// A batch without a producer.
pub(crate) fn plain(records: usize) -> Bytes {
    let empty = BatchBuilder::new(Offset(0)).timestamp(NOW);
    let batch = (0..records).fold(empty, |batch, _| batch.record(Some(b"key"), Some(b"value")));
    batch.build().unwrap().bytes().clone()
}

pub(crate) fn append(leader: &mut Replica, batch: Bytes, now: TimestampMs) -> Result<(), PartitionError> {
    let (tv, guard) = (TransactionVersion::Unknown, VerificationGuard::SENTINEL);
    leader.append_to_leader(batch, AppendOrigin::Client, tv, guard, now).map(|_| ())
}

/// The answer of a leader that sends one batch of these values, or says where the logs part.
pub(crate) fn answer(epoch: i32, end: Offset, diverging: Option<EpochEndOffset>, start: Offset, hw: Offset) -> Fetched {
    let batch = BatchBuilder::new(Offset(0)).timestamp(NOW).record(Some(b"key"), Some(b"value")).build().unwrap();
    let records = batch.with_base_offset(end).with_leader_epoch(LeaderEpoch(epoch)).bytes().clone();
    let offsets = ReadOffsets { log_start_offset: start, log_end_offset: end, high_watermark: hw, last_stable_offset: hw };
    Fetched { data: FetchData { records, aborted: None, offset: OffsetMetadata::offset_only(end) }, diverging, offsets }
}

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A client of the leader appends so many records.
    Append(usize),
    /// The follower fetches; the answer is on its way.
    Ask,
    /// An answer arrives, and stays to arrive again or not.
    Deliver { which: usize, again: bool },
    /// All answers are lost.
    Lose,
    /// The follower asks where its last epoch ends, if it has to.
    Truncate,
    /// The follower asks for the leader's offsets, if it has to.
    Reset,
    /// The follower leads from now on, whatever it has; not if one leads for ever.
    Swap,
    /// The leader leads under another epoch.
    Bump,
    /// The leader deletes records below an offset, as far as that is replicated, and only whole batches if others may have led: else the
    /// follower may have other records up to the middle of a batch, which fails the follower, as in Kafka.
    Delete(i64),
    /// The controller agrees to what the leader asks for.
    Agree,
    /// Milliseconds pass.
    Wait(i64),
}

pub(crate) struct Pair {
    nodes: [Replicas<MemoryStorage>; 2],
    fetchers: [Fetcher; 2],
    leader: usize,
    epoch: i32,
    partition_epoch: i32,
    now: TimestampMs,
    /// Answers to a node's fetches.
    on_the_way: Vec<(usize, TopicPartition, PartitionFetch, FetchAnswer)>,
    /// Whether one node leads for ever.
    stays: bool,
}

impl Pair {
    pub(crate) fn new(truncation: TruncationMode, stays: bool) -> Self {
        let fetcher = || Fetcher::new(FetcherConfig { truncation, ..FetcherConfig::default() });
        let nodes = [0, 1].map(|node| BTreeMap::from([(topic(), replica(node))]));
        let (fetchers, on_the_way) = ([fetcher(), fetcher()], Vec::new());
        let mut pair = Self { nodes, fetchers, leader: 0, epoch: -1, partition_epoch: 0, now: NOW, on_the_way, stays };
        pair.elect(0);
        pair
    }

    fn replica(&self, node: usize) -> &Replica {
        &self.nodes[node][&topic()]
    }

    fn replica_mut(&mut self, node: usize) -> &mut Replica {
        self.nodes[node].get_mut(&topic()).unwrap()
    }

    fn follower(&self) -> usize {
        1 - self.leader
    }

    /// A node leads under a new epoch, and the other one begins to fetch from its log end.
    fn elect(&mut self, node: usize) {
        (self.leader, self.epoch, self.partition_epoch) = (node, self.epoch + 1, self.partition_epoch + 1);
        let (now, word) = (self.now, led_by(i32::try_from(node).unwrap(), self.epoch, self.partition_epoch));
        let follower = self.follower();
        self.fetchers[node].remove_partition(&topic());
        self.replica_mut(node).make_leader(&word, now).unwrap();
        assert!(self.replica_mut(follower).make_follower(&word));
        let log = self.replica(follower).log();
        let has_epochs = log.leader_epochs().latest_epoch().is_some();
        let offset = if has_epochs { log.log_end_offset() } else { log.high_watermark() };
        let initial = InitialFetchState { topic_id: None, current_leader_epoch: LeaderEpoch(self.epoch), offset };
        self.fetchers[follower].add_partition(&topic(), initial, &self.nodes[follower]);
    }

    pub(crate) fn run(&mut self, step: &Step) {
        let (leader, now) = (self.leader, self.now);
        match step {
            Step::Append(records) => append(self.replica_mut(leader), plain(*records), now).unwrap(),
            Step::Ask => self.ask(),
            Step::Deliver { which, again } => self.deliver(*which, *again),
            Step::Lose => self.on_the_way.clear(),
            Step::Truncate => self.truncate(),
            Step::Reset => self.reset(),
            Step::Swap if self.stays => {}
            Step::Swap => self.elect(self.follower()),
            Step::Bump => self.elect(leader),
            Step::Delete(offset) => self.delete(Offset(*offset)),
            Step::Agree => self.agree(),
            Step::Wait(ms) => {
                self.now = TimestampMs(now.get() + ms);
                let now = self.now;
                self.replica_mut(leader).maybe_shrink_isr(now);
            }
        }
    }

    fn delete(&mut self, offset: Offset) {
        let log = self.replica(self.leader).log();
        let mut offset = log.high_watermark().min(offset);
        if !self.stays {
            let bases = log.batches().unwrap().into_iter().map(|batch| batch.base_offset());
            offset = bases.chain([log.log_end_offset()]).filter(|base| *base <= offset).max().unwrap_or(log.log_start_offset());
        }
        self.replica_mut(self.leader).delete_records_on_leader(offset).unwrap();
    }

    fn agree(&mut self) {
        let (leader, now, version) = (self.leader, self.now, self.partition_epoch + 1);
        let Some(asked) = self.replica(leader).isr_change() else { return };
        assert_eq!(self.replica_mut(leader).isr_changed(&asked, PartitionEpoch(version), now), Ok(true));
        self.partition_epoch = version;
    }

    fn ask(&mut self) {
        let (leader, follower, now) = (self.leader, self.follower(), self.now);
        let requests = self.fetchers[follower].fetch_requests(&self.nodes[follower], &BTreeSet::new(), now);
        let reader = Reader::Follower(NodeId(i32::try_from(follower).unwrap()));
        for (partition, request) in requests {
            let answer = self.replica_mut(leader).fetch(reader, &request, 100, now);
            self.on_the_way.push((follower, partition, request, answer.map_err(|error| LeaderError::from(&error))));
        }
    }

    fn deliver(&mut self, which: usize, again: bool) {
        if which >= self.on_the_way.len() {
            return;
        }
        let (node, partition, request, answer) = self.on_the_way[which].clone();
        if !again {
            drop(self.on_the_way.remove(which));
        }
        let (requests, answers) = ([(partition.clone(), request)], vec![(partition, answer)]);
        self.fetchers[node].on_fetch(&requests, answers, &mut self.nodes[node], self.now);
    }

    fn truncate(&mut self) {
        let (leader, follower, now) = (self.leader, self.follower(), self.now);
        let plan = self.fetchers[follower].truncation_plan(&self.nodes[follower], now);
        for (partition, request) in plan.requests {
            let end = self.replica(leader).end_offset_for_epoch(Some(request.current_leader_epoch), request.leader_epoch, true);
            let answers = vec![(partition.clone(), end.map_err(|error| LeaderError::from(&error)))];
            let requests = [(partition, request)];
            self.fetchers[follower].on_epoch_end_offsets(&requests, answers, &mut self.nodes[follower], now).unwrap();
        }
        self.fetchers[follower].truncate_to_high_watermark(&plan.to_high_watermark, &mut self.nodes[follower], now);
    }

    fn reset(&mut self) {
        let (follower, now) = (self.follower(), self.now);
        for (partition, request) in self.fetchers[follower].offset_requests(now) {
            let answer = self.offset(request);
            self.fetchers[follower].on_offset(&partition, request, answer, &mut self.nodes[follower], now);
        }
    }

    fn offset(&mut self, request: OffsetRequest) -> Result<Offset, LeaderError> {
        let (leader, epoch) = (self.leader, Some(request.current_leader_epoch));
        let found = self.replica_mut(leader).fetch_offset_for_timestamp(request.spec, FetchIsolation::LogEnd, epoch, true);
        found.map(|found| found.unwrap().offset).map_err(|error| LeaderError::from(&error))
    }

    /// What holds at any time.
    pub(crate) fn check(&self) {
        for node in [0, 1] {
            let log = self.replica(node).log();
            let ends = (log.log_start_offset(), log.high_watermark(), log.log_end_offset());
            assert!(ends.0 <= ends.1 && ends.1 <= ends.2, "{node}: {ends:?}");
            assert!(!self.fetchers[node].failed().contains(&topic()), "{node}");
        }
        let [leader, follower] = [self.leader, self.follower()].map(|node| self.replica(node).log());
        if self.stays {
            // With one leader ever, whatever epochs it had, what follows has a part of what it has.
            assert!(follower.high_watermark() <= leader.high_watermark());
            assert!(follower.log_end_offset() <= leader.log_end_offset());
            let from = leader.log_start_offset().max(follower.log_start_offset());
            let mut both = kept(leader, from);
            let own = kept(follower, from);
            both.truncate(own.len());
            assert_eq!(own, both);
        }
    }

    /// Without further changes the follower gets all that the leader has, and knows that it is replicated.
    pub(crate) fn converge(&mut self) {
        self.run(&Step::Append(1));
        for _ in 0..200 {
            self.run(&Step::Wait(1_000));
            self.truncate();
            self.ask();
            while !self.on_the_way.is_empty() {
                self.deliver(0, false);
            }
            self.reset();
            self.agree();
            self.check();
        }
        let [leader, follower] = [self.leader, self.follower()].map(|node| self.replica(node).log());
        let ends = |log: &PartitionLog<MemoryStorage>| (log.high_watermark(), log.log_end_offset());
        assert_eq!(ends(follower), ends(leader));
        assert_eq!(leader.high_watermark(), leader.log_end_offset());
        // One that has led may have deleted more than the other one, which nobody brings back.
        let from = follower.log_start_offset();
        assert!(from >= leader.log_start_offset());
        assert_eq!(kept(follower, from), kept(leader, from));
        assert_eq!(self.replica(self.leader).isr().len(), 2);
    }
}

/// The batches with an offset that is still there.
fn kept(log: &PartitionLog<MemoryStorage>, from: Offset) -> Vec<RecordBatch> {
    log.batches().unwrap().into_iter().filter(|batch| batch.last_offset() >= from).collect()
}
