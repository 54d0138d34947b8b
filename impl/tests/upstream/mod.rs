#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

mod broker_compression_test;
mod completed_fetch_test;
mod dump_log_segments_test;
mod fetcher_thread_test;
mod file_records_test;
mod leader_epoch_file_cache_test;
mod legacy;
mod local_log_test;
mod log_cleaner_manager_test;
mod log_cleaner_test;
mod log_loader_test;
mod log_manager_test;
mod log_recovery_test;
mod log_segment_test;
mod log_validator_test;
mod offset_index_test;
mod partition_test;
mod producer_state_manager_test;
mod record_batch_tests;
mod replication;
mod support;
mod transaction_index_test;
mod unified_log_test;
mod unified_log_test_core;
mod verification_guard_test;
