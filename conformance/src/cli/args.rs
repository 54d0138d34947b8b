//! The arguments of all subcommands.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::dump_args::DumpArgs;

/// Producer ids under Kafka cluster mirroring: check designs, read their counterexamples, run them on real logs.
///
/// Exit codes: 0 as expected, 1 violated or failed, 2 usage or unreadable input, 3 inconclusive.
#[derive(Debug, Parser)]
#[command(name = "cleanslate", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Search every behaviour of designs on topologies for violated properties
    Check(CheckArgs),
    /// List designs, topologies, bounds, properties with their groups, or requirements
    List(ListArgs),
    /// Browse a scenario's states in the stateright Explorer
    Explore(ExploreArgs),
    /// Show that every single fault in the rules breaks a property, or why it cannot
    Kill(KillArgs),
    /// Read trace files and run them
    Trace(TraceArgs),
    /// Hold an implementation against the model and against traces
    Conform(ConformArgs),
    /// Print what is in files of a partition, as kafka-dump-log does
    Dump(DumpArgs),
}

/// The arguments of `cleanslate check`.
///
/// Without `--design`, the table of expected verdicts is judged: a design that must fail is a success when it fails as stated.
/// With it, the designs themselves are judged.
#[derive(Debug, Default, Args)]
pub struct CheckArgs {
    /// A design to check; may be repeated [default: every named design]
    #[arg(long = "design", value_name = "DESIGN")]
    pub designs: Vec<String>,
    /// A topology to check on; may be repeated [default: every topology but `link`]
    #[arg(long = "topology", value_name = "TOPOLOGY")]
    pub topologies: Vec<String>,
    /// `small`, `ci`, `deep`, or KEY=N,... to change single bounds; later parts overrule earlier ones; `list bounds` has the keys
    #[arg(long, value_name = "BOUNDS", default_value = "ci")]
    pub bounds: String,
    /// A property or a group of properties, PROPERTY or PROPERTY@CLUSTER; may be repeated [default: all]
    ///
    /// With @CLUSTER (A, B, C or D) only the replicas of that cluster are looked at; all `--property` of a run then name the same
    /// cluster. `list properties` has properties and groups.
    #[arg(long = "property", value_name = "PROPERTY[@CLUSTER]")]
    pub properties: Vec<String>,
    /// The search engine; the traces of `stateright` are short, but not the shortest
    #[arg(long, value_enum, default_value_t)]
    pub engine: Engine,
    /// Print NDJSON: one line a verdict, then a summary
    #[arg(long)]
    pub json: bool,
    /// Write counterexamples as trace files into this directory
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
    /// Give up after this many states (exit 3)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_states: Option<u64>,
    /// Give up when the search holds this much memory (exit 3); K, M and G are powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_memory: Option<u64>,
    /// Give up at this many steps (exit 3)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_depth: Option<u32>,
    /// Give up after this many seconds (exit 3)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Judge by the table of expected verdicts even where `--design` is given
    #[arg(long)]
    pub expect: bool,
    /// Print the table alone, without the stories of the counterexamples
    #[arg(long)]
    pub no_stories: bool,
    /// Write what was found as the new table of expected verdicts, for small and ci bounds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["expect", "json", "no_stories", "designs", "topologies", "bounds",
        "properties", "engine", "max_states", "max_memory", "max_depth", "timeout"])]
    pub write_expected: Option<PathBuf>,
}

/// The search engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The breadth-first search of this project
    #[default]
    Bfs,
    /// stateright's checker over the actor view
    Stateright,
}

/// The arguments of `cleanslate list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub what: Listing,
    /// Print NDJSON
    #[arg(long)]
    pub json: bool,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// The named designs with their choices
    Designs,
    /// The topologies
    Topologies,
    /// The bounds, with their values on each topology
    Bounds,
    /// The properties by group
    Properties,
    /// The requirements
    Requirements,
}

/// The arguments of `cleanslate explore`.
#[derive(Debug, Args)]
pub struct ExploreArgs {
    /// The design
    #[arg(long, value_name = "DESIGN")]
    pub design: String,
    /// The topology
    #[arg(long, value_name = "TOPOLOGY")]
    pub topology: String,
    /// As for `check`
    #[arg(long, value_name = "BOUNDS", default_value = "small")]
    pub bounds: String,
    /// Where the Explorer listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
}

/// The arguments of `cleanslate kill`.
///
/// Every variant of the kill list, `specs/kill-list.tsv`, is explored: the property that kills it must break with the listed number of
/// steps, and a survivor, which is listed with the reason why nothing can break, must survive. Exit code 0 if all is as listed.
#[derive(Debug, Args)]
pub struct KillArgs {
    /// Only variants whose design begins so; may be repeated [default: all]
    #[arg(long = "design", value_name = "DESIGN")]
    pub designs: Vec<String>,
    /// Only variants judged on this topology; may be repeated [default: all]
    #[arg(long = "topology", value_name = "TOPOLOGY")]
    pub topologies: Vec<String>,
    /// Print NDJSON: one line a variant, then a summary
    #[arg(long)]
    pub json: bool,
    /// Write the traces into this directory [default: target/kill]
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
}

/// The arguments of `cleanslate conform`.
///
/// Without `--traces`, every transition that the model can take within the bounds is taken on the log of this project; another implementation
/// is held against that log by sequences of log operations, or, with `--transitions`, by everything that the model does to a single log.
/// With `--traces`, every trace file of the directory is run on the target. A trace that needs a rule which the target does not have, such as
/// a barrier that clears, is run up to there and skipped.
#[derive(Debug, Args)]
pub struct ConformArgs {
    /// The implementation
    #[arg(long, value_enum, default_value_t)]
    pub target: TargetArg,
    /// Run the trace files (*.json) of this directory, or this file, instead
    #[arg(long, value_name = "PATH")]
    pub traces: Option<PathBuf>,
    /// The bounds of the model, as for `check` [default: small]
    #[arg(long, value_name = "BOUNDS", conflicts_with = "traces")]
    pub bounds: Option<String>,
    /// Take every log-level transition of the model within the bounds on the other implementation, for the rules of stock Kafka
    #[arg(long, conflicts_with_all = ["traces", "sequences"])]
    pub transitions: bool,
    /// Print one summary line of JSON instead of the cases
    #[arg(long)]
    pub json: bool,
    /// Start another implementation by this command, which speaks the adapter protocol
    #[arg(long, value_name = "COMMAND", conflicts_with = "target")]
    pub adapter: Option<String>,
    /// Which Kafka
    #[command(flatten)]
    pub kafka: KafkaArgs,
    /// Run each trace so many times, and tell how many a second
    #[arg(long, value_name = "N", default_value_t = 1, requires = "traces", value_parser = clap::value_parser!(u64).range(1..))]
    pub repeat: u64,
    /// Run the stored sequences (*.json) of this directory, or this file, instead of those of the project
    #[arg(long, value_name = "PATH", help_heading = "Sequences of log operations")]
    pub sequences: Option<PathBuf>,
    /// How many random sequences to run [default: 500]
    #[arg(long, value_name = "N", help_heading = "Sequences of log operations")]
    pub random: Option<u64>,
    /// How many actions a random sequence has [default: 30]
    #[arg(long, value_name = "N", help_heading = "Sequences of log operations", value_parser = clap::value_parser!(u16).range(1..))]
    pub length: Option<u16>,
    /// The seed of the random sequences [default: 1]
    #[arg(long, value_name = "N", help_heading = "Sequences of log operations")]
    pub seed: Option<u64>,
    /// Where sequences are stored that show a difference [default: target/sequences]
    #[arg(long, value_name = "DIR", help_heading = "Sequences of log operations")]
    pub failures: Option<PathBuf>,
    /// Stop after so many differences [default: 5]
    #[arg(long, value_name = "N", help_heading = "Sequences of log operations", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_differences: Option<u32>,
}

impl ConformArgs {
    /// The bounds of the model.
    #[must_use]
    pub fn bounds(&self) -> &str {
        self.bounds.as_deref().unwrap_or("small")
    }

    /// Where sequences are stored that show a difference.
    #[must_use]
    pub fn failures(&self) -> PathBuf {
        self.failures.clone().unwrap_or_else(|| PathBuf::from("target/sequences"))
    }

    /// The options that only a run of sequences heeds, as far as they are given.
    #[must_use]
    pub fn given_for_sequences(&self) -> Vec<&'static str> {
        let given = [
            ("--sequences", self.sequences.is_some()),
            ("--random", self.random.is_some()),
            ("--length", self.length.is_some()),
            ("--seed", self.seed.is_some()),
            ("--max-differences", self.max_differences.is_some()),
        ];
        given.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect()
    }
}

/// Which Kafka the adapter is built around.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Kafka")]
pub struct KafkaArgs {
    /// The version of Kafka, 4.3 or later, from Maven Central [default: 4.3.1]
    #[arg(id = "kafka_version", long = "kafka-version", value_name = "VERSION")]
    pub version: Option<String>,
    /// A directory with the jars of a Kafka that you built, instead of a version; may be repeated
    #[arg(id = "kafka_jars", long = "kafka-jars", value_name = "DIR", conflicts_with = "kafka_version")]
    pub jars: Vec<PathBuf>,
}

impl KafkaArgs {
    /// True if anything was said about Kafka.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.version.is_some() || !self.jars.is_empty()
    }
}

/// The arguments of `cleanslate trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// What to do with the trace.
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// The subcommands of `cleanslate trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Tell the story of a trace and draw its logs
    Show(ShowArgs),
    /// Run a trace on an implementation and look for the corruption there
    Replay(ReplayArgs),
}

/// The arguments of `cleanslate trace show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The trace file
    pub file: PathBuf,
    /// Draw the logs after this step [default: the last]
    #[arg(long, value_name = "N")]
    pub step: Option<u32>,
    /// Print the trace itself, in its normal form
    #[arg(long, conflicts_with = "step")]
    pub json: bool,
}

/// The arguments of `cleanslate trace replay`.
///
/// Exit code 3 if the target lacks a rule that the trace needs (the steps before it agree), or cannot be had on this machine.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The trace file
    pub file: PathBuf,
    /// The implementation to run it on
    #[arg(long, value_enum, default_value_t)]
    pub target: TargetArg,
    /// Run it on another implementation, which is started by this command and speaks the adapter protocol
    #[arg(long, value_name = "COMMAND", conflicts_with = "target")]
    pub adapter: Option<String>,
    /// Which Kafka
    #[command(flatten)]
    pub kafka: KafkaArgs,
}

/// The implementations that the command line knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TargetArg {
    /// The log of this project, in process and in memory
    #[default]
    Impl,
    /// Apache Kafka's own log classes, in a JVM
    Kafka,
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.chars().last() {
        Some('K' | 'k') => (text.get(..text.len() - 1), 10),
        Some('M' | 'm') => (text.get(..text.len() - 1), 20),
        Some('G' | 'g') => (text.get(..text.len() - 1), 30),
        _ => (Some(text), 0),
    };
    let digits = digits.filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
    let digits = digits.ok_or("expected a number of bytes, such as 8G; K, M and G are powers of 1024")?;
    let n = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    match n {
        Some(0) => Err("expected at least one byte".to_owned()),
        Some(n) => Ok(n),
        None => Err("expected less than 2^64 bytes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bytes() {
        assert_eq!(parse_bytes("1024"), Ok(1024));
        assert_eq!(parse_bytes("2G"), Ok(2 << 30));
        for wrong in ["", "0", "G", "-1", "1T", "99999999999999999999", "18446744073709551615G", "1ü"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
