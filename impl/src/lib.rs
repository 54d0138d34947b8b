//! A partition log in Apache Kafka's format, its ProducerStateManager, and mirror barriers as a parameter.
//!
//! * [`record`]: record batches of magic 2, byte for byte, and those of magic 0 and 1.
//! * [`storage`]: where bytes are kept: in memory, in a directory, or where it fails on demand.
//! * [`psm`]: what a log remembers about producers, with the rules of Kafka 4.3.1.
//! * [`barrier`]: what a MIRROR_PID_RESET control batch does to that, as a parameter of the log.
//! * [`log`]: the log: append, read, truncate, recover.
//! * [`consumer`]: what a consumer makes of what it fetched.
//! * [`dump`]: what Kafka's dump tool prints of the files.
//! * [`log_dir`]: the files of a log directory: checkpoints, the mark of an orderly stop, the topic's id.
//! * [`replication`]: a broker's replica of a partition, and the fetcher of a follower, with the rules of Kafka 4.3.1.
//! * [`mirror`]: a partition that mirrors one of another cluster (KIP-1279): its states, gate and stop sequence.
//!
//! Nothing here reads a clock, starts a thread or takes a lock; times are handed in, in milliseconds. No input makes this
//! crate panic: what cannot be done is an error, named after the exception that Kafka throws in its place.
//!
//! No file makes it allocate more than a multiple of the bytes that are there, and of the bound on decompressed bytes:
//! [`record`](record#memory) has the formula, which holds for all files of a log together when it is opened. There the bound is
//! [`log::LogConfig::max_decompressed_bytes`], and [`record::DEFAULT_MAX_DECOMPRESSED_BYTES`] for a compressed control batch of a
//! producer.
//!
//! # Example
//!
//! A log in a directory: it is created, takes a batch of an idempotent producer, is closed in good order, and opened again. There it
//! still knows the producer: the same batch is a duplicate.
//!
//! ```
//! use cleanslate_log::log::{LogConfig, PartitionLog, Recovery};
//! use cleanslate_log::psm::{AppendOrigin, TransactionVersion};
//! use cleanslate_log::record::BatchBuilder;
//! use cleanslate_log::storage::FileStorage;
//! use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let parent = tempfile::tempdir()?;
//! # let dir = parent.path().join("topic-0");
//! let now = TimestampMs(1_700_000_000_000);
//! let (client, epoch, tv) = (AppendOrigin::Client, LeaderEpoch(0), TransactionVersion::V0);
//! // The leader stamps offset and leader epoch into the batch.
//! let batch = BatchBuilder::new(Offset(0))
//!     .producer(ProducerId(5), ProducerEpoch(0), Sequence(0))
//!     .timestamp(now)
//!     .record(Some(b"key"), Some(b"value"))
//!     .build()?;
//!
//! let mut log = PartitionLog::create(FileStorage::open(&dir)?, LogConfig::default(), now)?;
//! let appended = log.append_as_leader(batch.bytes().clone(), client, epoch, tv, now)?;
//! assert_eq!((appended.first_offset, appended.duplicate), (Offset(0), false));
//! log.close_clean()?;
//!
//! let (mut log, _) = PartitionLog::open(FileStorage::open(&dir)?, LogConfig::default(), Recovery::Clean, now)?;
//! assert_eq!(log.log_end_offset(), Offset(1));
//! let again = log.append_as_leader(batch.bytes().clone(), client, epoch, tv, now)?;
//! assert_eq!((again.first_offset, again.duplicate), (Offset(0), true));
//! # Ok(())
//! # }
//! ```
//!
//! # What is not there
//!
//! There is no remote storage. A log copies and reads batches of the formats before magic 2 as they are, but never makes one;
//! [`record::RecordsBuilder`] does. Index files always end behind their last entry, where Kafka allocates those of the active segment
//! at full size.

pub mod barrier;
pub mod consumer;
pub mod dump;
mod java;
pub mod log;
pub mod log_dir;
pub mod mirror;
pub mod psm;
pub mod record;
pub mod replication;
pub mod storage;
pub mod types;
