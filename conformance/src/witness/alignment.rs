//! Logs that should be beginnings of one another, and what an alignment threw away.

use std::collections::BTreeMap;

use crate::ledger::Ledger;
use crate::trace::format::{MirrorState, Op, ReplicaState};

use super::Frame;
use super::identity::{labelled, same};

type States = BTreeMap<String, ReplicaState>;

/// A leader that mirrors, against the leader of its source (ALIGN-1).
pub(super) fn mirror(states: &States, ledger: &Ledger) -> Option<String> {
    ledger.leaders().find_map(|name| {
        let state = states.get(name).filter(|s| s.mirror_state == MirrorState::Mirroring)?;
        let source = ledger.leader_of_cluster(ledger.source(name)?)?;
        part((name, state), (source, states.get(source)?), ledger)
    })
}

/// A follower against its leader (ALIGN-2).
pub(super) fn follower(states: &States, ledger: &Ledger) -> Option<String> {
    states.iter().find_map(|(name, state)| {
        let leader = ledger.leader(name).filter(|leader| leader != name)?;
        part((name, state), (leader, states.get(leader)?), ledger)
    })
}

/// Says where two logs that hold one batch at the same offset differ below it.
fn part(own: (&str, &ReplicaState), other: (&str, &ReplicaState), ledger: &Ledger) -> Option<String> {
    let at: BTreeMap<i64, _> = labelled(other.0, other.1, ledger).map(|(e, l)| (e.offset, (e, l))).collect();
    let pairs: Vec<_> = labelled(own.0, own.1, ledger).filter_map(|mine| Some((mine, *at.get(&mine.0.offset)?))).collect();
    let last = pairs.iter().rposition(|(mine, theirs)| same(*mine, *theirs))?;
    let (differs, _) = pairs.iter().take(last).find(|(mine, theirs)| !same(*mine, *theirs))?;
    let (shared, _) = pairs.get(last)?;
    Some(format!(
        "{} and {} hold the same batch at offset {}, but different ones at offset {}",
        own.0, other.0, shared.0.offset, differs.0.offset
    ))
}

/// The alignment of a failback cut off data that the source holds at the same offset (LOSS-2).
pub(super) fn threw_away(frame: &Frame, states: &States, ledger: &Ledger) -> Option<String> {
    let Op::Truncate { replica, offset } = &frame.op else { return None };
    if frame.before.mirror_state != MirrorState::LogAlignment || ledger.leader(replica) != Some(replica) {
        return None;
    }
    let source = ledger.leader_of_cluster(ledger.source(replica)?)?;
    // Only a failback promises to keep what the two have in common: the source was a mirror of this cluster.
    if ledger.source(source) != ledger.cluster(replica) {
        return None;
    }
    let held: BTreeMap<i64, _> = labelled(source, states.get(source)?, ledger).map(|(e, l)| (e.offset, (e, l))).collect();
    let cut = frame.before.log.iter().filter(|e| e.offset >= *offset && e.batch.control.is_none());
    let mut lost = cut.filter(|e| {
        let of_cut = ledger.cut(replica).and_then(|cut| cut.get(&e.offset));
        of_cut.zip(held.get(&e.offset)).is_some_and(|(label, theirs)| same((e, label), *theirs))
    });
    let entry = lost.next()?;
    let by = entry.by.as_deref().unwrap_or("nobody");
    Some(format!("the alignment of {replica} threw the batch of {by} at offset {} away, which {source} holds there", entry.offset))
}
