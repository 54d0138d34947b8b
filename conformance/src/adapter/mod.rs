//! Implementations in a process of their own, driven by the protocol of `specs/adapter-protocol.md`.
//!
//! * [`message`], [`reply`], [`state`]: what is sent and what comes, as types that are read strictly.
//! * [`hex`]: bytes; a private module beside it reads fields as strictly as the schema states them.
//! * [`abilities`]: what an adapter lists.
//! * [`launch`]: how an adapter is started.
//! * [`client`]: the conversation: hello, pipelined requests, time-outs. [`requests`]: what of it the log in this process can do, too.
//! * [`error`]: what an adapter can do wrong, diagnosed in one line.
//!
//! Whatever an adapter does, a call returns in bounded time, and the process is reaped.

pub mod abilities;
pub mod client;
pub mod error;
pub mod hex;
pub mod launch;
pub mod message;
mod process;
pub mod reply;
pub mod requests;
pub mod state;
mod strict;

pub use abilities::Abilities;
pub use client::Adapter;
pub use error::{AdapterError, Trouble};
pub use hex::Hex;
pub use launch::Launch;
pub use message::{Config, Operation};
pub use reply::{Answer, Failure, FailureKind, Reply, ReplyLine};
pub use requests::Requests;
pub use state::State;
pub use strict::{CODES, FEATURES};
