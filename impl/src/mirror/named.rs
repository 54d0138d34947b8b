//! The designs that have a name, each as one value for the log and one for the mirror; see specs/designs.md.

use super::design::{
    Acknowledgement, Alignment, DivergenceDetection, ElectedEpoch, FetchBound, MirrorDesign, PidMapping, Rerun, StepFailure,
    StopRules, StopStep, TaskCheck, UnknownSource,
};
use super::state::StateForm;
use crate::barrier::{BarrierPolicy, Clears, Propagated};
use crate::log::LogConfig;
use crate::psm::ProducerIdVisibility;

/// A design that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDesign {
    /// The name.
    pub name: &'static str,
    /// What a barrier does in a log.
    pub barrier: BarrierPolicy,
    /// Which producer ids state is kept for.
    pub ids: ProducerIdVisibility,
    /// What the mirror does.
    pub mirror: MirrorDesign,
}

impl NamedDesign {
    /// The names, in the order in which the designs were proposed.
    pub const NAMES: [&'static str; 8] =
        ["raw", "negate", "negate-once", "negate-once-barrier", "raw-barrier-inert", "raw-barrier", "raw-barrier-abort", "sound"];

    /// The design of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let name = Self::NAMES.into_iter().find(|known| *known == name)?;
        let ids = if name.starts_with("negate") { ProducerIdVisibility::Mapped } else { ProducerIdVisibility::Stock };
        let all_ids = BarrierPolicy { clears: Clears::AllIds, ..BarrierPolicy::default() };
        let (barrier, mirror) = match name {
            "raw" => (BarrierPolicy::default(), unprotected(PidMapping::None)),
            "negate" => (BarrierPolicy::default(), truncating(PidMapping::NegateEveryHop)),
            "negate-once" => (BarrierPolicy::default(), truncating(PidMapping::NegateNonNegative)),
            "negate-once-barrier" => (
                BarrierPolicy { clears: Clears::NegativeIds, propagated: Propagated::Inert, ..BarrierPolicy::default() },
                MirrorDesign { pid_mapping: PidMapping::NegateNonNegative, ..MirrorDesign::default() },
            ),
            "raw-barrier-inert" => (BarrierPolicy { propagated: Propagated::Inert, ..all_ids }, MirrorDesign::default()),
            "raw-barrier" => (all_ids, MirrorDesign::default()),
            "raw-barrier-abort" => (all_ids, aborting()),
            _ => (BarrierPolicy::SOUND, sound()),
        };
        Some(Self { name, barrier, ids, mirror })
    }

    /// These settings of a log under this design.
    #[must_use]
    pub fn log_config(&self, settings: LogConfig) -> LogConfig {
        LogConfig { barrier: self.barrier, ids: self.ids, ..settings }
    }
}

fn steps(order: &[StopStep]) -> StopRules {
    StopRules { order: order.to_vec(), ..StopRules::default() }
}

/// The first prototype: the partition just becomes writable.
fn unprotected(pid_mapping: PidMapping) -> MirrorDesign {
    MirrorDesign {
        pid_mapping,
        stop: steps(&[StopStep::RemoveFetcher, StopStep::BecomeWritable]),
        alignment: Alignment::None,
        ..MirrorDesign::default()
    }
}

fn truncating(pid_mapping: PidMapping) -> MirrorDesign {
    let stop =
        steps(&[StopStep::RemoveFetcher, StopStep::TruncateToLso, StopStep::RecordLastMirroredOffset, StopStep::BecomeWritable]);
    MirrorDesign { pid_mapping, stop, ..MirrorDesign::default() }
}

/// The order of the latest text: what the log holds of the source is recorded before the epoch is raised, and the barrier
/// follows the markers, which are producer state too.
const ABORT_THEN_BARRIER: [StopStep; 6] = [
    StopStep::RemoveFetcher,
    StopStep::RecordLastMirroredEpoch,
    StopStep::BumpLeaderEpoch,
    StopStep::AbortOpenTransactions,
    StopStep::WriteBarrier,
    StopStep::BecomeWritable,
];

fn aborting() -> MirrorDesign {
    MirrorDesign {
        states: StateForm::Nine,
        fetch_bound: FetchBound::Hw,
        stop: StopRules {
            order: ABORT_THEN_BARRIER.to_vec(),
            acknowledgement: Acknowledgement::InSyncReplicas,
            abort_failure: StepFailure::Ignore,
            step_failure: StepFailure::Retry,
            task_check: TaskCheck::Unchecked,
            unknown_source: UnknownSource::Skip,
            rerun: Rerun::RecordAgain,
            elected_epoch: ElectedEpoch::FromStopping,
        },
        alignment: Alignment::LastMirroredEpoch,
        divergence: DivergenceDetection::ByLeaderEpoch,
        ..MirrorDesign::default()
    }
}

/// The latest text with its gaps closed.
fn sound() -> MirrorDesign {
    let latest = aborting();
    let stop = StopRules {
        abort_failure: StepFailure::Retry,
        task_check: TaskCheck::Checked,
        unknown_source: UnknownSource::Write,
        rerun: Rerun::KeepRecorded,
        elected_epoch: ElectedEpoch::FromStopped,
        ..latest.stop
    };
    MirrorDesign { stop, ..latest }
}
