//! Kafka's record batches of magic 2: reading, checking, building.
//!
//! No input makes this module panic, and none makes it allocate more than a fixed multiple of the input's size.

mod batch;
mod builder;
mod control;
mod control_batch;
mod cursor;
mod error;
mod header;
mod kraft;
mod mirror_pid_reset;
mod reader;
mod record_body;
mod rewrite;
pub mod varint;
mod wire;

pub use batch::RecordBatch;
pub use builder::BatchBuilder;
pub use control::{ControlRecord, ControlRecordType, EndTxnMarker};
pub use error::{DecodeError, EncodeError};
pub use header::{
    ATTRIBUTES_POSITION, Attributes, BatchHeader, CRC_POSITION, Compression, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC_POSITION,
    MAGIC_V2, MIN_BATCH_LENGTH, MIN_BATCH_LENGTH_V2, RECORD_COUNT_POSITION, TimestampType,
};
pub use kraft::{KRaftVersion, KRaftVoters, LeaderChange, SnapshotFooter, SnapshotHeader, Voter, VoterEndpoint};
pub use mirror_pid_reset::{MirrorPidResetLayout, MirrorPidResetRecord};
pub use reader::BatchReader;
pub use record_body::{Header, Record};
