//! Clusters that mirror each other, by design: what becomes of two producers that were given the same id.
#![cfg(test)]

mod log_support;

use cleanslate_log::log::{FetchIsolation, LogConfig, PartitionLog};
use cleanslate_log::mirror::{MirrorEffect, MirrorEvent, MirrorFetch, MirrorPartition, NamedDesign, StopCommand, StopSequence};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::ControlRecordType;
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset};
use log_support::{NOW, batch, check, show_producers};

/// A cluster with one replica, so that everything is replicated at once.
struct Cluster {
    name: &'static str,
    partition: MirrorPartition<MemoryStorage>,
    epoch: i32,
}

impl Cluster {
    fn new(name: &'static str, design: &str) -> Self {
        let design = NamedDesign::by_name(design).unwrap();
        let log = check(&design.log_config(LogConfig::default()), &[], "LEO 0 HW 0 LSO 0 {}").log;
        Self { name, partition: MirrorPartition::new(log, design.mirror).unwrap(), epoch: 0 }
    }

    fn log(&self) -> &PartitionLog<MemoryStorage> {
        self.partition.log()
    }

    fn replicate(&mut self) {
        let end = self.log().log_end_offset();
        self.partition.log_mut().update_high_watermark(end);
    }

    /// Clients append data, the coordinator markers; returns the offset, or what came instead.
    fn append(&mut self, spec: &str) -> String {
        let origin = if spec.starts_with("CM") { AppendOrigin::Coordinator } else { AppendOrigin::Client };
        let bytes = batch(spec, Offset(0)).bytes().clone();
        let (epoch, tv) = (LeaderEpoch(self.epoch), TransactionVersion::V1);
        let result = self.partition.append_as_leader(bytes, origin, epoch, tv, NOW);
        self.replicate();
        match result {
            Ok(result) if result.duplicate => "duplicate".to_owned(),
            Ok(result) => result.first_offset.to_string(),
            Err(error) => error.kafka_class().to_owned(),
        }
    }

    /// Begins to mirror, aligned by what the source recorded about this cluster.
    fn start(&mut self, source: &Self) {
        assert!(self.partition.start(source.name).unwrap().contains(&MirrorEffect::AlignLog));
        self.partition.align(&source.partition.metadata().recorded_for(self.name), NOW).unwrap();
        self.partition.apply(MirrorEvent::LogAligned { source_epoch_ahead: false }).unwrap();
        self.fetch(source);
    }

    /// Fetches all there is.
    fn fetch(&mut self, source: &Self) {
        loop {
            match self.partition.fetch(source.log(), usize::MAX).unwrap() {
                MirrorFetch::Records(bytes) if bytes.is_empty() => break,
                MirrorFetch::Records(bytes) => {
                    self.partition.mirror_append(bytes, LeaderEpoch(i32::MAX), NOW).unwrap();
                }
                MirrorFetch::Diverging(diverging) => assert!(self.partition.truncate_diverging(&diverging, NOW).unwrap()),
                MirrorFetch::OutOfRange(reaction) => self.partition.follow_out_of_range(reaction, NOW).unwrap(),
            }
        }
        self.replicate();
    }

    /// Stops; the leader epoch is raised above the log's.
    fn stop(&mut self) {
        self.partition.apply(MirrorEvent::Stop).unwrap();
        let latest = self.log().leader_epochs().latest_epoch().unwrap_or(LeaderEpoch(0));
        self.epoch = latest.get() + 1;
        let mut sequence = StopSequence::new(self.partition.design().stop.clone());
        while let StopCommand::Run(step) = sequence.command() {
            let done = self.partition.run_stop_command(step, LeaderEpoch(self.epoch), NOW).unwrap();
            sequence.done(done.appended);
            self.replicate();
            sequence.high_watermark(self.log().high_watermark());
        }
        assert_eq!(sequence.command(), StopCommand::Done);
    }

    fn producers(&self) -> String {
        show_producers(self.log().producer_state())
    }

    fn bytes(&self) -> bytes::Bytes {
        self.log().read(Offset(0), FetchIsolation::LogEnd, usize::MAX).unwrap()
    }

    /// The offsets of all barriers.
    fn barriers(&self) -> Vec<i64> {
        let batches = self.log().batches().unwrap();
        let barriers = batches.iter().filter(|b| b.control_type() == Ok(Some(ControlRecordType::MirrorPidReset)) && b.is_control());
        barriers.map(|batch| batch.base_offset().get()).collect()
    }
}

/// A to B: a new producer of B gets the id that one of A had.
#[test]
fn active_passive() {
    for (design, appended, producers) in [
        ("raw", "duplicate", "{5:e0[0@0]}"),
        ("negate", "1", "{-7:e0[0@0] 5:e0[0@1]}"),
        ("negate-once", "1", "{-7:e0[0@0] 5:e0[0@1]}"),
        ("negate-once-barrier", "2", "{5:e0[0@2]}"),
        ("raw-barrier-inert", "2", "{5:e0[0@2]}"),
        ("raw-barrier", "2", "{5:e0[0@2]}"),
        ("raw-barrier-abort", "2", "{5:e0[0@2]}"),
        ("sound", "2", "{5:e0[0@2]}"),
    ] {
        let (mut a, mut b) = (Cluster::new("A", design), Cluster::new("B", design));
        a.append("5.0#0");
        b.start(&a);
        assert_eq!(b.append("5.0#0"), "ReadOnlyTopicException");
        b.stop();
        assert_eq!(b.append("5.0#0"), appended, "{design}");
        assert_eq!(b.producers(), producers, "{design}");
    }
}

/// A to B to C: C gets A's producer 5, then B's own. An entry with both remembered mixes two producers.
#[test]
fn a_chain() {
    for (design, on_c) in [
        ("negate", "{-7:e0[0@1] 5:e0[0@0]}"),
        ("negate-once", "{-7:e0[0@0,0@1]}"),
        ("negate-once-barrier", "{-7:e0[0@0,0@2]}"),
        ("raw-barrier-inert", "{5:e0[0@0,0@2]}"),
        ("raw-barrier", "{5:e0[0@2]}"),
        ("raw-barrier-abort", "{5:e0[0@2]}"),
        ("sound", "{5:e0[0@2]}"),
    ] {
        let mut clusters = ["A", "B", "C"].map(|name| Cluster::new(name, design));
        let [a, b, c] = &mut clusters;
        a.append("5.0#0");
        b.start(a);
        c.start(b);
        b.stop();
        b.append("5.0#0");
        c.fetch(b);
        assert_eq!(c.producers(), on_c, "{design}");
        c.stop();
        let barrier = !["negate", "negate-once"].contains(&design);
        assert_eq!(c.barriers().len(), if barrier { 2 } else { 0 }, "{design}");
    }
}

/// A to B, B to A, A to B, and so on: each stop adds one barrier, and each session begins with the same log.
#[test]
fn failback_and_again() {
    for design in ["raw-barrier", "raw-barrier-abort", "sound"] {
        let (mut one, mut other) = (Cluster::new("A", design), Cluster::new("B", design));
        let mut expected = Vec::new();
        assert_eq!(one.append("5.0#0"), "0");
        for turn in 1..=4 {
            other.start(&one);
            // What the mirrored cluster still takes in after the last fetch is lost in the failback.
            let unmirrored = one.append("8.0#0");
            assert_eq!(unmirrored, one.log().log_end_offset().plus(-1).to_string());
            other.stop();
            expected.push(other.log().log_end_offset().get() - 1);
            let local = other.append("5.0#0");
            assert_eq!(local, other.log().log_end_offset().plus(-1).to_string(), "{design} {turn}");
            assert_eq!(other.barriers(), expected, "{design} {turn}");
            std::mem::swap(&mut one, &mut other);
        }
        other.start(&one);
        assert_eq!(other.bytes(), one.bytes(), "{design}");
        assert_eq!(other.producers(), one.producers(), "{design}");
        assert_eq!(other.barriers(), [1, 3, 5, 7], "{design}");
    }
}

/// A to B and A to C, stopped at different times: each writes its own barrier at its own offset.
#[test]
fn fan_out() {
    let mut clusters = ["A", "B", "C"].map(|name| Cluster::new(name, "sound"));
    let [a, b, c] = &mut clusters;
    a.append("5.0#0");
    b.start(a);
    c.start(a);
    b.stop();
    a.append("5.0#1");
    c.fetch(a);
    c.stop();
    assert_eq!((b.barriers(), c.barriers()), (vec![1], vec![2]));
    assert_eq!((b.append("5.0#0"), c.append("5.0#0")), ("2".to_owned(), "3".to_owned()));
    assert_eq!(a.append("5.0#2"), "2", "the source does not notice");
}

/// A transaction that is open at the stop: by the bound of the fetch, it was never there, or it is aborted.
#[test]
fn an_open_transaction_at_the_failover() {
    for (design, end, aborted) in [("raw-barrier", 1, 0), ("raw-barrier-abort", 3, 1), ("sound", 3, 1)] {
        let (mut a, mut b) = (Cluster::new("A", design), Cluster::new("B", design));
        a.append("t5.0#0");
        b.start(&a);
        b.stop();
        assert_eq!(b.log().log_end_offset(), Offset(end), "{design}");
        assert_eq!(b.log().aborted_transactions().count(), aborted, "{design}");
        assert_eq!(b.log().last_stable_offset(), Offset(end), "{design}");
        // The local producer of the same transactional id has its own transaction, with a new id or the same.
        b.append("t5.0#0");
        b.append("CM5.0");
        assert_eq!(b.log().last_stable_offset(), Offset(end + 2), "{design}");
        assert_eq!(b.log().aborted_transactions().count(), aborted, "{design}");
    }
}
