//! The arguments of `cleanslate dump`, which are those of Kafka's tool.

use std::path::PathBuf;

use clap::Args;
use cleanslate_log::dump::DumpOptions;

use super::CliError;

/// The arguments of `cleanslate dump`.
///
/// The text is that of Kafka 4.3.1, byte for byte. What is odd about the files, such as an index entry that the log does not bear out or
/// offsets with gaps, goes to stderr and is no error, and neither is a wrong CRC or a damaged snapshot. A file that cannot be read to its
/// end is one, with exit code 2: its log has a batch that is none, its index fails the sanity check or points at nothing.
#[derive(Debug, Default, Args)]
pub struct DumpArgs {
    /// Files of a partition: .log, .index, .timeindex, .txnindex, .snapshot, .checkpoint
    #[arg(value_name = "FILE", required_unless_present = "more_files")]
    pub files: Vec<PathBuf>,
    /// More files, separated by commas
    #[arg(id = "more_files", long = "files", value_name = "FILES", value_delimiter = ',')]
    pub more_files: Vec<PathBuf>,
    /// Print NDJSON: one line a batch, record or entry
    #[arg(long)]
    pub json: bool,
    /// Print the records of a log too
    #[arg(long)]
    pub deep_iteration: bool,
    /// Print the records of a log with their keys and values
    #[arg(long)]
    pub print_data_log: bool,
    /// In the text form, print nothing of records but their keys and values
    #[arg(long, conflicts_with = "json")]
    pub skip_record_metadata: bool,
    /// Read only so many bytes of a log
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=JAVA_MAX))]
    pub max_bytes: Option<u64>,
    /// Check of an index only what can be told without the log
    #[arg(long)]
    pub index_sanity_check: bool,
    /// Hold indexes against the log without printing their entries
    #[arg(long)]
    pub verify_index_only: bool,
    /// The largest batch that an index entry may point at, in bytes
    #[arg(long, value_name = "N", default_value_t = 5 * 1024 * 1024, value_parser = clap::value_parser!(u64).range(..=JAVA_MAX))]
    pub max_message_size: u64,
    /// As --print-data-log; keys can only be printed as text, by Kafka's StringDecoder
    #[arg(long, value_name = "CLASS", num_args = 0..=1, require_equals = true, default_missing_value = STRING_DECODER)]
    pub key_decoder_class: Option<String>,
    /// As --print-data-log; values can only be printed as text, by Kafka's StringDecoder
    #[arg(long, value_name = "CLASS", num_args = 0..=1, require_equals = true, default_missing_value = STRING_DECODER)]
    pub value_decoder_class: Option<String>,
    /// What Kafka's tool can decode besides.
    #[command(flatten)]
    pub decoders: UnsupportedDecoders,
}

/// Decoders of what Kafka keeps in topics of its own, which are not there.
#[derive(Debug, Default, Args)]
pub struct UnsupportedDecoders {
    /// Not supported
    #[arg(long, hide = true)]
    pub cluster_metadata_decoder: bool,
    /// Not supported
    #[arg(long, hide = true)]
    pub offsets_decoder: bool,
    /// Not supported
    #[arg(long, hide = true)]
    pub remote_log_metadata_decoder: bool,
    /// Not supported
    #[arg(long, hide = true)]
    pub share_group_state_decoder: bool,
    /// Not supported
    #[arg(long, hide = true)]
    pub transaction_log_decoder: bool,
}

/// The largest number that Kafka's options take.
const JAVA_MAX: u64 = 2_147_483_647;

const STRING_DECODER: &str = "org.apache.kafka.tools.api.StringDecoder";

impl DumpArgs {
    /// What is to be printed.
    ///
    /// # Errors
    /// [`CliError::Usage`] when a decoder is asked for that is not there.
    pub fn options(&self) -> Result<DumpOptions, CliError> {
        let unsupported = [
            ("--cluster-metadata-decoder", self.decoders.cluster_metadata_decoder),
            ("--offsets-decoder", self.decoders.offsets_decoder),
            ("--remote-log-metadata-decoder", self.decoders.remote_log_metadata_decoder),
            ("--share-group-state-decoder", self.decoders.share_group_state_decoder),
            ("--transaction-log-decoder", self.decoders.transaction_log_decoder),
        ];
        if let Some((name, _)) = unsupported.into_iter().find(|(_, given)| *given) {
            return Err(CliError::Usage(format!("{name} is not supported; --print-data-log prints keys and values as text")));
        }
        let classes = [&self.key_decoder_class, &self.value_decoder_class];
        for class in classes.into_iter().flatten() {
            if class != STRING_DECODER {
                return Err(CliError::Usage(format!("Failed to load decoder class {class}: expected {STRING_DECODER}")));
            }
        }
        Ok(DumpOptions {
            json: self.json,
            deep_iteration: self.deep_iteration,
            print_data_log: self.print_data_log || classes.into_iter().any(Option::is_some),
            skip_record_metadata: self.skip_record_metadata,
            // Kafka's default is its largest number.
            max_bytes: self.max_bytes.filter(|max| *max < JAVA_MAX),
            index_sanity_check: self.index_sanity_check,
            verify_index_only: self.verify_index_only,
            max_message_size: self.max_message_size,
            ..DumpOptions::default()
        })
    }
}
