//! A cluster's controller: which replica leads the partition, under which epoch, which are in sync, and the mirror's metadata.
//!
//! Pure transitions. Each returns what the replicas are told.

use crate::design::{Design, Fault, StateFencing};
use crate::ids::LeaderEpoch;
use crate::message::Msg;
use crate::mirror::MirrorMeta;

/// A controller's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Controller {
    /// The number of the replica that leads.
    pub leader: u8,
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// Whether the other replica is in sync; false without one.
    pub in_sync: bool,
    /// The mirror's metadata.
    pub mirror: MirrorMeta,
}

/// What a controller says to the replica with this number.
pub type Told = Vec<(u8, Msg)>;

impl Controller {
    /// The controller before its first step: replica 0 leads, a follower is in sync.
    #[must_use]
    pub const fn initial(has_follower: bool, mirror: MirrorMeta) -> Self {
        Self { leader: 0, epoch: LeaderEpoch(0), in_sync: has_follower, mirror }
    }

    const fn other(&self) -> u8 {
        1 - (self.leader & 1)
    }

    const fn lead(&self) -> Msg {
        Msg::Lead { epoch: self.epoch, in_sync: self.in_sync, mirror: self.mirror }
    }

    const fn follow_me(&self) -> Msg {
        Msg::Follow { epoch: self.epoch, mirror: self.mirror }
    }

    /// A deposed leader asks whom it is to follow. If it has become leader again, it has been told already.
    #[must_use]
    pub fn follow(&self, number: u8) -> Told {
        if number == self.leader { Vec::new() } else { vec![(number, self.follow_me())] }
    }

    /// A broker has stopped and come back (ELECT-1): its place is taken by a replica that is in sync, if there is one.
    pub fn started(&mut self, design: &Design, number: u8) -> Told {
        if number != self.leader {
            self.in_sync = false;
            return vec![(self.leader, Msg::FollowerLost), (number, self.follow_me())];
        }
        if design.fault != Fault::ElectionKeepsEpoch {
            self.epoch = self.epoch.next();
        }
        if !self.in_sync {
            let told = Msg::EpochIs { leader: number, epoch: self.epoch };
            return vec![(number, self.lead()), (self.other(), told)];
        }
        self.leader = self.other();
        self.in_sync = false;
        vec![(self.leader, self.lead()), (number, self.follow_me())]
    }

    /// The other replica is made leader: one in sync (ELECT-2), or, if that is what the operator wants, one that is not (ELECT-3).
    pub fn elect(&mut self, design: &Design, unclean: bool) -> Option<Told> {
        if self.in_sync == unclean {
            return None;
        }
        let deposed = self.leader;
        self.leader = self.other();
        if design.fault != Fault::ElectionKeepsEpoch {
            self.epoch = self.epoch.next();
        }
        Some(vec![(self.leader, self.lead()), (deposed, Msg::StepDown)])
    }

    /// The follower has caught up with the leader of this epoch (LOG-2).
    pub fn follower_in_sync(&mut self, epoch: LeaderEpoch) {
        self.in_sync |= epoch == self.epoch;
    }

    /// Stores the mirror's metadata, if its writer still leads (STATE-1); none if it is refused.
    pub fn store(&mut self, design: &Design, writer: u8, epoch: LeaderEpoch, mirror: MirrorMeta) -> Option<Told> {
        let leads = writer == self.leader && epoch == self.epoch;
        if !leads && design.state_fencing == StateFencing::On {
            return (design.fault == Fault::DeposedIsBelieved).then(Vec::new);
        }
        self.mirror = mirror;
        Some(vec![(1 - (writer & 1), Msg::MirrorIs(mirror))])
    }

    /// The leader's epoch is raised without an election (STOP-6, MIR-7). A deposed leader gets no answer.
    pub fn raise_epoch(&mut self, epoch: LeaderEpoch, to: LeaderEpoch) -> Told {
        if epoch != self.epoch {
            return Vec::new();
        }
        self.epoch = to;
        let leader = self.leader;
        [leader, self.other()].map(|number| (number, Msg::EpochIs { leader, epoch: to })).into()
    }
}
