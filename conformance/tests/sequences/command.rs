//! The command `conform`, as far as it needs no JDK.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/raw-foreign-marker.json");

/// Exit code and what was said, of a run of the command.
fn conform(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cleanslate")).arg("conform").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn an_adapter_that_is_none_ends_the_run_with_one_line() {
    let (code, stdout, stderr) = conform(&["--adapter", "false"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert_eq!(stderr, "error: adapter: its output ended before the reply to hello (id 1); it ended with exit status: 1\n");
    let (code, _, stderr) = conform(&["--adapter", "/no/such/program"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.starts_with("error: --adapter: /no/such/program cannot be started: ") && stderr.lines().count() == 1,
        "{stderr}"
    );
    let (code, _, stderr) = conform(&["--adapter", ""]);
    assert_eq!((code, stderr.as_str()), (Some(2), "error: --adapter: the command \"\" cannot be read: it is empty\n"));
}

/// A machine without Java, as far as the command can see: nothing was compared, which is no success.
#[test]
fn without_java_nothing_is_said_to_be_as_expected() {
    let tools = tools(&["bash", "dirname", "env"]);
    let trace = TRACE;
    let commands: [&[&str]; 4] = [
        &["conform", "--target", "kafka"],
        &["conform", "--target", "kafka", "--transitions"],
        &["conform", "--target", "kafka", "--traces", trace],
        &["trace", "replay", "--target", "kafka", trace],
    ];
    for command in commands {
        let mut run = Command::new(env!("CARGO_BIN_EXE_cleanslate"));
        run.env("PATH", tools.path()).env_remove("JAVA_HOME").args(command);
        let output = run.output().unwrap();
        let said = (output.status.code(), String::from_utf8(output.stdout).unwrap());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, (Some(3), String::new()), "{command:?}: {stderr}");
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines[0].starts_with("kafka-adapter: cannot be built here: there is no java"), "{stderr}");
        assert_eq!(lines[1..], ["skipped: the adapter around Kafka's classes cannot be built here, so nothing was compared"]);
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let empty = tempfile::tempdir().unwrap();
    let (empty, trace) = (empty.path().display().to_string(), TRACE);
    let idle = "only for sequences, with --target kafka or --adapter, without --traces or --transitions";
    let wrong: [(&[&str], &str); 20] = [
        (&["--adapter", "false", "--target", "kafka"], "cannot be used with"),
        (&["--kafka-version", "4.4.0", "--kafka-jars", "x"], "cannot be used with"),
        (&["--kafka-version", "4.4.0"], "need --target kafka"),
        (&["--adapter", "false", "--kafka-jars", "x"], "need --target kafka"),
        (&["--target", "kafka", "--traces", "x"], "cannot read the trace"),
        (&["--random", "5"], &format!("--random: {idle}")),
        (&["--length", "5", "--seed", "2"], &format!("--length, --seed: {idle}")),
        (&["--max-differences", "5"], &format!("--max-differences: {idle}")),
        (&["--sequences", &empty], &format!("--sequences: {idle}")),
        (&["--adapter", "false", "--traces", trace, "--seed", "1"], &format!("--seed: {idle}")),
        (&["--adapter", "false", "--transitions", "--random", "1"], &format!("--random: {idle}")),
        (&["--failures", "x"], "--failures: only with --target kafka or --adapter"),
        (&["--adapter", "false", "--bounds", "ci"], "--bounds: another implementation is held against the model by --transitions"),
        (&["--adapter", "false", "--length", "0"], "0 is not in 1.."),
        (&["--adapter", "false", "--max-differences", "0"], "0 is not in 1.."),
        (&["--adapter", "false", "--sequences", "/no/such/directory"], "--sequences /no/such/directory: "),
        (&["--target", "kafka", "--kafka-jars", "/no/such/directory"], "--kafka-jars: there is no directory /no/such/directory"),
        (&["--target", "kafka", "--kafka-jars", trace], "is no directory; name the directory that holds the jars"),
        (&["--target", "kafka", "--kafka-jars", &empty], "holds no *.jar file"),
        (&["--target", "kafka", "--kafka-version", "x;y"], "--kafka-version 'x;y': expected a version such as 4.3.1"),
    ];
    for (args, says) in wrong {
        let (code, stdout, stderr) = conform(args);
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(2), "", 1), "{args:?}: {stderr}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
    let (code, _, stderr) = conform(&["--target", "kafka", "--kafka-version", "4.2.0"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.starts_with("error: --kafka-version 4.2.0: the adapter needs Kafka 4.3 or later") && stderr.lines().count() == 1
    );
}

/// A directory with these tools of the system, and no others.
fn tools(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for tool in names {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap().stdout;
        symlink(String::from_utf8(found).unwrap().trim(), dir.path().join(tool)).unwrap();
    }
    dir
}

/// A tool of a few lines of shell.
fn fake(dir: &Path, name: &str, script: &str) {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What is said about a Java that is there by name only: JAVA_HOME is named, and the hints are options of this command.
#[test]
fn what_is_missing_is_named_by_the_options_of_the_command() {
    let said = |run: &mut Command| {
        let output = run.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let mut run = Command::new(env!("CARGO_BIN_EXE_cleanslate"));
    let (code, stderr) = said(run.args(["conform", "--target", "kafka"]).env("JAVA_HOME", "/no/such/jdk"));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("there is no java in JAVA_HOME (/no/such/jdk)"), "{stderr}");

    let names = "bash dirname env find sort xargs cat cksum tr sed cut mkdir ls rm grep";
    let tools = tools(&names.split(' ').collect::<Vec<_>>());
    fake(tools.path(), "java", "");
    fake(tools.path(), "javac", "echo javac 17.0.1");
    let mut run = Command::new(env!("CARGO_BIN_EXE_cleanslate"));
    // No version that anybody has built, whose state a failed build would forget.
    run.args(["conform", "--target", "kafka", "--kafka-version", "4.3.99"]).env("PATH", tools.path()).env_remove("JAVA_HOME");
    let (code, stderr) = said(&mut run);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("there is no mvn; install Maven, or name a directory of jars with --kafka-jars\n"), "{stderr}");

    fake(
        tools.path(),
        "mvn",
        "echo '[ERROR] Could not find artifact org.apache.kafka:kafka-storage:jar:4.3.99 in central'; exit 1",
    );
    let (code, stderr) = said(&mut run);
    assert_eq!(
        (code, stderr.as_str()),
        (Some(2), "error: --kafka-version 4.3.99: the Maven repository has no such version of Kafka\n")
    );

    let jars = tempfile::tempdir().unwrap();
    std::fs::write(jars.path().join("some.jar"), "").unwrap();
    let shown = jars.path().display().to_string();
    let lacks = "echo 'Error: class not found: org.apache.kafka.storage.internals.log.UnifiedLog'\n\
                 echo 'Error: class not found: com.fasterxml.jackson.databind.ObjectMapper'; exit 1";
    let old = "echo 'Error: class not found: org.apache.kafka.common.record.internal.MemoryRecords'; exit 1";
    for (script, says) in [
        (lacks, format!("error: --kafka-jars: kafka-storage, jackson-databind missing in {shown}\n")),
        (old, format!("error: --kafka-jars: {shown} holds a Kafka before 4.3; the adapter needs 4.3 or later\n")),
    ] {
        fake(tools.path(), "javap", script);
        let mut run = Command::new(env!("CARGO_BIN_EXE_cleanslate"));
        run.args(["conform", "--target", "kafka", "--kafka-jars", &shown]).env("PATH", tools.path()).env_remove("JAVA_HOME");
        assert_eq!(said(&mut run), (Some(2), says));
    }
}

/// An adapter with the required operations alone, of this name and version. It answers `create` in the way that is told.
fn toy(dir: &Path, name: &str, version: &str, create: &str) -> String {
    let required = cleanslate_conformance::adapter::message::REQUIRED.map(|name| format!("\"{name}\"")).join(",");
    let script = format!(
        r#"id=0
while IFS= read -r line; do
  id=$((id + 1)); op=${{line#*\"op\":\"}}; op=${{op%%\"*}}
  case $op in
    hello) body='"ok":{{"protocol":1,"name":"{name}","version":"{version}","operations":[{required}],"features":[]}}' ;;
    reset|bye) body='"ok":{{}}' ;;
    create) body='{create}' ;;
    *) body='"error":{{"kind":"internal","name":"no","message":"no"}}' ;;
  esac
  printf '%s\n' "{{\"id\":$id,\"op\":\"$op\",$body}}"
  [ "$op" != bye ] || exit 0
done"#
    );
    let path = dir.join("toy.sh");
    std::fs::write(&path, script).unwrap();
    format!("sh '{}'", path.display())
}

/// A log as it is created, told without features.
const EMPTY: &str = concat!(
    r#""ok":{},"state":{"log_start_offset":0,"log_end_offset":0,"high_watermark":0,"last_stable_offset":0,"first_unstable_offset":null,"#,
    r#""recovery_point":0,"map_end_offset":0,"producers":[],"ongoing_transactions":[],"unreplicated_transactions":[],"#,
    r#""verification":null,"snapshots":null,"leader_epochs":null,"aborted_transactions":null,"segments":null}"#
);

const CREATE: &str = r#"{"op":"create","log":"A","now_ms":0,"config":{}}"#;

fn write_sequence(dir: &Path, name: &str, steps: &[&str]) -> String {
    let path = dir.join(name);
    let steps = steps.join(",");
    let text = format!(r#"{{"format": "cleanslate-sequence", "version": 1, "about": "", "steps": [{steps}]}}"#);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn what_an_adapter_lacks_is_told_at_once_and_nothing_compared_is_exit_3() {
    let dir = tempfile::tempdir().unwrap();
    let adapter = toy(dir.path(), "toy", "1", EMPTY);
    let cut = r#"{"op":"crash","log":"A","cuts":[{"file":"x","bytes":1}],"lost":[]}"#;
    let compact = r#"{"op":"compact","log":"A","first_dirty":0,"first_uncleanable":0,"now_ms":0}"#;
    let file = write_sequence(dir.path(), "lacking.json", &[CREATE, compact, cut]);
    let args = ["--adapter", &adapter, "--random", "0", "--sequences"];
    let (code, stdout, stderr) = conform(&[&args[..], &[&file]].concat());
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "skipped 1 of 1 stored sequences: they need compact, crash-files, virtual-time");
    assert_eq!(lines[1], "nothing was compared");
    assert!(lines[2].starts_with("toy 1: 0 stored and 0 random sequences, 0 requests, 0 differences (seed 1, "), "{stdout}");
    // Beside one that can be run, it is counted only.
    write_sequence(dir.path(), "possible.json", &[CREATE]);
    let shown = dir.path().display().to_string();
    let (code, stdout, stderr) = conform(&[&args[..], &[&shown]].concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.starts_with("skipped 1 of 2 stored sequences: they need "), "{stdout}");
    let (_, json, _) = conform(&[&args[..], &[&shown, "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["sequences"].as_u64(), json["skipped"].as_u64()), (Some(1), Some(1)));
    assert_eq!(json["missing"], serde_json::json!(["compact", "crash-files", "virtual-time"]));
}

#[test]
fn traces_that_need_what_an_adapter_lacks_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let adapter = toy(dir.path(), "toy", "1", EMPTY);
    let mut trace: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(TRACE).unwrap()).unwrap();
    let step = &mut trace["steps"][0];
    let replica = step["ops"][0]["replica"].clone();
    step["ops"].as_array_mut().unwrap().insert(0, serde_json::json!({"op": "roll", "replica": replica}));
    let file = dir.path().join("rolls.json");
    std::fs::write(&file, trace.to_string()).unwrap();
    let shown = file.display().to_string();
    let (code, stdout, stderr) = conform(&["--adapter", &adapter, "--traces", &shown]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    assert!(
        stdout.contains("needs roll, which the adapter does not list") && stdout.contains("0 passed, 0 failed, 1 skipped"),
        "{stdout}"
    );
    let output =
        Command::new(env!("CARGO_BIN_EXE_cleanslate")).args(["trace", "replay", "--adapter", &adapter, &shown]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn differences_are_told_as_the_protocol_has_them_and_their_number_is_heeded() {
    let dir = tempfile::tempdir().unwrap();
    let adapter = toy(dir.path(), "toy", "1", r#""error":{"kind":"exception","name":"IOException","message":"full"}"#);
    for name in ["a.json", "b.json", "c.json"] {
        write_sequence(dir.path(), name, &[CREATE]);
    }
    let shown = dir.path().display().to_string();
    let args = ["--adapter", &adapter, "--sequences", &shown, "--max-differences", "2"];
    let (code, stdout, stderr) = conform(&args);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    let quoted = format!("'{}'", adapter.replace('\'', "'\\''"));
    let again = format!("  reproduce: cargo run --release -- conform --adapter {quoted} --random 0 --sequences {shown}/a.json");
    assert_eq!(lines[0], format!("DIFFERENT  {shown}/a.json"));
    assert_eq!(lines[1], format!("    0 {CREATE}"));
    assert_eq!(
        lines[2..5],
        [
            "  step 0, outcome:",
            r#"    here  {"ok":{}}"#,
            r#"    there {"error":{"kind":"exception","name":"IOException","message":"full"}}"#,
        ]
    );
    assert_eq!(lines[5], "  step 0, state:");
    assert!(lines[6].starts_with(r#"    here  {"log_start_offset":0,"#), "{stdout}");
    assert_eq!(lines[7..9], ["    there (nothing)", &again]);
    assert!(stdout.contains("toy 1: 2 stored and 0 random sequences, 2 requests, 2 differences"), "{stdout}");
}

#[test]
fn a_part_of_the_sequences_tells_nothing_of_known_differences_that_did_not_occur() {
    let dir = tempfile::tempdir().unwrap();
    let adapter = toy(dir.path(), "apache-kafka", "5.0.0-SNAPSHOT", EMPTY);
    let file = write_sequence(dir.path(), "one.json", &[CREATE]);
    let (code, stdout, stderr) = conform(&["--adapter", &adapter, "--random", "0", "--sequences", &file]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(
        stdout.starts_with("apache-kafka 5.0.0-SNAPSHOT: 1 stored and 0 random sequences, 1 requests, 0 differences"),
        "{stdout}"
    );
}

#[test]
fn a_trace_is_no_sequence_and_a_sequence_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let adapter = toy(dir.path(), "toy", "1", EMPTY);
    let (code, _, stderr) = conform(&["--adapter", &adapter, "--random", "0", "--sequences", TRACE]);
    let says = "this is a trace, not a sequence; traces are run by `conform --traces` and `trace replay`";
    assert_eq!((code, stderr), (Some(2), format!("error: {TRACE}: {says}\n")));
    let file = write_sequence(dir.path(), "one.json", &[CREATE]);
    let (code, _, stderr) = conform(&["--traces", &file]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("this is a sequence, not a trace; sequences are run by `conform --sequences`"), "{stderr}");
    let empty = tempfile::tempdir().unwrap();
    let (code, _, stderr) = conform(&["--adapter", &adapter, "--sequences", &empty.path().display().to_string()]);
    assert_eq!((code, stderr.as_str()), (Some(2), "error: --sequences: the directory holds no *.json file\n"));
}
