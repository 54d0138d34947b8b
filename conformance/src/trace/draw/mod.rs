//! The logs of all replicas as text: one row a replica, one column an offset, the producer states under each row.
//!
//! The same trace always gives the same text. The notation is described in `specs/trace-format.md`.

pub(crate) mod cell;
mod meet;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::format::{ReplicaDecl, ReplicaState, Trace};

pub use cell::{batch_cell, control_name, producers_line};
pub use meet::{Meeting, meetings};

/// The widest line that a drawing has, unless a single cell needs more.
pub const MAX_COLUMNS: usize = 110;

/// Draws the replicas after step `n` (0: at the start).
pub fn draw(trace: &Trace, n: u32) -> String {
    draw_states(&trace.replicas, &states_at(trace, n))
}

/// The state of every replica after step `n`: the newest one that a step up to it tells.
pub fn states_at(trace: &Trace, n: u32) -> BTreeMap<String, ReplicaState> {
    let mut states: BTreeMap<String, ReplicaState> =
        trace.replicas.iter().map(|r| (r.name.clone(), ReplicaState::initial(r.mirrors.is_some()))).collect();
    for step in trace.steps.iter().take_while(|s| s.n <= n) {
        for (replica, state) in &step.state {
            states.insert(replica.clone(), state.clone());
        }
    }
    states
}

/// Draws `replicas` in the order of their declaration, in the given states.
pub fn draw_states(replicas: &[ReplicaDecl], states: &BTreeMap<String, ReplicaState>) -> String {
    let rows: Vec<Row<'_>> = replicas.iter().filter_map(|r| states.get(&r.name).map(|s| Row::new(r, s))).collect();
    let offsets: BTreeSet<i64> = rows.iter().flat_map(|r| r.cells.keys().copied()).collect();
    let head = rows.iter().map(|r| r.title.len()).chain(["offset".len()]).max().unwrap_or_default();
    let mut out = String::new();
    let blocks = blocks(&rows, &offsets, head);
    for (i, block) in blocks.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        draw_block(&mut out, &rows, block, head, i + 1 == blocks.len());
    }
    for (replica, meeting) in rows.iter().flat_map(|r| meetings(r.state).into_iter().map(move |m| (r.name, m))) {
        let producers: Vec<&str> = meeting.producers.iter().map(String::as_str).collect();
        line(
            &mut out,
            &format!("{} on {replica}: {} meet under one id (no barrier between)", meeting.producer_id, producers.join(", ")),
        );
    }
    out
}

/// One replica's row.
struct Row<'a> {
    name: &'a str,
    title: String,
    state: &'a ReplicaState,
    cells: BTreeMap<i64, String>,
}

impl<'a> Row<'a> {
    fn new(replica: &'a ReplicaDecl, state: &'a ReplicaState) -> Self {
        let title = if replica.name == replica.cluster {
            replica.name.clone()
        } else {
            format!("{} (of {})", replica.name, replica.cluster)
        };
        let cells = state.log.iter().map(|e| (e.offset, batch_cell(&e.batch, e.by.as_deref()))).collect();
        Self { name: &replica.name, title, state, cells }
    }

    /// Blank beyond the log, `-` where the log holds the offset but no batch starts there.
    fn cell(&self, offset: i64) -> &str {
        match self.cells.get(&offset) {
            Some(cell) => cell,
            None if (self.state.log_start_offset..self.state.log_end_offset).contains(&offset) => "-",
            None => "",
        }
    }

    fn state_lines(&self) -> [String; 2] {
        let s = self.state;
        let down = if s.up { "" } else { "DOWN " };
        let (state, start, lso, hw, leo) =
            (s.mirror_state.name(), s.log_start_offset, s.last_stable_offset, s.high_watermark, s.log_end_offset);
        let start = if start == 0 { String::new() } else { format!(" start {start}") };
        [format!("{down}{state}{start} LSO {lso} HW {hw} LEO {leo}"), format!("PSM {}", producers_line(&s.producers))]
    }
}

/// A column: an offset and its width in characters.
type Column = (i64, usize);

/// Splits the columns into blocks no wider than [`MAX_COLUMNS`]. There is always one block, if only for the state lines.
fn blocks(rows: &[Row<'_>], offsets: &BTreeSet<i64>, head: usize) -> Vec<Vec<Column>> {
    let mut blocks = Vec::new();
    let mut block: Vec<Column> = Vec::new();
    let mut used = head;
    for &offset in offsets {
        let widest = rows.iter().map(|r| r.cell(offset).len()).max().unwrap_or_default();
        let width = widest.max(offset.to_string().len());
        if !block.is_empty() && used + GAP.len() + width > MAX_COLUMNS {
            blocks.push(std::mem::take(&mut block));
            used = head;
        }
        used += GAP.len() + width;
        block.push((offset, width));
    }
    blocks.push(block);
    blocks
}

const GAP: &str = "  ";

fn draw_block(out: &mut String, rows: &[Row<'_>], columns: &[Column], head: usize, last: bool) {
    let mut header = format!("{:head$}", "offset");
    for (offset, width) in columns {
        let _ = write!(header, "{GAP}{offset:<width$}");
    }
    line(out, &header);
    for row in rows {
        let mut text = format!("{:head$}", row.title);
        for (offset, width) in columns {
            let _ = write!(text, "{GAP}{:<width$}", row.cell(*offset));
        }
        line(out, &text);
        if last {
            for state in row.state_lines() {
                for part in wrap(&state, MAX_COLUMNS - 4) {
                    line(out, &format!("    {part}"));
                }
            }
        }
    }
}

/// Breaks `text` at spaces so that each part fits into `width` if its words do.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    for word in text.split(' ') {
        if !part.is_empty() && part.len() + 1 + word.len() > width {
            parts.push(std::mem::replace(&mut part, "  ".to_owned()));
        } else if !part.is_empty() {
            part.push(' ');
        }
        part.push_str(word);
    }
    parts.push(part);
    parts
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}
