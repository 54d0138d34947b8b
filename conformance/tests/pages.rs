//! The pages as a reader uses them: each `$ cargo run --release -- check ...` of README.md and `specs` is run as it stands, is violated, and
//! tells, step by step, the story that stands below it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::path::{Path, PathBuf};
use std::process::Command;

const PROMPT: &str = "$ cargo run --release -- check ";

/// A command on a page, and the numbered lines below it.
struct Shown {
    page: PathBuf,
    arguments: Vec<String>,
    story: Vec<String>,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    for dir in ["specs", "specs/findings"] {
        let entries = std::fs::read_dir(root.join(dir)).unwrap();
        pages.extend(entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md")));
    }
    pages.sort();
    pages
}

fn is_step(line: &str) -> bool {
    let digits = line.trim_start().bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && line.trim_start()[digits..].starts_with("  ")
}

fn shown_on(page: &Path) -> Vec<Shown> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(arguments) = line.strip_prefix(PROMPT) else { continue };
        let mut story = Vec::new();
        while let Some(line) = lines.next_if(|l| !l.starts_with("```")) {
            story.extend(is_step(line).then(|| line.trim().to_owned()));
        }
        let arguments = arguments.split_whitespace().map(ToOwned::to_owned).collect();
        found.push(Shown { page: page.to_owned(), arguments, story });
    }
    found
}

/// What is wrong with a command on a page, if anything is.
fn wrong(shown: &Shown) -> Option<String> {
    let traces = tempfile::tempdir().unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_cleanslate"));
    let output = check.arg("check").args(&shown.arguments).arg("--trace-dir").arg(traces.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told: Vec<&str> = text.lines().filter(|l| is_step(l)).map(str::trim).collect();
    let why = match output.status.code() {
        Some(1) if told == shown.story => return None,
        Some(1) => format!("the story is another one:\n{}", told.join("\n")),
        code => format!("exit {code:?}: {}", String::from_utf8_lossy(&output.stderr)),
    };
    Some(format!("{}: check {}: {why}", shown.page.display(), shown.arguments.join(" ")))
}

#[test]
fn every_command_on_a_page_tells_the_story_below_it() {
    let all: Vec<Shown> = pages().iter().flat_map(|page| shown_on(page)).collect();
    // Every page of a finding of the protocol has at least one.
    let with_one = |page: &PathBuf| all.iter().any(|s| s.page == *page && !s.story.is_empty());
    let is_finding = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(|c: char| c.is_ascii_digit()));
    let without: Vec<PathBuf> = pages().into_iter().filter(|p| is_finding(p) && !with_one(p)).collect();
    assert_eq!(without, Vec::<PathBuf>::new());
    let next = std::sync::Mutex::new(all.iter());
    let run = || {
        let mut faults = Vec::new();
        loop {
            let Some(shown) = next.lock().unwrap().next() else { return faults };
            faults.extend(wrong(shown));
        }
    };
    let faults: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(run)).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
