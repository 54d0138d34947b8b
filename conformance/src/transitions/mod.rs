//! Log-level transitions: what the model does to a single log, taken from all its behaviours and held against another implementation.
//!
//! Every transition of the model is a few operations on logs. What an operation does depends on that log alone, on its *picture*: so the
//! millions of transitions of all designs on all topologies come down to thousands of distinct log-level ones, which together are a graph
//! over pictures. That graph is walked on the other implementation until every transition has been taken there, with the same result
//! and the same picture after each.
//!
//! * [`picture`]: everything that can be seen of a log and decides what it does next.
//! * [`op`]: the operations.
//! * [`graph`]: pictures and transitions, each once.
//! * [`collect`]: explores the designs, under stock rules, in lockstep with the log of this project, and collects the graph.
//! * [`walk`]: walks that take every transition of a graph.
//! * [`take`]: takes the walks on whoever speaks the adapter protocol, and compares.
//!
//! A crash or a stop is no transition of its own: a log that is down shows nothing and does nothing, so it is one transition with the start
//! that follows. The states of a mirror, its elections and what its read-only gate refuses are no business of a log.

pub mod collect;
pub mod graph;
pub mod op;
pub mod picture;
pub mod take;
pub mod walk;
