//! Takes the walks on whoever speaks the adapter protocol, and compares.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use cleanslate_log::record::RecordBatch;
use cleanslate_log::types::Offset;

use super::graph::{Graph, Transition};
use super::op::LogOp;
use super::picture::Picture;
use super::walk::Walks;
use crate::adapter::reply::Reply;
use crate::adapter::{Operation, Requests};
use crate::sequence::known::Part;
use crate::target::{Observed, TargetError, one_log};

/// The log that is walked on.
const LOG: &str = "A";
/// How many transitions are on their way at once: most of the time of each would be spent with waiting for the other side.
const AT_ONCE: usize = 64;

/// What came of it.
#[derive(Debug, Default)]
pub struct Taken {
    /// Distinct transitions that were taken, with the result and the picture that they must have.
    pub transitions: usize,
    /// How often the walk began with an empty log.
    pub walks: usize,
    /// Where the other implementation does otherwise, if it does.
    pub parting: Option<Parting>,
}

/// A transition that the other implementation takes otherwise.
#[derive(Debug)]
pub struct Parting {
    /// The transitions before it, each on its line.
    pub path: Vec<String>,
    /// The transition.
    pub op: String,
    /// The number of the scenario of the model that takes it, and the steps before it there.
    pub met: super::graph::Met,
    /// What differs: the part, what is expected, what is there.
    pub parts: Vec<Part>,
    /// The requests of the path and the transition, as a sequence has them.
    pub requests: Vec<Operation>,
}

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.path {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "> {}", self.op)?;
        for (part, expected, actual) in &self.parts {
            writeln!(f, "  {part}\n    expected  {expected}\n    actual    {actual}")?;
        }
        Ok(())
    }
}

/// Takes every transition of the graph on `other`.
///
/// # Errors
/// When the other side fails or a transition cannot be put into requests. That it does otherwise is no error, but a [`Parting`].
pub fn take(graph: &Graph, other: &mut impl Requests) -> Result<Taken, TargetError> {
    let edges: Vec<(usize, usize)> = graph.transitions.iter().map(|t| (t.from, t.to)).collect();
    let mut walks = Walks::new(&edges);
    let (mut taken, mut seen) = (Taken::default(), HashSet::new());
    while let Some(walk) = walks.next() {
        taken.walks += 1;
        let parted = on(graph, &walk, other)?;
        let agreed = parted.as_ref().map_or(walk.len(), |(at, _)| *at);
        seen.extend(walk.iter().take(agreed).copied());
        if let Some((at, parts)) = parted {
            let walked = walk.get(..=at).unwrap_or(&walk);
            taken.parting = shortest(graph, &walks, walked, parts, other)?;
            break;
        }
    }
    taken.transitions = seen.len();
    Ok(taken)
}

fn failed(error: impl fmt::Display) -> TargetError {
    TargetError::Failed(error.to_string())
}

fn ends<'a>(graph: &'a Graph, transition: &Transition) -> Option<(&'a Arc<Picture>, &'a Arc<Picture>)> {
    Some((graph.pictures.get(transition.from)?, graph.pictures.get(transition.to)?))
}

/// One walk from the empty log; where it parts, and how.
fn on(graph: &Graph, walk: &[usize], other: &mut impl Requests) -> Result<Option<(usize, Vec<Part>)>, TargetError> {
    other.send(&Operation::Reset {}, false).map_err(failed)?;
    other.send(&one_log::create(LOG), true).map_err(failed)?;
    let (_, created) = (other.receive().map_err(failed)?, other.receive().map_err(failed)?);
    let differing = match (created, graph.pictures.first()) {
        (Some(Reply { outcome: Ok(_), state: Some(state) }), Some(empty)) => empty.differences(&state, None)?,
        (created, _) => return Err(failed(format!("a log was created, and the reply is {created:?}"))),
    };
    if !differing.is_empty() {
        return Err(failed(format!("a log was created, and differs from an empty one: {differing:?}")));
    }
    let steps: Vec<(&Transition, &Arc<Picture>, &Arc<Picture>)> = walk
        .iter()
        .filter_map(|edge| {
            let transition = graph.transitions.get(*edge)?;
            ends(graph, transition).map(|(before, after)| (transition, before, after))
        })
        .collect();
    let mut parted = None;
    for (share, some) in steps.chunks(AT_ONCE).enumerate() {
        let mut sent = Vec::with_capacity(some.len());
        for (index, (transition, before, after)) in some.iter().enumerate() {
            // Payloads differ along a walk.
            let serial = (share * AT_ONCE + index) as u64 + 1;
            let requests = transition.op.requests(LOG, before, serial)?;
            sent.push(one_log::send(other, LOG, before.state.log_start_offset, &requests)?);
            // A read ends with its segment.
            for base in later_segments(transition, after) {
                other.send(&one_log::read(LOG, base), false).map_err(failed)?;
            }
        }
        for (index, (sent, (transition, _, after))) in sent.into_iter().zip(some).enumerate() {
            // After the first difference the rest is received and means nothing.
            let seen = one_log::receive(other, sent);
            let mut reads = Vec::new();
            for base in later_segments(transition, after) {
                reads.extend(other.receive().map_err(failed)?.map(|read| (base, read)));
            }
            if parted.is_none() {
                let parts = differences(transition, after, seen?, reads)?;
                if !parts.is_empty() {
                    parted = Some((share * AT_ONCE + index, parts));
                }
            }
        }
        if parted.is_some() {
            break;
        }
    }
    Ok(parted)
}

/// The base offsets of the segments behind the first, if the log is read at all.
fn later_segments(transition: &Transition, after: &Picture) -> Vec<i64> {
    let bases = after.state.segments.iter().flatten().map(|segment| segment.base_offset).skip(1);
    if matches!(transition.op, LogOp::HighWatermark(_)) { Vec::new() } else { bases.collect() }
}

fn differences(
    transition: &Transition,
    after: &Picture,
    seen: one_log::Seen,
    reads: Vec<(i64, Reply)>,
) -> Result<Vec<Part>, TargetError> {
    let Reply { outcome, state } = seen.reply;
    let result = if transition.op.is_append() { one_log::appended(outcome)? } else { one_log::done(outcome) };
    let mut parts = Vec::new();
    if result != transition.result {
        let show = |observed: &Observed| format!("{observed:?}");
        parts.push(("result".to_owned(), show(&transition.result), show(&result)));
    }
    let Some(state) = state else {
        parts.push(("state".to_owned(), "an open log".to_owned(), "none".to_owned()));
        return Ok(parts);
    };
    let mut batches = seen.read.map(|read| one_log::batches_of(read, after.state.log_start_offset)).transpose()?;
    for (base, read) in reads {
        let all = batches.get_or_insert_default();
        let next = all.last().map_or(Offset(0), RecordBatch::next_offset);
        all.extend(one_log::batches_of(read, base)?.into_iter().filter(|batch| batch.base_offset() >= next));
    }
    parts.extend(after.differences(&state, batches.as_deref())?);
    Ok(parts)
}

/// The shortest path to the last edge of a walk if it shows a difference there too, which it is run for; else the walk.
fn shortest(
    graph: &Graph,
    walks: &Walks,
    walked: &[usize],
    parts: Vec<Part>,
    other: &mut impl Requests,
) -> Result<Option<Parting>, TargetError> {
    let Some((edge, transition)) = walked.last().and_then(|edge| Some((*edge, graph.transitions.get(*edge)?))) else {
        return Ok(None);
    };
    let mut path = walks.path_to(transition.from);
    path.push(edge);
    match on(graph, &path, other)? {
        Some((at, parts)) if at + 1 == path.len() => parting(graph, &path, transition, parts).map(Some),
        _ => parting(graph, walked, transition, parts).map(Some),
    }
}

fn parting(graph: &Graph, walked: &[usize], last: &Transition, parts: Vec<Part>) -> Result<Parting, TargetError> {
    let mut requests = vec![one_log::create(LOG)];
    let mut path = Vec::new();
    for (number, edge) in walked.iter().enumerate() {
        let Some(transition) = graph.transitions.get(*edge) else { continue };
        let Some((before, _)) = ends(graph, transition) else { continue };
        requests.extend(transition.op.requests(LOG, before, number as u64 + 1)?);
        path.push(transition.op.to_string());
    }
    path.pop();
    Ok(Parting { path, op: last.op.to_string(), met: last.met, parts, requests })
}
