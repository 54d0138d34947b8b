//! The designs that were proposed, each with the text that it stands for.

use super::{
    Alignment, AppliedBy, Barrier, Clears, Design, FetchBound, OpenTransactions, PidMapping, Propagated, PsmIds, StopOrder, Timing,
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
    ..RAW
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
];
