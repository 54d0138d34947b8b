//! What a consumer sees of a barrier: nothing. Its position goes past it, in both isolation levels.
#![cfg(test)]

mod log_support;

use cleanslate_log::barrier::{BarrierPolicy, Clears, OpenAtBarrier};
use cleanslate_log::consumer::CompletedFetch;
use cleanslate_log::log::{CleanOptions, FetchIsolation, LogConfig, PartitionLog};
use cleanslate_log::mirror::{MirrorState, group_offset};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{Offset, TimestampMs};
use log_support::{NOW, TestLog, check};

type Log = PartitionLog<MemoryStorage>;

/// A consumer that fetches and takes all that each fetch brings.
struct Consumer {
    isolation: FetchIsolation,
    max_bytes: usize,
    /// The next offset to fetch; also what it commits.
    position: Offset,
    /// The offsets of the records that the application got.
    received: Vec<i64>,
}

impl Consumer {
    fn new(isolation: FetchIsolation) -> Self {
        Self { isolation, max_bytes: usize::MAX, position: Offset(0), received: Vec::new() }
    }

    /// Fetches until nothing comes any more.
    fn poll(&mut self, log: &mut Log) {
        for _ in 0..100 {
            let before = self.position;
            self.poll_once(log);
            if self.position == before {
                return;
            }
        }
        panic!("no end at {}", self.position);
    }

    fn poll_once(&mut self, log: &mut Log) {
        let data = log.fetch(self.position, self.isolation, self.max_bytes, true).unwrap();
        let mut fetch = CompletedFetch::new(self.position, self.isolation, data);
        while !fetch.is_consumed() {
            // A few at a time, so that batches are handed out in parts.
            self.received.extend(fetch.fetch_raw(2).unwrap().iter().map(|record| record.offset.get()));
        }
        self.position = fetch.position();
    }
}

/// What both kinds of consumer receive, and where they stand then.
#[track_caller]
fn consume(log: &mut Log, uncommitted: (&[i64], i64), committed: (&[i64], i64)) {
    for (isolation, (received, position)) in
        [(FetchIsolation::HighWatermark, uncommitted), (FetchIsolation::TxnCommitted, committed)]
    {
        for max_bytes in [usize::MAX, 1] {
            let mut consumer = Consumer { max_bytes, ..Consumer::new(isolation) };
            consumer.poll(log);
            assert_eq!((&consumer.received[..], consumer.position), (received, Offset(position)), "{isolation:?} {max_bytes}");
        }
    }
}

fn sound() -> LogConfig {
    LogConfig { barrier: BarrierPolicy::SOUND, ..LogConfig::default() }
}

#[test]
fn a_barrier_is_never_data() {
    // To stock Kafka's log it is the same: what a barrier does there is nobody's business but the broker's.
    for config in [sound(), LogConfig::default()] {
        let lines = [("copy 5.0#0x2 | BAR<A | - | BAR | BAR<A", "0..1 | 2 | 3 | 4 | 5"), ("hw 6", "")];
        let mut log = TestLog::new(&config);
        for (line, expected) in lines {
            assert_eq!(log.run(line), expected);
        }
        consume(&mut log.log, (&[0, 1, 3], 6), (&[0, 1, 3], 6));
    }
}

#[test]
fn a_barrier_is_read_up_to_the_bound_of_the_isolation() {
    let mut log =
        check(&sound(), &[("copy 5.0#0 | BAR<A | t6.0#0", "0 | 1 | 2"), ("hw 1", "")], "LEO 3 HW 1 LSO 1 {6:e0[0@2]txn@2}");
    consume(&mut log.log, (&[0], 1), (&[0], 1));
    log.run("hw 2");
    consume(&mut log.log, (&[0], 2), (&[0], 2));
    log.run("hw 3");
    consume(&mut log.log, (&[0, 2], 3), (&[0], 2));
}

/// The stop of the latest text: one ABORT marker for each open transaction, and a barrier.
#[test]
fn what_a_stop_appends_is_stepped_over() {
    let mut log = check(
        &sound(),
        &[
            ("copy 5.0#0 | t6.0#0 | t7.0#0 | 5.0#1", "0 | 1 | 2 | 3"),
            ("coordinator AB6.0", "4"),
            ("coordinator AB7.0", "5"),
            ("coordinator BAR<A", "6"),
            // A local producer with an id that was aborted before.
            ("client t6.0#0", "7"),
            ("coordinator CM6.0", "8"),
            ("hw 9", ""),
        ],
        "LEO 9 HW 9 LSO 9 {6:e0[0@7]c0} aborted 6/1/4/2 aborted 7/2/5/6",
    );
    consume(&mut log.log, (&[0, 1, 2, 3, 7], 9), (&[0, 3, 7], 9));
}

/// A group that had read everything commits the offset behind the barrier: that counts it, and is the same in both levels.
#[test]
fn committed_offsets_count_a_barrier() {
    let mut log = TestLog::new(&sound());
    for sequence in 0..50 {
        log.run(&format!("copy 5.0#{sequence}"));
    }
    log.run("coordinator BAR<A");
    log.run("hw 51");
    for isolation in [FetchIsolation::HighWatermark, FetchIsolation::TxnCommitted] {
        let mut consumer = Consumer::new(isolation);
        consumer.poll(&mut log.log);
        assert_eq!((consumer.received.len(), consumer.position), (50, Offset(51)));
        // It goes on from there, and gets what comes next and nothing twice.
        let mut resumed = Consumer { position: consumer.position, ..Consumer::new(isolation) };
        let mut more = log.clone();
        more.run("client 5.0#0");
        more.run("hw 52");
        resumed.poll(&mut more.log);
        assert_eq!((&resumed.received[..], resumed.position), (&[51][..], Offset(52)));
        // A position on the barrier itself, as a synchronised group may have it, is no trouble either.
        let mut synchronised = Consumer { position: Offset(50), ..Consumer::new(isolation) };
        synchronised.poll(&mut more.log);
        assert_eq!((&synchronised.received[..], synchronised.position), (&[51][..], Offset(52)));
    }
}

/// At the end of the log, of a segment, and where compaction has left a hole behind it.
#[test]
fn a_barrier_next_to_a_boundary() {
    let config = LogConfig { compact: true, ..sound() };
    let mut log = TestLog::new(&config);
    log.run("copy - | BAR<A");
    log.log.roll(NOW).unwrap();
    log.run("copy BAR<A | - | -");
    log.log.roll(NOW).unwrap();
    log.run("hw 5");
    consume(&mut log.log, (&[0, 3, 4], 5), (&[0, 3, 4], 5));
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: Offset(5), now: TimestampMs(NOW.get()), max_keys: 10 };
    log.log.compact(&options).unwrap();
    let kept: Vec<i64> = log.log.batches().unwrap().iter().map(|batch| batch.base_offset().get()).collect();
    assert_eq!(kept, [1, 2, 4]);
    consume(&mut log.log, (&[4], 5), (&[4], 5));
}

/// Why a leader has to refuse a barrier behind an open transaction: entries alone leave readers of committed records where
/// they are for ever, and with the transaction gone they get what nobody has committed.
#[test]
fn an_open_transaction_at_a_barrier_harms_readers_of_committed_records() {
    for (clears, committed) in [(Clears::AllIds, (&[][..], 0)), (Clears::AllIdsAndDerived, (&[0, 2][..], 3))] {
        let policy = BarrierPolicy { clears, open_transactions: OpenAtBarrier::Accept, ..BarrierPolicy::SOUND };
        let mut log = TestLog::new(&LogConfig { barrier: policy, ..LogConfig::default() });
        for line in ["copy t5.0#0", "coordinator BAR<A", "client 6.0#0", "hw 3"] {
            log.run(line);
        }
        consume(&mut log.log, (&[0, 2], 3), committed);
    }
}

#[test]
fn offsets_of_groups_that_come_from_the_source() {
    use MirrorState::{Mirroring, Paused, Stopped, Stopping};
    for (state, at_source, offset) in [
        (Mirroring, 50, Some(50)),
        // Not beyond what was copied, nor in front of what is left.
        (Mirroring, 80, Some(60)),
        (Paused, 5, Some(10)),
        // A group that has read up to the barrier and committed 51 keeps that.
        (Stopping, 50, None),
        (Stopped, 50, None),
    ] {
        assert_eq!(group_offset(state, Offset(at_source), Offset(10), Offset(60)), offset.map(Offset), "{state}");
    }
    // Where the log begins behind its end, as an emptied one may, the start counts.
    assert_eq!(group_offset(Mirroring, Offset(3), Offset(7), Offset(7)), Some(Offset(7)));
}
