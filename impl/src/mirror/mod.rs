//! The mirror of a partition: its states, its read-only gate, and the steps by which it stops (KIP-1279).
//!
//! * `machine`: what an event makes of a state; pure.
//! * `stop_sequence`: which step of a stop comes next; pure.
//! * `alignment`: where a log is cut before it mirrors; pure.
//! * `design`: what the proposed designs differ in, as a value; `named`: the designs that have a name.
//! * `partition`, `stop`: all of it on a log.

mod alignment;
mod design;
mod error;
mod groups;
mod machine;
mod metadata;
mod named;
mod partition;
mod state;
mod stop;
mod stop_sequence;

pub use alignment::alignment_offset;
pub use design::{
    Acknowledgement, Alignment, DivergenceDetection, ElectedEpoch, EpochFencing, FetchBound, MirrorDesign, PidMapping, Rerun,
    StepFailure, StopRules, StopStep, TaskCheck, UnknownSource,
};
pub use error::MirrorError;
pub use groups::group_offset;
pub use machine::{FailedAttempts, Machine, MirrorEffect, MirrorEvent, MirrorStatus, Transition};
pub use metadata::{MIRROR_METADATA_FILE, MetadataError, MirrorMetadata};
pub use named::NamedDesign;
pub use partition::{MirrorFetch, MirrorPartition, StateFence};
pub use state::{MirrorState, Permissions, StateForm, UnknownMirrorState};
pub use stop::{StepDone, StopTask};
pub use stop_sequence::{StopCommand, StopSequence};
