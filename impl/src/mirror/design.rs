//! What the designs of a mirror differ in, apart from the barrier's rules.

use super::state::StateForm;
use crate::log::FetchIsolation;
use crate::types::{LeaderEpoch, ProducerId};

/// What the leader of a mirror does to producer ids before it appends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PidMapping {
    /// Nothing: bytes are stored as they came.
    #[default]
    None,
    /// Every id p becomes -(p + 2); so -1 stays, and a second hop restores the first id.
    NegateEveryHop,
    /// Ids of 0 and above become -(p + 2); negative ids stay.
    NegateNonNegative,
}

impl PidMapping {
    /// The id under which a batch is stored. Wraps at the ends of the range, as Java's `long` does.
    #[must_use]
    pub fn map(self, id: ProducerId) -> ProducerId {
        let negated = ProducerId(id.get().wrapping_add(2).wrapping_neg());
        match self {
            Self::NegateEveryHop => negated,
            Self::NegateNonNegative if id >= ProducerId(0) => negated,
            Self::None | Self::NegateNonNegative => id,
        }
    }
}

/// Up to where a mirror may fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchBound {
    /// The source's last stable offset.
    #[default]
    Lso,
    /// The source's high watermark.
    Hw,
}

impl FetchBound {
    /// The isolation of the reads that this bound means.
    #[must_use]
    pub fn isolation(self) -> FetchIsolation {
        match self {
            Self::Lso => FetchIsolation::TxnCommitted,
            Self::Hw => FetchIsolation::HighWatermark,
        }
    }
}

/// A step of the stop sequence. Each is durable on its own, and a crash may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopStep {
    /// Stop fetching.
    RemoveFetcher,
    /// Truncate the log to its last stable offset.
    TruncateToLso,
    /// Store the log end offset as last mirrored offset.
    RecordLastMirroredOffset,
    /// Store the latest leader epoch in the log as last mirrored epoch.
    RecordLastMirroredEpoch,
    /// Have the controller raise the leader epoch above the latest in the log, and note it at the log end offset.
    BumpLeaderEpoch,
    /// Append an ABORT marker for each open transaction.
    AbortOpenTransactions,
    /// Append a barrier.
    WriteBarrier,
    /// Become writable.
    BecomeWritable,
}

/// When a step that appends is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Acknowledgement {
    /// When the leader has it.
    #[default]
    Leader,
    /// When the high watermark has passed it: all in-sync replicas have it.
    InSyncReplicas,
}

/// What the stop sequence does when a step fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepFailure {
    /// Goes on as if it had not.
    Ignore,
    /// Stays where it is for ever.
    Halt,
    /// Tries again later, by a task of its own.
    #[default]
    Retry,
}

/// Whether what a task was made for still has to hold when it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskCheck {
    /// No: it runs whoever leads by now, and in whatever state.
    Unchecked,
    /// The state is STOPPING, and leader epoch and state epoch are those of the time when the task was made.
    #[default]
    Checked,
}

/// What becomes of the barrier when the source cluster's id is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnknownSource {
    /// The barrier is left out, and the partition becomes writable without one.
    Skip,
    /// The step fails.
    Fail,
    /// The barrier is written without the id.
    #[default]
    Write,
}

/// What a stop sequence that begins again does about what an earlier run of the same stop has recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rerun {
    /// It records anew: by then the log may hold the earlier run's own batches.
    #[default]
    RecordAgain,
    /// What was recorded stays, as far as the log reaches.
    KeepRecorded,
}

/// From which state on a new leader notes its epoch at the log end offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElectedEpoch {
    /// STOPPING, as soon as the partition is meant to be stopped. Elected before the last mirrored epoch was recorded, the
    /// leader records its own.
    #[default]
    FromStopping,
    /// STOPPED: while it stops, the step that bumps the epoch notes it.
    FromStopped,
}

/// How a mirror stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRules {
    /// The steps in order.
    pub order: Vec<StopStep>,
    /// When a step that appends is done.
    pub acknowledgement: Acknowledgement,
    /// What happens when ABORT markers cannot be appended.
    pub abort_failure: StepFailure,
    /// What happens when another step fails, in the first place that of the barrier.
    pub step_failure: StepFailure,
    /// Whether a step that is tried again checks that it is still wanted.
    pub task_check: TaskCheck,
    /// What becomes of the barrier when the source cluster's id is not known.
    pub unknown_source: UnknownSource,
    /// What a second run does about what the first has recorded.
    pub rerun: Rerun,
    /// From which state on a new leader notes its epoch.
    pub elected_epoch: ElectedEpoch,
}

impl Default for StopRules {
    /// The newer text of KIP-1279.
    fn default() -> Self {
        Self {
            order: vec![
                StopStep::RemoveFetcher,
                StopStep::TruncateToLso,
                StopStep::RecordLastMirroredOffset,
                StopStep::WriteBarrier,
                StopStep::BecomeWritable,
            ],
            acknowledgement: Acknowledgement::default(),
            abort_failure: StepFailure::default(),
            step_failure: StepFailure::default(),
            task_check: TaskCheck::default(),
            unknown_source: UnknownSource::default(),
            rerun: Rerun::default(),
            elected_epoch: ElectedEpoch::default(),
        }
    }
}

/// How a log is aligned before it starts to mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alignment {
    /// Not at all.
    None,
    /// By truncation to its own last stable offset.
    OwnLso,
    /// By truncation to the last mirrored offset that the source recorded, or to 0.
    #[default]
    LastMirroredOffset,
    /// By truncation to where the last mirrored epoch that the source recorded ends in this log, or to 0.
    LastMirroredEpoch,
    /// As by the epoch, but not beyond the last mirrored offset.
    LastMirroredEpochAndOffset,
}

/// Whether a mirror finds out where its log and the source's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DivergenceDetection {
    /// It fetches from its log end offset on, whatever the source holds there.
    #[default]
    None,
    /// Each fetch carries the epoch of the last batch, and a diverging answer truncates.
    ByLeaderEpoch,
}

/// When the leader epoch of a mirror has to be raised, and to what: it may not fall behind the source's (MIR-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochFencing {
    /// It is raised when it is less than this much above the source's; 0 waits until it is below.
    pub margin: i32,
    /// It is raised to this much above the source's.
    pub lead: i32,
}

impl Default for EpochFencing {
    fn default() -> Self {
        Self { margin: 0, lead: 10 }
    }
}

impl EpochFencing {
    /// Whether the source's epoch is ahead, or too near.
    #[must_use]
    pub fn is_behind(self, own: LeaderEpoch, source: LeaderEpoch) -> bool {
        i64::from(own.get()) < i64::from(source.get()).saturating_add(i64::from(self.margin.max(0)))
    }

    /// The epoch to ask the controller for.
    #[must_use]
    pub fn target(self, source: LeaderEpoch) -> LeaderEpoch {
        LeaderEpoch(source.get().saturating_add(self.lead.max(self.margin)))
    }
}

/// The choices of one design. The default is the newer text of KIP-1279.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorDesign {
    /// Which states there are.
    pub states: StateForm,
    /// How many attempts are made by themselves after a failure.
    pub max_attempts: i32,
    /// What happens to producer ids.
    pub pid_mapping: PidMapping,
    /// Up to where the source is read.
    pub fetch_bound: FetchBound,
    /// How it stops.
    pub stop: StopRules,
    /// How the log is aligned before it mirrors.
    pub alignment: Alignment,
    /// Whether it finds out where logs part.
    pub divergence: DivergenceDetection,
    /// When the leader epoch is raised.
    pub epoch_fencing: EpochFencing,
}

/// Kafka's prototype tries so often by itself.
const MAX_ATTEMPTS: i32 = 100;

impl Default for MirrorDesign {
    fn default() -> Self {
        Self {
            states: StateForm::Six,
            max_attempts: MAX_ATTEMPTS,
            pid_mapping: PidMapping::None,
            fetch_bound: FetchBound::Lso,
            stop: StopRules::default(),
            alignment: Alignment::LastMirroredOffset,
            divergence: DivergenceDetection::None,
            epoch_fencing: EpochFencing::default(),
        }
    }
}
