//! Kafka's record batches: those of magic 2 to read, check and build, those of magic 0 and 1 to read and to write.
//!
//! No input makes this module panic.
//!
//! # Memory
//!
//! Whatever the input says, reading it allocates at most this many bytes at once:
//!
//! ```text
//! MEMORY_PER_BYTE * (bytes of the input + bytes that come out of compressed records) + 2 * bound + MEMORY_FIXED_BYTES
//! ```
//!
//! The bound is on the bytes that come out, set by the caller or [`DEFAULT_MAX_DECOMPRESSED_BYTES`]; where nothing is
//! compressed it counts as 0. The worst that a byte can become is half a [`Header`], or a part of a list of [`Record`]s that grows: so
//! much is for those who want all records at once. A batch itself, its keys and its values share the input's bytes.
//!
//! [`RecordReader`] holds one record at a time, and [`RecordBatch::outlines`] not even that record's headers: over a whole batch that
//! is at most
//!
//! ```text
//! 2 * bound + MEMORY_FIXED_BYTES
//! ```
//!
//! The decoder of zstd has a context of some 100 KiB besides, and the window of a frame, of which at most as many bytes are used as come
//! out; Rust's allocator sees neither. A window above 128 MiB is refused.

mod any_batch;
mod assign;
mod assign_error;
mod assign_legacy;
mod batch;
mod builder;
mod compression;
mod control;
mod control_batch;
mod cursor;
mod encode_error;
mod error;
mod header;
mod kraft;
mod legacy;
mod legacy_entry;
mod mirror_pid_reset;
mod reader;
mod record_body;
mod records;
mod records_builder;
mod rewrite;
pub mod varint;
mod wire;

pub use any_batch::{AnyBatch, AnyBatchReader};
pub use assign::{AssignRules, Assigned, assign_offsets};
pub use assign_error::{AssignError, RecordError, RecordFault};
pub use assign_legacy::{AssignedRecords, assign_offsets_in};
pub use batch::RecordBatch;
pub use builder::BatchBuilder;
pub use compression::{DEFAULT_MAX_DECOMPRESSED_BYTES, compress, decompress};
pub use control::{ControlRecord, ControlRecordType, EndTxnMarker};
pub use encode_error::EncodeError;
pub use error::DecodeError;
pub use header::{
    ATTRIBUTES_POSITION, Attributes, BatchHeader, CRC_POSITION, Compression, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC_POSITION,
    MAGIC_V2, MIN_BATCH_LENGTH, MIN_BATCH_LENGTH_V2, RECORD_COUNT_POSITION, TimestampType,
};
pub use kraft::{KRaftVersion, KRaftVoters, LeaderChange, SnapshotFooter, SnapshotHeader, Voter, VoterEndpoint};
pub(crate) use legacy::UnreadRecord;
pub use legacy::{LEGACY_CRC_POSITION, LegacyBatch, LegacyRecord, MIN_BATCH_LENGTH_V1};
pub use legacy_entry::LegacyEntry;
pub use mirror_pid_reset::{MirrorPidResetLayout, MirrorPidResetRecord};
pub use reader::BatchReader;
pub(crate) use record_body::StoredHeaders;
pub use record_body::{Header, Record, RecordOutline};
pub use records::RecordReader;
pub use records_builder::{Magic, MaxTimestamp, RecordsBuilder};

/// The most bytes that are allocated for a byte of input: see [the module](self#memory).
pub const MEMORY_PER_BYTE: usize = 64;
/// What is allocated whatever the input's size, in bytes: see [the module](self#memory).
pub const MEMORY_FIXED_BYTES: usize = 128 * 1024;
