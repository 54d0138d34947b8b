//! Which batches of two logs are one batch: sent again, or copied.

use crate::ledger::{Label, Ledger};
use crate::trace::format::{Batch, Control, LogEntry, ReplicaState};

/// A batch with what is known of it beside its bytes.
pub(super) type Known<'a> = (&'a LogEntry, &'a Label);

/// The batches of a log with their labels.
pub(super) fn labelled<'a>(name: &str, state: &'a ReplicaState, ledger: &'a Ledger) -> impl Iterator<Item = Known<'a>> {
    let labels = ledger.labels(name);
    state.log.iter().filter_map(move |e| Some((e, labels?.get(&e.offset)?)))
}

/// Whether two batches are one. Their producer ids say nothing: a mirror may have mapped one of them.
pub(super) fn same((a, of_a): Known<'_>, (b, of_b): Known<'_>) -> bool {
    let plain = |batch: &Batch| Batch { producer_id: 0, ..batch.clone() };
    let anonymous = a.batch.producer_id == -1 && b.batch.producer_id == -1;
    match (&a.batch.control, &b.batch.control) {
        // No two barriers are one, and nothing in its bytes tells a plain batch from another.
        (Some(Control::MirrorPidReset { .. }), Some(_)) => of_a.serial == of_b.serial,
        (None, None) if anonymous => of_a.serial == of_b.serial,
        (None, None) => a.by == b.by && plain(&a.batch) == plain(&b.batch),
        (Some(_), Some(_)) => a.by == b.by && of_a.cluster == of_b.cluster && plain(&a.batch) == plain(&b.batch),
        _ => false,
    }
}
