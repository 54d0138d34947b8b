//! The producer-id protocol of Kafka cluster mirroring (KIP-1279) as stateright actors.
//!
//! A [`scenario::Scenario`] is a [`design::Design`] on a [`topology::Topology`] within [`bounds::Bounds`]. [`search::search`] explores it
//! to its end; [`property::PROPERTIES`] are judged in every state. The rules of the protocol are in [`psm`], [`barrier`], [`replica`] and
//! [`client`], as pure transitions; [`node`] carries them as actors; [`truth`] holds what no replica may see.

pub mod barrier;
pub mod batch;
pub mod bounds;
pub mod client;
pub mod controller;
pub mod design;
pub mod effect;
pub mod epochs;
pub mod ids;
pub mod liveness;
pub mod message;
pub mod mirror;
pub mod node;
pub mod property;
pub mod psm;
pub mod replica;
pub mod scenario;
pub mod search;
pub mod source;
pub mod story;
pub mod topology;
pub mod truth;
