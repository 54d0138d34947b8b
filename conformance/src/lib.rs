//! Holds the model against the log, and both against other implementations.

pub mod adapter;
pub mod check;
pub mod cli;
pub mod conform;
pub mod from_model;
pub mod kill;
pub mod ledger;
pub mod lockstep;
pub mod parallel;
pub mod replay;
pub mod requirements;
pub mod sequence;
pub mod target;
pub mod trace;
pub mod transitions;
pub mod witness;

mod shape;
