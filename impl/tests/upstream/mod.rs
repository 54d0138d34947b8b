#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

mod producer_state_manager_test;
mod support;
mod unified_log_test;
mod unified_log_test_core;
