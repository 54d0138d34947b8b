//! `cleanslate explore`: the stateright Explorer on one scenario.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::ExitCode;

use stateright::Model as _;

use super::args::ExploreArgs;
use super::{CliError, EXIT_EXPECTED};
use crate::check::Plan;

/// Serves the Explorer until the process is ended.
///
/// # Errors
/// [`CliError`] for unknown names and for an address that cannot be listened on.
pub fn run(args: &ExploreArgs) -> Result<ExitCode, CliError> {
    let designs = std::slice::from_ref(&args.design);
    let topologies = std::slice::from_ref(&args.topology);
    let plan = Plan::new(designs, topologies, &args.bounds, &[]).map_err(|e| CliError::Usage(e.to_string()))?;
    let Some(job) = plan.jobs.first() else { return Err(CliError::Usage("nothing to explore".to_owned())) };
    // stateright's server panics on an address that is taken: try it first.
    drop(TcpListener::bind(args.listen).map_err(|e| CliError::Usage(format!("--listen {}: {e}", args.listen)))?);
    writeln!(std::io::stderr(), "{} in {}: http://{}/ (end with Ctrl-C)", job.design, job.topology.name, args.listen)?;
    job.scenario().checker().serve(args.listen);
    Ok(ExitCode::from(EXIT_EXPECTED))
}
