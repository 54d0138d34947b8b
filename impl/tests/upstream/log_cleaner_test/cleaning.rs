#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! A log that is cleaned, and what a round leaves of it.

use std::collections::BTreeMap;

use cleanslate_log::log::{CleanOptions, LogConfig, LogError};
use cleanslate_log::record::{BatchBuilder, Record, RecordBatch};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use crate::upstream::support::{DAY_MS, Log, NOW, end_txn, lead, lead_marker, new_log, placed};

/// The time of most rounds, so late that the horizon of what is left lies before the last millisecond there is.
pub(super) const LATE: TimestampMs = TimestampMs(i64::MAX - DAY_MS - 1);
pub(super) const LAST: TimestampMs = TimestampMs(i64::MAX);

/// A log and the sequences of its producers.
pub(super) struct Cleaned {
    pub(super) log: Log,
    sequences: BTreeMap<i64, i32>,
}

/// Records with these keys, whose values are the keys.
pub(super) fn keyed(builder: BatchBuilder, keys: &[i64]) -> BatchBuilder {
    let text = |key: &i64| key.to_string().into_bytes();
    keys.iter().fold(builder.timestamp(NOW), |builder, key| builder.record(Some(&text(key)), Some(&text(key))))
}

impl Cleaned {
    pub(super) fn new() -> Self {
        Self::with(&LogConfig::default())
    }

    pub(super) fn with(config: &LogConfig) -> Self {
        Self { log: new_log(config), sequences: BTreeMap::new() }
    }

    fn produced(&mut self, id: i64, keys: &[i64]) -> BatchBuilder {
        let sequence = self.sequences.entry(id).or_default();
        let builder = BatchBuilder::new(Offset(0)).producer(ProducerId(id), ProducerEpoch(0), Sequence(*sequence));
        *sequence += i32::try_from(keys.len()).unwrap();
        keyed(builder, keys)
    }

    /// One batch in a transaction.
    pub(super) fn txn(&mut self, id: i64, keys: &[i64]) -> &mut Self {
        let batch = self.produced(id, keys).transactional(true);
        lead(&mut self.log, batch).unwrap();
        self
    }

    /// One batch of an idempotent producer.
    pub(super) fn idempotent(&mut self, id: i64, keys: &[i64]) -> &mut Self {
        let batch = self.produced(id, keys);
        lead(&mut self.log, batch).unwrap();
        self
    }

    /// The producer begins at sequence 0 again.
    pub(super) fn forget_sequence(&mut self, id: i64) {
        self.sequences.remove(&id);
    }

    /// A batch of one record for each key, of no producer.
    pub(super) fn plain(&mut self, keys: &[i64]) -> &mut Self {
        for key in keys {
            lead(&mut self.log, keyed(BatchBuilder::new(Offset(0)), &[*key])).unwrap();
        }
        self
    }

    pub(super) fn commit(&mut self, id: i64) -> &mut Self {
        lead_marker(&mut self.log, &end_txn(id, 0, true, 0)).unwrap();
        self
    }

    pub(super) fn abort(&mut self, id: i64) -> &mut Self {
        lead_marker(&mut self.log, &end_txn(id, 0, false, 0)).unwrap();
        self
    }

    pub(super) fn roll(&mut self) -> &mut Self {
        self.log.roll(NOW).unwrap();
        self
    }

    /// A round from an offset up to the active segment with so many keys; where the next one begins.
    pub(super) fn round(&mut self, from: i64, now: TimestampMs, max_keys: usize) -> Result<i64, LogError> {
        let first_uncleanable = self.log.segments().last().unwrap().0;
        let options = CleanOptions { first_dirty: Offset(from), first_uncleanable, now, max_keys };
        self.log.compact(&options).map(Offset::get)
    }

    /// A round from the beginning. Kafka's tests go on from where the last round ended, where nothing is dirty: then Kafka does nothing,
    /// but the tests have an offset map of their own, that does not forget its last offset when it is cleared.
    pub(super) fn clean(&mut self, now: TimestampMs) -> &mut Self {
        self.round(0, now, usize::MAX).unwrap();
        self
    }

    /// A round that sets delete horizons, and one after they have passed.
    pub(super) fn clean_twice(&mut self) -> &mut Self {
        self.clean(NOW).clean(TimestampMs(NOW.get() + DAY_MS + 1))
    }

    fn batches(&self) -> Vec<RecordBatch> {
        self.log.batches().unwrap()
    }

    fn records(&self, with_control: bool) -> Vec<Record> {
        let batches = self.batches().into_iter().filter(|batch| with_control || !batch.is_control());
        let records = batches.flat_map(|batch| batch.records().unwrap());
        records.filter(|record| record.key.is_some() && record.value.is_some()).collect()
    }

    /// The keys of the records that have a value.
    pub(super) fn keys(&self) -> Vec<i64> {
        let key = |record: &Record| std::str::from_utf8(record.key.as_ref().unwrap()).unwrap().parse().unwrap();
        self.records(false).iter().map(key).collect()
    }

    /// The offsets of the records that have key and value, markers among them.
    pub(super) fn offsets(&self) -> Vec<i64> {
        self.records(true).iter().map(|record| record.offset.get()).collect()
    }

    /// The last offset of each batch.
    pub(super) fn last_offsets(&self) -> Vec<i64> {
        self.batches().iter().map(|batch| batch.last_offset().get()).collect()
    }

    pub(super) fn base_offsets(&self) -> Vec<i64> {
        self.batches().iter().map(|batch| batch.base_offset().get()).collect()
    }

    /// The last sequence of each producer.
    pub(super) fn last_sequences(&self) -> Vec<(i64, i32)> {
        let data = self.batches().into_iter().filter(|batch| !batch.is_control() && batch.has_producer_id());
        let last: BTreeMap<i64, i32> = data.map(|batch| (batch.producer_id().get(), batch.last_sequence().get())).collect();
        last.into_iter().collect()
    }

    /// First and last offsets of the aborted transactions.
    pub(super) fn aborted(&self) -> Vec<(i64, i64)> {
        let found = self.log.collect_aborted_transactions(Offset(0), Offset(100));
        found.iter().map(|aborted| (aborted.first_offset.get(), aborted.last_offset.get())).collect()
    }
}

/// A copy of one record at an offset.
pub(super) fn at(key: i64, offset: i64) -> RecordBatch {
    placed(keyed(BatchBuilder::new(Offset(0)), &[key]), offset, LeaderEpoch(0).get())
}
