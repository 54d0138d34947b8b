//! The designs that were proposed, each with the text that it stands for.

use super::{
    Alignment, AlignmentScope, AlignmentWaits, AppliedBy, Barrier, Clears, Design, Divergence, EpochBump, EpochFencing, Fault,
    FetchBound, Gate, LeaderEpochs, LeaderTruncation, OpenTransactions, OwnEpoch, PidMapping, Propagated, PsmIds, Record,
    ReloadWhenEmpty, StateFencing, StopAcks, StopOrder, StopResume, Timing, UnansweredAtStart,
};

/// A design with a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedDesign {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is and where it comes from, one sentence.
    pub about: &'static str,
    /// The choices.
    pub design: Design,
}

/// No mapping, no barrier, no truncation: the first prototype.
const RAW: Design = Design {
    pid_mapping: PidMapping::None,
    psm_ids: PsmIds::Stock,
    barrier: Barrier::None,
    clears: Clears::AllIds,
    propagated: Propagated::Inert,
    timing: Timing::Position,
    applied_by: AppliedBy::ALL,
    fetch_bound: FetchBound::Lso,
    open_transactions: OpenTransactions::Leave,
    alignment: Alignment::None,
    alignment_scope: AlignmentScope::Direct,
    stop_acks: StopAcks::All,
    stop_resume: StopResume::Redo,
    record: Record::Again,
    epoch_bump: EpochBump::Off,
    leader_epochs: LeaderEpochs::Rewrite,
    epoch_fencing: EpochFencing::Off,
    divergence: Divergence::Followers,
    state_fencing: StateFencing::On,
    gate: Gate::Stopped,
    reload_when_empty: ReloadWhenEmpty::Skipped,
    leader_truncation: LeaderTruncation::KeepsFollower,
    alignment_waits: AlignmentWaits::InSync,
    unanswered_at_start: UnansweredAtStart::Kept,
    own_epoch: OwnEpoch::WhileWritable,
    fault: Fault::None,
    stop_order: StopOrder::AS_IN_THE_TEXTS,
};

const NEGATE: Design = Design {
    pid_mapping: PidMapping::NegateEveryHop,
    psm_ids: PsmIds::Mapped,
    open_transactions: OpenTransactions::Truncate,
    alignment: Alignment::Lmo,
    ..RAW
};

const NEGATE_ONCE: Design = Design { pid_mapping: PidMapping::NegateNonNegative, ..NEGATE };

const RAW_BARRIER: Design = Design {
    barrier: Barrier::OnStop,
    clears: Clears::AllIds,
    propagated: Propagated::AppendAndReplay,
    open_transactions: OpenTransactions::Truncate,
    alignment: Alignment::Lmo,
    leader_epochs: LeaderEpochs::Keep,
    ..RAW
};

const RAW_BARRIER_ABORT: Design = Design {
    fetch_bound: FetchBound::Hw,
    open_transactions: OpenTransactions::Abort,
    alignment: Alignment::Lme,
    epoch_bump: EpochBump::On,
    epoch_fencing: EpochFencing::On,
    divergence: Divergence::All,
    ..RAW_BARRIER
};

/// As close to the latest text as keeps every promise: what each change is for is told in `specs/sound.md`.
const SOUND: Design = Design {
    record: Record::Once,
    stop_acks: StopAcks::EveryStep,
    own_epoch: OwnEpoch::Always,
    reload_when_empty: ReloadWhenEmpty::Done,
    leader_truncation: LeaderTruncation::ForgetsFollower,
    alignment_waits: AlignmentWaits::EveryReplica,
    unanswered_at_start: UnansweredAtStart::Refused,
    ..RAW_BARRIER_ABORT
};

/// All named designs, in the order in which they were proposed.
pub const NAMED: &[NamedDesign] = &[
    NamedDesign { name: "raw", about: "producer ids are stored as they come and nothing separates the clusters", design: RAW },
    NamedDesign { name: "negate", about: "every hop stores p as -(p + 2)", design: NEGATE },
    NamedDesign { name: "negate-once", about: "ids of 0 and above are stored as -(p + 2), negative ids stay", design: NEGATE_ONCE },
    NamedDesign {
        name: "negate-once-barrier",
        about: "negate-once, and a barrier on stop clears negative ids (the older text)",
        design: Design { barrier: Barrier::OnStop, clears: Clears::NegativeIds, propagated: Propagated::Inert, ..NEGATE_ONCE },
    },
    NamedDesign {
        name: "raw-barrier-inert",
        about: "ids as they come, a barrier on stop clears all ids, a propagated barrier is only stored (the newer text, first reading)",
        design: Design { propagated: Propagated::Inert, ..RAW_BARRIER },
    },
    NamedDesign {
        name: "raw-barrier",
        about: "ids as they come, every barrier clears all ids wherever it is met (the newer text, final wording)",
        design: RAW_BARRIER,
    },
    NamedDesign {
        name: "raw-barrier-abort",
        about: "raw-barrier that mirrors up to the high watermark, raises the leader epoch at a stop and aborts open transactions (the latest text)",
        design: RAW_BARRIER_ABORT,
    },
    NamedDesign { name: "sound", about: "the latest text with the changes without which some promise is broken", design: SOUND },
];
