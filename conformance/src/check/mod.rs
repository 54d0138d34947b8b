//! Checking: the model is explored, every counterexample is written, read back and run again, and verdicts are compared with the table.

mod counterexample;
mod expected;
mod job;
mod memory;
mod plan;
mod report;

pub use counterexample::{Counterexample, CounterexampleError};
pub use expected::{Expected, ExpectedError, ExpectedTable};
pub use job::{Caps, GroupVerdict, JobReport, Means, Measures, Verdict, run_job};
pub use memory::resident_bytes;
pub use plan::{Job, Plan, PlanError};
pub use report::{bounds_of, json_summary, json_verdict, largest, story_of, table, tsv};
