//! Kafka's record batches: those of magic 2 to read, check and build, those of magic 0 and 1 to read.
//!
//! No input makes this module panic, and none makes it allocate more than a fixed multiple of the input's size or, where
//! it decompresses, of the bound that the caller or [`DEFAULT_MAX_DECOMPRESSED_BYTES`] sets.

mod any_batch;
mod assign;
mod assign_error;
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
mod mirror_pid_reset;
mod reader;
mod record_body;
mod rewrite;
pub mod varint;
mod wire;

pub use any_batch::{AnyBatch, AnyBatchReader};
pub use assign::{AssignRules, Assigned, assign_offsets};
pub use assign_error::{AssignError, RecordError, RecordFault};
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
pub use legacy::{LEGACY_CRC_POSITION, LegacyBatch, LegacyRecord, MIN_BATCH_LENGTH_V1};
pub use mirror_pid_reset::{MirrorPidResetLayout, MirrorPidResetRecord};
pub use reader::BatchReader;
pub use record_body::{Header, Record};
