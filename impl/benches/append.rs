//! What reading, building and appending batches costs, beside CRC-32C alone over the same bytes, in one run: `cargo bench -p cleanslate-log`.
//!
//! Each line is the median of several rounds, in nanoseconds a batch and as a multiple of the checksum.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::indexing_slicing, reason = "a bench is a program of its own")]

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{LogConfig, PartitionLog};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::{BatchBuilder, RecordBatch};
use cleanslate_log::storage::MemoryStorage;
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const BATCHES: i32 = 2_000;
const ROUNDS: usize = 9;

fn batch(records: i32, index: i32, base_offset: Offset) -> RecordBatch {
    let mut builder = BatchBuilder::new(base_offset).leader_epoch(LeaderEpoch(0)).timestamp(NOW).producer(
        ProducerId(7),
        ProducerEpoch(0),
        Sequence(index * records),
    );
    for record in 0..records {
        builder = builder.record(Some(&record.to_be_bytes()), Some(&[b'v'; 100]));
    }
    builder.build().unwrap()
}

/// The median of several rounds, in nanoseconds a batch; what a round needs is made outside of the measurement.
fn median<T>(mut setup: impl FnMut() -> T, mut round: impl FnMut(&mut T)) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let mut input = setup();
            let begin = Instant::now();
            round(&mut input);
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(BATCHES)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn main() {
    for records in [1, 10, 100] {
        let sent: Vec<Bytes> = (0..BATCHES).map(|i| batch(records, i, Offset(0)).bytes().clone()).collect();
        let copied: Vec<Bytes> =
            (0..BATCHES).map(|i| batch(records, i, Offset(i64::from(i) * i64::from(records))).bytes().clone()).collect();
        let bytes = sent[0].len();
        let new_log = || PartitionLog::create(MemoryStorage::new(), LogConfig::default(), NOW).unwrap();
        let crc = median(
            || (),
            |()| {
                sent.iter().for_each(|b| {
                    black_box(crc32c::crc32c(&b[21..]));
                })
            },
        );
        let lines = [
            (
                "read and check",
                median(
                    || (),
                    |()| {
                        for bytes in &sent {
                            let (batch, _) = RecordBatch::decode(bytes, 0).unwrap();
                            batch.ensure_valid().unwrap();
                            black_box(batch);
                        }
                    },
                ),
            ),
            (
                "read with records",
                median(
                    || (),
                    |()| {
                        for bytes in &sent {
                            let (batch, _) = RecordBatch::decode(bytes, 0).unwrap();
                            batch.ensure_valid().unwrap();
                            black_box(batch.records().unwrap());
                        }
                    },
                ),
            ),
            ("build", median(|| (), |()| (0..BATCHES).for_each(|i| drop(black_box(batch(records, i, Offset(0))))))),
            (
                "leader append",
                median(new_log, |log| {
                    for bytes in &sent {
                        let (origin, tv) = (AppendOrigin::Client, TransactionVersion::Unknown);
                        log.append_as_leader(bytes.clone(), origin, LeaderEpoch(0), tv, NOW).unwrap();
                    }
                }),
            ),
            (
                "follower append",
                median(new_log, |log| {
                    for bytes in &copied {
                        log.append_as_follower(bytes.clone(), LeaderEpoch(0), ReplicationPath::IntraCluster, NOW).unwrap();
                    }
                }),
            ),
        ];
        println!("{records} records, {bytes} bytes a batch");
        println!("  {:<20} {crc:>9.0} ns", "CRC-32C alone");
        for (name, ns) in lines {
            println!("  {name:<20} {ns:>9.0} ns  {:>6.1} x", ns / crc);
        }
    }
}
