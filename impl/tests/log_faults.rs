//! Wherever a log's storage fails, in whatever the log was doing: what was there before and after is there when the log is
//! opened again, and its state is what the bytes that are left say.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

mod log_support;

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{
    AppendError, CleanOptions, LEADER_EPOCH_CHECKPOINT, LogConfig, LogError, OpenOptions, PartitionLog, Recovery,
};
use cleanslate_log::psm::{ProducerSnapshot, snapshot_file_name};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::{FaultyCalls, FaultyStorage, MemoryStorage, Storage, Unsynced};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerId};
use log_support::{NOW, batches, check, show};
use proptest::prelude::*;

/// Something that is done to a log.
#[derive(Clone, Debug)]
enum Action {
    /// A follower appends batches, as [`log_support`] has them.
    Copy(String),
    /// A leadership begins, and what is copied from then on has its epoch.
    Lead,
    Roll,
    Snapshot,
    Flush,
    /// A high watermark, so many parts of 8 of the way to the log end offset.
    HighWatermark(i64),
    /// A cut, so many parts of 8 of the way from the log start offset to the log end offset.
    Truncate(i64),
    /// A cleaning round up to the last stable offset.
    Compact,
    /// The log start offset goes to the high watermark, and old segments go.
    Delete,
    /// An orderly stop, after which the log goes on.
    Stop,
}

fn config() -> LogConfig {
    // Every second batch or so has an entry in the indexes, and appends begin segments, too.
    LogConfig { segment_bytes: 600, index_interval_bytes: 100, ..LogConfig::default() }
}

/// As [`config`], with files of new segments that are as long as a segment may be.
fn preallocated() -> LogConfig {
    LogConfig { preallocate: true, ..config() }
}

fn part(from: Offset, to: Offset, eighths: i64) -> Offset {
    Offset(from.get() + (to.get() - from.get()) * eighths / 8)
}

/// The epoch that a leader has. Where the log has forgotten its epochs, it is one above all that were: epochs never go back.
fn epoch_of<S: Storage>(log: &PartitionLog<S>) -> LeaderEpoch {
    let first = if log.log_end_offset() == Offset(0) { 0 } else { 50 };
    log.leader_epochs().latest_epoch().unwrap_or(LeaderEpoch(first))
}

/// Does it; whether the storage failed. That the log refuses something is none of its failures.
fn run<S: Storage>(log: &mut PartitionLog<S>, action: &Action) -> Result<(), ()> {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let result = match action {
        Action::Copy(specs) => {
            let epoch = epoch_of(log);
            let specs: Vec<String> = specs.split(' ').map(|spec| format!("E{epoch}/{spec}")).collect();
            let bytes = batches(&specs.join(" "), end);
            return match log.append_as_follower(bytes, LeaderEpoch(99), ReplicationPath::IntraCluster, NOW) {
                Err(AppendError::Storage(_)) => Err(()),
                _ => Ok(()),
            };
        }
        Action::Lead => {
            let LeaderEpoch(epoch) = epoch_of(log);
            log.assign_epoch_start_offset(LeaderEpoch(epoch + 1))
        }
        Action::Roll => log.roll(NOW).map(|_| ()),
        Action::Snapshot => log.take_snapshot().map(|_| ()),
        Action::Flush => log.flush(),
        Action::HighWatermark(eighths) => {
            log.update_high_watermark(part(start, end, *eighths));
            Ok(())
        }
        Action::Truncate(eighths) => log.truncate_to(part(start, end, *eighths), NOW).map(|_| ()),
        Action::Compact => {
            let options = CleanOptions { first_dirty: start, first_uncleanable: log.last_stable_offset(), now: NOW, max_keys: 99 };
            log.compact(&options).map(|_| ())
        }
        Action::Delete => {
            log.maybe_increment_log_start_offset(log.high_watermark()).and_then(|_| log.delete_old_segments(NOW)).map(|_| ())
        }
        Action::Stop => log.close_clean(),
    };
    match result {
        Err(LogError::Storage(_)) => Err(()),
        _ => Ok(()),
    }
}

/// What a log is by its bytes.
#[derive(Clone, Debug, PartialEq)]
struct Facts {
    batches: Vec<RecordBatch>,
    log_start: Offset,
    recovery_point: Offset,
}

fn facts<S: Storage>(log: &PartitionLog<S>) -> Facts {
    let batches = log.batches().unwrap();
    Facts { batches, log_start: log.log_start_offset(), recovery_point: log.recovery_point() }
}

/// What a restart keeps of producer state: one batch of each, the transactions that are open, and those that were aborted.
#[derive(Clone, Debug, PartialEq)]
struct State {
    entries: Vec<cleanslate_log::psm::SnapshotEntry>,
    open: Vec<Offset>,
    /// Producer, first and last offset. Not the last stable offset: an append asks for it when all its batches have been seen, so
    /// it is that of the group, and recovery, batch by batch, finds a lower one.
    aborted: Vec<(ProducerId, Offset, Offset)>,
}

fn state<S: Storage>(log: &PartitionLog<S>) -> State {
    let ProducerSnapshot { mut entries } = log.producer_state().snapshot();
    entries.sort_by_key(|entry| entry.producer_id);
    let open = log.producer_state().ongoing_transactions().keys().copied().collect();
    let aborted = log.aborted_transactions().map(|txn| (txn.producer_id, txn.first_offset, txn.last_offset)).collect();
    State { entries, open, aborted }
}

fn open(storage: MemoryStorage, recovery_point: Offset, log_start: Offset) -> PartitionLog<MemoryStorage> {
    open_with(storage, &config(), recovery_point, log_start)
}

fn open_with(storage: MemoryStorage, config: &LogConfig, recovery_point: Offset, log_start: Offset) -> PartitionLog<MemoryStorage> {
    let options = OpenOptions { recovery: Recovery::Unclean, recovery_point, log_start_offset: log_start };
    PartitionLog::open(storage, config.clone(), options, NOW).unwrap().0
}

/// The segments and nothing else, opened from the beginning.
fn replayed(log: &PartitionLog<MemoryStorage>) -> PartitionLog<MemoryStorage> {
    let mut bare = MemoryStorage::new();
    for name in log.storage().names().unwrap().iter().filter(|name| name.ends_with(".log")) {
        bare.replace(name, &log.storage().read_all(name).unwrap().unwrap()).unwrap();
    }
    open(bare, Offset(0), log.log_start_offset())
}

/// The batches that are in both of these and at or above the log start offset have to be there; what is there has to be in one of
/// these. Below the log start offset there is nothing to lose: a cut inside a batch leaves an end below it, and then all goes.
fn check_kept(found: &[RecordBatch], before: &Facts, after: &Facts, why: &str) {
    for batch in before.batches.iter().filter(|batch| batch.last_offset() >= before.log_start && after.batches.contains(batch)) {
        assert!(found.contains(batch), "{why}: the batch at {} is lost", batch.base_offset());
    }
    for batch in found {
        let known = before.batches.contains(batch) || after.batches.contains(batch);
        assert!(known, "{why}: the batch at {} comes from nowhere", batch.base_offset());
    }
}

/// A storage fails at one call of one action; then the process dies, or the machine.
struct Crash<'a> {
    actions: &'a [Action],
    /// The log before each action and after the last, without failures.
    history: &'a [Facts],
    calls: FaultyCalls,
    config: LogConfig,
}

impl Crash<'_> {
    /// Whether the storage failed at all, with so many calls before that.
    fn check(&self, calls: u64) -> bool {
        let created = PartitionLog::create(MemoryStorage::new(), self.config.clone(), NOW).unwrap().into_storage();
        let storage = FaultyStorage::over(created).counting(self.calls);
        let (mut log, _) = PartitionLog::open(storage, self.config.clone(), Recovery::Clean, NOW).unwrap();
        let mut storage = log.into_storage();
        storage.fail_after(calls);
        log = match PartitionLog::open(storage, self.config.clone(), Recovery::Clean, NOW) {
            Ok((log, _)) => log,
            Err(LogError::Storage(_)) => return true,
            Err(error) => panic!("{error}"),
        };
        let failed = self.actions.iter().position(|action| run(&mut log, action).is_err());
        let Some(index) = failed else { return false };
        let why = format!("{:?} with {calls} calls", self.actions[index]);
        // Until the log is opened again, there is nothing more.
        assert_eq!(run(&mut log, &Action::Flush), Err(()), "{why}");
        let (before, after) = (&self.history[index], &self.history[index + 1]);
        let storage = log.into_storage();
        self.check_recovered(storage.after_power_failure(Unsynced::Kept), (before, after), &why);
        self.check_power_failure(&storage, index, &why);
        true
    }

    /// Whether the bytes say all: where some were deleted or cleaned away, snapshots know more.
    fn is_whole(&self, after: &Facts) -> bool {
        after.log_start == Offset(0) && !self.actions.iter().any(|action| matches!(action, Action::Compact))
    }

    fn check_recovered(&self, image: MemoryStorage, (before, after): (&Facts, &Facts), why: &str) {
        let log_start = before.log_start;
        let recovery_point = before.recovery_point.min(after.recovery_point);
        let recovered = open_with(image, &self.config, recovery_point, log_start);
        let found = facts(&recovered);
        check_kept(&found.batches, before, after, why);
        let names = recovered.storage().names().unwrap();
        assert!(!names.iter().any(|name| name.ends_with(".swap") || name.ends_with(".cleaned")), "{why}: {names:?}");
        let is_whole = self.is_whole(after);
        let fresh = replayed(&recovered);
        assert_eq!(fresh.batches(), recovered.batches(), "{why}");
        assert_eq!(fresh.log_end_offset(), recovered.log_end_offset(), "{why}");
        if is_whole {
            assert_eq!(state(&recovered), state(&fresh), "{why}");
        }
        // Below the later log start offset, epochs may be forgotten before the batches are.
        for batch in found.batches.iter().filter(|batch| batch.base_offset() >= log_start.max(after.log_start)) {
            let epoch = recovered.leader_epochs().epoch_for_offset(batch.base_offset());
            assert_eq!(epoch, Some(batch.leader_epoch()), "{why}: at {}", batch.base_offset());
        }
        // The state has to reach the end, with a snapshot of it, and another crash changes nothing.
        assert_eq!(recovered.producer_state().map_end_offset(), recovered.log_end_offset(), "{why}");
        let end = snapshot_file_name(recovered.log_end_offset());
        assert!(recovered.log_end_offset() <= recovered.log_start_offset() || names.contains(&end), "{why}: {names:?}");
        let again = open_with(recovered.storage().reopened(), &self.config, recovery_point, log_start);
        assert_eq!(facts(&again).batches, found.batches, "{why}");
        if is_whole {
            assert_eq!(state(&again), state(&recovered), "{why}");
        }
    }

    /// What was flushed before the action, and not cut by it, survives also the loss of what was not.
    fn check_power_failure(&self, storage: &FaultyStorage, index: usize, why: &str) {
        for unsynced in [Unsynced::Lost, Unsynced::Torn(1), Unsynced::Torn(100)] {
            let why = format!("{why}, {unsynced:?}");
            let (before, after) = (&self.history[index], &self.history[index + 1]);
            let recovery_point = before.recovery_point.min(after.recovery_point);
            let recovered = open_with(storage.after_power_failure(unsynced), &self.config, recovery_point, before.log_start);
            let found = recovered.batches().unwrap();
            let flushed = before.log_start..recovery_point;
            for batch in before.batches.iter().filter(|b| flushed.contains(&b.last_offset()) && after.batches.contains(b)) {
                assert!(found.contains(batch), "{why}: the batch at {} is lost", batch.base_offset());
            }
            // A cut that was not durable may have brought back what was there once.
            let ever = self.history[..=index + 1].iter().flat_map(|facts| &facts.batches);
            assert!(found.iter().all(|batch| ever.clone().any(|known| known == batch)), "{why}");
            let fresh = replayed(&recovered);
            assert_eq!(fresh.log_end_offset(), recovered.log_end_offset(), "{why}");
            if self.is_whole(after) {
                assert_eq!(state(&recovered), state(&fresh), "{why}");
            }
        }
    }
}

/// Fails at every call in turn; returns how often that was.
fn crash_everywhere(actions: &[Action], calls: FaultyCalls) -> u64 {
    crash_everywhere_with(config(), actions, calls)
}

fn crash_everywhere_with(config: LogConfig, actions: &[Action], calls: FaultyCalls) -> u64 {
    let mut log = PartitionLog::create(MemoryStorage::new(), config.clone(), NOW).unwrap();
    let mut history = vec![facts(&log)];
    for action in actions {
        run(&mut log, action).unwrap();
        history.push(facts(&log));
    }
    let crash = Crash { actions, history: &history, calls, config };
    (0..).find(|count| !crash.check(*count)).unwrap()
}

fn specs() -> impl Strategy<Value = String> {
    // One epoch: where one is left and entered again, state depends on how batches were grouped into appends.
    let spec = prop_oneof![
        6 => (4..7_i64, 0..4_i32, 1..3_u8, any::<bool>()).prop_map(|(id, sequence, count, txn)| {
            let t = if txn { "t" } else { "" };
            format!("{t}{id}.0#{sequence}x{count}")
        }),
        3 => (4..7_i64, any::<bool>(), 0..3_i32).prop_map(|(id, commit, coordinator)| {
            let kind = if commit { "CM" } else { "AB" };
            format!("{kind}{id}.0c{coordinator}")
        }),
        1 => Just("-x3".to_owned()),
        1 => Just("BAR".to_owned()),
    ];
    prop::collection::vec(spec, 1..4).prop_map(|specs| specs.join(" "))
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => specs().prop_map(Action::Copy),
        1 => Just(Action::Lead),
        2 => Just(Action::Roll),
        1 => Just(Action::Snapshot),
        1 => Just(Action::Flush),
        2 => (0..9_i64).prop_map(Action::HighWatermark),
        1 => (0..9_i64).prop_map(Action::Truncate),
        1 => Just(Action::Compact),
        1 => Just(Action::Delete),
        1 => Just(Action::Stop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn nothing_is_lost_wherever_a_log_crashes(actions in prop::collection::vec(action(), 1..14)) {
        crash_everywhere(&actions, FaultyCalls::Changes);
    }

    /// The zeros behind what was appended are as good as nothing, at every point, and what is in front of them stays.
    #[test]
    fn nothing_is_lost_wherever_a_preallocated_log_crashes(actions in prop::collection::vec(action(), 1..12)) {
        crash_everywhere_with(preallocated(), &actions, FaultyCalls::Changes);
    }

    #[test]
    fn a_log_that_only_grows_is_its_bytes_wherever_it_crashes(
        groups in prop::collection::vec((specs(), 0..4_u8), 1..8),
    ) {
        let actions = groups.into_iter().flat_map(|(specs, then)| {
            let then = match then {
                0 => Some(Action::Roll),
                1 => Some(Action::Lead),
                2 => Some(Action::Flush),
                _ => None,
            };
            std::iter::once(Action::Copy(specs)).chain(then)
        });
        crash_everywhere(&actions.collect::<Vec<_>>(), FaultyCalls::Changes);
    }

    #[test]
    fn a_read_that_fails_is_an_error_and_no_more(actions in prop::collection::vec(action(), 1..6)) {
        crash_everywhere(&actions, FaultyCalls::All);
    }
}

/// An orderly stop leaves nothing to lose.
#[test]
fn what_was_stopped_in_order_survives_a_power_failure() {
    let mut log = PartitionLog::create(FaultyStorage::new(), config(), NOW).unwrap();
    for action in [Action::Copy("5.0#0 t6.0#0".to_owned()), Action::Roll, Action::Copy("AB6.0 5.0#1".to_owned()), Action::Stop] {
        run(&mut log, &action).unwrap();
    }
    let expected = (facts(&log).batches, state(&log));
    let storage = log.into_storage().after_power_failure(Unsynced::Lost);
    let log = PartitionLog::open(storage, config(), Recovery::Clean, NOW).unwrap().0;
    assert_eq!((facts(&log).batches, state(&log)), expected);
}

/// A segment that is not appended to any more has no zeros behind its batches, even where recovery does not look at it.
#[test]
fn a_preallocated_segment_is_trimmed_for_good_when_another_begins() {
    let mut log = PartitionLog::create(FaultyStorage::new(), preallocated(), NOW).unwrap();
    for action in [Action::Copy("5.0#0 5.0#1".to_owned()), Action::Flush, Action::Roll, Action::Copy("5.0#2".to_owned())] {
        run(&mut log, &action).unwrap();
    }
    let expected = facts(&log).batches;
    let files = log.into_storage().after_power_failure(Unsynced::Kept);
    let (first, second) = ("00000000000000000000.log", "00000000000000000002.log");
    let bytes = |from: usize, to: usize| expected[from..to].iter().map(|batch| batch.size_in_bytes() as u64).sum::<u64>();
    assert_eq!((files.len(first).unwrap(), files.len(second).unwrap()), (Some(bytes(0, 2)), Some(600)));
    let recovered = open_with(files, &preallocated(), Offset(2), Offset(0));
    assert_eq!(facts(&recovered).batches, expected);
    assert_eq!(recovered.storage().reopened().len(second).unwrap(), Some(bytes(2, 3)));
}

/// A cut is durable before the log goes on behind it: else a power failure brings back, in a segment that nothing checks any more,
/// records at offsets that the next segment has, too.
#[test]
fn what_was_cut_does_not_come_back() {
    let mut log = PartitionLog::create(FaultyStorage::new(), config(), NOW).unwrap();
    for action in [Action::Copy("5.0#0 5.0#1 5.0#2 5.0#3".to_owned()), Action::Flush, Action::Truncate(4), Action::Roll] {
        run(&mut log, &action).unwrap();
    }
    assert_eq!((log.log_end_offset(), log.recovery_point()), (Offset(2), Offset(2)));
    let storage = log.into_storage().after_power_failure(Unsynced::Lost);
    let recovered = open(storage, Offset(2), Offset(0));
    assert_eq!((recovered.log_end_offset(), recovered.batches().unwrap().len()), (Offset(2), 2));
}

/// Segments go from the end on: a hole would make a transaction of what lies before it and plain records of what lies behind it.
#[test]
fn a_cut_that_stops_half_way_leaves_no_hole() {
    let copy = |specs: &str| Action::Copy(specs.to_owned());
    let actions = [copy("t4.0#0"), Action::Roll, copy("AB4.0"), Action::Roll, copy("4.0#1"), Action::Truncate(0)];
    crash_everywhere(&actions, FaultyCalls::Changes);
}

/// Neither does an aborted transaction whose marker was cut.
#[test]
fn what_was_aborted_in_what_was_cut_does_not_come_back() {
    let copy = |specs: &str| Action::Copy(specs.to_owned());
    let actions = [copy("t4.0#0x2 t4.0#2x1 AB4.0"), Action::Roll, Action::Truncate(2), Action::Roll, copy("4.0#0x1")];
    crash_everywhere(&actions, FaultyCalls::Changes);
}

/// One append that ends a transaction and begins another: its index entry has the last stable offset behind all of the append.
#[test]
fn the_last_stable_offset_of_an_aborted_transaction_is_that_of_its_append() {
    let (copies, lso) = (["t5.0#0", "AB5.0 4.0#0 t4.0#1"], |log: &PartitionLog<MemoryStorage>| {
        log.aborted_transactions().map(|txn| txn.last_stable_offset).collect::<Vec<_>>()
    });
    let mut log = PartitionLog::create(MemoryStorage::new(), config(), NOW).unwrap();
    for specs in copies {
        run(&mut log, &Action::Copy(specs.to_owned())).unwrap();
    }
    assert_eq!((lso(&log), lso(&replayed(&log))), (vec![Offset(3)], vec![Offset(2)]));
    crash_everywhere(&copies.map(|specs| Action::Copy(specs.to_owned())), FaultyCalls::Changes);
}

/// Compaction is the longest chain of changes: it is done as a whole or not at all, and its files are tidied up.
#[test]
fn a_cleaning_round_is_done_or_not() {
    let copies = ["5.0#0 5.0#1 -x3", "t6.0#0 AB6.0", "- - -", "5.0#2 t6.0#1 CM6.0"];
    let mut actions: Vec<Action> = copies.iter().flat_map(|specs| [Action::Copy((*specs).to_owned()), Action::Roll]).collect();
    actions.extend([Action::HighWatermark(8), Action::Compact, Action::Compact]);
    let crashes = crash_everywhere(&actions, FaultyCalls::Changes);
    assert!(crashes > 60, "{crashes}");
}

/// When a log is opened, too: another start finishes what the first had begun.
#[test]
fn a_start_that_fails_can_be_made_again() {
    let lines = [("copy 5.0#0 | t6.0#0 | E1/5.0#1", "0 | 1 | 2"), ("snapshot", ""), ("copy E2/AB6.0 | 5.0#2", "3 | 4")];
    let state = "LEO 5 HW 0 LSO 0 {5:e0[0@0,1@2,2@4] 6:e0[0@1]c0} aborted 6/1/3/4";
    let mut image = check(&LogConfig::default(), &lines, state).log.into_storage();
    image.append("00000000000000000000.log", &Bytes::from_static(b"a torn batch behind them")).unwrap();
    image.replace(LEADER_EPOCH_CHECKPOINT, &Bytes::from_static(b"0\n1\n0 0\n")).unwrap();
    let expected = show(&PartitionLog::open(image.clone(), LogConfig::default(), Recovery::Unclean, NOW).unwrap().0);
    for calls in 0.. {
        let mut storage = FaultyStorage::over(image.clone()).counting(FaultyCalls::All);
        storage.fail_after(calls);
        let opened = PartitionLog::open(storage.clone(), LogConfig::default(), Recovery::Unclean, NOW);
        match opened {
            Ok((log, _)) => {
                assert!(calls > 20, "{calls}");
                assert_eq!(
                    show(
                        &PartitionLog::open(log.into_storage().visible().clone(), LogConfig::default(), Recovery::Unclean, NOW)
                            .unwrap()
                            .0
                    ),
                    expected
                );
                break;
            }
            Err(LogError::Storage(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
