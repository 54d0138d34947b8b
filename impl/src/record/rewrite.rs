//! Batches made from batches: restamped, mapped, emptied.

use super::batch::RecordBatch;
use super::header::{Attributes, BatchHeader, MAGIC_V2, MIN_BATCH_LENGTH_V2, TimestampType};
use crate::types::{LeaderEpoch, Offset, ProducerId, TimestampMs};

impl RecordBatch {
    /// The batch at another base offset. The CRC does not cover it.
    #[must_use]
    pub fn with_base_offset(&self, base_offset: Offset) -> Self {
        Self::assemble(BatchHeader { base_offset, ..*self.header() }, self.records_bytes())
    }

    /// The batch with another leader epoch. The CRC does not cover it.
    #[must_use]
    pub fn with_leader_epoch(&self, partition_leader_epoch: LeaderEpoch) -> Self {
        Self::assemble(BatchHeader { partition_leader_epoch, ..*self.header() }, self.records_bytes())
    }

    /// The batch under another producer id, with the CRC that belongs to it.
    #[must_use]
    pub fn with_producer_id(&self, producer_id: ProducerId) -> Self {
        Self::assemble_with_crc(BatchHeader { producer_id, ..*self.header() }, self.records_bytes())
    }

    /// The batch with another timestamp type and max timestamp, with the CRC that belongs to it
    /// (Kafka: `DefaultRecordBatch.setMaxTimestamp`). With append time, that is the time of all records.
    ///
    /// ```
    /// use cleanslate_log::record::{BatchBuilder, TimestampType};
    /// use cleanslate_log::types::{Offset, TimestampMs};
    ///
    /// # fn main() -> Result<(), cleanslate_log::record::EncodeError> {
    /// let batch = BatchBuilder::new(Offset(0)).record(None, None).build()?;
    /// let appended = batch.with_max_timestamp(TimestampType::LogAppendTime, TimestampMs(15));
    /// assert_eq!(appended.timestamp_type(), TimestampType::LogAppendTime);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The `None` that stands for the timestamps of magic 0, as in [`LegacyRecord`](super::LegacyRecord), is none of magic 2:
    ///
    /// ```compile_fail,E0308
    /// use cleanslate_log::record::{BatchBuilder, TimestampType};
    /// use cleanslate_log::types::{Offset, TimestampMs};
    ///
    /// # fn main() -> Result<(), cleanslate_log::record::EncodeError> {
    /// let batch = BatchBuilder::new(Offset(0)).record(None, None).build()?;
    /// let appended = batch.with_max_timestamp(None, TimestampMs(15));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_max_timestamp(&self, timestamp_type: TimestampType, max_timestamp: TimestampMs) -> Self {
        let attributes = self.attributes().with_timestamp_type(timestamp_type);
        Self::assemble_with_crc(BatchHeader { attributes, max_timestamp, ..*self.header() }, self.records_bytes())
    }

    /// What is left of a batch when compaction has removed all its records
    /// (Kafka: `DefaultRecordBatch.writeEmptyHeader`).
    ///
    /// It keeps offsets, producer, sequence and flags, so that the producer's state can still be read from the log, and
    /// the max timestamp. It has no codec, no delete horizon and no base timestamp.
    #[must_use]
    pub fn empty_header(of: &BatchHeader) -> Self {
        let attributes = Attributes::default()
            .with_timestamp_type(of.attributes.timestamp_type())
            .with_transactional(of.attributes.is_transactional())
            .with_control(of.attributes.is_control());
        let header = BatchHeader {
            batch_length: MIN_BATCH_LENGTH_V2,
            magic: MAGIC_V2,
            attributes,
            base_timestamp: TimestampMs::NONE,
            record_count: 0,
            ..*of
        };
        Self::assemble_with_crc(header, &[])
    }
}
