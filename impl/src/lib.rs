//! A partition log in Apache Kafka's format, its ProducerStateManager, and mirror barriers as a parameter.
//!
//! * [`record`]: record batches of magic 2, byte for byte.
//! * [`storage`]: where bytes are kept: in memory, or in a directory.
//! * [`psm`]: what a log remembers about producers, with the rules of Kafka 4.3.1.
//! * [`barrier`]: what a MIRROR_PID_RESET control batch does to that, as a parameter of the log.
//! * [`log`]: the log: append, read, truncate, recover.
//! * [`mirror`]: a partition that mirrors one of another cluster (KIP-1279): its states, gate and stop sequence.
//!
//! Nothing here reads a clock, starts a thread or takes a lock; times are handed in, in milliseconds. No input makes this
//! crate panic: what cannot be done is an error, named after the exception that Kafka throws in its place.
//!
//! # What is not there yet
//!
//! A log has one segment, without offset and time index. Compressed records are stored but not looked at. Batches of the
//! formats before magic 2 are refused. Transactions are not verified before they begin (KIP-890): everything is as with
//! `transaction.partition.verification.enable=false`.

pub mod barrier;
pub mod log;
pub mod mirror;
pub mod psm;
pub mod record;
pub mod storage;
pub mod types;
