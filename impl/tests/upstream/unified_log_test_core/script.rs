#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! A script of transactions that two upstream classes share: 90 offsets, two aborted transactions.

use cleanslate_log::log::LogConfig;
use cleanslate_log::record::RecordBatch;
use cleanslate_log::types::Offset;

use crate::upstream::support::{Log, end_txn, follow, hw, lead, lead_marker, new_log, placed, plain, produced};

enum Step {
    /// So many records of a producer; of none if it is 0.
    Data(i64, usize),
    End(i64, bool),
}

const STEPS: [Step; 19] = [
    Step::Data(1, 5),
    Step::Data(0, 3),
    Step::Data(2, 2),
    Step::Data(1, 4),
    Step::Data(3, 3),
    Step::Data(0, 2),
    Step::Data(1, 10),
    Step::End(1, false),
    Step::Data(2, 6),
    Step::Data(4, 3),
    Step::Data(0, 10),
    Step::Data(3, 9),
    Step::End(3, true),
    Step::Data(4, 8),
    Step::Data(2, 7),
    Step::End(2, false),
    Step::Data(0, 10),
    Step::Data(4, 4),
    Step::End(4, true),
];

/// Producer, first offset, last offset, last stable offset of the aborted transactions.
pub(crate) const ABORTED: [(i64, i64, i64, i64); 2] = [(1, 0, 29, 8), (2, 8, 74, 36)];

fn batches(mut take: impl FnMut(cleanslate_log::record::BatchBuilder, bool, RecordBatch)) {
    let mut sequences = [0; 5];
    for step in STEPS {
        match step {
            Step::Data(0, count) => take(plain(count), false, end_txn(1, 0, true, 0)),
            Step::Data(id, count) => {
                let sequence = &mut sequences[usize::try_from(id).unwrap()];
                let batch = produced(id, 0, *sequence, count).transactional(true);
                *sequence += i32::try_from(count).unwrap();
                take(batch, false, end_txn(1, 0, true, 0));
            }
            Step::End(id, commit) => take(plain(1), true, end_txn(id, 0, commit, 0)),
        }
    }
}

/// The script as appends of a leader.
pub(crate) fn led(config: &LogConfig) -> Log {
    let mut log = new_log(config);
    batches(|data, is_marker, marker| {
        if is_marker {
            lead_marker(&mut log, &marker).unwrap();
        } else {
            lead(&mut log, data).unwrap();
        }
    });
    assert_eq!(log.log_end_offset(), Offset(90));
    log
}

/// Producer, first offset, last offset, last stable offset of the aborted transactions of a log.
pub(crate) fn aborted(log: &Log) -> Vec<(i64, i64, i64, i64)> {
    let show = |txn: &cleanslate_log::log::AbortedTxn| {
        (txn.producer_id.get(), txn.first_offset.get(), txn.last_offset.get(), txn.last_stable_offset.get())
    };
    log.aborted_transactions().map(show).collect()
}

fn check_unstable(log: &mut Log) {
    assert_eq!(aborted(log), ABORTED);
    for (high_watermark, unstable) in [(0, Some(0)), (30, Some(8)), (75, Some(36)), (90, None)] {
        hw(log, high_watermark);
        assert_eq!(log.first_unstable_offset(), unstable.map(Offset), "{high_watermark}");
    }
}

#[test]
fn test_transaction_index_updated() {
    check_unstable(&mut led(&LogConfig::default()));
}

#[test]
fn test_transaction_index_updated_through_replication() {
    let mut copies = Vec::new();
    let mut next = 0;
    batches(|data, is_marker, marker| {
        let copy = if is_marker { marker.with_base_offset(Offset(next)) } else { placed(data, next, 0) };
        next = copy.next_offset().get();
        copies.push(copy);
    });
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &copies).unwrap();
    assert_eq!(log.log_end_offset(), Offset(90));
    check_unstable(&mut log);
}
