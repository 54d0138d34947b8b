//! Which log is cleaned next, and which may not be (Kafka: `LogCleanerManager`).

use std::collections::{BTreeMap, BTreeSet};

use super::cleanable::{CleanRules, LogToClean};
use super::partition_log::PartitionLog;
use crate::storage::{Storage, StorageError};
use crate::types::{Offset, TimestampMs};

/// What is being done with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CleaningState {
    /// It is cleaned, or old segments of it are deleted.
    InProgress,
    /// As before, but that is to end.
    Aborted,
    /// It must not be cleaned, for so many reasons.
    Paused(u32),
}

/// A step that a log's state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cleaning of the log is in state {state:?}, which does not allow this step")]
pub struct WrongCleaningState {
    /// The state; `None` if nothing is being done.
    pub state: Option<CleaningState>,
}

impl WrongCleaningState {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        "IllegalStateException"
    }
}

/// A log does not tell what of it can be cleaned: it is offline. Who cleans goes on without it when it is marked
/// ([`CleanerManager::mark_uncleanable`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what can be cleaned of a log is not known: {source}")]
pub struct LogCleaningError<K> {
    /// The name of the log.
    pub key: K,
    /// What took it offline.
    pub source: StorageError,
}

impl<K> LogCleaningError<K> {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        "LogCleaningException"
    }
}

/// Logs by some name of theirs, which tells the directory if there are several: where the last cleaning round of each ended, and
/// what is being done with it. It has no threads: who aborts a round waits by itself until it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanerManager<K> {
    /// Where the last round of each log ended (`cleaner-offset-checkpoint`).
    checkpoints: BTreeMap<K, Offset>,
    states: BTreeMap<K, CleaningState>,
    uncleanable: BTreeSet<K>,
}

impl<K: Clone + Ord> CleanerManager<K> {
    /// With what was stored of earlier rounds.
    #[must_use]
    pub fn new(checkpoints: BTreeMap<K, Offset>) -> Self {
        Self { checkpoints, states: BTreeMap::new(), uncleanable: BTreeSet::new() }
    }

    /// Where the last round of each log ended, to be stored.
    #[must_use]
    pub fn checkpoints(&self) -> &BTreeMap<K, Offset> {
        &self.checkpoints
    }

    /// What is being done with a log.
    #[must_use]
    pub fn state(&self, key: &K) -> Option<CleaningState> {
        self.states.get(key).copied()
    }

    /// The compacted log of which the largest share can be cleaned, if it is time to clean one; the first of several. It is in
    /// progress then. Checkpoints that are no offsets of their logs are corrected, whichever log is chosen. `now` is the clock in
    /// milliseconds (Kafka: `grabFilthiestCompactedLog`).
    ///
    /// # Errors
    /// When a log that might be cleaned is offline; none is chosen then.
    pub fn grab_filthiest<'a, S: Storage + 'a>(
        &mut self,
        logs: impl IntoIterator<Item = (K, &'a PartitionLog<S>)>,
        rules: &CleanRules,
        now: TimestampMs,
    ) -> Result<Option<(K, LogToClean)>, LogCleaningError<K>> {
        let mut filthiest: Option<(K, LogToClean)> = None;
        for (key, log) in logs {
            if !log.config().compact || self.states.contains_key(&key) || self.uncleanable.contains(&key) {
                continue;
            }
            log.check_online().map_err(|source| LogCleaningError { key: key.clone(), source })?;
            let offsets = log.cleanable_offsets(self.checkpoints.get(&key).copied(), rules, now);
            if offsets.invalid_checkpoint {
                self.checkpoints.insert(key.clone(), offsets.first_dirty);
            }
            let found = log.log_to_clean(&offsets, rules, now);
            let is_filthier = |(_, known): &(K, LogToClean)| found.cleanable_ratio() > known.cleanable_ratio();
            if found.total_bytes() > 0 && found.is_due(rules) && filthiest.as_ref().is_none_or(is_filthier) {
                filthiest = Some((key, found));
            }
        }
        if let Some((key, _)) = &filthiest {
            self.states.insert(key.clone(), CleaningState::InProgress);
        }
        Ok(filthiest)
    }

    /// The compacted logs of which old segments may be deleted; they are in progress then (Kafka: `deletableLogs`).
    pub fn grab_deletable<'a, S: Storage + 'a>(&mut self, logs: impl IntoIterator<Item = (K, &'a PartitionLog<S>)>) -> Vec<K> {
        let free = logs
            .into_iter()
            .filter(|(key, log)| log.config().compact && !self.states.contains_key(key) && !self.uncleanable.contains(key));
        let keys: Vec<K> = free.map(|(key, _)| key).collect();
        self.states.extend(keys.iter().map(|key| (key.clone(), CleaningState::InProgress)));
        keys
    }

    /// The logs that are not compacted and that nothing is being done with; they are paused then, so that their segments can be
    /// deleted even if they become compacted (Kafka: `pauseCleaningForNonCompactedPartitions`).
    pub fn pause_not_compacted<'a, S: Storage + 'a>(&mut self, logs: impl IntoIterator<Item = (K, &'a PartitionLog<S>)>) -> Vec<K> {
        let free = logs.into_iter().filter(|(key, log)| !log.config().compact && !self.states.contains_key(key));
        let keys: Vec<K> = free.map(|(key, _)| key).collect();
        self.states.extend(keys.iter().map(|key| (key.clone(), CleaningState::Paused(1))));
        keys
    }

    /// A round has ended, where the next one begins. If it was to end, nothing is noted, and the log is paused.
    ///
    /// # Errors
    /// When the log was not in progress.
    pub fn done_cleaning(&mut self, key: &K, end: Offset) -> Result<(), WrongCleaningState> {
        if self.state(key) == Some(CleaningState::InProgress) {
            self.checkpoints.insert(key.clone(), end);
        }
        self.done_deleting(key)
    }

    /// Old segments are deleted. If that was to end, the log is paused.
    ///
    /// # Errors
    /// When the log was not in progress.
    pub fn done_deleting(&mut self, key: &K) -> Result<(), WrongCleaningState> {
        match self.state(key) {
            Some(CleaningState::InProgress) => self.states.remove(key),
            Some(CleaningState::Aborted) => self.states.insert(key.clone(), CleaningState::Paused(1)),
            state => return Err(WrongCleaningState { state }),
        };
        Ok(())
    }

    /// The log must not be cleaned from now on, once a round that goes on has ended (Kafka: `abortAndPauseCleaning`).
    ///
    /// # Errors
    /// When a round was to end already, and has not.
    pub fn abort_and_pause(&mut self, key: &K) -> Result<(), WrongCleaningState> {
        let next = match self.state(key) {
            None => CleaningState::Paused(1),
            Some(CleaningState::InProgress) => CleaningState::Aborted,
            Some(CleaningState::Paused(reasons)) => CleaningState::Paused(reasons.saturating_add(1)),
            state @ Some(CleaningState::Aborted) => return Err(WrongCleaningState { state }),
        };
        self.states.insert(key.clone(), next);
        Ok(())
    }

    /// One reason less not to clean the log (Kafka: `resumeCleaning`).
    ///
    /// # Errors
    /// When the log is not paused.
    pub fn resume(&mut self, key: &K) -> Result<(), WrongCleaningState> {
        match self.state(key) {
            Some(CleaningState::Paused(reasons)) if reasons > 1 => {
                self.states.insert(key.clone(), CleaningState::Paused(reasons.saturating_sub(1)))
            }
            Some(CleaningState::Paused(_)) => self.states.remove(key),
            state => return Err(WrongCleaningState { state }),
        };
        Ok(())
    }

    /// Cleaning the log has failed, and is not tried again (Kafka: `markPartitionUncleanable`).
    pub fn mark_uncleanable(&mut self, key: K) {
        self.uncleanable.insert(key);
    }

    /// Sets or forgets where the last round of a log ended.
    pub fn update_checkpoint(&mut self, key: &K, checkpoint: Option<Offset>) {
        match checkpoint {
            Some(offset) => self.checkpoints.insert(key.clone(), offset),
            None => self.checkpoints.remove(key),
        };
    }

    /// A log was moved, and has another name from now on: where its last round ended, and what is being done with it, go along. That it
    /// could not be cleaned does not: its files are others (Kafka: `alterCheckpointDir`).
    pub fn move_log(&mut self, from: &K, to: &K) {
        if let Some(offset) = self.checkpoints.remove(from) {
            self.checkpoints.insert(to.clone(), offset);
        }
        if let Some(state) = self.states.remove(from) {
            self.states.insert(to.clone(), state);
        }
        self.uncleanable.remove(from);
    }

    /// The storage of some logs has failed: where their rounds ended is no longer known. A round that goes on is to end, and notes
    /// nothing (Kafka: `handleLogDirFailure`).
    pub fn forget_logs(&mut self, is_gone: impl Fn(&K) -> bool) {
        self.checkpoints.retain(|key, _| !is_gone(key));
        self.uncleanable.retain(|key| !is_gone(key));
        let ends = self.states.iter_mut().filter(|(key, state)| **state == CleaningState::InProgress && is_gone(key));
        ends.for_each(|(_, state)| *state = CleaningState::Aborted);
    }

    /// The log was cut: what the last round has cleaned beyond is gone (Kafka: `maybeTruncateCheckpoint`).
    pub fn truncate_checkpoint(&mut self, key: &K, end: Offset) {
        if let Some(checkpoint) = self.checkpoints.get_mut(key) {
            *checkpoint = end.min(*checkpoint);
        }
    }
}
