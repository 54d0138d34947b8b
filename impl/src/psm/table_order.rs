//! The order in which Kafka writes the producers of a snapshot: that of a Java `HashMap` with `Long` keys.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::java::{bucket, capacity_behind_put};
use crate::types::ProducerId;

/// Which keys a hash table has got, in which order, and how large that has made it. A table never shrinks. Two states with the
/// same producers are equal, whatever the order.
#[derive(Clone, Debug, Default)]
pub(super) struct TableOrder {
    arrivals: BTreeMap<ProducerId, u64>,
    next: u64,
    capacity: usize,
}

impl PartialEq for TableOrder {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TableOrder {}

impl TableOrder {
    /// A key that was not there is put into the table.
    pub(super) fn insert(&mut self, id: ProducerId) {
        let hash = hash_of(id);
        let same_bucket =
            |capacity| self.arrivals.keys().filter(|known| bucket(hash_of(**known), capacity) == bucket(hash, capacity)).count();
        self.capacity = capacity_behind_put(self.capacity, same_bucket, self.arrivals.len().saturating_add(1));
        self.arrivals.insert(id, self.next);
        self.next = self.next.wrapping_add(1);
    }

    /// Keys leave the table.
    pub(super) fn retain(&mut self, stays: impl Fn(ProducerId) -> bool) {
        self.arrivals.retain(|id, _| stays(*id));
    }

    /// Where a key comes in the iteration of a table that `computeIfAbsent` has filled: within a bucket, those that came later.
    pub(super) fn position_if_computed(&self, id: ProducerId) -> (usize, Reverse<u64>) {
        let (bucket, arrival) = self.position(id);
        (bucket, Reverse(arrival))
    }

    /// Where a key comes in the iteration of a table that `put` has filled: its bucket first; within a bucket, those that
    /// came earlier.
    pub(super) fn position(&self, id: ProducerId) -> (usize, u64) {
        (bucket(hash_of(id), self.capacity), self.arrivals.get(&id).copied().unwrap_or(u64::MAX))
    }
}

/// `Long.hashCode`.
fn hash_of(id: ProducerId) -> u32 {
    let hash = id.get() ^ (id.get().cast_unsigned() >> 32).cast_signed();
    // Java keeps the low half.
    u32::try_from(hash.cast_unsigned() & 0xffff_ffff).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_java() {
        let mut order = TableOrder::default();
        let mut ids = [1000, 3, 17, 1 << 33, 33, 1].map(ProducerId);
        ids.iter().for_each(|id| order.insert(*id));
        ids.sort_by_key(|id| order.position(*id));
        assert_eq!(ids.map(ProducerId::get), [17, 33, 1, 1 << 33, 3, 1000]);
    }

    /// The ninth key of a bucket makes a small table grow.
    #[test]
    fn a_full_bucket_makes_the_table_grow() {
        let mut order = TableOrder::default();
        let mut ids = [0, 16, 32, 48, 64, 80, 96, 112, 128].map(ProducerId);
        ids.iter().for_each(|id| order.insert(*id));
        ids.sort_by_key(|id| order.position(*id));
        assert_eq!(ids.map(ProducerId::get), [0, 32, 64, 96, 128, 16, 48, 80, 112]);
    }
}
