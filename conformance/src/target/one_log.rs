//! One log of an adapter: what a log-level operation is in requests, and everything that is seen of the log after it.
//!
//! The batches are seen by a read of the whole log, unless only the high watermark has moved, the rest by the protocol's `state`. Requests
//! and replies are apart, so that many operations can be on their way at once.

use bytes::Bytes;
use cleanslate_log::record::{BatchReader, RecordBatch};

use super::codec::NOW;
use super::{Observed, TargetError};
use crate::adapter::message::{Config, HighWatermarkRule, Isolation, Origin};
use crate::adapter::reply::{Answer, Append, Failure, FailureKind, Reply};
use crate::adapter::requests::Requests;
use crate::adapter::{Hex, Operation};

/// The leader epoch of every append.
const LEADER_EPOCH: i32 = 0;
/// Bytes of one read: in hex, with the rest of a reply, they fit into a line.
const READ_BYTES: u32 = 4 << 20;

/// The requests of one operation, on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    operations: usize,
    is_read: bool,
}

/// What came of an operation: its result with the state afterwards, and the reply to the read that followed.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) reply: Reply,
    pub(crate) read: Option<Reply>,
}

fn failed(error: impl std::fmt::Display) -> TargetError {
    TargetError::Failed(error.to_string())
}

/// A new log.
pub(crate) fn create(log: &str) -> Operation {
    let config = Config { max_message_bytes: Some(1_048_588), ..Config::default() };
    Operation::Create { log: log.to_owned(), now_ms: NOW.get(), config }
}

/// The leader appends a batch.
pub(crate) fn append_leader(log: &str, batch: &RecordBatch, origin: Origin, transaction_version: i16) -> Operation {
    let batch = Hex::from(batch.bytes().as_ref());
    Operation::AppendLeader { log: log.to_owned(), batch, origin, leader_epoch: LEADER_EPOCH, transaction_version, guard: 0 }
}

/// A follower or a mirror appends whole batches with their offsets.
pub(crate) fn append_follower(log: &str, batches: &[u8]) -> Operation {
    Operation::AppendFollower { log: log.to_owned(), batches: Hex::from(batches), leader_epoch: LEADER_EPOCH }
}

/// The log is cut.
pub(crate) fn truncate(log: &str, offset: i64) -> Operation {
    Operation::Truncate { log: log.to_owned(), offset }
}

/// The high watermark becomes `offset`.
pub(crate) fn high_watermark(log: &str, offset: i64) -> Operation {
    Operation::HighWatermark { log: log.to_owned(), offset, rule: HighWatermarkRule::Set }
}

/// A new segment, below which everything is durable.
pub(crate) fn roll(log: &str) -> Vec<Operation> {
    vec![Operation::Roll { log: log.to_owned() }, Operation::Flush { log: log.to_owned() }]
}

/// The end of the log's process: in good order, or with nothing lost but what was only in memory.
pub(crate) fn stop(log: &str, clean: bool) -> Operation {
    let log = log.to_owned();
    if clean { Operation::Close { log } } else { Operation::Crash { log, cuts: Vec::new(), lost: Vec::new() } }
}

/// The log is loaded again.
pub(crate) fn open(log: &str, clean: bool, recovery_point: i64) -> Operation {
    Operation::Open { log: log.to_owned(), clean, recovery_point, log_start: 0, now_ms: None }
}

/// Everything from an offset on, as far as it fits into one read.
pub(crate) fn read(log: &str, offset: i64) -> Operation {
    let isolation = Isolation::LogEnd;
    Operation::Read { log: log.to_owned(), offset, max_bytes: READ_BYTES, isolation, min_one_message: true }
}

/// Asks for the requests of one operation and for everything that can be seen of the log afterwards, without waiting. The log is read
/// from `log_start` on.
pub(crate) fn send(to: &mut impl Requests, log: &str, log_start: i64, operations: &[Operation]) -> Result<Sent, TargetError> {
    for operation in operations {
        to.send(operation, true).map_err(failed)?;
    }
    // The high watermark is no part of the log.
    let is_read = !matches!(operations, [Operation::HighWatermark { .. }]);
    if is_read {
        to.send(&read(log, log_start), false).map_err(failed)?;
    }
    Ok(Sent { operations: operations.len(), is_read })
}

/// What came of an operation. The first of its requests that was refused tells, and else the last; the state is that after the last.
pub(crate) fn receive(from: &mut impl Requests, sent: Sent) -> Result<Seen, TargetError> {
    let (mut last, mut refused): (Option<Reply>, Option<Failure>) = (None, None);
    for _ in 0..sent.operations {
        last = from.receive().map_err(failed)?;
        if let Some(Reply { outcome: Err(failure), .. }) = &last {
            refused.get_or_insert_with(|| failure.clone());
        }
    }
    let read = if sent.is_read { from.receive().map_err(failed)? } else { None };
    let Some(Reply { outcome, state }) = last else { return Err(failed("nothing was asked")) };
    let outcome = match refused {
        Some(Failure { kind: FailureKind::Protocol | FailureKind::Internal, name, message }) => {
            return Err(failed(format!("{name}: {message}")));
        }
        // What followed a refused request may not even have been possible.
        Some(failure) => Err(failure),
        None => outcome,
    };
    Ok(Seen { reply: Reply { outcome, state }, read })
}

/// The whole batches of a read from `offset` on; the last one may be cut off.
pub(crate) fn batches_of(read: Reply, offset: i64) -> Result<Vec<RecordBatch>, TargetError> {
    let bytes = match read.outcome {
        Ok(Answer::Read(read)) => Bytes::from(read.records.0),
        Ok(_) => return Err(failed("a read was answered by something else")),
        Err(failure) => return Err(failed(format!("reading at offset {offset}: {}: {}", failure.name, failure.message))),
    };
    Ok(BatchReader::new(bytes).map_while(Result::ok).collect())
}

/// What came of an append.
pub(crate) fn appended(outcome: Result<Answer, Failure>) -> Result<Observed, TargetError> {
    Ok(match outcome {
        Ok(Answer::Append(Append::Appended { base_offset, last_offset })) => Observed::Appended { base_offset, last_offset },
        Ok(Answer::Append(Append::Duplicate { base_offset, last_offset })) => Observed::Duplicate { base_offset, last_offset },
        Ok(other) => return Err(failed(format!("an append was answered by {other:?}"))),
        Err(failure) => Observed::Error(failure.name),
    })
}

/// What came of an operation that has no result but that it took place.
pub(crate) fn done(outcome: Result<Answer, Failure>) -> Observed {
    match outcome {
        Ok(_) => Observed::Done,
        Err(failure) => Observed::Error(failure.name),
    }
}
