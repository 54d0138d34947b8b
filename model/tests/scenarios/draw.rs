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

/// The drawing.
pub(crate) fn drawing(scenario: &Scenario, state: &State) -> String {
    let replicas: Vec<_> = scenario.replicas(state).collect();
    let longest = replicas.iter().map(|(_, r)| r.durable.log.len()).max().unwrap_or(0);
    let shows_epochs = replicas.iter().any(|(_, r)| r.durable.log.iter().any(|b| b.leader_epoch.0 > 0));
    let cell = |b: &Batch| if shows_epochs { format!("{} e{}", cell(scenario, b), b.leader_epoch) } else { cell(scenario, b) };
    let mut columns: Vec<Vec<String>> = vec![vec![String::new(); replicas.len()]; longest];
    for (row, (_, replica)) in replicas.iter().enumerate() {
        for (offset, batch) in replica.durable.log.iter().enumerate() {
            columns[offset][row] = cell(batch);
        }
    }
    let width = |column: &[String]| column.iter().map(String::len).max().unwrap_or(0).max(1);
    let mut text = format!("{:<17}", "");
    for (offset, column) in columns.iter().enumerate() {
        let _ = write!(text, "  {offset:<w$} ", w = width(column));
    }
    text = text.trim_end().to_owned() + "\n";
    for (row, (broker, replica)) in replicas.iter().enumerate() {
        let mut line = format!("{:<3} {:<13}", broker.to_string(), role(replica));
        for column in &columns {
            let _ = write!(line, "| {:<w$} ", column[row], w = width(column));
        }
        let _ = writeln!(text, "{}", line.trim_end());
        let mut below = format!("last stable offset {}, high watermark {}", replica.last_stable_offset(), replica.high_watermark);
        if shows_epochs && replica.up {
            let _ = write!(below, ", leader epoch {}", replica.epoch);
        }
        let _ = writeln!(text, "    {below}\n    producers: {}", producers(replica));
    }
    text
}
