#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's FileRecordsTest, through the log that the file belongs to.

use cleanslate_log::log::{FetchIsolation, LOG_FILE, LogConfig, Recovery};
use cleanslate_log::storage::Storage;

use crate::upstream::support::{follow, new_log, placed, plain, read, reopen_files};

/// A batch of which the file has a part only is none, and what is in front of it stays.
#[test]
fn test_iteration_over_partial_and_truncation() {
    let mut log = new_log(&LogConfig::default());
    for offset in 0..3 {
        follow(&mut log, &[placed(plain(1), offset, 0)]).unwrap();
    }
    log.close_clean().unwrap();
    let size = u64::try_from(plain(1).build().unwrap().size_in_bytes()).unwrap();
    for len in 0..=3 * size {
        let mut storage = log.storage().clone();
        storage.truncate(LOG_FILE, len).unwrap();
        for recovery in [Recovery::Clean, Recovery::Unclean] {
            let left = reopen_files(storage.clone(), log.config(), recovery, 0, 0);
            assert_eq!(left.log_end_offset().get(), i64::try_from(len / size).unwrap(), "{len} {recovery:?}");
        }
    }
}

/// A reader gets the first batch that ends at its offset or behind it: below the first one, in a gap, within a batch; none behind
/// the last.
#[test]
fn test_search() {
    let mut log = new_log(&LogConfig::default());
    follow(&mut log, &[placed(plain(1), 5, 0), placed(plain(3), 30, 0), placed(plain(1), 50, 0)]).unwrap();
    for (from, first) in [(0, Some(5)), (5, Some(5)), (6, Some(30)), (31, Some(30)), (32, Some(30)), (33, Some(50)), (51, None)] {
        let found = read(&log, from, FetchIsolation::LogEnd).unwrap();
        assert_eq!(found.first().map(|(base, _)| *base), first, "{from}");
    }
}
