//! What a log remembers about producers: their epochs, last batches and transactions
//! (Kafka: `org.apache.kafka.storage.internals.log.ProducerStateManager` and its companions).

mod append_info;
mod entry;
mod error;
mod facts;
mod manager;
mod pending;
mod reload;
mod snapshot;
mod table_order;
mod txn;
mod verification;

pub use append_info::ProducerAppendInfo;
pub use entry::{BATCHES_TO_RETAIN, BatchMetadata, ProducerStateEntry};
pub use error::ProducerStateError;
pub use facts::{AppendOrigin, BatchFacts, BatchKind, ProducerIdVisibility, TransactionVersion};
pub use manager::ProducerStateManager;
pub use pending::{Completion, Met, PendingAppend};
pub(crate) use reload::DELETED;
pub use reload::{SnapshotFile, snapshot_file_name, snapshot_files};
pub(crate) use snapshot::{
    CRC_END as SNAPSHOT_CRC_END, ENTRY_BYTES as SNAPSHOT_ENTRY_BYTES, HEADER_BYTES as SNAPSHOT_HEADER_BYTES,
};
pub use snapshot::{ProducerSnapshot, SNAPSHOT_VERSION, SnapshotEntry, SnapshotError};
pub use txn::{CompletedTxn, TxnMetadata};
pub use verification::{Verification, VerificationEntry, VerificationGuard, VerificationRequest};
