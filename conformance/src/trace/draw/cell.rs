//! The notation of one batch and of one replica's producer states.

use std::fmt::Write as _;

use crate::trace::format::{Batch, CachedBatch, Control, ProducerEntry};

/// One batch: `5.0#3(a1)` is producer id 5 in epoch 0 with sequence 3, written by the real producer `a1`; `t` in front marks
/// transactional data, `CM5.0` and `AB5.0` are markers, `BAR<A` is a barrier over data from A, `-(a1)` has no producer id.
pub fn batch_cell(batch: &Batch, by: Option<&str>) -> String {
    let by = by.map(|by| format!("({by})")).unwrap_or_default();
    let Batch { producer_id, producer_epoch, base_sequence, records, transactional, control } = batch;
    match control {
        Some(Control::MirrorPidReset { source_cluster }) => format!("BAR<{source_cluster}{by}"),
        Some(control) => format!("{}{producer_id}.{producer_epoch}{by}", control_name(control)),
        None => {
            let t = if *transactional { "t" } else { "" };
            let many = if *records > 1 { format!("x{records}") } else { String::new() };
            if *producer_id == -1 {
                format!("{t}-{many}{by}")
            } else {
                format!("{t}{producer_id}.{producer_epoch}#{base_sequence}{many}{by}")
            }
        }
    }
}

/// The short name of a control record.
pub const fn control_name(control: &Control) -> &'static str {
    match control {
        Control::Commit { .. } => "CM",
        Control::Abort { .. } => "AB",
        Control::MirrorPidReset { .. } => "BAR",
    }
}

/// The entries of a ProducerStateManager: `{5:e0[0@0,1@1]c3txn@2}` is id 5 in epoch 0, which holds the batches of sequence 0 at offset
/// 0 and of sequence 1 at offset 1, last saw a marker of coordinator epoch 3, and has a transaction open since offset 2.
pub fn producers_line(producers: &[ProducerEntry]) -> String {
    let entries: Vec<String> = producers.iter().map(entry).collect();
    format!("{{{}}}", entries.join(" "))
}

fn entry(entry: &ProducerEntry) -> String {
    let batches: Vec<String> = entry.batches.iter().map(cached).collect();
    let mut text = format!("{}:e{}[{}]", entry.producer_id, entry.producer_epoch, batches.join(","));
    if entry.coordinator_epoch != -1 {
        let _ = write!(text, "c{}", entry.coordinator_epoch);
    }
    if let Some(first) = entry.txn_first_offset {
        let _ = write!(text, "txn@{first}");
    }
    text
}

fn cached(batch: &CachedBatch) -> String {
    if batch.base_sequence == batch.last_sequence {
        format!("{}@{}", batch.base_sequence, batch.base_offset)
    } else {
        format!("{}..{}@{}", batch.base_sequence, batch.last_sequence, batch.base_offset)
    }
}
