//! Implementations in a process of their own, driven by the protocol of `specs/adapter-protocol.md`.
//!
//! * [`message`]: requests, replies and states as types, read strictly.
//! * [`launch`]: how an adapter is started.
//! * [`client`]: the conversation: hello, pipelined requests, time-outs.
//! * [`error`]: what an adapter can do wrong, diagnosed in one line.
//!
//! Whatever an adapter does, a call returns in bounded time, and the process is reaped.

pub mod client;
pub mod error;
pub mod hex;
pub mod launch;
pub mod message;
mod process;
pub mod state;

pub use client::Adapter;
pub use error::{AdapterError, Trouble};
pub use hex::Hex;
pub use launch::Launch;
pub use message::{Answer, Config, Failure, FailureKind, Operation, Reply};
pub use state::State;
