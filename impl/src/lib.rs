pub mod record;
pub mod types;
