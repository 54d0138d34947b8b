//! The stop sequence of a mirror, step by step. After each a crash or a change of leader may follow.

use super::{Ask, Replica, ReplicaConfig, Role};
use crate::batch::Batch;
use crate::design::{Fault, Record, StopAcks, StopResume, StopStep};
use crate::effect::{Effect, TruncateWhy};
use crate::epochs::latest_epoch;
use crate::mirror::{LastMirrored, MirrorState};
use crate::psm::Origin;
use crate::truth::{Author, Ghost};

impl ReplicaConfig {
    /// The operator stops the mirror: the fetcher goes, the stop sequence begins (STOP-1).
    pub fn stop(&self, replica: &mut Replica, line: u8) -> Option<Vec<Ask>> {
        let stoppable = matches!(replica.mirror.state, MirrorState::Mirroring | MirrorState::LogAlignment | MirrorState::Failed);
        if replica.role != Role::Leader || !stoppable {
            return None;
        }
        replica.mirror.command = Some(line);
        replica.mirror.progress = 0;
        replica.progress = 0;
        replica.align_to = None;
        Some(vec![self.set_state(replica, MirrorState::Stopping), Ask::NextStep])
    }

    /// The next durable step of the sequence that is being carried out.
    pub fn next_step(&self, replica: &mut Replica) -> Vec<Ask> {
        match replica.mirror.state {
            _ if replica.role != Role::Leader => Vec::new(),
            MirrorState::Stopping | MirrorState::Stopped if replica.mirror.command.is_some() => self.next_stop_step(replica),
            MirrorState::LogAlignment => self.next_alignment_step(replica),
            _ => Vec::new(),
        }
    }

    /// Whether the next step can be taken: the step before it may have to be replicated first (STOP-3).
    #[must_use]
    pub fn step_is_ready(&self, replica: &Replica) -> bool {
        if replica.epoch < replica.wanted_epoch {
            // A leader that has been deposed never gets the epoch that it asks for.
            return false;
        }
        if replica.role != Role::Leader {
            return true;
        }
        let replicated = !replica.in_sync || Self::follower_is_at_end(replica);
        if replica.mirror.state == MirrorState::Stopping && self.design.stop_acks == StopAcks::EveryStep && !replicated {
            return false;
        }
        if replica.progress == 0 {
            return true;
        }
        let replicated = !replica.in_sync || replica.high_watermark >= replica.log_end();
        match replica.mirror.state {
            MirrorState::LogAlignment => self.alignment_is_done(replica),
            _ => match (self.design.stop_steps().nth(usize::from(replica.progress) - 1), self.design.stop_acks) {
                (_, StopAcks::None) => true,
                (Some(StopStep::WriteBarrier), _) => replicated,
                (Some(StopStep::AbortOpen), StopAcks::All | StopAcks::EveryStep) => replicated,
                (Some(StopStep::TruncateToLso), StopAcks::All | StopAcks::EveryStep) => self.follower_is_aligned(replica),
                _ => true,
            },
        }
    }

    fn next_stop_step(&self, replica: &mut Replica) -> Vec<Ask> {
        let mut asks = Vec::new();
        // Steps without an effect are passed over, so that they cost no state.
        while let Some(step) = self.design.stop_steps().nth(usize::from(replica.progress)) {
            let (more, done) = self.stop_step(replica, step);
            if done != Done::Again {
                replica.progress += 1;
            }
            asks.extend(more);
            if done != Done::Nothing {
                break;
            }
        }
        if self.design.stop_resume == StopResume::Continue && replica.mirror.progress != replica.progress {
            replica.mirror.progress = replica.progress;
            asks.push(Ask::StoreMirror);
        }
        asks.extend(self.advance_high_watermark(replica));
        if self.design.stop_steps().nth(usize::from(replica.progress)).is_some() {
            asks.push(Ask::NextStep);
            return asks;
        }
        replica.progress = 0;
        replica.mirror.progress = 0;
        asks.retain(|ask| *ask != Ask::StoreMirror);
        asks.push(replica.mirror.command.take().map_or(Ask::StoreMirror, Ask::Done));
        asks
    }

    fn stop_step(&self, replica: &mut Replica, step: StopStep) -> (Vec<Ask>, Done) {
        match step {
            StopStep::TruncateToLso => {
                let lso = replica.last_stable_offset();
                if lso == replica.log_end() {
                    return (Vec::new(), Done::Nothing);
                }
                self.truncate_to(replica, lso, TruncateWhy::StopToLso);
                (Vec::new(), Done::Step)
            }
            StopStep::Record => self.record(replica),
            StopStep::BumpEpoch => {
                replica.wanted_epoch = replica.epoch.next();
                if self.design.fault == Fault::EpochRaisedAlone {
                    let before = replica.epoch;
                    replica.epoch = replica.wanted_epoch;
                    return (vec![Ask::RaiseEpoch(before, replica.epoch)], Done::Step);
                }
                (vec![Ask::RaiseEpoch(replica.epoch, replica.wanted_epoch)], Done::Step)
            }
            StopStep::AbortOpen => self.abort_first_open(replica),
            StopStep::WriteBarrier => {
                self.write_barrier(replica);
                (Vec::new(), Done::Step)
            }
            StopStep::BecomeWritable => {
                replica.mirror.stint = Ghost::new(Some(replica.log_end()));
                (vec![self.set_state(replica, MirrorState::Stopped)], Done::Step)
            }
        }
    }

    fn record(&self, replica: &mut Replica) -> (Vec<Ask>, Done) {
        if self.design.fault == Fault::RecordsNothing {
            return (Vec::new(), Done::Nothing);
        }
        let Some(source) = replica.mirror.source else { return (Vec::new(), Done::Nothing) };
        if self.design.record == Record::Once {
            if replica.mirror.recorded {
                return (Vec::new(), Done::Nothing);
            }
            replica.mirror.recorded = true;
        }
        let recorded = LastMirrored { offset: replica.log_end(), epoch: latest_epoch(&replica.durable.log), source };
        replica.mirror.last_mirrored = Some(recorded);
        replica.journal.push(Effect::LastMirrored(recorded));
        (vec![Ask::StoreMirror], Done::Step)
    }

    /// One ABORT marker, one append call (STOP-2). The step is done when no transaction is open.
    fn abort_first_open(&self, replica: &mut Replica) -> (Vec<Ask>, Done) {
        let open = |r: &Replica| r.psm.entries().iter().find(|e| e.txn_first_offset.is_some()).copied();
        let Some(entry) = open(replica) else { return (Vec::new(), Done::Nothing) };
        let first = entry.txn_first_offset.and_then(|first| replica.durable.log.get(first.index()));
        let Some(author) = first.map(|b| b.author.ended_by_stop_of(self.broker.cluster)) else {
            return (Vec::new(), Done::Nothing);
        };
        let marker = Batch::abort(entry.id, entry.epoch, entry.coordinator_epoch, author);
        self.append_as_leader(replica, marker, Origin::StoppingMirror);
        let more = self.design.fault != Fault::AbortsOnlyOne && open(replica).is_some_and(|next| next.id != entry.id);
        (Vec::new(), if more { Done::Again } else { Done::Step })
    }

    /// A fault: the stop of a predecessor counts as done.
    pub(super) fn take_stop_for_done(&self, replica: &mut Replica) -> Vec<Ask> {
        let (mut asks, _) = self.stop_step(replica, StopStep::BecomeWritable);
        asks.extend(replica.mirror.command.take().map(Ask::Done));
        asks
    }

    fn write_barrier(&self, replica: &mut Replica) {
        let Some(source) = replica.mirror.source else { return };
        let author = Ghost::new(Author { writer: None, cluster: self.broker.cluster, serial: replica.epoch.0 });
        self.append_as_leader(replica, Batch::barrier(source, author), Origin::StoppingMirror);
    }
}

/// What a stop step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// It had nothing to do.
    Nothing,
    /// It did something and is over.
    Step,
    /// It did something and has more to do.
    Again,
}
