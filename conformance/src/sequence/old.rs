//! Records of magic 0 and 1, as an old leader would have written them.

use bytes::Bytes;
use cleanslate_log::record::{BatchBuilder, Compression, EncodeError, Magic, RecordsBuilder};
use cleanslate_log::types::{Offset, TimestampMs};

use super::action::Old;
use super::concrete::compression;

/// Whether the records are compressed together.
pub(super) fn is_set(old: &Old) -> bool {
    compression(old.codec) != Compression::None
}

/// The records from an offset on, and the offset behind them. Records without compression are entries of their own.
pub(super) fn old_records(old: &Old, first: Offset, now: TimestampMs, serial: u64) -> Result<(Bytes, Offset), EncodeError> {
    let magic = if old.has_time { Magic::V1 } else { Magic::V0 };
    let count = i64::from(old.records.max(1));
    let mut batch = BatchBuilder::new(first).compression(compression(old.codec)).timestamp(now);
    for index in 0..count {
        let (key, value) = (format!("k{}", serial % 5), format!("{serial}.{index}"));
        // Some are tombstones.
        let value = if serial.is_multiple_of(7) && index == 0 { None } else { Some(value.as_bytes()) };
        batch = batch.record(Some(key.as_bytes()), value);
    }
    // As large as it comes.
    let built = RecordsBuilder::new(magic, batch, usize::MAX)?.build()?;
    Ok((built, first.plus(count)))
}
