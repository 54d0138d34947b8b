#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Sets of magic 1 that old versions of the cleaner wrote with records of magic 0 in them.

use cleanslate_log::record::AnyBatchReader;

use super::cleaning::Cleaned;
use crate::upstream::legacy::{follow_bytes, wrongly_cleaned};
use crate::upstream::support::NOW;

/// One set with duplicates, and one that adds keys.
#[test]
fn test_clean_corrupt_message_set() {
    let mut log = Cleaned::new();
    follow_bytes(&mut log.log, wrongly_cleaned(25, &["0", "1", "0", "1"])).unwrap();
    follow_bytes(&mut log.log, wrongly_cleaned(50, &["3", "4"])).unwrap();
    log.roll().clean(NOW);
    let records: Vec<_> = log.log.batches().unwrap().iter().flat_map(|batch| batch.records().unwrap()).collect();
    let values: Vec<i64> =
        records.iter().map(|r| std::str::from_utf8(r.value.as_ref().unwrap()).unwrap().parse().unwrap()).collect();
    let offsets: Vec<i64> = records.iter().map(|record| record.offset.get()).collect();
    assert_eq!((values, offsets), (vec![27, 28, 50, 51], vec![27, 28, 50, 51]));
}

#[test]
fn test_client_handling_of_corrupt_message_set() {
    for (first, keys) in [(50, ["3", "4", "5"].as_slice()), (0, ["3"].as_slice())] {
        for batch in AnyBatchReader::new(wrongly_cleaned(first, keys)) {
            let batch = batch.unwrap();
            batch.ensure_valid().unwrap();
            for record in batch.records().unwrap() {
                assert_eq!(record.value.unwrap(), record.offset.to_string().as_bytes());
            }
        }
    }
}
