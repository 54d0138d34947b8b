//! What was acknowledged, and whether it is still there.

use std::collections::BTreeMap;

use crate::ledger::{Came, Ledger};
use crate::target::Observed;
use crate::trace::format::{Batch, MirrorState, Op, Origin, ReplicaState};

use super::Frame;
use super::identity::labelled;

/// A batch that its producer waits for, or knows to be stored.
#[derive(Clone, Debug)]
struct Sent {
    replica: String,
    cluster: String,
    by: String,
    batch: Batch,
    offset: i64,
}

/// The appends of all leaders, and which of them were answered (Kafka: `acks=all`).
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    waiting: Vec<Sent>,
    acknowledged: Vec<Sent>,
    /// The last batch that each producer sent and was not refused, if it leaves a transaction open.
    open: BTreeMap<String, Batch>,
}

impl Answers {
    /// Follows one operation.
    pub(super) fn update(&mut self, frame: &Frame, ledger: &Ledger) {
        let replica = frame.op.replica();
        if let Op::Append { origin: Origin::Client | Origin::Coordinator, by: Some(by), batch, .. } = &frame.op {
            let leaves_open = batch.transactional && batch.control.is_none() && !matches!(frame.outcome, Observed::Error(_));
            self.open.remove(by);
            self.open.extend(leaves_open.then(|| (by.clone(), batch.clone())));
        }
        match (&frame.op, &frame.outcome) {
            (
                Op::Append { origin: Origin::Client | Origin::Coordinator, by: Some(by), batch, .. },
                Observed::Appended { last_offset, .. } | Observed::Duplicate { last_offset, .. },
            ) => {
                let cluster = ledger.cluster(replica).unwrap_or_default().to_owned();
                let (replica, by) = (replica.to_owned(), by.clone());
                self.waiting.push(Sent { replica, cluster, by, batch: batch.clone(), offset: *last_offset });
            }
            // Whoever leads now knows nothing of what another broker's clients wait for; nor does a broker that was down.
            (Op::Lead { .. }, _) => {
                let cluster = ledger.cluster(replica);
                self.waiting.retain(|sent| sent.replica == replica || Some(sent.cluster.as_str()) != cluster);
            }
            (Op::Crash { .. }, _) => self.waiting.retain(|sent| sent.replica != replica),
            _ => {}
        }
        // One fault of the kill list is that an answer does not wait for the high watermark.
        let too_early = ledger.axis("fault") == Some("acknowledged-too-early");
        let reached = if too_early { frame.after.log_end_offset } else { frame.after.high_watermark };
        let answered = self.waiting.extract_if(.., |sent| sent.replica == replica && sent.offset < reached);
        self.acknowledged.extend(answered);
    }

    /// Whether a producer that writes to this partition is in the middle of a transaction.
    pub(super) fn in_transaction(&self, name: &str, state: &ReplicaState, ledger: &Ledger) -> bool {
        labelled(name, state, ledger).any(|(entry, label)| {
            let newest = entry.by.as_ref().and_then(|by| self.open.get(by)) == Some(&entry.batch);
            newest && label.came == Came::Local && label.phase == ledger.phase(name)
        })
    }

    /// A batch that was acknowledged and is not in the log of a partition that has been writable all the time since (LOSS-1).
    pub(super) fn lost(&self, states: &BTreeMap<String, ReplicaState>, ledger: &Ledger) -> Option<String> {
        ledger.leaders().find_map(|name| {
            let state = states.get(name).filter(|s| s.up && s.mirror_state == MirrorState::Stopped)?;
            let cluster = ledger.cluster(name).filter(|c| !ledger.has_started_a_mirror(c))?;
            let held = |sent: &&Sent| state.log.iter().any(|e| e.by.as_ref() == Some(&sent.by) && e.batch == sent.batch);
            let lost = self.acknowledged.iter().filter(|sent| sent.cluster == cluster).find(|sent| !held(sent))?;
            Some(format!(
                "{} acknowledged a batch of {} at offset {}; the log of {name}, which leads, does not hold it",
                lost.replica, lost.by, lost.offset
            ))
        })
    }
}
