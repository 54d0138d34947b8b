//! Runs a trace on a target, step by step, and compares what comes back with what the trace expects.

mod difference;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::ledger::Ledger;
use crate::target::{Observed, Target, TargetError};
use crate::trace::format::{Expect, Op, ReplicaState, Step, Trace};
use crate::witness::{Frame, Judgement, Witness};

pub use difference::{Difference, first_difference, state_difference};

/// How a replay went.
#[derive(Clone, Debug)]
pub struct ReplayReport {
    /// The target's name.
    pub target: String,
    /// How many steps agreed, from the first.
    pub steps_agreed: usize,
    /// How many operations were executed.
    pub operations: usize,
    /// Where target and trace part, or none.
    pub divergence: Option<Divergence>,
    /// Whether the corruption that the trace's property names is there in the concrete state after the last executed step; none
    /// for a trace without a property.
    pub judgement: Option<Judgement>,
    /// The concrete states of all replicas at the end, with the real producers filled in.
    pub states: BTreeMap<String, ReplicaState>,
}

impl ReplayReport {
    /// Every step agreed, and the corruption, if the trace names one that can be judged, was seen.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.divergence.is_none() && self.judgement != Some(Judgement::NotSeen)
    }
}

/// The first point at which a target does not do what a trace expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The step's number.
    pub step: u32,
    /// The step in prose.
    pub say: String,
    /// The operation, or none if the state after the step differs.
    pub operation: Option<String>,
    /// The field that differs, e.g. `state.B.producers[0].producer_epoch`.
    pub field: String,
    /// What the trace expects there.
    pub expected: String,
    /// What the target showed.
    pub actual: String,
    /// The target's name.
    pub target: String,
    /// The trace's file, if it has one.
    pub file: Option<PathBuf>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "step {}: {}", self.step, self.say)?;
        if let Some(operation) = &self.operation {
            writeln!(f, "  operation  {operation}")?;
        }
        writeln!(f, "  field      {}", self.field)?;
        writeln!(f, "  expected   {}", self.expected)?;
        write!(f, "  actual     {}", self.actual)?;
        if let Some(file) = &self.file {
            let option = match self.target.as_str() {
                "kafka" => "--target kafka ",
                "adapter" => "--adapter COMMAND ",
                _ => "",
            };
            write!(f, "\n  reproduce  cargo run --release -- trace replay {option}{}", shell_word(&file.display().to_string()))?;
        }
        Ok(())
    }
}

/// Quotes a file name for a POSIX shell where it needs it.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+=,:@".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The target could not carry out a step.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The target does not know the trace's scenario.
    #[error("target {target}: {source}")]
    Scenario {
        /// The target's name.
        target: String,
        /// What it said.
        source: Box<TargetError>,
    },
    /// The target could not carry out an operation or show its state.
    #[error("target {target}, step {step} ({what}): {source}")]
    Step {
        /// The target's name.
        target: String,
        /// The step's number.
        step: u32,
        /// The operation or observation.
        what: String,
        /// What the target said.
        source: Box<TargetError>,
    },
}

impl ReplayError {
    /// What the target said.
    #[must_use]
    pub fn cause(&self) -> &TargetError {
        match self {
            Self::Scenario { source, .. } | Self::Step { source, .. } => source,
        }
    }
}

/// Runs `trace` on `target`. `file` is where the trace was read from, for the command that reproduces a divergence.
pub fn replay(trace: &Trace, file: Option<&Path>, target: &mut dyn Target) -> Result<ReplayReport, ReplayError> {
    let mut run = Run::start(trace, target)?;
    let mut divergence = None;
    let mut steps_agreed = 0;
    for step in &trace.steps {
        divergence = run.step(step, &mut |_, _| ())?;
        if divergence.is_some() {
            break;
        }
        steps_agreed += 1;
    }
    let name = run.target.name().to_owned();
    Ok(ReplayReport {
        target: name.clone(),
        steps_agreed,
        operations: run.operations,
        divergence: divergence.map(|d| Divergence { target: name, file: file.map(Path::to_owned), ..d }),
        judgement: trace.property.as_deref().map(|p| run.witness.judge(p, &run.ledger)),
        states: run.states,
    })
}

/// The trace with every expected result and state as `target` shows them: how a trace that is written by hand gets its expectations.
pub fn record(trace: &Trace, target: &mut dyn Target) -> Result<Trace, ReplayError> {
    let mut recorded = trace.clone();
    let mut run = Run::start(trace, target)?;
    for step in &mut recorded.steps {
        let planned = step.clone();
        let mut outcomes = Vec::new();
        run.step(&planned, &mut |_, outcome: &Observed| outcomes.push(outcome.to_expect()))?;
        for (op, outcome) in step.ops.iter_mut().zip(outcomes) {
            if let (Op::Append { expect, .. } | Op::Mirror { expect, .. }, Some(outcome)) = (op, outcome) {
                *expect = outcome;
            }
        }
        step.state =
            planned.ops.iter().filter_map(|op| Some((op.replica().to_owned(), run.states.get(op.replica())?.clone()))).collect();
    }
    Ok(recorded)
}

/// A replay under way.
struct Run<'a> {
    target: &'a mut dyn Target,
    ledger: Ledger,
    witness: Witness,
    states: BTreeMap<String, ReplicaState>,
    operations: usize,
}

impl<'a> Run<'a> {
    fn start(trace: &Trace, target: &'a mut dyn Target) -> Result<Self, ReplayError> {
        let name = target.name().to_owned();
        target.reset(trace).map_err(|source| ReplayError::Scenario { target: name, source: Box::new(source) })?;
        let mut run =
            Self { target, ledger: Ledger::new(trace), witness: Witness::default(), states: BTreeMap::new(), operations: 0 };
        for replica in &trace.replicas {
            let state = run.observe(&replica.name, 0)?;
            run.states.insert(replica.name.clone(), run.ledger.label(&replica.name, state));
        }
        Ok(run)
    }

    fn observe(&mut self, replica: &str, step: u32) -> Result<crate::target::ObservedState, ReplayError> {
        let observed = self.target.observe(replica);
        observed.map_err(|source| self.failed(step, format!("observing {replica}"), source))
    }

    fn failed(&self, step: u32, what: String, source: TargetError) -> ReplayError {
        ReplayError::Step { target: self.target.name().to_owned(), step, what, source: Box::new(source) }
    }

    /// Executes a step and tells the first difference. All operations of the step are executed, so that `outcomes` sees them all.
    fn step(&mut self, step: &Step, outcomes: &mut dyn FnMut(&Op, &Observed)) -> Result<Option<Divergence>, ReplayError> {
        self.witness.begin_step();
        let mut first = None;
        for (i, op) in step.ops.iter().enumerate() {
            let outcome = self.operation(step.n, op)?;
            outcomes(op, &outcome);
            first = first.or_else(|| differs_from_expected(step, i, op, &outcome));
        }
        for (replica, expected) in &step.state {
            if !self.states.contains_key(replica) {
                let state = self.observe(replica, step.n)?;
                self.states.insert(replica.clone(), self.ledger.label(replica, state));
            }
            let actual = self.states.get(replica);
            let difference = actual.and_then(|actual| state_difference(expected, actual));
            first = first.or_else(|| difference.map(|d| divergence(step, None, d.under(&format!("state.{replica}")))));
        }
        Ok(first)
    }

    fn operation(&mut self, step: u32, op: &Op) -> Result<Observed, ReplayError> {
        let outcome = self.target.execute(op).map_err(|source| self.failed(step, describe(op), source))?;
        let after = self.observe(op.replica(), step)?;
        self.ledger.apply(op, &outcome, &after);
        let after = self.ledger.label(op.replica(), after);
        let before = self.states.insert(op.replica().to_owned(), after.clone()).unwrap_or_else(|| after.clone());
        self.witness.record(&self.ledger, Frame { op: op.clone(), outcome: outcome.clone(), before, after });
        self.operations += 1;
        Ok(outcome)
    }
}

fn differs_from_expected(step: &Step, i: usize, op: &Op, outcome: &Observed) -> Option<Divergence> {
    let expected = match op {
        Op::Append { expect, .. } | Op::Mirror { expect, .. } => Some(expect.clone()),
        _ => None,
    };
    let actual = outcome.to_expect();
    if expected == actual {
        return None;
    }
    let text = |result: Option<Expect>| result.map_or_else(|| "done".to_owned(), |r| difference::json(&r));
    let difference = Difference { field: format!("ops[{i}].expect"), expected: text(expected), actual: text(actual) };
    Some(divergence(step, Some(describe(op)), difference))
}

fn divergence(step: &Step, operation: Option<String>, difference: Difference) -> Divergence {
    let Difference { field, expected, actual } = difference;
    Divergence { step: step.n, say: step.say.clone(), operation, field, expected, actual, target: String::new(), file: None }
}

/// An operation on one line, without its expectation.
#[must_use]
pub fn describe(op: &Op) -> String {
    let kind = op.kind();
    match op {
        Op::Append { replica, batch, by, .. } => {
            format!("{kind} {} to {replica}", crate::trace::draw::batch_cell(batch, by.as_deref()))
        }
        Op::Mirror { replica, from, offset, batches, .. } => {
            let many = if *batches == 1 { "batch" } else { "batches" };
            format!("{kind} {batches} {many} from {from} at offset {offset} to {replica}")
        }
        Op::Truncate { replica, offset } | Op::HighWatermark { replica, offset } | Op::LastMirroredOffset { replica, offset } => {
            format!("{kind} {replica} to {offset}")
        }
        Op::MirrorState { replica, to, .. } | Op::LearnMirrorState { replica, to, .. } => {
            format!("{kind} {replica} to {}", to.name())
        }
        Op::Crash { replica } | Op::Lead { replica } | Op::Roll { replica } => format!("{kind} {replica}"),
        Op::Recover { replica, clean } => {
            format!("{kind} {replica} {}", if *clean { "after a clean stop" } else { "after a crash" })
        }
    }
}
