//! Two replicas of a partition, over which leader epochs pass in any order of appends, fetches, late and lost answers: what one has that
//! follows becomes what the other one has. And calls with values that nobody would send.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

mod replication_support;

use std::collections::{BTreeMap, BTreeSet};

use cleanslate_log::log::FetchIsolation;
use cleanslate_log::replication::{
    EpochEndOffset, Fetcher, FetcherConfig, InitialFetchState, IsrChange, LeaderError, Partition, PartitionFetch, Reader, Replicas,
    TruncationMode,
};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, NodeId, Offset, PartitionEpoch, TimestampMs};
use proptest::prelude::*;
use replication_support::{Pair, Step, led_by, plain, replica, topic};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..4_usize).prop_map(Step::Append),
        5 => Just(Step::Ask),
        5 => (0..3_usize, any::<bool>()).prop_map(|(which, again)| Step::Deliver { which, again }),
        1 => Just(Step::Lose),
        2 => Just(Step::Truncate),
        2 => Just(Step::Reset),
        2 => Just(Step::Swap),
        1 => Just(Step::Bump),
        1 => (0..12_i64).prop_map(Step::Delete),
        1 => Just(Step::Agree),
        1 => (0..40_000_i64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn what_follows_becomes_what_leads(on_fetch in any::<bool>(), stays in any::<bool>(), steps in steps()) {
        let mode = if on_fetch { TruncationMode::OnFetch } else { TruncationMode::BeforeFetch };
        let mut pair = Pair::new(mode, stays);
        for step in &steps {
            pair.run(step);
            pair.check();
        }
        pair.converge();
    }
}

fn offsets() -> impl Strategy<Value = Offset> {
    let edges = prop::sample::select(vec![i64::MIN, -2, -1, 0, 1, 2, 3, 9, i64::from(i32::MAX) + 1, i64::MAX - 1, i64::MAX]);
    edges.prop_map(Offset)
}

fn epochs() -> impl Strategy<Value = LeaderEpoch> {
    prop::sample::select(vec![i32::MIN, -1, 0, 1, 2, i32::MAX - 1, i32::MAX]).prop_map(LeaderEpoch)
}

fn times() -> impl Strategy<Value = TimestampMs> {
    prop::sample::select(vec![i64::MIN, -1, 0, 1, 1_000, i64::MAX]).prop_map(TimestampMs)
}

fn nodes() -> impl Strategy<Value = NodeId> {
    prop::sample::select(vec![i32::MIN, 0, 1, 2, i32::MAX]).prop_map(NodeId)
}

fn fetches() -> impl Strategy<Value = PartitionFetch> {
    (offsets(), offsets(), prop::option::of(epochs()), prop::option::of(epochs())).prop_map(|(from, start, current, last)| {
        PartitionFetch {
            fetch_offset: from,
            log_start_offset: start,
            current_leader_epoch: current,
            last_fetched_epoch: last,
            topic_id: None,
        }
    })
}

fn errors() -> impl Strategy<Value = LeaderError> {
    let all = [
        LeaderError::FencedLeaderEpoch,
        LeaderError::UnknownLeaderEpoch,
        LeaderError::NotLeaderOrFollower,
        LeaderError::OffsetOutOfRange,
        LeaderError::Other,
    ];
    prop::sample::select(all.to_vec())
}

/// A call of a leader.
#[derive(Clone, Debug)]
enum Ask {
    Lead(LeaderEpoch, i32),
    Follow(LeaderEpoch, i32),
    Fetch(NodeId, PartitionFetch, usize),
    Read(PartitionFetch, usize),
    EpochEnd(Option<LeaderEpoch>, LeaderEpoch),
    Time(Offset, Option<LeaderEpoch>),
    Delete(Offset),
    Append,
    Shrink,
    Agree(PartitionEpoch),
}

fn asks() -> impl Strategy<Value = (Ask, TimestampMs)> {
    let sizes = || prop::sample::select(vec![0, 1, i32::MAX as usize, usize::MAX]);
    let versions = || prop::sample::select(vec![i32::MIN, -1, 0, 1, i32::MAX]);
    let ask = prop_oneof![
        (epochs(), versions()).prop_map(|(epoch, version)| Ask::Lead(epoch, version)),
        (epochs(), versions()).prop_map(|(epoch, version)| Ask::Follow(epoch, version)),
        (nodes(), fetches(), sizes()).prop_map(|(node, fetch, size)| Ask::Fetch(node, fetch, size)),
        (fetches(), sizes()).prop_map(|(fetch, size)| Ask::Read(fetch, size)),
        (prop::option::of(epochs()), epochs()).prop_map(|(current, epoch)| Ask::EpochEnd(current, epoch)),
        (offsets(), prop::option::of(epochs())).prop_map(|(spec, epoch)| Ask::Time(spec, epoch)),
        offsets().prop_map(Ask::Delete),
        Just(Ask::Append),
        Just(Ask::Shrink),
        versions().prop_map(|version| Ask::Agree(PartitionEpoch(version))),
    ];
    (ask, times())
}

/// What comes of it does not matter.
fn ask(partition: &mut Partition<MemoryStorage>, ask: Ask, now: TimestampMs) {
    match ask {
        Ask::Lead(epoch, version) => drop(partition.make_leader(&led_by(0, epoch.get(), version), now)),
        Ask::Follow(epoch, version) => drop(partition.make_follower(&led_by(1, epoch.get(), version))),
        Ask::Fetch(node, fetch, size) => drop(partition.fetch(Reader::Follower(node), &fetch, size, now)),
        Ask::Read(fetch, size) => {
            let reader = Reader::Client { isolation: FetchIsolation::TxnCommitted, from_follower: true };
            drop(partition.fetch(reader, &fetch, size, now));
        }
        Ask::EpochEnd(current, epoch) => drop(partition.end_offset_for_epoch(current, epoch, false)),
        Ask::Time(spec, epoch) => {
            drop(partition.fetch_offset_for_timestamp(spec.get().into(), FetchIsolation::HighWatermark, epoch, false));
        }
        Ask::Delete(offset) => drop(partition.delete_records_on_leader(offset)),
        Ask::Append => drop(replication_support::append(partition, plain(2), now)),
        Ask::Shrink => partition.maybe_shrink_isr(now),
        Ask::Agree(version) => {
            let none = IsrChange { isr: BTreeSet::new(), leader_epoch: LeaderEpoch(0), partition_epoch: version };
            let asked = partition.isr_change().unwrap_or(none);
            drop(partition.isr_changed(&asked, version, now));
            partition.isr_change_refused(&asked);
        }
    }
}

/// What a fetcher hears.
#[derive(Clone, Debug)]
enum Hear {
    Add(LeaderEpoch, Offset),
    Remove,
    Fetched { epoch: LeaderEpoch, end: Offset, diverges: bool, start: Offset, hw: Offset },
    Refused(LeaderError),
    Failed,
    EpochEnd(Option<(LeaderEpoch, Offset)>),
    HighWatermark,
    Offset(Result<Offset, LeaderError>),
}

fn hears() -> impl Strategy<Value = (Hear, TimestampMs)> {
    let fetched = (epochs(), offsets(), any::<bool>(), offsets(), offsets());
    let hear = prop_oneof![
        (epochs(), offsets()).prop_map(|(epoch, offset)| Hear::Add(epoch, offset)),
        Just(Hear::Remove),
        fetched.prop_map(|(epoch, end, diverges, start, hw)| Hear::Fetched { epoch, end, diverges, start, hw }),
        errors().prop_map(Hear::Refused),
        Just(Hear::Failed),
        prop::option::of((epochs(), offsets())).prop_map(Hear::EpochEnd),
        Just(Hear::HighWatermark),
        prop_oneof![offsets().prop_map(Ok), errors().prop_map(Err)].prop_map(Hear::Offset),
    ];
    (hear, times())
}

fn hear(fetcher: &mut Fetcher, replicas: &mut Replicas<MemoryStorage>, heard: Hear, now: TimestampMs) {
    let partition = topic();
    match heard {
        Hear::Add(current_leader_epoch, offset) => {
            let initial = InitialFetchState { topic_id: None, current_leader_epoch, offset };
            fetcher.add_partition(&partition, initial, replicas);
        }
        Hear::Remove => drop(fetcher.remove_partition(&partition)),
        Hear::Fetched { epoch, end, diverges, start, hw } => {
            let requests = fetcher.fetch_requests(replicas, &BTreeSet::new(), now);
            let diverging = diverges.then_some(EpochEndOffset { epoch, end_offset: end });
            let answer = replication_support::answer(epoch.get(), end, diverging, start, hw);
            fetcher.on_fetch(&requests, vec![(partition, Ok(answer))], replicas, now);
        }
        Hear::Refused(error) => {
            let requests = fetcher.fetch_requests(replicas, &BTreeSet::new(), now);
            fetcher.on_fetch(&requests, vec![(partition, Err(error))], replicas, now);
        }
        Hear::Failed => fetcher.on_fetch_failed(now),
        Hear::EpochEnd(end) => {
            let requests = fetcher.truncation_plan(replicas, now).requests;
            let end = end.map(|(epoch, end_offset)| EpochEndOffset { epoch, end_offset });
            let answers = requests.iter().map(|(partition, _)| (partition.clone(), Ok(end))).collect();
            fetcher.on_epoch_end_offsets(&requests, answers, replicas, now).unwrap();
        }
        Hear::HighWatermark => {
            let plan = fetcher.truncation_plan(replicas, now).to_high_watermark;
            fetcher.truncate_to_high_watermark(&plan, replicas, now);
        }
        Hear::Offset(answer) => {
            for (partition, request) in fetcher.offset_requests(now) {
                fetcher.on_offset(&partition, request, answer, replicas, now);
            }
        }
    }
}

/// What every log holds, whatever was said to it.
fn holds(partition: &Partition<MemoryStorage>) {
    let log = partition.log();
    let ends = (log.log_start_offset(), log.high_watermark(), log.log_end_offset());
    assert!(Offset(0) <= ends.0 && ends.0 <= ends.1 && ends.1 <= ends.2, "{ends:?}");
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn no_request_breaks_a_partition(calls in prop::collection::vec(asks(), 1..30)) {
        let mut partition = replica(0);
        for (call, now) in calls {
            ask(&mut partition, call, now);
            holds(&partition);
        }
    }

    #[test]
    fn no_answer_breaks_a_fetcher(
        backoff_ms in prop::sample::select(vec![i64::MIN, -1, 0, 1_000, i64::MAX]),
        before in any::<bool>(),
        heard in prop::collection::vec(hears(), 1..30),
    ) {
        let truncation = if before { TruncationMode::BeforeFetch } else { TruncationMode::OnFetch };
        let mut fetcher = Fetcher::new(FetcherConfig { backoff_ms, truncation });
        let mut replicas: Replicas<MemoryStorage> = BTreeMap::from([(topic(), replica(0))]);
        for (what, now) in heard {
            hear(&mut fetcher, &mut replicas, what, now);
            holds(&replicas[&topic()]);
            assert!(!fetcher.failed().contains(&topic()) || fetcher.state(&topic()).is_none());
        }
    }
}
