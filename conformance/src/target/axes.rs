//! The axes of a trace's design: strings in, choices out, and errors that list what there is.

use std::collections::{BTreeMap, BTreeSet};

use cleanslate_log::barrier::{AppliedOn, BarrierPolicy, Clears, EmptyState, Propagated, Timing};
use cleanslate_log::log::LogConfig;
use cleanslate_log::mirror::{MirrorDesign, PidMapping};
use cleanslate_log::psm::ProducerIdVisibility;

use super::TargetError;

/// The axes that change what a log does.
const LOG_AXES: [&str; 7] = ["pid-mapping", "psm-ids", "barrier", "clears", "propagated", "timing", "applied-by"];

/// The axes that decide which operations a trace has. A log never sees them; they may be missing.
const SCRIPT_AXES: [(&str, &[&str]); 18] = [
    ("fetch-bound", &["lso", "hw"]),
    ("open-transactions", &["truncate", "abort", "leave"]),
    ("alignment", &["none", "own-lso", "lmo", "lme", "both"]),
    ("alignment-scope", &["direct", "any"]),
    ("alignment-waits", &["in-sync", "every-replica"]),
    ("stop-acks", &["none", "barrier", "all", "every-step"]),
    ("stop-resume", &["redo", "continue"]),
    ("record", &["again", "once"]),
    ("epoch-bump", &["on", "off"]),
    ("leader-epochs", &["keep", "rewrite"]),
    ("epoch-fencing", &["on", "off"]),
    ("divergence", &["none", "followers", "all"]),
    ("state-fencing", &["on", "off"]),
    ("leader-truncation", &["keeps-follower", "forgets-follower"]),
    ("unanswered-at-start", &["kept", "refused"]),
    ("gate", &["stopped", "stopping"]),
    ("own-epoch", &["while-writable", "always"]),
    ("fault", SCRIPT_FAULTS),
];

/// The faults of the kill list that decide which operations a trace has; those in the rules of the log itself it does not have.
const SCRIPT_FAULTS: &[&str] = &[
    "high-watermark-alone",
    "in-sync-too-early",
    "acknowledged-too-early",
    "election-keeps-epoch",
    "epoch-raised-alone",
    "stop-forgotten",
    "stop-taken-for-done",
    "aborts-only-one",
    "records-nothing",
    "mirror-reads-to-end",
    "deposed-is-believed",
    "own-epoch-unknown",
    "cuts-to-leaders-end",
];

/// What stock Kafka does with producer state that was empty before a truncation; a log axis that older traces lack.
const RELOAD_WHEN_EMPTY: &str = "reload-when-empty";

/// The order of stop steps: a list of the step names that the model has, told for information.
const STOP_ORDER: &str = "stop-order";

/// The axes of one trace.
pub(super) struct Axes<'a>(&'a BTreeMap<String, String>);

impl<'a> Axes<'a> {
    /// Takes the axes of a trace; an axis that no design has is an error.
    pub(super) fn new(axes: &'a BTreeMap<String, String>) -> Result<Self, TargetError> {
        let known: BTreeSet<&'static str> =
            LOG_AXES.into_iter().chain(SCRIPT_AXES.iter().map(|(key, _)| *key)).chain([STOP_ORDER, RELOAD_WHEN_EMPTY]).collect();
        if let Some(unknown) = axes.keys().find(|key| !known.contains(key.as_str())) {
            return Err(TargetError::UnknownAxis { axis: unknown.clone(), choices: known.into_iter().collect() });
        }
        let axes = Self(axes);
        for (key, choices) in SCRIPT_AXES {
            if axes.0.contains_key(key) {
                let named: Vec<(&'static str, ())> = choices.iter().map(|c| (*c, ())).collect();
                axes.choice(key, &named)?;
            }
        }
        Ok(axes)
    }

    /// The log's part of the design.
    pub(super) fn log_config(&self) -> Result<LogConfig, TargetError> {
        // Whether a barrier is written is the trace's business: a log does what its rules say when one comes.
        self.choice("barrier", &[("none", ()), ("on-stop", ())])?;
        let barrier = BarrierPolicy {
            clears: self.choice(
                "clears",
                &[("negative", Clears::NegativeIds), ("all", Clears::AllIds), ("all-and-derived", Clears::AllIdsAndDerived)],
            )?,
            propagated: self.choice(
                "propagated",
                &[
                    ("inert", Propagated::Inert),
                    ("append", Propagated::ExpiresOnAppend),
                    ("append-and-replay", Propagated::ExpiresOnAppendAndReplay),
                ],
            )?,
            timing: self.choice("timing", &[("analysis", Timing::AtAnalysis), ("position", Timing::AtPosition)])?,
            applied_on: self.applied_on()?,
            empty_state: if self.0.contains_key(RELOAD_WHEN_EMPTY) {
                self.choice(RELOAD_WHEN_EMPTY, &[("skipped", EmptyState::Kept), ("done", EmptyState::Rebuilt)])?
            } else {
                EmptyState::Kept
            },
            ..BarrierPolicy::default()
        };
        let ids = self.choice("psm-ids", &[("mapped", ProducerIdVisibility::Mapped), ("stock", ProducerIdVisibility::Stock)])?;
        Ok(LogConfig { barrier, ids, ..LogConfig::default() })
    }

    /// Whether clients may write from the beginning of a stop on.
    pub(super) fn open_while_stopping(&self) -> Result<bool, TargetError> {
        if !self.0.contains_key("gate") {
            return Ok(false);
        }
        self.choice("gate", &[("stopped", false), ("stopping", true)])
    }

    /// The mirror's part of the design, as far as a log sees it.
    pub(super) fn mirror_design(&self) -> Result<MirrorDesign, TargetError> {
        let pid_mapping = self.choice(
            "pid-mapping",
            &[("none", PidMapping::None), ("negate", PidMapping::NegateEveryHop), ("negate-once", PidMapping::NegateNonNegative)],
        )?;
        Ok(MirrorDesign { pid_mapping, ..MirrorDesign::default() })
    }

    fn applied_on(&self) -> Result<AppliedOn, TargetError> {
        let nowhere = AppliedOn { leader_append: false, replication_append: false, reload: false, segment_recovery: false };
        let places = self.list(
            "applied-by",
            &[
                ("none", nowhere),
                ("leader", AppliedOn { leader_append: true, ..nowhere }),
                ("follower", AppliedOn { replication_append: true, ..nowhere }),
                ("reload", AppliedOn { reload: true, ..nowhere }),
                ("segment-recovery", AppliedOn { segment_recovery: true, ..nowhere }),
            ],
        )?;
        Ok(places.into_iter().fold(nowhere, |all, place| AppliedOn {
            leader_append: all.leader_append || place.leader_append,
            replication_append: all.replication_append || place.replication_append,
            reload: all.reload || place.reload,
            segment_recovery: all.segment_recovery || place.segment_recovery,
        }))
    }

    /// The choice made on one axis.
    fn choice<T: Copy>(&self, axis: &'static str, choices: &[(&'static str, T)]) -> Result<T, TargetError> {
        let found = self.text(axis, || names(choices))?;
        named(axis, found, choices)
    }

    /// The choices made on an axis that takes `all` or a list, whose names are joined with commas or slashes.
    fn list<T: Copy>(&self, axis: &'static str, choices: &[(&'static str, T)]) -> Result<Vec<T>, TargetError> {
        let with_all = || std::iter::once("all").chain(names(choices)).collect();
        let found = self.text(axis, with_all)?;
        match found {
            "all" => Ok(choices.iter().map(|(_, choice)| *choice).collect()),
            "" => Ok(Vec::new()),
            list => list.split([',', '/']).map(|part| named(axis, part, choices).map_err(|e| widen(e, with_all()))).collect(),
        }
    }

    fn text(&self, axis: &'static str, choices: impl Fn() -> Vec<&'static str>) -> Result<&'a str, TargetError> {
        self.0.get(axis).map(String::as_str).ok_or_else(|| TargetError::MissingAxis { axis, choices: choices() })
    }
}

fn names<T>(choices: &[(&'static str, T)]) -> Vec<&'static str> {
    choices.iter().map(|(name, _)| *name).collect()
}

fn named<T: Copy>(axis: &str, found: &str, choices: &[(&'static str, T)]) -> Result<T, TargetError> {
    let choice = choices.iter().find(|(name, _)| *name == found).map(|(_, choice)| *choice);
    choice.ok_or_else(|| TargetError::Axis { axis: axis.to_owned(), found: found.to_owned(), choices: names(choices) })
}

/// The same error for an axis that takes more than single names.
fn widen(error: TargetError, choices: Vec<&'static str>) -> TargetError {
    match error {
        TargetError::Axis { axis, found, .. } => TargetError::Axis { axis, found, choices },
        other => other,
    }
}
