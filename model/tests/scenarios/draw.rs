//! The drawing of a state: every log with its batches in columns by offset, and every replica's producer state.

use std::fmt::Write as _;

use cleanslate_model::batch::{Batch, Kind};
use cleanslate_model::replica::{Replica, Role};
use cleanslate_model::scenario::{Scenario, State};
use cleanslate_model::story;

/// What stands for a batch: what it is, who wrote it, and under which leader epoch if that is not 0.
fn cell(scenario: &Scenario, batch: &Batch) -> String {
    let author = batch.author.for_display();
    let who = author.writer.map_or_else(|| author.cluster.to_string(), |w| scenario.writer_name(w));
    let what = match batch.kind {
        Kind::Data { .. } if batch.producer_id.0 == -1 => "-1".to_owned(),
        Kind::Data { .. } => story::batch(batch),
        Kind::Marker { commit, .. } => {
            format!("{}{}.{}", if commit { "CM" } else { "AB" }, batch.producer_id, batch.producer_epoch)
        }
        Kind::Barrier { .. } => "BAR".to_owned(),
    };
    format!("{what} {who}")
}

/// The log of a replica in one line; none if there is no replica of this name.
pub(crate) fn log(scenario: &Scenario, state: &State, name: &str) -> Option<String> {
    let (_, replica) = scenario.replicas(state).find(|(broker, _)| broker.to_string() == name)?;
    let cells: Vec<String> = replica.durable.log.iter().map(|b| cell(scenario, b)).collect();
    Some(if cells.is_empty() { "empty".to_owned() } else { cells.join(" | ") })
}

fn role(replica: &Replica) -> &'static str {
    match replica.role {
        _ if !replica.up => "down",
        Role::Follower => "follows",
        _ => replica.mirror.state.name(),
    }
}

fn producers(replica: &Replica) -> String {
    let mut entries = Vec::new();
    for e in replica.psm.entries() {
        let mut text = format!("{} epoch {}", e.id, e.epoch);
        let window: Vec<_> = e.window.as_slice().iter().map(|c| format!("#{}@{}", c.sequence, c.offset)).collect();
        if !window.is_empty() {
            let _ = write!(text, " {}", window.join(" "));
        }
        if e.coordinator_epoch.0 >= 0 {
            let _ = write!(text, ", coordinator epoch {}", e.coordinator_epoch);
        }
        if let Some(first) = e.txn_first_offset {
            let _ = write!(text, ", transaction open from {first}");
        }
        entries.push(text);
    }
    if entries.is_empty() { "none".to_owned() } else { entries.join("; ") }
}

/// How wide a drawing of logs may become before it is continued below.
const WIDTH: usize = 110;

/// The drawing: the logs below each other, then what each replica makes of its own.
pub(crate) fn drawing(scenario: &Scenario, state: &State) -> String {
    let mut replicas: Vec<_> = scenario.replicas(state).collect();
    replicas.sort_by_key(|(broker, _)| (broker.cluster.index(), broker.number));
    let shows_epochs = replicas.iter().any(|(_, r)| r.durable.log.iter().any(|b| b.leader_epoch.0 > 0));
    let cell = |b: &Batch| if shows_epochs { format!("{} e{}", cell(scenario, b), b.leader_epoch) } else { cell(scenario, b) };
    let longest = replicas.iter().map(|(_, r)| r.durable.log.len()).max().unwrap_or(0);
    let column = |offset: usize| -> Vec<String> {
        replicas.iter().map(|(_, r)| r.durable.log.get(offset).map_or_else(String::new, &cell)).collect()
    };
    let columns: Vec<Vec<String>> = (0..longest).map(column).collect();
    let names: Vec<String> = replicas.iter().map(|(b, r)| format!("{:<3} {:<13}", b.to_string(), role(r))).collect();
    let mut text = String::new();
    let mut drawn = 0;
    while drawn < longest || text.is_empty() {
        let mut room = WIDTH;
        let fits = columns[drawn..].iter().take_while(|c| {
            let needed = width(c) + 3;
            let fits = needed <= room;
            room = room.saturating_sub(needed);
            fits
        });
        let until = drawn + fits.count();
        text.push_str(&grid(&names, &columns, drawn..until));
        text.push('\n');
        drawn = until.max(drawn + 1);
    }
    for (broker, replica) in &replicas {
        let _ = write!(text, "{broker}: last stable offset {}, ", replica.last_stable_offset());
        let _ = write!(text, "high watermark {}, ", replica.high_watermark);
        if shows_epochs && replica.up {
            let _ = write!(text, "leader epoch {}, ", replica.epoch);
        }
        let _ = writeln!(text, "producers: {}", producers(replica));
    }
    text
}

fn width(column: &[String]) -> usize {
    column.iter().map(String::len).max().unwrap_or(0).max(1)
}

/// The logs from one offset to another.
fn grid(names: &[String], columns: &[Vec<String>], offsets: std::ops::Range<usize>) -> String {
    let mut text = format!("{:<17}", "");
    for (offset, column) in columns.iter().enumerate().take(offsets.end).skip(offsets.start) {
        let _ = write!(text, "  {offset:<w$} ", w = width(column));
    }
    text = text.trim_end().to_owned() + "\n";
    for (row, name) in names.iter().enumerate() {
        let mut line = name.clone();
        for column in &columns[offsets.clone()] {
            let _ = write!(line, "| {:<w$} ", column[row], w = width(column));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
