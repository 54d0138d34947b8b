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
