//! Designs: a set of rule choices over one base. A design is a value; no rule of the model names a design.

mod axes;
mod named;

pub use axes::{
    Alignment, Applier, Axis, Barrier, Clears, FetchBound, OpenTransactions, PidMapping, Propagated, PsmIds, StopStep, Timing,
};
pub use named::{NAMED, NamedDesign};

use std::fmt;

/// The places in which a barrier acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AppliedBy([bool; 4]);

impl AppliedBy {
    /// Everywhere.
    pub const ALL: Self = Self([true; 4]);

    /// Whether a barrier acts in this place.
    #[must_use]
    pub fn has(self, place: Applier) -> bool {
        self.0.get(place as usize).copied().unwrap_or(false)
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self::ALL);
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
        let names: Vec<_> = Applier::CHOICES.iter().filter(|(_, p)| self.has(*p)).map(|(n, _)| *n).collect();
        f.write_str(&names.join("/"))
    }
}

/// The order of the stop steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StopOrder(pub [StopStep; 4]);

impl StopOrder {
    /// The order of both texts: truncate, store the last mirrored offset, write the barrier, become writable.
    pub const AS_IN_THE_TEXTS: Self =
        Self([StopStep::TruncateToLso, StopStep::RecordLmo, StopStep::WriteBarrier, StopStep::BecomeWritable]);

    fn parse(text: &str) -> Option<Self> {
        let steps: Vec<StopStep> = text.split('/').map(StopStep::by_name).collect::<Option<_>>()?;
        let all_differ = StopStep::CHOICES.iter().all(|(_, s)| steps.contains(s));
        <[StopStep; 4]>::try_from(steps).ok().filter(|_| all_differ).map(Self)
    }
}

impl fmt::Display for StopOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(Axis::name).join("/"))
    }
}

/// A set of rule choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Design {
    /// What the mirror leader does to producer ids.
    pub pid_mapping: PidMapping,
    /// Which ids the ProducerStateManager keeps state for.
    pub psm_ids: PsmIds,
    /// Whether the stop sequence writes a barrier.
    pub barrier: Barrier,
    /// What a barrier clears.
    pub clears: Clears,
    /// What a propagated barrier does.
    pub propagated: Propagated,
    /// When a barrier takes effect within an append call.
    pub timing: Timing,
    /// Where a barrier acts.
    pub applied_by: AppliedBy,
    /// Up to where a mirror reads.
    pub fetch_bound: FetchBound,
    /// What the stop sequence does about open transactions.
    pub open_transactions: OpenTransactions,
    /// How a log is aligned before it mirrors.
    pub alignment: Alignment,
    /// The order of the stop steps.
    pub stop_order: StopOrder,
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
    NAMED.first().map(|d| d.design.axes().map(|(k, _)| k).join(", ")).unwrap_or_default()
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

    /// Makes one choice.
    ///
    /// # Errors
    /// [`DesignError`] if there is no such axis or choice.
    pub fn set(&mut self, key: &str, choice: &str) -> Result<(), DesignError> {
        let result = match key {
            PidMapping::KEY => choose(&mut self.pid_mapping, choice),
            PsmIds::KEY => choose(&mut self.psm_ids, choice),
            Barrier::KEY => choose(&mut self.barrier, choice),
            Clears::KEY => choose(&mut self.clears, choice),
            Propagated::KEY => choose(&mut self.propagated, choice),
            Timing::KEY => choose(&mut self.timing, choice),
            FetchBound::KEY => choose(&mut self.fetch_bound, choice),
            OpenTransactions::KEY => choose(&mut self.open_transactions, choice),
            Alignment::KEY => choose(&mut self.alignment, choice),
            Applier::KEY => match AppliedBy::parse(choice) {
                Some(places) => {
                    self.applied_by = places;
                    Ok(())
                }
                None => Err("all, or some of leader/follower/reload/segment-recovery".to_owned()),
            },
            StopStep::KEY => match StopOrder::parse(choice) {
                Some(order) => {
                    self.stop_order = order;
                    Ok(())
                }
                None => Err("an order of truncate/record-lmo/write-barrier/writable".to_owned()),
            },
            _ => return Err(DesignError::UnknownAxis { key: key.to_owned() }),
        };
        result.map_err(|choices| DesignError::UnknownChoice { key: key.to_owned(), choice: choice.to_owned(), choices })
    }

    /// Every axis with the choice made.
    #[must_use]
    pub fn axes(&self) -> [(&'static str, String); 11] {
        [
            (PidMapping::KEY, self.pid_mapping.to_string()),
            (PsmIds::KEY, self.psm_ids.to_string()),
            (Barrier::KEY, self.barrier.to_string()),
            (Clears::KEY, self.clears.to_string()),
            (Propagated::KEY, self.propagated.to_string()),
            (Timing::KEY, self.timing.to_string()),
            (Applier::KEY, self.applied_by.to_string()),
            (FetchBound::KEY, self.fetch_bound.to_string()),
            (OpenTransactions::KEY, self.open_transactions.to_string()),
            (Alignment::KEY, self.alignment.to_string()),
            (StopStep::KEY, self.stop_order.to_string()),
        ]
    }

    /// The steps that a stop of this design takes after the fetcher is removed.
    pub fn stop_steps(&self) -> impl Iterator<Item = StopStep> + '_ {
        self.stop_order.0.into_iter().filter(|step| match step {
            StopStep::TruncateToLso => self.open_transactions == OpenTransactions::Truncate,
            StopStep::RecordLmo => self.alignment == Alignment::Lmo,
            StopStep::WriteBarrier => self.barrier == Barrier::OnStop,
            StopStep::BecomeWritable => true,
        })
    }
}
