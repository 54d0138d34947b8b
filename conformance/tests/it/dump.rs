//! `cleanslate dump`, run as a process. What it prints of which file is the business of `impl/tests/dump.rs`.

use std::path::Path;
use std::process::{Command, Stdio};

const TXN_MIX: &str = "impl/tests/corpus/real/txn-mix/txn-mix-0";
const ZEROS: &str = "impl/tests/corpus/real/crash-zeros/before/crash-zeros-0";

/// Exit code, stdout and stderr of a run in the root of the project.
fn dump(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cleanslate")).arg("dump").args(args).current_dir(root()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("the command ended by itself"), text(output.stdout), text(output.stderr))
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

#[test]
fn files_are_dumped_in_their_order_and_what_is_odd_comes_last() {
    let log = format!("{TXN_MIX}/00000000000000000035.log");
    let index = format!("{TXN_MIX}/00000000000000000035.txnindex");
    let (code, out, err) = dump(&["--deep-iteration", &index, &log]);
    assert_eq!(code, 0);
    let heads: Vec<_> = out.lines().filter(|line| line.starts_with("Dumping ")).collect();
    assert_eq!(heads, [format!("Dumping {index}"), format!("Dumping {log}")]);
    let absolute = root().join(&log);
    assert_eq!(err, format!("Non-consecutive offsets in {}\n  -1 is followed by 35\n", absolute.display()));
    // Files as Kafka's tool takes them are the same.
    let as_in_kafka = dump(&["--deep-iteration", "--files", &format!("{index},{log}")]);
    assert_eq!(as_in_kafka, (code, out, err));
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_is_exit_2_behind_what_was_read() {
    let log = format!("{ZEROS}/00000000000000000023.log");
    let (code, out, err) = dump(&[&log]);
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
    assert!(err.starts_with(&format!("error: {log}: batch at byte 1654: ")), "{err}");
    assert!(out.contains("position: 1533 "), "{out}");
    let (code, out, err) = dump(&["nowhere/00000000000000000000.snapshot"]);
    assert_eq!((code, out.as_str()), (2, "Dumping nowhere/00000000000000000000.snapshot\n"));
    assert_eq!(err, "error: nowhere/00000000000000000000.snapshot: no such file\n");
}

/// On stdout is what Kafka's tool prints; stderr tells what is wrong, first of all that there is no file, and names it once.
#[test]
fn what_is_no_file_is_told_as_that() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let told = |name: &str| {
        let (code, out, err) = dump(&[&path(name)]);
        assert_eq!((code, out.lines().next()), (2, Some(&*format!("Dumping {}", path(name)))), "{err}");
        err.replace(&path(""), "")
    };
    assert_eq!(told("nothere.log"), "error: nothere.log: no such file\n");
    assert_eq!(told("nothere.foo"), "Ignoring unknown file nothere.foo\nerror: nothere.foo: no such file\n");
    for name in ["00000000000000000000.log", "00000000000000000001.snapshot", "other"] {
        std::fs::create_dir(path(name)).unwrap();
        assert!(told(name).ends_with(&format!("error: {name}: not a regular file\n")), "{name}");
    }
    // The log in front of an index.
    std::fs::write(path("00000000000000000007.index"), [0; 8]).unwrap();
    assert_eq!(told("00000000000000000007.index"), "error: 00000000000000000007.log: no such file\n");
    let status = Command::new("mkfifo").arg(path("00000000000000000002.log")).status().unwrap();
    assert!(status.success());
    assert_eq!(told("00000000000000000002.log"), "error: 00000000000000000002.log: not a regular file\n");
    std::fs::write(path("there.foo"), "").unwrap();
    assert_eq!(dump(&[&path("there.foo")]).0, 0);
}

#[test]
fn a_decoder_that_is_not_there_is_refused() {
    let log = format!("{TXN_MIX}/00000000000000000035.log");
    let (code, out, err) = dump(&["--print-data-log", "--key-decoder-class=org.example.Missing", &log]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("Failed to load decoder class org.example.Missing"), "{err}");
    for decoder in ["cluster-metadata", "offsets", "remote-log-metadata", "share-group-state", "transaction-log"] {
        let (code, out, err) = dump(&[&format!("--{decoder}-decoder"), &log]);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.starts_with(&format!("error: --{decoder}-decoder is not supported")), "{err}");
    }
    let as_text = dump(&["--value-decoder-class", "--key-decoder-class=org.apache.kafka.tools.api.StringDecoder", &log]);
    assert_eq!(as_text, dump(&["--print-data-log", &log]));
    assert_eq!(as_text.0, 0);
}

#[test]
fn json_is_all_on_stdout() {
    let log = format!("{TXN_MIX}/00000000000000000035.log");
    let (code, out, err) = dump(&["--json", "--deep-iteration", &log, "Cargo.toml"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let kind = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].as_str().unwrap().to_owned();
    let kinds: Vec<_> = out.lines().map(kind).collect();
    assert_eq!(kinds[..3], ["log", "batch", "record"]);
    assert_eq!(kinds[kinds.len() - 2..], ["ignored", "finding"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let log = format!("{TXN_MIX}/00000000000000000035.log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cleanslate"));
    command.arg("dump").args(vec![log; 200]).current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
