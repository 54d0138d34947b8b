//! What a cleaner keeps from round to round, and what a round did (Kafka: `Cleaner`, `SkimpyOffsetMap`, `CleanerStats`).

use std::collections::HashMap;

use bytes::Bytes;

use crate::types::Offset;

/// A cleaner: each round uses the room of its offset map again, from the beginning
/// ([`super::PartitionLog::compact_with`]).
#[derive(Debug, Default)]
pub struct Cleaner {
    pub(super) map: OffsetMap,
}

impl Cleaner {
    /// A cleaner that has not cleaned yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a cleaning round did (Kafka: `CleanerStats`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CleanerStats {
    /// Bytes of the batches that were looked at to be kept or not.
    pub bytes_read: u64,
    /// Bytes of what was kept of them.
    pub bytes_written: u64,
    /// Their records; those of a batch that went as a whole are not counted.
    pub records_read: u64,
    /// The records that were kept.
    pub records_written: u64,
    /// How full the offset map was, from 0 to 1: a full one ends the round early.
    pub map_utilization: f64,
}

/// The last offset of each key in the dirty part of the log (Kafka: `SkimpyOffsetMap`, which holds hashes of the keys).
#[derive(Debug)]
pub(super) struct OffsetMap {
    offsets: HashMap<Bytes, Offset>,
    max_keys: usize,
    /// The last offset that was looked at; -1 for none.
    pub(super) latest: Offset,
}

impl Default for OffsetMap {
    fn default() -> Self {
        Self { offsets: HashMap::new(), max_keys: 0, latest: Offset::UNKNOWN }
    }
}

impl OffsetMap {
    /// Forgets all keys. From now on there is room for `max_keys`.
    pub(super) fn clear(&mut self, max_keys: usize) {
        self.offsets.clear();
        self.max_keys = max_keys;
        self.latest = Offset::UNKNOWN;
    }

    /// Notes the last offset of a key; tells whether there was room. A full map takes no key, not even one that it has.
    pub(super) fn put(&mut self, key: Bytes, offset: Offset) -> bool {
        let has_room = self.offsets.len() < self.max_keys;
        if has_room {
            self.offsets.insert(key, offset);
            // A map that is full may end within a batch (Kafka: `SkimpyOffsetMap.put`).
            self.latest = offset;
        }
        has_room
    }

    /// Whether this record is the last of its key, as far as the map knows.
    pub(super) fn is_latest(&self, key: &Bytes, offset: Offset) -> bool {
        self.offsets.get(key).is_none_or(|latest| offset >= *latest)
    }

    /// How full the map is, from 0 to 1; one without room is full.
    pub(super) fn utilization(&self) -> f64 {
        if self.max_keys == 0 { 1.0 } else { self.offsets.len() as f64 / self.max_keys as f64 }
    }
}
