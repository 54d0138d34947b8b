//! Lockstep: every transition that the model can take is taken on the concrete log too, and after each the two must show the same.
//!
//! Not a sample: the exploration carries a concrete log along with each state of the model, so every reachable edge is executed once.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use cleanslate_model::ids::Offset;
use cleanslate_model::scenario::{Scenario, State};
use stateright::Model as _;

use crate::from_model::{header, step_of};
use crate::replay::{first_difference, state_difference};
use crate::target::in_process::{Files, InProcess};
use crate::target::{Observed, Target as _, TargetError};
use crate::trace::format::{Expect, Op, Step};

/// What lockstep has covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// States of the model, each with its concrete log.
    pub states: u64,
    /// Transitions that the model can take.
    pub edges_reachable: u64,
    /// Transitions that were taken on the log with the same result and state.
    pub edges_covered: u64,
}

/// The first transition at which model and log part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after {depth} steps: {say} {what}: the model says {expected}, the log {actual}")]
pub struct Parting {
    /// The number of steps before it.
    pub depth: u32,
    /// The step in prose.
    pub say: String,
    /// The operation or the field.
    pub what: String,
    /// What the model expects.
    pub expected: String,
    /// What the log showed.
    pub actual: String,
}

/// Sees each operation that lockstep carries out on the logs.
pub trait Watch {
    /// The operation is about to be carried out; so many steps lead here.
    ///
    /// # Errors
    /// When the logs are not what they should be. This ends lockstep.
    fn before(&mut self, logs: &InProcess, op: &Op, depth: u32) -> Result<(), TargetError>;

    /// It has been carried out. That model and log agree is known only after the last operation of a step.
    ///
    /// # Errors
    /// As [`Self::before`].
    fn after(&mut self, logs: &InProcess, op: &Op, observed: &Observed) -> Result<(), TargetError>;
}

/// Nobody watches.
impl Watch for () {
    fn before(&mut self, _: &InProcess, _: &Op, _: u32) -> Result<(), TargetError> {
        Ok(())
    }

    fn after(&mut self, _: &InProcess, _: &Op, _: &Observed) -> Result<(), TargetError> {
        Ok(())
    }
}

/// Takes every transition of the scenario on the log.
///
/// # Errors
/// The first [`Parting`], with the fewest steps.
pub fn lockstep(scenario: &Scenario, design: &str) -> Result<Coverage, Box<Parting>> {
    watched(scenario, design, &mut ())
}

/// Takes every transition of the scenario on the log, in front of someone.
///
/// # Errors
/// As [`lockstep`], and what `watch` refuses.
pub fn watched(scenario: &Scenario, design: &str, watch: &mut impl Watch) -> Result<Coverage, Box<Parting>> {
    let mut coverage = Coverage::default();
    let mut seen = HashSet::new();
    let mut open: VecDeque<(State, InProcess, u32)> = VecDeque::new();
    for state in scenario.init_states() {
        let mut target = InProcess::default();
        target.reset(&header(scenario, design, None)).map_err(|e| parting(0, "The start", "reset", "done", &e.to_string()))?;
        seen.insert(fingerprint(&state));
        open.push_back((state, target, 0));
    }
    while let Some((state, target, depth)) = open.pop_front() {
        coverage.states += 1;
        let mut actions = Vec::new();
        scenario.actions(&state, &mut actions);
        for action in actions {
            let Some(step) = step_of(scenario, depth + 1, &state, &action) else { continue };
            let Some(next) = scenario.next_state(&state, action) else { continue };
            coverage.edges_reachable += 1;
            let mut target = target.clone();
            take(&mut target, &step, depth, watch)?;
            compare_files(scenario, &next, &target, &step, depth)?;
            coverage.edges_covered += 1;
            if seen.insert(fingerprint(&next)) {
                open.push_back((next, target, depth + 1));
            }
        }
    }
    Ok(coverage)
}

fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

fn parting(depth: u32, say: &str, what: &str, expected: &str, actual: &str) -> Box<Parting> {
    Box::new(Parting {
        depth,
        say: say.to_owned(),
        what: what.to_owned(),
        expected: expected.to_owned(),
        actual: actual.to_owned(),
    })
}

fn take(target: &mut InProcess, step: &Step, depth: u32, watch: &mut impl Watch) -> Result<(), Box<Parting>> {
    let failed = |what: &str, e: &TargetError| parting(depth, &step.say, what, "a result", &e.to_string());
    for op in &step.ops {
        let expected: Option<&Expect> = match op {
            Op::Append { expect, .. } | Op::Mirror { expect, .. } => Some(expect),
            _ => None,
        };
        watch.before(target, op, depth).map_err(|e| failed(op.kind(), &e))?;
        let observed = target.execute(op).map_err(|e| failed(op.kind(), &e))?;
        watch.after(target, op, &observed).map_err(|e| failed(op.kind(), &e))?;
        let actual = observed.to_expect();
        if expected != actual.as_ref() {
            return Err(parting(depth, &step.say, op.kind(), &format!("{expected:?}"), &format!("{observed:?}")));
        }
    }
    for (replica, expected) in &step.state {
        let observed = target.observe(replica).map_err(|e| failed(replica, &e))?;
        // A log does not know its real producers: they are put in from the model, so that all else is compared.
        let authors = expected.log.iter().map(|e| (e.offset, e.by.clone())).collect();
        if let Some(d) = state_difference(expected, &observed.labelled(&authors)) {
            return Err(parting(depth, &step.say, &format!("{replica}.{}", d.field), &d.expected, &d.actual));
        }
    }
    Ok(())
}

/// Segments and producer snapshots, which decide how a later start builds its state.
fn compare_files(scenario: &Scenario, next: &State, target: &InProcess, step: &Step, depth: u32) -> Result<(), Box<Parting>> {
    for (broker, replica) in scenario.replicas(next) {
        let name = broker.to_string();
        if !step.state.contains_key(&name) {
            continue;
        }
        let number = |offset: Offset| i64::from(offset.0);
        let expected = Files {
            segments: std::iter::once(0).chain(replica.durable.segments.iter().copied().map(number)).collect(),
            snapshots: replica.durable.snapshots.iter().map(|s| number(s.offset)).collect(),
        };
        let actual = target.files(&name).map_err(|e| parting(depth, &step.say, &name, "its files", &e.to_string()))?;
        if let Some(d) = first_difference(&expected, &actual) {
            return Err(parting(
                depth,
                &step.say,
                &format!("{name}.{}", d.field),
                &format!("{expected:?}"),
                &format!("{actual:?}"),
            ));
        }
    }
    Ok(())
}
