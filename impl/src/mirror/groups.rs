//! Committed offsets of consumer groups that come from the source.

use super::state::MirrorState;
use crate::types::Offset;

/// The offset that a group's offset of the source becomes here; `None` when the mirror no longer takes offsets over.
///
/// Offsets are those of the log, so barriers and markers count. A mirror that stops has batches of its own: what the source
/// says then would take a group back that has read them (MIR-14). An offset beyond the copied log would skip what is written
/// here next, and one below the log start cannot be fetched.
#[must_use]
pub fn group_offset(state: MirrorState, at_source: Offset, log_start: Offset, log_end: Offset) -> Option<Offset> {
    match state {
        MirrorState::Stopping | MirrorState::Stopped => None,
        _ => Some(at_source.min(log_end).max(log_start)),
    }
}
