//! The process: its directory, its stdin and stderr, its children, its end.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cleanslate_conformance::adapter::{Adapter, Operation, Trouble};

use crate::toy::{PATIENT, SOON, assert_one_line, create, greeted, reset, told, toy, trouble, trouble_of};

/// The directory of a toy that tells it first.
fn directory(adapter: &mut Adapter) -> PathBuf {
    PathBuf::from(told(adapter.call(&reset(), false).unwrap()))
}

const TELL_DIRECTORY: &str = r#"next
[ -z "$(ls -A "$CLEANSLATE_ADAPTER_DIR")" ] || exit 1
mkdir "$CLEANSLATE_ADAPTER_DIR/a" && echo b > "$CLEANSLATE_ADAPTER_DIR/a/b"
tell "$CLEANSLATE_ADAPTER_DIR""#;

#[test]
fn the_directory_is_there_until_bye() {
    let mut adapter = greeted(&format!("{TELL_DIRECTORY}; bye"));
    let path = directory(&mut adapter);
    assert!(path.is_absolute() && path.join("a/b").is_file(), "{}", path.display());
    adapter.finish().unwrap();
    assert!(!path.exists(), "{}", path.display());
}

#[test]
fn the_directory_goes_with_an_adapter_that_is_dropped() {
    let mut adapter = greeted(&format!("{TELL_DIRECTORY}; exec sleep 600"));
    let path = directory(&mut adapter);
    assert!(path.join("a/b").is_file(), "{}", path.display());
    drop(adapter);
    assert!(!path.exists(), "{}", path.display());
}

#[test]
fn the_directory_goes_with_an_adapter_that_is_killed() {
    let mut adapter = greeted(&format!("{TELL_DIRECTORY}; next; say nonsense; exec sleep 600"));
    let path = directory(&mut adapter);
    adapter.call(&create(), false).unwrap_err();
    drop(adapter);
    assert!(!path.exists(), "{}", path.display());
}

#[test]
fn two_adapters_have_two_directories() {
    let script = format!("{TELL_DIRECTORY}; bye");
    let (mut one, mut two) = (greeted(&script), greeted(&script));
    let (path, other) = (directory(&mut one), directory(&mut two));
    assert_ne!(path, other);
    one.finish().unwrap();
    assert!(other.is_dir());
    two.finish().unwrap();
}

/// True while there is a process of this id, be it a zombie.
fn is_there(pid: &str) -> bool {
    Command::new("sh").args(["-c", "kill -0 $0", pid]).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn the_process_is_killed_and_reaped() {
    let mut adapter = greeted("next; tell $$; next; say nonsense; exec sleep 600");
    let pid = told(adapter.call(&reset(), false).unwrap());
    assert!(is_there(&pid));
    adapter.call(&create(), false).unwrap_err();
    assert!(!is_there(&pid), "{pid}");
    let mut adapter = greeted("next; tell $$; exec sleep 600");
    let pid = told(adapter.call(&reset(), false).unwrap());
    drop(adapter);
    assert!(!is_there(&pid), "{pid}");
}

#[test]
fn stdin_that_nobody_reads() {
    let mut adapter = Adapter::start(&toy("greet; exec sleep 600", SOON)).unwrap();
    let log = "A".repeat(1 << 20);
    for _ in 0..20 {
        adapter.send(&Operation::Drop { log: log.clone() }, false).unwrap();
    }
    let error = adapter.receive().unwrap_err();
    assert_eq!(*error.trouble, Trouble::TimeOut { operation: "drop", id: 2, within: SOON });
    assert_one_line(&error);
}

#[test]
fn stdin_that_is_closed() {
    let error = trouble("greet; exec <&-; exec sleep 600 >&-");
    assert_eq!(*error.trouble, Trouble::Ended { operation: "create", id: 2 });
}

#[test]
fn stdin_ends_when_the_adapter_is_dropped() {
    // The reader of the input is a grandchild, which nobody kills.
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ended");
    // A shell gives what runs in the background another stdin; hence the detour.
    let grandchild = format!("( cat <&3 >/dev/null; : > '{}' ) >/dev/null 2>&1 &", mark.display());
    let mut adapter = greeted(&format!("next; exec 3<&0; {grandchild} tell started; exec sleep 600"));
    assert_eq!(told(adapter.call(&reset(), false).unwrap()), "started");
    assert!(!mark.exists());
    drop(adapter);
    let began = Instant::now();
    while !mark.exists() {
        assert!(began.elapsed() < PATIENT, "the input of the grandchild did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn much_on_stderr() {
    let flood = r"head -c 30000000 /dev/zero | tr '\0' x >&2; echo >&2; yes 'a line of a log' | head -n 300000 >&2";
    let adapter = greeted(&format!("{flood}; bye; {flood}"));
    adapter.finish().unwrap();
    let error = trouble(&format!("{flood}; printf 'the \\033[31mlast\\n\\n' >&2; exit 1"));
    assert_eq!(*error.trouble, Trouble::Ended { operation: "hello", id: 1 });
    assert_eq!((error.stderr.len(), error.stderr.last().map(String::as_str)), (20, Some("the  [31mlast")));
}

#[test]
fn long_lines_on_stderr_are_cut() {
    let error = trouble(r"printf 'cause: ' >&2; head -c 100000 /dev/zero | tr '\0' x >&2; echo >&2; echo end >&2; exit 1");
    assert_eq!(error.stderr.len(), 2, "{error:?}");
    assert!(error.stderr[0].starts_with("cause: xxx") && error.stderr[0].len() == 400);
    assert_eq!(error.stderr[1], "end");
}

#[test]
fn a_flood_on_stdout() {
    let mut adapter = greeted("yes nonsense");
    let error = adapter.call(&create(), false).unwrap_err();
    assert!(matches!(*error.trouble, Trouble::Garbage { .. }), "{error:?}");
}

#[test]
fn a_child_that_holds_the_output_after_bye() {
    let error = trouble_of(&toy("greet; next; reply create '\"ok\":{}'; while_it_runs & bye", SOON));
    assert_eq!(*error.trouble, Trouble::LeftBehind);
}

#[test]
fn a_child_that_holds_the_output_when_a_reply_is_due() {
    let error = trouble_of(&toy("greet; next; while_it_runs & exit 5", SOON));
    assert_eq!(*error.trouble, Trouble::TimeOut { operation: "create", id: 2, within: SOON });
    assert_eq!(error.exit.as_deref(), Some("it ended with exit status: 5"));
}

#[test]
fn a_child_that_holds_stderr() {
    let error = trouble("greet; next; echo why >&2; ( exec >&-; while_it_runs ) & exit 5");
    assert_eq!(*error.trouble, Trouble::Ended { operation: "create", id: 2 });
    assert_eq!(error.stderr, ["why"]);
}
