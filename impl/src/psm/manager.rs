//! All producers of one log (Kafka: `ProducerStateManager`).

use std::collections::BTreeMap;

use super::append_info::ProducerAppendInfo;
use super::entry::{BatchMetadata, ProducerStateEntry};
use super::error::ProducerStateError;
use super::facts::{AppendOrigin, BatchFacts, ProducerIdVisibility};
use super::snapshot::{ProducerSnapshot, SnapshotEntry};
use super::table_order::TableOrder;
use super::txn::{CompletedTxn, TxnMetadata};
use super::verification::{VerificationEntry, VerificationGuard, VerificationRequest};
use crate::types::{Offset, OffsetMetadata, ProducerEpoch, ProducerId, TimestampMs};

/// How long a transaction may be open beyond the longest timeout before it counts as late, in milliseconds
/// (Kafka: `LATE_TRANSACTION_BUFFER_MS`).
const LATE_TRANSACTION_BUFFER_MS: i64 = 5 * 60 * 1000;

/// The state of all producers of one log, up to an offset.
///
/// Entries are ordered by producer id, transactions by first offset, so that equal states look alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerStateManager {
    ids: ProducerIdVisibility,
    expiration_ms: i64,
    producers: BTreeMap<ProducerId, ProducerStateEntry>,
    order: TableOrder,
    ongoing: BTreeMap<Offset, TxnMetadata>,
    unreplicated: BTreeMap<Offset, TxnMetadata>,
    verifications: BTreeMap<ProducerId, VerificationEntry>,
    guards_given: u64,
    map_end_offset: Offset,
    pub(super) last_snapshot_offset: Offset,
}

impl ProducerStateManager {
    /// A state without producers at offset 0. `expiration_ms` is Kafka's `producer.id.expiration.ms`.
    #[must_use]
    pub fn new(ids: ProducerIdVisibility, expiration_ms: i64) -> Self {
        Self {
            ids,
            expiration_ms,
            producers: BTreeMap::new(),
            order: TableOrder::default(),
            ongoing: BTreeMap::new(),
            unreplicated: BTreeMap::new(),
            verifications: BTreeMap::new(),
            guards_given: 0,
            map_end_offset: Offset(0),
            last_snapshot_offset: Offset(0),
        }
    }

    /// Changes how long a producer is remembered, in milliseconds (`producer.id.expiration.ms`).
    pub(crate) fn set_expiration(&mut self, expiration_ms: i64) {
        self.expiration_ms = expiration_ms;
    }

    /// Which producer ids state is kept for.
    #[must_use]
    pub fn ids(&self) -> ProducerIdVisibility {
        self.ids
    }

    /// The known producers, by id.
    #[must_use]
    pub fn active_producers(&self) -> &BTreeMap<ProducerId, ProducerStateEntry> {
        &self.producers
    }

    /// What is known of one producer id.
    #[must_use]
    pub fn last_entry(&self, producer_id: ProducerId) -> Option<&ProducerStateEntry> {
        self.producers.get(&producer_id)
    }

    /// The open transactions, by first offset (Kafka: `ongoingTxns`).
    #[must_use]
    pub fn ongoing_transactions(&self) -> &BTreeMap<Offset, TxnMetadata> {
        &self.ongoing
    }

    /// The ended transactions whose marker is not known to be below the high watermark, by first offset
    /// (Kafka: `unreplicatedTxns`).
    #[must_use]
    pub fn unreplicated_transactions(&self) -> &BTreeMap<Offset, TxnMetadata> {
        &self.unreplicated
    }

    /// The state covers all records below this offset.
    #[must_use]
    pub fn map_end_offset(&self) -> Offset {
        self.map_end_offset
    }

    /// Moves the offset up to which the state covers the log (Kafka: `updateMapEndOffset`).
    pub fn set_map_end_offset(&mut self, offset: Offset) {
        self.map_end_offset = offset;
    }

    /// No producers and no unreplicated transactions; open ones do not count (Kafka: `isEmpty`).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty() && self.unreplicated.is_empty()
    }

    /// The first offset that is not both decided and replicated.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        self.first_unstable_offset_metadata().map(|first| first.offset)
    }

    /// As [`Self::first_unstable_offset`], with the place that the append gave; a transaction that was loaded from a
    /// snapshot or replayed has none.
    #[must_use]
    pub fn first_unstable_offset_metadata(&self) -> Option<OffsetMetadata> {
        let firsts = self.ongoing.values().next().into_iter().chain(self.unreplicated.values().next());
        firsts.map(TxnMetadata::first_offset_metadata).min_by_key(|first| first.offset)
    }

    /// The first offset that is not decided: that of the first open transaction.
    #[must_use]
    pub fn first_undecided_offset(&self) -> Option<Offset> {
        self.ongoing.keys().next().copied()
    }

    /// Whether this producer has an open transaction under this epoch.
    #[must_use]
    pub fn has_ongoing_transaction(&self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool {
        self.last_entry(producer_id).is_some_and(|entry| entry.current_txn_first_offset.is_some() && entry.producer_epoch == epoch)
    }

    /// Whether the first open transaction has been open for longer than the longest timeout and a margin of 5 minutes,
    /// judged by the timestamp of its producer's last batch; all in milliseconds.
    #[must_use]
    pub fn has_late_transaction(&self, now: TimestampMs, max_transaction_timeout_ms: i64) -> bool {
        let last_timestamp = self
            .ongoing
            .values()
            .next()
            .and_then(|txn| self.last_entry(txn.producer_id))
            .map_or(-1, |entry| entry.last_timestamp.get());
        let limit = max_transaction_timeout_ms.saturating_add(LATE_TRANSACTION_BUFFER_MS);
        last_timestamp > 0 && now.get().saturating_sub(last_timestamp) > limit
    }

    /// The remembered batch that this one repeats.
    #[must_use]
    pub fn find_duplicate(&self, batch: &BatchFacts) -> Option<&BatchMetadata> {
        self.last_entry(batch.producer_id)?.find_duplicate(batch.producer_epoch, batch.base_sequence, batch.last_sequence)
    }

    /// Begins an append of this producer; nothing changes before [`ProducerStateManager::update`].
    #[must_use]
    pub fn prepare_update(&self, producer_id: ProducerId, origin: AppendOrigin) -> ProducerAppendInfo {
        ProducerAppendInfo::new(producer_id, self.last_entry(producer_id), origin, self.verification(producer_id))
    }

    /// The pending verifications, by producer id.
    #[must_use]
    pub fn verifications(&self) -> &BTreeMap<ProducerId, VerificationEntry> {
        &self.verifications
    }

    /// The pending verification of a producer.
    #[must_use]
    pub fn verification(&self, producer_id: ProducerId) -> Option<&VerificationEntry> {
        self.verifications.get(&producer_id)
    }

    /// How many guards were handed out so far.
    #[must_use]
    pub fn guards_given(&self) -> u64 {
        self.guards_given
    }

    /// Begins a verification, or joins one that is pending; returns its guard. `offset` is for the error only, `now` in
    /// milliseconds.
    ///
    /// # Errors
    /// [`ProducerStateError::InvalidProducerEpoch`] when a higher epoch of the producer is known.
    pub(crate) fn maybe_start_verification(
        &mut self,
        request: &VerificationRequest,
        offset: Offset,
        now: TimestampMs,
    ) -> Result<VerificationGuard, ProducerStateError> {
        let (producer_id, found) = (request.producer_id, request.producer_epoch);
        if let Some(entry) = self.last_entry(producer_id).filter(|entry| found < entry.producer_epoch) {
            return Err(ProducerStateError::InvalidProducerEpoch { producer_id, offset, current: entry.producer_epoch, found });
        }
        if self.has_ongoing_transaction(producer_id, found) {
            return Ok(VerificationGuard::SENTINEL);
        }
        if let Some(pending) = self.verifications.get_mut(&producer_id) {
            pending.join(request);
            return Ok(pending.guard);
        }
        self.guards_given = self.guards_given.saturating_add(1);
        let guard = VerificationGuard(self.guards_given);
        let mut entry = VerificationEntry::new(request, guard, now);
        entry.join(request);
        self.verifications.insert(producer_id, entry);
        Ok(guard)
    }

    /// The transaction that was verified has begun.
    pub(super) fn end_verification(&mut self, producer_id: ProducerId) {
        self.verifications.remove(&producer_id);
    }

    /// Merges what an append made of one producer, after its batches were written.
    pub fn update(&mut self, info: ProducerAppendInfo) {
        let (updated, started) = info.into_parts();
        match self.producers.get_mut(&updated.producer_id) {
            Some(entry) => entry.merge(updated),
            None => self.insert(updated),
        }
        for txn in started {
            self.ongoing.insert(txn.first_offset, txn);
        }
    }

    /// The last stable offset right after this transaction is over, if everything is replicated: the first offset of
    /// another producer's open transaction, else the offset behind the marker.
    #[must_use]
    pub fn last_stable_offset(&self, completed: &CompletedTxn) -> Offset {
        self.ongoing
            .values()
            .find(|txn| txn.producer_id != completed.producer_id)
            .map_or(completed.last_offset.plus(1), |txn| txn.first_offset)
    }

    /// Moves a transaction from the open to the unreplicated ones (Kafka: `completeTxn`).
    ///
    /// # Errors
    /// [`ProducerStateError::CompletedUnknownTxn`] when none that began at this offset is open.
    pub fn complete_txn(&mut self, completed: &CompletedTxn) -> Result<(), ProducerStateError> {
        let mut txn = self.ongoing.remove(&completed.first_offset).ok_or(ProducerStateError::CompletedUnknownTxn {
            producer_id: completed.producer_id,
            first_offset: completed.first_offset,
        })?;
        txn.last_offset = Some(completed.last_offset);
        self.unreplicated.insert(txn.first_offset, txn);
        Ok(())
    }

    /// Forgets the ended transactions whose marker lies below the high watermark.
    pub fn on_high_watermark_updated(&mut self, high_watermark: Offset) {
        self.forget_unreplicated_below(high_watermark);
    }

    /// Follows a log whose beginning was cut (Kafka: `onLogStartOffsetIncremented`). Producers are kept.
    pub(super) fn on_log_start_incremented(&mut self, log_start: Offset) {
        self.forget_unreplicated_below(log_start);
        self.map_end_offset = self.map_end_offset.max(log_start);
    }

    fn forget_unreplicated_below(&mut self, offset: Offset) {
        self.unreplicated.retain(|_, txn| txn.last_offset.is_none_or(|last| last >= offset));
    }

    /// Removes the producers that have been idle, by the time of their last batch, for the expiration time and have no
    /// open transaction; `now` in milliseconds.
    pub fn remove_expired_producers(&mut self, now: TimestampMs) {
        let expiration_ms = self.expiration_ms;
        self.producers.retain(|_, entry| !is_expired(entry, now, expiration_ms));
        self.order.retain(|id| self.producers.contains_key(&id));
        self.verifications.retain(|_, entry| now.get().wrapping_sub(entry.created.get()) < expiration_ms);
    }

    /// Removes the producers whose id is chosen, and nothing that was derived from them.
    pub(crate) fn remove_producers(&mut self, chosen: impl Fn(ProducerId) -> bool) {
        self.producers.retain(|id, _| !chosen(*id));
        self.order.retain(|id| !chosen(id));
    }

    /// Forgets all open transactions as if each had ended before now.
    pub(crate) fn forget_ongoing_transactions(&mut self) {
        self.ongoing.clear();
    }

    /// Forgets all pending verifications: their producers have to ask again.
    pub(crate) fn forget_verifications(&mut self) {
        self.verifications.clear();
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.producers.clear();
        self.order.retain(|_| false);
        self.ongoing.clear();
        self.unreplicated.clear();
    }

    /// The content of a snapshot of the present state, in the order in which Kafka writes it.
    #[must_use]
    pub fn snapshot(&self) -> ProducerSnapshot {
        let mut entries: Vec<SnapshotEntry> = self.producers.values().map(SnapshotEntry::from).collect();
        entries.sort_by_key(|entry| self.order.position(entry.producer_id));
        ProducerSnapshot { entries }
    }

    /// Adds the content of a snapshot, except expired entries. Open transactions come back from the entries.
    pub fn load(&mut self, snapshot: &ProducerSnapshot, now: TimestampMs) {
        for loaded in &snapshot.entries {
            let entry = ProducerStateEntry::from(loaded);
            if is_expired(&entry, now, self.expiration_ms) {
                continue;
            }
            if let Some(first_offset) = entry.current_txn_first_offset {
                let txn = TxnMetadata::open(entry.producer_id, OffsetMetadata::offset_only(first_offset));
                self.ongoing.insert(first_offset, txn);
            }
            self.insert(entry);
        }
    }

    /// Adds an entry, or replaces the one that is there.
    fn insert(&mut self, entry: ProducerStateEntry) {
        if !self.producers.contains_key(&entry.producer_id) {
            self.order.insert(entry.producer_id);
        }
        self.producers.insert(entry.producer_id, entry);
    }
}

fn is_expired(entry: &ProducerStateEntry, now: TimestampMs, expiration_ms: i64) -> bool {
    let idle_ms = now.get().wrapping_sub(entry.last_timestamp.get());
    entry.current_txn_first_offset.is_none() && idle_ms >= expiration_ms
}
