//! The mirror of a partition: its state, its read-only gate, and the steps by which it stops (KIP-1279).

mod design;
mod error;
mod metadata;
mod partition;
mod state;
mod stop;

pub use design::{Alignment, FetchBound, MirrorDesign, PidMapping, StopStep};
pub use error::MirrorError;
pub use metadata::{MIRROR_METADATA_FILE, MetadataError, MirrorMetadata};
pub use partition::MirrorPartition;
pub use state::{MirrorState, UnknownMirrorState};
