//! Batches and their bytes: traps 1 to 3, and 38.

use bytes::Bytes;
use cleanslate_log::log::{FetchIsolation, LOG_FILE, LogConfig, PartitionLog, Recovery};
use cleanslate_log::record::{ATTRIBUTES_POSITION, BatchReader, MAGIC_POSITION};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, Sequence};

use crate::log_support::{NOW, batch, batches, show};
use crate::support::{decoded, follow, ids, open, patched, stock};

/// Only the low byte of the attributes means anything; a codec that does not exist is noticed when records are read.
#[test]
fn k01_attributes_are_one_byte_and_codecs_are_looked_up_late() {
    let high = decoded(&patched("t5.0#0", &[(ATTRIBUTES_POSITION, 0xff)]));
    assert_eq!((high.is_transactional(), high.is_control(), high.delete_horizon()), (true, false, None));
    assert_eq!(high.records(), batch("t5.0#0", Offset(0)).records());
    for codec in 5..8 {
        let unknown = decoded(&patched("5.0#0", &[(ATTRIBUTES_POSITION + 1, codec)]));
        assert_eq!(unknown.ensure_valid(), Ok(()));
        assert_eq!(unknown.records().unwrap_err().kafka_class(), "IllegalArgumentException");
        // A copy does not read records.
        let mut log = stock(&[]);
        assert_eq!(follow(&mut log.log, unknown.bytes().clone()), Ok(0));
    }
}

/// The CRC begins at the attributes: base offset and leader epoch can be stamped anew without it.
#[test]
fn k02_the_crc_begins_at_the_attributes() {
    let original = batch("5.0#0", Offset(0));
    let moved = original.with_base_offset(Offset(7)).with_leader_epoch(LeaderEpoch(3));
    assert_eq!((moved.stored_crc(), moved.ensure_valid()), (original.stored_crc(), Ok(())));
    for position in ATTRIBUTES_POSITION..original.size_in_bytes() {
        let mut bytes = original.bytes().to_vec();
        bytes[position] ^= 1;
        assert_eq!(decoded(&Bytes::from(bytes)).ensure_valid().unwrap_err().kafka_class(), "CorruptRecordException");
    }
}

/// Behind the largest sequence comes 0, not 1 and not -1.
#[test]
fn k03_sequences_wrap_to_zero() {
    assert_eq!((Sequence::MAX.plus(1), Sequence(0).minus(1)), (Sequence(0), Sequence::MAX));
    let mut log = stock(&["client 5.0#2147483647"]);
    assert_eq!(log.run("client 5.0#1"), "OutOfOrderSequenceException");
    assert_eq!(log.run("client 5.0#0"), "1");
}

/// On a file there have to be 18 bytes for a look at a batch, and a magic above 2 is read as 2: it lies in front of the CRC, so
/// recovery keeps such a batch. In memory it is corrupt.
#[test]
fn k38_a_file_is_read_from_18_bytes_on_and_by_any_magic() {
    let stored = |bytes: Vec<u8>| {
        let mut storage = MemoryStorage::new();
        storage.replace(LOG_FILE, &Bytes::from(bytes)).unwrap();
        // Without an index, a clean start recovers the segment.
        storage.replace("00000000000000000000.index", &Bytes::new()).unwrap();
        storage
    };
    for junk in [1, 17, 18] {
        let storage = stored([&batches("5.0#0", Offset(0))[..], &vec![0; junk]].concat());
        let opened = PartitionLog::open(storage, LogConfig::default(), Recovery::Clean, NOW);
        let end = opened.map(|(log, _)| log.log_end_offset().get()).map_err(|error| error.kafka_class());
        assert_eq!(end, if junk < 18 { Ok(1) } else { Err("CorruptRecordException") }, "{junk}");
    }
    for magic in [3, 100, 127] {
        let mut bytes = batches("5.0#0 5.0#1", Offset(0)).to_vec();
        bytes[MAGIC_POSITION] = magic;
        assert_eq!(
            BatchReader::new(Bytes::from(bytes.clone())).next().unwrap().unwrap_err().kafka_class(),
            "CorruptRecordException"
        );
        let recovered = open(&stored(bytes.clone()), Recovery::Unclean, 0, 0);
        for mut log in [open(recovered.storage(), Recovery::Clean, 0, 0), recovered] {
            assert_eq!((log.log_end_offset(), ids(&log)), (Offset(2), vec![5]), "{magic}");
            assert_eq!(log.fetch(Offset(0), FetchIsolation::LogEnd, usize::MAX, true).unwrap().records, bytes);
        }
    }
    // Below 2 it is an old format, whose CRC covers other bytes.
    let mut bytes = batches("5.0#0 5.0#1", Offset(0)).to_vec();
    for magic in [0, 1, 0x80, 0xff] {
        bytes[MAGIC_POSITION] = magic;
        assert_eq!(show(&open(&stored(bytes.clone()), Recovery::Unclean, 0, 0)), "LEO 0 HW 0 LSO 0 {}", "{magic}");
    }
}
