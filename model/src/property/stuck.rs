//! Liveness, as far as a single state shows it: where nothing that must happen can happen any more, what was begun must have ended.
//!
//! Runs within bounds end, unless they go in circles; `crate::liveness` looks at the circles.

use crate::mirror::MirrorState;
use crate::scenario::{Scenario, State};

/// LIVE-1: no partition is left in the middle of a stop or an alignment.
#[must_use]
pub(super) fn stops_have_ended(scenario: &Scenario, state: &State) -> bool {
    let under_way = |m: MirrorState| matches!(m, MirrorState::Stopping | MirrorState::LogAlignment);
    !scenario.leaders(state).any(|(b, r)| scenario.is_judged(b) && under_way(r.mirror.state))
}

/// LIVE-2: where a partition is writable and its producers are quiet, everything is stable.
#[must_use]
pub(super) fn stable_when_quiet(scenario: &Scenario, state: &State) -> bool {
    scenario.leaders(state).filter(|(b, r)| scenario.is_judged(*b) && r.is_writable()).all(|(b, r)| {
        let own = scenario.producers.iter().filter(|p| p.cluster == b.cluster);
        let quiet = own.filter_map(|p| scenario.producer(state, p.writer)).all(|p| p.is_quiet());
        !quiet || r.last_stable_offset() == r.log_end()
    })
}

/// Whether a goal is missed for good: it does not hold, and no step that must come can come.
pub(super) fn never_stuck(scenario: &Scenario, state: &State, goal: fn(&Scenario, &State) -> bool) -> bool {
    goal(scenario, state) || scenario.has_fair_step(state)
}
