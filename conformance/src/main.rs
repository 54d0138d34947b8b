//! The `cleanslate` command.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use cleanslate_conformance::cli::trace::ModelReplay;
use cleanslate_conformance::cli::{self, Cli, CliError, Command};
use cleanslate_conformance::from_model::{Rerun, rerun};
use cleanslate_conformance::trace::format::Trace;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::usage_exit(&error),
    };
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            // A closed stderr must not turn an error into a panic.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            error.exit_code()
        }
    }
}

fn run(command: Command) -> Result<ExitCode, CliError> {
    match command {
        Command::Check(args) => cli::check::run(&args),
        Command::List(args) => cli::list::run(&args),
        Command::Explore(args) => cli::explore::run(&args),
        Command::Kill(args) => cli::kill::run(&args),
        Command::Conform(args) => cli::conform::run(&args),
        Command::Dump(args) => cli::dump::run(&args),
        Command::Trace(args) => cli::trace::run(&args, &cli::trace::Hooks { model: Some(in_model) }),
    }
}

fn in_model(trace: &Trace) -> ModelReplay {
    match rerun(trace) {
        Rerun::Agrees(text) => ModelReplay::Agrees(text),
        Rerun::Disagrees(text) => ModelReplay::Disagrees(text),
        Rerun::NotMeant(text) => ModelReplay::NotMeant(text),
        Rerun::NotRun(text) => ModelReplay::NotRun(text),
    }
}
