//! Replication within a cluster: what a broker's partition decides before it asks its log, and what a follower's fetcher makes of the
//! leader's answers (Kafka 4.3.1: `Partition`, `Replica`, `AbstractFetcherThread`, `ReplicaFetcherThread`).
//!
//! * `divergence`: where two logs part; pure, and the same for mirrors.
//! * `partition`: who leads under which epoch, and who is in sync; `access`: which requests it answers; `replica`: what a leader knows
//!   of a follower.
//! * `fetcher`: which request comes next for each of several partitions; `answers`: what is made of a fetch; `truncation`: of the
//!   ends of epochs; `reset`: of an offset that is out of range; `fetch_state`: what a fetcher knows of a partition.
//!
//! Nothing is sent here: requests and answers are values, which the caller carries. What Kafka does under one lock while it waits for
//! an answer is a state here ([`FetchPhase`]), so that answers may come late, or not at all.
//!
//! Not there: reassignment, the choice of a replica by rack, what a quota is, fetch sessions, and epochs of brokers.

mod access;
mod answers;
mod divergence;
mod error;
mod fetch_state;
mod fetcher;
mod partition;
mod replica;
mod reset;
mod truncation;

pub use access::{DeletedRecords, Fetched, PartitionFetch, ReadOffsets, Reader};
pub use divergence::{EpochEndOffset, FetchPoint, OutOfRange, TruncationPoint, fetch_point, out_of_range, truncation_point};
pub use error::{FollowError, LeaderError, PartitionError, UnrequestedPartition};
pub use fetch_state::{FetchPhase, InitialFetchState, PartitionFetchState};
pub use fetcher::{Fetcher, FetcherConfig, FetcherEvent, FetcherEvents, Replicas, TruncationMode};
pub use partition::{IsrChange, LeaderAndIsr, Partition, PartitionConfig};
pub use replica::ReplicaState;
pub use reset::OffsetRequest;
pub use truncation::{EpochRequest, TruncationPlan};
