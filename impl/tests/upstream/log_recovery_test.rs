#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's LogRecoveryTest: the high watermarks that two brokers keep over stops and changes of the leader.

use std::collections::{BTreeMap, BTreeSet};

use cleanslate_log::log::{LogConfig, OpenOptions, PartitionLog};
use cleanslate_log::log_dir::{CheckpointFile, ClosedLog, LogDirState, OffsetCheckpoint, TopicPartition};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard};
use cleanslate_log::replication::{
    Fetcher, FetcherConfig, InitialFetchState, LeaderAndIsr, LeaderError, Partition, PartitionConfig, Reader,
};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch};

use super::replication::topic;
use crate::upstream::support::{NOW, bases, plain, record_bytes};

fn partition() -> TopicPartition {
    topic("new-topic")
}

/// A broker with its log directory and that of its only partition. It is down when there is no replica.
struct Broker {
    id: NodeId,
    settings: LogConfig,
    directory: MemoryStorage,
    files: MemoryStorage,
    replica: Option<Partition<MemoryStorage>>,
}

impl Broker {
    fn new(id: i32, settings: &LogConfig) -> Self {
        let (directory, files) = (MemoryStorage::new(), MemoryStorage::new());
        let mut broker = Self { id: NodeId(id), settings: settings.clone(), directory, files, replica: None };
        broker.start();
        broker
    }

    fn start(&mut self) {
        let (state, unreadable) = LogDirState::start(&mut self.directory).unwrap();
        assert_eq!(unreadable, []);
        let options: OpenOptions = state.open_options(&partition());
        let (mut log, _) = PartitionLog::open(self.files.clone(), self.settings.clone(), options, NOW).unwrap();
        log.update_high_watermark(Offset(self.checkpointed()));
        self.replica = Some(Partition::new(self.id, log, PartitionConfig::default()));
    }

    fn stop(&mut self) {
        self.checkpoint();
        let mut replica = self.replica.take().unwrap();
        ClosedLog::stop_all(&mut self.directory, [(partition(), replica.log_mut())], BrokerEpoch(1)).unwrap();
        self.files = replica.log().storage().clone();
    }

    fn replica(&mut self) -> &mut Partition<MemoryStorage> {
        self.replica.as_mut().unwrap()
    }

    fn high_watermark(&self) -> i64 {
        self.replica.as_ref().unwrap().log().high_watermark().get()
    }

    fn checkpoint(&mut self) {
        let entry = (partition(), Offset(self.high_watermark()));
        OffsetCheckpoint::new([entry]).store(&mut self.directory, CheckpointFile::HighWatermark).unwrap();
    }

    /// What the file says; without it 0.
    fn checkpointed(&self) -> i64 {
        let file = OffsetCheckpoint::load(&self.directory, CheckpointFile::HighWatermark).unwrap();
        file.get(&partition()).map_or(0, Offset::get)
    }

    fn send(&mut self, messages: usize) {
        for _ in 0..messages {
            let batch = plain(1).build().unwrap().bytes().clone();
            let (origin, tv) = (AppendOrigin::Client, TransactionVersion::Unknown);
            self.replica().append_to_leader(batch, origin, tv, VerificationGuard::SENTINEL, NOW).unwrap();
        }
    }
}

/// The controller names a leader, and who is in sync, to the brokers that are up.
fn elect(brokers: &mut [Broker; 2], leader: i32, epoch: i32, in_sync: &[i32]) {
    let word = LeaderAndIsr {
        leader: NodeId(leader),
        leader_epoch: LeaderEpoch(epoch),
        partition_epoch: PartitionEpoch(2 * epoch),
        replicas: [NodeId(0), NodeId(1)].into(),
        isr: in_sync.iter().map(|id| NodeId(*id)).collect(),
    };
    for broker in brokers.iter_mut().filter(|broker| broker.replica.is_some()) {
        if broker.id == word.leader {
            broker.replica().make_leader(&word, NOW).unwrap();
        } else {
            broker.replica().make_follower(&word);
        }
    }
}

/// The follower fetches until it has everything and knows the high watermark; the controller takes it in when it has caught up.
fn replicate(leader: &mut Broker, follower: &mut Broker) {
    let mut fetcher = Fetcher::new(FetcherConfig { backoff_ms: 0, ..FetcherConfig::default() });
    let replica = follower.replica.take().unwrap();
    let (current_leader_epoch, offset) = (leader.replica().leader_epoch(), replica.log().log_end_offset());
    let mut replicas = BTreeMap::from([(partition(), replica)]);
    fetcher.add_partition(&partition(), InitialFetchState { topic_id: None, current_leader_epoch, offset }, &replicas);
    let plan = fetcher.truncation_plan(&replicas, NOW);
    assert_eq!(plan.requests, []);
    fetcher.truncate_to_high_watermark(&plan.to_high_watermark, &mut replicas, NOW);
    for _ in 0..30 {
        let requests = fetcher.fetch_requests(&replicas, &BTreeSet::new(), NOW);
        assert_eq!(requests.len(), 1);
        let answers = requests.iter().map(|(of, request)| {
            let answer = leader.replica().fetch(Reader::Follower(follower.id), request, 1, NOW);
            (of.clone(), answer.map_err(|error| LeaderError::from(&error)))
        });
        let answers = answers.collect();
        fetcher.on_fetch(&requests, answers, &mut replicas, NOW);
        if let Some(asked) = leader.replica().isr_change() {
            let epoch = PartitionEpoch(leader.replica().partition_epoch().get() + 1);
            assert_eq!(leader.replica().isr_changed(&asked, epoch, NOW), Ok(true));
        }
    }
    follower.replica = replicas.remove(&partition());
}

/// Two brokers, of which the first leads, with so many records in a segment.
fn two(per_segment: usize) -> [Broker; 2] {
    let settings = LogConfig { segment_bytes: per_segment * record_bytes(), ..LogConfig::default() };
    let mut brokers = [Broker::new(0, &settings), Broker::new(1, &settings)];
    elect(&mut brokers, 0, 0, &[0, 1]);
    brokers
}

fn checkpoints(brokers: &[Broker; 2]) -> [i64; 2] {
    [brokers[0].checkpointed(), brokers[1].checkpointed()]
}

fn replicate_to_second([first, second]: &mut [Broker; 2]) {
    replicate(first, second);
}

fn replicate_to_first([first, second]: &mut [Broker; 2]) {
    replicate(second, first);
}

#[test]
fn test_hw_checkpoint_no_failures_single_log_segment() {
    let mut brokers = two(1000);
    brokers[0].send(2);
    // Nobody but the leader has them yet.
    assert_eq!(brokers[0].high_watermark(), 0);
    replicate_to_second(&mut brokers);
    assert_eq!(brokers[1].high_watermark(), 2);
    brokers.iter_mut().for_each(Broker::checkpoint);
    assert_eq!(checkpoints(&brokers), [2, 2]);
}

#[test]
fn test_hw_checkpoint_with_failures_single_log_segment() {
    let mut brokers = two(1000);
    assert_eq!(checkpoints(&brokers), [0, 0]);
    brokers[0].send(1);
    replicate_to_second(&mut brokers);
    brokers[0].stop();
    assert_eq!(brokers[0].checkpointed(), 1);
    elect(&mut brokers, 1, 1, &[1]);
    brokers[0].start();
    elect(&mut brokers, 1, 1, &[1]);
    assert_eq!(brokers[0].checkpointed(), 1);
    // The first joins those in sync, which is needed to lead again.
    replicate_to_first(&mut brokers);
    assert_eq!(brokers[1].replica().isr().len(), 2);
    brokers[1].stop();
    assert_eq!(brokers[1].checkpointed(), 1);
    elect(&mut brokers, 0, 2, &[0]);
    brokers[1].start();
    elect(&mut brokers, 0, 2, &[0]);
    brokers[0].send(1);
    replicate_to_second(&mut brokers);
    assert_eq!(brokers[1].high_watermark(), 2);
    brokers.iter_mut().for_each(Broker::stop);
    assert_eq!(checkpoints(&brokers), [2, 2]);
}

#[test]
fn test_hw_checkpoint_no_failures_multiple_log_segments() {
    let mut brokers = two(3);
    brokers[0].send(20);
    assert_eq!(bases(brokers[0].replica().log()).len(), 7);
    replicate_to_second(&mut brokers);
    assert_eq!(brokers[1].high_watermark(), 20);
    brokers.iter_mut().for_each(Broker::stop);
    assert_eq!(checkpoints(&brokers), [20, 20]);
}

#[test]
fn test_hw_checkpoint_with_failures_multiple_log_segments() {
    let mut brokers = two(1);
    brokers[0].send(2);
    replicate_to_second(&mut brokers);
    brokers.iter_mut().for_each(Broker::stop);
    assert_eq!(checkpoints(&brokers), [2, 2]);
    brokers[1].start();
    elect(&mut brokers, 1, 1, &[1]);
    assert_eq!(checkpoints(&brokers), [2, 2]);
    brokers[0].start();
    elect(&mut brokers, 1, 1, &[1]);
    assert_eq!([brokers[0].high_watermark(), brokers[1].high_watermark()], [2, 2]);
    brokers[1].send(2);
    replicate_to_first(&mut brokers);
    assert_eq!(brokers[0].high_watermark(), 4);
    brokers.iter_mut().for_each(Broker::stop);
    assert_eq!(checkpoints(&brokers), [4, 4]);
}
