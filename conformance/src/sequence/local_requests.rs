//! The log of this project as an answerer of requests.

use std::collections::VecDeque;

use super::local::Local;
use crate::adapter::{Abilities, AdapterError, Operation, Reply, Requests};

/// The log of this project in place of an adapter: each request is carried out when it is sent.
#[derive(Debug, Default)]
pub struct LocalRequests {
    local: Local,
    replies: VecDeque<Reply>,
    sent: u64,
}

impl Requests for LocalRequests {
    fn send(&mut self, operation: &Operation, state: bool) -> Result<(), AdapterError> {
        self.sent += 1;
        self.replies.push_back(self.local.call(operation, state));
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Reply>, AdapterError> {
        Ok(self.replies.pop_front())
    }

    fn requests(&self) -> u64 {
        self.sent
    }

    fn abilities(&self) -> Abilities {
        Abilities::all()
    }
}
