//! The guarantee of a log to its readers, as properties of the destination of a link (LINK-2). Of its source they are assumed.

use super::safety::leaders;
use super::{Group, PropertySpec};
use crate::mirror::MirrorState;
use crate::scenario::{Scenario, State};
use crate::truth;

/// LINK-1 for one log, on every replica that can become leader, readable or not.
fn logs_are_good(s: &Scenario, st: &State) -> bool {
    s.judged(st).all(|(_, r)| truth::broken_part(&r.durable.log).is_none())
}

/// LINK-1 for pairs: each mirror with the leader of its source, the arbitrary one included, and each follower with its leader.
fn epochs_tell_logs_apart(s: &Scenario, st: &State) -> bool {
    leaders(s, st).all(|(b, reader)| {
        let source = reader.mirror.source.filter(|_| reader.mirror.state == MirrorState::Mirroring);
        let source = source.and_then(|source| s.leader(st, source));
        let follower = s.replicas(st).find(|(other, _)| *other == b.other());
        let log = &reader.durable.log;
        source.is_none_or(|(_, source)| truth::epochs_tell(log, &source.durable.log))
            && follower.is_none_or(|(_, follower)| truth::epochs_tell(&follower.durable.log, log))
    })
}

/// What a link proves of its destination besides the promises.
pub static GUARANTEE: [PropertySpec; 2] = [
    PropertySpec {
        id: "log-is-good",
        requirement: "LINK-1",
        group: Group::Alignment,
        about: "every log has one real producer an id between barriers, in order, with nothing open at a barrier, under epochs that do not fall",
        condition: logs_are_good,
        goal: None,
    },
    PropertySpec {
        id: "epochs-tell-logs-apart",
        requirement: "LINK-1",
        group: Group::Alignment,
        about: "a log and the one that it reads hold, under one leader epoch at one offset, one batch, and the same below it",
        condition: epochs_tell_logs_apart,
        goal: None,
    },
];
