#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Requests to delete records.

use cleanslate_log::log::LogConfig;
use cleanslate_log::replication::{DeletedRecords, Partition, PartitionConfig, PartitionFetch, Reader};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::Offset;

use super::in_sync::{brokers, high_watermark, seeded};
use super::roles::{append, broker, fetch_follower, word};
use crate::upstream::support::{NOW, new_log};

/// Beyond Kafka's own tests: what is deleted lies below the high watermark; it is deleted everywhere when the low watermark says so.
#[test]
fn records_are_deleted_up_to_the_high_watermark() {
    let mut partition = seeded(10, 1);
    let deleted = |partition: &mut Partition<MemoryStorage>, offset| {
        let result = partition.delete_records_on_leader(Offset(offset));
        let DeletedRecords { requested_offset, low_watermark } = result.map_err(|error| error.kafka_class())?;
        Ok((requested_offset.get(), low_watermark.get()))
    };
    let out_of_range = Err("OffsetOutOfRangeException");
    for offset in [0, -1, i64::MAX, i64::MIN] {
        assert_eq!(deleted(&mut partition, offset), Err("NotLeaderOrFollowerException"));
    }
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0, 1, 2], &[0, 1]), NOW), Ok(true));
    fetch_follower(&mut partition, broker(1), 7, None, 0).unwrap();
    assert_eq!(high_watermark(&partition), 7);
    for offset in [8, i64::MAX, -2, i64::MIN] {
        assert_eq!((deleted(&mut partition, offset), partition.log().log_start_offset()), (out_of_range, Offset(0)), "{offset}");
    }
    // Nothing was heard of the second follower yet; one that is shutting down counts.
    partition.set_unavailable(brokers(&[]), brokers(&[2]));
    assert_eq!(deleted(&mut partition, 3), Ok((3, -1)));
    partition.set_unavailable(brokers(&[2]), brokers(&[]));
    assert_eq!((deleted(&mut partition, 3), partition.log().log_start_offset()), (Ok((3, 0)), Offset(3)));
    let request = PartitionFetch {
        fetch_offset: Offset(7),
        log_start_offset: Offset(4),
        current_leader_epoch: None,
        last_fetched_epoch: None,
        topic_id: None,
    };
    partition.fetch(Reader::Follower(broker(1)), &request, usize::MAX, NOW).unwrap();
    // Nor does it go back.
    assert_eq!((deleted(&mut partition, 1), partition.log().log_start_offset()), (Ok((1, 3)), Offset(3)));
    assert_eq!(deleted(&mut partition, -1), Ok((7, 4)));
    assert_eq!(partition.log().log_start_offset(), Offset(7));
}

/// A leader with two records, both replicated, over a log with these settings.
fn with_policy(delete: bool, compact: bool) -> Partition<MemoryStorage> {
    let log = new_log(&LogConfig { delete, compact, ..LogConfig::default() });
    let mut partition = Partition::new(broker(0), log, PartitionConfig::default());
    assert_eq!(partition.make_leader(&word(0, 5, 1, &[0], &[0]), NOW), Ok(true));
    append(&mut partition, 2);
    assert_eq!(high_watermark(&partition), 2);
    partition
}

#[test]
fn test_delete_records_on_leader_with_empty_policy() {
    let result = with_policy(false, false).delete_records_on_leader(Offset(1)).unwrap();
    assert_eq!(result.requested_offset, Offset(1));
}

/// A topic that is both compacted and deleted from may lose records.
#[test]
fn test_delete_records_on_leader_with_compact_policy() {
    let error = with_policy(false, true).delete_records_on_leader(Offset(1)).unwrap_err();
    assert_eq!(error.kafka_class(), "PolicyViolationException");
    assert_eq!(with_policy(true, true).delete_records_on_leader(Offset(1)).unwrap().requested_offset, Offset(1));
}
