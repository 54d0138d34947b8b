//! The invariants of ARCHITECTURE.md, held against the repository itself.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(dir: &Path, wanted: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != ".git" && name != "node_modules" {
                files(&path, wanted, found);
            }
        } else if wanted(&path) {
            found.push(path);
        }
    }
}

fn sources(crates: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for name in crates {
        files(&root().join(name), &|p| p.extension().is_some_and(|e| e == "rs"), &mut found);
    }
    assert!(!found.is_empty());
    found.into_iter().map(|p| (p.clone(), std::fs::read_to_string(p).unwrap())).collect()
}

#[test]
fn model_and_log_do_not_know_each_other() {
    for (name, other) in [("model", "cleanslate-log"), ("impl", "cleanslate-model")] {
        let manifest = std::fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        assert!(!manifest.contains(other), "{name} depends on {other}");
        assert!(!manifest.contains("cleanslate-conformance"), "{name} depends on the conformance crate");
    }
}

#[test]
fn the_log_knows_no_model_checker_and_the_cores_do_no_io() {
    for (path, text) in sources(&["impl/src"]) {
        assert!(!text.contains("stateright"), "{}", path.display());
    }
    for (path, text) in sources(&["model/src", "impl/src"]) {
        let is_storage = path.components().any(|c| c.as_os_str() == "storage");
        for word in ["std::fs", "std::net", "SystemTime::now", "Instant::now", "println!", "std::env"] {
            assert!(is_storage || !text.contains(word), "{} uses {word}", path.display());
        }
    }
}

#[test]
fn files_stay_readable() {
    for (path, text) in sources(&["model", "impl", "conformance"]) {
        let lines = text.lines().count();
        assert!(lines <= 800, "{} has {lines} lines", path.display());
    }
}

#[test]
fn no_lint_is_silenced_without_a_reason_and_no_test_is_ignored() {
    let marks =
        [format!("#[{}]", "ignore"), format!("#[{} =", "ignore"), format!("{}!(", "todo"), format!("{}!(", "unimplemented")];
    for (path, text) in sources(&["model", "impl", "conformance"]) {
        for mark in &marks {
            assert!(!text.contains(mark.as_str()), "{} has {mark}", path.display());
        }
        for line in text.lines().filter(|l| l.trim_start().starts_with("#[allow(") && l.trim_end().ends_with(']')) {
            assert!(line.contains("reason"), "{}: {line}", path.display());
        }
    }
}

#[test]
fn every_requirement_that_code_cites_exists() {
    let known: Vec<_> = cleanslate_conformance::requirements::all().map(|r| r.id.to_owned()).collect();
    let mut unique = known.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), known.len(), "a requirement id is given twice");
    let families = [
        "PID", "MAP", "PSM", "LOG", "TXN", "EPOCH", "ELECT", "STATE", "BAR", "MIR", "GATE", "STOP", "ALI", "UNIQ", "CLEAN",
        "SILENT", "CONV", "LIVE", "ALIGN", "LOSS", "LINK", "RED", "KILL",
    ];
    let mut cited = 0;
    for (path, text) in sources(&["model/src", "impl/src", "conformance/src"]) {
        let text = text.as_str();
        for family in families {
            for (at, _) in text.match_indices(&format!("{family}-")) {
                let before = text[..at].chars().last();
                let number: String = text[at + family.len() + 1..].chars().take_while(char::is_ascii_digit).collect();
                if number.is_empty() || before.is_some_and(|c| c.is_alphanumeric() || c == '-') {
                    continue;
                }
                cited += 1;
                let id = format!("{family}-{number}");
                assert!(known.contains(&id), "{} cites {id}, which specs/requirements.md lacks", path.display());
            }
        }
    }
    assert!(cited > 50, "only {cited} citations found: the test looks in the wrong place");
}

#[test]
fn every_promise_has_a_property() {
    let properties: Vec<_> = cleanslate_model::property::PROPERTIES.iter().map(|p| p.requirement).collect();
    for requirement in cleanslate_conformance::requirements::all() {
        let family = requirement.id.split('-').next().unwrap();
        if ["UNIQ", "CLEAN", "SILENT", "CONV", "LIVE", "ALIGN", "LOSS"].contains(&family) && requirement.id != "LIVE-3" {
            assert!(properties.contains(&requirement.id), "{} has no property", requirement.id);
        }
    }
}

/// The file of a module in `impl`, given by its path from `impl/tests/upstream` or `impl/src`; modules may lie within a file.
fn upstream_file(module: &[&str]) -> Option<PathBuf> {
    let of = |dir: &'static str| (1..=module.len()).rev().map(move |len| root().join(dir).join(module[..len].join("/")));
    of("impl/tests/upstream").chain(of("impl/src")).map(|path| path.with_extension("rs")).find(|path| path.is_file())
}

#[test]
fn the_table_of_upstream_tests_names_the_tests_that_there_are() {
    let table = std::fs::read_to_string(root().join("specs/upstream-tests.md")).unwrap();
    // Paths of functions; a type begins with a capital letter.
    let is_test = |word: &&str| word.contains("::") && !word.contains(' ') && word.starts_with(|c: char| c.is_ascii_lowercase());
    let named: Vec<&str> = table.split('`').filter(is_test).collect();
    for name in &named {
        let path: Vec<&str> = name.split("::").collect();
        let (function, module) = path.split_last().unwrap();
        let file = upstream_file(module).unwrap_or_else(|| panic!("{name}: no such module"));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("fn {function}(")), "{name}: no such test in {}", file.display());
    }
    let mut tests = 0;
    let dir = root().join("impl/tests/upstream");
    for (path, text) in sources(&["impl/tests/upstream"]) {
        let module = path.strip_prefix(&dir).unwrap().with_extension("").to_string_lossy().replace('/', "::");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| **line == "#[test]") {
            let function = lines[at + 1].strip_prefix("fn ").and_then(|rest| rest.split_once('(')).unwrap().0;
            let beyond = at > 0 && lines[at - 1].starts_with("/// Beyond Kafka's own tests");
            tests += 1;
            assert!(
                beyond || named.contains(&format!("{module}::{function}").as_str()),
                "{module}::{function} is not in the table"
            );
        }
    }
    assert!(tests > 400, "only {tests} tests found: the test looks in the wrong place");
}
