//! The files of a log directory beside the partitions' own, and what they say of a partition that is to be opened
//! (Kafka: `LogManager`, `org.apache.kafka.storage.internals.checkpoint`, `org.apache.kafka.metadata.properties`).
//!
//! ```text
//! <log directory>/
//!     meta.properties                     whose directory it is                      MetaProperties
//!     .kafka_cleanshutdown                the last stop was an orderly one           CleanShutdown
//!     recovery-point-offset-checkpoint    everything below is durable                OffsetCheckpoint
//!     log-start-offset-checkpoint         records below were deleted                 OffsetCheckpoint
//!     replication-offset-checkpoint       high watermarks                            OffsetCheckpoint
//!     cleaner-offset-checkpoint           where the next cleaning round begins       OffsetCheckpoint
//!     <topic>-<partition>/                                                           DirectoryName
//!         partition.metadata              the id of the topic                        PartitionMetadata
//! ```
//!
//! The storage that is handed in is that of the log directory, or of the partition's for [`PartitionMetadata`].

mod clean_shutdown;
mod directory_name;
mod load;
mod meta_properties;
mod offset_checkpoint;
mod partition_metadata;
mod properties;
mod state;
mod uuid;

pub use clean_shutdown::{CLEAN_SHUTDOWN_FILE, CleanShutdown};
pub use directory_name::{DirectoryKind, DirectoryName, TopicPartition};
pub use load::LoadedLogs;
pub use meta_properties::{META_PROPERTIES_FILE, MetaProperties, MetaPropertiesError, MetaPropertiesVersion};
pub use offset_checkpoint::{CheckpointError, CheckpointFile, OffsetCheckpoint};
pub use partition_metadata::{PARTITION_METADATA_FILE, PartitionMetadata, PartitionMetadataError};
pub use state::{ClosedLog, LogDirState, Unreadable};
pub use uuid::{Uuid, UuidError};
