//! Opening a log (Kafka: `LogLoader.load`, `LogSegment.recover`).

use bytes::{Bytes, BytesMut};

use super::config::{LogConfig, Recovery};
use super::epoch_cache::LeaderEpochCache;
use super::error::LogError;
use super::files::{LOG_FILE, TXN_INDEX_FILE};
use super::partition_log::{BatchSlot, PartitionLog};
use super::rebuild::{Replay, scan_failed};
use super::result::RecoveryReport;
use super::scan::{ScanError, Scanner};
use super::txn_index::{AbortedTxn, TXN_INDEX_ENTRY_BYTES};
use crate::barrier::{BarrierRules, Place};
use crate::psm::{BatchFacts, ProducerStateError, ProducerStateManager};
use crate::record::RecordBatch;
use crate::storage::Storage;
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// The base offset of the one segment.
const SEGMENT_BASE: Offset = Offset(0);

impl<S: Storage> PartitionLog<S> {
    /// Opens the log in a storage; one that holds none is given an empty log. The high watermark is the log start
    /// offset afterwards. `now`, in milliseconds, decides which producers of a snapshot have expired.
    ///
    /// # Errors
    /// When the storage fails, a batch that is trusted cannot be read, or the replay of a batch is refused, which no
    /// recovery mends. Unclean recovery never fails for a torn or corrupt batch: it cuts the log there.
    pub fn open(storage: S, config: LogConfig, recovery: Recovery, now: TimestampMs) -> Result<(Self, RecoveryReport), LogError> {
        let mut log = Self::load_metadata(storage, config)?;
        if log.storage.len(LOG_FILE)?.is_none() {
            log.create_files()?;
        }
        let mut report = match recovery {
            Recovery::Clean => log.load_clean()?,
            Recovery::Unclean => log.recover_segment()?,
        };
        if log.epochs.truncate_from_end(log.log_end_offset) {
            log.write_epochs()?;
        }
        ProducerStateManager::remove_stray_snapshots(&mut log.storage, &[SEGMENT_BASE])?;
        let after_clean_stop = recovery == Recovery::Clean;
        let replayed = log.rebuild_producer_state(log.log_end_offset, now, after_clean_stop)?;
        report.replayed_batches = report.replayed_batches.saturating_add(replayed);
        report.batches = log.slots.len();
        report.log_end_offset = log.log_end_offset;
        Ok((log, report))
    }

    /// Finds the batches by their headers and trusts the rest.
    fn load_clean(&mut self) -> Result<RecoveryReport, LogError> {
        let mut scanner = Scanner::new(&self.storage, LOG_FILE, 0)?;
        loop {
            let position = scanner.position();
            let batch = scanner.next();
            match batch.map_err(|error| scan_failed(error, position))? {
                None => break,
                Some(batch) => {
                    check_ascends(&batch, position, self.log_end_offset)?;
                    self.slots.push(BatchSlot::new(&batch, position));
                    self.log_end_offset = batch.next_offset();
                }
            }
        }
        self.valid_bytes = scanner.position();
        let trailing_bytes = scanner.file_len().saturating_sub(self.valid_bytes);
        self.has_trailing_bytes = trailing_bytes > 0;
        self.load_txn_index()?;
        Ok(RecoveryReport { trailing_bytes, ..RecoveryReport::default() })
    }

    fn load_txn_index(&mut self) -> Result<(), LogError> {
        let Some(file) = self.storage.read_all(TXN_INDEX_FILE)? else {
            return Ok(());
        };
        let whole = file.len() / TXN_INDEX_ENTRY_BYTES * TXN_INDEX_ENTRY_BYTES;
        if whole < file.len() {
            // A later entry has to begin where an entry begins.
            self.storage.truncate(TXN_INDEX_FILE, whole as u64)?;
        }
        self.aborted = AbortedTxn::decode_all(file);
        Ok(())
    }

    /// Checks and replays batch by batch, cuts the log at the first bad batch, and writes a snapshot at the end, which
    /// is what producer state is loaded from afterwards: so it holds one batch of each producer.
    fn recover_segment(&mut self) -> Result<RecoveryReport, LogError> {
        for file in crate::psm::snapshot_files(&self.storage)? {
            self.storage.remove(&file.name)?;
        }
        let rules = BarrierRules { policy: self.config.barrier, mirror_source: self.mirror_source.as_deref() };
        let psm = self.config.new_producer_state();
        let mut segment = Recovered::new(psm, std::mem::take(&mut self.epochs));
        let mut scanner = Scanner::new(&self.storage, LOG_FILE, 0)?;
        let corruption = segment.replay(&mut scanner, rules)?;
        let file_len = scanner.file_len();
        self.epochs = segment.epochs;
        self.slots = segment.slots;
        self.aborted = segment.aborted;
        self.valid_bytes = segment.valid_bytes;
        self.log_end_offset = segment.end_offset;
        if file_len > self.valid_bytes {
            self.storage.truncate(LOG_FILE, self.valid_bytes)?;
        }
        self.storage.sync(LOG_FILE)?;
        self.write_txn_index()?;
        self.write_epochs()?;
        segment.psm.set_map_end_offset(segment.end_offset);
        segment.psm.take_snapshot(&mut self.storage)?;
        Ok(RecoveryReport {
            truncated_bytes: file_len.saturating_sub(self.valid_bytes),
            corruption,
            replayed_batches: self.slots.len(),
            ..RecoveryReport::default()
        })
    }

    /// Writes the index as it is in memory; without entries there is no file.
    pub(super) fn write_txn_index(&mut self) -> Result<(), LogError> {
        if self.aborted.is_empty() {
            self.storage.remove(TXN_INDEX_FILE)?;
            return Ok(());
        }
        let mut bytes = BytesMut::with_capacity(self.aborted.len() * TXN_INDEX_ENTRY_BYTES);
        for aborted in &self.aborted {
            bytes.extend_from_slice(&aborted.encode());
        }
        let bytes: Bytes = bytes.freeze();
        self.storage.replace(TXN_INDEX_FILE, &bytes)?;
        Ok(())
    }
}

/// What recovery makes of a segment's bytes.
struct Recovered {
    psm: ProducerStateManager,
    epochs: LeaderEpochCache,
    slots: Vec<BatchSlot>,
    aborted: Vec<AbortedTxn>,
    valid_bytes: u64,
    end_offset: Offset,
}

impl Recovered {
    fn new(psm: ProducerStateManager, epochs: LeaderEpochCache) -> Self {
        Self { psm, epochs, slots: Vec::new(), aborted: Vec::new(), valid_bytes: 0, end_offset: SEGMENT_BASE }
    }

    /// Takes in batches up to the first bad one; returns what is wrong with that one, if it is whole.
    fn replay<S: Storage>(&mut self, scanner: &mut Scanner<'_, S>, rules: BarrierRules<'_>) -> Result<Option<String>, LogError> {
        loop {
            let position = scanner.position();
            let batch = match scanner.next() {
                Ok(None) => return Ok(None),
                Ok(Some(batch)) => batch,
                Err(ScanError::Corrupt(error)) => return Ok(Some(error.to_string())),
                Err(error) => return Err(scan_failed(error, position)),
            };
            if let Err(error) = batch.ensure_valid() {
                return Ok(Some(error.to_string()));
            }
            if let Err(error) = check_ascends(&batch, position, self.end_offset) {
                return Ok(Some(error.to_string()));
            }
            match self.take_in(&batch, rules) {
                Ok(()) => {}
                Err(error) if error.kafka_class() == "InvalidRecordException" => {
                    return Ok(Some(error.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
            self.slots.push(BatchSlot::new(&batch, position));
            self.valid_bytes = scanner.position();
            self.end_offset = batch.next_offset();
        }
    }

    fn take_in(&mut self, batch: &RecordBatch, rules: BarrierRules<'_>) -> Result<(), ProducerStateError> {
        let epoch = batch.leader_epoch();
        if epoch >= LeaderEpoch(0) && self.epochs.latest_epoch().is_none_or(|latest| epoch > latest) {
            // Neither is negative: this cannot be refused.
            let _ = self.epochs.assign(epoch, batch.base_offset());
        }
        let mut replay = Replay::new(rules, Place::SegmentRecovery);
        replay.meet(&mut self.psm, &BatchFacts::from(batch))?;
        let completed = replay.pending.commit(&mut self.psm)?;
        let aborted = completed.iter().filter_map(AbortedTxn::from_completion);
        self.aborted.extend(aborted);
        Ok(())
    }
}

fn check_ascends(batch: &RecordBatch, position: u64, expected: Offset) -> Result<(), LogError> {
    let (base_offset, last_offset) = (batch.base_offset(), batch.last_offset());
    if base_offset >= expected && last_offset >= base_offset && last_offset < Offset(i64::MAX) {
        return Ok(());
    }
    Err(LogError::OffsetsOutOfOrder { position, base_offset, last_offset, expected })
}
