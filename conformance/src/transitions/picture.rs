//! Everything that can be seen of one log, and decides what it does next.

use cleanslate_log::log::PartitionLog;
use cleanslate_log::record::RecordBatch;
use cleanslate_log::storage::MemoryStorage;

use crate::adapter::State;
use crate::adapter::state::Segment;
use crate::sequence::compare::states;
use crate::sequence::known::Part;
use crate::sequence::local_state::state_of;
use crate::target::TargetError;
use crate::target::codec::decode;
use crate::trace::format::Batch;

/// One log: its batches, and its state as the adapter protocol tells it, but for the sizes of segments, which depend on payloads.
///
/// The state has what is hidden from a trace and decides later behaviour: the offset that is held to be unstable, transactions that wait
/// for replication, segments, snapshots with their entries, the recovery point, the epochs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Picture {
    /// The state.
    pub state: State,
    /// The batches with their first offsets, in order.
    pub batches: Vec<(i64, Batch)>,
}

impl Picture {
    /// The picture of a log of this project.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn of(log: &PartitionLog<MemoryStorage>) -> Result<Self, TargetError> {
        let batches = log.batches().map_err(|e| TargetError::Failed(e.to_string()))?;
        Ok(Self { state: without_sizes(state_of(log, 0)), batches: decoded(&batches)? })
    }

    /// Where another implementation's log differs: part, what is expected, what is there. Recovery points are not compared, because they
    /// depend on when an implementation flushes; arrays that it does not tell neither. Without batches, these are not compared.
    ///
    /// # Errors
    /// When a batch cannot be read.
    pub fn differences(&self, state: &State, batches: Option<&[RecordBatch]>) -> Result<Vec<Part>, TargetError> {
        let mut parts = states(&self.state, &without_sizes(state.clone()));
        if let Some(batches) = batches {
            let batches = decoded(batches)?;
            if batches != self.batches {
                parts.push(("batches".to_owned(), json(&self.batches), json(&batches)));
            }
        }
        Ok(parts)
    }
}

fn json(batches: &[(i64, Batch)]) -> String {
    serde_json::to_string(batches).unwrap_or_default()
}

fn decoded(batches: &[RecordBatch]) -> Result<Vec<(i64, Batch)>, TargetError> {
    batches.iter().map(|batch| Ok((batch.base_offset().get(), decode(batch)?))).collect()
}

fn without_sizes(state: State) -> State {
    let segments = state.segments.map(|all| all.into_iter().map(|segment| Segment { size: 0, ..segment }).collect());
    State { segments, ..state }
}
