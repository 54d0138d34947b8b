//! Is the corruption really there? Judges the concrete logs and producer states of a replay by the ground truth, without the model.
//!
//! The model says which property a trace violates. Whether an implementation went wrong in the same way is decided here, from what
//! the target showed, who really wrote each batch ([`crate::ledger`]), and nothing else.

mod alignment;
mod appends;
mod barriers;
mod contributors;
mod convergence;
mod ends;
mod identity;
mod loss;
mod reads;

use std::collections::BTreeMap;

use crate::ledger::{Came, Ledger};
use crate::target::Observed;
use crate::trace::draw::meetings;
use crate::trace::format::{MirrorState, Op, ReplicaState};

use appends::Acknowledged;
use contributors::Contributors;
use loss::Answers;

/// The properties that can be judged on concrete states.
pub const PROPERTIES: [&str; 21] = [
    "psm-entry-single-producer",
    "log-pid-single-producer",
    "writable-psm-empty",
    "barrier-before-local",
    "no-barrier-after-local",
    "sequence-break-accepted",
    "lower-epoch-accepted",
    "foreign-marker",
    "false-duplicate",
    "false-rejection",
    "batch-twice",
    "reads-committed",
    "commit-commits",
    "state-is-that-of-log",
    "equal-logs-equal-state",
    "stop-completes",
    "stable-when-quiet",
    "mirror-matches-source",
    "follower-matches-leader",
    "acknowledged-is-kept",
    "failback-throws-away-own",
];

/// The answer of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The corruption is there; the sentence says where.
    Seen(String),
    /// The corruption is not there.
    NotSeen,
    /// There is no judge for this property.
    NotJudged,
}

/// One operation as it went on the target.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The operation.
    pub op: Op,
    /// What came back.
    pub outcome: Observed,
    /// The replica before the operation, with the real producers.
    pub before: ReplicaState,
    /// The replica after the operation, with the real producers.
    pub after: ReplicaState,
}

impl Frame {
    /// The batches that the operation wrote.
    fn written(&self) -> impl Iterator<Item = &crate::trace::format::LogEntry> {
        self.after.log.iter().filter(|e| e.offset >= self.before.log_end_offset)
    }
}

/// Watches a replay.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    states: BTreeMap<String, ReplicaState>,
    contributors: BTreeMap<String, Contributors>,
    acknowledged: Acknowledged,
    /// The operations of the newest step.
    frames: Vec<Frame>,
    /// Refusals of honest appends in the newest step.
    refusals: Vec<String>,
    /// What alignments threw away in the newest step although their sources hold it.
    thrown_away: Vec<String>,
    answers: Answers,
}

impl Witness {
    /// A new step begins: only what happens from now on counts as "in the last step".
    pub fn begin_step(&mut self) {
        self.frames.clear();
        self.refusals.clear();
        self.thrown_away.clear();
    }

    /// Takes note of an operation. `ledger` already holds what the operation wrote.
    pub fn record(&mut self, ledger: &Ledger, frame: Frame) {
        let replica = frame.op.replica().to_owned();
        let contributors = self.contributors.entry(replica.clone()).or_default();
        contributors.update(&frame);
        if let Some(refusal) = appends::false_rejection(&frame, &self.acknowledged, ledger) {
            self.refusals.push(refusal);
        }
        self.thrown_away.extend(alignment::threw_away(&frame, &self.states, ledger));
        self.acknowledged.update(&frame);
        self.answers.update(&frame, ledger);
        self.states.insert(replica, frame.after.clone());
        self.frames.push(frame);
    }

    /// The concrete states, with the real producers.
    #[must_use]
    pub const fn states(&self) -> &BTreeMap<String, ReplicaState> {
        &self.states
    }

    /// Whether what `property` forbids is there after the operations noted so far.
    #[must_use]
    pub fn judge(&self, property: &str, ledger: &Ledger) -> Judgement {
        let seen = match property {
            "psm-entry-single-producer" => self.first_replica(|name, _| self.contributors.get(name).and_then(|c| c.mixed(name))),
            "log-pid-single-producer" => self.first_replica(log_mixes),
            "writable-psm-empty" => self.first_replica(|name, state| self.inherited(name, state, ledger)),
            "barrier-before-local" => self.first_leader(ledger, |name, state| barriers::missing(name, state, ledger)),
            "no-barrier-after-local" => self.first_leader(ledger, |name, state| barriers::late(name, state, ledger)),
            "sequence-break-accepted" => self.frames.iter().find_map(appends::sequence_break),
            "lower-epoch-accepted" => self.frames.iter().find_map(appends::lower_epoch),
            "foreign-marker" => self.frames.iter().find_map(appends::foreign_marker),
            "false-duplicate" => self.frames.iter().find_map(appends::false_duplicate),
            "false-rejection" => self.refusals.first().cloned(),
            "batch-twice" => self.first_replica(|name, state| reads::twice(name, state, ledger)),
            "reads-committed" => reads::wrong(&self.states, ledger),
            "commit-commits" => self.first_leader(ledger, reads::hollow_commit),
            "state-is-that-of-log" => self.first_replica(|name, state| convergence::state_of_log(name, state, ledger)),
            "equal-logs-equal-state" => convergence::two_states(&self.states),
            "stop-completes" => ends::under_way(&self.states, ledger),
            "stable-when-quiet" => ends::unstable(&self.states, &self.answers, ledger),
            "mirror-matches-source" => alignment::mirror(&self.states, ledger),
            "follower-matches-leader" => alignment::follower(&self.states, ledger),
            "acknowledged-is-kept" => self.answers.lost(&self.states, ledger),
            "failback-throws-away-own" => self.thrown_away.first().cloned(),
            _ => return Judgement::NotJudged,
        };
        seen.map_or(Judgement::NotSeen, Judgement::Seen)
    }

    fn first_replica(&self, judge: impl Fn(&str, &ReplicaState) -> Option<String>) -> Option<String> {
        self.states.iter().find_map(|(name, state)| judge(name, state))
    }

    fn first_leader(&self, ledger: &Ledger, judge: impl Fn(&str, &ReplicaState) -> Option<String>) -> Option<String> {
        self.first_replica(|name, state| if ledger.leader(name) == Some(name) { judge(name, state) } else { None })
    }

    /// An entry of a writable partition that goes back to a batch from before its cluster became writable. A follower counts if it has
    /// all that is replicated; one that has not is going to be cut.
    fn inherited(&self, name: &str, state: &ReplicaState, ledger: &Ledger) -> Option<String> {
        let leader = self.states.get(ledger.leader(name)?)?;
        let counts = ledger.leader(name) == Some(name) || state.log_end_offset >= leader.high_watermark;
        if !state.up || !counts || leader.mirror_state != MirrorState::Stopped {
            return None;
        }
        let (labels, phase) = (ledger.labels(name)?, ledger.phase(name));
        let old = |offset: i64| labels.get(&offset).filter(|l| l.came == Came::Mirrored || l.phase < phase);
        let entry = self.contributors.get(name)?.iter().find_map(|(producer_id, contributions)| {
            let (offset, label) = contributions.iter().find_map(|c| Some((c.offset, old(c.offset)?)))?;
            let by = label.by.as_deref().unwrap_or("nobody");
            Some(format!(
                "{name} is writable, and its entry for id {producer_id} goes back to the batch of {by} at offset {offset}"
            ))
        });
        entry.or_else(|| {
            let open = state.open_transactions.iter().find(|t| old(t.first_offset).is_some())?;
            let (id, first) = (open.producer_id, open.first_offset);
            Some(format!("{name} is writable, and a transaction of id {id} is still open from before, since offset {first}"))
        })
    }
}

fn log_mixes(name: &str, state: &ReplicaState) -> Option<String> {
    let meeting = meetings(state).into_iter().next()?;
    Some(format!(
        "the log of {name} holds batches of {} under id {} with no barrier between (offset {})",
        meeting.producers.join(" and "),
        meeting.producer_id,
        meeting.offset
    ))
}
