//! Which batches each producer entry goes back to.
//!
//! An entry shows five batches at most, and fewer after an epoch change or a reload from a snapshot. So the batches that went into an
//! entry are counted from the moment the entry appeared. A barrier ends an entry unless the entry itself shows that it survived:
//! by a cached batch or an open transaction from before the barrier.

use std::collections::BTreeMap;

use crate::trace::format::{Control, LogEntry, Op, ProducerEntry, ReplicaState};

use super::Frame;

/// One batch that went into an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contribution {
    pub(crate) offset: i64,
    pub(crate) by: Option<String>,
}

/// The batches behind each entry of one replica, by stored producer id, in offset order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contributors(BTreeMap<i64, Vec<Contribution>>);

impl Contributors {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&i64, &Vec<Contribution>)> {
        self.0.iter()
    }

    /// Follows one operation.
    pub(crate) fn update(&mut self, frame: &Frame) {
        let rebuilt = matches!(frame.op, Op::Truncate { .. } | Op::Crash { .. } | Op::Recover { .. });
        let since = if rebuilt { 0 } else { frame.before.log_end_offset };
        let entries = frame.after.producers.iter().map(|entry| {
            let known = if rebuilt { Vec::new() } else { self.0.remove(&entry.producer_id).unwrap_or_default() };
            (entry.producer_id, grow(known, entry, &frame.after, since))
        });
        self.0 = entries.collect();
    }

    /// Says which entry goes back to two real producers.
    pub(crate) fn mixed(&self, replica: &str) -> Option<String> {
        self.0.iter().find_map(|(producer_id, contributions)| {
            let mut authors: Vec<(&str, Vec<String>)> = Vec::new();
            for Contribution { offset, by } in contributions {
                let Some(by) = by else { continue };
                match authors.iter_mut().find(|(name, _)| name == by) {
                    Some((_, offsets)) => offsets.push(offset.to_string()),
                    None => authors.push((by, vec![offset.to_string()])),
                }
            }
            if authors.len() < 2 {
                return None;
            }
            let list: Vec<String> = authors.iter().map(|(by, offsets)| format!("{by} (offset {})", offsets.join(", "))).collect();
            Some(format!("the entry of {replica} for id {producer_id} mixes {}", list.join(" and ")))
        })
    }
}

/// Adds the batches from `since` on to what is known of an entry, and drops what lies before the barrier that began it.
fn grow(mut known: Vec<Contribution>, entry: &ProducerEntry, state: &ReplicaState, since: i64) -> Vec<Contribution> {
    let news = state.log.iter().filter(|e| e.offset >= since);
    let own = news.clone().filter(|e| e.batch.producer_id == entry.producer_id);
    known.extend(own.map(|e| Contribution { offset: e.offset, by: e.by.clone() }));
    let cached = entry.batches.iter().map(|b| b.base_offset);
    // An entry with no cached batch was last touched by a marker, the newest batch under its id.
    let oldest_shown = cached.chain(entry.txn_first_offset).min().or_else(|| known.last().map(|c| c.offset));
    let barrier =
        news.filter(|e| is_barrier(e) && oldest_shown.is_some_and(|shown| e.offset < shown)).map(|e| e.offset).next_back();
    known.retain(|c| barrier.is_none_or(|barrier| c.offset > barrier));
    known
}

pub(super) fn is_barrier(entry: &LogEntry) -> bool {
    matches!(entry.batch.control, Some(Control::MirrorPidReset { .. }))
}
