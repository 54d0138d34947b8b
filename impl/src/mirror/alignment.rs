//! To where a log is truncated before it mirrors (ALI-1, ALI-11).
//!
//! The last mirrored epoch alone does not align two logs: of the epoch in which the mirror stopped, the mirrored cluster may
//! hold batches that the mirror never saw. A fetch that carries the epoch of the last batch finds those (ALI-12), by the rules of
//! [`crate::replication`].

use super::design::Alignment;
use super::metadata::MirrorMetadata;
use crate::log::LeaderEpochCache;
use crate::types::Offset;

/// Where a log is cut before it mirrors a source that has recorded this; `None` for nowhere.
#[must_use]
pub fn alignment_offset(
    alignment: Alignment,
    recorded: &MirrorMetadata,
    own: &LeaderEpochCache,
    own_end: Offset,
    own_lso: Offset,
) -> Option<Offset> {
    let by_epoch = || {
        let found = recorded.last_mirrored_epoch.and_then(|epoch| own.end_offset_for(epoch, own_end));
        found.map_or(Offset(0), |(_, end)| end)
    };
    let by_offset = || recorded.last_mirrored_offset.unwrap_or_default();
    match alignment {
        Alignment::None => None,
        Alignment::OwnLso => Some(own_lso),
        Alignment::LastMirroredOffset => Some(by_offset()),
        Alignment::LastMirroredEpoch => Some(by_epoch()),
        Alignment::LastMirroredEpochAndOffset => Some(by_epoch().min(by_offset())),
    }
}
