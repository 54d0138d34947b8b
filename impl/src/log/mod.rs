//! A partition log (Kafka: `UnifiedLog`, `LocalLog`, `LogSegment`, `LogLoader`).

mod append;
mod clean_filter;
mod clean_txns;
mod compact;
mod config;
mod epoch_cache;
mod error;
mod files;
mod index;
mod load;
mod offsets;
mod partition_log;
mod read;
mod rebuild;
mod recover;
mod replace;
mod result;
mod roll;
mod scan;
mod segment;
mod split;
mod timestamps;
mod truncate;
mod txn_index;
mod validate;

pub use compact::CleanOptions;
pub use config::{FetchIsolation, LogConfig, OpenOptions, Recovery};
pub use epoch_cache::{EpochCheckpointError, EpochEntry, LeaderEpochCache, NegativeEpoch};
pub use error::{AppendError, LogError, ReadError};
pub use files::{LEADER_EPOCH_CHECKPOINT, LOG_FILE, TXN_INDEX_FILE};
pub use index::{IndexError, OFFSET_INDEX_ENTRY_BYTES, TIME_INDEX_ENTRY_BYTES, check_offset_index, check_time_index};
pub use partition_log::PartitionLog;
pub use read::FetchData;
pub use result::{AppendResult, RecoveryReport};
pub use timestamps::{OffsetSpec, TimestampAndOffset};
pub use txn_index::{AbortedTxn, TXN_INDEX_ENTRY_BYTES};
