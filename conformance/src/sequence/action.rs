//! What may happen to two logs, `A` and `B`, without numbers that depend on what has happened before.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use crate::adapter::message::{Config, HighWatermarkRule, Isolation};

/// Which of the two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The log that most happens to.
    A,
    /// Another, which may copy from `A`.
    B,
}

/// The sequence of a producer's next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceChoice {
    /// The one that is expected.
    Next,
    /// That of a remembered batch, counted from the newest, with its epoch and number of records.
    Again(u8),
    /// Later than expected, by so many.
    Gap(u8),
    /// The first.
    Zero,
    /// So many before the largest.
    NearMax(u8),
}

/// A batch of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Which producer; `None` for none, negative ones for ids below -1.
    pub producer: Option<i8>,
    /// Its epoch.
    pub epoch: u8,
    /// Its sequence.
    pub sequence: SequenceChoice,
    /// How many records, 1 or more.
    pub records: u8,
    /// Whether it belongs to a transaction.
    pub transactional: bool,
    /// How far its timestamps lie behind the clock, in minutes.
    pub age_minutes: i16,
    /// How its records are compressed.
    pub codec: Codec,
}

/// How a batch is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the codecs")]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Which producer.
    pub producer: i8,
    /// Its epoch.
    pub epoch: u8,
    /// COMMIT or ABORT.
    pub commit: bool,
    /// The epoch of the coordinator.
    pub coordinator_epoch: u8,
}

/// A batch of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// Records.
    Data(Data),
    /// A marker.
    End(End),
    /// A control batch of another type, without a producer or with one.
    Control(i8, Option<i8>),
    /// Records of an old format.
    Old(Old),
}

/// Records of magic 0 or 1, which know neither producer nor leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old {
    /// Magic 1, else 0.
    pub has_time: bool,
    /// How many records, 1 or more.
    pub records: u8,
    /// They are a compressed set; the format is older than zstd.
    pub codec: Codec,
}

/// What a stop does to a log's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing is lost.
    Nothing,
    /// The end of the active segment, so many bytes of it.
    Tail(u8),
    /// All snapshots.
    Snapshots,
    /// The index of the first segment.
    Index,
    /// Nothing, but one bit of a file has turned.
    Flip(Flip),
}

/// A bit that has turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// In which file.
    pub file: Damaged,
    /// The byte, counted from the end of a segment and from the beginning of other files; modulo the file's length.
    pub at: u16,
    /// The bit.
    pub bit: u8,
}

/// Files that can be damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// The active segment.
    Segment,
    /// The offset index of a segment: the first, or the last if the flag is set.
    OffsetIndex(bool),
    /// Its time index.
    TimeIndex(bool),
    /// Its transaction index.
    TransactionIndex(bool),
    /// The newest producer state snapshot.
    Snapshot,
    /// The checkpoint of the leader epochs.
    LeaderEpochs,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the requests that the actions become")]
pub enum Action {
    /// A client appends.
    Produce { log: Which, data: Data, guarded: bool },
    /// A coordinator ends a transaction, under a transaction version.
    Finish { log: Which, end: End, version: i8 },
    /// The leader appends another control batch.
    Control { log: Which, type_id: i8, producer: Option<i8> },
    /// A follower appends batches that come from nowhere, after a gap of offsets, under a leader epoch relative to the own.
    Copy { log: Which, batches: Vec<Copied>, gap: u8, epoch: i8 },
    /// `B` copies from `A`, in appends of so many batches.
    Replicate { groups: Vec<u8> },
    /// The log is cut at so many 255ths of its offsets.
    Truncate { log: Which, at: u8 },
    /// The log starts anew.
    TruncateFully { log: Which, ahead: u8 },
    /// The high watermark moves.
    HighWatermark { log: Which, at: u8, rule: HighWatermarkRule },
    /// The log start offset moves.
    LogStart { log: Which, at: u8 },
    /// Another leader epoch begins.
    BecomeLeader { log: Which, ahead: u8 },
    /// Where an epoch ends.
    EpochEnd { log: Which, epoch: u8 },
    /// A new segment.
    Roll { log: Which },
    /// Everything becomes durable.
    Flush { log: Which },
    /// A snapshot of producer state.
    Snapshot { log: Which },
    /// Old snapshots are deleted.
    DeleteSnapshots { log: Which, at: u8 },
    /// Producers expire, so many minutes from now.
    Expire { log: Which, minutes: u16 },
    /// Time passes.
    Wait { log: Which, minutes: u16 },
    /// Segments are deleted.
    Retention { log: Which },
    /// A cleaning round, so many minutes from now; after everything was replicated and a new segment has begun, if that is asked for.
    Compact { log: Which, minutes: u16, prepare: bool },
    /// A transaction is to be verified.
    Verify { log: Which, producer: i8, epoch: u8, sequence: u8, bump: bool },
    /// A read.
    Read { log: Which, at: u8, isolation: Isolation, max_bytes: u16, min_one_message: bool },
    /// A clean stop, and a start as after a clean one or not.
    Restart { log: Which, clean: bool, loss: Loss, recovery: u8 },
    /// A crash, and a start.
    Crash { log: Which, loss: Loss, recovery: u8 },
}

/// Settings and actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The settings of both logs.
    pub config: Config,
    /// What happens, in order.
    pub actions: Vec<Action>,
    /// At the end the files of `A` are opened as another log: after a clean stop, or as they stand.
    pub transplant_clean: bool,
}

/// Plans of so many actions, which shrink to fewer and simpler ones.
pub fn plans(length: usize) -> impl Strategy<Value = Plan> {
    (config(), vec(action(), length), any::<bool>()).prop_map(|(config, actions, transplant_clean)| Plan {
        config,
        actions,
        transplant_clean,
    })
}

fn config() -> impl Strategy<Value = Config> {
    let segment_bytes = prop_oneof![2 => Just(None), 1 => Just(Some(250)), 2 => Just(Some(600))];
    let interval = prop_oneof![Just(None), Just(Some(0)), Just(Some(150))];
    let expiration = prop_oneof![3 => Just(None), 1 => Just(Some(600_000))];
    let verification = prop_oneof![3 => Just(None), 1 => Just(Some(true))];
    let timestamps = prop_oneof![5 => Just(None), 1 => Just(Some("LogAppendTime".to_owned()))];
    let segment_ms = prop_oneof![4 => Just(None), 1 => Just(Some(1_200_000))];
    (segment_bytes, interval, expiration, verification, timestamps, segment_ms).prop_map(
        |(segment_bytes, index_interval_bytes, producer_expiration_ms, verification, timestamp_type, segment_ms)| Config {
            segment_bytes,
            index_interval_bytes,
            producer_expiration_ms,
            verification,
            timestamp_type,
            segment_ms,
            ..Config::default()
        },
    )
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![3 => Just(Which::A), 1 => Just(Which::B)]
}

fn producer() -> impl Strategy<Value = i8> {
    prop_oneof![6 => 0..3_i8, 1 => Just(-2)]
}

fn data() -> impl Strategy<Value = Data> {
    let sequence = prop_oneof![
        8 => Just(SequenceChoice::Next),
        2 => (0..6_u8).prop_map(SequenceChoice::Again),
        1 => (1..4_u8).prop_map(SequenceChoice::Gap),
        1 => Just(SequenceChoice::Zero),
        1 => (0..4_u8).prop_map(SequenceChoice::NearMax),
    ];
    let producer = prop_oneof![1 => Just(None), 5 => producer().prop_map(Some)];
    let age = prop_oneof![6 => Just(0_i16), 1 => 0..3_i16, 1 => Just(2000), 1 => Just(-5)];
    let codec = prop_oneof![
        8 => Just(Codec::None), 1 => Just(Codec::Gzip), 1 => Just(Codec::Snappy), 1 => Just(Codec::Lz4), 1 => Just(Codec::Zstd),
    ];
    (producer, 0..3_u8, sequence, 1..4_u8, any::<bool>(), age, codec).prop_map(
        |(producer, epoch, sequence, records, transactional, age_minutes, codec)| Data {
            producer,
            epoch,
            sequence,
            records,
            transactional: transactional && producer.is_some(),
            age_minutes,
            codec,
        },
    )
}

fn old() -> impl Strategy<Value = Old> {
    let codec = prop_oneof![6 => Just(Codec::None), 1 => Just(Codec::Gzip), 1 => Just(Codec::Snappy), 1 => Just(Codec::Lz4)];
    (any::<bool>(), 1..4_u8, codec).prop_map(|(has_time, records, codec)| Old { has_time, records, codec })
}

fn end() -> impl Strategy<Value = End> {
    (producer(), 0..3_u8, any::<bool>(), 0..3_u8).prop_map(|(producer, epoch, commit, coordinator_epoch)| End {
        producer,
        epoch,
        commit,
        coordinator_epoch,
    })
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        4 => Just(Loss::Nothing),
        2 => (1..100_u8).prop_map(Loss::Tail),
        2 => Just(Loss::Snapshots),
        1 => Just(Loss::Index),
        4 => flip().prop_map(Loss::Flip),
    ]
}

fn flip() -> impl Strategy<Value = Flip> {
    let file = prop_oneof![
        6 => Just(Damaged::Segment),
        1 => any::<bool>().prop_map(Damaged::OffsetIndex),
        1 => any::<bool>().prop_map(Damaged::TimeIndex),
        4 => any::<bool>().prop_map(Damaged::TransactionIndex),
        2 => Just(Damaged::Snapshot),
        2 => Just(Damaged::LeaderEpochs),
    ];
    (file, 0..300_u16, 0..8_u8).prop_map(|(file, at, bit)| Flip { file, at, bit })
}

fn control_type() -> impl Strategy<Value = i8> {
    prop_oneof![4 => Just(7_i8), 1 => Just(9), 1 => Just(2)]
}

fn action() -> impl Strategy<Value = Action> {
    let owner = prop_oneof![5 => Just(None), 1 => producer().prop_map(Some)];
    let owner = owner.boxed();
    let copied = prop_oneof![
        1 => old().prop_map(Copied::Old),
        4 => data().prop_map(Copied::Data),
        3 => end().prop_map(Copied::End),
        1 => (control_type(), owner.clone()).prop_map(|(t, p)| Copied::Control(t, p)),
    ];
    let rule = prop_oneof![Just(HighWatermarkRule::Set), Just(HighWatermarkRule::Follower), Just(HighWatermarkRule::Leader)];
    let isolation = prop_oneof![1 => Just(Isolation::LogEnd), 1 => Just(Isolation::HighWatermark), 3 => Just(Isolation::Committed)];
    let version = prop_oneof![2 => Just(0_i8), 1 => Just(1), 3 => Just(2), 1 => Just(-1)];
    let max_bytes = prop_oneof![Just(0_u16), Just(100), Just(300), Just(u16::MAX)];
    let appends = prop_oneof![
        10 => (which(), data(), any::<bool>()).prop_map(|(log, data, guarded)| Action::Produce { log, data, guarded }),
        5 => (which(), end(), version).prop_map(|(log, end, version)| Action::Finish { log, end, version }),
        1 => (which(), control_type(), owner).prop_map(|(log, type_id, producer)| Action::Control { log, type_id, producer }),
        5 => (which(), vec(copied, 1..5), prop_oneof![6 => Just(0_u8), 1 => 1..4_u8], prop_oneof![6 => Just(0_i8), 1 => -1..2_i8])
            .prop_map(|(log, batches, gap, epoch)| Action::Copy { log, batches, gap, epoch }),
        3 => vec(1..5_u8, 1..4).prop_map(|groups| Action::Replicate { groups }),
        1 => (which(), producer(), 0..3_u8, 0..3_u8, any::<bool>())
            .prop_map(|(log, producer, epoch, sequence, bump)| Action::Verify { log, producer, epoch, sequence, bump }),
    ];
    let offsets = prop_oneof![
        2 => (which(), any::<u8>()).prop_map(|(log, at)| Action::Truncate { log, at }),
        1 => (which(), 0..3_u8).prop_map(|(log, ahead)| Action::TruncateFully { log, ahead }),
        6 => (which(), prop_oneof![5 => Just(u8::MAX), 1 => Just(254), 5 => any::<u8>()], rule).prop_map(|(log, at, rule)| Action::HighWatermark { log, at, rule }),
        1 => (which(), any::<u8>()).prop_map(|(log, at)| Action::LogStart { log, at }),
        1 => (which(), 0..3_u8).prop_map(|(log, ahead)| Action::BecomeLeader { log, ahead }),
        1 => (which(), 0..6_u8).prop_map(|(log, epoch)| Action::EpochEnd { log, epoch }),
        4 => (which(), any::<u8>(), isolation, max_bytes, any::<bool>()).prop_map(|(log, at, isolation, max_bytes, min_one_message)| {
            Action::Read { log, at, isolation, max_bytes, min_one_message }
        }),
    ];
    let upkeep = prop_oneof![
        2 => which().prop_map(|log| Action::Roll { log }),
        1 => which().prop_map(|log| Action::Flush { log }),
        1 => which().prop_map(|log| Action::Snapshot { log }),
        1 => (which(), any::<u8>()).prop_map(|(log, at)| Action::DeleteSnapshots { log, at }),
        1 => (which(), prop_oneof![0..30_u16, Just(3000)]).prop_map(|(log, minutes)| Action::Expire { log, minutes }),
        1 => (which(), prop_oneof![0..30_u16, Just(3000)]).prop_map(|(log, minutes)| Action::Wait { log, minutes }),
        1 => which().prop_map(|log| Action::Retention { log }),
        3 => (which(), prop_oneof![0..30_u16, Just(3000)], any::<bool>())
            .prop_map(|(log, minutes, prepare)| Action::Compact { log, minutes, prepare }),
        3 => (which(), any::<bool>(), loss(), any::<u8>())
            .prop_map(|(log, clean, loss, recovery)| Action::Restart { log, clean, loss, recovery }),
        2 => (which(), loss(), any::<u8>()).prop_map(|(log, loss, recovery)| Action::Crash { log, loss, recovery }),
    ];
    prop_oneof![25 => appends, 12 => offsets, 10 => upkeep]
}
