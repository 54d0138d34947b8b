//! Every dump that Kafka 4.3.1's own tool made of the files of the corpus, byte for byte.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cleanslate_log::dump::DumpOptions;
use cleanslate_log::storage::{MemoryStorage, Storage};
use serde::Deserialize;

use super::support::dump_in;

/// A run of Kafka's tool: where it died of an exception, stderr is without the stack trace.
#[derive(Deserialize)]
struct Run {
    args: Vec<String>,
    exit: i32,
    exception: Option<String>,
    stdout: String,
    stderr: String,
}

/// The options whose text needs the formats of what Kafka itself keeps in its topics.
const UNSUPPORTED: [&str; 3] = ["--cluster-metadata-decoder", "--offsets-decoder", "--transaction-log-decoder"];

#[test]
fn everything_is_dumped_as_kafka_dumps_it() {
    let mut storages = BTreeMap::new();
    let (mut compared, mut died) = (0, 0);
    let mut skipped: BTreeMap<&str, u32> = BTreeMap::new();
    for run in runs() {
        if let Some(option) = UNSUPPORTED.into_iter().find(|option| run.args.iter().any(|arg| arg == option)) {
            *skipped.entry(option).or_default() += 1;
            continue;
        }
        compare(&run, &mut storages);
        compared += 1;
        died += u32::from(run.exit != 0);
    }
    println!("{compared} dumps compared, {died} of them of files at which Kafka's tool dies; skipped: {skipped:?}");
    assert_eq!((compared, died), (714, 16));
    assert_eq!(skipped, BTreeMap::from([(UNSUPPORTED[0], 8), (UNSUPPORTED[1], 1), (UNSUPPORTED[2], 1)]));
}

/// The same bytes on stdout; on stderr too where the tool ended by itself; else an error of the same class.
fn compare(run: &Run, storages: &mut BTreeMap<String, MemoryStorage>) {
    let (options, files) = parse(&run.args);
    let files: Vec<_> = files.iter().map(|path| path.split_at(path.rfind('/').unwrap() + 1)).collect();
    for (dir, _) in &files {
        storages.entry((*dir).to_owned()).or_insert_with(|| load(dir));
    }
    let dumped = dump_in(files.iter().map(|(dir, name)| (&storages[*dir], *dir, *name)), options);
    let args = run.args.join(" ");
    assert_eq!(dumped.out, run.stdout, "stdout of {args}");
    match &run.exception {
        None => {
            assert!(run.exit == 0 && dumped.error.is_none(), "{args}: {:?}", dumped.error);
            assert_eq!(dumped.err, run.stderr, "stderr of {args}");
        }
        Some(exception) => {
            let class = exception.split(':').next().unwrap().rsplit('.').next();
            assert_eq!(dumped.error.as_ref().and_then(|error| error.kafka_class()), class, "{args}: {:?}", dumped.error);
        }
    }
}

fn parse(args: &[String]) -> (DumpOptions, Vec<&str>) {
    let mut options = DumpOptions::default();
    let mut files = Vec::new();
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match arg {
            "--deep-iteration" => options.deep_iteration = true,
            // Without a class, the decoder is that of text.
            "--print-data-log" | "--key-decoder-class" | "--value-decoder-class" => options.print_data_log = true,
            "--skip-record-metadata" => options.skip_record_metadata = true,
            "--index-sanity-check" => options.index_sanity_check = true,
            "--verify-index-only" => options.verify_index_only = true,
            "--max-bytes" => options.max_bytes = Some(args.next().unwrap().parse().unwrap()),
            "--files" => files = args.next().unwrap().split(',').collect(),
            other => panic!("{other}"),
        }
    }
    (options, files)
}

fn runs() -> Vec<Run> {
    let text = String::from_utf8(inflated(&corpus().join("dumps.ndjson.gz")).to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn inflated(path: &Path) -> Bytes {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes.into()
}

/// The files of a directory as they lay on disk.
fn load(dir: &str) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    for entry in std::fs::read_dir(corpus().join(dir)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match name.strip_suffix(".gz") {
            Some(name) => storage.append(name, &inflated(&path)).unwrap(),
            None => storage.append(name, &std::fs::read(&path).unwrap().into()).unwrap(),
        }
    }
    storage
}
