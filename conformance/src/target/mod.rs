//! Targets: implementations of a partition log that a trace can be run on.

mod axes;
pub(crate) mod codec;
pub(crate) mod gate;
pub mod in_process;
pub(crate) mod one_log;
pub mod over_adapter;
mod show;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::trace::format::{
    AbortedTransaction, Batch, Expect, LogEntry, MirrorState, Op, OpenTransaction, ProducerEntry, ReplicaState, Trace,
};

/// An implementation of the replica logs of a trace.
pub trait Target {
    /// The name by which the command line knows this target.
    fn name(&self) -> &str;

    /// Forgets everything and builds the empty replicas of `trace` under its design. The steps are not looked at.
    fn reset(&mut self, trace: &Trace) -> Result<(), TargetError>;

    /// Executes one operation and tells what came back. What Kafka would answer with an exception is an [`Observed::Error`];
    /// a [`TargetError`] means that the operation could not be carried out or judged at all.
    fn execute(&mut self, op: &Op) -> Result<Observed, TargetError>;

    /// What can be seen of a replica now.
    fn observe(&mut self, replica: &str) -> Result<ObservedState, TargetError>;
}

/// Why a target could not do what a trace asks for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// The implementation is a smaller one, which lacks what the step needs.
    #[error("needs {0}, which the adapter does not list")]
    Lacking(&'static str),
    /// The trace's scenario names a choice that the target does not know.
    #[error("axis `{axis}`: expected one of {}, found {found:?}", choices.join(", "))]
    Axis {
        /// The key in `scenario.axes`.
        axis: String,
        /// The value there.
        found: String,
        /// The values that the target knows.
        choices: Vec<&'static str>,
    },
    /// The trace's scenario names an axis that the target does not know.
    #[error("unknown axis {axis:?}: expected one of {}", choices.join(", "))]
    UnknownAxis {
        /// The key in `scenario.axes`.
        axis: String,
        /// The keys that the target knows.
        choices: Vec<&'static str>,
    },
    /// The trace's scenario says nothing about an axis.
    #[error("axis `{axis}` is missing: expected one of {}", choices.join(", "))]
    MissingAxis {
        /// The key that `scenario.axes` lacks.
        axis: &'static str,
        /// The values that the target knows.
        choices: Vec<&'static str>,
    },
    /// An operation names a replica that the trace does not declare.
    #[error("unknown replica {0:?}")]
    UnknownReplica(String),
    /// The operation makes no sense in the target's present state, e.g. an append on a crashed replica.
    #[error("{0}")]
    Impossible(String),
    /// The target itself failed.
    #[error("the target failed: {0}")]
    Failed(String),
}

/// What came back from an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// The operation took place; it has no result to tell.
    Done,
    /// As [`Expect::Appended`].
    Appended {
        /// The first offset.
        base_offset: i64,
        /// The last offset.
        last_offset: i64,
    },
    /// As [`Expect::Duplicate`].
    Duplicate {
        /// The first offset of the batch that it was taken for.
        base_offset: i64,
        /// The last offset of that batch.
        last_offset: i64,
    },
    /// As [`Expect::Error`].
    Error(String),
}

impl Observed {
    /// The same in the words of a trace; none for an operation without a result.
    #[must_use]
    pub fn to_expect(&self) -> Option<Expect> {
        match self {
            Self::Done => None,
            Self::Appended { base_offset, last_offset } => {
                Some(Expect::Appended { base_offset: *base_offset, last_offset: *last_offset })
            }
            Self::Duplicate { base_offset, last_offset } => {
                Some(Expect::Duplicate { base_offset: *base_offset, last_offset: *last_offset })
            }
            Self::Error(class) => Some(Expect::Error(class.clone())),
        }
    }
}

/// A batch in the log of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedBatch {
    /// The batch's first offset.
    pub offset: i64,
    /// The batch as stored.
    pub batch: Batch,
}

/// What can be seen of one replica of a target: a [`ReplicaState`] without the real producers, which no log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedState {
    /// False between a crash and the recovery.
    pub up: bool,
    /// The durable mirror state.
    pub mirror_state: MirrorState,
    /// The first offset of the log.
    pub log_start_offset: i64,
    /// The offset of the next batch.
    pub log_end_offset: i64,
    /// The high watermark.
    pub high_watermark: i64,
    /// The last stable offset.
    pub last_stable_offset: i64,
    /// The batches in offset order.
    pub log: Vec<ObservedBatch>,
    /// The entries of the ProducerStateManager in order of producer id.
    pub producers: Vec<ProducerEntry>,
    /// The open transactions in order of first offset.
    pub open_transactions: Vec<OpenTransaction>,
    /// The transaction index in order of its entries; none if the target does not show it.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
}

impl ObservedState {
    /// The state with the real producer of each offset from `authors`.
    #[must_use]
    pub fn labelled(self, authors: &BTreeMap<i64, Option<String>>) -> ReplicaState {
        let log = self.log.into_iter().map(|b| LogEntry {
            offset: b.offset,
            by: authors.get(&b.offset).cloned().flatten(),
            batch: b.batch,
        });
        ReplicaState {
            up: self.up,
            mirror_state: self.mirror_state,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            high_watermark: self.high_watermark,
            last_stable_offset: self.last_stable_offset,
            log: log.collect(),
            producers: self.producers,
            open_transactions: self.open_transactions,
            aborted_transactions: self.aborted_transactions,
        }
    }
}
