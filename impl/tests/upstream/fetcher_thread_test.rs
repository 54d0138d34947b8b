#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's AbstractFetcherThreadTest and ReplicaFetcherThreadTest, without the threads: what another thread does in the middle of a
//! request, happens between the request and its answer.

mod answers;
mod epochs;
mod fenced;
mod requests;
mod resets;
mod rules;
