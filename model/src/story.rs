//! Prose: a step in one line, a state as a small picture. For people; nothing is computed from it.

use std::fmt::Write as _;

use stateright::actor::{ActorModelAction, Id};

use crate::batch::{Batch, Kind};
use crate::effect::{Effect, Outcome, TruncateWhy};
use crate::ids::{Broker, Cluster, Offset};
use crate::message::Msg;
use crate::mirror::MirrorState;
use crate::node::Timer;
use crate::psm::Origin;
use crate::replica::{Replica, Role};
use crate::scenario::{Action, MicroStep, Scenario, State};
use crate::source::Act;
use crate::truth::Anomaly;

/// A batch in the notation of the stories: `5.0#2` is producer id 5, epoch 0, sequence 2; a leading `t` marks data of a transaction.
#[must_use]
pub fn batch(batch: &Batch) -> String {
    match batch.kind {
        Kind::Data { .. } if batch.producer_id.0 == -1 => "a plain batch".to_owned(),
        Kind::Data { transactional } => {
            let t = if transactional { "t" } else { "" };
            format!("{t}{}.{}#{}", batch.producer_id, batch.producer_epoch, batch.sequence)
        }
        Kind::Marker { commit, coordinator_epoch } => {
            let word = if commit { "COMMIT" } else { "ABORT" };
            format!("{word} {}.{} (coordinator epoch {coordinator_epoch})", batch.producer_id, batch.producer_epoch)
        }
        Kind::Barrier { source } => format!("BARRIER (source {source})"),
    }
}

fn author(scenario: &Scenario, batch: &Batch) -> String {
    batch.author.for_display().writer.map_or_else(|| "the mirror".to_owned(), |w| scenario.writer_name(w))
}

fn actor_name(scenario: &Scenario, id: Id) -> String {
    let actor = usize::from(id);
    let directory = &scenario.directory;
    if let Some(broker) = directory.broker(actor) {
        return broker.to_string();
    }
    let of = |actors: &[Option<usize>; 4]| Cluster::ALL.into_iter().find(|c| actors.get(c.index()) == Some(&Some(actor)));
    if let Some(cluster) = of(&directory.coordinators) {
        return format!("{cluster}'s coordinator");
    }
    if let Some(cluster) = of(&directory.controllers) {
        return format!("{cluster}'s controller");
    }
    if actor == directory.operator {
        return "the operator".to_owned();
    }
    let number = u8::try_from(actor.saturating_sub(directory.operator + 1)).unwrap_or(u8::MAX);
    scenario.writer_name(crate::truth::Writer(number))
}

/// An action in one line, without knowing the state in which it is taken.
#[must_use]
pub fn action_line(scenario: &Scenario, action: &Action) -> String {
    let name = |id: Id| actor_name(scenario, id);
    match action {
        ActorModelAction::Deliver { src, dst, msg } => match msg {
            Msg::Produce(r) => format!("{}'s {} reaches {}", name(*src), batch(&r.batch), name(*dst)),
            Msg::WriteMarker(r) => format!("{} of {} reaches {}", batch(&r.batch), author(scenario, &r.batch), name(*dst)),
            Msg::Fetch(r) => {
                let what = if r.bulk { "all that there is from" } else { "" };
                format!("{} fetches {what}{}offset {} from {}", name(*src), if r.bulk { " " } else { "" }, r.offset, name(*dst))
            }
            Msg::Stop(_) => format!("the operator stops the mirror on {}", name(*dst)),
            Msg::Start { source, .. } => format!("the operator starts {} mirroring {source}", name(*dst)),
            Msg::StepDown => format!("{} is told that it no longer leads", name(*dst)),
            Msg::InitProducerId => format!("{} asks {} for a producer id", name(*src), name(*dst)),
            other => format!("{} to {}: {other:?}", name(*src), name(*dst)),
        },
        ActorModelAction::Timeout(id, Timer::NextStep) => format!("{} takes the next step of its sequence", name(*id)),
        ActorModelAction::Timeout(id, Timer::EndTransaction { abort }) => {
            format!("{} {} its transaction", name(*id), if *abort { "aborts" } else { "commits" })
        }
        ActorModelAction::Timeout(id, Timer::Retry) => format!("{} loses patience and sends it again", name(*id)),
        ActorModelAction::Timeout(id, Timer::GiveUp) => {
            format!("{} gives its batch up and goes on with the next epoch", name(*id))
        }
        ActorModelAction::Timeout(id, Timer::Roll) => format!("{} begins a new segment", name(*id)),
        ActorModelAction::Timeout(id, Timer::Restart) => format!("{} restarts in good order", name(*id)),
        ActorModelAction::Timeout(id, Timer::Elect { unclean }) => {
            format!("{} elects {}", name(*id), if *unclean { "the replica that is not in sync" } else { "the in-sync follower" })
        }
        ActorModelAction::Timeout(id, Timer::Source(act)) => match act {
            Act::Append(b) => format!("{} of {} reaches {}", batch(b), author(scenario, b), name(*id)),
            Act::Replicate(to) => format!("{} lets its readers read up to {to}", name(*id)),
            Act::Raise(to) => format!("{} raises its leader epoch to {to}", name(*id)),
            Act::Cut(to) => format!("{} loses its log from offset {to} on", name(*id)),
        },
        ActorModelAction::Crash(id) => format!("{} crashes", name(*id)),
        ActorModelAction::Recover(id) => format!("{} recovers", name(*id)),
        other => format!("{other:?}"),
    }
}

/// A whole step in one line: the action, and what came of it.
#[must_use]
pub fn step_line(scenario: &Scenario, before: &State, steps: &[MicroStep], after: &State) -> String {
    let _ = after;
    let mut clauses = Vec::new();
    for step in steps {
        if step.effects.is_empty() {
            clauses.extend(quiet_clause(scenario, &step.action, clauses.is_empty()));
        }
        for effect in &step.effects {
            clauses.extend(match effect {
                Effect::Suspect { anomaly, .. } => suspect_clause(scenario, before, step.actor, effect, *anomaly),
                Effect::Append { batch, outcome: Outcome::Duplicate(at), .. } if !is_suspect(step) => {
                    let (who, here) = (author(scenario, batch), actor_name(scenario, Id::from(step.actor)));
                    Some(format!(
                        "{who} sends {} to {here} again, which knows it from offset {at} and acknowledges it",
                        self::batch(batch)
                    ))
                }
                _ => effect_clause(scenario, step.actor, effect),
            });
        }
    }
    if clauses.is_empty() {
        clauses.extend(steps.first().map(|step| action_line(scenario, &step.action)));
    }
    let line = clauses.join("; ");
    // Names of producers keep their small letters.
    let line = line.strip_prefix("the ").map_or_else(|| line.clone(), |rest| format!("The {rest}"));
    format!("{line}.")
}

fn is_suspect(step: &MicroStep) -> bool {
    step.effects.iter().any(|e| matches!(e, Effect::Suspect { .. }))
}

/// A batch that was taken for a resend is lost if it was none.
fn suspect_clause(scenario: &Scenario, before: &State, actor: usize, effect: &Effect, anomaly: Anomaly) -> Option<String> {
    let here = scenario.directory.broker(actor)?;
    let lost = anomaly == Anomaly::FalseDuplicate && scenario.anomaly(before, effect, here).is_some();
    lost.then(|| "the record is lost".to_owned())
}

/// What to say of an action that touched no log.
fn quiet_clause(scenario: &Scenario, action: &Action, first: bool) -> Option<String> {
    match action {
        ActorModelAction::Deliver { dst, msg: Msg::ProducerIdIs(id), .. } => {
            Some(format!("{} is given producer id {id}", actor_name(scenario, *dst)))
        }
        ActorModelAction::Deliver { msg: Msg::InitProducerId | Msg::Fetch(_) | Msg::Fetched(_), .. }
        | ActorModelAction::Timeout(_, Timer::NextStep) => None,
        ActorModelAction::Deliver { msg, .. } if msg.is_metadata() => None,
        _ if first => Some(action_line(scenario, action)),
        _ => None,
    }
}

fn effect_clause(scenario: &Scenario, actor: usize, effect: &Effect) -> Option<String> {
    let here = scenario.directory.broker(actor)?;
    Some(match effect {
        Effect::Append { batch: b, outcome: Outcome::Appended(at), origin: Origin::StoppingMirror }
            if matches!(b.kind, Kind::Marker { .. }) =>
        {
            format!("{here} ends {}'s open transaction itself: {} at offset {at}", author(scenario, b), batch(b))
        }
        Effect::Append { batch: b, outcome, .. } => append_clause(scenario, here, b, *outcome),
        Effect::Copy { from, offset, sent, stored, outcome } => copy_clause(scenario, here, *from, *offset, sent, stored, *outcome),
        Effect::Truncate { to, why } => match why {
            TruncateWhy::StopToLso => format!("{here} drops what is not stable: its log is truncated to {to}"),
            TruncateWhy::Alignment => format!("{here} aligns with its source: its log is truncated to {to}"),
            TruncateWhy::SourceShorter => format!("{here}'s log is longer than the one it copies: it is truncated to {to}"),
            TruncateWhy::SourceCut => format!("{here}'s log loses its end: it is cut to {to}"),
            TruncateWhy::Diverging => format!("{here}'s log parts from the one it copies: it is truncated to {to}"),
        },
        Effect::MirrorState { to, source } => state_clause(here, *to, *source),
        Effect::LastMirrored(recorded) => {
            let epoch = recorded.epoch.map_or_else(|| "none".to_owned(), |e| e.to_string());
            format!("{here} records how far it has mirrored: offset {}, epoch {epoch}", recorded.offset)
        }
        Effect::HighWatermark(to) if scenario.bounds.followers > 0 || scenario.bounds.tail > 0 => {
            format!("{here}'s high watermark is {to}")
        }
        Effect::HighWatermark(_) => return None,
        Effect::Roll(at) => format!("{here} begins a new segment at {at}"),
        Effect::Lead(epoch) if scenario.bounds.followers > 0 => format!("{here} leads with epoch {epoch}"),
        Effect::Lead(_) => return None,
        Effect::Follow(epoch) => format!("{here} follows under epoch {epoch}"),
        Effect::RaiseEpoch(epoch) => format!("{here} raises its leader epoch to {epoch}"),
        Effect::Crash => format!("{here}'s broker goes down"),
        Effect::Recover { clean: false } => format!("{here} recovers by replaying its log"),
        Effect::Recover { clean: true } => format!("{here} comes back with the state of its last snapshot"),
        Effect::Suspect { .. } => return None,
        Effect::Anomaly(anomaly) => match anomaly {
            Anomaly::SequenceBreakAccepted => "the sequence does not follow, and no one notices".to_owned(),
            Anomaly::LowerEpochAccepted => "its epoch is lower than the one known, and it is accepted".to_owned(),
            Anomaly::ForeignMarker => "the marker ends another producer's transaction".to_owned(),
            Anomaly::FalseDuplicate => "the record is lost".to_owned(),
            Anomaly::ThrewAwayShared => "the source holds what was thrown away".to_owned(),
            Anomaly::FalseRejection => return None,
        },
    })
}

fn copy_clause(
    scenario: &Scenario,
    here: Broker,
    from: Broker,
    offset: Offset,
    sent: &[Batch],
    stored: &[Batch],
    outcome: Outcome,
) -> String {
    let one = |(sent, stored): (&Batch, &Batch)| match stored.kind {
        Kind::Data { .. } | Kind::Marker { .. } if sent.producer_id == stored.producer_id => {
            format!("{} of {}", batch(sent), author(scenario, sent))
        }
        Kind::Data { .. } | Kind::Marker { .. } => {
            format!("{} of {}, stored as {}", batch(sent), author(scenario, sent), batch(stored))
        }
        Kind::Barrier { .. } => format!("{}'s {}", stored.author.for_display().cluster, batch(stored)),
    };
    let what = sent.iter().zip(stored).map(one).collect::<Vec<_>>().join(", then ");
    let verb = if here.cluster == from.cluster { "copies" } else { "mirrors" };
    let several = if sent.len() > 1 {
        format!("offsets {offset} to {} in one append", offset.0 + bump(sent.len()))
    } else {
        format!("offset {offset}")
    };
    match outcome {
        Outcome::Rejected(why) => format!("{here} fetches {several} from {from} but refuses {what}: {}", why.class()),
        _ => format!("{here} {verb} {several} from {from}: {what}"),
    }
}

fn bump(len: usize) -> u8 {
    u8::try_from(len.saturating_sub(1)).unwrap_or(u8::MAX)
}

fn append_clause(scenario: &Scenario, here: Broker, b: &Batch, outcome: Outcome) -> String {
    let who = author(scenario, b);
    match (b.kind, outcome) {
        (Kind::Barrier { .. }, Outcome::Appended(at)) => format!("{here} writes the barrier at offset {at}"),
        (Kind::Barrier { .. }, other) => format!("{here} fails to write the barrier: {other:?}"),
        (Kind::Marker { .. }, Outcome::Appended(at)) => {
            format!("{here}'s coordinator writes {} for {who} at offset {at}", batch(b))
        }
        (Kind::Marker { .. }, Outcome::Rejected(why)) => {
            format!("{here} refuses its own coordinator's {} for {who}: {}", batch(b), why.class())
        }
        (_, Outcome::Appended(at)) => format!("{who} writes {} to {here} at offset {at}", batch(b)),
        (_, Outcome::Duplicate(at)) => {
            format!(
                "{who} sends its new batch {} to {here}, which takes it for a resend of offset {at} and acknowledges it",
                batch(b)
            )
        }
        (_, Outcome::Rejected(why)) => format!("{who} sends {} to {here} and is refused: {}", batch(b), why.class()),
    }
}

fn state_clause(here: Broker, to: MirrorState, source: Option<Cluster>) -> String {
    match (to, source) {
        (MirrorState::Stopping, _) => format!("the operator stops the mirror on {here}: its fetcher is removed"),
        (MirrorState::Stopped, _) => format!("{here} becomes writable"),
        (MirrorState::LogAlignment, Some(s)) => format!("the operator starts {here} mirroring {s}: {here} is read-only now"),
        (MirrorState::Mirroring, _) => format!("{here} starts to fetch"),
        (MirrorState::Failed, _) => format!("the mirror on {here} fails"),
        (MirrorState::LogAlignment, None) => format!("{here} aligns its log"),
    }
}

fn cell(scenario: &Scenario, b: &Batch) -> String {
    let who = b.author.for_display().writer.map_or_else(String::new, |w| format!("({})", scenario.writer_name(w)));
    match b.kind {
        Kind::Data { .. } if b.producer_id.0 == -1 => format!("-1{who}"),
        Kind::Data { .. } => format!("{}{who}", batch(b)),
        Kind::Marker { commit, .. } => format!("{}{}.{}{who}", if commit { "CM" } else { "AB" }, b.producer_id, b.producer_epoch),
        Kind::Barrier { source } => format!("BAR<{source}"),
    }
}

fn row(scenario: &Scenario, broker: Broker, replica: &Replica) -> String {
    let role = match replica.role {
        Role::Follower => "follows",
        _ => replica.mirror.state.name(),
    };
    let mut line = format!("{broker} {role:<13}");
    for b in &replica.durable.log {
        let _ = write!(line, " | {}", cell(scenario, b));
    }
    let mut entries = Vec::new();
    for e in replica.psm.entries() {
        let window: Vec<_> = e.window.as_slice().iter().map(|c| format!("{}@{}", c.sequence, c.offset)).collect();
        let coordinator = if e.coordinator_epoch.0 < 0 { String::new() } else { format!("c{}", e.coordinator_epoch) };
        let txn = e.txn_first_offset.map_or_else(String::new, |o| format!(" txn@{o}"));
        entries.push(format!("{}:e{}[{}]{coordinator}{txn}", e.id, e.epoch, window.join(",")));
    }
    let _ = write!(line, "\n    LSO {} end {}  {{{}}}", replica.last_stable_offset(), replica.log_end(), entries.join(" "));
    line
}

/// The logs and producer states of all clusters, two lines each.
#[must_use]
pub fn picture(scenario: &Scenario, state: &State) -> String {
    scenario.replicas(state).map(|(c, r)| row(scenario, c, r)).collect::<Vec<_>>().join("\n")
}

/// The picture as SVG, for the Explorer.
#[must_use]
pub fn svg(scenario: &Scenario, state: &State) -> String {
    let text = picture(scenario, state);
    let mut lines = String::new();
    let mut width = 0;
    let mut height = 10;
    for line in text.lines() {
        height += 18;
        width = width.max(line.chars().count() * 8 + 20);
        let escaped = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = write!(lines, "<text x='10' y='{height}' xml:space='preserve'>{escaped}</text>");
    }
    format!(
        "<svg version='1.1' xmlns='http://www.w3.org/2000/svg' width='{width}' height='{}' font-family='monospace' font-size='13'>{lines}</svg>",
        height + 12
    )
}
