//! The stories that the texts tell, as the model finds them: each file in `stories/` begins with a command and holds what it prints.
//!
//! `UPDATE=1 cargo test --release -p cleanslate-conformance --test stories` writes the files again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::path::Path;
use std::process::Command;

/// What the command prints up to the name of the trace file, which depends on where the tests run.
fn story(command: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let args: Vec<&str> = command.split_whitespace().skip(1).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_cleanslate")).args(&args).arg("--trace-dir").arg(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let kept: Vec<&str> = text.lines().take_while(|l| !l.starts_with("  replayed from:")).collect();
    kept.join("\n") + "\n"
}

#[test]
fn stories() {
    let update = std::env::var_os("UPDATE").is_some();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let about: Vec<&str> = text.lines().take_while(|l| !l.starts_with("$ ")).collect();
        let command =
            text.lines().find_map(|l| l.strip_prefix("$ ")).unwrap_or_else(|| panic!("{} has no command", path.display()));
        let fresh = format!("{}\n$ {command}\n\n{}", about.join("\n"), story(command));
        if update {
            std::fs::write(&path, fresh).unwrap();
        } else {
            assert_eq!(text, fresh, "{} differs; UPDATE=1 writes it again", path.display());
        }
    }
}
