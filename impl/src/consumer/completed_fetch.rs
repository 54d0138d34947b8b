//! Handing out what one fetch brought (Kafka: `CompletedFetch`).

use std::collections::BTreeSet;
use std::convert::Infallible;

use bytes::Bytes;

use super::error::{ConsumeError, DeserializationError, Origin};
use super::record::ConsumerRecord;
use crate::log::{AbortedTxn, FetchData, FetchIsolation};
use crate::record::{
    AnyBatch, AnyBatchReader, ControlRecordType, DEFAULT_MAX_DECOMPRESSED_BYTES, DecodeError, Header, LegacyRecord, MAGIC_V2,
    Record, RecordReader, TimestampType, UnreadRecord,
};
use crate::types::{LeaderEpoch, Offset, ProducerId};

/// What a fetch brought, handed out record by record.
///
/// A read-committed consumer ([`FetchIsolation::TxnCommitted`]) skips the records of aborted transactions, which the fetch named
/// (TXN-1). No consumer gets control records (BAR-17). The position goes over what is skipped, and in the end behind the last batch, also where
/// compaction has taken its last records.
#[derive(Debug)]
pub struct CompletedFetch {
    isolation: FetchIsolation,
    check_crcs: bool,
    max_decompressed_bytes: usize,
    batches: AnyBatchReader,
    /// Aborted transactions that begin further on, by their first offsets.
    ahead: Vec<AbortedTxn>,
    /// Producers in an aborted transaction where the consumer is.
    aborted: BTreeSet<ProducerId>,
    current: Option<Current>,
    last_epoch: Option<LeaderEpoch>,
    position: Offset,
    /// A record that a deserializer refused, to be tried again.
    refused: Option<Fetched>,
    corrupt: Option<DecodeError>,
    consumed: bool,
}

/// The batch that is being handed out.
#[derive(Debug)]
struct Current {
    batch: AnyBatch,
    records: Records,
}

/// The records of a batch that are still to come.
#[derive(Debug)]
enum Records {
    /// The batch is skipped.
    None,
    V2(Box<RecordReader>),
    Legacy(std::vec::IntoIter<Result<UnreadRecord, DecodeError>>),
}

/// A record. Before magic 2, it has a checksum of its own, and those in front of the position are not looked at.
enum Next {
    V2(Record),
    Legacy(UnreadRecord),
}

impl Next {
    fn offset(&self) -> Offset {
        match self {
            Self::V2(record) => record.offset,
            Self::Legacy(record) => record.offset,
        }
    }

    fn read(self, check_crc: bool) -> Result<Record, DecodeError> {
        match self {
            Self::V2(record) => Ok(record),
            Self::Legacy(record) => {
                if check_crc {
                    record.ensure_valid()?;
                }
                record.read().map(LegacyRecord::into_record)
            }
        }
    }
}

impl Records {
    /// The next record.
    fn next(&mut self) -> Option<Result<Next, DecodeError>> {
        match self {
            Self::None => None,
            Self::V2(records) => records.next().map(|record| record.map(Next::V2)),
            Self::Legacy(records) => records.next().map(|record| record.map(Next::Legacy)),
        }
    }
}

/// A record with what it has from its batch.
#[derive(Clone, Debug)]
struct Fetched {
    record: Record,
    leader_epoch: Option<LeaderEpoch>,
    timestamp_type: Option<TimestampType>,
}

impl CompletedFetch {
    /// What a fetch from a position on brought. Checksums are checked, as by default in Kafka.
    #[must_use]
    pub fn new(position: Offset, isolation: FetchIsolation, data: FetchData) -> Self {
        let mut ahead = data.aborted.unwrap_or_default();
        ahead.sort_by_key(|aborted| aborted.first_offset);
        Self {
            isolation,
            check_crcs: true,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
            batches: AnyBatchReader::new(data.records),
            ahead,
            aborted: BTreeSet::new(),
            current: None,
            last_epoch: None,
            position,
            refused: None,
            corrupt: None,
            consumed: false,
        }
    }

    /// Sets whether checksums count (Kafka: `check.crcs`).
    #[must_use]
    pub fn check_crcs(self, check_crcs: bool) -> Self {
        Self { check_crcs, ..self }
    }

    /// Sets what a batch may be decompressed to, in bytes; [`DEFAULT_MAX_DECOMPRESSED_BYTES`] without this.
    #[must_use]
    pub fn max_decompressed_bytes(self, max_decompressed_bytes: usize) -> Self {
        Self { max_decompressed_bytes, ..self }
    }

    /// The offset to fetch from next, and to commit: behind everything that was handed out or skipped.
    #[must_use]
    pub fn position(&self) -> Offset {
        self.position
    }

    /// Epoch of the leader that appended the last batch that was come to, to be committed with the position; `None` where there
    /// was none yet, or where it has none.
    #[must_use]
    pub fn last_epoch(&self) -> Option<LeaderEpoch> {
        self.last_epoch
    }

    /// Whether all of it was handed out or skipped.
    #[must_use]
    pub fn is_consumed(&self) -> bool {
        self.consumed
    }

    /// The next records with the bytes of their keys and values.
    ///
    /// # Errors
    /// As [`CompletedFetch::fetch_records`].
    pub fn fetch_raw(&mut self, max_records: i32) -> Result<Vec<ConsumerRecord<Bytes, Bytes>>, ConsumeError<Infallible>> {
        self.fetch_records(max_records, |_, bytes| Ok(bytes.clone()), |_, bytes| Ok(bytes.clone()))
    }

    /// The next records, at most so many; none for 0 and below, as Kafka takes any `max.poll.records`. The deserializers get the
    /// record's headers and the bytes of the key or the value.
    ///
    /// # Errors
    /// When the next record cannot be read, or a deserializer refuses it. Where there are records in front of it, they come first,
    /// and the error with the next call.
    pub fn fetch_records<K, V, E>(
        &mut self,
        max_records: i32,
        key: impl Fn(&[Header], &Bytes) -> Result<K, E>,
        value: impl Fn(&[Header], &Bytes) -> Result<V, E>,
    ) -> Result<Vec<ConsumerRecord<K, V>>, ConsumeError<E>> {
        if let Some(corrupt) = &self.corrupt {
            return Err(ConsumeError::Corrupt { position: self.position, source: corrupt.clone() });
        }
        let mut records = Vec::new();
        for _ in 0..max_records {
            let next = match self.next_fetched() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(_) if !records.is_empty() => break,
                Err(source) => return Err(ConsumeError::Corrupt { position: self.position, source }),
            };
            match deserialized(&next, &key, &value) {
                Ok(record) => {
                    self.position = next.record.offset.plus(1);
                    records.push(record);
                }
                Err(error) => {
                    self.refused = Some(next);
                    if records.is_empty() {
                        return Err(ConsumeError::Deserialization(Box::new(error)));
                    }
                    break;
                }
            }
        }
        Ok(records)
    }

    /// The next record for the application. What could not be read once, cannot be read again.
    fn next_fetched(&mut self) -> Result<Option<Fetched>, DecodeError> {
        if let Some(refused) = self.refused.take() {
            return Ok(Some(refused));
        }
        let next = self.advance();
        self.corrupt = next.as_ref().err().cloned();
        next
    }

    fn advance(&mut self) -> Result<Option<Fetched>, DecodeError> {
        while !self.consumed {
            let Some(current) = &mut self.current else {
                self.next_batch()?;
                continue;
            };
            let Some(next) = current.records.next() else {
                self.next_batch()?;
                continue;
            };
            let next = next?;
            // A fetch begins with a whole batch, of which some may be in front of the position.
            if next.offset() < self.position {
                continue;
            }
            let record = next.read(self.check_crcs)?;
            if is_control(&current.batch) {
                self.position = record.offset.plus(1);
                continue;
            }
            let (leader_epoch, timestamp_type) = (epoch_of(&current.batch), timestamp_type_of(&current.batch));
            return Ok(Some(Fetched { record, leader_epoch, timestamp_type }));
        }
        Ok(None)
    }

    /// Goes on to the next batch that is not skipped. Behind the last one, the position is that of the batch's end, so that records
    /// which compaction has taken from it are not fetched again and again. In an answer that ends in front of the position, that goes
    /// back, as in Kafka.
    fn next_batch(&mut self) -> Result<(), DecodeError> {
        let Some(batch) = self.batches.next().transpose()? else {
            if let Some(last) = self.current.take() {
                self.position = last.batch.next_offset();
            }
            self.consumed = true;
            return Ok(());
        };
        self.last_epoch = epoch_of(&batch);
        // Before magic 2, every record has a checksum of its own.
        if self.check_crcs && batch.magic() >= MAGIC_V2 {
            batch.ensure_valid()?;
        }
        let skipped = self.is_aborted(&batch)?;
        let records = if skipped {
            self.position = batch.next_offset();
            Records::None
        } else {
            records_of(&batch, self.max_decompressed_bytes)?
        };
        self.current = Some(Current { batch, records });
        Ok(())
    }

    /// Whether the batch belongs to an aborted transaction; takes note of those that begin up to its end, and of markers.
    fn is_aborted(&mut self, batch: &AnyBatch) -> Result<bool, DecodeError> {
        let Some(batch) = batch.as_v2().filter(|batch| self.isolation == FetchIsolation::TxnCommitted && batch.has_producer_id())
        else {
            return Ok(false);
        };
        let begun = self.ahead.partition_point(|aborted| aborted.first_offset <= batch.last_offset());
        self.aborted.extend(self.ahead.drain(..begun).map(|aborted| aborted.producer_id));
        if batch.control_type()? == Some(ControlRecordType::Abort) {
            self.aborted.remove(&batch.producer_id());
            return Ok(false);
        }
        Ok(batch.is_transactional() && self.aborted.contains(&batch.producer_id()))
    }
}

fn is_control(batch: &AnyBatch) -> bool {
    batch.as_v2().is_some_and(|batch| batch.is_control())
}

fn epoch_of(batch: &AnyBatch) -> Option<LeaderEpoch> {
    Some(batch.leader_epoch()).filter(|epoch| *epoch != LeaderEpoch::NONE)
}

fn timestamp_type_of(batch: &AnyBatch) -> Option<TimestampType> {
    match batch {
        AnyBatch::V2(batch) => Some(batch.timestamp_type()),
        AnyBatch::Legacy(batch) => batch.timestamp_type(),
    }
}

fn records_of(batch: &AnyBatch, max_decompressed_bytes: usize) -> Result<Records, DecodeError> {
    Ok(match batch {
        AnyBatch::V2(batch) => Records::V2(Box::new(batch.record_reader(max_decompressed_bytes))),
        AnyBatch::Legacy(batch) => Records::Legacy(batch.unread_records(max_decompressed_bytes)?.collect::<Vec<_>>().into_iter()),
    })
}

fn deserialized<K, V, E>(
    fetched: &Fetched,
    key: &impl Fn(&[Header], &Bytes) -> Result<K, E>,
    value: &impl Fn(&[Header], &Bytes) -> Result<V, E>,
) -> Result<ConsumerRecord<K, V>, DeserializationError<E>> {
    let Fetched { record, leader_epoch, timestamp_type } = fetched;
    let refused = |origin, cause| DeserializationError {
        origin,
        offset: record.offset,
        timestamp: record.timestamp,
        timestamp_type: *timestamp_type,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.clone(),
        cause,
    };
    let of_key = record.key.as_ref().map(|bytes| key(&record.headers, bytes)).transpose();
    let of_key = of_key.map_err(|cause| refused(Origin::Key, cause))?;
    let of_value = record.value.as_ref().map(|bytes| value(&record.headers, bytes)).transpose();
    let of_value = of_value.map_err(|cause| refused(Origin::Value, cause))?;
    Ok(ConsumerRecord {
        offset: record.offset,
        leader_epoch: *leader_epoch,
        timestamp: record.timestamp,
        timestamp_type: *timestamp_type,
        key: of_key,
        value: of_value,
        headers: record.headers.clone(),
    })
}
