//! Sequences of log operations, carried out on the log of this project and on another implementation, and compared after every step.
//!
//! A sequence is a list of requests of the adapter protocol (`specs/adapter-protocol.md`), so that any adapter can run it. The log of
//! this project speaks the same protocol in-process ([`local`]).
//!
//! * [`action`]: what may happen, without numbers that depend on the state; what random sequences are made of, and shrink to.
//! * [`concrete`]: actions become requests, with the help of the state that they meet.
//! * [`compare`]: runs requests on both sides.
//! * [`known`]: differences of other versions of Kafka, which are left out.
//! * [`needs`]: what requests need of an adapter, which may lack it.
//! * [`random`]: random sequences, shrunk when they show a difference.
//! * [`mod@file`]: sequences as files.

pub mod action;
pub mod compare;
pub mod concrete;
pub mod file;
pub mod known;
pub mod local;
pub mod local_requests;
pub(crate) mod local_state;
pub mod needs;
mod old;
pub mod random;
