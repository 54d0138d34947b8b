//! The command `conform`, as far as it needs no JDK.

/// Exit code and what was said, of a run of the command.
pub(crate) fn conform(args: &[&str]) -> (Option<i32>, String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_cleanslate")).arg("conform").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn an_adapter_that_is_none_ends_the_run_with_one_line() {
    let (code, stdout, stderr) = conform(&["--adapter", "false"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert_eq!(stderr, "error: adapter: its output ended before the reply to hello (id 1); it ended with exit status: 1\n");
    let (code, _, stderr) = conform(&["--adapter", "/no/such/program"]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: adapter: /no/such/program cannot be started: ") && stderr.lines().count() == 1, "{stderr}");
}

/// A machine without Java, as far as the command can see: nothing was compared, which is no success.
#[test]
fn without_java_nothing_is_said_to_be_as_expected() {
    let tools = tempfile::tempdir().unwrap();
    for tool in ["bash", "dirname", "env"] {
        let found = std::process::Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap().stdout;
        std::os::unix::fs::symlink(String::from_utf8(found).unwrap().trim(), tools.path().join(tool)).unwrap();
    }
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/raw-foreign-marker.json");
    let commands: [&[&str]; 4] = [
        &["conform", "--target", "kafka"],
        &["conform", "--target", "kafka", "--transitions"],
        &["conform", "--target", "kafka", "--traces", trace],
        &["trace", "replay", "--target", "kafka", trace],
    ];
    for command in commands {
        let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_cleanslate"));
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
    let wrong: [&[&str]; 4] = [
        &["--adapter", "false", "--target", "kafka"],
        &["--kafka-version", "4.4.0", "--kafka-jars", "x"],
        &["--kafka-version", "4.4.0"],
        &["--target", "kafka", "--traces", "x"],
    ];
    for args in wrong {
        let (code, _, stderr) = conform(args);
        assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{stderr}");
    }
}
