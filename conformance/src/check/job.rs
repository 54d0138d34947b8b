//! One job: a design on a topology, explored, and judged promise by promise.

use std::path::Path;
use std::time::{Duration, Instant};

use cleanslate_model::property::{Group, PropertySpec};
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{self, Discovery, Ending, Progress, Report, minimise, search_with};
use stateright::{Checker as _, Expectation, Model as _};

use super::counterexample::{self, Counterexample, CounterexampleError};
use super::memory::resident_bytes;
use super::plan::Job;
use crate::cli::Engine;

/// Limits of one job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caps {
    /// The number of states.
    pub states: Option<u64>,
    /// The memory of the whole process in bytes.
    pub memory: Option<u64>,
    /// The number of steps.
    pub depth: Option<u32>,
    /// The time.
    pub time: Option<Duration>,
}

/// Limits of one job, and what it may use.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// The limits.
    pub caps: Caps,
    /// How many threads the search has; it finds the same with any number.
    pub threads: usize,
}

/// What is said about a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No property of the group is violated in the whole bounded space, and the witnesses were reached.
    Holds,
    /// A property is violated, and the counterexample was run again from its file.
    Violated,
    /// Neither: a cap was hit, or a witness was not reached.
    Inconclusive,
}

impl Verdict {
    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Violated => "violated",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// The verdict of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Holds, Self::Violated, Self::Inconclusive].into_iter().find(|v| v.name() == name)
    }
}

/// The verdict on one group of properties.
#[derive(Clone, Debug)]
pub struct GroupVerdict {
    /// The promise.
    pub group: Group,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is inconclusive.
    pub why: Option<String>,
    /// The counterexamples, one for each violated property, shortest first.
    pub counterexamples: Vec<(&'static PropertySpec, Counterexample)>,
}

impl GroupVerdict {
    /// The counterexample with the fewest steps.
    #[must_use]
    pub fn shortest(&self) -> Option<&(&'static PropertySpec, Counterexample)> {
        self.counterexamples.first()
    }
}

/// What a job found.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// The verdicts, a group each.
    pub groups: Vec<GroupVerdict>,
    /// Different states.
    pub states: u64,
    /// Transitions.
    pub transitions: u64,
    /// Whether the whole space was explored.
    pub complete: bool,
    /// The largest number of steps.
    pub depth: u32,
    /// What this project's own search tells besides; stateright's does not.
    pub measures: Option<Measures>,
    /// The time that the search took.
    pub seconds: f64,
}

/// Where a space comes from and what it costs.
///
/// A search that tells it goes breadth first in a fixed order, so that its counterexamples are the shortest.
#[derive(Clone, Debug)]
pub struct Measures {
    /// New states for each number of steps.
    pub growth: Vec<u64>,
    /// Transitions by the kind of their action, the most frequent first.
    pub actions: Vec<(&'static str, u64)>,
    /// What a state costs in the search's own tables, in bytes.
    pub bytes_per_state: u64,
    /// The largest number of states that waited to be expanded.
    pub frontier_peak: u64,
}

impl JobReport {
    /// States found in a second.
    #[must_use]
    pub fn states_per_second(&self) -> u64 {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate for people, positive and far below the limits"
        )]
        let rate = (self.states as f64 / self.seconds.max(1e-9)).round() as u64;
        rate
    }
}

/// Runs one job.
///
/// # Errors
/// [`CounterexampleError`] if model, log and trace file do not agree.
pub fn run_job(job: &Job, engine: Engine, means: &Means, dir: &Path) -> Result<JobReport, CounterexampleError> {
    let started = Instant::now();
    let scenario = job.scenario();
    let report = match engine {
        Engine::Bfs => explore(&scenario, means, started),
        Engine::Stateright => explore_with_stateright(job),
    };
    let seconds = started.elapsed().as_secs_f64();
    let mut groups = Vec::new();
    for group in Group::ALL {
        let specs: Vec<_> = job.properties.iter().copied().filter(|p| p.group == group).collect();
        if !specs.is_empty() {
            groups.push(judge(&scenario, job, group, &specs, &report, dir)?);
        }
    }
    let complete = report.ending == Ending::Complete;
    Ok(JobReport {
        groups,
        states: report.states,
        transitions: report.transitions,
        complete,
        depth: report.depth(),
        measures: (engine == Engine::Bfs).then(|| Measures {
            bytes_per_state: report.bytes_per_state(),
            growth: report.growth,
            actions: report.kinds,
            frontier_peak: report.frontier_peak,
        }),
        seconds,
    })
}

fn explore(scenario: &Scenario, Means { caps, threads }: &Means, started: Instant) -> Report {
    let interrupt = |_: &Progress| {
        if let Some(limit) = caps.time.filter(|limit| started.elapsed() >= *limit) {
            return Some(format!("time cap of {} s hit", limit.as_secs()));
        }
        let limit = caps.memory?;
        resident_bytes().filter(|held| *held >= limit).map(|held| format!("memory cap of {limit} bytes hit ({held} held)"))
    };
    // Whether something can go on for ever without its goal is a question about the whole graph.
    let goals = scenario.properties.iter().any(|p| p.goal.is_some());
    let options = search::Options { caps: search::Caps { states: caps.states, depth: caps.depth }, threads: *threads, goals };
    search_with(scenario, options, interrupt)
}

/// The same space through stateright's own breadth-first checker, as a second opinion.
fn explore_with_stateright(job: &Job) -> Report {
    let mut scenario = job.scenario();
    // stateright stops once every property has a discovery; one that has none keeps it going to the end.
    scenario.keep_going = true;
    let checker = scenario.checker().spawn_bfs().join();
    let found = checker.discoveries();
    let model = checker.model();
    let discoveries = model.properties().into_iter().filter_map(|p| {
        let path = found.get(p.name)?.clone();
        let states = path.clone().into_states();
        let actions = states.iter().zip(path.into_actions()).map(|(state, action)| {
            let mut choices = Vec::new();
            model.actions(state, &mut choices);
            choices.iter().position(|c| *c == action).and_then(|i| u16::try_from(i).ok())
        });
        let discovery = Discovery { property: p.name, actions: actions.collect::<Option<_>>()?, cycle: Vec::new() };
        // What it found last, not first.
        if p.expectation == Expectation::Always {
            minimise(model, &discovery, |state| !(p.condition)(model, state))
        } else {
            Some(discovery)
        }
    });
    let discoveries = discoveries.collect();
    let mut growth = vec![0; checker.max_depth().max(1)];
    if let Some(last) = growth.last_mut() {
        *last = checker.unique_state_count() as u64;
    }
    Report {
        states: checker.unique_state_count() as u64,
        transitions: (checker.state_count() as u64).saturating_sub(1),
        // stateright tells neither kinds of actions nor what it holds.
        kinds: Vec::new(),
        growth,
        frontier_peak: 0,
        table_bytes: 0,
        circles: None,
        ending: Ending::Complete,
        discoveries,
    }
}

fn judge(
    scenario: &Scenario,
    job: &Job,
    group: Group,
    specs: &[&'static PropertySpec],
    report: &Report,
    dir: &Path,
) -> Result<GroupVerdict, CounterexampleError> {
    let mut counterexamples = Vec::new();
    for spec in specs {
        if let Some(discovery) = report.discovery(spec.id) {
            counterexamples.push((*spec, counterexample::write(scenario, &job.design, spec, discovery, dir)?));
        }
    }
    counterexamples.sort_by_key(|(_, c)| c.length);
    let unreached: Vec<_> = scenario.witnesses().filter(|w| report.discovery(w.id).is_none()).map(|w| w.id).collect();
    let (verdict, why) = match &report.ending {
        _ if !counterexamples.is_empty() => (Verdict::Violated, None),
        Ending::Cut(why) => (Verdict::Inconclusive, Some(why.clone())),
        Ending::Complete if !unreached.is_empty() => (
            Verdict::Inconclusive,
            Some(format!("the bounds are too small to mean anything: never reached {}", unreached.join(", "))),
        ),
        Ending::Complete => (Verdict::Holds, None),
    };
    Ok(GroupVerdict { group, verdict, why, counterexamples })
}
