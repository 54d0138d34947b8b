//! What happens to the log of an arbitrary source. Who decides what happens is [`crate::source`]; here it is done to the replica by the
//! rules that every leader has, so that the answers to its readers are those of any leader.

use super::{Replica, ReplicaConfig};
use crate::batch::Batch;
use crate::effect::{Effect, Outcome, TruncateWhy};
use crate::ids::{LeaderEpoch, Offset};
use crate::psm::Origin;

impl ReplicaConfig {
    /// A batch is appended under its own leader epoch. False if the checks of a leader refuse it.
    pub(crate) fn append_at_source(&self, replica: &mut Replica, batch: Batch, origin: Origin) -> bool {
        Self::raise_at_source(replica, batch.leader_epoch);
        matches!(self.append_as_leader(replica, batch, origin), Outcome::Appended(_))
    }

    /// The leader epoch rises, with or without a batch.
    pub(crate) fn raise_at_source(replica: &mut Replica, to: LeaderEpoch) {
        if to > replica.epoch {
            replica.epoch = to;
            replica.journal.push(Effect::RaiseEpoch(to));
        }
    }

    /// Readers may read up to here.
    pub(crate) fn replicate_at_source(replica: &mut Replica, to: Offset) {
        replica.set_high_watermark(to);
        replica.journal.push(Effect::HighWatermark(to));
    }

    /// The log loses its end.
    pub(crate) fn cut_at_source(&self, replica: &mut Replica, to: Offset) {
        self.truncate_to(replica, to, TruncateWhy::SourceCut);
    }
}
