//! `cleanslate dump`.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use cleanslate_log::dump::{DumpError, DumpFile, Dumper};
use cleanslate_log::storage::FileStorage;

use super::dump_args::DumpArgs;
use super::{CliError, EXIT_EXPECTED, output};

/// Runs `cleanslate dump`.
///
/// # Errors
/// [`CliError`] when an option is not supported, a file cannot be dumped to its end, or the results cannot be written.
pub fn run(args: &DumpArgs) -> Result<ExitCode, CliError> {
    let options = args.options()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut err = io::stderr();
    let mut dumper = Dumper::new(options, &mut out, &mut err);
    let mut ended = Ok(());
    for path in args.files.iter().chain(&args.more_files) {
        ended = dump(&mut dumper, path);
        if ended.is_err() {
            break;
        }
    }
    let ended = ended.and_then(|()| dumper.finish().map_err(|source| failed("", source)));
    // What was printed in front of an error is worth reading.
    let ended = ended.and(out.flush().map_err(CliError::Output));
    match ended {
        Err(CliError::Output(error)) => output::unless_closed(Err(error))?,
        ended => ended?,
    }
    Ok(ExitCode::from(EXIT_EXPECTED))
}

fn dump(dumper: &mut Dumper<'_>, path: &Path) -> Result<(), CliError> {
    let shown = path.display().to_string();
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Err(CliError::Usage(format!("{shown}: expected the path of a file, with a name that is UTF-8")));
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let absolute = match path.is_absolute() {
        true => shown.clone(),
        // Kafka's tool puts the working directory in front, and does no more.
        false => std::env::current_dir().unwrap_or_default().join(path).display().to_string(),
    };
    let file = DumpFile { path: &shown, absolute_path: &absolute, name };
    dumper.file(&FileStorage::existing(dir), &file).map_err(|source| match source {
        DumpError::NotFound { name } => no_file(&dir.join(name)),
        source => failed(&shown, source),
    })?;
    // Kafka's tool ignores a file of which it does not know the suffix even where there is none.
    if path.is_file() { Ok(()) } else { Err(no_file(path)) }
}

/// Why a path leads to nothing that can be dumped.
fn no_file(path: &Path) -> CliError {
    let why = if path.exists() { "not a regular file" } else { "no such file" };
    CliError::Usage(format!("{}: {why}", path.display()))
}

fn failed(file: &str, source: DumpError) -> CliError {
    match source {
        DumpError::Output(error) => CliError::Output(error),
        source => CliError::Dump { file: file.to_owned(), source: Box::new(source) },
    }
}
