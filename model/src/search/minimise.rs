//! Leaving out of a path what its end does not need.
//!
//! A breadth-first search finds shortest paths, of which nothing can be left out; a test checks that. Other searches find longer ones.

use stateright::Model;

use super::{Discovery, actions_of};

/// The discovery without the steps that a violation does not need: no single step of it can be left out, no two, and no stretch of
/// neighbours as long as a power of two. It ends in the first state for which `violates` is true. None if the path cannot be walked or
/// no state on it violates. What may be done for ever from its end is kept.
#[must_use]
pub fn minimise<M>(model: &M, discovery: &Discovery, violates: impl Fn(&M::State) -> bool) -> Option<Discovery>
where
    M: Model,
    M::Action: Clone + PartialEq,
{
    let walk = |actions: &[&M::Action]| walk(model, actions, &violates);
    let mut path = actions_of(model, &Discovery { cycle: Vec::new(), ..discovery.clone() })?;
    path.truncate(walk(&path.iter().collect::<Vec<_>>())?.len());
    while let Some(shorter) = shorter(&path, &walk) {
        path = shorter;
    }
    let actions = walk(&path.iter().collect::<Vec<_>>())?;
    Some(Discovery { property: discovery.property, actions, cycle: discovery.cycle.clone() })
}

/// The indices of the actions up to the first violation; none if one of them cannot be taken, or nothing is violated.
fn walk<M>(model: &M, path: &[&M::Action], violates: &impl Fn(&M::State) -> bool) -> Option<Vec<u16>>
where
    M: Model,
    M::Action: Clone + PartialEq,
{
    let mut state = model.init_states().into_iter().next()?;
    let mut indices = Vec::with_capacity(path.len());
    for action in path {
        if violates(&state) {
            break;
        }
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        indices.push(u16::try_from(actions.iter().position(|a| a == *action)?).ok()?);
        state = model.next_state(&state, (*action).clone())?;
    }
    violates(&state).then_some(indices)
}

/// The path with something left out, if it still violates.
fn shorter<A: Clone>(path: &[A], walk: &impl Fn(&[&A]) -> Option<Vec<u16>>) -> Option<Vec<A>> {
    let without = |left_out: &dyn Fn(usize) -> bool| {
        let rest: Vec<&A> = path.iter().enumerate().filter(|(i, _)| !left_out(*i)).map(|(_, action)| action).collect();
        // The walk may end before the rest does.
        walk(&rest).map(|indices| rest.into_iter().take(indices.len()).cloned().collect())
    };
    let lengths = std::iter::successors(Some(path.len().next_power_of_two()), |length| Some(length / 2).filter(|l| *l > 0));
    let mut stretches = lengths.flat_map(|length| (0..path.len()).map(move |start| start..start.saturating_add(length)));
    let mut pairs = (0..path.len()).flat_map(|first| (first + 1..path.len()).map(move |second| (first, second)));
    stretches
        .find_map(|stretch| without(&|i| stretch.contains(&i)))
        .or_else(|| pairs.find_map(|(first, second)| without(&|i| i == first || i == second)))
}
