//! Ground truth: which real producer wrote what.
//!
//! Replicas must not see it. A [`Ghost`] travels with a batch through logs, messages and producer state, but only this module and its
//! children can look inside, so no rule of the protocol can depend on it; they judge, they do not act.

mod anomaly;
mod facts;
mod guarantee;
mod judge;

pub use anomaly::{Anomalies, Anomaly};
pub use facts::{Author, Contributors, Stint, Writer};
pub use guarantee::{Known, Order, Part, broken_part, epochs_tell};
pub use judge::{
    barrier_before_local, commits_commit, foreign_marker, holds_acknowledged, is_same_batch, is_same_data, log_pid_single_producer,
    logs_match, no_barrier_after_local, no_batch_twice, psm_entry_single_producer, reads_committed, same_content,
    writable_psm_empty, writer_and_serial,
};

/// A value that travels with protocol data and that only the judging code of this module can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ghost<T>(T);

impl<T> Ghost<T> {
    /// Seals a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Opens the seal for people: names in stories, traces and drawings. Rules of the protocol must not call this; a test greps for it.
    pub const fn for_display(&self) -> &T {
        &self.0
    }
}
