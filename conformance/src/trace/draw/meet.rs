//! Stored producer ids under which two real producers meet.

use std::collections::{BTreeMap, BTreeSet};

use crate::trace::format::{Control, ReplicaState};

/// Two or more real producers whose batches lie under one stored id with no barrier between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Meeting {
    /// The id as stored.
    pub producer_id: i64,
    /// The offset of the first batch of the second producer.
    pub offset: i64,
    /// The real producers in order of their first batch.
    pub producers: Vec<String>,
}

/// The meetings in a log, in order of stored id and offset; each stretch between two barriers is judged by itself.
pub fn meetings(state: &ReplicaState) -> Vec<Meeting> {
    let mut found = BTreeSet::new();
    let mut stretch: BTreeMap<i64, Meeting> = BTreeMap::new();
    for entry in &state.log {
        if matches!(entry.batch.control, Some(Control::MirrorPidReset { .. })) {
            found.extend(std::mem::take(&mut stretch).into_values());
            continue;
        }
        let (producer_id, Some(by)) = (entry.batch.producer_id, &entry.by) else { continue };
        if producer_id == -1 {
            continue;
        }
        let meeting =
            stretch.entry(producer_id).or_insert_with(|| Meeting { producer_id, producers: Vec::new(), offset: entry.offset });
        if !meeting.producers.contains(by) {
            meeting.producers.push(by.clone());
            if meeting.producers.len() == 2 {
                meeting.offset = entry.offset;
            }
        }
    }
    found.extend(stretch.into_values());
    found.into_iter().filter(|m| m.producers.len() > 1).collect()
}
