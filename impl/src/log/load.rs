//! Opening a log (Kafka: `LogLoader.load`).

use std::collections::BTreeMap;

use super::config::{LogConfig, MAX_SEGMENT_BYTES, OpenOptions, Recovery};
use super::epoch_cache::LeaderEpochCache;
use super::error::LogError;
use super::files::{CLEANED, DELETED, DELETED_CHECKPOINT, SWAP, SegmentFile, offset_from_file};
use super::index::{OffsetIndex, TimeIndex};
use super::partition_log::PartitionLog;
use super::rebuild::scan_failed;
use super::recover::{Recovered, check_ascends};
use super::result::RecoveryReport;
use super::scan::Scanner;
use super::segment::{BatchSlot, Segment};
use super::txn_index::{AbortedTxn, TXN_INDEX_ENTRY_BYTES};
use crate::psm::{ProducerStateManager, snapshot_files};
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, TimestampMs};

impl<S: Storage> PartitionLog<S> {
    /// Opens the log in a storage; one that holds none is given an empty log. The high watermark is the log start
    /// offset afterwards. `now`, in milliseconds, decides which producers of a snapshot have expired.
    ///
    /// # Errors
    /// When the storage fails, a batch that is trusted cannot be read, or the replay of a batch is refused, which no
    /// recovery mends. Unclean recovery never fails for a torn or corrupt batch: it cuts the log there.
    pub fn open(
        storage: S,
        config: LogConfig,
        options: impl Into<OpenOptions>,
        now: TimestampMs,
    ) -> Result<(Self, RecoveryReport), LogError> {
        let options = options.into();
        let mut log = Self::load_metadata(storage, config)?;
        log.log_start_offset = options.log_start_offset;
        finish_replacements(&mut log.storage)?;
        let mut report = RecoveryReport::default();
        log.load_all_segments(options, &mut report, now)?;
        log.recover_log(options, &mut report, now)?;
        if let Some(active) = log.segments.last_mut() {
            active.touch_indexes(&mut log.storage)?;
        }
        let first_base = log.segments.first().map_or(Offset(0), |first| first.base_offset);
        let cut_end = log.epochs.truncate_from_end(log.log_end_offset);
        let cut_start = log.epochs.truncate_from_start(options.log_start_offset);
        // Kafka takes the entry at the log start for one that has moved there, so that a file of another form gets the usual one.
        let at_start = log.epochs.entries().first().is_some_and(|first| first.start_offset == options.log_start_offset);
        if cut_end || cut_start || at_start {
            log.write_epochs()?;
        }
        log.log_start_offset = options.log_start_offset.max(first_base);
        let bases: Vec<Offset> = log.segments.iter().map(|segment| segment.base_offset).collect();
        ProducerStateManager::remove_stray_snapshots(&mut log.storage, &bases)?;
        let after_clean_stop = options.recovery == Recovery::Clean;
        let replayed = log.rebuild_producer_state(log.log_end_offset, now, after_clean_stop)?;
        log.high_watermark = log.log_start_offset;
        log.high_watermark_was_set = true;
        log.recovery_point = log.recovery_point.max(log.log_start_offset);
        log.refresh_first_unstable_offset();
        log.load_topic_id()?;
        report.replayed_batches = report.replayed_batches.saturating_add(replayed);
        report.batches = log.segments.iter().map(|segment| segment.slots.len()).fold(0, usize::saturating_add);
        report.log_end_offset = log.log_end_offset;
        Ok((log, report))
    }

    /// Loads the segments, as often as it takes until none has to be split.
    fn load_all_segments(&mut self, options: OpenOptions, report: &mut RecoveryReport, now: TimestampMs) -> Result<(), LogError> {
        while let Some(overflows) = self.load_segments(options, report, now)? {
            self.split_files(&overflows, now)?;
            self.segments.clear();
            *report = RecoveryReport::default();
        }
        Ok(())
    }

    /// Loads the segments in order, up to one that has to be split, which is returned. One whose index is gone, or whose transaction index is damaged, is recovered, whatever
    /// the stop was. The batches of a segment that [`Self::recover_log`] is going to check are not looked for.
    fn load_segments(
        &mut self,
        options: OpenOptions,
        report: &mut RecoveryReport,
        now: TimestampMs,
    ) -> Result<Option<Segment>, LogError> {
        let names = self.storage.names()?;
        let mut files: BTreeMap<Offset, Vec<SegmentFile>> = BTreeMap::new();
        for (base, file) in names.iter().filter_map(|name| SegmentFile::parse(name)) {
            files.entry(base).or_default().push(file);
        }
        let holds_recovery_point = files.keys().rev().find(|base| **base <= options.recovery_point);
        let first_unflushed = match options.recovery {
            Recovery::Clean => None,
            Recovery::Unclean => Some(holds_recovery_point.or_else(|| files.keys().next()).copied().unwrap_or_default()),
        };
        for (base, kinds) in files {
            if !kinds.contains(&SegmentFile::Log) {
                kinds.iter().try_for_each(|file| self.storage.remove(&file.name(base)))?;
                continue;
            }
            let mut segment = load_indexes(&mut self.storage, base, now)?;
            if segment.file_bytes > MAX_SEGMENT_BYTES as u64 {
                return Err(LogError::SegmentTooLong { base_offset: base, bytes: segment.file_bytes });
            }
            segment.has_offset_index = kinds.contains(&SegmentFile::OffsetIndex);
            segment.has_time_index = true;
            if !kinds.contains(&SegmentFile::TimeIndex) {
                self.storage.replace(&segment.name(SegmentFile::TimeIndex), &bytes::Bytes::new())?;
            }
            if segment.has_offset_index {
                check_txn_index(&self.storage, &segment)?;
            }
            let is_damaged = segment.aborted.iter().any(|aborted| aborted.last_offset < base);
            if !segment.has_offset_index || is_damaged {
                segment = match self.recover_segment(segment, None, report, now)? {
                    Recovered::Whole(segment, _) => segment,
                    Recovered::Overflows(segment) => return Ok(Some(segment)),
                };
            } else if first_unflushed.is_none_or(|first| base < first) {
                scan(&self.storage, &mut segment, self.config.max_decompressed_bytes)?;
            }
            self.segments.push(segment);
        }
        Ok(None)
    }

    /// Recovers what may not be durable, and finds the log end offset (Kafka: `LogLoader.recoverLog`).
    fn recover_log(&mut self, options: OpenOptions, report: &mut RecoveryReport, now: TimestampMs) -> Result<(), LogError> {
        let trusted = match options.recovery {
            Recovery::Clean => self.segments.len(),
            Recovery::Unclean => self.recover_unflushed(options.recovery_point, report, now)?,
        };
        for segment in self.segments.iter().take(trusted) {
            let trailing_bytes = segment.file_bytes.saturating_sub(segment.valid_bytes);
            report.trailing_bytes = report.trailing_bytes.saturating_add(trailing_bytes);
        }
        let end = self.segments.last().map(Segment::next_offset).filter(|end| *end >= options.log_start_offset);
        if end.is_none() && !self.segments.is_empty() {
            self.forget_everything(now)?;
        }
        if self.segments.is_empty() {
            self.add_segment(options.log_start_offset, now)?;
        }
        self.log_end_offset = self.segments.last().map_or(Offset(0), Segment::next_offset);
        let undisturbed = options.recovery == Recovery::Clean && end.is_some();
        self.recovery_point = if undisturbed { self.log_end_offset } else { options.recovery_point.min(self.log_end_offset) };
        Ok(())
    }

    /// Removes all segments, leader epochs and snapshots: the log start offset lies behind them.
    fn forget_everything(&mut self, now: TimestampMs) -> Result<(), LogError> {
        for segment in std::mem::take(&mut self.segments) {
            self.deleted.delete_segment(&mut self.storage, &segment, now)?;
        }
        self.epochs = LeaderEpochCache::default();
        self.write_epochs()?;
        for file in snapshot_files(&self.storage)? {
            self.storage.remove(&file.name)?;
        }
        Ok(())
    }

    /// Recovers the segments from the one that holds the recovery point on, as often as it takes until none has to be split:
    /// then the recovery point may lie in a later one. Returns how many were not recovered.
    fn recover_unflushed(
        &mut self,
        recovery_point: Offset,
        report: &mut RecoveryReport,
        now: TimestampMs,
    ) -> Result<usize, LogError> {
        let before = report.clone();
        loop {
            let trusted = self.floor_segment(recovery_point).unwrap_or(0);
            let Some(overflows) = self.recover_segments_from(trusted, report, now)? else { return Ok(trusted) };
            self.split_segment(overflows, now)?;
            report.clone_from(&before);
        }
    }

    /// Recovers segments up to one that has to be split; returns its index.
    fn recover_segments_from(
        &mut self,
        first: usize,
        report: &mut RecoveryReport,
        now: TimestampMs,
    ) -> Result<Option<usize>, LogError> {
        let mut unflushed = self.segments.split_off(first.min(self.segments.len()));
        unflushed.reverse();
        while let Some(segment) = unflushed.pop() {
            let (segment, cut) = match self.recover_segment(segment, Some(&unflushed), report, now)? {
                Recovered::Whole(segment, cut) => (segment, cut),
                Recovered::Overflows(segment) => {
                    let index = self.segments.len();
                    self.segments.push(segment);
                    self.segments.extend(unflushed.into_iter().rev());
                    return Ok(Some(index));
                }
            };
            self.segments.push(segment);
            if cut > 0 {
                // What follows a bad batch is gone.
                for rest in unflushed.drain(..) {
                    self.delete_with_snapshot(&rest, now)?;
                }
            }
        }
        Ok(None)
    }
}

/// Finds the batches of a segment by their headers and trusts the rest. A segment may reach into the next one: Kafka does not make
/// a cut durable before the next segment begins, so a power failure can bring back what was cut, and Kafka opens that.
fn scan(storage: &impl Storage, segment: &mut Segment, max_decompressed_bytes: usize) -> Result<(), LogError> {
    let mut expected = Offset(0);
    let name = segment.name(SegmentFile::Log);
    let mut scanner = Scanner::new(storage, &name, 0)?;
    loop {
        let position = scanner.position();
        let Some(batch) = scanner.next().map_err(|error| scan_failed(error, position))? else { return Ok(()) };
        let slot = BatchSlot::new(&batch, position, max_decompressed_bytes);
        check_ascends(&batch, &slot, expected)?;
        segment.take_in(slot);
        expected = batch.next_offset();
    }
}

/// Aborted transactions are of a version that is known. Of a segment that is going to be recovered for want of an offset
/// index, Kafka does not ask.
fn check_txn_index(storage: &impl Storage, segment: &Segment) -> Result<(), LogError> {
    let file = segment.name(SegmentFile::TxnIndex);
    let unknown = AbortedTxn::first_unknown_version(&storage.read_all(&file)?.unwrap_or_default());
    unknown.map_or(Ok(()), |(position, version)| Err(LogError::TxnIndexVersion { file, position, version }))
}

fn load_indexes(storage: &mut impl Storage, base: Offset, now: TimestampMs) -> Result<Segment, StorageError> {
    let mut segment = Segment::new(base, now);
    let file = |file: SegmentFile| storage.read_all(&file.name(base)).map(Option::unwrap_or_default);
    segment.offset_index = OffsetIndex::decode(base, file(SegmentFile::OffsetIndex)?);
    segment.time_index = TimeIndex::decode(base, file(SegmentFile::TimeIndex)?);
    segment.aborted = AbortedTxn::decode_all(file(SegmentFile::TxnIndex)?);
    let whole = (segment.aborted.len() * TXN_INDEX_ENTRY_BYTES) as u64;
    let txn_index = segment.name(SegmentFile::TxnIndex);
    if storage.len(&txn_index)?.is_some_and(|len| len > whole) {
        // A later entry has to begin where an entry begins.
        storage.truncate(&txn_index, whole)?;
    }
    segment.file_bytes = storage.len(&segment.name(SegmentFile::Log))?.unwrap_or(0);
    Ok(segment)
}

/// Finishes or undoes what compaction had begun to replace (Kafka: `removeTempFilesAndCollectSwapFiles`).
fn finish_replacements(storage: &mut impl Storage) -> Result<(), StorageError> {
    let names = storage.names()?;
    // Deleted checkpoints are those of another log, the metadata log of KRaft.
    for name in names.iter().filter(|name| name.ends_with(DELETED) && !name.ends_with(DELETED_CHECKPOINT)) {
        storage.remove(name)?;
    }
    let base_of = |name: &str, suffix: &str| {
        let file = name.strip_suffix(suffix)?;
        SegmentFile::parse(file).map(|(base, kind)| (base, kind, file.to_owned()))
    };
    let cleaned: Vec<_> = names.iter().filter_map(|name| base_of(name, CLEANED).map(|(base, ..)| (base, name))).collect();
    let unfinished = cleaned.iter().map(|(base, _)| *base).min();
    for (_, name) in &cleaned {
        storage.remove(name)?;
    }
    let mut swaps = Vec::new();
    for name in &names {
        let Some((base, kind, target)) = base_of(name, SWAP) else { continue };
        if unfinished.is_some_and(|unfinished| base >= unfinished) {
            storage.remove(name)?;
        } else {
            swaps.push((base, kind, name.clone(), target));
        }
    }
    replace_by_swaps(storage, &names, &swaps)
}

/// The swapped segments take the place of all files within their offsets.
fn replace_by_swaps(
    storage: &mut impl Storage,
    names: &[String],
    swaps: &[(Offset, SegmentFile, String, String)],
) -> Result<(), StorageError> {
    let mut range: Option<(Offset, Offset)> = None;
    for (base, _, name, _) in swaps.iter().filter(|(_, kind, ..)| *kind == SegmentFile::Log) {
        let mut scanner = Scanner::new(storage, name, 0)?;
        let mut end = *base;
        while let Ok(Some(batch)) = scanner.next() {
            end = batch.next_offset();
        }
        range = Some(range.map_or((*base, end), |(low, high)| (low.min(*base), high.max(end))));
    }
    if let Some((low, high)) = range {
        for name in names.iter().filter(|name| !name.ends_with(SWAP)) {
            let offset = offset_from_file(name);
            if offset.is_some_and(|offset| offset >= low && offset < high) {
                storage.remove(name)?;
            }
        }
    }
    for (_, _, name, target) in swaps {
        if let Some(bytes) = storage.read_all(name)? {
            storage.replace(target, &bytes)?;
            storage.remove(name)?;
        }
    }
    Ok(())
}
