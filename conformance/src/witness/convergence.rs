//! The state that a log means, and the state that a replica has.

use std::collections::BTreeMap;

use crate::ledger::Ledger;
use crate::trace::format::{Batch, Control, LogEntry, OpenTransaction, ProducerEntry, ReplicaState};

/// What counts of an entry: of the remembered batches only the newest, because a restart forgets the others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Essence {
    epoch: i16,
    coordinator_epoch: i32,
    /// The newest batch: its last sequence and last offset.
    newest: Option<(i32, i64)>,
    txn_first_offset: Option<i64>,
}

/// The state that counts: entries by id, open transactions in order of first offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Meaning {
    entries: BTreeMap<i64, Essence>,
    open: Vec<OpenTransaction>,
}

impl Meaning {
    /// What a replica shows.
    fn shown(state: &ReplicaState) -> Self {
        let essence = |e: &ProducerEntry| Essence {
            epoch: e.producer_epoch,
            coordinator_epoch: e.coordinator_epoch,
            newest: e.batches.last().map(|b| (b.last_sequence, b.last_offset)),
            txn_first_offset: e.txn_first_offset,
        };
        let entries = state.producers.iter().map(|e| (e.producer_id, essence(e))).collect();
        Self { entries, open: state.open_transactions.clone() }
    }

    /// What its log means: every batch by itself, from the first on, each barrier at its position.
    fn of(name: &str, state: &ReplicaState, ledger: &Ledger) -> Self {
        let mut meaning = Self::default();
        for entry in &state.log {
            if let Some(Control::MirrorPidReset { source_cluster }) = &entry.batch.control {
                // A barrier that came by mirroring names another cluster than the one that this log mirrors (BAR-4).
                if ledger.axis("propagated") != Some("inert") || ledger.source(name) == Some(source_cluster) {
                    meaning.clear(ledger.axis("clears"));
                }
            } else if entry.batch.producer_id > -1 || (entry.batch.producer_id < -1 && ledger.axis("psm-ids") == Some("mapped")) {
                meaning.take(entry);
            }
        }
        meaning
    }

    fn clear(&mut self, what: Option<&str>) {
        match what {
            Some("negative") => self.entries.retain(|id, _| *id >= 0),
            Some("all-and-derived") => *self = Self::default(),
            _ => self.entries.clear(),
        }
    }

    fn take(&mut self, entry: &LogEntry) {
        let (batch, offset) = (&entry.batch, entry.offset);
        let blank = Essence { epoch: -1, coordinator_epoch: -1, newest: None, txn_first_offset: None };
        let known = self.entries.entry(batch.producer_id).or_insert(blank);
        if known.epoch != batch.producer_epoch {
            known.epoch = batch.producer_epoch;
            known.newest = None;
        }
        match &batch.control {
            Some(Control::Commit { coordinator_epoch } | Control::Abort { coordinator_epoch }) => {
                known.coordinator_epoch = *coordinator_epoch;
                if let Some(first) = known.txn_first_offset.take() {
                    self.open.retain(|t| t.first_offset != first);
                }
            }
            _ => {
                known.newest = Some((last_sequence(batch), last_offset(batch, offset)));
                if batch.transactional && known.txn_first_offset.is_none() {
                    known.txn_first_offset = Some(offset);
                    self.open.push(OpenTransaction { producer_id: batch.producer_id, first_offset: offset });
                }
            }
        }
    }

    /// The first thing that differs.
    fn difference(&self, other: &Self) -> Option<String> {
        let ids = self.entries.keys().chain(other.entries.keys());
        let mut ids: Vec<_> = ids.filter(|id| self.entries.get(id) != other.entries.get(id)).collect();
        ids.sort();
        match ids.first() {
            Some(id) => Some(format!("the entry for id {id}")),
            None => (self.open != other.open).then(|| "the open transactions".to_owned()),
        }
    }
}

fn last_sequence(batch: &Batch) -> i32 {
    let more = i64::from(batch.records.saturating_sub(1));
    i32::try_from((i64::from(batch.base_sequence) + more) % (1 << 31)).unwrap_or_default()
}

fn last_offset(batch: &Batch, offset: i64) -> i64 {
    offset.saturating_add(i64::from(batch.records.saturating_sub(1)))
}

/// A replica whose producer state is not the one that its log means (CONV-1).
pub(super) fn state_of_log(name: &str, state: &ReplicaState, ledger: &Ledger) -> Option<String> {
    let differs = state.up.then(|| Meaning::shown(state).difference(&Meaning::of(name, state, ledger)))??;
    Some(format!("{name}'s producer state is not the one that its log means: {differs} differs"))
}

/// Two replicas with one log and two states (CONV-2).
pub(super) fn two_states(states: &BTreeMap<String, ReplicaState>) -> Option<String> {
    let up: Vec<_> = states.iter().filter(|(_, s)| s.up).collect();
    up.iter().enumerate().find_map(|(i, (a, x))| {
        up.iter().skip(i + 1).find_map(|(b, y)| {
            let differs = (x.log == y.log).then(|| Meaning::shown(x).difference(&Meaning::shown(y)))??;
            Some(format!("{a} and {b} hold the same log, but {differs} differs"))
        })
    })
}
