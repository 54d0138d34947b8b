//! Whoever answers requests in order: an adapter in a process of its own, or the log of this project in this one.

use super::{Abilities, Adapter, AdapterError, Operation, Reply};

/// The runner's end of a conversation. Requests may be sent before earlier ones are answered; replies come in the order of the requests.
pub trait Requests {
    /// Sends a request without waiting. `state` asks for the state of the log that it is on.
    ///
    /// # Errors
    /// As [`Adapter::send`].
    fn send(&mut self, operation: &Operation, state: bool) -> Result<(), AdapterError>;

    /// The reply to the oldest request that has not been answered; none if there is no such request.
    ///
    /// # Errors
    /// As [`Adapter::receive`].
    fn receive(&mut self) -> Result<Option<Reply>, AdapterError>;

    /// How many requests have been sent.
    fn requests(&self) -> u64;

    /// What may be asked for.
    fn abilities(&self) -> Abilities;
}

impl Requests for Adapter {
    fn send(&mut self, operation: &Operation, state: bool) -> Result<(), AdapterError> {
        Self::send(self, operation, state)
    }

    fn receive(&mut self) -> Result<Option<Reply>, AdapterError> {
        Self::receive(self)
    }

    fn requests(&self) -> u64 {
        Self::requests(self)
    }

    fn abilities(&self) -> Abilities {
        Self::abilities(self).clone()
    }
}
