//! The operations on a single log.

use std::fmt;

use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
use cleanslate_log::record::RecordBatch;
use cleanslate_log::types::{Offset, ProducerId};

use super::picture::Picture;
use crate::adapter::Operation;
use crate::adapter::message::Origin;
use crate::target::codec::{decode, encode};
use crate::target::in_process::InProcess;
use crate::target::{TargetError, one_log};
use crate::trace::draw::cell::batch_cell;
use crate::trace::format::{Batch, Op};

/// What happens to a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogOp {
    /// Its leader appends a batch.
    AppendLeader {
        /// The batch as sent.
        batch: Batch,
        /// Whose append it is.
        origin: Origin,
        /// The transaction version of a marker; -1 for unknown.
        transaction_version: i16,
    },
    /// Batches are copied to its end in one append, under the ids that they have here.
    AppendFollower {
        /// The batches.
        batches: Vec<Batch>,
    },
    /// It is cut to end at this offset.
    Truncate(i64),
    /// Its high watermark becomes this offset.
    HighWatermark(i64),
    /// A new segment begins.
    Roll,
    /// Its process ends and begins again: in good order, or by a crash that loses what was only in memory.
    Restart {
        /// In good order.
        clean: bool,
    },
}

impl LogOp {
    /// The operation of a trace as one on the log that it names, which is about to carry it out. None for what is no business of a log, and
    /// for a crash, which is told with the start that follows.
    ///
    /// # Errors
    /// When the operation makes no sense where the logs stand.
    pub fn of(logs: &InProcess, op: &Op) -> Result<Option<Self>, TargetError> {
        Ok(Some(match op {
            Op::Append { replica, origin, batch, .. } => {
                let (origin, version) = logs.append_as(replica, *origin)?;
                let origin = match origin {
                    AppendOrigin::Client => Origin::Client,
                    AppendOrigin::Coordinator | AppendOrigin::RaftLeader => Origin::Coordinator,
                    AppendOrigin::Replication => Origin::Replication,
                };
                let transaction_version = match version {
                    TransactionVersion::Unknown => -1,
                    TransactionVersion::V0 => 0,
                    TransactionVersion::V1 => 1,
                    TransactionVersion::V2 => 2,
                };
                Self::AppendLeader { batch: batch.clone(), origin, transaction_version }
            }
            Op::Mirror { replica, from, offset, batches, .. } => {
                let source = logs.log(from)?.batches().map_err(|e| TargetError::Failed(e.to_string()))?;
                let rest = source.iter().skip_while(|batch| batch.last_offset().get() < *offset);
                let taken = rest.take(usize::try_from(*batches).unwrap_or(usize::MAX));
                let stored = taken.map(|batch| {
                    let producer_id = logs.stored_id(from, replica, batch.producer_id())?.get();
                    Ok(Batch { producer_id, ..decode(batch)? })
                });
                Self::AppendFollower { batches: stored.collect::<Result<_, TargetError>>()? }
            }
            Op::Truncate { offset, .. } => Self::Truncate(*offset),
            Op::HighWatermark { offset, .. } => Self::HighWatermark(*offset),
            Op::Roll { .. } => Self::Roll,
            Op::Recover { clean, .. } => Self::Restart { clean: *clean },
            Op::Crash { .. }
            | Op::MirrorState { .. }
            | Op::LearnMirrorState { .. }
            | Op::LastMirroredOffset { .. }
            | Op::Lead { .. } => return Ok(None),
        }))
    }

    /// True if it has a result to tell.
    #[must_use]
    pub const fn is_append(&self) -> bool {
        matches!(self, Self::AppendLeader { .. } | Self::AppendFollower { .. })
    }

    /// The batches that it appends, if it does.
    #[must_use]
    pub fn appends(&self) -> &[Batch] {
        match self {
            Self::AppendLeader { batch, .. } => std::slice::from_ref(batch),
            Self::AppendFollower { batches } => batches,
            _ => &[],
        }
    }

    /// The operation as requests on a log with this picture. `serial` makes payloads distinct.
    ///
    /// # Errors
    /// When no batch of Kafka's looks like one of these.
    pub fn requests(&self, log: &str, before: &Picture, serial: u64) -> Result<Vec<Operation>, TargetError> {
        Ok(match self {
            Self::AppendLeader { batch, origin, transaction_version } => {
                vec![one_log::append_leader(log, &encode(batch, serial)?, *origin, *transaction_version)]
            }
            Self::AppendFollower { batches } => {
                let (mut bytes, mut next) = (Vec::new(), Offset(before.state.log_end_offset));
                for batch in batches {
                    let placed = stored(batch, serial)?.with_base_offset(next);
                    next = placed.next_offset();
                    bytes.extend_from_slice(placed.bytes());
                }
                vec![one_log::append_follower(log, &bytes)]
            }
            Self::Truncate(offset) => vec![one_log::truncate(log, *offset)],
            Self::HighWatermark(offset) => vec![one_log::high_watermark(log, *offset)],
            Self::Roll => one_log::roll(log),
            Self::Restart { clean } => {
                vec![one_log::stop(log, *clean), one_log::open(log, *clean, before.state.recovery_point)]
            }
        })
    }
}

/// A batch as a log holds it. A mapped id is given to it as a mirror does: no producer sends one below -1.
fn stored(batch: &Batch, serial: u64) -> Result<RecordBatch, TargetError> {
    if batch.producer_id >= -1 {
        return encode(batch, serial);
    }
    Ok(encode(&Batch { producer_id: 0, ..batch.clone() }, serial)?.with_producer_id(ProducerId(batch.producer_id)))
}

impl fmt::Display for LogOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AppendLeader { batch, origin: Origin::Client, .. } => {
                write!(f, "a client appends {}", batch_cell(batch, None))
            }
            Self::AppendLeader { batch, transaction_version, .. } => {
                write!(f, "the broker appends {} (transaction version {transaction_version})", batch_cell(batch, None))
            }
            Self::AppendFollower { batches } => {
                let cells: Vec<String> = batches.iter().map(|batch| batch_cell(batch, None)).collect();
                write!(f, "{} copied in one append", cells.join(", "))
            }
            Self::Truncate(offset) => write!(f, "the log is cut at {offset}"),
            Self::HighWatermark(offset) => write!(f, "the high watermark becomes {offset}"),
            Self::Roll => f.write_str("a new segment begins"),
            Self::Restart { clean: true } => f.write_str("a clean stop and a start"),
            Self::Restart { clean: false } => f.write_str("a crash and a start"),
        }
    }
}
