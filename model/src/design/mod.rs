//! Designs: a set of rule choices over one base. A design is a value; no rule of the model names a design.

macro_rules! axis {
    ($(#[$doc:meta])* $name:ident, $key:literal, $about:literal, { $($(#[$vdoc:meta])* $variant:ident = $vname:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $crate::design::Axis for $name {
            const KEY: &'static str = $key;
            const ABOUT: &'static str = $about;
            const CHOICES: &'static [(&'static str, Self)] = &[$(($vname, Self::$variant)),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::design::Axis::name(*self))
            }
        }
    };
}

mod axes;
mod fault;
mod named;

pub use fault::Fault;

pub use axes::{
    Alignment, AlignmentScope, AlignmentWaits, Applier, Axis, Barrier, Clears, Divergence, EpochBump, EpochFencing, FetchBound,
    Gate, LeaderEpochs, LeaderTruncation, OpenTransactions, OwnEpoch, PidMapping, Propagated, PsmIds, Record, ReloadWhenEmpty,
    StateFencing, StopAcks, StopResume, StopStep, Timing, UnansweredAtStart,
};
pub use named::{NAMED, NamedDesign};

use std::fmt;

/// The places in which a barrier acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AppliedBy([bool; 4]);

impl AppliedBy {
    /// Everywhere.
    pub const ALL: Self = Self([true; 4]);
    /// Nowhere: the log of stock Kafka, which stores a barrier and knows no more of it.
    pub const NOWHERE: Self = Self([false; 4]);

    /// Whether a barrier acts in this place.
    #[must_use]
    pub fn has(self, place: Applier) -> bool {
        self.0.get(place as usize).copied().unwrap_or(false)
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self::ALL);
        }
        if text == "none" {
            return Some(Self::NOWHERE);
        }
        let mut places = [false; 4];
        for name in text.split('/') {
            *places.get_mut(Applier::by_name(name)? as usize)? = true;
        }
        Some(Self(places))
    }
}

impl fmt::Display for AppliedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        if *self == Self::NOWHERE {
            return f.write_str("none");
        }
        let names: Vec<_> = Applier::CHOICES.iter().filter(|(_, p)| self.has(*p)).map(|(n, _)| *n).collect();
        f.write_str(&names.join("/"))
    }
}

/// The order of the stop steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StopOrder(pub [StopStep; 6]);

impl StopOrder {
    /// The order of the texts: what is not stable goes, the last mirrored offset and epoch are stored, the epoch is raised, transactions
    /// are aborted, the barrier is written, the partition becomes writable. A design leaves out the steps that it does not have.
    pub const AS_IN_THE_TEXTS: Self = Self([
        StopStep::TruncateToLso,
        StopStep::Record,
        StopStep::BumpEpoch,
        StopStep::AbortOpen,
        StopStep::WriteBarrier,
        StopStep::BecomeWritable,
    ]);

    fn parse(text: &str) -> Option<Self> {
        let steps: Vec<StopStep> = text.split('/').map(StopStep::by_name).collect::<Option<_>>()?;
        let all_differ = StopStep::CHOICES.iter().all(|(_, s)| steps.contains(s));
        <[StopStep; 6]>::try_from(steps).ok().filter(|_| all_differ).map(Self)
    }
}

impl fmt::Display for StopOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(Axis::name).join("/"))
    }
}

macro_rules! design {
    ($($(#[$doc:meta])* $field:ident: $axis:ident),+ $(,)?) => {
        /// A set of rule choices.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Design {
            $($(#[$doc])* pub $field: $axis,)+
            /// Where a barrier acts.
            pub applied_by: AppliedBy,
            /// The order of the stop steps.
            pub stop_order: StopOrder,
        }

        impl Design {
            /// Makes one choice on an axis with single choices; none if there is no such axis.
            fn choose(&mut self, key: &str, choice: &str) -> Option<Result<(), String>> {
                match key {
                    $($axis::KEY => Some(choose(&mut self.$field, choice)),)+
                    _ => None,
                }
            }

            /// Every axis with the choice made; a fault only if there is one.
            #[must_use]
            pub fn axes(&self) -> Vec<(&'static str, String)> {
                let mut axes = vec![
                    $(($axis::KEY, self.$field.to_string()),)+
                    (Applier::KEY, self.applied_by.to_string()),
                    (StopStep::KEY, self.stop_order.to_string()),
                ];
                axes.retain(|(key, choice)| *key != Fault::KEY || choice != Fault::None.name());
                axes
            }
        }
    };
}

design! {
    /// What the mirror leader does to producer ids.
    pid_mapping: PidMapping,
    /// Which ids the ProducerStateManager keeps state for.
    psm_ids: PsmIds,
    /// Whether the stop sequence writes a barrier.
    barrier: Barrier,
    /// What a barrier clears.
    clears: Clears,
    /// What a propagated barrier does.
    propagated: Propagated,
    /// When a barrier takes effect within an append call.
    timing: Timing,
    /// Up to where a mirror reads.
    fetch_bound: FetchBound,
    /// What the stop sequence does about open transactions.
    open_transactions: OpenTransactions,
    /// How a log is aligned before it mirrors.
    alignment: Alignment,
    /// Whose records of a stop it is aligned with.
    alignment_scope: AlignmentScope,
    /// Which steps of a stop wait for the in-sync replicas.
    stop_acks: StopAcks,
    /// Where an interrupted stop goes on.
    stop_resume: StopResume,
    /// Whether it stores the last mirrored offset and epoch again.
    record: Record,
    /// Whether a stop raises the leader epoch.
    epoch_bump: EpochBump,
    /// The leader epoch of mirrored batches.
    leader_epochs: LeaderEpochs,
    /// Whether a mirror raises its epoch to that of its source.
    epoch_fencing: EpochFencing,
    /// Which readers find diverging logs.
    divergence: Divergence,
    /// Whether a deposed leader can write the mirror state.
    state_fencing: StateFencing,
    /// When clients may write.
    gate: Gate,
    /// Whether state that was empty is built again after a truncation.
    reload_when_empty: ReloadWhenEmpty,
    /// What a leader knows of its follower after it has cut its own log.
    leader_truncation: LeaderTruncation,
    /// Which replicas an alignment waits for.
    alignment_waits: AlignmentWaits,
    /// What happens to appends that are not yet answered when a partition becomes a mirror.
    unanswered_at_start: UnansweredAtStart,
    /// When a leader counts its own epoch.
    own_epoch: OwnEpoch,
    /// A fault, for the kill list.
    fault: Fault,
}

/// Why a text is not a design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// No design has this name.
    #[error("unknown design '{name}'; designs are {}; append +AXIS=CHOICE to vary one", design_names())]
    UnknownDesign {
        /// The name.
        name: String,
    },
    /// No axis has this key.
    #[error("unknown axis '{key}'; axes are {}", axis_keys())]
    UnknownAxis {
        /// The key.
        key: String,
    },
    /// The axis has no such choice.
    #[error("axis '{key}' has no choice '{choice}'; choices are {choices}")]
    UnknownChoice {
        /// The axis.
        key: String,
        /// The choice that was asked for.
        choice: String,
        /// What there is.
        choices: String,
    },
}

fn design_names() -> String {
    NAMED.iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
}

fn axis_keys() -> String {
    NAMED.first().map(|d| d.design.axes().into_iter().map(|(k, _)| k).collect::<Vec<_>>().join(", ")).unwrap_or_default()
}

fn unknown_choice(key: &str, choice: &str, choices: String) -> DesignError {
    DesignError::UnknownChoice { key: key.to_owned(), choice: choice.to_owned(), choices }
}

fn choose<A: Axis>(slot: &mut A, choice: &str) -> Result<(), String> {
    match A::by_name(choice) {
        Some(value) => {
            *slot = value;
            Ok(())
        }
        None => Err(A::CHOICES.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ")),
    }
}

impl Design {
    /// The design of this name, or a variant of one: `NAME+AXIS=CHOICE+AXIS=CHOICE`.
    ///
    /// # Errors
    /// [`DesignError`] names the valid designs, axes or choices.
    pub fn parse(text: &str) -> Result<Self, DesignError> {
        let mut parts = text.split('+');
        let name = parts.next().unwrap_or_default();
        let base = NAMED.iter().find(|d| d.name == name);
        let mut design = base.ok_or_else(|| DesignError::UnknownDesign { name: name.to_owned() })?.design;
        for part in parts {
            let (key, choice) = part.split_once('=').unwrap_or((part, ""));
            design.set(key, choice)?;
        }
        Ok(design)
    }

    /// The same design on logs that have only the rules of stock Kafka: they store a barrier and clear nothing, keep no state of negative
    /// producer ids, and do not rebuild a state that is empty.
    #[must_use]
    pub fn on_stock_logs(self) -> Self {
        Self { applied_by: AppliedBy::NOWHERE, psm_ids: PsmIds::Stock, reload_when_empty: ReloadWhenEmpty::Skipped, ..self }
    }

    /// Makes one choice.
    ///
    /// # Errors
    /// [`DesignError`] if there is no such axis or choice.
    pub fn set(&mut self, key: &str, choice: &str) -> Result<(), DesignError> {
        if let Some(result) = self.choose(key, choice) {
            return result.map_err(|choices| unknown_choice(key, choice, choices));
        }
        let result = match key {
            Applier::KEY => match AppliedBy::parse(choice) {
                Some(places) => {
                    self.applied_by = places;
                    Ok(())
                }
                None => Err("all, none, or some of leader/follower/reload/segment-recovery".to_owned()),
            },
            StopStep::KEY => match StopOrder::parse(choice) {
                Some(order) => {
                    self.stop_order = order;
                    Ok(())
                }
                None => Err("an order of truncate/record/bump/abort/write-barrier/writable".to_owned()),
            },
            _ => return Err(DesignError::UnknownAxis { key: key.to_owned() }),
        };
        result.map_err(|choices| unknown_choice(key, choice, choices))
    }

    /// The steps that a stop of this design takes after the fetcher is removed.
    pub fn stop_steps(&self) -> impl Iterator<Item = StopStep> + '_ {
        self.stop_order.0.into_iter().filter(|step| match step {
            StopStep::TruncateToLso => self.open_transactions == OpenTransactions::Truncate,
            StopStep::Record => matches!(self.alignment, Alignment::Lmo | Alignment::Lme | Alignment::Both),
            StopStep::BumpEpoch => self.epoch_bump == EpochBump::On,
            StopStep::AbortOpen => self.open_transactions == OpenTransactions::Abort,
            StopStep::WriteBarrier => self.barrier == Barrier::OnStop,
            StopStep::BecomeWritable => true,
        })
    }
}
