//! Kafka's tests of the record format; a module is a class.

mod control_records;
mod default_record_batch_test;
mod default_record_test;
mod filter_to;
mod legacy_records;
mod memory_records_builder_test;
mod memory_records_test;
